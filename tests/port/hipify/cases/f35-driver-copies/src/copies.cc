#include <cuda.h>
CUresult fill(CUdeviceptr p, size_t n, CUstream s) {
  CUresult r = cuMemsetD32Async(p, 7u, n, s);
  if (r == CUDA_SUCCESS)
    r = cuMemcpyAsync(
        p + 64, p, n, s);
  return r == CUDA_SUCCESS ? cuMemcpy(p, p + 4, 4) : r;
}
