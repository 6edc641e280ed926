#include "driver.hpp"

#include <dlfcn.h>

#include <mutex>
#include <vector>

#include "monarch/native/device.hpp"
#include "monarch/native/runtime.hpp"
#include "platform.hpp"

// Two steps, so that a name the vendor's header defines as a macro is replaced before it is quoted.
#define MONARCH_QUOTE_EXPANDED(text) #text
#define MONARCH_QUOTE(text) MONARCH_QUOTE_EXPANDED(text)

namespace monarch::native {
namespace {

template <class Function>
void look_up(void* library, const char* symbol, Function& function, std::string& missing) {
  void* found = dlsym(library, symbol);
  if (found == nullptr) {
    missing += missing.empty() ? symbol : std::string(", ") + symbol;
  }
  function = reinterpret_cast<Function>(found);
}

Result<Driver> load_driver() {
  Result<LoadedLibrary> library = open_driver_library();
  if (!library) {
    return library.error();
  }
  Driver table;
  table.library = library.value().path;
  table.handle = library.value().handle;
  std::string missing;
#define MONARCH_DRIVER_LOOK_UP(member, function) \
  look_up(table.handle, MONARCH_QUOTE(function), table.member, missing);
  MONARCH_DRIVER_ENTRIES(MONARCH_DRIVER_LOOK_UP)
#undef MONARCH_DRIVER_LOOK_UP
  if (!missing.empty()) {
    return Error{ErrorCode::symbol_missing,
                 table.library + " lacks " + missing + "; a newer driver is needed",
                 "loading the driver"};
  }
  // Without a device HIP 5 calls it invalid, and CUDA says that there is none; counting tells zero.
  const CUresult status = table.init(0);
  if (status != CUDA_SUCCESS && status != CUDA_ERROR_NO_DEVICE && status != CUDA_ERROR_INVALID_DEVICE) {
    return driver_error(status, "initialising the driver");
  }
  return table;
}

Result<CUcontext> primary_context(const Driver& table, int device) {
  static std::mutex mutex;
  static std::vector<CUcontext> contexts;
  const std::scoped_lock lock(mutex);
  const auto slot = static_cast<std::size_t>(device);
  if (slot < contexts.size() && contexts[slot] != nullptr) {
    return contexts[slot];
  }
  const Result<int> count = device_count();
  if (!count) {
    return count.error();
  }
  if (device < 0 || device >= count.value()) {
    return Error{ErrorCode::invalid_argument,
                 "no device " + std::to_string(device) + "; this process sees " +
                     std::to_string(count.value()),
                 "choosing a device"};
  }
  CUdevice handle{};
  if (Status got = invoke("getting the device", table.device_get, &handle, device); !got) {
    return got.error();
  }
  CUcontext context{};
  if (Status got =
          invoke("retaining the primary context", table.primary_context_retain, &context, handle);
      !got) {
    return got.error();
  }
  contexts.resize(static_cast<std::size_t>(count.value()));
  contexts[slot] = context;
  return context;
}

}  // namespace

const Result<Driver>& driver() {
  static const Result<Driver> table = load_driver();
  return table;
}

Error driver_error(CUresult status, std::string_view call) {
  ErrorCode code = ErrorCode::device_failure;
  if (status == CUDA_ERROR_OUT_OF_MEMORY) {
    code = ErrorCode::out_of_memory;
  } else if (status == CUDA_ERROR_NOT_SUPPORTED) {
    code = ErrorCode::unsupported;
  } else if (status == CUDA_ERROR_NO_DEVICE) {
    code = ErrorCode::no_device;
  } else if (status == CUDA_ERROR_INVALID_VALUE || status == CUDA_ERROR_INVALID_DEVICE) {
    code = ErrorCode::invalid_argument;
  }
  // Driver and runtime share their numbers, and the runtime's names need no driver.
  const auto same = static_cast<cudaError_t>(status);
  return {code,
          std::string(cudaGetErrorName(same)) + " (" + std::to_string(static_cast<int>(status)) +
              "): " + cudaGetErrorString(same),
          std::string(call)};
}

Result<ContextScope> ContextScope::enter(int device) {
  const Result<Driver>& table = driver();
  if (!table) {
    return table.error();
  }
  const Result<CUcontext> wanted = primary_context(table.value(), device);
  if (!wanted) {
    return wanted.error();
  }
  CUcontext previous{};
  if (Status got =
          invoke("reading the current context", table.value().context_get_current, &previous);
      !got) {
    return got.error();
  }
  if (previous == wanted.value()) {
    return ContextScope(table.value(), previous, false);
  }
  if (Status set =
          invoke("entering the primary context", table.value().context_set_current, wanted.value());
      !set) {
    return set.error();
  }
  return ContextScope(table.value(), previous, true);
}

ContextScope::ContextScope(ContextScope&& other) noexcept
    : driver_(other.driver_), previous_(other.previous_), switched_(other.switched_) {
  other.switched_ = false;
}

ContextScope::~ContextScope() {
  if (switched_) {
    (void)driver_->context_set_current(previous_);
  }
}

Result<DriverInfo> driver_info() {
  const Result<Driver>& table = driver();
  if (!table) {
    return table.error();
  }
  int version = 0;
  if (Status got = invoke("reading the driver's version", table.value().driver_version, &version);
      !got) {
    return got.error();
  }
  return DriverInfo{table.value().library, version};
}

int runtime_device_count() {
  int count = 0;  // left as it is when the call fails
  (void)cudaGetDeviceCount(&count);
  return count;
}

Result<RuntimeVersions> runtime_versions() {
  RuntimeVersions versions{.compiled = compiled_runtime_version(), .runtime = 0};
  const cudaError_t status = cudaRuntimeGetVersion(&versions.runtime);
  if (status != cudaSuccess) {
    return driver_error(static_cast<CUresult>(status), "reading the runtime's version");
  }
  return versions;
}

}  // namespace monarch::native
