#pragma once
__device__ inline int where() { return threadIdx.x; }
