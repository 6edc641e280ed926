// What the engine's objects are behind their Python names, and how Python waits in the engine.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>

#include "actor/engine.hpp"
#include "buffer.hpp"
#include "outgoing.hpp"

namespace monarch::bindings {

using actor::Engine;
using actor::Waited;

// A forked child has none of the threads of its parent's engine, and shares its sockets: whatever it
// did with it would end up in the parent's conversations.
struct Forked : std::runtime_error {
  Forked()
      : std::runtime_error(
            "this process is a fork of one that uses monarch: futures and ports of that one, and "
            "actors in it, cannot be used here; meshes of other processes can, and this_host() "
            "gives some of its own") {}
};

class Handle {
 public:
  explicit Handle(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}
  Handle(const Handle&) = default;
  Handle(Handle&&) noexcept = default;
  Handle& operator=(const Handle&) = delete;
  Handle& operator=(Handle&&) = delete;
  ~Handle() {
    // The end of an engine waits for its threads. In a fork it is never taken down.
    if (engine_ != nullptr && is_forked()) new std::shared_ptr<Engine>(std::move(engine_));
  }

  [[nodiscard]] bool is_forked() const noexcept { return process_ != process(); }
  Engine* operator->() const { return &**this; }
  Engine& operator*() const {
    if (is_forked()) throw Forked();
    return *engine_;
  }

  // Counts the forks that led here.
  static std::uint32_t process() noexcept { return forks_.load(std::memory_order_relaxed); }
  static void note_forks();

 private:
  std::shared_ptr<Engine> engine_;
  std::uint32_t process_ = process();
  static inline std::atomic<std::uint32_t> forks_{0};
};

struct PyEngine {
  Handle engine;
};
struct PyTargets {
  std::shared_ptr<const actor::Targets> targets;
};
struct PyWorker {
  Handle engine;
  actor::Worker* worker;
};
struct PyRequest {
  Handle engine;
  std::shared_ptr<actor::Request> request;
};
struct PyInbox {
  PyInbox(Handle of, std::shared_ptr<actor::Inbox> held)
      : engine(std::move(of)), inbox(std::move(held)) {}
  PyInbox(PyInbox&&) noexcept = default;
  PyInbox(const PyInbox&) = delete;
  PyInbox& operator=(PyInbox&&) = delete;
  PyInbox& operator=(const PyInbox&) = delete;
  ~PyInbox() {
    if (inbox != nullptr && !engine.is_forked()) engine->close_inbox(*inbox);
  }
  Handle engine;
  std::shared_ptr<actor::Inbox> inbox;
};

[[noreturn]] inline void raise_stopped() {
  const nb::object type = nb::module_::import_("monarch.errors").attr("StoppedError");
  PyErr_SetString(type.ptr(), "the runtime of this process has been shut down");
  throw nb::python_error();
}

inline void ensure_credit(Engine& engine, const actor::Targets& targets) {
  if (engine.has_credit(targets)) return;
  const Waited waited = wait_out([&] { return engine.wait_credit(targets); });
  if (waited == Waited::kStopped) raise_stopped();
}

}  // namespace monarch::bindings
