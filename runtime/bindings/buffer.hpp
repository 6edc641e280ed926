// Bytes between Python and the core: buffers held, views lent, errors raised.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <memory>
#include <utility>

#include "base/bytes.hpp"
#include "base/error.hpp"

namespace monarch::bindings {

namespace nb = nanobind;

// Raises `monarch.errors.FrameError`. The class lives in Python, below this module; it is looked up
// when it is needed, so that the module loads without the package.
[[noreturn]] void raise(const base::Error& error);

// A contiguous buffer of another object, held for as long as this lives.
class HeldBuffer {
 public:
  explicit HeldBuffer(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_ANY_CONTIGUOUS) != 0) {
      throw nb::python_error();
    }
  }
  HeldBuffer(HeldBuffer&& other) noexcept : view_(std::exchange(other.view_, Py_buffer{})) {}
  HeldBuffer(const HeldBuffer&) = delete;
  HeldBuffer& operator=(const HeldBuffer&) = delete;
  HeldBuffer& operator=(HeldBuffer&&) = delete;
  ~HeldBuffer() { PyBuffer_Release(&view_); }

  [[nodiscard]] base::Bytes bytes() const noexcept {
    return {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
};

// The GIL released while this lives, and counted: a thread that asks for it back while the
// interpreter ends is unwound by force, which C++ does not survive.
class GilReleased {
 public:
  GilReleased() { ++away; state_ = PyEval_SaveThread(); }
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;
  ~GilReleased() {
    PyEval_RestoreThread(state_);
    --away;
  }

  static inline std::atomic<int> away{0};  // threads without the GIL, or waiting for it

 private:
  PyThreadState* state_;
};

// Bytes lent to Python: `owner` or `storage` keeps them alive.
struct Part {
  nb::object owner = {};
  std::shared_ptr<const void> storage = {};
  base::Bytes bytes = {};
  bool writable = false;
};

[[nodiscard]] nb::object memory_view(Part part);

void bind_buffer(nb::module_& module);

}  // namespace monarch::bindings
