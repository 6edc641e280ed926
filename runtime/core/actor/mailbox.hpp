// Messages for actors of this process, and the threads that handle them. All state is the
// engine's, under its lock.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "actor/inbox.hpp"
#include "base/clock.hpp"
#include "base/fifo.hpp"

namespace monarch::actor {

class Worker;
struct Mailbox;

// Of a request; `_core` has the same numbers.
inline constexpr std::uint16_t k_create = 1;
inline constexpr std::uint16_t k_stop = 2;
inline constexpr std::uint16_t k_supervise = 4;
inline constexpr std::uint16_t k_loop = 8;  // with k_create: the actor lives on the loop worker
inline constexpr std::uint16_t k_explicit = 16;
inline constexpr std::uint16_t k_port = 32;  // for an inbox, which stands in place of the actor
inline constexpr std::uint16_t k_port_error = 64;
// Handled beside what its actor is busy with, where that lives on a loop.
inline constexpr std::uint16_t k_beside = 128;

struct Request {
  std::uint64_t actor = 0;
  std::uint64_t sender_proc = 0;
  std::uint64_t sender = 0;
  std::uint64_t reply_proc = 0;
  std::uint64_t inbox = 0;  // 0: no reply is wanted
  std::uint32_t rank = 0;
  std::uint16_t flags = 0;
  std::string endpoint;
  std::string extent;
  Payload payload;
  std::size_t cost = 0;
  std::uint64_t cast = 0;  // its number, where it came as one and wants an answer
  std::uint64_t told = 0;  // what its sender's process had been sent directly by then

  Mailbox* mailbox = nullptr;
  Worker* taken_by = nullptr;
  bool replied = false;
  bool finished = false;
  bool cancelled = false;
  bool beside = false;  // its mailbox is not busy with it
  int line = -1;  // on the board
};

struct Mailbox {
  std::uint64_t actor = 0;
  Worker* home = nullptr;
  Token state = nullptr;
  base::Fifo<std::shared_ptr<Request>> queue;
  bool busy = false;   // a request is being handled
  bool ready = false;  // in its home's list
  std::vector<std::shared_ptr<Request>> running;  // not yet replied to, or not finished
  bool closed = false;
  std::uint8_t closed_status = 0;
  std::shared_ptr<const std::string> closed_payload;
};

// What is left of a closed actor: the answer to what still comes for it.
struct Grave {
  std::uint8_t status = 0;
  std::shared_ptr<const std::string> payload;
};

// Messages for an actor of which nobody knows yet: they have overtaken the one that makes it, which
// comes from another process.
struct Early {
  base::Instant since{};
  std::vector<std::shared_ptr<Request>> requests;
};

// A thread that waits for something: the leader by polling, any other by its condition.
struct Waiter {
  std::condition_variable condition;
  bool leads = false;
};

// What next() hands out.
struct Work {
  enum class Kind { kRequest, kToken, kReadable } kind;
  std::shared_ptr<Request> request = {};
  Token state = nullptr;
  Token token = nullptr;
};

class Worker {
 public:
  Worker(std::uint32_t number, bool foreign) : index(number), is_foreign(foreign) {}

  const std::uint32_t index;
  const bool is_foreign;     // belongs to an event loop that is not ours
  bool is_loop = false;
  bool stopped = false;
  bool waiting = false;      // in next(), with nothing to do
  std::size_t actors = 0;    // at home here
  base::Fifo<Mailbox*> ready;
  base::Fifo<std::shared_ptr<Request>> beside;  // for actors of a loop, busy or not
  base::Fifo<Token> tokens;
  int attached = -1;
  bool attached_ready = false;
  int signal_read = -1;      // of a foreign worker: readable when there is something
  int signal_write = -1;
  base::Instant busy_since{};
  const Request* handled = nullptr;  // taken, and not finished
  std::thread::id thread;            // that takes its messages
  bool blocked = false;              // which waits in this engine for an answer
  Waiter waiter;

  // Whether what is ready here has to wait for something that is being handled.
  [[nodiscard]] bool is_crowded() const noexcept {
    return handled != nullptr && !ready.empty() && !waiting && !is_loop && !is_foreign;
  }
  [[nodiscard]] bool has_work() const noexcept {
    return !tokens.empty() || !beside.empty() || !ready.empty() || attached_ready;
  }
};

}  // namespace monarch::actor
