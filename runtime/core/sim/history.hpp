// What happened in a simulated run, as far as promises are about it. The checker reads nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"

namespace monarch::sim {

enum class What {
  kSent,      // at: sender, other: receiver, number: of this pair, from 0
  kHandled,   // at: receiver, other: sender, number
  kCalled,    // at: caller, other: receiver, number: of the caller's calls
  kAnswered,  // a call ended with its value
  kFailed,    // a call ended with the death of its receiver
  kLost,      // at: who noticed, other: peer: their link has ended
  kFenced,    // at: who decided, other: the peer that it takes for dead
  kSpawned,   // at: owner, other: the new process, number: the one whose place it takes, or 0
  kStarted,   // other: process that really runs
  kDeath,     // at: owner, other: who died, as it is told
  kEnded,     // other: process that really ended
  kRefused,   // at: who, other: peer: what came broke the rules of a session
  kCast,      // at: origin, number: of the cast
  kFault,     // what the nemesis did: other and number say to whom
  kCalm,      // no fault from here on
};

[[nodiscard]] std::string_view name(What what) noexcept;

struct Event {
  base::Instant time;
  What what;
  std::uint64_t at = 0;
  std::uint64_t other = 0;
  std::uint64_t number = 0;
  std::string_view text = {};  // a literal
};

[[nodiscard]] std::string line(const Event& event);

using History = std::vector<Event>;

}  // namespace monarch::sim
