#include <cuda.h>
int shareable(int device, CUmemAllocationProp *prop) {
  CUmemAllocationProp fresh = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
  fresh.location.id = device;
  *prop = fresh;
  return prop->requestedHandleTypes != 0;
}
