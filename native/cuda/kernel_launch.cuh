#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "launch.hpp"

// What all kernels share. None of them knows the width of a warp: threads cooperate through shared
// memory only. Kernels are launched through the runtime library, with which the compiler registers
// them; it works in the current context, which is the primary one that ContextScope entered, and
// its streams are the driver's. They are in a named namespace: into the names of an unnamed one
// nvcc writes a hash of the file's path, and a wheel built in another folder would have other bytes.
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
  const std::uint64_t blocks = threads / k_threads + (threads % k_threads != 0 ? 1 : 0);
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks > k_most_blocks ? k_most_blocks : blocks);
}

/// The outcome of the launch just made by this thread.
inline int launched() { return static_cast<int>(cudaGetLastError()); }

}  // namespace monarch::native
