#pragma once
#ifdef __CUDA_RUNTIME_H__
inline int checked(cudaError_t e) { return e == cudaSuccess; }
#endif
#if defined(__DRIVER_TYPES_H__) && !defined(CUBLAS_V2_H_)
inline const char* text(cudaError_t e) { return cudaGetErrorString(e); }
#endif
