#include "kernel_launch.cuh"
#include "monarch/native/checksum.hpp"

namespace monarch::native::launch {
inline namespace checksum_kernels {

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

}  // namespace checksum_kernels

int checksum(void* result, const void* data, std::size_t bytes, void* stream) {
  const std::uint64_t words = (bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
  checksum_kernel<<<blocks_for(words), k_threads, 0, static_cast<cudaStream_t>(stream)>>>(
      static_cast<unsigned long long*>(result), static_cast<const unsigned char*>(data), bytes);
  return launched();
}

}  // namespace monarch::native::launch
