#pragma once

// One vendor's C++ header overloads some entry points with templates, which have no one type; this
// is its own switch to leave them out. So this header comes before any other of the vendor's.
#define __HIP_DISABLE_CPP_FUNCTIONS__

#include <hip/hip_runtime.h>
#include <hip/hip_runtime_api.h>

#include <string>
#include <string_view>

#include "driver_entries.hpp"
#include "monarch/native/address.hpp"
#include "monarch/native/error.hpp"

namespace monarch::native {

/// The driver's entry points, looked up at run time: a machine without a driver can load this code.
struct Driver {
#define MONARCH_DRIVER_MEMBER(member, function) decltype(&function) member{};
  MONARCH_DRIVER_ENTRIES(MONARCH_DRIVER_MEMBER)
#undef MONARCH_DRIVER_MEMBER
  std::string library;
  void* handle{};
};

/// The table, loaded and initialised on first use. The error stays: a driver does not appear in a
/// running process.
const Result<Driver>& driver();

/// An Error for a driver or runtime status, with the vendor's own name for it.
Error driver_error(hipError_t status, std::string_view call);

/// Calls an entry point and turns its status into an Error.
template <class Function, class... Arguments>
Status invoke(std::string_view call, Function function, Arguments... arguments) {
  const hipError_t status = function(arguments...);
  if (status == hipSuccess) {
    return {};
  }
  return driver_error(status, call);
}

template <class Status, class Pointer, class... Rest>
Pointer pointer_given_by(Status (*)(Pointer*, Rest...));

/// A device address as the entry points take it: what allocation gives, on either platform.
using VendorPointer = decltype(pointer_given_by(Driver{}.memory_allocate));

inline VendorPointer vendor_pointer(Address address) {
  return reinterpret_cast<VendorPointer>(static_cast<unsigned long long>(address.value));
}

inline Address neutral_address(VendorPointer pointer) {
  return {reinterpret_cast<unsigned long long>(pointer)};
}

/// Makes the device's primary context, which the runtime library shares, current for this thread
/// and puts back what was current before.
class ContextScope {
 public:
  static Result<ContextScope> enter(int device);

  ContextScope(ContextScope&& other) noexcept;
  ContextScope& operator=(ContextScope&&) = delete;
  ~ContextScope();

 private:
  ContextScope(const Driver& table, hipCtx_t previous, bool switched)
      : driver_(&table), previous_(previous), switched_(switched) {}

  const Driver* driver_{};
  hipCtx_t previous_{};
  bool switched_{};
};

}  // namespace monarch::native
