#include <cuda.h>
#include <cuda_runtime_api.h>
typedef void (CUDA_CB *host_fn)(void *);
typedef void (CUDART_CB *stream_fn)(cudaStream_t, cudaError_t, void *);
void CUDART_CB done(cudaStream_t s, cudaError_t e, void *d);
