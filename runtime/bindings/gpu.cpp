#include "gpu.hpp"

#include <nanobind/stl/string.h>

#include <exception>

#include "monarch/native/runtime.hpp"

namespace {

namespace nb = nanobind;
using monarch::bindings::Failure;

/// The class raised for an Error: RuntimeError until the package names its own. Owned by the
/// module, which lives as long as the process.
nb::handle& error_class() {
  static nb::handle held = PyExc_RuntimeError;
  return held;
}

void raise(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Failure& failure) {
    const monarch::native::Error& error = failure.error();
    const nb::tuple arguments =
        nb::make_tuple(error.message, monarch::native::error_code_name(error.code), error.context);
    PyErr_SetObject(error_class().ptr(), arguments.ptr());
  }
}

}  // namespace

NB_MODULE(MODULE_NAME, module) {
  using namespace monarch;
  nb::register_exception_translator(raise);
  module.def(
      "set_error_class", [](nb::type_object type) { error_class() = type.release(); },
      nb::arg("type"), "Raise `type(message, code, context)` for every error from now on.");
  module.attr("platform") = nb::str(native::platform_name().data(), native::platform_name().size());
  module.def(
      "runtime_versions",
      [] {
        const native::RuntimeVersions versions = bindings::take(native::runtime_versions());
        return nb::make_tuple(versions.compiled, versions.runtime);
      },
      nb::sig("def runtime_versions() -> tuple[int, int]"),
      "Version compiled against and version in use, as the vendor encodes them.");
  module.def("runtime_device_count", &native::runtime_device_count, bindings::WithoutGil(),
             "Devices the runtime library sees; 0 without a driver.");
  module.def(
      "driver_info",
      [] {
        native::DriverInfo info;
        {
          const nb::gil_scoped_release released;
          info = bindings::take(native::driver_info());
        }
        return nb::make_tuple(info.library, info.version);
      },
      nb::sig("def driver_info() -> tuple[str, int]"), "Path and version of the driver library.");
  bindings::bind_device(module);
  bindings::bind_stream(module);
  bindings::bind_memory(module);
  bindings::bind_virtual_memory(module);
  bindings::bind_collectives(module);
  bindings::bind_kernels(module);
}
