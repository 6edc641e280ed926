#include <cuda.h>
#include <cuda_runtime_api.h>

const char* name(int code) {
  switch (code) {
    case CUDA_ERROR_OUT_OF_MEMORY: return "driver";
    case cudaErrorMemoryAllocation: return "runtime";
    default: return "?";
  }
}

struct Entry { const char* name; void* address; };
const Entry entries[] = {
    {"a", reinterpret_cast<void*>(&cuCtxSynchronize)},
    {"b", reinterpret_cast<void*>(&cudaDeviceSynchronize)},
};
