#pragma once

#include <cstddef>
#include <cstdint>

#include "monarch/native/address.hpp"
#include "monarch/native/error.hpp"
#include "monarch/native/stream.hpp"

namespace monarch::native {

/// Device memory of one process. Move-only, freed with its owner; freeing waits for the device.
class Allocation {
 public:
  /// Error `out_of_memory`, or `invalid_argument` for 0 bytes.
  static Result<Allocation> create(int device, std::size_t bytes);

  Allocation(Allocation&& other) noexcept;
  Allocation& operator=(Allocation&& other) noexcept;
  ~Allocation();

  int device() const { return device_; }
  Address address() const { return address_; }
  std::size_t size() const { return size_; }
  Status release();

 private:
  Allocation(int device, Address address, std::size_t bytes)
      : device_(device), address_(address), size_(bytes) {}

  int device_{};
  Address address_;
  std::size_t size_{};
};

/// Page-locked host memory, from which copies are truly asynchronous.
class HostAllocation {
 public:
  static Result<HostAllocation> create(int device, std::size_t bytes);

  HostAllocation(HostAllocation&& other) noexcept;
  HostAllocation& operator=(HostAllocation&& other) noexcept;
  ~HostAllocation();

  int device() const { return device_; }
  void* data() const { return data_; }
  std::size_t size() const { return size_; }
  Status release();

 private:
  HostAllocation(int device, void* data, std::size_t bytes)
      : device_(device), data_(data), size_(bytes) {}

  int device_{};
  void* data_{};
  std::size_t size_{};
};

/// Copies and fills on `device`. Without a stream the call returns when the bytes have arrived;
/// with one it only queues, and the host buffer has to live until the stream got there.
Status copy_to_device(int device, Address destination, const void* source, std::size_t bytes,
                      const Stream* stream);
Status copy_to_host(int device, void* destination, Address source, std::size_t bytes,
                    const Stream* stream);
Status copy_on_device(int device, Address destination, Address source, std::size_t bytes,
                      const Stream* stream);
Status fill(int device, Address destination, std::uint8_t value, std::size_t bytes,
            const Stream* stream);

/// A descriptor of the dma-buf behind [address, address + bytes) for a network or storage driver,
/// and where in it the range starts. Error `unsupported` where neither runtime nor kernel offers
/// it. The caller closes the descriptor.
struct DmaBuffer {
  int descriptor{-1};
  std::uint64_t offset{};
};
Result<DmaBuffer> export_dma_buffer(int device, Address address, std::size_t bytes);

}  // namespace monarch::native
