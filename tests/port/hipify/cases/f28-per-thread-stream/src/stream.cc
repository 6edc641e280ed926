#include <cuda_runtime_api.h>

int clear(void* p, size_t n) { return cudaMemsetAsync(p, 0, n, cudaStreamPerThread); }
