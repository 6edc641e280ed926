// The module `monarch._core`: the runtime's core for Python. No GPU code.
#include <nanobind/nanobind.h>

#include "buffer.hpp"
#include "engine.hpp"
#include "proc.hpp"
#include "tls.hpp"
#include "wire.hpp"

NB_MODULE(_core, module) {
  // At exit a daemon thread's frames can still hold objects of ours: no leak, and not to be printed.
  nanobind::set_leak_warnings(false);
  module.doc() = "The runtime's core.";
  monarch::bindings::bind_buffer(module);
  monarch::bindings::bind_proc(module);
  monarch::bindings::bind_tls(module);
  monarch::bindings::bind_wire(module);
  monarch::bindings::bind_engine(module);
}
