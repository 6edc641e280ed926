#include <cuda_runtime.h>
template <int N, class T> __global__ void kernel(T* p) { p[N] = T(); }
__global__ void simple(int* p) { *p = 0; }
int set(int n) {
  int r = cudaFuncSetAttribute(kernel<4, float>, cudaFuncAttributeMaxDynamicSharedMemorySize, n);
  r += cudaFuncSetAttribute(
      &kernel<(8 > 4), int>,
      cudaFuncAttributeMaxDynamicSharedMemorySize, n);
  r += cudaFuncSetCacheConfig(simple, cudaFuncCachePreferL1);
  return r + cudaFuncSetAttribute((const void*)simple, cudaFuncAttributePreferredSharedMemoryCarveout, 50);
}
