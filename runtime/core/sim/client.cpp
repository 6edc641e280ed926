// The program that drives the mesh: it starts processes, hears of their deaths and replaces them.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "sim/cluster.hpp"

namespace monarch::sim {
namespace {

using U64 = std::uint64_t;


constexpr Duration kAgain = milliseconds(20);  // until there is a host
constexpr Duration kSecondSign = milliseconds(200);

}  // namespace

Client::Client(Cluster& cluster, Id id, Host host, std::size_t ranks, std::size_t hosts)
    : Talker(cluster, id, host), ranks_(ranks), hosts_(hosts) {}

void Client::begin() {
  start();
  while (agents_.size() < hosts_) attach();
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) spawn(rank, 0);
  work();
}

// The job gives a host, and its agent is dialled.
void Client::attach() {
  const Id agent = cluster_.add_host();
  agents_.insert(agent);
  tell(agent, Word::kSpawn, {});
  relays_.push_back(agent);
  origin_.changed();
  // Those above it are to have a link to it.
  if (const std::size_t up = wire::above(relays_.size() - 1, k_fan_out); up != wire::k_root) {
    tell(relays_[up], Word::kLink, std::array{U64{agent}});
  }
}

void Client::spawn(std::size_t rank, Id replaces) {
  Id agent = 0;
  for (const Id known : agents_) {
    if (linked(known) && (agent == 0 || cluster_.random().chance(40))) agent = known;
  }
  if (agent == 0) {
    if (agents_.size() < hosts_) attach();
    later(kAgain, [this, rank, replaces] { spawn(rank, replaces); });
    return;
  }
  const Id proc = cluster_.fresh(shared_.network.host_of(agent));
  procs_[proc] = {.rank = rank, .agent = agent};
  ranks_[rank] = proc;
  shared_.note(What::kSpawned, id(), proc, replaces);
  tell(agent, Word::kSpawn, std::array{U64{proc}});
  tell_all(Word::kMember, std::array{U64{rank}, U64{proc}, U64{replaces}}, proc);
  for (std::size_t other = 0; other < ranks_.size(); ++other) {
    if (ranks_[other] != 0) {
      tell(proc, Word::kMember, std::array{U64{other}, U64{ranks_[other]}, U64{0}});
    }
  }
}

void Client::tell_all(Word word, std::span<const U64> body, Id but) {
  for (const auto& [proc, state] : procs_) {
    if (!state.dead && proc != but) tell(proc, word, body);
  }
}

void Client::told(Id peer, Word word, std::span<const U64> body) {
  const Id proc = body[0];
  const auto found = procs_.find(proc);
  if (found == procs_.end()) return;
  Proc& state = found->second;
  if (word == Word::kEnded) {
    if (!bent(Bend::kTellTwice) && state.dead) return;
    state.exited = true;
    // A session waits for another connection, and none comes of what has ended.
    if (linked(proc) && broken(proc)) give_up(proc);
    sign(proc);
  } else if (word == Word::kFate) {
    if (state.dead) {
      tell(peer, Word::kDead, std::array{U64{proc}, U64{1}});
    } else {
      state.curious.insert(peer);
    }
  }
}

void Client::lost(Id peer) {
  silent_.erase(peer);
  settle_casts(peer, cluster_.is_agent(peer));
  if (cluster_.is_agent(peer)) {
    host_lost(peer);
  } else if (const auto found = procs_.find(peer); found != procs_.end()) {
    found->second.closed = true;
    sign(peer);
  }
}

// Two things tell of a death; it is told when both are there, or a while after the first.
void Client::sign(Id proc) {
  Proc& state = procs_.at(proc);
  if (state.closed && state.exited) {
    died(proc);
  } else if (!std::exchange(state.waits, true)) {
    later(kSecondSign, [this, proc] { died(proc); });
  }
}

void Client::died(Id proc) {
  Proc& state = procs_.at(proc);
  if (state.dead && !bent(Bend::kTellTwice)) return;
  state.dead = true;
  bury(proc);
  settle_casts(proc, /*hop=*/false);
  forget_casts(proc);
  if (!state.exited && agents_.contains(state.agent)) {
    tell(state.agent, Word::kEnd, std::array{U64{proc}});
  }
  if (!bent(Bend::kTellNobody)) shared_.note(What::kDeath, id(), proc);
  tell_all(Word::kDead, std::array{U64{proc}, U64{1}});
  if (ranks_[state.rank] == proc) spawn(state.rank, proc);
}

void Client::host_lost(Id agent) {
  if (agents_.erase(agent) == 0) return;
  std::vector<U64> gone;
  for (const auto& [proc, state] : procs_) {
    if (state.agent == agent && !state.dead) gone.push_back(proc);
  }
  // Whether it is lost or cut off: its processes are shut out everywhere before others come.
  for (const Id proc : gone) procs_.at(proc).exited = true;
  if (!gone.empty()) {
    for (const auto& [proc, state] : procs_) {
      if (state.agent != agent && !state.dead && linked(proc)) tell(proc, Word::kFence, gone);
    }
  }
  for (const Id proc : gone) {
    give_up(proc);
    died(proc);
  }
}

void Client::silent(Id peer, bool is) {
  if (!is) {
    silent_.erase(peer);
  } else if (agents_.contains(peer)) {
    give_up(peer);
  } else if (procs_.contains(peer) && silent_.insert(peer).second) {
    later(shared_.pace.patience(), [this, peer] {
      if (silent_.contains(peer)) give_up(peer);
    });
  }
}

void Client::call_all() {
  for (const Id proc : ranks_) {
    if (proc != 0) call(proc, 0);
  }
}

void Client::work() {
  if (!cluster_.works()) return;
  Random& random = cluster_.random();
  if (random.chance(15)) cast(random.chance(70));
  for (U64 i = random.below(4); i > 0; --i) {
    const Id proc = ranks_[random.below(ranks_.size())];
    if (proc == 0) continue;  // not there yet
    if (random.chance(60)) {
      call(proc, cluster_.some_size());
    } else {
      say(proc, cluster_.some_size());
    }
  }
  later(random.between(milliseconds(5), milliseconds(120)), [this] { work(); });
}

}  // namespace monarch::sim
