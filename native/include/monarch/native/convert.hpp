#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "monarch/native/dtype.hpp"

// Conversions shared by the device kernels and the host: plain integer arithmetic, so that both
// platforms and the CPU give the same bits, and no vendor half-precision header is needed.
namespace monarch::native {

constexpr float bfloat16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

/// Rounds to nearest, ties to even; NaN stays NaN (quiet).
constexpr std::uint16_t float_to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) {
    return static_cast<std::uint16_t>((bits >> 16U) | 0x0040U);
  }
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}

constexpr float float16_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16U;
  const std::uint32_t exponent = (bits >> 10U) & 0x1FU;
  const std::uint32_t fraction = bits & 0x3FFU;
  if (exponent == 0x1FU) {
    return std::bit_cast<float>(sign | 0x7F800000U | (fraction << 13U));
  }
  if (exponent != 0) {
    return std::bit_cast<float>(sign | ((exponent + 112U) << 23U) | (fraction << 13U));
  }
  // A subnormal is fraction * 2^-24, exact in float.
  const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
  return sign != 0 ? -magnitude : magnitude;
}

/// Rounds to nearest, ties to even; overflow gives infinity, NaN stays NaN (quiet).
constexpr std::uint16_t float_to_float16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16U) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) {
    return static_cast<std::uint16_t>(sign | 0x7E00U | ((magnitude >> 13U) & 0x1FFU));
  }
  if (magnitude >= 0x477FF000U) {  // 65520 and above round to infinity
    return static_cast<std::uint16_t>(sign | 0x7C00U);
  }
  if (magnitude < 0x38800000U) {  // below 2^-14: subnormal or zero
    const std::uint32_t shift = 126U - (magnitude >> 23U);
    if (shift > 24U) {
      return sign;
    }
    const std::uint32_t fraction = (magnitude & 0x7FFFFFU) | 0x800000U;
    const std::uint32_t kept = fraction >> shift;
    const std::uint32_t rest = fraction & ((1U << shift) - 1U);
    const std::uint32_t half = 1U << (shift - 1U);
    const std::uint32_t up = (rest > half || (rest == half && (kept & 1U) != 0U)) ? 1U : 0U;
    return static_cast<std::uint16_t>(sign | (kept + up));
  }
  const std::uint32_t rounded = magnitude - 0x38000000U + 0xFFFU + ((magnitude >> 13U) & 1U);
  return static_cast<std::uint16_t>(sign | (rounded >> 13U));
}

/// Truncates towards zero; out of range saturates, NaN gives 0.
template <class Integer>
constexpr Integer saturate(double value) {
  using Limits = std::numeric_limits<Integer>;
  if (!(value == value)) {
    return 0;
  }
  // The bounds are powers of two (or zero), exact in double even for 64 bits.
  if (value <= static_cast<double>(Limits::min())) {
    return Limits::min();
  }
  if (value >= static_cast<double>(Limits::max() / 2 + 1) * 2.0) {
    return Limits::max();
  }
  return static_cast<Integer>(value);
}

/// Rounds to odd (Boldo, Melquiond 2008): cut towards zero, then the last bit set if anything was
/// cut. A second rounding to at least two bits fewer then gives what one rounding would have given.
constexpr float round_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  const auto back = static_cast<double>(nearest);
  if (back == value || !(value == value)) {
    return nearest;
  }
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  const bool away = value < 0 ? back < value : back > value;
  bits = away ? bits - 1U : bits;
  return std::bit_cast<float>(bits | 1U);
}

constexpr float round_to_odd(std::int64_t value) {
  constexpr std::int64_t k_exact = std::int64_t{1} << 53;
  if (value > -k_exact && value < k_exact) {
    return round_to_odd(static_cast<double>(value));
  }
  const std::int64_t sticky = (value & 0x7FF) != 0 ? 0x400 : 0;
  return round_to_odd(static_cast<double>((value & ~std::int64_t{0x7FF}) | sticky));
}

/// How an element lies in memory, and the widest exact value that conversions go through.
template <DType>
struct Element;
template <>
struct Element<DType::int8> {
  using Storage = std::int8_t;
  using Wide = std::int64_t;
};
template <>
struct Element<DType::uint8> {
  using Storage = std::uint8_t;
  using Wide = std::int64_t;
};
template <>
struct Element<DType::int32> {
  using Storage = std::int32_t;
  using Wide = std::int64_t;
};
template <>
struct Element<DType::int64> {
  using Storage = std::int64_t;
  using Wide = std::int64_t;
};
template <>
struct Element<DType::float16> {
  using Storage = std::uint16_t;
  using Wide = float;
};
template <>
struct Element<DType::bfloat16> {
  using Storage = std::uint16_t;
  using Wide = float;
};
template <>
struct Element<DType::float32> {
  using Storage = float;
  using Wide = float;
};
template <>
struct Element<DType::float64> {
  using Storage = double;
  using Wide = double;
};

/// Converts one element. Integer to integer wraps; real to integer truncates and saturates, NaN
/// gives 0; to a narrower real rounds once, to nearest with ties to even.
template <DType Source, DType Destination>
constexpr typename Element<Destination>::Storage convert(typename Element<Source>::Storage stored) {
  using Wide = typename Element<Source>::Wide;
  using Result = typename Element<Destination>::Storage;
  Wide value{};
  if constexpr (Source == DType::float16) {
    value = float16_to_float(stored);
  } else if constexpr (Source == DType::bfloat16) {
    value = bfloat16_to_float(stored);
  } else {
    value = stored;
  }
  constexpr bool narrow = Destination == DType::float16 || Destination == DType::bfloat16;
  if constexpr (narrow) {
    float single{};
    if constexpr (std::is_same_v<Wide, float>) {
      single = value;
    } else {
      single = round_to_odd(value);
    }
    return Destination == DType::float16 ? float_to_float16(single) : float_to_bfloat16(single);
  } else if constexpr (std::is_integral_v<Result> && std::is_floating_point_v<Wide>) {
    return saturate<Result>(static_cast<double>(value));
  } else {
    return static_cast<Result>(value);
  }
}

}  // namespace monarch::native
