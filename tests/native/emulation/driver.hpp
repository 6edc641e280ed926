// Runs kernels on the CPU, every thread of a block as a thread: what the kernels compute can be
// tested, and their accesses watched by sanitizers, on a machine without a GPU. Blocks run one
// after the other, so this says nothing about races between them.
#pragma once

#include <atomic>
#include <barrier>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

#include "monarch/native/address.hpp"
#include "monarch/native/error.hpp"

#define __global__
#define __device__
#define __shared__ static

struct Index {
  unsigned x;
};

inline thread_local Index blockIdx, threadIdx, blockDim, gridDim;
inline thread_local std::barrier<>* block_barrier;

inline void __syncthreads() { block_barrier->arrive_and_wait(); }

inline void atomicAdd(unsigned long long* into, unsigned long long value) {
  std::atomic_ref(*into).fetch_add(value);
}

using CUresult = int;
using CUstream = void*;
using cudaStream_t = void*;
using cudaError_t = int;
inline constexpr CUresult CUDA_SUCCESS = 0;
inline cudaError_t cudaGetLastError() { return CUDA_SUCCESS; }

inline void run_emulated(unsigned blocks, unsigned threads, const std::function<void()>& kernel) {
  std::barrier<> barrier(threads);
  std::vector<std::jthread> block;
  for (unsigned thread = 0; thread < threads; ++thread) {
    block.emplace_back([&, thread] {
      block_barrier = &barrier;
      threadIdx.x = thread;
      blockDim.x = threads;
      gridDim.x = blocks;
      for (unsigned at = 0; at < blocks; ++at) {
        blockIdx.x = at;
        kernel();
        barrier.arrive_and_wait();
      }
    });
  }
}

template <class Kernel>
auto emulated(Kernel kernel, unsigned blocks, unsigned threads, int, void*) {
  return [=](auto... arguments) { run_emulated(blocks, threads, [&] { kernel(arguments...); }); };
}

namespace monarch::native {

struct Driver {
  int fill_bytes_async{};
};

inline const Result<Driver>& driver() {
  static const Result<Driver> table = Driver{};
  return table;
}

inline Error driver_error(CUresult, std::string_view call) {
  return {ErrorCode::device_failure, "emulated", std::string(call)};
}

inline std::uint64_t vendor_pointer(Address address) { return address.value; }

inline Status invoke(std::string_view, int, std::uint64_t address, unsigned char value,
                     std::size_t bytes, CUstream) {
  std::memset(reinterpret_cast<void*>(address), value, bytes);
  return {};
}

class ContextScope {
 public:
  static Result<ContextScope> enter(int) { return ContextScope(); }
};

}  // namespace monarch::native
