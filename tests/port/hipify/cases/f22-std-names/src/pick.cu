#include <cuda_runtime.h>
#include <algorithm>
namespace boost_std { inline int max(int a, int b) { return a > b ? a : b; } }
int pick(int a, int b) { return std::max({a, b, 1}) + boost_std::max(a, b); }
const char* note = "std::max(a, b)";
int wait() { return cudaDeviceSynchronize(); }
