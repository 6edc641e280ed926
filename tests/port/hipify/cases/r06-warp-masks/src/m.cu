#include <cuda_runtime.h>
__global__ void k(int* p) {
  int v = p[threadIdx.x];
  v = __shfl_xor_sync(0xffffffff, v, 1);
  unsigned m = __activemask();
  v = __shfl_sync(m, v, 0);
  p[threadIdx.x] = v;
}
