#include <cstdlib>
#include <cstring>

// Messages between the processes carry the name of the call.
bool is_release(const char* message) { return std::strcmp(message, "cudaFreeHost") == 0; }

const char* devices() { return std::getenv("CUDA_VISIBLE_DEVICES"); }

const char* own() { return std::getenv("TRACE_LEVEL"); }

const char* text() { return "cuda is not available"; }
