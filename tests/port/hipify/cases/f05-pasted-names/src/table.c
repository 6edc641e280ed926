#include <cuda.h>
#include <dlfcn.h>

#define ENTRY(name) CUresult (*name)(CUdevice *, int)
#define LOOKUP(lib, name) dlsym(lib, "cu" #name)
#define CALL(suffix) cu ## suffix
#define PLAIN(a, b) a ## b

struct entries { ENTRY(get); };

int load(struct entries *e, void *lib) {
  *(void **)&e->get = LOOKUP(lib, DeviceGet);
  return CALL(Init)(0) + PLAIN(1, 2);
}
