// The receiving end of calls, ports and channels. All state is the engine's, under its lock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actor/payload.hpp"
#include "base/fifo.hpp"

namespace monarch::actor {

struct Targets;
struct Waiter;
class Worker;

// What a reply says about itself; `_core` has the same numbers.
enum class Status : std::uint8_t {
  kOk = 0,
  kError = 1,        // the endpoint raised
  kFailed = 2,       // the actor or its process is lost
  kCancelled = 3,
  kUndelivered = 4,  // there is no such actor
  kUnsent = 5,       // as kFailed, and the request never left this process
};

struct Arrival {
  std::uint32_t rank;
  std::uint8_t status;
  Payload payload;
};

// A reference to something of the caller's own that the engine keeps and hands back.
using Token = void*;

struct Subscription {
  Worker* worker;
  std::size_t count;
  Token token;
};

struct Inbox {
  std::uint64_t id = 0;
  std::size_t expected = 0;  // 0: open-ended
  bool once = false;
  bool closed = false;
  std::uint64_t sender = 0;  // the actor that called; 0 is the process itself
  std::shared_ptr<const Targets> targets;  // of a call
  std::size_t cost = 0;                    // in bytes of credit, per target
  std::uint64_t cast = 0;                  // that it waits for, where there is one
  // Of requests that were not written at once: by rank, where in the link's stream they end.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> marks;

  base::Fifo<Arrival> arrivals;  // in order of arrival; taken from the front by channels
  std::size_t arrived = 0;       // in all
  std::vector<bool> answered;    // by rank, of a call

  std::vector<Waiter*> waiters;
  std::size_t wanted = 0;  // answers that the last of them waits for
  std::vector<Subscription> subscriptions;
  bool fail_fast = false;  // one bad answer ends the waiting for all
  bool broken = false;     // there was one
  std::uint32_t beats = 0;  // of the heart, all the while it was waited for

  [[nodiscard]] bool has(std::size_t count) const noexcept {
    return arrived >= count || (fail_fast && broken);
  }
  [[nodiscard]] bool awaited() const noexcept { return !waiters.empty() || !subscriptions.empty(); }
};

}  // namespace monarch::actor
