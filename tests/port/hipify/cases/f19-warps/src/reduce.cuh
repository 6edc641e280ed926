#pragma once
#include <cuda_runtime.h>

constexpr int kWarp = 32;

template <class T>
__device__ T sum(T v) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xFFFFFFFFu, v, o);
  return v;
}

__device__ inline unsigned voters(bool yes, unsigned mask) {
  unsigned all = __ballot_sync(mask, yes);
  return __popc(all);
}

__device__ inline int lane() { return threadIdx.x % 32; }
__device__ inline int group() { return threadIdx.x >> 5; }
__host__ inline int padded(int n) { return (n + 255) & ~255; }
