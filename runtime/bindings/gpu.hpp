#pragma once

#include <nanobind/nanobind.h>

#include <stdexcept>
#include <utility>

#include "monarch/native/error.hpp"
#include "monarch/native/stream.hpp"

// The GPU module is the same code on both platforms: it sees native/include only. Every blocking
// call runs without the GIL.
namespace monarch::bindings {

namespace nb = nanobind;

/// An Error on its way to Python, where it becomes the class given to `set_error_class`.
class Failure : public std::runtime_error {
 public:
  explicit Failure(native::Error error)
      : std::runtime_error(error.message), error_(std::move(error)) {}

  const native::Error& error() const { return error_; }

 private:
  native::Error error_;
};

template <class T>
T take(native::Result<T> result) {
  if (!result) {
    throw Failure(result.error());
  }
  return std::move(result).value();
}

inline void take(native::Status status) {
  if (!status) {
    throw Failure(status.error());
  }
}

/// The contiguous memory behind a Python object, held as long as this lives.
class BufferView {
 public:
  BufferView(nb::handle object, bool writable) {
    const int flags = PyBUF_C_CONTIGUOUS | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) {
      throw nb::python_error();
    }
  }
  BufferView(const BufferView&) = delete;
  BufferView& operator=(const BufferView&) = delete;
  ~BufferView() { PyBuffer_Release(&view_); }

  void* data() const { return view_.buf; }
  std::size_t size() const { return static_cast<std::size_t>(view_.len); }

 private:
  Py_buffer view_{};
};

using WithoutGil = nb::call_guard<nb::gil_scoped_release>;

void bind_device(nb::module_& module);
void bind_stream(nb::module_& module);
void bind_memory(nb::module_& module);
void bind_virtual_memory(nb::module_& module);
void bind_collectives(nb::module_& module);
void bind_kernels(nb::module_& module);

}  // namespace monarch::bindings
