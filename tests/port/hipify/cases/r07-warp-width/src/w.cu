#include <cuda_runtime.h>
__global__ void k(float* p) {
  int lane = threadIdx.x & 31;
  int w = threadIdx.x >> 5;
  float v = __shfl_down_sync(0xffffffff, p[threadIdx.x], 16);
  if (lane == 0) p[w] = v;
}
