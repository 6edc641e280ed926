#pragma once
#include <cuda_runtime.h>

namespace pool {
struct Stats {
  unsigned long cudaMallocHost;
  int cudaEvent_t;
};
int cudaStreamSynchronize(const char* who);
}  // namespace pool
