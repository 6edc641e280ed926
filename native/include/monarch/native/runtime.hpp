#pragma once

#include <string>
#include <string_view>

#include "monarch/native/error.hpp"

namespace monarch::native {

/// "cuda" or "rocm": what this library was built for.
std::string_view platform_name();

/// Versions as the vendor encodes them (CUDA 13000, HIP 60443484).
struct RuntimeVersions {
  int compiled{};
  int runtime{};
};

/// Needs neither a driver nor a device.
Result<RuntimeVersions> runtime_versions();

/// Number of devices the runtime library sees; 0 where it finds no driver or no device.
int runtime_device_count();

struct DriverInfo {
  std::string library;
  int version{};
};

/// The driver library in use. Error `library_missing` says which file was looked for and why it did
/// not load; `symbol_missing` which entry point it lacks.
Result<DriverInfo> driver_info();

}  // namespace monarch::native
