// Virtual time: what is to happen, in order. Nothing of a run comes from anywhere else.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "base/clock.hpp"
#include "sim/random.hpp"

namespace monarch::sim {

using base::Duration;
using base::Instant;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

class World {
 public:
  explicit World(std::uint64_t seed) : random(seed), now_(seconds(1)) {}

  [[nodiscard]] Instant now() const noexcept { return now_; }
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
  void after(Duration delay, std::function<void()> what) { at(now_ + delay, std::move(what)); }
  void at(Instant when, std::function<void()> what) {
    queue_.push({std::max(when, now_), next_++, std::move(what)});
  }
  // Runs what is due up to `end`; false when there was nothing left before.
  bool run_until(Instant end) {
    while (!queue_.empty() && queue_.top().when <= end) {
      // Moved out before it is popped: what orders the queue stays.
      auto what = std::move(const_cast<Item&>(queue_.top()).what);
      now_ = queue_.top().when;
      queue_.pop();
      ++steps_;
      what();
    }
    const bool more = !queue_.empty();
    now_ = std::max(now_, end);
    return more;
  }
  // Runs until nothing is left to happen.
  void run_out() {
    while (!queue_.empty()) run_until(queue_.top().when);
  }

  Random random;

 private:
  struct Item {
    Instant when;
    std::uint64_t order;
    std::function<void()> what;
    bool operator<(const Item& other) const noexcept {
      return when != other.when ? when > other.when : order > other.order;
    }
  };

  Instant now_;
  std::uint64_t next_ = 0;
  std::uint64_t steps_ = 0;
  std::priority_queue<Item> queue_;
};

}  // namespace monarch::sim
