#pragma once
#include <cudaTypedefs.h>
struct Driver {
  PFN_cuMemAddressReserve_v10020 reserve;
  PFN_cuStreamWaitValue32 wait;
};
