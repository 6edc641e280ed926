#pragma once
#include <cuda_runtime.h>

#define COMMIT() __asm__ __volatile__("cp.async.commit_group;\n" ::)

__device__ __forceinline__ void copy16(unsigned to, const void* from) {
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(to), "l"(from));
}

__device__ __forceinline__ int plain(int assembled) { return assembled; }
