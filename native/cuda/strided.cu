#include "kernel_launch.cuh"

namespace monarch::native::launch {
inline namespace strided_kernels {

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
void start_pack(void* destination, const void* source, const StridedPlan& plan,
                cudaStream_t stream) {
  pack_kernel<Unit><<<blocks_for(plan.count), k_threads, 0, stream>>>(
      static_cast<Unit*>(destination), static_cast<const unsigned char*>(source), plan);
}

template <class Unit>
void start_unpack(void* destination, const void* source, const StridedPlan& plan,
                  cudaStream_t stream) {
  unpack_kernel<Unit><<<blocks_for(plan.count), k_threads, 0, stream>>>(
      static_cast<unsigned char*>(destination), static_cast<const Unit*>(source), plan);
}

}  // namespace strided_kernels

int pack(void* destination, const void* source, const StridedPlan& plan, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  switch (plan.unit) {
    case 1: start_pack<std::uint8_t>(destination, source, plan, queue); break;
    case 2: start_pack<std::uint16_t>(destination, source, plan, queue); break;
    case 4: start_pack<std::uint32_t>(destination, source, plan, queue); break;
    case 8: start_pack<std::uint64_t>(destination, source, plan, queue); break;
    default: start_pack<Unit16>(destination, source, plan, queue); break;
  }
  return launched();
}

int unpack(void* destination, const void* source, const StridedPlan& plan, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  switch (plan.unit) {
    case 1: start_unpack<std::uint8_t>(destination, source, plan, queue); break;
    case 2: start_unpack<std::uint16_t>(destination, source, plan, queue); break;
    case 4: start_unpack<std::uint32_t>(destination, source, plan, queue); break;
    case 8: start_unpack<std::uint64_t>(destination, source, plan, queue); break;
    default: start_unpack<Unit16>(destination, source, plan, queue); break;
  }
  return launched();
}

}  // namespace monarch::native::launch
