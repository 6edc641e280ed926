#include <cuda_runtime_api.h>

int count_cudaMemcpy_calls = 0;
static bool cudaMemcpyTraced = false;
struct cudaFreeList { int used; };

int copy(void* to, const void* from, size_t bytes) {
  ++count_cudaMemcpy_calls;
  cudaMemcpyTraced = true;
  cudaFreeList list{0};
  return list.used + static_cast<int>(cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
}
