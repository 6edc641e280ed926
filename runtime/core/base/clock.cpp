#include "base/clock.hpp"

namespace monarch::base {

Instant SteadyClock::now() const noexcept {
  return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
}

}  // namespace monarch::base
