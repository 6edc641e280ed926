#include <nccl.h>
int go(const float* a, float* b, ncclComm_t c) { return ncclAllReduce(a, b, 4, ncclFloat32, ncclSum, c, 0); }
