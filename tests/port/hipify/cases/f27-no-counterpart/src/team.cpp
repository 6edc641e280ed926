#include <cuda.h>

CUresult bind(CUmemGenericAllocationHandle team,
              CUdevice d) {
  CUmemFabricHandle exported;
  (void)exported;
  return ::cuMulticastAddDevice(team, d);
}

unsigned kinds() {
  return CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_FABRIC;
}
