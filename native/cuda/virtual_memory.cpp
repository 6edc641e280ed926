#include "monarch/native/virtual_memory.hpp"

#include <algorithm>
#include <utility>

#include "driver.hpp"
#include "platform.hpp"

namespace monarch::native {
namespace {

CUmemLocation location_of(int device) {
  CUmemLocation location{};
  location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = device;
  return location;
}

CUmemAllocationProp properties_of(int device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = location_of(device);
  return properties;
}

std::uint64_t neutral_handle(CUmemGenericAllocationHandle handle) {
  return reinterpret_cast<unsigned long long>(handle);
}

CUmemGenericAllocationHandle vendor_handle(std::uint64_t handle) {
  return reinterpret_cast<CUmemGenericAllocationHandle>(static_cast<unsigned long long>(handle));
}

Error bad_range(std::string message) {
  return {ErrorCode::invalid_argument, std::move(message), "virtual memory"};
}

/// Enters the device once it is known that its virtual memory calls mean what was compiled in.
Result<ContextScope> enter_checked(int device) {
  if (Status layout = check_virtual_memory_layout(); !layout) {
    return layout.error();
  }
  return ContextScope::enter(device);
}

}  // namespace

Result<std::size_t> virtual_memory_granularity(int device) {
  const Result<ContextScope> scope = enter_checked(device);
  if (!scope) {
    return scope.error();
  }
  const CUmemAllocationProp properties = properties_of(device);
  std::size_t granularity = 0;
  if (Status got =
          invoke("reading the allocation granularity", driver().value().virtual_granularity,
                 &granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
      !got) {
    return got.error();
  }
  return granularity;
}

Result<PhysicalMemory> PhysicalMemory::create(int device, std::size_t bytes) {
  const Result<std::size_t> granularity = virtual_memory_granularity(device);
  if (!granularity) {
    return granularity.error();
  }
  if (bytes == 0 || bytes % granularity.value() != 0) {
    return bad_range(std::to_string(bytes) + " bytes, wanted a multiple of the granularity " +
                     std::to_string(granularity.value()));
  }
  const Result<ContextScope> scope = ContextScope::enter(device);
  if (!scope) {
    return scope.error();
  }
  const CUmemAllocationProp properties = properties_of(device);
  CUmemGenericAllocationHandle handle{};
  if (Status got = invoke("creating physical memory", driver().value().virtual_create, &handle,
                          bytes, &properties, 0ULL);
      !got) {
    return got.error();
  }
  return PhysicalMemory(device, bytes, neutral_handle(handle));
}

Result<PhysicalMemory> PhysicalMemory::import_descriptor(int device, int descriptor,
                                                         std::size_t bytes) {
  const Result<ContextScope> scope = enter_checked(device);
  if (!scope) {
    return scope.error();
  }
  const Result<void*> argument = import_argument(descriptor);
  if (!argument) {
    return argument.error();
  }
  CUmemGenericAllocationHandle handle{};
  if (Status got = invoke("importing a descriptor", driver().value().virtual_import, &handle,
                          argument.value(), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
      !got) {
    return got.error();
  }
  return PhysicalMemory(device, bytes, neutral_handle(handle));
}

PhysicalMemory::PhysicalMemory(PhysicalMemory&& other) noexcept
    : device_(other.device_),
      size_(other.size_),
      handle_(other.handle_),
      live_(std::exchange(other.live_, false)) {}

PhysicalMemory& PhysicalMemory::operator=(PhysicalMemory&& other) noexcept {
  if (this != &other) {
    (void)release();
    device_ = other.device_;
    size_ = other.size_;
    handle_ = other.handle_;
    live_ = std::exchange(other.live_, false);
  }
  return *this;
}

PhysicalMemory::~PhysicalMemory() { (void)release(); }

Result<int> PhysicalMemory::export_descriptor() const {
  if (!live_) {
    return bad_range("the physical memory was released");
  }
  const Result<ContextScope> scope = ContextScope::enter(device_);
  if (!scope) {
    return scope.error();
  }
  int descriptor = -1;
  void* destination = &descriptor;
  if (Status got = invoke("exporting a descriptor", driver().value().virtual_export, destination,
                          vendor_handle(handle_), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0ULL);
      !got) {
    return got.error();
  }
  return descriptor;
}

Status PhysicalMemory::release() {
  if (!std::exchange(live_, false)) {
    return {};
  }
  const Result<ContextScope> scope = ContextScope::enter(device_);
  if (!scope) {
    return scope.error();
  }
  return invoke("releasing physical memory", driver().value().virtual_release,
                vendor_handle(handle_));
}

Result<AddressRange> AddressRange::reserve(int device, std::size_t bytes, std::size_t alignment) {
  const Result<std::size_t> granularity = virtual_memory_granularity(device);
  if (!granularity) {
    return granularity.error();
  }
  if (bytes == 0 || bytes % granularity.value() != 0) {
    return bad_range(std::to_string(bytes) + " bytes, wanted a multiple of the granularity " +
                     std::to_string(granularity.value()));
  }
  const Result<ContextScope> scope = ContextScope::enter(device);
  if (!scope) {
    return scope.error();
  }
  VendorPointer pointer{};
  if (Status got = invoke("reserving addresses", driver().value().virtual_reserve, &pointer, bytes,
                          alignment, VendorPointer{}, 0ULL);
      !got) {
    return got.error();
  }
  return AddressRange(device, neutral_address(pointer), bytes);
}

AddressRange::AddressRange(AddressRange&& other) noexcept
    : device_(other.device_),
      address_(std::exchange(other.address_, {})),
      size_(other.size_),
      mappings_(std::move(other.mappings_)) {}

AddressRange& AddressRange::operator=(AddressRange&& other) noexcept {
  if (this != &other) {
    (void)release();
    device_ = other.device_;
    address_ = std::exchange(other.address_, {});
    size_ = other.size_;
    mappings_ = std::move(other.mappings_);
  }
  return *this;
}

AddressRange::~AddressRange() { (void)release(); }

Status AddressRange::map(std::size_t offset, const PhysicalMemory& memory) {
  if (address_.value == 0) {
    return bad_range("the address range was released");
  }
  if (!memory.live()) {
    return bad_range("the physical memory was released");
  }
  if (offset > size_ || memory.size() > size_ - offset) {
    return bad_range("mapping " + std::to_string(memory.size()) + " bytes at offset " +
                     std::to_string(offset) + " does not fit the range of " +
                     std::to_string(size_));
  }
  for (const Mapping& mapping : mappings_) {
    if (offset < mapping.offset + mapping.size && mapping.offset < offset + memory.size()) {
      return bad_range("offset " + std::to_string(offset) + " overlaps what is mapped at " +
                       std::to_string(mapping.offset));
    }
  }
  const Result<ContextScope> scope = ContextScope::enter(device_);
  if (!scope) {
    return scope.error();
  }
  if (Status mapped =
          invoke("mapping memory", driver().value().virtual_map, vendor_pointer(address_ + offset),
                 memory.size(), std::size_t{0}, vendor_handle(memory.handle()), 0ULL);
      !mapped) {
    return mapped;
  }
  mappings_.push_back({offset, memory.size()});
  return {};
}

Status AddressRange::set_access(std::size_t offset, std::size_t bytes, int device) {
  if (address_.value == 0 || offset > size_ || bytes > size_ - offset) {
    return bad_range("access to " + std::to_string(bytes) + " bytes at offset " +
                     std::to_string(offset) + " is outside the range");
  }
  const Result<ContextScope> scope = ContextScope::enter(device_);
  if (!scope) {
    return scope.error();
  }
  CUmemAccessDesc access{};
  access.location = location_of(device);
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return invoke("setting access", driver().value().virtual_set_access,
                vendor_pointer(address_ + offset), bytes, &access, std::size_t{1});
}

Status AddressRange::unmap(std::size_t offset) {
  const auto found =
      std::find_if(mappings_.begin(), mappings_.end(),
                   [offset](const Mapping& mapping) { return mapping.offset == offset; });
  if (found == mappings_.end()) {
    return bad_range("nothing is mapped at offset " + std::to_string(offset));
  }
  const Mapping mapping = *found;
  const Result<ContextScope> scope = ContextScope::enter(device_);
  if (!scope) {
    return scope.error();
  }
  if (Status unmapped = invoke("unmapping memory", driver().value().virtual_unmap,
                               vendor_pointer(address_ + mapping.offset), mapping.size);
      !unmapped) {
    return unmapped;
  }
  mappings_.erase(found);
  return {};
}

Status AddressRange::release() {
  if (address_.value == 0) {
    return {};
  }
  while (!mappings_.empty()) {
    if (Status unmapped = unmap(mappings_.back().offset); !unmapped) {
      return unmapped;
    }
  }
  const Result<ContextScope> scope = ContextScope::enter(device_);
  if (!scope) {
    return scope.error();
  }
  const Address address = std::exchange(address_, {});
  return invoke("freeing addresses", driver().value().virtual_free, vendor_pointer(address), size_);
}

}  // namespace monarch::native
