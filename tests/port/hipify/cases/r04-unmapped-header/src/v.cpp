#include <vector_functions.h>
#include <cuda_egl_interop.h>
int n;
