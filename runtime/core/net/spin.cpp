#include "net/spin.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif

namespace monarch::net {

void Spin::learn(bool found, bool preempted, base::Instant now) noexcept {
  if (found && !preempted) {
    vain_ = 0;
    off_ = k_least_off;
    return;
  }
  if (++vain_ < k_tries && !preempted) return;
  vain_ = k_tries - 1;  // after the pause one failure is enough
  off_until_ = now + off_;
  off_ = std::min(off_ * 2, k_most_off);
}

int allowed_cores() noexcept {
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

long preemptions() noexcept {
  rusage usage{};
#if defined(__linux__)
  ::getrusage(RUSAGE_THREAD, &usage);
#else
  ::getrusage(RUSAGE_SELF, &usage);
#endif
  return usage.ru_nivcsw;
}

}  // namespace monarch::net
