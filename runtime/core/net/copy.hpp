// Copies of payloads between private and shared memory.
#pragma once

#include <cstddef>

#include "base/bytes.hpp"

namespace monarch::net {

// Copies of this many bytes and more go past the caches: they would not fit there, and fetching
// every destination line before overwriting it costs a third of the time.
inline constexpr std::size_t kStreamingCopy = std::size_t{4} << 20;

// Blocks of this size come fresh from the system and go back to it: malloc does not keep them.
inline constexpr std::size_t kFreshPayload = std::size_t{33} << 20;

// Copies `from` to the start of `to`, which must be large enough and must not overlap it.
void copy_payload(base::MutableBytes to, base::Bytes from) noexcept;

// Advises huge pages for memory that was just allocated and not yet touched: faulting in 64 MiB by
// 4 KiB pages takes four times as long as copying it. A hint, for private memory only; the pages at
// either end, which may hold something of others, are left alone.
void prepare_fresh(base::MutableBytes memory) noexcept;

}  // namespace monarch::net
