/* Größe in Bytes */
#include <cuda_runtime_api.h>
int size(void **p) { return cudaMalloc(p, 16); } /* © */
