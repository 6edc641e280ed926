#pragma once

#include <cstddef>
#include <cstdint>

namespace monarch::native {

/// What the 8-byte little-endian word `word` at word `index` adds to the checksum. The finaliser is
/// splitmix64's (Steele, Lea, Flood 2014); the sum of terms does not depend on the order of adding,
/// so any number of threads gives the same result.
constexpr std::uint64_t checksum_term(std::uint64_t word, std::uint64_t index) {
  std::uint64_t mixed = word ^ ((index + 1) * 0x9E3779B97F4A7C15ULL);
  mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBULL;
  return mixed ^ (mixed >> 31U);
}

/// The `index`th word of `bytes` bytes at `data`; the last one is padded with zero bytes.
constexpr std::uint64_t checksum_word(const unsigned char* data, std::size_t bytes,
                                      std::uint64_t index) {
  const std::size_t start = static_cast<std::size_t>(index) * 8;
  std::uint64_t word = 0;
  for (std::size_t at = 0; at < 8 && start + at < bytes; ++at) {
    word |= static_cast<std::uint64_t>(data[start + at]) << (8 * at);
  }
  return word;
}

/// Where the sum starts, so that trailing zero bytes count.
constexpr std::uint64_t checksum_seed(std::size_t bytes) {
  return checksum_term(static_cast<std::uint64_t>(bytes), ~std::uint64_t{1});
}

/// The checksum of host memory, and the reference for the device kernel.
constexpr std::uint64_t checksum_of(const unsigned char* data, std::size_t bytes) {
  std::uint64_t sum = checksum_seed(bytes);
  for (std::uint64_t index = 0; index * 8 < bytes; ++index) {
    sum += checksum_term(checksum_word(data, bytes, index), index);
  }
  return sum;
}

}  // namespace monarch::native
