#pragma once
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
__device__ inline float widen(__nv_bfloat16 v) { return __bfloat162float(v); }
