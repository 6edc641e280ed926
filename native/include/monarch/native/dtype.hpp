#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace monarch::native {

enum class DType : std::uint8_t {
  int8,
  uint8,
  int32,
  int64,
  float16,
  bfloat16,
  float32,
  float64,
};

struct DTypeTraits {
  DType dtype;
  std::string_view name;
  std::size_t bytes;
};

inline constexpr std::array<DTypeTraits, 8> k_dtypes{{
    {DType::int8, "int8", 1},
    {DType::uint8, "uint8", 1},
    {DType::int32, "int32", 4},
    {DType::int64, "int64", 8},
    {DType::float16, "float16", 2},
    {DType::bfloat16, "bfloat16", 2},
    {DType::float32, "float32", 4},
    {DType::float64, "float64", 8},
}};

constexpr std::size_t dtype_bytes(DType dtype) {
  return k_dtypes[static_cast<std::size_t>(dtype)].bytes;
}

constexpr std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DTypeTraits& traits : k_dtypes) {
    if (traits.name == name) {
      return traits.dtype;
    }
  }
  return std::nullopt;
}

}  // namespace monarch::native
