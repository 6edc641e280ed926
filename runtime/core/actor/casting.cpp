// Casts: as their origin, and as a relay between others.
#include "actor/casting.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "actor/engine.hpp"

namespace monarch::actor {
namespace {

using base::Bytes;

// Where a call message has what a relay puts in for each receiver.
constexpr std::size_t kActorAt = 0;
constexpr std::size_t kRankAt = 32;
// How long after the last message a relay goes on looking for the next one all the time.
constexpr base::Duration kRelaying = std::chrono::seconds(1);

}  // namespace

void Engine::set_relay(std::uint64_t proc, std::uint64_t relay) {
  const Lock lock(mutex_);
  if (proc == proc_ || relay == proc_) return;
  peer_of(proc).relay = relay;
  casting_.origin.changed();
  if (casting_.places.emplace(relay, casting_.relays.size()).second) {
    casting_.relays.push_back(relay);
  }
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> Engine::wanted_edges() {
  const Lock lock(mutex_);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> wanted;
  for (std::size_t place = 0; place < casting_.relays.size(); ++place) {
    const std::size_t up = wire::above(place, limits_.fan_out);
    if (up == wire::k_root) continue;
    const std::pair edge{casting_.relays[up], casting_.relays[place]};
    if (!casting_.edges.contains(edge)) wanted.push_back(edge);
  }
  return wanted;
}

void Engine::set_edge(std::uint64_t from, std::uint64_t to, bool linked) {
  const Lock lock(mutex_);
  casting_.origin.changed();
  if (linked) {
    casting_.edges.emplace(from, to);
  } else {
    casting_.edges.erase({from, to});
  }
}

std::pair<std::size_t, std::size_t> Engine::casts() {
  const Lock lock(mutex_);
  return {casting_.origin.open(), casting_.relay.flights()};
}

// What goes directly after a cast says so, unless the cast is known to be there.
void Engine::send_barrier(Peer& peer) {
  const std::uint64_t number = peer.out.barrier();
  if (number == 0) return;
  std::array<std::byte, wire::k_barrier_size> head;
  base::store_little(base::MutableBytes(head), number);
  (void)send(peer, wire::Kind::kBarrier, head, {}, {}, {}, {});
}

bool Engine::is_linked(std::uint64_t id) const {
  const auto found = peers_.find(id);
  return found != peers_.end() && found->second->link != nullptr &&
         !found->second->watch.broken() && !found->second->watch.silent();
}

// The way by the tree, to be made anew where links have come or gone since the last one was.
Way& Engine::way_to(const Targets& targets, std::uint32_t rank) {
  const std::vector<Target>& list = targets.list;
  std::vector<bool> linked(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Peer& peer = *list[i].peer;
    // Without a link, calls to it make one first.
    linked[i] = peer.relay != 0 && peer.link != nullptr && !peer.was_lost && peer.failure == nullptr;
  }
  const std::vector<std::uint64_t>& relays = casting_.relays;
  const auto usable = [this](std::uint64_t relay) { return is_linked(relay); };
  if (targets.way != nullptr && targets.way->rank == rank && targets.way->linked == linked &&
      targets.way->route.holds(casting_.origin, usable)) {
    return *targets.way;
  }
  std::map<std::size_t, std::vector<std::size_t>> hosts;  // indexes, by place of their relay
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (linked[i]) hosts[casting_.places.at(list[i].peer->relay)].push_back(i);
  }
  std::vector<std::size_t> wanted;
  for (const auto& [place, indexes] : hosts) {
    if (indexes.size() > 1 || hosts.size() > limits_.fan_out) wanted.push_back(place);
  }
  const auto hops = wire::shape(wanted, limits_.fan_out, [&](std::size_t from, std::size_t place) {
    return from == wire::k_root ? is_linked(relays[place])
                                : casting_.edges.contains({relays[from], relays[place]});
  });
  std::vector<bool> by_tree(list.size());
  std::vector<wire::CastRoute::Member> members;
  for (const wire::Hop& hop : hops) {
    const auto found = hosts.find(hop.place);
    if (found == hosts.end()) continue;  // it only passes on
    for (const std::size_t index : found->second) {
      by_tree[index] = true;
      members.push_back({{.proc = list[index].peer->id,
                          .actor = list[index].actor,
                          .rank = rank + static_cast<std::uint32_t>(index)},
                         hop.place});
    }
  }
  targets.way = std::make_unique<Way>(
      Way{.rank = rank,
          .linked = std::move(linked),
          .by_tree = std::move(by_tree),
          .route = {casting_.origin, hops, relays, std::move(members)}});
  return *targets.way;
}

// Sends by the tree to those whom it is shorter to reach by it; `by_tree` says which.
void Engine::send_by_tree(const Targets& targets, const Message& message, std::uint64_t reply_proc,
                          std::uint64_t inbox, std::uint32_t rank, std::size_t cost,
                          std::vector<bool>& by_tree) {
  // What is large travels apart, and of an explicit answer nobody knows whether it comes.
  if (targets.list.size() < limits_.cast_from || message.shipping != nullptr || cost >= k_large ||
      (message.flags & k_explicit) != 0) {
    return;
  }
  Way& way = way_to(targets, rank);
  std::vector<wire::CastOrigin::Entrusted> receivers = way.route.receivers();
  if (receivers.empty()) return;
  const bool answers = inbox != 0 && reply_proc == 0;
  wire::CastOrigin& origin = casting_.origin;
  const std::uint64_t number = origin.next();
  for (wire::CastOrigin::Entrusted& one : receivers) {
    const Target& target = targets.list[one.to.rank - rank];
    std::tie(one.to.previous, one.to.after) = target.peer->out.cast(number);
    target.outlet->outstanding += cost;
  }
  by_tree = way.by_tree;
  if (const auto waits = inboxes_.find(inbox); answers && waits != inboxes_.end()) {
    waits->second->cast = number;
  }
  wire::Call call{.sender = message.sender,
                  .reply_proc = reply_proc,
                  .inbox = inbox,
                  .flags = message.flags};
  casting_.flying.emplace(number, Flying{.call = call,
                                         .endpoint = std::string(message.endpoint),
                                         .extent = std::string(message.extent),
                                         .payload = copy_payload(message.data, message.buffers)});
  call.endpoint = message.endpoint;
  call.extent = message.extent;
  std::array<std::byte, wire::k_call_head> call_head;
  wire::write_call(call, call_head);
  for (auto& out : way.route.begin(origin, proc_, std::move(receivers), answers)) {
    out.head.insert(out.head.end(), call_head.begin(), call_head.end());
    (void)send(peer_of(out.relay), out.kind, out.head, message.endpoint, message.extent,
               message.data, message.buffers);
  }
}

void Engine::carry_out(const wire::CastOrigin::Effects& effects) {
  for (const auto& there : effects.there) peer_of(there.to.proc).out.there(there.number);
  for (const auto& again : effects.again) {
    Peer& peer = peer_of(again.to.proc);
    const auto found = casting_.flying.find(again.number);
    if (found == casting_.flying.end()) continue;
    const Flying& flying = found->second;
    if (!inboxes_.contains(flying.call.inbox)) casting_.origin.closed(again.number);
    if (peer.link == nullptr || peer.was_lost) continue;
    std::array<std::byte, wire::k_deliver_head + wire::k_call_head> head;
    wire::write_deliver({.origin = proc_,
                         .number = again.number,
                         .previous = again.to.previous,
                         .after = again.to.after,
                         .stable = std::min(casting_.origin.stable(), again.number - 1)},
                        head);
    wire::Call call = flying.call;
    call.actor = again.to.actor;
    call.rank = again.to.rank;
    call.endpoint = flying.endpoint;
    call.extent = flying.extent;
    wire::write_call(call, std::span(head).subspan(wire::k_deliver_head));
    (void)send(peer, wire::Kind::kDeliver, head, flying.endpoint, flying.extent,
               flying.payload.data, flying.payload.buffers);
  }
  for (const std::uint64_t number : effects.over) casting_.flying.erase(number);
}

void Engine::pass_on(const wire::CastRelay::Effects& effects, const wire::Cast& cast, Bytes call,
                     std::span<const Bytes> buffers) {
  for (const wire::CastRelay::Report& one : effects.forward) {
    (void)send(peer_of(one.to), one.kind, one.message, {}, {}, call, buffers);
  }
  for (const wire::Receiver& to : effects.deliver) {
    std::array<std::byte, wire::k_deliver_head + wire::k_call_head> head;
    const base::MutableBytes out(head);
    wire::write_deliver({.origin = cast.origin,
                         .number = cast.number,
                         .previous = to.previous,
                         .after = to.after,
                         .stable = cast.stable},
                        out);
    const base::MutableBytes own = out.subspan(wire::k_deliver_head);
    std::ranges::copy(call.first(wire::k_call_head), own.begin());
    base::store_little(own.subspan(kActorAt), to.actor);
    base::store_little(own.subspan(kRankAt), to.rank);
    (void)send(peer_of(to.proc), wire::Kind::kDeliver, head, {}, {},
               call.subspan(wire::k_call_head), buffers);
  }
  for (const wire::CastRelay::Report& report : effects.reports) {
    (void)send(peer_of(report.to), report.kind, report.message, {}, {}, {}, {});
  }
  if (const auto due = casting_.relay.due()) look_by(*due);
}

std::optional<base::Instant> Engine::expire_casts(base::Instant now) {
  const auto due = casting_.relay.due();
  if (!due || *due > now) return due;
  wire::CastRelay::Effects effects;
  casting_.relay.expire(now, effects);
  pass_on(effects, {}, {}, {});
  flush_all();
  return casting_.relay.due();
}

// The link to a process has ended; with `stalled` it is as good as ended for those below it.
void Engine::lose_casts(Peer& peer, bool stalled) {
  if (stopping_) return;
  wire::CastRelay::Effects passed;
  casting_.relay.lost(peer.id, clock_.now(), passed);
  pass_on(passed, {}, {}, {});
  if (stalled) return;
  peer.was_lost = true;
  peer.in.clear();
  peer.out = {};
  wire::CastOrigin::Effects effects;
  casting_.origin.lost_proc(peer.id, effects);
  casting_.origin.lost_hop(peer.id, effects);
  carry_out(effects);
}

// Frames of casts; false for what says nothing of ours.
bool Engine::handle_cast(Peer& peer, wire::Frame& frame) {
  Bytes message = frame.message;
  const base::Instant now = clock_.now();
  wire::CastRelay::Effects effects;
  wire::Cast cast;
  switch (static_cast<wire::Kind>(frame.header.kind)) {
    case wire::Kind::kCast: {
      Bytes plan;
      auto read = wire::read_cast(message, plan);
      Bytes call = message;
      if (!read || !wire::read_call(call)) return false;
      cast = *read;
      const auto linked = [this](std::uint64_t id) { return is_linked(id); };
      if (!casting_.relay.cast(peer.id, cast, plan, linked, now, effects)) return false;
      break;
    }
    case wire::Kind::kRecast: {
      const auto recast = wire::read_recast(message);
      Bytes call = message;
      if (!recast || !wire::read_call(call)) return false;
      cast = recast->cast;
      casting_.relay.recast(
          peer.id, *recast, [this](std::uint64_t id) { return is_linked(id); }, now, effects);
      break;
    }
    case wire::Kind::kAnswer: {
      const auto answer = wire::read_answer(message);
      if (!answer) return false;
      casting_.relay.answer(peer.id, *answer, message, now, effects);
      break;
    }
    case wire::Kind::kGathered: {
      const auto gathered = wire::read_gathered(message);
      if (!gathered) return false;
      if (gathered->origin == proc_) {
        take_gathered(peer, *gathered);
        return true;
      }
      casting_.relay.gathered(peer.id, *gathered, now, effects);
      break;
    }
    case wire::Kind::kDone: {
      const auto done = wire::read_done(message);
      if (!done) return false;
      if (done->origin == proc_) {
        wire::CastOrigin::Effects settled;
        for (const auto number : done->numbers) casting_.origin.done(peer.id, number, settled);
        carry_out(settled);
        return true;
      }
      casting_.relay.done(peer.id, *done, now, effects);
      break;
    }
    case wire::Kind::kBarrier: {
      const auto number = wire::read_barrier(message);
      if (!number) return false;
      Lane::Out out;
      peer.in.barrier(*number, out);
      release(peer, out);
      return true;
    }
    default:
      return take_delivery(peer, frame);
  }
  casting_.relaying_until = now + kRelaying;
  pass_on(effects, cast, message, frame.buffers);
  return true;
}

void Engine::take_gathered(const Peer& relay, const wire::Gathered& gathered) {
  wire::CastOrigin::Effects effects;
  const auto found = casting_.flying.find(gathered.number);
  const std::uint64_t inbox = found == casting_.flying.end() ? 0 : found->second.call.inbox;
  const auto waits = inboxes_.find(inbox);
  const std::uint64_t end = waits == inboxes_.end() ? 0 : waits->second->expected;
  for (const wire::Group& group : gathered.groups) {
    casting_.origin.gathered(relay.id, gathered.number, group.status, group.ranks, effects);
    if (group.status >= wire::k_missed) continue;
    const Payload payload = copy_payload(group.payload, {});
    for (const wire::Ranks::Run& run : group.ranks.runs()) {
      // A run says what it likes: there are no more ranks than the call has.
      const std::uint64_t behind = std::min(end, std::uint64_t{run.first} + run.count);
      for (std::uint64_t rank = run.first; rank < behind; ++rank) {
        arrive(inbox, {static_cast<std::uint32_t>(rank), static_cast<std::uint8_t>(group.status),
                       payload});
      }
    }
  }
  carry_out(effects);
}

}  // namespace monarch::actor
