// How long a wait looks for its answer before it blocks.
//
// On idle cores a blocking wake-up costs about 30 µs each way, which a short spin removes; on one
// core, or a busy machine, the spin itself is the cost. So it spins only while that pays: a run of
// spins that found nothing, or one during which the thread was taken off its core, turns it off for
// a time that doubles with every further failure.
#pragma once

#include "base/clock.hpp"

namespace monarch::net {

class Spin {
 public:
  // `cores`: on how many this process may run.
  explicit Spin(int cores) noexcept : cores_(cores) {}

  void set_cores(int cores) noexcept { cores_ = cores; }

  // How long to look now; zero: not at all.
  [[nodiscard]] base::Duration budget(base::Instant now) const noexcept {
    return cores_ > 1 && now >= off_until_ ? k_budget : base::Duration::zero();
  }

  // What became of a look: whether it found something, and whether the thread lost its core.
  void learn(bool found, bool preempted, base::Instant now) noexcept;

  static constexpr base::Duration k_budget = std::chrono::microseconds(40);
  static constexpr int k_tries = 4;  // looks in vain before it is off
  static constexpr base::Duration k_least_off = std::chrono::milliseconds(1);
  static constexpr base::Duration k_most_off = std::chrono::milliseconds(500);

 private:
  int cores_;
  int vain_ = 0;
  base::Duration off_ = k_least_off;
  base::Instant off_until_{};
};

// Cores on which this process may run, at least 1.
[[nodiscard]] int allowed_cores() noexcept;

// How often the calling thread was taken off its core against its will.
[[nodiscard]] long preemptions() noexcept;

}  // namespace monarch::net
