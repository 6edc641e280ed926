#include "monarch/native/kernels.hpp"

#include "driver.hpp"

#include <hip/hip_runtime.h>

#include <algorithm>
#include <string>

#include "monarch/native/checksum.hpp"
#include "monarch/native/convert.hpp"

// No kernel knows the width of a warp: threads cooperate through shared memory only.
namespace monarch::native {
namespace {

constexpr unsigned k_threads = 256;
constexpr std::uint64_t k_most_blocks = 65535;

struct alignas(16) Unit16 {
  std::uint64_t low;
  std::uint64_t high;
};

__device__ std::uint64_t first_index() {
  return static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ std::uint64_t index_step() { return static_cast<std::uint64_t>(gridDim.x) * blockDim.x; }

template <class Unit>
__global__ void pack_kernel(Unit* destination, const unsigned char* source, StridedPlan plan) {
  for (std::uint64_t index = first_index(); index < plan.count; index += index_step()) {
    destination[index] = *reinterpret_cast<const Unit*>(source + strided_offset(plan, index));
  }
}

template <class Unit>
__global__ void unpack_kernel(unsigned char* destination, const Unit* source, StridedPlan plan) {
  for (std::uint64_t index = first_index(); index < plan.count; index += index_step()) {
    *reinterpret_cast<Unit*>(destination + strided_offset(plan, index)) = source[index];
  }
}

template <DType Source, DType Destination>
__global__ void cast_kernel(typename Element<Destination>::Storage* destination,
                            const typename Element<Source>::Storage* source, std::uint64_t count) {
  for (std::uint64_t index = first_index(); index < count; index += index_step()) {
    destination[index] = convert<Source, Destination>(source[index]);
  }
}

__global__ void checksum_kernel(unsigned long long* result, const unsigned char* data,
                                std::uint64_t bytes) {
  __shared__ unsigned long long sums[k_threads];
  const bool aligned = reinterpret_cast<std::uintptr_t>(data) % sizeof(std::uint64_t) == 0;
  const std::uint64_t whole = bytes / sizeof(std::uint64_t);
  unsigned long long sum = first_index() == 0 ? checksum_seed(bytes) : 0;
  for (std::uint64_t index = first_index(); index * sizeof(std::uint64_t) < bytes;
       index += index_step()) {
    const std::uint64_t word = aligned && index < whole
                                   ? reinterpret_cast<const std::uint64_t*>(data)[index]
                                   : checksum_word(data, bytes, index);
    sum += checksum_term(word, index);
  }
  sums[threadIdx.x] = sum;
  for (unsigned reach = k_threads / 2; reach > 0; reach /= 2) {
    __syncthreads();
    if (threadIdx.x < reach) {
      sums[threadIdx.x] += sums[threadIdx.x + reach];
    }
  }
  if (threadIdx.x == 0) {
    atomicAdd(result, sums[0]);
  }
}

unsigned blocks_for(std::uint64_t threads) {
  const std::uint64_t blocks = (threads + k_threads - 1) / k_threads;
  return static_cast<unsigned>(std::clamp<std::uint64_t>(blocks, 1, k_most_blocks));
}

template <class Pointee>
Pointee* pointer_to(Address address) {
  return reinterpret_cast<Pointee*>(address.value);
}

Status launched(const char* context) {
  const hipError_t status = hipGetLastError();
  if (status == hipSuccess) {
    return {};
  }
  return driver_error(static_cast<hipError_t>(status), context);
}

template <class Unit>
void start_pack(Address destination, Address source, const StridedPlan& plan, hipStream_t stream) {
  pack_kernel<Unit><<<blocks_for(plan.count), k_threads, 0, stream>>>(
      pointer_to<Unit>(destination), pointer_to<const unsigned char>(source), plan);
}

template <class Unit>
void start_unpack(Address destination, Address source, const StridedPlan& plan,
                  hipStream_t stream) {
  unpack_kernel<Unit><<<blocks_for(plan.count), k_threads, 0, stream>>>(
      pointer_to<unsigned char>(destination), pointer_to<const Unit>(source), plan);
}

template <DType Source, DType Destination>
void start_cast(Address destination, Address source, std::uint64_t count, hipStream_t stream) {
  cast_kernel<Source, Destination><<<blocks_for(count), k_threads, 0, stream>>>(
      pointer_to<typename Element<Destination>::Storage>(destination),
      pointer_to<const typename Element<Source>::Storage>(source), count);
}

template <DType Source>
void start_cast_from(DType destination_dtype, Address destination, Address source,
                     std::uint64_t count, hipStream_t stream) {
  switch (destination_dtype) {
    case DType::int8: return start_cast<Source, DType::int8>(destination, source, count, stream);
    case DType::uint8: return start_cast<Source, DType::uint8>(destination, source, count, stream);
    case DType::int32: return start_cast<Source, DType::int32>(destination, source, count, stream);
    case DType::int64: return start_cast<Source, DType::int64>(destination, source, count, stream);
    case DType::float16:
      return start_cast<Source, DType::float16>(destination, source, count, stream);
    case DType::bfloat16:
      return start_cast<Source, DType::bfloat16>(destination, source, count, stream);
    case DType::float32:
      return start_cast<Source, DType::float32>(destination, source, count, stream);
    case DType::float64:
      return start_cast<Source, DType::float64>(destination, source, count, stream);
  }
}

}  // namespace

Status pack(Address destination, Address source, const StridedPlan& plan, const Stream& stream) {
  constexpr const char* k_context = "packing";
  if (plan.count == 0) {
    return {};
  }
  const Result<ContextScope> scope = ContextScope::enter(stream.device());
  if (!scope) {
    return scope.error();
  }
  const auto queue = static_cast<hipStream_t>(stream.handle());
  switch (plan.unit) {
    case 1: start_pack<std::uint8_t>(destination, source, plan, queue); break;
    case 2: start_pack<std::uint16_t>(destination, source, plan, queue); break;
    case 4: start_pack<std::uint32_t>(destination, source, plan, queue); break;
    case 8: start_pack<std::uint64_t>(destination, source, plan, queue); break;
    default: start_pack<Unit16>(destination, source, plan, queue); break;
  }
  return launched(k_context);
}

Status unpack(Address destination, Address source, const StridedPlan& plan, const Stream& stream) {
  constexpr const char* k_context = "unpacking";
  if (plan.count == 0) {
    return {};
  }
  const Result<ContextScope> scope = ContextScope::enter(stream.device());
  if (!scope) {
    return scope.error();
  }
  const auto queue = static_cast<hipStream_t>(stream.handle());
  switch (plan.unit) {
    case 1: start_unpack<std::uint8_t>(destination, source, plan, queue); break;
    case 2: start_unpack<std::uint16_t>(destination, source, plan, queue); break;
    case 4: start_unpack<std::uint32_t>(destination, source, plan, queue); break;
    case 8: start_unpack<std::uint64_t>(destination, source, plan, queue); break;
    default: start_unpack<Unit16>(destination, source, plan, queue); break;
  }
  return launched(k_context);
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
  const auto queue = static_cast<hipStream_t>(stream.handle());
  const DType to = destination_dtype;
  switch (source_dtype) {
    case DType::int8: start_cast_from<DType::int8>(to, destination, source, count, queue); break;
    case DType::uint8: start_cast_from<DType::uint8>(to, destination, source, count, queue); break;
    case DType::int32: start_cast_from<DType::int32>(to, destination, source, count, queue); break;
    case DType::int64: start_cast_from<DType::int64>(to, destination, source, count, queue); break;
    case DType::float16:
      start_cast_from<DType::float16>(to, destination, source, count, queue);
      break;
    case DType::bfloat16:
      start_cast_from<DType::bfloat16>(to, destination, source, count, queue);
      break;
    case DType::float32:
      start_cast_from<DType::float32>(to, destination, source, count, queue);
      break;
    case DType::float64:
      start_cast_from<DType::float64>(to, destination, source, count, queue);
      break;
  }
  return launched("casting");
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
  const auto queue = static_cast<hipStream_t>(stream.handle());
  if (Status cleared = invoke(k_context, driver().value().fill_bytes_async, vendor_pointer(result),
                              static_cast<unsigned char>(0), sizeof(std::uint64_t),
                              static_cast<hipStream_t>(stream.handle()));
      !cleared) {
    return cleared;
  }
  const std::uint64_t words = (bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
  checksum_kernel<<<blocks_for(words), k_threads, 0, queue>>>(
      pointer_to<unsigned long long>(result), pointer_to<const unsigned char>(data), bytes);
  return launched(k_context);
}

}  // namespace monarch::native
