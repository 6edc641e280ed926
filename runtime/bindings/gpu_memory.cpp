#include "gpu.hpp"
#include "monarch/native/checksum.hpp"
#include "monarch/native/memory.hpp"

namespace monarch::bindings {
namespace {

using native::Address;
using native::Stream;

void bind_copies(nb::module_& module) {
  module.def(
      "copy_to_device",
      [](int device, std::uint64_t destination, nb::object source, const Stream* stream) {
        const BufferView view(source, false);
        const nb::gil_scoped_release released;
        take(
            native::copy_to_device(device, Address{destination}, view.data(), view.size(), stream));
      },
      nb::arg("device"), nb::arg("destination"), nb::arg("source"),
      nb::arg("stream").none() = nb::none(),
      "With a stream, `source` has to stay alive until the stream got there.");
  module.def(
      "copy_to_host",
      [](int device, nb::object destination, std::uint64_t source, const Stream* stream) {
        const BufferView view(destination, true);
        const nb::gil_scoped_release released;
        take(native::copy_to_host(device, view.data(), Address{source}, view.size(), stream));
      },
      nb::arg("device"), nb::arg("destination"), nb::arg("source"),
      nb::arg("stream").none() = nb::none(),
      "With a stream, `destination` has to stay alive until the stream got there.");
  module.def(
      "copy_on_device",
      [](int device, std::uint64_t destination, std::uint64_t source, std::size_t bytes,
         const Stream* stream) {
        take(native::copy_on_device(device, Address{destination}, Address{source}, bytes, stream));
      },
      nb::arg("device"), nb::arg("destination"), nb::arg("source"), nb::arg("bytes"),
      nb::arg("stream").none() = nb::none(), WithoutGil());
  module.def(
      "fill",
      [](int device, std::uint64_t destination, std::uint8_t value, std::size_t bytes,
         const Stream* stream) {
        take(native::fill(device, Address{destination}, value, bytes, stream));
      },
      nb::arg("device"), nb::arg("destination"), nb::arg("value"), nb::arg("bytes"),
      nb::arg("stream").none() = nb::none(), WithoutGil());
}

}  // namespace

void bind_memory(nb::module_& module) {
  using native::Allocation;
  using native::HostAllocation;
  nb::class_<Allocation>(module, "Allocation")
      .def_static(
          "create",
          [](int device, std::size_t bytes) { return take(Allocation::create(device, bytes)); },
          nb::arg("device"), nb::arg("bytes"), WithoutGil())
      .def_prop_ro("device", &Allocation::device)
      .def_prop_ro("address", [](const Allocation& self) { return self.address().value; })
      .def_prop_ro("size", &Allocation::size)
      .def("release", [](Allocation& self) { take(self.release()); }, WithoutGil());
  nb::class_<HostAllocation>(module, "HostAllocation")
      .def_static(
          "create",
          [](int device, std::size_t bytes) { return take(HostAllocation::create(device, bytes)); },
          nb::arg("device"), nb::arg("bytes"), WithoutGil())
      .def_prop_ro("device", &HostAllocation::device)
      .def_prop_ro(
          "address",
          [](const HostAllocation& self) { return reinterpret_cast<std::uintptr_t>(self.data()); })
      .def_prop_ro("size", &HostAllocation::size)
      .def("release", [](HostAllocation& self) { take(self.release()); }, WithoutGil());
  bind_copies(module);
  module.def(
      "export_dma_buffer",
      [](int device, std::uint64_t address, std::size_t bytes) {
        const native::DmaBuffer buffer =
            take(native::export_dma_buffer(device, Address{address}, bytes));
        return nb::make_tuple(buffer.descriptor, buffer.offset);
      },
      nb::arg("device"), nb::arg("address"), nb::arg("bytes"),
      nb::sig("def export_dma_buffer(device: int, address: int, bytes: int) -> tuple[int, int]"),
      "Descriptor (the caller closes it) and the offset of the range in it.");
  module.def(
      "host_checksum",
      [](nb::object data) {
        const BufferView view(data, false);
        const nb::gil_scoped_release released;
        return native::checksum_of(static_cast<const unsigned char*>(view.data()), view.size());
      },
      nb::arg("data"), "The checksum of host memory; equal bytes on a device give the same.");
}

}  // namespace monarch::bindings
