// The client as the origin of casts to its mesh, down the tree of host agents.
#include <algorithm>
#include <array>
#include <set>
#include <tuple>
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
  std::vector<std::pair<std::size_t, Id>> group;  // ranks and their processes
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank] != 0 && linked(ranks_[rank])) group.emplace_back(rank, ranks_[rank]);
  }
  const auto usable = [this](Id relay) { return this->usable(relay); };
  if (!route_ || group != group_ || !route_->holds(origin_, usable)) {
    group_ = std::move(group);
    route_ = route();
  }
  std::vector<wire::CastOrigin::Entrusted> receivers = route_->receivers();
  if (receivers.empty()) return;
  const U64 number = origin_.next();
  for (wire::CastOrigin::Entrusted& one : receivers) {
    wire::Receiver& to = one.to;
    std::tie(to.previous, to.after) = lanes_[to.proc].cast(number);
    cluster_.cast_numbers[{number, to.proc}] = this->number(to.proc);
    if (!answers) continue;
    const U64 inbox = next_inbox();
    casts_[{number, to.rank}] = {inbox, to.proc};
    open_call(inbox, to.proc);
  }
  flying_[number] = answers;
  for (const auto& message : route_->begin(origin_, id(), std::move(receivers), answers)) {
    std::array<std::byte, wire::k_call_head> call;
    wire::write_call({.sender = id(), .inbox = answers ? number : 0}, call);
    const std::array<Bytes, 2> parts{Bytes(message.head), call};
    send(message.relay, message.kind, parts);
  }
}

wire::CastRoute Client::route() const {
  std::vector<wire::CastRoute::Member> members;
  std::set<std::size_t> wanted;
  for (const auto& [rank, proc] : group_) {
    const auto found = std::ranges::find(relays_, procs_.at(proc).agent);
    const auto place = static_cast<std::size_t>(found - relays_.begin());
    wanted.insert(place);
    members.push_back(
        {{.proc = proc, .actor = proc, .rank = static_cast<std::uint32_t>(rank)}, place});
  }
  const std::vector<std::size_t> places(wanted.begin(), wanted.end());
  const auto hops = wire::shape(places, k_fan_out, [this](std::size_t from, std::size_t place) {
    if (from == wire::k_root) return this->usable(relays_[place]);
    return agents_.contains(relays_[from]) && agents_.contains(relays_[place]);
  });
  std::erase_if(members, [&](const auto& member) {
    return std::ranges::find(hops, member.place, &wire::Hop::place) == hops.end();
  });
  return {origin_, hops, relays_, std::move(members)};
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
      origin_.gathered(peer, gathered->number, group.status, group.ranks, effects);
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
