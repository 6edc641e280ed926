// A wait without a limit, for wheels that are to load on older systems: GCC 12 gave
// std::condition_variable::wait a new symbol, which their C++ library does not have.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace monarch::base {

// May return without a reason, as every such wait.
inline void wait(std::condition_variable& condition, std::unique_lock<std::mutex>& lock) {
  condition.wait_until(lock, std::chrono::steady_clock::now() + std::chrono::hours(24));
}

}  // namespace monarch::base
