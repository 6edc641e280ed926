#include "sim/nemesis.hpp"

#include <algorithm>

namespace monarch::sim {

Nemesis::Nemesis(Cluster& cluster, Instant end)
    : cluster_(cluster), random_(cluster.random()), end_(end) {
  constexpr std::array kAll{Fault::kReset, Fault::kResets, Fault::kCut,  Fault::kIsolate,
                            Fault::kSwizzle, Fault::kStop, Fault::kKill, Fault::kKillAgent,
                            Fault::kPower};
  // A run with few kinds goes deeper than one with all of them.
  const unsigned share = static_cast<unsigned>(random_.between(std::uint64_t{10}, 60));
  for (const Fault fault : kAll) {
    if (random_.chance(share)) kinds_.push_back(fault);
  }
  if (kinds_.empty() || random_.chance(10)) kinds_ = {Fault::kReset, Fault::kResets};
  pause_ = random_.between(milliseconds(100), milliseconds(3000));
}

void Nemesis::begin() {
  // Some runs are hit while everybody is only getting to know each other.
  cluster_.world_.after(random_.between(milliseconds(1), milliseconds(1500)), [this] { next(); });
}

void Nemesis::next() {
  if (cluster_.world_.now() >= end_) return;
  strike(kinds_[random_.below(kinds_.size())]);
  cluster_.world_.after(random_.between(pause_ / 20, 2 * pause_), [this] { next(); });
}

void Nemesis::note(std::string_view text, std::uint64_t other, std::uint64_t number) {
  cluster_.shared_.note(What::kFault, 0, other, number, text);
}

Host Nemesis::some_host() { return static_cast<Host>(random_.below(cluster_.hosts_)); }

Duration Nemesis::some_time() {
  return random_.chance(50) ? random_.between(milliseconds(10), milliseconds(900))
                            : random_.between(milliseconds(900), milliseconds(7000));
}

std::vector<Id> Nemesis::living(bool agents) const {
  std::vector<Id> found;
  if (agents) {
    for (const auto& [id, agent] : cluster_.agents_) {
      if (cluster_.network_.alive(id)) found.push_back(id);
    }
  } else {
    for (const auto& [id, worker] : cluster_.workers_) {
      if (cluster_.network_.alive(id)) found.push_back(id);
    }
  }
  return found;
}

void Nemesis::strike(Fault fault) {
  switch (fault) {
    case Fault::kReset:
    case Fault::kResets: {
      std::vector<Conn> conns = cluster_.network_.between_hosts();
      const bool all = fault == Fault::kResets;
      note(all ? "reset many" : "reset");
      for (const Conn conn : conns) {
        if (all ? random_.chance(50) : random_.below(conns.size()) == 0) {
          cluster_.network_.reset(conn);
        }
      }
      return;
    }
    case Fault::kCut: {
      const Host from = some_host();
      const Host to = some_host();
      if (from == to) return;
      const Duration time = some_time();
      cut(from, to, time);
      if (random_.chance(50)) cut(to, from, time);
      return;
    }
    case Fault::kIsolate:
      isolate();
      return;
    case Fault::kSwizzle:
      swizzle();
      return;
    case Fault::kStop:
      stop();
      return;
    case Fault::kKill:
    case Fault::kKillAgent: {
      const std::vector<Id> ids = living(fault == Fault::kKillAgent);
      if (ids.empty()) return;
      const Id id = ids[random_.below(ids.size())];
      note("kill", id);
      cluster_.kill(id);
      return;
    }
    case Fault::kPower: {
      const Host host = some_host();
      if (host == 0) return;
      note("power off", host);
      cluster_.power_off(host);
      return;
    }
  }
}

void Nemesis::cut(Host from, Host to, Duration how_long) {
  if (!cuts_.insert({from, to}).second) return;
  note("cut", from, to);
  cluster_.network_.cut(from, to);
  cluster_.world_.after(how_long, [this, from, to] {
    if (cuts_.erase({from, to}) == 0) return;
    note("heal", from, to);
    cluster_.network_.heal(from, to);
  });
}

// One host off from all others, or one way only.
void Nemesis::isolate() {
  const Host host = some_host();
  const Duration time = some_time();
  const std::uint64_t ways = random_.between(std::uint64_t{1}, 3);
  for (Host other = 0; other < cluster_.hosts_; ++other) {
    if (other == host) continue;
    if ((ways & 1) != 0) cut(host, other, time);
    if ((ways & 2) != 0) cut(other, host, time);
  }
}

// Links stop one by one, and come back in another order.
void Nemesis::swizzle() {
  std::vector<std::pair<Host, Host>> links;
  for (Host a = 0; a < cluster_.hosts_; ++a) {
    for (Host b = 0; b < cluster_.hosts_; ++b) {
      if (a != b && random_.chance(30)) links.emplace_back(a, b);
    }
  }
  const Duration step = random_.between(milliseconds(1), milliseconds(400));
  Duration at{};
  for (const auto& link : links) {
    at += random_.between(Duration::zero(), step);
    const Duration back = step * static_cast<int>(links.size()) - at +
                          random_.between(Duration::zero(), step * static_cast<int>(links.size()));
    cluster_.world_.after(at, [this, link, back] {
      if (cluster_.world_.now() < end_) cut(link.first, link.second, back);
    });
  }
}

void Nemesis::stop() {
  std::vector<Id> ids = living(/*agents=*/random_.chance(30));
  if (random_.chance(5)) ids = {cluster_.client_id_};
  if (ids.empty()) return;
  const Id id = ids[random_.below(ids.size())];
  if (!stopped_.insert(id).second) return;
  note("stop", id);
  cluster_.network_.stop(id);
  cluster_.world_.after(some_time(), [this, id] {
    if (stopped_.erase(id) == 0) return;
    note("go on", id);
    cluster_.network_.go_on(id);
  });
}

void Nemesis::heal_all() {
  for (const auto& [from, to] : std::exchange(cuts_, {})) cluster_.network_.heal(from, to);
  for (const Id id : std::exchange(stopped_, {})) cluster_.network_.go_on(id);
}

}  // namespace monarch::sim
