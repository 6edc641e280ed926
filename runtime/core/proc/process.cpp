#include "proc/process.hpp"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>

#ifdef __linux__
#include <sys/prctl.h>
#include <sys/syscall.h>
#else
#include <mach/mach.h>
#endif

namespace monarch::proc {
namespace {

#ifdef __linux__

constexpr int k_bind = 2;  // MPOL_BIND of linux/mempolicy.h, a header not installed everywhere

int checked(long result) noexcept { return result < 0 ? -errno : static_cast<int>(result); }

// For kernels before 5.9 and sandboxes that refuse the call.
int close_listed(unsigned first, unsigned last) noexcept {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return -errno;
  const auto own = static_cast<unsigned>(dirfd(folder));
  while (const dirent* entry = readdir(folder)) {
    char* end = nullptr;
    const unsigned long number = std::strtoul(entry->d_name, &end, 10);
    if (end == entry->d_name || *end != '\0' || number < first || number > last) continue;
    if (number != own) ::close(static_cast<int>(number));
  }
  closedir(folder);
  return 0;
}

#else

int close_each(unsigned first, unsigned last) noexcept {
  const long limit = sysconf(_SC_OPEN_MAX);
  const unsigned top = limit > 0 && limit <= INT_MAX ? static_cast<unsigned>(limit) - 1 : 65535U;
  for (unsigned number = first; number <= std::min(last, top); ++number) {
    ::close(static_cast<int>(number));
  }
  return 0;
}

#endif

}  // namespace

#ifdef __linux__

int set_parent_death_signal(int signal) noexcept {
  return checked(prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0));
}

int become_subreaper() noexcept { return checked(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)); }

int open_pidfd(int pid) noexcept { return checked(syscall(SYS_pidfd_open, pid, 0)); }

int signal_pidfd(int pidfd, int signal) noexcept {
  return checked(syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0));
}

int close_range(unsigned first, unsigned last) noexcept {
  if (first > last) return -EINVAL;
#ifdef SYS_close_range
  const int result = checked(syscall(SYS_close_range, first, last, 0));
  if (result != -ENOSYS && result != -EPERM) return result;
#endif
  return close_listed(first, last);
}

int bind_memory(std::span<const std::uint32_t> nodes) noexcept {
  if (nodes.empty()) return -EINVAL;
  constexpr std::size_t bits = sizeof(unsigned long) * CHAR_BIT;
  const std::uint32_t highest = *std::max_element(nodes.begin(), nodes.end());
  if (highest >= 4096) return -EINVAL;
  unsigned long mask[4096 / bits] = {};
  for (const std::uint32_t node : nodes) mask[node / bits] |= 1UL << (node % bits);
  // The kernel reads one bit less than it is told.
  return checked(syscall(SYS_set_mempolicy, k_bind, mask, highest + 2UL));
}

int count_threads() noexcept {
  DIR* folder = opendir("/proc/self/task");
  if (folder == nullptr) return -errno;
  int count = 0;
  while (const dirent* entry = readdir(folder)) count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

#else

int set_parent_death_signal(int) noexcept { return -ENOTSUP; }
int become_subreaper() noexcept { return -ENOTSUP; }
int open_pidfd(int) noexcept { return -ENOTSUP; }
int signal_pidfd(int, int) noexcept { return -ENOTSUP; }
int bind_memory(std::span<const std::uint32_t>) noexcept { return -ENOTSUP; }

int close_range(unsigned first, unsigned last) noexcept {
  return first > last ? -EINVAL : close_each(first, last);
}

int count_threads() noexcept {
  thread_act_array_t threads = nullptr;
  mach_msg_type_number_t count = 0;
  if (task_threads(mach_task_self(), &threads, &count) != KERN_SUCCESS) return -ENOTSUP;
  for (mach_msg_type_number_t index = 0; index < count; ++index) {
    mach_port_deallocate(mach_task_self(), threads[index]);
  }
  vm_deallocate(mach_task_self(), reinterpret_cast<vm_address_t>(threads),
                count * sizeof(thread_act_t));
  return static_cast<int>(count);
}

#endif

}  // namespace monarch::proc
