// The short way of calls and answers. Python's part of a call costs as much as the call itself, so
// values that pickle does by itself are pickled, sent, awaited and unpickled in one step each. What
// is special in any way is left alone, and Python is told so: it goes the long way.
#pragma once

#include <nanobind/nanobind.h>

#include "engine_types.hpp"

namespace monarch::bindings {

void bind_sender(nb::module_& module);
void bind_quick_values(nb::class_<PyInbox>& inbox);
void bind_quick_answers(nb::class_<PyRequest>& request);

}  // namespace monarch::bindings
