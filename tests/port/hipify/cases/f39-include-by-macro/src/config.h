#define DRIVER_HEADER <cuda.h>
#define RUNTIME_HEADER "cuda_runtime_api.h"
