#include "platform.hpp"

#include <hip/hip_runtime.h>
#include <hip/hip_runtime_api.h>
#include <dlfcn.h>

#include <cstdint>

#include "monarch/native/runtime.hpp"

namespace monarch::native {
namespace {

/// The dma-buf kind of handle and the entry point that gives it have the same shape and number on
/// both platforms, but not every release declares them.
using ExportRange = int (*)(void* handle, std::uint64_t address, std::size_t bytes, int kind,
                            unsigned long long flags);
constexpr int k_dma_buffer_descriptor = 1;

Error no_dma_buffer(std::string message) {
  return {ErrorCode::unsupported, std::move(message), "exporting a dma-buf"};
}

Result<DmaBuffer> export_range(void* symbol, Address address, std::size_t bytes) {
  DmaBuffer buffer;
  const int status = reinterpret_cast<ExportRange>(symbol)(&buffer.descriptor, address.value, bytes,
                                                           k_dma_buffer_descriptor, 0);
  if (status != 0) {
    return no_dma_buffer(
        "the driver refused the range (status " + std::to_string(status) +
        "); address and size must be multiples of the page size, and driver, device "
        "and kernel must support dma-buf");
  }
  return buffer;
}

}  // namespace

#if defined(__HIP_PLATFORM_AMD__)

const char* const k_collectives_library = "librccl.so.1";
const char* const k_collectives_remedy =
    "install RCCL (rccl of AMD's packages, librccl1 of Debian), or a torch for ROCm";

std::string_view platform_name() { return "rocm"; }

int compiled_runtime_version() { return HIP_VERSION; }

Result<LoadedLibrary> open_driver_library() {
  Dl_info bound{};
  if (dladdr(reinterpret_cast<void*>(&hipRuntimeGetVersion), &bound) == 0 ||
      bound.dli_fname == nullptr) {
    return Error{ErrorCode::library_missing,
                 "the HIP runtime this module is bound to cannot be found", "loading the driver"};
  }
  void* handle = dlopen(bound.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (handle == nullptr) {
    return Error{ErrorCode::library_missing, dlerror(), "loading the driver"};
  }
  return LoadedLibrary{bound.dli_fname, handle};
}

Status check_virtual_memory_layout() {
  // hipMemAllocationProp was reordered between 5.2 and 5.7, all of them libamdhip64.so.5.
  constexpr int k_settled = 507;
  const Result<RuntimeVersions> versions = runtime_versions();
  if (!versions) {
    return versions.error();
  }
  const int compiled = HIP_VERSION / 100000;
  const int running = versions.value().runtime / 100000;
  if (compiled == running || (compiled >= k_settled && running >= k_settled)) {
    return {};
  }
  const auto release = [](int number) {
    return std::to_string(number / 100) + "." + std::to_string(number % 100);
  };
  return Error{ErrorCode::unsupported,
               "built for HIP " + release(compiled) + ", running on HIP " + release(running) +
                   ": their virtual memory structures differ; install a wheel built for the "
                   "release in use (HIP 5.7 or newer on both sides agree)",
               "virtual memory"};
}

Result<void*> import_argument(const int& descriptor) {
  const Result<RuntimeVersions> versions = runtime_versions();
  if (!versions) {
    return versions.error();
  }
  if (versions.value().runtime / 100000 < 701) {
    return const_cast<void*>(static_cast<const void*>(&descriptor));
  }
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(descriptor));
}

Result<DmaBuffer> export_dma_buffer_of(void* driver_library, Address address, std::size_t bytes) {
  if (void* symbol = dlsym(driver_library, "hipMemGetHandleForAddressRange"); symbol != nullptr) {
    return export_range(symbol, address, bytes);
  }
  using Export =
      int (*)(const void* pointer, std::size_t bytes, int* descriptor, std::uint64_t* offset);
  constexpr const char* k_library = "libhsa-runtime64.so.1";
  void* library = dlopen(k_library, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) {
    return no_dma_buffer(std::string(k_library) +
                         " is not loaded, and the HIP runtime before 7 has no call of its own");
  }
  void* symbol = dlsym(library, "hsa_amd_portable_export_dmabuf");
  dlclose(library);
  if (symbol == nullptr) {
    return no_dma_buffer(std::string(k_library) +
                         " lacks hsa_amd_portable_export_dmabuf; ROCm 5.6 or newer has it");
  }
  DmaBuffer buffer;
  const int status = reinterpret_cast<Export>(symbol)(reinterpret_cast<const void*>(address.value),
                                                      bytes, &buffer.descriptor, &buffer.offset);
  if (status != 0) {
    return no_dma_buffer("hsa_amd_portable_export_dmabuf failed with status " +
                         std::to_string(status));
  }
  return buffer;
}

#else

const char* const k_collectives_library = "libnccl.so.2";
const char* const k_collectives_remedy =
    "install NCCL (pip install nvidia-nccl-cu13, or libnccl2 of NVIDIA's packages)";

std::string_view platform_name() { return "cuda"; }

int compiled_runtime_version() { return CUDART_VERSION; }

Result<LoadedLibrary> open_driver_library() {
  constexpr const char* k_library = "libcuda.so.1";
  void* handle = dlopen(k_library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    return Error{
        ErrorCode::library_missing,
        std::string(reason != nullptr ? reason : k_library) +
            "; it belongs to the NVIDIA driver, so install the driver (or, in a container, start "
            "it with the GPUs given to it)",
        "loading the driver"};
  }
  Dl_info found{};
  void* symbol = dlsym(handle, "hipInit");
  if (symbol == nullptr || dladdr(symbol, &found) == 0 || found.dli_fname == nullptr) {
    return LoadedLibrary{k_library, handle};
  }
  return LoadedLibrary{found.dli_fname, handle};
}

Status check_virtual_memory_layout() { return {}; }

Result<void*> import_argument(const int& descriptor) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(descriptor));
}

Result<DmaBuffer> export_dma_buffer_of(void* driver_library, Address address, std::size_t bytes) {
  void* symbol = dlsym(driver_library, "cuMemGetHandleForAddressRange");
  if (symbol == nullptr) {
    return no_dma_buffer(
        "the driver lacks cuMemGetHandleForAddressRange; CUDA 11.7 or newer has it");
  }
  return export_range(symbol, address, bytes);
}

#endif

}  // namespace monarch::native
