#include <cuda.h>
int fd_of(CUdeviceptr p, size_t n) {
  int fd = -1;
  cuMemGetHandleForAddressRange(&fd, p, n, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
  return fd;
}
