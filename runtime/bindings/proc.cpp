// What the kernel knows of processes, for Python: OSError with errno where it refuses.
#include "proc.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "net/connections.hpp"
#include "proc/process.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace monarch::bindings {
namespace {

int checked(int result, const char* what) {
  if (result >= 0) return result;
  const std::string text =
      result == -ENOTSUP ? std::string(what) + ": this system has no such call"
                         : std::string(what) + ": " + std::strerror(-result);
  const nb::object value = nb::handle(PyExc_OSError)(-result, text);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(value.ptr())), value.ptr());
  throw nb::python_error();
}

}  // namespace

void bind_proc(nb::module_& module) {
  module.def(
      "set_parent_death_signal",
      [](int signal) { checked(proc::set_parent_death_signal(signal), "parent death signal"); },
      "signal"_a,
      "Get `signal` when the thread that made this process ends; 0 takes that back.\n\n"
      "Raises:\n    OSError: ENOTSUP where the system has no such thing (macOS).");
  module.def(
      "leave_connections", &net::leave_connections,
      "In a fork: let go of every connection that the engine of its parent had.");
  module.def(
      "become_subreaper", [] { checked(proc::become_subreaper(), "child subreaper"); },
      "Adopt the orphans among this process's descendants.\n\n"
      "Raises:\n    OSError: ENOTSUP where the system has no such thing (macOS).");
  module.def(
      "open_pidfd", [](int pid) { return checked(proc::open_pidfd(pid), "pidfd_open"); }, "pid"_a,
      "A descriptor that becomes readable when process `pid` ends.\n\n"
      "Raises:\n    OSError: ESRCH for no such process; ENOTSUP or ENOSYS without pidfds.");
  module.def(
      "signal_pidfd",
      [](int pidfd, int signal) {
        checked(proc::signal_pidfd(pidfd, signal), "pidfd_send_signal");
      },
      "pidfd"_a, "signal"_a,
      "Send `signal` to the process `pidfd` was opened for, and to no later one of its number.\n\n"
      "Raises:\n    OSError: ESRCH when it is gone.");
  module.def(
      "close_range",
      [](unsigned first, unsigned last) { checked(proc::close_range(first, last), "close_range"); },
      "first"_a, "last"_a, "Close the descriptors from `first` to `last`, both included.");
  module.def(
      "bind_memory",
      [](const std::vector<std::uint32_t>& nodes) {
        checked(proc::bind_memory(nodes), "set_mempolicy");
      },
      "nodes"_a, nb::sig("def bind_memory(nodes: collections.abc.Sequence[int]) -> None"),
      "Take memory from these NUMA nodes only, in this process and its children.\n\n"
      "Raises:\n    OSError: ENOSYS or ENOTSUP without NUMA support; EINVAL for no such node.");
  module.def(
      "count_threads", [] { return checked(proc::count_threads(), "count threads"); },
      "Threads of this process, those unknown to Python included.");
}

}  // namespace monarch::bindings
