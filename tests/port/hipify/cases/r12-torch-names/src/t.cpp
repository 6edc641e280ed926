#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime.h>
cudaStream_t current() { return at::cuda::getCurrentCUDAStream().stream(); }
void check() { C10_CUDA_CHECK(cudaGetLastError()); const c10::cuda::OptionalCUDAGuard guard; (void)guard; }
