#include <cuda_runtime.h>
__constant__ float table[8];
__device__ int counter;
template <class T> struct Holder { static T* at; };

int fill(const float* h, int* out, void** address, cudaStream_t s) {
  int r = cudaMemcpyToSymbol(table, h, sizeof(table));
  r += cudaMemcpyFromSymbolAsync(out,
                                 counter, sizeof *out, 0,
                                 cudaMemcpyDeviceToHost, s);
  size_t n = 0;
  r += cudaGetSymbolSize(&n, (counter));
  return r + cudaGetSymbolAddress(address, counter);
}
