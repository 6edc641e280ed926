#include "monarch/native/memory.hpp"

#include <utility>

#include "driver.hpp"
#include "platform.hpp"

namespace monarch::native {
namespace {

Error no_bytes(const char* context) {
  return {ErrorCode::invalid_argument, "0 bytes asked for, wanted at least 1", context};
}

CUstream stream_of(const Stream& stream) { return static_cast<CUstream>(stream.handle()); }

}  // namespace

Result<Allocation> Allocation::create(int device, std::size_t bytes) {
  constexpr const char* k_context = "allocating device memory";
  if (bytes == 0) {
    return no_bytes(k_context);
  }
  const Result<ContextScope> scope = ContextScope::enter(device);
  if (!scope) {
    return scope.error();
  }
  VendorPointer pointer{};
  if (Status got = invoke(k_context, driver().value().memory_allocate, &pointer, bytes); !got) {
    return got.error();
  }
  return Allocation(device, neutral_address(pointer), bytes);
}

Allocation::Allocation(Allocation&& other) noexcept
    : device_(other.device_), address_(std::exchange(other.address_, {})), size_(other.size_) {}

Allocation& Allocation::operator=(Allocation&& other) noexcept {
  if (this != &other) {
    (void)release();
    device_ = other.device_;
    address_ = std::exchange(other.address_, {});
    size_ = other.size_;
  }
  return *this;
}

Allocation::~Allocation() { (void)release(); }

Status Allocation::release() {
  const Address address = std::exchange(address_, {});
  if (address.value == 0) {
    return {};
  }
  const Result<ContextScope> scope = ContextScope::enter(device_);
  if (!scope) {
    return scope.error();
  }
  return invoke("freeing device memory", driver().value().memory_free, vendor_pointer(address));
}

Result<HostAllocation> HostAllocation::create(int device, std::size_t bytes) {
  constexpr const char* k_context = "allocating page-locked memory";
  if (bytes == 0) {
    return no_bytes(k_context);
  }
  const Result<ContextScope> scope = ContextScope::enter(device);
  if (!scope) {
    return scope.error();
  }
  void* data = nullptr;
  if (Status got = invoke(k_context, driver().value().host_allocate, &data, bytes, 0U); !got) {
    return got.error();
  }
  return HostAllocation(device, data, bytes);
}

HostAllocation::HostAllocation(HostAllocation&& other) noexcept
    : device_(other.device_), data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}

HostAllocation& HostAllocation::operator=(HostAllocation&& other) noexcept {
  if (this != &other) {
    (void)release();
    device_ = other.device_;
    data_ = std::exchange(other.data_, nullptr);
    size_ = other.size_;
  }
  return *this;
}

HostAllocation::~HostAllocation() { (void)release(); }

Status HostAllocation::release() {
  void* data = std::exchange(data_, nullptr);
  if (data == nullptr) {
    return {};
  }
  const Result<ContextScope> scope = ContextScope::enter(device_);
  if (!scope) {
    return scope.error();
  }
  return invoke("freeing page-locked memory", driver().value().host_free, data);
}

Status copy_to_device(int device, Address destination, const void* source, std::size_t bytes,
                      const Stream* stream) {
  constexpr const char* k_context = "copying to the device";
  const Result<ContextScope> scope = ContextScope::enter(device);
  if (!scope) {
    return scope.error();
  }
  const Driver& table = driver().value();
  // Some releases of one vendor take a pointer to non-const; none writes there.
  void* readable = const_cast<void*>(source);
  if (stream == nullptr) {
    return invoke(k_context, table.copy_to_device, vendor_pointer(destination), readable, bytes);
  }
  return invoke(k_context, table.copy_to_device_async, vendor_pointer(destination), readable, bytes,
                stream_of(*stream));
}

Status copy_to_host(int device, void* destination, Address source, std::size_t bytes,
                    const Stream* stream) {
  constexpr const char* k_context = "copying to the host";
  const Result<ContextScope> scope = ContextScope::enter(device);
  if (!scope) {
    return scope.error();
  }
  const Driver& table = driver().value();
  if (stream == nullptr) {
    return invoke(k_context, table.copy_to_host, destination, vendor_pointer(source), bytes);
  }
  return invoke(k_context, table.copy_to_host_async, destination, vendor_pointer(source), bytes,
                stream_of(*stream));
}

Status copy_on_device(int device, Address destination, Address source, std::size_t bytes,
                      const Stream* stream) {
  constexpr const char* k_context = "copying on the device";
  const Result<ContextScope> scope = ContextScope::enter(device);
  if (!scope) {
    return scope.error();
  }
  const Driver& table = driver().value();
  if (stream != nullptr) {
    return invoke(k_context, table.copy_on_device_async, vendor_pointer(destination),
                  vendor_pointer(source), bytes, stream_of(*stream));
  }
  if (Status copied = invoke(k_context, table.copy_on_device, vendor_pointer(destination),
                             vendor_pointer(source), bytes);
      !copied) {
    return copied;
  }
  // Between two device addresses the vendors' call may return before the bytes have arrived.
  return invoke(k_context, table.stream_synchronize, CUstream{});
}

Status fill(int device, Address destination, std::uint8_t value, std::size_t bytes,
            const Stream* stream) {
  constexpr const char* k_context = "filling device memory";
  const Result<ContextScope> scope = ContextScope::enter(device);
  if (!scope) {
    return scope.error();
  }
  const Driver& table = driver().value();
  if (stream != nullptr) {
    return invoke(k_context, table.fill_bytes_async, vendor_pointer(destination), value, bytes,
                  stream_of(*stream));
  }
  if (Status filled =
          invoke(k_context, table.fill_bytes, vendor_pointer(destination), value, bytes);
      !filled) {
    return filled;
  }
  return invoke(k_context, table.stream_synchronize, CUstream{});
}

Result<DmaBuffer> export_dma_buffer(int device, Address address, std::size_t bytes) {
  const Result<ContextScope> scope = ContextScope::enter(device);
  if (!scope) {
    return scope.error();
  }
  return export_dma_buffer_of(driver().value().handle, address, bytes);
}

}  // namespace monarch::native
