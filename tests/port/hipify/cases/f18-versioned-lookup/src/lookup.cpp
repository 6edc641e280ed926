#include <cuda.h>

using fn = CUresult (*)(CUdeviceptr, size_t);

fn find() {
  void* address = nullptr;
  CUdriverProcAddressQueryResult status;
  if (cuGetProcAddress("cuMemAddressFree",
                       &address,
                       10020,
                       CU_GET_PROC_ADDRESS_LEGACY_STREAM,
                       &status) != CUDA_SUCCESS)
    return nullptr;
  return reinterpret_cast<fn>(address);
}
