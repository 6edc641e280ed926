// What the engine's objects are behind their Python names, and how Python waits in the engine.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <utility>

#include "actor/engine.hpp"
#include "buffer.hpp"
#include "outgoing.hpp"

namespace monarch::bindings {

using actor::Engine;
using actor::Waited;

using Handle = std::shared_ptr<Engine>;

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
    if (inbox != nullptr) engine->close_inbox(*inbox);
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
