// The client as the origin of casts to its mesh, down the tree of host agents.
#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "sim/cluster.hpp"

namespace monarch::sim {
namespace {

using base::Bytes;
using wire::Kind;
using U64 = std::uint64_t;

constexpr U64 kByCast = U64{1} << 63;  // in the inbox of a direct answer to a cast

}  // namespace

void Client::before_message(Id peer) {
  if (!procs_.contains(peer)) return;
  wire::SendLane& lane = lanes_[peer];
  const U64 number = lane.barrier();
  if (number != 0 && !bent(Bend::kNoBarrier)) {
    std::array<std::byte, wire::k_barrier_size> head;
    base::store_little(base::MutableBytes(head), number);
    const Bytes part(head);
    send(peer, Kind::kBarrier, {&part, 1});
  }
  lane.passed();
}

void Client::cast(bool answers) {
  std::map<std::size_t, std::vector<std::size_t>> by_place;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const Id proc = ranks_[rank];
    if (proc == 0 || !linked(proc)) continue;
    const auto place = std::ranges::find(relays_, procs_.at(proc).agent);
    by_place[static_cast<std::size_t>(place - relays_.begin())].push_back(rank);
  }
  std::vector<std::size_t> wanted;
  for (const auto& [place, found] : by_place) wanted.push_back(place);
  const auto usable = [this](std::size_t from, std::size_t place) {
    if (from == wire::k_root) return this->usable(relays_[place]);
    return agents_.contains(relays_[from]) && agents_.contains(relays_[place]);
  };
  const auto hops = wire::shape(wanted, k_fan_out, usable);
  const U64 number = origin_.next();
  std::map<std::size_t, wire::Branch> branches;
  std::map<std::size_t, std::size_t> first;
  std::vector<wire::CastOrigin::Entrusted> entrusted;
  for (const wire::Hop& hop : hops) {
    branches[hop.place].relay = relays_[hop.place];
    first[hop.place] = hop.from == wire::k_root ? hop.place : first.at(hop.from);
    for (const std::size_t rank : by_place[hop.place]) {
      const Id proc = ranks_[rank];
      const auto [previous, after] = lanes_[proc].cast(number);
      const wire::Receiver to{.proc = proc, .actor = proc, .rank = static_cast<std::uint32_t>(rank),
                              .previous = previous, .after = after};
      branches[hop.place].receivers.push_back(to);
      entrusted.push_back({to, relays_[first[hop.place]]});
      cluster_.cast_numbers[{number, proc}] = this->number(proc);
      if (!answers) continue;
      const U64 inbox = next_inbox();
      casts_[{number, to.rank}] = {inbox, proc};
      open_call(inbox, proc);
    }
  }
  if (entrusted.empty()) return;
  std::ranges::sort(entrusted, {}, [](const auto& one) { return one.to.rank; });
  const U64 stable = origin_.stable();
  origin_.begin(std::move(entrusted), answers);
  flying_[number] = answers;
  for (auto hop = hops.rbegin(); hop != hops.rend(); ++hop) {
    wire::Branch branch = std::move(branches.at(hop->place));
    if (hop->from != wire::k_root) {
      branches.at(hop->from).branches.push_back(std::move(branch));
      continue;
    }
    const auto head = wire::cast_message({id(), number, stable, answers}, wire::write_branch(branch));
    std::array<std::byte, wire::k_call_head> call;
    wire::write_call({.sender = id(), .inbox = answers ? number : 0}, call);
    const std::array<Bytes, 2> parts{Bytes(head), call};
    send(branch.relay, Kind::kCast, parts);
  }
}

void Client::carry_out(const wire::CastOrigin::Effects& effects) {
  for (const auto& there : effects.there) lanes_[there.to.proc].there(there.number);
  for (const auto& again : effects.again) {
    close_cast(again.number);
    if (bent(Bend::kCastLost) || !linked(again.to.proc)) continue;
    std::array<std::byte, wire::k_deliver_head> head;
    wire::write_deliver({.origin = id(), .number = again.number, .previous = again.to.previous,
                         .after = again.to.after,
                         .stable = std::min(origin_.stable(), again.number - 1)},
                        head);
    std::array<std::byte, wire::k_call_head> call;
    wire::write_call({.actor = again.to.proc, .sender = id(),
                      .inbox = flying_.at(again.number) ? again.number : 0, .rank = again.to.rank},
                     call);
    const std::array<Bytes, 2> parts{head, call};
    send(again.to.proc, Kind::kDeliver, parts);
  }
  for (const U64 number : effects.over) flying_.erase(number);
}

void Client::cast_answered(U64 cast, std::uint32_t rank) {
  const auto found = casts_.find({cast, rank});
  if (found == casts_.end()) return;
  const auto [inbox, proc] = found->second;
  casts_.erase(found);
  answered(inbox, proc);
  close_cast(cast);
}

// Nobody waits for another answer to a cast.
void Client::close_cast(U64 cast) {
  const auto next = casts_.lower_bound({cast, 0});
  if (next == casts_.end() || next->first.first != cast) origin_.closed(cast);
}

void Client::forget_casts(Id proc) {
  std::vector<U64> casts;
  std::erase_if(casts_, [&](const auto& open) {
    if (open.second.second == proc) casts.push_back(open.first.first);
    return open.second.second == proc;
  });
  for (const U64 cast : casts) close_cast(cast);
}

void Client::settle_casts(Id peer, bool hop) {
  wire::CastOrigin::Effects effects;
  if (hop) {
    origin_.lost_hop(peer, effects);
  } else {
    origin_.lost_proc(peer, effects);
  }
  carry_out(effects);
}

void Client::take(Id peer, Kind kind, Bytes message) {
  wire::CastOrigin::Effects effects;
  if (kind == Kind::kGathered) {
    const auto gathered = wire::read_gathered(message);
    for (const wire::Group& group : gathered->groups) {
      origin_.gathered(gathered->number, group.status, group.ranks, effects);
      if (group.status >= wire::k_missed) continue;
      for (const wire::Ranks::Run& run : group.ranks.runs()) {
        for (std::uint32_t i = 0; i < run.count; ++i) {
          cast_answered(gathered->number, run.first + i);
        }
      }
    }
  } else if (kind == Kind::kDone) {
    const auto done = wire::read_done(message);
    for (const U64 number : done->numbers) origin_.done(peer, number, effects);
  } else if (kind == Kind::kReply) {
    Bytes rest = message;
    const auto reply = wire::read_reply(rest);
    if ((reply->inbox & kByCast) == 0) {
      Talker::take(peer, kind, message);
      return;
    }
    cast_answered(reply->inbox & ~kByCast, reply->rank);
  } else {
    Talker::take(peer, kind, message);
    return;
  }
  carry_out(effects);
}

}  // namespace monarch::sim
