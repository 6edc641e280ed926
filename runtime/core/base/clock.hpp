// Time as the core sees it. State machines ask a Clock, so that tests can own time.
#pragma once

#include <chrono>

namespace monarch::base {

using Duration = std::chrono::nanoseconds;
using Instant = std::chrono::time_point<std::chrono::steady_clock, Duration>;

class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  [[nodiscard]] virtual Instant now() const noexcept = 0;
};

// The machine's monotonic clock: steps of the wall clock do not reach it.
class SteadyClock final : public Clock {
 public:
  [[nodiscard]] Instant now() const noexcept override;
};

// A clock that stands still until it is told to go on.
class ManualClock final : public Clock {
 public:
  [[nodiscard]] Instant now() const noexcept override { return now_; }
  void advance(Duration by) noexcept { now_ += by; }

 private:
  Instant now_{};
};

}  // namespace monarch::base
