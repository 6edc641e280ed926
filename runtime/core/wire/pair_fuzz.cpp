// Two sides of a session, and connections that end at any byte: each side hands out every frame of
// the other one once, in order, and refuses nothing. What is no frame of the other side ends the
// session, and never the process. Each byte of the input is a step, the next one its argument.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "wire/session.hpp"

namespace {

namespace wire = monarch::wire;
using monarch::base::Bytes;

void require(bool condition) {
  if (!condition) std::abort();
}

struct Side {
  wire::Session session;
  std::vector<std::byte> way;  // what it wrote and the other side has not read
  std::uint8_t sent = 0;
  std::uint8_t taken = 0;
};

bool read(Side& side, Bytes bytes) {
  return side.session
      .take(bytes,
            [&side](wire::Frame& frame) {
              require(frame.header.kind == 1 && !frame.message.empty());
              require(frame.message[0] == static_cast<std::byte>(side.taken));
              ++side.taken;
              return true;
            })
      .ok();
}

void write(Side& side, std::size_t most) {
  const Bytes next = side.session.next();
  const std::size_t size = std::min(most, next.size());
  side.way.insert(side.way.end(), next.begin(), next.begin() + static_cast<std::ptrdiff_t>(size));
  if (size > 0) side.session.wrote(size);
}

void move(Side& from, Side& to, std::size_t most) {
  const std::size_t size = std::min(most, from.way.size());
  const std::vector<std::byte> part(from.way.begin(),
                                    from.way.begin() + static_cast<std::ptrdiff_t>(size));
  from.way.erase(from.way.begin(), from.way.begin() + static_cast<std::ptrdiff_t>(size));
  require(read(to, part));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::array<Side, 2> sides;
  for (std::size_t at = 0; at + 1 < size; at += 2) {
    Side& one = sides[data[at] & 1];
    Side& other = sides[1 - (data[at] & 1)];
    const std::size_t argument = data[at + 1];
    switch ((data[at] >> 1) % 7) {
      case 0: {
        const std::vector<std::byte> text(1 + argument * 4, static_cast<std::byte>(one.sent++));
        const Bytes part(text);
        one.session.send(1, {&part, 1}, {});
        break;
      }
      case 1:
        write(one, argument + 1);
        break;
      case 2:
        move(one, other, argument + 1);
        break;
      case 3:
        (void)one.session.acknowledge(/*now=*/true);
        break;
      case 4:  // some of what was on the way still arrives
        move(one, other, argument);
        move(other, one, argument / 2);
        for (Side& side : sides) {
          side.way.clear();
          side.session.resume();
        }
        break;
      case 5:
        write(one, 100'000);
        move(one, other, 100'000);
        break;
      default:
        if (at + 3 < size) break;  // only as the last step
        const std::vector<std::byte> noise(argument, static_cast<std::byte>(data[at]));
        const bool taken = one.session.take(noise, [](wire::Frame&) { return true; }).ok();
        require(taken != one.session.refused());
        return 0;
    }
  }
  for (int round = 0; round < 4; ++round) {
    for (std::size_t i = 0; i < 2; ++i) {
      write(sides[i], 10'000'000);
      move(sides[i], sides[1 - i], 10'000'000);
    }
  }
  require(sides[0].sent == sides[1].taken && sides[1].sent == sides[0].taken);
  return 0;
}
