#include "monarch/native/kernels.hpp"

#include "kernel_launch.cuh"

namespace monarch::native {
namespace {

struct alignas(16) Unit16 {
  std::uint64_t low;
  std::uint64_t high;
};

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

template <class Unit>
void start_pack(Address destination, Address source, const StridedPlan& plan, cudaStream_t stream) {
  pack_kernel<Unit><<<blocks_for(plan.count), k_threads, 0, stream>>>(
      pointer_to<Unit>(destination), pointer_to<const unsigned char>(source), plan);
}

template <class Unit>
void start_unpack(Address destination, Address source, const StridedPlan& plan,
                  cudaStream_t stream) {
  unpack_kernel<Unit><<<blocks_for(plan.count), k_threads, 0, stream>>>(
      pointer_to<unsigned char>(destination), pointer_to<const Unit>(source), plan);
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
  const auto queue = static_cast<cudaStream_t>(stream.handle());
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
  const auto queue = static_cast<cudaStream_t>(stream.handle());
  switch (plan.unit) {
    case 1: start_unpack<std::uint8_t>(destination, source, plan, queue); break;
    case 2: start_unpack<std::uint16_t>(destination, source, plan, queue); break;
    case 4: start_unpack<std::uint32_t>(destination, source, plan, queue); break;
    case 8: start_unpack<std::uint64_t>(destination, source, plan, queue); break;
    default: start_unpack<Unit16>(destination, source, plan, queue); break;
  }
  return launched(k_context);
}

}  // namespace monarch::native
