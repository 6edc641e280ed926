#include "buffer.hpp"

#include <nanobind/stl/string.h>

#include <string>

namespace monarch::bindings {
namespace {

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

void bind_buffer(nb::module_& module) {
  nb::class_<Part>(module, "_Part", nb::type_slots(part_slots),
                   "Bytes of the runtime's, read through the buffer protocol.");
}

}  // namespace monarch::bindings
