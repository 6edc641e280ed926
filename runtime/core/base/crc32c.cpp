#include "base/crc32c.hpp"

#include <array>

#if defined(__x86_64__)
#include <cpuid.h>
#include <nmmintrin.h>
#endif

namespace monarch::base {
namespace {

constexpr std::uint32_t kReflectedPolynomial = 0x82F63B78;

// kTables[k][b] is the checksum of byte b followed by k zero bytes: eight bytes a step.
constexpr auto kTables = [] {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value >> 1) ^ ((value & 1) != 0 ? kReflectedPolynomial : 0);
    }
    tables[0][byte] = value;
  }
  for (std::size_t k = 1; k < tables.size(); ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t value = tables[k - 1][byte];
      tables[k][byte] = (value >> 8) ^ tables[0][value & 0xFF];
    }
  }
  return tables;
}();

}  // namespace

namespace detail {

std::uint32_t crc32c_table(Bytes bytes, std::uint32_t before) noexcept {
  std::uint32_t crc = ~before;
  while (bytes.size() >= 8) {
    const std::uint64_t word = load_little<std::uint64_t>(bytes) ^ crc;
    crc = 0;
    for (std::size_t i = 0; i < 8; ++i) crc ^= kTables[7 - i][(word >> (8 * i)) & 0xFF];
    bytes = bytes.subspan(8);
  }
  for (const std::byte byte : bytes) {
    crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<std::uint32_t>(byte)) & 0xFF];
  }
  return ~crc;
}

#if defined(__x86_64__)

// Asked of the processor: the compiler's builtin needs a runtime library that not every one brings.
bool crc32c_has_instruction() noexcept {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_SSE4_2) != 0;
}

__attribute__((target("sse4.2,crc32"))) std::uint32_t crc32c_instruction(
    Bytes bytes, std::uint32_t before) noexcept {
  std::uint64_t crc = ~before;
  while (bytes.size() >= 8) {
    crc = _mm_crc32_u64(crc, load_little<std::uint64_t>(bytes));
    bytes = bytes.subspan(8);
  }
  auto tail = static_cast<std::uint32_t>(crc);
  for (const std::byte byte : bytes) {
    tail = _mm_crc32_u8(tail, static_cast<std::uint8_t>(byte));
  }
  return ~tail;
}

#else

bool crc32c_has_instruction() noexcept { return false; }

std::uint32_t crc32c_instruction(Bytes bytes, std::uint32_t before) noexcept {
  return crc32c_table(bytes, before);
}

#endif

}  // namespace detail

std::uint32_t crc32c(Bytes bytes, std::uint32_t before) noexcept {
  static const bool fast = detail::crc32c_has_instruction();
  return fast ? detail::crc32c_instruction(bytes, before) : detail::crc32c_table(bytes, before);
}

}  // namespace monarch::base
