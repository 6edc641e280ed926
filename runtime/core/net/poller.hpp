// Which descriptors are ready: epoll on Linux, kqueue elsewhere. One thread waits at a time; any
// thread may add, change, remove and wake.
//
// Level-triggered, so that a descriptor that was not read to its end is reported again and the
// poller's own descriptor can be watched by another.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "net/shared_memory.hpp"

namespace monarch::net {

struct Ready {
  std::uint64_t token;
  bool readable;  // also at end of file or on an error
  bool writable;
};

enum class Polled { kReady, kTimeout, kWoken, kSignal, kFailed };

class Poller {
 public:
  Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;
  ~Poller() = default;

  // `token` is neither 0 nor that of another descriptor. Reading is watched from the start.
  [[nodiscard]] base::Result<void> add(int fd, std::uint64_t token);
  // With neither, nothing is told of it until there is an interest again, not even its end.
  void set_interest(int fd, std::uint64_t token, bool read, bool write);
  void remove(int fd);

  // Ready descriptors, into `ready`. `timeout`: none given is no limit. kWoken can come with ready
  // descriptors; kSignal says that a signal handler ran, kFailed that there is no waiting any more:
  // its descriptor was closed or taken by somebody else. why() says what the system calls that.
  Polled wait(std::vector<Ready>& ready, std::optional<std::chrono::nanoseconds> timeout);

  [[nodiscard]] const std::string& why() const noexcept { return why_; }

  // Ends the wait in progress, or the next one.
  void wake() noexcept;

 private:
  Polled failed();

  Descriptor queue_;  // of epoll or kqueue
  Descriptor wake_read_;  // on Linux an eventfd, which is written to as well
#if !defined(__linux__)
  Descriptor wake_write_;
#endif
  std::string why_;
};

}  // namespace monarch::net
