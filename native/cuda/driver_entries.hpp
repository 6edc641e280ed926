#pragma once

// The one list of driver entry points: member of the table, and the vendor's function. The vendor's
// header may turn a name into a versioned one (…_v2); the symbol looked up is the name after that,
// so that type and symbol always belong together.
#define MONARCH_DRIVER_ENTRIES(ENTRY)                       \
  ENTRY(init, cuInit)                                       \
  ENTRY(driver_version, cuDriverGetVersion)                 \
  ENTRY(device_count, cuDeviceGetCount)                     \
  ENTRY(device_get, cuDeviceGet)                            \
  ENTRY(device_name, cuDeviceGetName)                       \
  ENTRY(device_uuid, cuDeviceGetUuid)                       \
  ENTRY(device_pci_bus_id, cuDeviceGetPCIBusId)             \
  ENTRY(device_total_memory, cuDeviceTotalMem)              \
  ENTRY(device_attribute, cuDeviceGetAttribute)             \
  ENTRY(device_can_access_peer, cuDeviceCanAccessPeer)      \
  ENTRY(primary_context_retain, cuDevicePrimaryCtxRetain)   \
  ENTRY(context_get_current, cuCtxGetCurrent)               \
  ENTRY(context_set_current, cuCtxSetCurrent)               \
  ENTRY(context_synchronize, cuCtxSynchronize)              \
  ENTRY(memory_info, cuMemGetInfo)                          \
  ENTRY(memory_allocate, cuMemAlloc)                        \
  ENTRY(memory_free, cuMemFree)                             \
  ENTRY(host_allocate, cuMemHostAlloc)                      \
  ENTRY(host_free, cuMemFreeHost)                           \
  ENTRY(copy_to_device, cuMemcpyHtoD)                       \
  ENTRY(copy_to_device_async, cuMemcpyHtoDAsync)            \
  ENTRY(copy_to_host, cuMemcpyDtoH)                         \
  ENTRY(copy_to_host_async, cuMemcpyDtoHAsync)              \
  ENTRY(copy_on_device, cuMemcpyDtoD)                       \
  ENTRY(copy_on_device_async, cuMemcpyDtoDAsync)            \
  ENTRY(fill_bytes, cuMemsetD8)                             \
  ENTRY(fill_bytes_async, cuMemsetD8Async)                  \
  ENTRY(stream_create, cuStreamCreateWithPriority)          \
  ENTRY(stream_destroy, cuStreamDestroy)                    \
  ENTRY(stream_synchronize, cuStreamSynchronize)            \
  ENTRY(stream_query, cuStreamQuery)                        \
  ENTRY(stream_wait_event, cuStreamWaitEvent)               \
  ENTRY(event_create, cuEventCreate)                        \
  ENTRY(event_destroy, cuEventDestroy)                      \
  ENTRY(event_record, cuEventRecord)                        \
  ENTRY(event_synchronize, cuEventSynchronize)              \
  ENTRY(event_query, cuEventQuery)                          \
  ENTRY(event_elapsed, cuEventElapsedTime)                  \
  ENTRY(virtual_granularity, cuMemGetAllocationGranularity) \
  ENTRY(virtual_create, cuMemCreate)                        \
  ENTRY(virtual_release, cuMemRelease)                      \
  ENTRY(virtual_export, cuMemExportToShareableHandle)       \
  ENTRY(virtual_import, cuMemImportFromShareableHandle)     \
  ENTRY(virtual_reserve, cuMemAddressReserve)               \
  ENTRY(virtual_free, cuMemAddressFree)                     \
  ENTRY(virtual_map, cuMemMap)                              \
  ENTRY(virtual_unmap, cuMemUnmap)                          \
  ENTRY(virtual_set_access, cuMemSetAccess)
