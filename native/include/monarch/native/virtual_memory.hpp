#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "monarch/native/address.hpp"
#include "monarch/native/error.hpp"

namespace monarch::native {

/// Smallest unit in which physical memory of the device is created and mapped, in bytes. Error
/// `unsupported` where device or runtime has no virtual memory management.
Result<std::size_t> virtual_memory_granularity(int device);

/// Physical device memory without an address. It lives until its owner and every mapping of it, in
/// any process, are gone. Move-only.
class PhysicalMemory {
 public:
  /// `bytes` must be a multiple of the granularity.
  static Result<PhysicalMemory> create(int device, std::size_t bytes);
  /// Takes memory that `export_descriptor` of another process (or this one) gave away. The
  /// descriptor stays the caller's, and `bytes` must be what the exporter created.
  static Result<PhysicalMemory> import_descriptor(int device, int descriptor, std::size_t bytes);

  PhysicalMemory(PhysicalMemory&& other) noexcept;
  PhysicalMemory& operator=(PhysicalMemory&& other) noexcept;
  ~PhysicalMemory();

  int device() const { return device_; }
  std::size_t size() const { return size_; }
  std::uint64_t handle() const { return handle_; }
  bool live() const { return live_; }

  /// A descriptor to send to another process; the caller closes it.
  Result<int> export_descriptor() const;
  Status release();

 private:
  PhysicalMemory(int device, std::size_t bytes, std::uint64_t handle)
      : device_(device), size_(bytes), handle_(handle), live_(true) {}

  int device_{};
  std::size_t size_{};
  std::uint64_t handle_{};
  bool live_{};
};

/// A reserved range of device addresses and what is mapped in it. Move-only; unmaps and frees with
/// its owner.
class AddressRange {
 public:
  /// `alignment` 0 takes the driver's own.
  static Result<AddressRange> reserve(int device, std::size_t bytes, std::size_t alignment);

  AddressRange(AddressRange&& other) noexcept;
  AddressRange& operator=(AddressRange&& other) noexcept;
  ~AddressRange();

  int device() const { return device_; }
  Address address() const { return address_; }
  std::size_t size() const { return size_; }

  /// Maps all of `memory` at `offset` of the range; readable by nobody until `set_access`.
  Status map(std::size_t offset, const PhysicalMemory& memory);
  /// Lets the device read and write [offset, offset + bytes), which must be mapped.
  Status set_access(std::size_t offset, std::size_t bytes, int device);
  /// Takes back the mapping that starts at `offset`.
  Status unmap(std::size_t offset);
  Status release();

 private:
  struct Mapping {
    std::size_t offset{};
    std::size_t size{};
  };

  AddressRange(int device, Address address, std::size_t bytes)
      : device_(device), address_(address), size_(bytes) {}

  int device_{};
  Address address_;
  std::size_t size_{};
  std::vector<Mapping> mappings_;
};

}  // namespace monarch::native
