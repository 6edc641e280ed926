#pragma once
#include <cuda/barrier>
#include <cuda/std/cstdint>

using Scope = cuda::barrier<cuda::thread_scope_block>;

__device__ inline cuda::std::uint32_t arrive(Scope& b) {
  b.arrive_and_wait();
  return 0;
}
namespace app { namespace cuda { int own(); } }
