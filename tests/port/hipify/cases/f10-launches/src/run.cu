#include <cuda_runtime.h>
#include <vector>

template <class T, bool B>
__global__ void step(T* p) { if (B) p[threadIdx.x] = T{}; }

template <template <class> class Box, class T>
__global__ void boxed(Box<T>* p) { p[0] = Box<T>{}; }
template <class T> struct Cell { T v; };

#define RUN(k, ...) \
  k<<<1, 32>>>(__VA_ARGS__)

void all(float* f, Cell<Cell<int>>* c, cudaStream_t s, int n) {
  step<float, (3 > 2)><<<n >> 1, 64>>>(f);
  step<float, (sizeof(int) >= 4)>
      <<<dim3(1),
         dim3(1, 2), 0, s>>>(f);
  boxed<Cell, Cell<int>><<<1, 1>>>(c);
  RUN((step<float, false>), f);
  /* step<<<1, 1>>>(f) */ const char* t = "boxed<<<1, 2>>>(c)"; (void)t;
}
