#include "sim/relaying.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace monarch::sim {

using base::Bytes;
using wire::Kind;

bool Relaying::take(Id peer, Kind kind, Bytes message) {
  const Instant now = world_.now();
  wire::CastRelay::Effects effects;
  if (kind == Kind::kCast) {
    Bytes plan;
    const auto cast = wire::read_cast(message, plan);
    (void)relay_.cast(peer, *cast, plan, ways_.usable, now, effects);
    forward(effects, *cast, message);
  } else if (kind == Kind::kRecast) {
    const auto recast = wire::read_recast(message);
    relay_.recast(peer, *recast, ways_.usable, now, effects);
    forward(effects, recast->cast, message);
  } else if (kind == Kind::kAnswer) {
    relay_.answer(peer, *wire::read_answer(message), message, now, effects);
  } else if (kind == Kind::kGathered) {
    relay_.gathered(peer, *wire::read_gathered(message), now, effects);
  } else if (kind == Kind::kDone) {
    relay_.done(peer, *wire::read_done(message), now, effects);
  } else {
    return false;
  }
  report(effects);
  return true;
}

void Relaying::lost(Id peer) {
  wire::CastRelay::Effects effects;
  relay_.lost(peer, world_.now(), effects);
  report(effects);
}

void Relaying::forward(const wire::CastRelay::Effects& effects, const wire::Cast& cast,
                       Bytes call) {
  for (const wire::CastRelay::Report& one : effects.forward) {
    const std::array<Bytes, 2> parts{Bytes(one.message), call};
    ways_.send(one.to, one.kind, parts);
  }
  if (effects.deliver.empty()) return;
  Bytes payload = call;
  auto own = *wire::read_call(payload);
  for (const wire::Receiver& to : effects.deliver) {
    std::array<std::byte, wire::k_deliver_head> head;
    wire::write_deliver({cast.origin, cast.number, to.previous, to.after, cast.stable}, head);
    own.actor = to.actor;
    own.rank = to.rank;
    std::array<std::byte, wire::k_call_head> text;
    wire::write_call(own, text);
    const std::array<Bytes, 3> parts{head, text, payload};
    ways_.send(to.proc, Kind::kDeliver, parts);
  }
}

void Relaying::report(const wire::CastRelay::Effects& effects) {
  for (const wire::CastRelay::Report& one : effects.reports) {
    const Bytes part(one.message);
    ways_.send(one.to, one.kind, {&part, 1});
  }
  const auto due = relay_.due();
  if (!due || *due == armed_) return;
  armed_ = *due;
  ways_.later(std::max(*due - world_.now(), Duration::zero()), [this, at = armed_] {
    if (armed_ == at) armed_ = {};
    wire::CastRelay::Effects expired;
    relay_.expire(world_.now(), expired);
    report(expired);
  });
}

}  // namespace monarch::sim
