#include<cuda_runtime.h>
#	include	<cuda.h>  // driver
# /* odd */ include /* too */ "cuda_fp16.h"
#include "lib/cuda.h"
#include "lib/helper_cuda.h"
#include <cuda_settings.h>

float value() { return static_cast<float>(helper() + own_cuda() + setting()); }
