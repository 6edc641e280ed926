#include <cuda_runtime.h>
#include "check.h"
int all(cudaError_t e) { return checked(e) + (text(e) != nullptr); }
