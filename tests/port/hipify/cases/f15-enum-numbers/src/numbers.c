#include <cuda.h>
#include <cuda_runtime_api.h>

int clock_rate(CUdevice device) {
  int v = 0;
  cuDeviceGetAttribute(&v, 13, device);
  return v;
}

int on_device(const struct cudaPointerAttributes *a) { return a->type == 2; }

enum { RATE = CU_DEVICE_ATTRIBUTE_CLOCK_RATE };
_Static_assert(CU_DEVICE_ATTRIBUTE_CLOCK_RATE == 13, "stored");

int copy(void *a, const void *b, size_t n) { return cudaMemcpy(a, b, n, 3); }
