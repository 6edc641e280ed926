// The one source of chance of a simulated run: the same numbers on every machine for a seed.
#pragma once

#include <cstdint>

#include "base/clock.hpp"

namespace monarch::sim {

class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept : state_(seed) {}

  // SplitMix64.
  std::uint64_t next() noexcept {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  // Below `end`, which is not 0; its bias is far below what anybody could see.
  std::uint64_t below(std::uint64_t end) noexcept { return next() % end; }
  std::uint64_t between(std::uint64_t least, std::uint64_t most) noexcept {
    return least + below(most - least + 1);
  }
  base::Duration between(base::Duration least, base::Duration most) noexcept {
    return least + base::Duration(static_cast<std::int64_t>(
                       below(static_cast<std::uint64_t>((most - least).count()) + 1)));
  }
  bool chance(unsigned percent) noexcept { return below(100) < percent; }

 private:
  std::uint64_t state_;
};

}  // namespace monarch::sim
