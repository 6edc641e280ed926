#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "monarch/native/error.hpp"

namespace monarch::native {

struct DeviceInfo {
  int ordinal{};
  std::string name;
  std::array<std::uint8_t, 16> uuid{};
  std::string pci_bus_id;
  std::size_t total_memory{};
  int multiprocessors{};
  int wave_size{};
  int compute_major{};
  int compute_minor{};
  int max_threads_per_block{};
  int max_shared_memory_per_block{};
  int l2_cache_bytes{};
};

struct MemoryInfo {
  std::size_t free{};
  std::size_t total{};
};

/// Devices the driver offers; 0 when it finds none. Error where the driver library is missing.
Result<int> device_count();

/// Error `invalid_argument` for an ordinal outside `device_count()`.
Result<DeviceInfo> device_info(int ordinal);
Result<MemoryInfo> memory_info(int ordinal);
Result<bool> can_access_peer(int ordinal, int peer);

/// Blocks until all work given to the device by this process is done.
Status synchronize_device(int ordinal);

}  // namespace monarch::native
