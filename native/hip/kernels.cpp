#include "monarch/native/kernels.hpp"

#include "driver.hpp"
#include "launch.hpp"

namespace monarch::native {
namespace {

void* at(Address address) { return reinterpret_cast<void*>(address.value); }

Status outcome(int status, const char* context) {
  if (status == hipSuccess) {
    return {};
  }
  return driver_error(static_cast<hipError_t>(status), context);
}

}  // namespace

Status pack(Address destination, Address source, const StridedPlan& plan, const Stream& stream) {
  if (plan.count == 0) {
    return {};
  }
  const Result<ContextScope> scope = ContextScope::enter(stream.device());
  if (!scope) {
    return scope.error();
  }
  return outcome(launch::pack(at(destination), at(source), plan, stream.handle()), "packing");
}

Status unpack(Address destination, Address source, const StridedPlan& plan, const Stream& stream) {
  if (plan.count == 0) {
    return {};
  }
  const Result<ContextScope> scope = ContextScope::enter(stream.device());
  if (!scope) {
    return scope.error();
  }
  return outcome(launch::unpack(at(destination), at(source), plan, stream.handle()), "unpacking");
}

Status cast(Address destination, DType destination_dtype, Address source, DType source_dtype,
            std::uint64_t count, const Stream& stream) {
  if (count == 0) {
    return {};
  }
  const Result<ContextScope> scope = ContextScope::enter(stream.device());
  if (!scope) {
    return scope.error();
  }
  const int status = launch::cast(at(destination), destination_dtype, at(source), source_dtype,
                                  count, stream.handle());
  return outcome(status, "casting");
}

Status checksum(Address result, Address data, std::size_t bytes, const Stream& stream) {
  constexpr const char* k_context = "computing a checksum";
  if (result.value % sizeof(std::uint64_t) != 0) {
    return Error{ErrorCode::invalid_argument, "the result's address is no multiple of 8",
                 k_context};
  }
  const Result<ContextScope> scope = ContextScope::enter(stream.device());
  if (!scope) {
    return scope.error();
  }
  if (Status cleared = invoke(k_context, driver().value().fill_bytes_async, vendor_pointer(result),
                              static_cast<unsigned char>(0), sizeof(std::uint64_t),
                              static_cast<hipStream_t>(stream.handle()));
      !cleared) {
    return cleared;
  }
  return outcome(launch::checksum(at(result), at(data), bytes, stream.handle()), k_context);
}

}  // namespace monarch::native
