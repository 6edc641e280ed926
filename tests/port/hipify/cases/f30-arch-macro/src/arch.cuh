#pragma once
#ifdef __CUDACC__
#define BOTH __host__ __device__
#else
#define BOTH
#endif

#if __CUDA_ARCH__ < 700 && \
    !defined(__CUDA_ARCH_FEAT_SM90_ALL)
BOTH inline int old() { return 1; }
#endif

BOTH inline int side() {
#ifdef __CUDA_ARCH__
  return __CUDA_ARCH__ / 10;
#else
  return 0;
#endif
}
