#include <cuda.h>
#include <inttypes.h>
#include <stdio.h>
int inside(CUdeviceptr base, size_t n, CUdeviceptr p) {
  unsigned long page = p / 4096;
  printf("0x%llx %lu\n", p, page);
  return p >= base && p < base + n && (p & 15) == 0;
}
int of(void *host, CUdeviceptr *out) { *out = (CUdeviceptr)(uintptr_t)host; return *out != 0; }
