#include "buffer.hpp"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "net/copy.hpp"

namespace monarch::bindings {
namespace {

using base::Bytes;
using namespace nb::literals;

int part_get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  const Part* part = nb::inst_ptr<Part>(nb::handle(self));
  static constexpr char kNone = 0;
  const void* start = part->bytes.empty() ? &kNone : static_cast<const void*>(part->bytes.data());
  return PyBuffer_FillInfo(view, self, const_cast<void*>(start),
                           static_cast<Py_ssize_t>(part->bytes.size()), part->writable ? 0 : 1,
                           flags);
}

PyType_Slot part_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(part_get_buffer)}, {0, nullptr}};

}  // namespace

void raise(const base::Error& error) {
  const nb::object type = nb::module_::import_("monarch.errors").attr("FrameError");
  const nb::object value = type(std::string(base::name(error.code)), error.message);
  PyErr_SetObject(type.ptr(), value.ptr());
  throw nb::python_error();
}

nb::object memory_view(Part part) {
  const nb::object held = nb::cast(std::move(part));
  return nb::steal(PyMemoryView_FromObject(held.ptr()));
}

nb::bytes to_bytes(nb::object source) {
  const HeldBuffer held(source);
  const Bytes from = held.bytes();
  nb::object made =
      nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(from.size())));
  if (!made.is_valid()) throw nb::python_error();
  auto* const start = reinterpret_cast<std::byte*>(PyBytes_AsString(made.ptr()));
  {
    const GilReleased released;
    if (from.size() >= net::kFreshPayload) net::prepare_fresh({start, from.size()});
    if (!from.empty()) std::memcpy(start, from.data(), from.size());
  }
  return nb::borrow<nb::bytes>(made);
}

void bind_buffer(nb::module_& module) {
  module.def("to_bytes", &to_bytes, "source"_a,
             nb::sig("def to_bytes(source: typing_extensions.Buffer) -> bytes"),
             "A copy of a buffer, made without the GIL and, where it is large, on huge pages.");
  module.def(
      "memory_at",
      [](std::uintptr_t address, std::size_t size, nb::object owner) {
        return memory_view({.owner = std::move(owner),
                            .bytes = {reinterpret_cast<const std::byte*>(address), size},
                            .writable = true});
      },
      "address"_a, "size"_a, "owner"_a,
      nb::sig("def memory_at(address: int, size: int, owner: object) -> memoryview"),
      "The memory there, which lasts as long as `owner`; that is kept for as long as the view.");
  nb::class_<Part>(module, "_Part", nb::type_slots(part_slots),
                   "Bytes of the runtime's, read through the buffer protocol.");
}

}  // namespace monarch::bindings
