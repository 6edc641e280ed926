#include <nanobind/stl/string.h>

#include "gpu.hpp"
#include "monarch/native/device.hpp"

namespace monarch::bindings {

void bind_device(nb::module_& module) {
  using native::DeviceInfo;
  nb::class_<DeviceInfo>(module, "DeviceInfo")
      .def_ro("ordinal", &DeviceInfo::ordinal)
      .def_ro("name", &DeviceInfo::name)
      .def_prop_ro(
          "uuid",
          [](const DeviceInfo& info) { return nb::bytes(info.uuid.data(), info.uuid.size()); })
      .def_ro("pci_bus_id", &DeviceInfo::pci_bus_id)
      .def_ro("total_memory", &DeviceInfo::total_memory)
      .def_ro("multiprocessors", &DeviceInfo::multiprocessors)
      .def_ro("wave_size", &DeviceInfo::wave_size)
      .def_ro("compute_major", &DeviceInfo::compute_major)
      .def_ro("compute_minor", &DeviceInfo::compute_minor)
      .def_ro("max_threads_per_block", &DeviceInfo::max_threads_per_block)
      .def_ro("max_shared_memory_per_block", &DeviceInfo::max_shared_memory_per_block)
      .def_ro("l2_cache_bytes", &DeviceInfo::l2_cache_bytes);
  module.def("device_count", [] { return take(native::device_count()); }, WithoutGil());
  module.def(
      "device_info", [](int ordinal) { return take(native::device_info(ordinal)); },
      nb::arg("ordinal"), WithoutGil());
  module.def(
      "memory_info",
      [](int ordinal) {
        native::MemoryInfo info;
        {
          const nb::gil_scoped_release released;
          info = take(native::memory_info(ordinal));
        }
        return nb::make_tuple(info.free, info.total);
      },
      nb::arg("ordinal"), nb::sig("def memory_info(ordinal: int) -> tuple[int, int]"),
      "Free and total bytes.");
  module.def(
      "can_access_peer",
      [](int ordinal, int peer) { return take(native::can_access_peer(ordinal, peer)); },
      nb::arg("ordinal"), nb::arg("peer"), WithoutGil());
  module.def(
      "synchronize_device", [](int ordinal) { take(native::synchronize_device(ordinal)); },
      nb::arg("ordinal"), WithoutGil());
}

}  // namespace monarch::bindings
