#include <cuda.h>
#include <cuda_runtime_api.h>

#if !defined(CUDART_VERSION) || CUDART_VERSION < 11000
#error "too old"
#endif

int flags() {
#if CUDA_VERSION >= 12030 && \
    defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
  return 3;
#else
  return CUDART_VERSION / 1000;
#endif
}
