// Views of bytes that somebody else owns, and the little-endian integers in them.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace monarch::base {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

template <typename Integer>
constexpr Integer byte_swapped(Integer value) noexcept {
  Integer swapped = 0;
  for (std::size_t i = 0; i < sizeof(Integer); ++i) {
    swapped = static_cast<Integer>((swapped << 8) | (value & 0xFF));
    value = static_cast<Integer>(value >> 8);
  }
  return swapped;
}

// The integer whose little-endian form is the first sizeof(Integer) bytes, which must be there.
template <typename Integer>
Integer load_little(Bytes bytes) noexcept {
  static_assert(std::is_unsigned_v<Integer> && sizeof(Integer) > 1);
  Integer value;
  std::memcpy(&value, bytes.data(), sizeof(Integer));
  return std::endian::native == std::endian::little ? value : byte_swapped(value);
}

template <typename Integer>
void store_little(MutableBytes bytes, Integer value) noexcept {
  static_assert(std::is_unsigned_v<Integer> && sizeof(Integer) > 1);
  if constexpr (std::endian::native != std::endian::little) value = byte_swapped(value);
  std::memcpy(bytes.data(), &value, sizeof(Integer));
}

// Puts integers one after the other into bytes that have room for them.
class LittleWriter {
 public:
  explicit LittleWriter(MutableBytes out) noexcept : out_(out) {}
  template <typename Integer>
  void put(Integer value) noexcept {
    store_little(out_, value);
    out_ = out_.subspan(sizeof(Integer));
  }

 private:
  MutableBytes out_;
};

}  // namespace monarch::base
