#include <dlfcn.h>
#include <stddef.h>

static const char *candidates[] = {
    "/usr/lib/x86_64-linux-gnu/libcuda.so",
    "libcuda.so.1",
    NULL,
};

void *open_driver(void) {
  for (size_t i = 0; candidates[i] != NULL; ++i) {
    void *handle = dlopen(candidates[i], RTLD_NOW);
    if (handle != NULL) return dlsym(handle,
                                     "cuStreamSynchronize");
  }
  return NULL;
}

const char *other_library(void) { return "libcrypto.so.3"; }
