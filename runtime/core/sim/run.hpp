// One seed, one run: the size of the cluster, its faults and its work all follow from it.
#pragma once

#include "sim/checker.hpp"
#include "sim/cluster.hpp"

namespace monarch::sim {

struct Outcome {
  Verdict verdict;
  Plan plan;
  std::uint64_t steps = 0;
  History history;
};

[[nodiscard]] Plan plan_of(std::uint64_t seed, bool liveness);
[[nodiscard]] Outcome run(const Plan& plan);

}  // namespace monarch::sim
