#pragma once

#include "driver.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "monarch/native/address.hpp"
#include "monarch/native/error.hpp"

// What all kernels share. None of them knows the width of a warp: threads cooperate through shared
// memory only. Kernels are launched through the runtime library, with which the compiler registers
// them; it works in the current context, which is the primary one that ContextScope entered, and
// its streams are the driver's.
namespace monarch::native {

constexpr unsigned k_threads = 256;
constexpr std::uint64_t k_most_blocks = 65535;

__device__ inline std::uint64_t first_index() {
  return static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ inline std::uint64_t index_step() {
  return static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
}

inline unsigned blocks_for(std::uint64_t threads) {
  const std::uint64_t blocks = (threads + k_threads - 1) / k_threads;
  return static_cast<unsigned>(std::clamp<std::uint64_t>(blocks, 1, k_most_blocks));
}

template <class Pointee>
Pointee* pointer_to(Address address) {
  return reinterpret_cast<Pointee*>(address.value);
}

/// The outcome of the launch just made by this thread.
inline Status launched(const char* context) {
  const cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess) {
    return {};
  }
  return driver_error(static_cast<CUresult>(status), context);
}

}  // namespace monarch::native
