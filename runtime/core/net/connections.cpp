#include "net/connections.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace monarch::net {
namespace {

constexpr std::size_t kMost = 1 << 16;  // of a higher number none is noted
constexpr std::size_t kBits = 64;

// No lock: another thread could have held it when the fork was made.
std::array<std::atomic<std::uint64_t>, kMost / kBits> noted{};

bool in_range(int fd) noexcept { return fd >= 0 && static_cast<std::size_t>(fd) < kMost; }

std::uint64_t bit(std::size_t fd) noexcept { return std::uint64_t{1} << (fd % kBits); }

}  // namespace

void note_connection(int fd) noexcept {
  if (!in_range(fd)) return;
  const auto number = static_cast<std::size_t>(fd);
  noted[number / kBits].fetch_or(bit(number), std::memory_order_relaxed);
}

void forget_connection(int fd) noexcept {
  if (!in_range(fd)) return;
  const auto number = static_cast<std::size_t>(fd);
  noted[number / kBits].fetch_and(~bit(number), std::memory_order_relaxed);
}

void leave_connections() noexcept {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (std::size_t word = 0; word < noted.size(); ++word) {
    const std::uint64_t found = noted[word].exchange(0, std::memory_order_relaxed);
    for (std::size_t at = 0; found >> at != 0 && at < kBits; ++at) {
      const std::size_t number = word * kBits + at;
      if ((found & bit(number)) == 0) continue;
      const int fd = static_cast<int>(number);
      if (null < 0 || ::dup2(null, fd) < 0) {
        ::close(fd);
      } else {
        ::fcntl(fd, F_SETFD, FD_CLOEXEC);
      }
    }
  }
  if (null >= 0) ::close(null);
}

}  // namespace monarch::net
