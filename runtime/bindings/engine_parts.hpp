// The parts of `_core` that make up the engine for Python; each is a file of this name.
#pragma once

#include <nanobind/nanobind.h>

#include "actor/engine.hpp"
#include "engine_types.hpp"

namespace monarch::bindings {

void bind_handling(nb::module_& module);                // Worker, Request
void bind_inbox(nb::module_& module);                   // Inbox
void bind_links(nb::class_<PyEngine>& engine);          // Engine's links, and its events
void bind_sending(nb::class_<PyEngine>& engine);        // Engine's calls, casts and posts

// A payload's data as bytes, a large one as a view; its buffers as a list of views, or None.
[[nodiscard]] nb::object data_of(const actor::Payload& payload);
[[nodiscard]] nb::object buffers_of(const actor::Payload& payload);

}  // namespace monarch::bindings
