#include "net/copy.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace monarch::net {
namespace {

#if defined(__SSE2__)
void stream(std::byte* to, const std::byte* from, std::size_t size) noexcept {
  const std::size_t head = (64 - (reinterpret_cast<std::uintptr_t>(to) & 63)) & 63;
  std::memcpy(to, from, head);
  to += head, from += head, size -= head;
  for (; size >= 64; to += 64, from += 64, size -= 64) {
    const auto* source = reinterpret_cast<const __m128i*>(from);
    auto* target = reinterpret_cast<__m128i*>(to);
    const __m128i a = _mm_loadu_si128(source);
    const __m128i b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2);
    const __m128i d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
  std::memcpy(to, from, size);
  // Streaming stores are not ordered with the message that announces them.
  _mm_sfence();
}
#endif

}  // namespace

void copy_payload(base::MutableBytes to, base::Bytes from) noexcept {
  if (from.empty()) return;
#if defined(__SSE2__)
  if (from.size() >= kStreamingCopy) return stream(to.data(), from.data(), from.size());
#endif
  std::memcpy(to.data(), from.data(), from.size());
}

void prepare_fresh(base::MutableBytes memory) noexcept {
#if defined(__linux__)
  constexpr std::uintptr_t kHugePage = std::uintptr_t{2} << 20;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t from = (begin + kHugePage - 1) & ~(kHugePage - 1);
  const std::uintptr_t to = (begin + memory.size()) & ~(kHugePage - 1);
  if (from < to) ::madvise(reinterpret_cast<void*>(from), to - from, MADV_HUGEPAGE);
#else
  (void)memory;
#endif
}

}  // namespace monarch::net
