#pragma once

#include <cstddef>
#include <string>

#include "monarch/native/address.hpp"
#include "monarch/native/error.hpp"
#include "monarch/native/memory.hpp"

// What the two platforms do differently and no renaming carries. Everything else in this folder is
// the same code on both.
namespace monarch::native {

struct LoadedLibrary {
  std::string path;
  void* handle{};
};

/// The library with the driver entry points: opened by name where the wheel does not link it, else
/// the very copy this module is bound to.
Result<LoadedLibrary> open_driver_library();

int compiled_runtime_version();

/// Whether the structures of virtual memory management compiled in here are those of the runtime in
/// use; an Error that says which two releases disagree.
Status check_virtual_memory_layout();

/// What the driver wants to be given for an imported descriptor: `descriptor` itself or its
/// address, by release. `descriptor` must outlive the call it is passed to.
Result<void*> import_argument(const int& descriptor);

/// File name of the vendor's collectives library, as the loader looks for it, and how to get it.
extern const char* const k_collectives_library;
extern const char* const k_collectives_remedy;

Result<DmaBuffer> export_dma_buffer_of(void* driver_library, Address address, std::size_t bytes);

}  // namespace monarch::native
