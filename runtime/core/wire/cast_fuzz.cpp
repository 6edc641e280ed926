// First half of the inputs: bytes as what a peer may send; whatever is read does not go beyond what
// there is, and a relay takes it. The others: choices for a world of hosts in which links end.
#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/cast_world.hpp"

namespace {

namespace wire = monarch::wire;
using monarch::base::Bytes;

void read_all(Bytes input) {
  wire::CastRelay relay;
  wire::CastRelay::Effects effects;
  const monarch::base::Instant now{};
  Bytes message = input;
  Bytes plan;
  if (const auto cast = wire::read_cast(message, plan)) {
    const auto linked = [](std::uint64_t peer) { return peer % 4 != 0; };
    if (relay.cast(1, *cast, plan, linked, now, effects)) {
      for (const wire::Receiver& one : effects.deliver) {
        relay.answer(one.proc, {cast->origin, cast->number, one.rank, 0}, {}, now, effects);
      }
    }
  }
  message = input;
  if (const auto recast = wire::read_recast(message)) {
    relay.recast(1, *recast, [](std::uint64_t peer) { return peer % 4 != 0; }, now, effects);
  }
  message = input;
  (void)wire::read_deliver(message);
  message = input;
  if (const auto answer = wire::read_answer(message)) relay.answer(2, *answer, message, now, effects);
  if (const auto gathered = wire::read_gathered(input)) relay.gathered(2, *gathered, now, effects);
  if (const auto done = wire::read_done(input)) relay.done(2, *done, now, effects);
  (void)wire::read_barrier(input);
  relay.lost(2, now, effects);
  relay.expire(now + std::chrono::seconds(1), effects);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  if ((data[0] & 1) == 0) {
    read_all(std::as_bytes(std::span(data + 1, size - 1)));
    return 0;
  }
  std::size_t at = 1;
  const auto choose = [&](std::uint32_t below) -> std::uint32_t {
    return at < size ? data[at++] % below : 0;
  };
  const std::uint32_t hosts = 1 + choose(6);
  const std::uint32_t procs = 1 + choose(3);
  wire::world::World world(hosts, procs, 2, choose);
  while (at < size) world.step();
  world.finish();
  return 0;
}
