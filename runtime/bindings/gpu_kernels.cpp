#include <nanobind/stl/vector.h>

#include "gpu.hpp"
#include "monarch/native/kernels.hpp"

namespace monarch::bindings {

void bind_kernels(nb::module_& module) {
  using native::Address;
  using native::DType;
  using native::Stream;
  module.def(
      "pack",
      [](std::uint64_t destination, std::uint64_t source, const std::vector<std::uint64_t>& extents,
         const std::vector<std::int64_t>& strides, std::uint32_t item_bytes, const Stream& stream) {
        const native::StridedPlan plan =
            take(native::plan_strided(extents, strides, item_bytes, source | destination));
        take(native::pack(Address{destination}, Address{source}, plan, stream));
      },
      nb::arg("destination"), nb::arg("source"), nb::arg("extents"), nb::arg("strides"),
      nb::arg("item_bytes"), nb::arg("stream"), WithoutGil(), "Strides are in bytes.");
  module.def(
      "unpack",
      [](std::uint64_t destination, std::uint64_t source, const std::vector<std::uint64_t>& extents,
         const std::vector<std::int64_t>& strides, std::uint32_t item_bytes, const Stream& stream) {
        const native::StridedPlan plan =
            take(native::plan_strided(extents, strides, item_bytes, source | destination));
        take(native::unpack(Address{destination}, Address{source}, plan, stream));
      },
      nb::arg("destination"), nb::arg("source"), nb::arg("extents"), nb::arg("strides"),
      nb::arg("item_bytes"), nb::arg("stream"), WithoutGil(), "Strides are in bytes.");
  module.def(
      "cast",
      [](std::uint64_t destination, DType destination_dtype, std::uint64_t source,
         DType source_dtype, std::uint64_t count, const Stream& stream) {
        take(native::cast(Address{destination}, destination_dtype, Address{source}, source_dtype,
                          count, stream));
      },
      nb::arg("destination"), nb::arg("destination_dtype"), nb::arg("source"),
      nb::arg("source_dtype"), nb::arg("count"), nb::arg("stream"), WithoutGil());
  module.def(
      "checksum",
      [](std::uint64_t result, std::uint64_t data, std::size_t bytes, const Stream& stream) {
        take(native::checksum(Address{result}, Address{data}, bytes, stream));
      },
      nb::arg("result"), nb::arg("data"), nb::arg("bytes"), nb::arg("stream"), WithoutGil());
}

}  // namespace monarch::bindings
