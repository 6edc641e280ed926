#include <cuda.h>
#include <cstdio>
#include <cstdint>

CUdeviceptr align(CUdeviceptr p, size_t a) { return (p + a - 1) & ~static_cast<CUdeviceptr>(a - 1); }

size_t distance(CUdeviceptr a, CUdeviceptr b) { return a > b ? a - b : b - a; }

int show(CUdeviceptr p) {
  if (p % 256 != 0) return 1;
  return std::printf("%llx\n", (unsigned long long)p);
}

int get(CUdeviceptr* out, size_t n) { return cuMemAlloc(out, n); }
int put(CUdeviceptr p) { return cuMemFree(p) + cuMemsetD8(p + 16, 0, 8); }
