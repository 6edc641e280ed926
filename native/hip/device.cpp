#include "monarch/native/device.hpp"

#include <cstring>

#include "driver.hpp"

namespace monarch::native {
namespace {

Result<hipDevice_t> device_handle(const Driver& table, int ordinal) {
  const Result<int> count = device_count();
  if (!count) {
    return count.error();
  }
  if (ordinal < 0 || ordinal >= count.value()) {
    return Error{ErrorCode::invalid_argument,
                 "no device " + std::to_string(ordinal) + "; this process sees " +
                     std::to_string(count.value()),
                 "choosing a device"};
  }
  hipDevice_t device{};
  if (Status got = invoke("getting the device", table.device_get, &device, ordinal); !got) {
    return got.error();
  }
  return device;
}

struct WantedAttribute {
  int DeviceInfo::* member;
  hipDeviceAttribute_t attribute;
};

constexpr WantedAttribute k_attributes[] = {
    {&DeviceInfo::multiprocessors, hipDeviceAttributeMultiprocessorCount},
    {&DeviceInfo::wave_size, hipDeviceAttributeWarpSize},
    {&DeviceInfo::compute_major, hipDeviceAttributeComputeCapabilityMajor},
    {&DeviceInfo::compute_minor, hipDeviceAttributeComputeCapabilityMinor},
    {&DeviceInfo::max_threads_per_block, hipDeviceAttributeMaxThreadsPerBlock},
    {&DeviceInfo::max_shared_memory_per_block, hipDeviceAttributeMaxSharedMemoryPerBlock},
    {&DeviceInfo::l2_cache_bytes, hipDeviceAttributeL2CacheSize},
};

}  // namespace

Result<int> device_count() {
  const Result<Driver>& table = driver();
  if (!table) {
    return table.error();
  }
  int count = 0;
  const hipError_t status = table.value().device_count(&count);
  if (status == hipErrorNoDevice || status == hipErrorNotInitialized) {
    return 0;  // initialising found no device, which leaves the driver uninitialised
  }
  if (status != hipSuccess) {
    return driver_error(status, "counting devices");
  }
  return count;
}

Result<DeviceInfo> device_info(int ordinal) {
  const Result<Driver>& loaded = driver();
  if (!loaded) {
    return loaded.error();
  }
  const Driver& table = loaded.value();
  const Result<hipDevice_t> device = device_handle(table, ordinal);
  if (!device) {
    return device.error();
  }
  DeviceInfo info;
  info.ordinal = ordinal;
  char text[256] = {};
  if (Status got = invoke("reading the device's name", table.device_name, text,
                          static_cast<int>(sizeof(text)) - 1, device.value());
      !got) {
    return got.error();
  }
  info.name = text;
  char bus[32] = {};
  if (Status got = invoke("reading the device's bus address", table.device_pci_bus_id, bus,
                          static_cast<int>(sizeof(bus)) - 1, device.value());
      !got) {
    return got.error();
  }
  info.pci_bus_id = bus;
  hipUUID uuid{};
  if (Status got = invoke("reading the device's UUID", table.device_uuid, &uuid, device.value());
      !got) {
    return got.error();
  }
  static_assert(sizeof(uuid.bytes) == sizeof(info.uuid));
  std::memcpy(info.uuid.data(), uuid.bytes, sizeof(uuid.bytes));
  if (Status got = invoke("reading the device's memory size", table.device_total_memory,
                          &info.total_memory, device.value());
      !got) {
    return got.error();
  }
  for (const WantedAttribute& wanted : k_attributes) {
    if (Status got = invoke("reading a device attribute", table.device_attribute,
                            &(info.*wanted.member), wanted.attribute, device.value());
        !got) {
      return got.error();
    }
  }
  return info;
}

Result<MemoryInfo> memory_info(int ordinal) {
  const Result<ContextScope> scope = ContextScope::enter(ordinal);
  if (!scope) {
    return scope.error();
  }
  MemoryInfo info;
  if (Status got =
          invoke("reading free memory", driver().value().memory_info, &info.free, &info.total);
      !got) {
    return got.error();
  }
  return info;
}

Result<bool> can_access_peer(int ordinal, int peer) {
  const Result<Driver>& loaded = driver();
  if (!loaded) {
    return loaded.error();
  }
  const Driver& table = loaded.value();
  const Result<hipDevice_t> from = device_handle(table, ordinal);
  if (!from) {
    return from.error();
  }
  const Result<hipDevice_t> to = device_handle(table, peer);
  if (!to) {
    return to.error();
  }
  int possible = 0;
  if (Status got = invoke("asking for peer access", table.device_can_access_peer, &possible,
                          from.value(), to.value());
      !got) {
    return got.error();
  }
  return possible != 0;
}

Status synchronize_device(int ordinal) {
  const Result<ContextScope> scope = ContextScope::enter(ordinal);
  if (!scope) {
    return scope.error();
  }
  return invoke("waiting for the device", driver().value().context_synchronize);
}

}  // namespace monarch::native
