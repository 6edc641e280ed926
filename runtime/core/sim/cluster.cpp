#include "sim/cluster.hpp"

#include <algorithm>

#include "sim/nemesis.hpp"

namespace monarch::sim {
namespace {

constexpr Duration kRound = seconds(12);  // after the last fault: one more call to every rank

}  // namespace

Cluster::Cluster(const Plan& plan)
    : plan_(plan),
      world_(plan.seed),
      network_(world_, plan.network),
      shared_{.world = world_, .network = network_, .history = history_, .pace = plan.pace,
              .bend = plan.bend} {
  client_id_ = fresh(hosts_++);
  client_ = std::make_unique<Client>(*this, client_id_, 0, plan.ranks, plan.hosts);
}

Id Cluster::fresh(Host host) {
  // As good as random, and each once: which of two is smaller decides whose dial stands.
  const Id id = ((world_.random.next() & 0xFFFFFF) << 20) | ++ids_;
  network_.place(id, host);
  return id;
}

Id Cluster::add_host() {
  const Id id = fresh(hosts_++);
  auto agent = std::make_unique<Agent>(*this, id, network_.host_of(id));
  agent->start();
  agents_.emplace(id, std::move(agent));
  return id;
}

void Cluster::start_worker(Id id, Agent& agent) {
  auto worker = std::make_unique<Worker>(*this, id, network_.host_of(id), agent.id());
  worker->start();
  shared_.note(What::kStarted, 0, id);
  workers_.emplace(id, std::move(worker));
}

void Cluster::kill(Id id) {
  if (!network_.alive(id)) return;
  network_.kill(id);
  ended(id);
}

// What follows from the end of a process on its host.
void Cluster::ended(Id id) {
  if (const auto worker = workers_.find(id); worker != workers_.end()) {
    shared_.note(What::kEnded, 0, id);
    for (const auto& [agent, state] : agents_) {
      if (state->children().contains(id)) state->child_ended(id);
    }
    return;
  }
  // Processes do not outlive their agent: the kernel kills them.
  const Host host = network_.host_of(id);
  for (const auto& [child, worker] : workers_) {
    if (worker->host() != host || !network_.alive(child)) continue;
    world_.after(world_.random.between(microseconds(50), milliseconds(5)),
                 [this, child = child] { kill(child); });
  }
}

void Cluster::power_off(Host host) {
  std::vector<Id> there;
  for (const auto& [id, worker] : workers_) {
    if (worker->host() == host && network_.alive(id)) there.push_back(id);
  }
  network_.power_off(host);
  for (const Id id : there) shared_.note(What::kEnded, 0, id);
}

// No message takes so many turns of the narrowest link that its beats come too late behind it.
std::size_t Cluster::some_size() {
  const std::size_t most = 16 * plan_.network.window;
  const std::uint64_t draw = world_.random.below(1000);
  if (draw < 900) return world_.random.below(200);
  return std::min<std::size_t>(
      most, draw < 995 ? world_.random.below(8000) : world_.random.below(100'000));
}

void Cluster::run() {
  const Instant begin = world_.now();
  const Instant faults_end = begin + plan_.busy;
  const Instant end = faults_end + plan_.rest;
  work_ends_ = plan_.liveness ? faults_end + kRound : end;
  client_->begin();
  Nemesis nemesis(*this, faults_end);
  nemesis.begin();
  (void)world_.run_until(faults_end);
  if (plan_.liveness) {
    nemesis.heal_all();
    shared_.note(What::kCalm, 0, 0);
    (void)world_.run_until(faults_end + kRound);
    client_->call_all();
  }
  (void)world_.run_until(end);
}

}  // namespace monarch::sim
