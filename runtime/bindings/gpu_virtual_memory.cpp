#include "gpu.hpp"
#include "monarch/native/virtual_memory.hpp"

namespace monarch::bindings {

void bind_virtual_memory(nb::module_& module) {
  using native::AddressRange;
  using native::PhysicalMemory;
  module.def(
      "virtual_memory_granularity",
      [](int device) { return take(native::virtual_memory_granularity(device)); },
      nb::arg("device"), WithoutGil());
  nb::class_<PhysicalMemory>(module, "PhysicalMemory")
      .def_static(
          "create",
          [](int device, std::size_t bytes) { return take(PhysicalMemory::create(device, bytes)); },
          nb::arg("device"), nb::arg("bytes"), WithoutGil())
      .def_static(
          "import_descriptor",
          [](int device, int descriptor, std::size_t bytes) {
            return take(PhysicalMemory::import_descriptor(device, descriptor, bytes));
          },
          nb::arg("device"), nb::arg("descriptor"), nb::arg("bytes"), WithoutGil())
      .def_prop_ro("device", &PhysicalMemory::device)
      .def_prop_ro("size", &PhysicalMemory::size)
      .def(
          "export_descriptor",
          [](const PhysicalMemory& self) { return take(self.export_descriptor()); }, WithoutGil())
      .def("release", [](PhysicalMemory& self) { take(self.release()); }, WithoutGil());
  nb::class_<AddressRange>(module, "AddressRange")
      .def_static(
          "reserve",
          [](int device, std::size_t bytes, std::size_t alignment) {
            return take(AddressRange::reserve(device, bytes, alignment));
          },
          nb::arg("device"), nb::arg("bytes"), nb::arg("alignment") = 0, WithoutGil())
      .def_prop_ro("device", &AddressRange::device)
      .def_prop_ro("address", [](const AddressRange& self) { return self.address().value; })
      .def_prop_ro("size", &AddressRange::size)
      .def(
          "map",
          [](AddressRange& self, std::size_t offset, const PhysicalMemory& memory) {
            take(self.map(offset, memory));
          },
          nb::arg("offset"), nb::arg("memory"), WithoutGil())
      .def(
          "set_access",
          [](AddressRange& self, std::size_t offset, std::size_t bytes, int device) {
            take(self.set_access(offset, bytes, device));
          },
          nb::arg("offset"), nb::arg("bytes"), nb::arg("device"), WithoutGil())
      .def(
          "unmap", [](AddressRange& self, std::size_t offset) { take(self.unmap(offset)); },
          nb::arg("offset"), WithoutGil())
      .def("release", [](AddressRange& self) { take(self.release()); }, WithoutGil());
}

}  // namespace monarch::bindings
