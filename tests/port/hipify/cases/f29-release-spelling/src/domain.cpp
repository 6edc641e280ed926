#include <cuda_runtime_api.h>

int domain(int device) {
  int value = -1;
  return cudaDeviceGetAttribute(&value, cudaDevAttrPciDomainId, device) == cudaSuccess ? value : -1;
}
