#include "cooperative_groups.h"
__device__ inline void all() { cooperative_groups::this_thread_block().sync(); }
