# include "nccl.h"
#include <nccl.h>
ncclResult_t sum(const void* a, void* b, size_t n, ncclComm_t c, cudaStream_t s) {
  return ncclAllReduce(a, b, n, ncclFloat, ncclSum, c, s);
}
