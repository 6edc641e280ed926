// Memory that two processes map: an unnamed file whose descriptor travels over a Unix socket.
#pragma once

#include <cstddef>
#include <utility>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace monarch::net {

// A descriptor that is closed with its owner.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  [[nodiscard]] int get() const noexcept { return fd_; }
  // The descriptor is the caller's from here on.
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// Pages mapped shared, readable and writable; unmapped with their owner.
class Pages {
 public:
  Pages() = default;
  Pages(std::byte* data, std::size_t size) noexcept : data_(data), size_(size) {}
  Pages(Pages&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Pages& operator=(Pages&& other) noexcept;
  ~Pages();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

enum class Backing {
  kBest,   // memfd_create where there is one, else kNamed
  kNamed,  // shm_open, unlinked at once: what macOS has, and bounded by /dev/shm on Linux
};

// An unnamed file of `size` bytes, without memory behind it yet. Where the system can, its size is
// sealed, so that no holder of the descriptor can make another one's access fault by shrinking it.
[[nodiscard]] base::Result<Descriptor> make_shared(std::size_t size, Backing backing);

// Puts memory behind bytes [from, to) of the file, so that a later store finds it there instead of
// ending the process when the memory is exhausted. `pages` is the file, mapped. From 32 MiB on, what
// is more than half of the memory that is left is refused.
[[nodiscard]] base::Result<void> reserve(const Descriptor& file, const Pages& pages,
                                         std::size_t from, std::size_t to);

[[nodiscard]] base::Result<Pages> map_shared(const Descriptor& file, std::size_t size);

// Enters bytes [from, to) in this process's page table in one go, for writing: a fault each costs
// four times as much. A hint; where it fails, the faults do the work.
void populate(const Pages& pages, std::size_t from, std::size_t to) noexcept;

// Whether `file`, received from a peer, holds `size` bytes and will go on doing so.
[[nodiscard]] base::Result<void> check_shared(const Descriptor& file, std::size_t size);

[[nodiscard]] std::size_t page_size() noexcept;

}  // namespace monarch::net
