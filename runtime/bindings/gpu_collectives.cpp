#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "gpu.hpp"
#include "monarch/native/collectives.hpp"

namespace monarch::bindings {
namespace {

using native::Address;
using native::Communicator;
using native::DType;
using native::Reduction;
using native::Stream;

native::UniqueId unique_id_from(const nb::bytes& text) {
  native::UniqueId id{};
  if (text.size() != id.size()) {
    throw Failure({native::ErrorCode::invalid_argument,
                   "a unique id of " + std::to_string(text.size()) + " bytes, wanted " +
                       std::to_string(id.size()),
                   "creating a communicator"});
  }
  std::copy_n(text.c_str(), id.size(), id.begin());
  return id;
}

void bind_operations(nb::class_<Communicator>& communicator) {
  communicator
      .def(
          "all_reduce",
          [](Communicator& self, std::uint64_t send, std::uint64_t receive, std::size_t count,
             DType dtype, Reduction reduction, const Stream& stream) {
            take(self.all_reduce(Address{send}, Address{receive}, count, dtype, reduction, stream));
          },
          nb::arg("send"), nb::arg("receive"), nb::arg("count"), nb::arg("dtype"),
          nb::arg("reduction"), nb::arg("stream"), WithoutGil())
      .def(
          "all_gather",
          [](Communicator& self, std::uint64_t send, std::uint64_t receive, std::size_t count,
             DType dtype, const Stream& stream) {
            take(self.all_gather(Address{send}, Address{receive}, count, dtype, stream));
          },
          nb::arg("send"), nb::arg("receive"), nb::arg("count"), nb::arg("dtype"),
          nb::arg("stream"), WithoutGil())
      .def(
          "reduce_scatter",
          [](Communicator& self, std::uint64_t send, std::uint64_t receive, std::size_t count,
             DType dtype, Reduction reduction, const Stream& stream) {
            take(self.reduce_scatter(Address{send}, Address{receive}, count, dtype, reduction,
                                     stream));
          },
          nb::arg("send"), nb::arg("receive"), nb::arg("count"), nb::arg("dtype"),
          nb::arg("reduction"), nb::arg("stream"), WithoutGil())
      .def(
          "broadcast",
          [](Communicator& self, std::uint64_t send, std::uint64_t receive, std::size_t count,
             DType dtype, int root, const Stream& stream) {
            take(self.broadcast(Address{send}, Address{receive}, count, dtype, root, stream));
          },
          nb::arg("send"), nb::arg("receive"), nb::arg("count"), nb::arg("dtype"), nb::arg("root"),
          nb::arg("stream"), WithoutGil())
      .def(
          "reduce",
          [](Communicator& self, std::uint64_t send, std::uint64_t receive, std::size_t count,
             DType dtype, Reduction reduction, int root, const Stream& stream) {
            take(self.reduce(Address{send}, Address{receive}, count, dtype, reduction, root,
                             stream));
          },
          nb::arg("send"), nb::arg("receive"), nb::arg("count"), nb::arg("dtype"),
          nb::arg("reduction"), nb::arg("root"), nb::arg("stream"), WithoutGil())
      .def(
          "send",
          [](Communicator& self, std::uint64_t data, std::size_t count, DType dtype, int peer,
             const Stream& stream) { take(self.send(Address{data}, count, dtype, peer, stream)); },
          nb::arg("data"), nb::arg("count"), nb::arg("dtype"), nb::arg("peer"), nb::arg("stream"),
          WithoutGil())
      .def(
          "receive",
          [](Communicator& self, std::uint64_t data, std::size_t count, DType dtype, int peer,
             const Stream& stream) {
            take(self.receive(Address{data}, count, dtype, peer, stream));
          },
          nb::arg("data"), nb::arg("count"), nb::arg("dtype"), nb::arg("peer"), nb::arg("stream"),
          WithoutGil());
}

}  // namespace

void bind_collectives(nb::module_& module) {
  nb::enum_<Reduction>(module, "Reduction")
      .value("sum", Reduction::sum)
      .value("product", Reduction::product)
      .value("maximum", Reduction::maximum)
      .value("minimum", Reduction::minimum)
      .value("average", Reduction::average);
  nb::enum_<DType>(module, "DType")
      .value("int8", DType::int8)
      .value("uint8", DType::uint8)
      .value("int32", DType::int32)
      .value("int64", DType::int64)
      .value("float16", DType::float16)
      .value("bfloat16", DType::bfloat16)
      .value("float32", DType::float32)
      .value("float64", DType::float64)
      .def_prop_ro("itemsize", [](DType self) { return native::dtype_bytes(self); });
  module.def(
      "open_collectives",
      [](const std::vector<std::string>& candidates) {
        const native::CollectivesInfo info = take(native::open_collectives(candidates));
        return nb::make_tuple(info.library, info.version);
      },
      nb::arg("candidates"),
      nb::sig("def open_collectives(candidates: collections.abc.Sequence[str]) -> tuple[str, int]"),
      "Path and version of the collectives library, opened once per process.");
  module.def("make_unique_id", [] {
    const native::UniqueId id = take(native::make_unique_id());
    return nb::bytes(id.data(), id.size());
  });
  module.def("group_start", [] { take(native::group_start()); }, WithoutGil());
  module.def("group_end", [] { take(native::group_end()); }, WithoutGil());
  nb::class_<Communicator> communicator(module, "Communicator");
  communicator
      .def_static(
          "create",
          [](int device, const nb::bytes& unique_id, int rank, int size) {
            const native::UniqueId id = unique_id_from(unique_id);
            const nb::gil_scoped_release released;
            return take(Communicator::create(device, id, rank, size));
          },
          nb::arg("device"), nb::arg("unique_id"), nb::arg("rank"), nb::arg("size"))
      .def_prop_ro("device", &Communicator::device)
      .def_prop_ro("rank", &Communicator::rank)
      .def_prop_ro("size", &Communicator::size)
      .def(
          "split",
          [](Communicator& self, int color, int key) { return take(self.split(color, key)); },
          nb::arg("color"), nb::arg("key"), WithoutGil(),
          nb::sig("def split(self, color: int, key: int) -> Communicator | None"))
      .def(
          "async_error", [](Communicator& self) { take(self.async_error()); }, WithoutGil())
      .def(
          "abort", [](Communicator& self) { take(self.abort()); }, WithoutGil())
      .def("release", [](Communicator& self) { take(self.release()); }, WithoutGil());
  bind_operations(communicator);
}

}  // namespace monarch::bindings
