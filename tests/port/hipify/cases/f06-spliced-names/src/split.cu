#include <cuda_runtime.h>

#define CHECK(call) \
  do { if ((call) != cuda\
Success) return 1; } while (0)

int fill(void* p, size_t n) {
  CHECK(cudaMem\
\
set(p, 0, n));
  return 0;
}
