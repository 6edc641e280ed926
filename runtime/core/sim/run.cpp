#include "sim/run.hpp"

#include <algorithm>

namespace monarch::sim {

Plan plan_of(std::uint64_t seed, bool liveness) {
  Random random(seed * 2 + (liveness ? 1 : 0));
  Plan plan;
  plan.seed = random.next();
  plan.liveness = liveness;
  plan.hosts = random.between(std::uint64_t{1}, 8);
  // Most runs are small: what goes wrong among 64 does so among 6, in less time.
  const std::uint64_t most = random.chance(75) ? 12 : 64;
  plan.ranks = random.between(std::uint64_t{1}, most);
  plan.busy = random.between(seconds(5), seconds(15));
  plan.rest = liveness ? seconds(16) : seconds(1);
  if (random.chance(30)) plan.network.far_most = milliseconds(40);
  if (random.chance(30)) plan.network.window = random.between(std::uint64_t{200}, 8000);
  return plan;
}

Outcome run(const Plan& plan) {
  Cluster cluster(plan);
  cluster.run();
  Outcome outcome{.verdict = check(cluster.history(), cluster.client().ranks()),
                  .plan = plan,
                  .steps = cluster.steps(),
                  .history = {}};
  outcome.history = cluster.take_history();
  return outcome;
}

}  // namespace monarch::sim
