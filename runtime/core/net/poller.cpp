#include "net/poller.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#if defined(__linux__)
#include <sys/epoll.h>
#include <sys/eventfd.h>
#else
#include <sys/event.h>
#include <sys/time.h>
#endif

namespace monarch::net {
namespace {

using base::Code;
using base::Error;

constexpr std::uint64_t kWake = 0;
constexpr int kMost = 64;  // events taken by one wait

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

Error refused(int fd) {
  return Error{Code::kArgument, "cannot watch descriptor " + std::to_string(fd) + ": " +
                                    std::strerror(errno)};
}

}  // namespace

Polled Poller::failed() {
  if (errno == EINTR) return Polled::kSignal;
  why_ = std::strerror(errno);
  return Polled::kFailed;
}

#if defined(__linux__)

Poller::Poller() {
  queue_ = Descriptor(::epoll_create1(EPOLL_CLOEXEC));
  if (queue_.get() < 0) fail("epoll_create1");
  wake_read_ = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (wake_read_.get() < 0) fail("eventfd");
  if (!add(wake_read_.get(), kWake)) fail("epoll_ctl");
}

base::Result<void> Poller::add(int fd, std::uint64_t token) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = token;
  if (::epoll_ctl(queue_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return refused(fd);
  return {};
}

void Poller::set_interest(int fd, std::uint64_t token, bool read, bool write) {
  epoll_event event{};
  event.events = (read ? static_cast<std::uint32_t>(EPOLLIN) : 0U) |
                 (write ? static_cast<std::uint32_t>(EPOLLOUT) : 0U);
  event.data.u64 = token;
  if (event.events == 0) {
    remove(fd);  // epoll tells of a hang-up whether or not that is asked for
  } else if (::epoll_ctl(queue_.get(), EPOLL_CTL_MOD, fd, &event) != 0 && errno == ENOENT) {
    ::epoll_ctl(queue_.get(), EPOLL_CTL_ADD, fd, &event);
  }
}

void Poller::remove(int fd) { ::epoll_ctl(queue_.get(), EPOLL_CTL_DEL, fd, nullptr); }

Polled Poller::wait(std::vector<Ready>& ready, std::optional<std::chrono::nanoseconds> timeout) {
  ready.clear();
  int milliseconds = -1;
  if (timeout) {
    // Rounded up: a wait that ends before its time would be begun again at once.
    const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(*timeout).count();
    milliseconds = static_cast<int>(std::min<std::int64_t>(std::max<std::int64_t>(rounded, 0), 1 << 30));
  }
  std::array<epoll_event, kMost> events;
  const int count = ::epoll_wait(queue_.get(), events.data(), kMost, milliseconds);
  if (count < 0) return failed();
  bool woken = false;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.u64 == kWake) {
      std::uint64_t value = 0;
      [[maybe_unused]] const auto n = ::read(wake_read_.get(), &value, sizeof value);
      woken = true;
      continue;
    }
    ready.push_back({.token = event.data.u64,
                     .readable = (event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0,
                     .writable = (event.events & EPOLLOUT) != 0});
  }
  if (woken) return Polled::kWoken;
  return ready.empty() ? Polled::kTimeout : Polled::kReady;
}

void Poller::wake() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto n = ::write(wake_read_.get(), &one, sizeof one);
}

#else

Poller::Poller() {
  queue_ = Descriptor(::kqueue());
  if (queue_.get() < 0) fail("kqueue");
  std::array<int, 2> pipe_ends{};
  if (::pipe(pipe_ends.data()) != 0) fail("pipe");
  wake_read_ = Descriptor(pipe_ends[0]);
  wake_write_ = Descriptor(pipe_ends[1]);
  for (const int fd : pipe_ends) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  for (const int fd : {queue_.get(), pipe_ends[0], pipe_ends[1]}) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  if (!add(wake_read_.get(), kWake)) fail("kevent");
}

base::Result<void> Poller::add(int fd, std::uint64_t token) {
  struct kevent change;
  EV_SET(&change, fd, EVFILT_READ, EV_ADD, 0, 0, reinterpret_cast<void*>(token));
  if (::kevent(queue_.get(), &change, 1, nullptr, 0, nullptr) != 0) return refused(fd);
  return {};
}

void Poller::set_interest(int fd, std::uint64_t token, bool read, bool write) {
  for (const auto& [filter, on] : {std::pair{EVFILT_READ, read}, std::pair{EVFILT_WRITE, write}}) {
    struct kevent change;
    EV_SET(&change, fd, filter, on ? EV_ADD : EV_DELETE, 0, 0, reinterpret_cast<void*>(token));
    ::kevent(queue_.get(), &change, 1, nullptr, 0, nullptr);  // deleting what is not there is no fault
  }
}

void Poller::remove(int fd) { set_interest(fd, 0, false, false); }

Polled Poller::wait(std::vector<Ready>& ready, std::optional<std::chrono::nanoseconds> timeout) {
  ready.clear();
  timespec limit{};
  if (timeout) {
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(*timeout);
    limit.tv_sec = static_cast<time_t>(whole.count());
    limit.tv_nsec = static_cast<long>((*timeout - whole).count());
  }
  std::array<struct kevent, kMost> events;
  const int count = ::kevent(queue_.get(), nullptr, 0, events.data(), kMost, timeout ? &limit : nullptr);
  if (count < 0) return failed();
  bool woken = false;
  for (int i = 0; i < count; ++i) {
    const struct kevent& event = events[static_cast<std::size_t>(i)];
    const auto token = reinterpret_cast<std::uint64_t>(event.udata);
    if (token == kWake) {
      std::array<char, 64> bytes;
      while (::read(wake_read_.get(), bytes.data(), bytes.size()) > 0) {
      }
      woken = true;
      continue;
    }
    ready.push_back({.token = token,
                     .readable = event.filter == EVFILT_READ || (event.flags & EV_EOF) != 0,
                     .writable = event.filter == EVFILT_WRITE});
  }
  if (woken) return Polled::kWoken;
  return ready.empty() ? Polled::kTimeout : Polled::kReady;
}

void Poller::wake() noexcept {
  const char one = 1;
  [[maybe_unused]] const auto n = ::write(wake_write_.get(), &one, 1);
}

#endif

}  // namespace monarch::net
