#include <cuda.h>
static inline const char *name_of(CUresult r) {
  const char *text = 0;
  if (cuGetErrorString(r,
                       &text) != CUDA_SUCCESS) return "?";
  return cuGetErrorName(r, &text) == CUDA_SUCCESS ? text : "?";
}
