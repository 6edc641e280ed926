#pragma once

// The one list of driver entry points: member of the table, and the vendor's function. The vendor's
// header may turn a name into a versioned one (…_v2); the symbol looked up is the name after that,
// so that type and symbol always belong together.
#define MONARCH_DRIVER_ENTRIES(ENTRY)                       \
  ENTRY(init, hipInit)                                       \
  ENTRY(driver_version, hipDriverGetVersion)                 \
  ENTRY(device_count, hipGetDeviceCount)                     \
  ENTRY(device_get, hipDeviceGet)                            \
  ENTRY(device_name, hipDeviceGetName)                       \
  ENTRY(device_uuid, hipDeviceGetUuid)                       \
  ENTRY(device_pci_bus_id, hipDeviceGetPCIBusId)             \
  ENTRY(device_total_memory, hipDeviceTotalMem)              \
  ENTRY(device_attribute, hipDeviceGetAttribute)             \
  ENTRY(device_can_access_peer, hipDeviceCanAccessPeer)      \
  ENTRY(primary_context_retain, hipDevicePrimaryCtxRetain)   \
  ENTRY(context_get_current, hipCtxGetCurrent)               \
  ENTRY(context_set_current, hipCtxSetCurrent)               \
  ENTRY(context_synchronize, hipCtxSynchronize)              \
  ENTRY(memory_info, hipMemGetInfo)                          \
  ENTRY(memory_allocate, hipMalloc)                        \
  ENTRY(memory_free, hipFree)                             \
  ENTRY(host_allocate, hipHostMalloc)                      \
  ENTRY(host_free, hipHostFree)                           \
  ENTRY(copy_to_device, hipMemcpyHtoD)                       \
  ENTRY(copy_to_device_async, hipMemcpyHtoDAsync)            \
  ENTRY(copy_to_host, hipMemcpyDtoH)                         \
  ENTRY(copy_to_host_async, hipMemcpyDtoHAsync)              \
  ENTRY(copy_on_device, hipMemcpyDtoD)                       \
  ENTRY(copy_on_device_async, hipMemcpyDtoDAsync)            \
  ENTRY(fill_bytes, hipMemsetD8)                             \
  ENTRY(fill_bytes_async, hipMemsetD8Async)                  \
  ENTRY(stream_create, hipStreamCreateWithPriority)          \
  ENTRY(stream_destroy, hipStreamDestroy)                    \
  ENTRY(stream_synchronize, hipStreamSynchronize)            \
  ENTRY(stream_query, hipStreamQuery)                        \
  ENTRY(stream_wait_event, hipStreamWaitEvent)               \
  ENTRY(event_create, hipEventCreateWithFlags)                        \
  ENTRY(event_destroy, hipEventDestroy)                      \
  ENTRY(event_record, hipEventRecord)                        \
  ENTRY(event_synchronize, hipEventSynchronize)              \
  ENTRY(event_query, hipEventQuery)                          \
  ENTRY(event_elapsed, hipEventElapsedTime)                  \
  ENTRY(virtual_granularity, hipMemGetAllocationGranularity) \
  ENTRY(virtual_create, hipMemCreate)                        \
  ENTRY(virtual_release, hipMemRelease)                      \
  ENTRY(virtual_export, hipMemExportToShareableHandle)       \
  ENTRY(virtual_import, hipMemImportFromShareableHandle)     \
  ENTRY(virtual_reserve, hipMemAddressReserve)               \
  ENTRY(virtual_free, hipMemAddressFree)                     \
  ENTRY(virtual_map, hipMemMap)                              \
  ENTRY(virtual_unmap, hipMemUnmap)                          \
  ENTRY(virtual_set_access, hipMemSetAccess)
