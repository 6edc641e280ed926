__global__ void add(float* a) { a[blockIdx.x] += 1.0f; }
