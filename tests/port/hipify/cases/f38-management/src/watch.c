#include <nvml.h>
#include <stdio.h>
int main(void) {
  nvmlDevice_t device;
  nvmlMemory_t memory;
  if (nvmlInit_v2() != NVML_SUCCESS) return 1;
  nvmlReturn_t r = nvmlDeviceGetHandleByIndex(0, &device);
  if (r == NVML_SUCCESS) r = nvmlDeviceGetMemoryInfo(device, &memory);
  printf("%d\n", (int)r);
  return nvmlShutdown();
}
