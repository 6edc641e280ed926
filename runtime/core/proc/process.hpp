// What a process may ask of the kernel about itself and its children. Every function returns a
// result >= 0, or a negated errno; -ENOTSUP where this system has no such thing.
#pragma once

#include <cstdint>
#include <span>

namespace monarch::proc {

// The kernel sends `signal` to this process when the thread that made it ends; 0 takes that back.
// Nothing is sent for a parent that ended before the call: compare getppid() afterwards.
[[nodiscard]] int set_parent_death_signal(int signal) noexcept;

// Orphans among the descendants of this process become its children. Not inherited by children.
[[nodiscard]] int become_subreaper() noexcept;

// A descriptor, closed on exec, that becomes readable when the process `pid` ends.
[[nodiscard]] int open_pidfd(int pid) noexcept;

// Sends `signal` to the very process that `pidfd` was opened for: -ESRCH when it is gone, also
// when its number belongs to another process by now.
[[nodiscard]] int signal_pidfd(int pidfd, int signal) noexcept;

// Closes the descriptors from `first` to `last`, both included; those that are not open are
// skipped. Works on every system.
[[nodiscard]] int close_range(unsigned first, unsigned last) noexcept;

// Memory of this process and its descendants comes from the NUMA nodes given and from no other,
// for all pages not touched yet.
[[nodiscard]] int bind_memory(std::span<const std::uint32_t> nodes) noexcept;

// Threads of this process, this one included.
[[nodiscard]] int count_threads() noexcept;

}  // namespace monarch::proc
