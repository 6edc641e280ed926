// Places between a request and its reply at which a test can kill this process or cut its links.
//
// They are numbered by the order in which a call passes them; without a fault set, passing one is
// a relaxed load of an atomic.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/result.hpp"

namespace monarch::base {

enum class Boundary : std::uint8_t {
  kRequestQueued,
  kRequestWritten,
  kRequestRead,
  kRequestTaken,
  kReplyQueued,
  kReplyWritten,
  kReplyRead,
  kReplyTaken,
};

// "kill:request-read:3": SIGKILL to this process at the third passing of that place; "cut:…": its
// links are cut there. An empty text takes the fault away.
[[nodiscard]] Result<void> set_fault(std::string_view text);

namespace detail {
extern std::atomic<bool> faults_on;
[[nodiscard]] bool passed(Boundary boundary);
}  // namespace detail

// True where the links are to be cut now.
[[nodiscard]] inline bool reached(Boundary boundary) {
  return detail::faults_on.load(std::memory_order_relaxed) && detail::passed(boundary);
}

}  // namespace monarch::base
