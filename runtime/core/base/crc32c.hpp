// CRC-32C (Castagnoli; RFC 3720, appendix B.4): polynomial 0x1EDC6F41, reflected.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"

namespace monarch::base {

// The checksum of `bytes`, going on from `before`, the checksum of what came before them.
[[nodiscard]] std::uint32_t crc32c(Bytes bytes, std::uint32_t before = 0) noexcept;

namespace detail {
// The two ways of computing it, apart so that tests can compare them.
[[nodiscard]] std::uint32_t crc32c_table(Bytes bytes, std::uint32_t before) noexcept;
[[nodiscard]] bool crc32c_has_instruction() noexcept;
[[nodiscard]] std::uint32_t crc32c_instruction(Bytes bytes, std::uint32_t before) noexcept;
}  // namespace detail

}  // namespace monarch::base
