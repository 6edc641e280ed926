// What the origin, the relays and the processes of a test's world do with what has come to them.
#include "wire/cast_world.hpp"

namespace monarch::wire::world {

void World::at_origin(std::uint64_t from, const Frame& frame) {
  CastOrigin::Effects effects;
  if (frame.kind == Kind::kPing) {
    heard_.insert(from);
    for (auto& [number, from_whom] : waited_) from_whom.erase(from);
    if (procs_.contains(from)) {
      origin_.lost_proc(from, effects);
    } else {
      origin_.lost_hop(from, effects);
    }
  } else if (frame.kind == Kind::kReply) {
    answer_came(frame.item, from);
  } else if (frame.kind == Kind::kGathered) {
    const auto gathered = read_gathered(frame.message);
    require(gathered.ok());
    for (const Group& group : gathered->groups) {
      origin_.gathered(from, gathered->number, group.status, group.ranks, effects);
      if (group.status >= k_missed) continue;
      for (const Ranks::Run& run : group.ranks.runs()) {
        for (std::uint32_t i = 0; i < run.count; ++i) {
          answer_came(gathered->number, 1000 + run.first + i);
        }
      }
    }
  } else if (frame.kind == Kind::kDone) {
    const auto done = read_done(frame.message);
    require(done.ok());
    for (const std::uint64_t number : done->numbers) origin_.done(from, number, effects);
  }
  std::erase_if(waited_, [&](const auto& one) {
    if (one.second.empty()) origin_.closed(one.first);
    return one.second.empty();
  });
  for (const auto& there : effects.there) procs_.at(there.to.proc).out.there(there.number);
  for (const auto& again : effects.again) {
    if (!waited_.contains(again.number)) origin_.closed(again.number);
    std::vector<std::byte> head(k_deliver_head);
    write_deliver({kOrigin, again.number, again.to.previous, again.to.after,
                   std::min(origin_.stable(), again.number - 1)},
                  head);
    send(kOrigin, again.to.proc, {Kind::kDeliver, head, again.to.rank});
  }
}

void World::answer_came(std::uint64_t number, std::uint64_t proc) {
  answered_.insert({number, proc});
  if (const auto found = waited_.find(number); found != waited_.end()) found->second.erase(proc);
}

void World::at_relay(std::uint64_t from, std::uint64_t to, const Frame& frame) {
  CastRelay& relay = relays_.at(to);
  CastRelay::Effects effects;
  base::Bytes message(frame.message);
  if (frame.kind == Kind::kPing) {
    relay.lost(from, now_, effects);
  } else if (frame.kind == Kind::kCast) {
    base::Bytes plan;
    const auto head = read_cast(message, plan);
    require(head.ok());
    const auto known = [&](std::uint64_t peer) { return linked(to, peer); };
    require(relay.cast(from, *head, plan, known, now_, effects).ok());
    carry_out(to, effects, *head);
    return;
  } else if (frame.kind == Kind::kRecast) {
    const auto recast = read_recast(message);
    require(recast.ok());
    relay.recast(from, *recast, [&](std::uint64_t peer) { return linked(to, peer); }, now_, effects);
    carry_out(to, effects, recast->cast);
    return;
  } else if (frame.kind == Kind::kAnswer) {
    const auto answer = read_answer(message);
    require(answer.ok());
    relay.answer(from, *answer, message, now_, effects);
  } else if (frame.kind == Kind::kGathered) {
    relay.gathered(from, *read_gathered(message), now_, effects);
  } else if (frame.kind == Kind::kDone) {
    relay.done(from, *read_done(message), now_, effects);
  }
  carry_out(to, effects, {});
}

void World::carry_out(std::uint64_t relay, CastRelay::Effects& effects, const Cast& cast) {
  for (auto& one : effects.forward) send(relay, one.to, {one.kind, one.message});
  for (const Receiver& to : effects.deliver) {
    std::vector<std::byte> head(k_deliver_head);
    write_deliver({cast.origin, cast.number, to.previous, to.after, cast.stable}, head);
    send(relay, to.proc, {Kind::kDeliver, head, to.rank});
  }
  for (auto& report : effects.reports) send(relay, report.to, {report.kind, report.message});
}

void World::at_proc(std::uint64_t from, std::uint64_t to, const Frame& frame) {
  Proc& proc = procs_.at(to);
  std::vector<Item> out;
  if (frame.kind == Kind::kBarrier) {
    proc.lane.barrier(*read_barrier(frame.message), out);
  } else if (frame.kind == Kind::kCall) {
    if (proc.lane.open()) {
      proc.lane.passed();
      out.push_back({frame.item});
    } else {
      proc.lane.direct({frame.item}, true, out);
    }
  } else if (frame.kind == Kind::kDeliver) {
    base::Bytes message(frame.message);
    const auto deliver = read_deliver(message);
    require(deliver.ok());
    const bool answers = answers_.at(deliver->number);
    Item item{values_.at({deliver->number, to}), answers ? deliver->number : 0,
              static_cast<std::uint32_t>(frame.item)};
    const auto again =
        proc.lane.cast(*deliver, answers, from == kOrigin ? 0 : from, item, out);
    if (again && again->relieve != 0) {
      std::vector<std::byte> word(k_answer_head);
      write_answer({kOrigin, deliver->number, item.rank, k_elsewhere}, word);
      send(to, again->relieve, {Kind::kAnswer, word});
    }
    if (again && again->reply) {
      direct_.insert({deliver->number, to});
      send(to, kOrigin, {Kind::kReply, {}, deliver->number});
    }
    require(!again || !again->forgotten || direct_.contains({deliver->number, to}));
  }
  for (const Item& item : out) {
    require(item.value == ++proc.taken);  // in order, each once
    if (item.number != 0) proc.running.push_back(item);
  }
}

}  // namespace monarch::wire::world
