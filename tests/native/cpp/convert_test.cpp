#include "monarch/native/convert.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>

namespace {

using namespace monarch::native;

// The float that a pattern of `exponent_bits` and `fraction_bits` stands for, from the definition.
double decoded(std::uint16_t bits, int exponent_bits, int fraction_bits) {
  const int exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) {
    return fraction == 0 ? sign * INFINITY : NAN;
  }
  const double scaled =
      exponent == 0 ? std::ldexp(fraction, 1 - bias - fraction_bits)
                    : std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
  return sign * scaled;
}

double float16(std::uint16_t bits) { return decoded(bits, 5, 10); }
double bfloat16(std::uint16_t bits) { return decoded(bits, 8, 7); }

// The nearest pattern by search: the neighbours in value of a finite, non-negative double.
template <class Decode>
std::uint16_t nearest(double value, std::uint16_t infinity, Decode decode) {
  std::uint16_t low = 0;
  std::uint16_t high = infinity;
  while (high - low > 1) {
    const auto middle = static_cast<std::uint16_t>((low + high) / 2);
    (decode(middle) <= value ? low : high) = middle;
  }
  // Infinity stands where the next number would be.
  const double step = decode(low) - decode(static_cast<std::uint16_t>(low - 1));
  const double above = high == infinity ? decode(low) + step : decode(high);
  const double down = value - decode(low);
  const double up = above - value;
  return down < up || (down == up && low % 2 == 0) ? low : high;
}

}  // namespace

TEST_CASE("every half-precision pattern decodes to its value and encodes back to itself") {
  int wrong = 0;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    const float half = float16_to_float(pattern);
    const float brain = bfloat16_to_float(pattern);
    const bool half_right =
        std::isnan(float16(pattern))
            ? std::isnan(half) && std::isnan(float16_to_float(float_to_float16(half)))
            : static_cast<double>(half) == float16(pattern) && float_to_float16(half) == pattern;
    const bool brain_right =
        std::isnan(bfloat16(pattern))
            ? std::isnan(brain) && std::isnan(bfloat16_to_float(float_to_bfloat16(brain)))
            : static_cast<double>(brain) == bfloat16(pattern) &&
                  float_to_bfloat16(brain) == pattern;
    wrong += half_right && brain_right ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("rounding is to nearest with ties to even, against a search of all patterns") {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> exponent(-27.0, 17.0);
  int wrong = 0;
  for (int round = 0; round < 5000; ++round) {
    const double exact = std::exp2(exponent(random));
    const auto value = static_cast<float>(exact);
    // Through double there is one rounding, too.
    const bool right =
        float_to_float16(value) == nearest(value, 0x7C00, float16) &&
        float_to_bfloat16(value) == nearest(value, 0x7F80, bfloat16) &&
        convert<DType::float64, DType::float16>(exact) == nearest(exact, 0x7C00, float16) &&
        convert<DType::float64, DType::bfloat16>(exact) == nearest(exact, 0x7F80, bfloat16);
    wrong += right ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("a tie that only a wide number can break is not rounded twice") {
  // 1 + 2^-11 lies between two float16; the rest is lost in a float.
  const double above = 1.0 + std::ldexp(1.0, -11) + std::ldexp(1.0, -50);
  const double below = 1.0 + std::ldexp(1.0, -11) - std::ldexp(1.0, -50);
  CHECK(convert<DType::float64, DType::float16>(above) == 0x3C01);
  CHECK(convert<DType::float64, DType::float16>(below) == 0x3C00);
  CHECK(convert<DType::float64, DType::float16>(-above) == 0xBC01);
  // 2^62 + 2^54 is a tie between two bfloat16, and the last bit breaks it.
  const std::int64_t tie = (std::int64_t{1} << 62) + (std::int64_t{1} << 54);
  CHECK(convert<DType::int64, DType::bfloat16>(tie) == 0x5E80);
  CHECK(convert<DType::int64, DType::bfloat16>(tie + 1) == 0x5E81);
  CHECK(convert<DType::int64, DType::bfloat16>(-tie - 1) == 0xDE81);
}

TEST_CASE("overflow gives infinity, and the last finite number stays") {
  CHECK(float_to_float16(65519.996F) == 0x7BFF);
  CHECK(float_to_float16(65520.0F) == 0x7C00);
  CHECK(float_to_float16(-1e30F) == 0xFC00);
  CHECK(float_to_bfloat16(std::numeric_limits<float>::max()) == 0x7F80);
}

TEST_CASE("real to integer truncates and saturates, and NaN becomes zero") {
  CHECK(convert<DType::float32, DType::int32>(-2.9F) == -2);
  CHECK(convert<DType::float32, DType::int8>(300.0F) == 127);
  CHECK(convert<DType::float32, DType::int8>(-300.0F) == -128);
  CHECK(convert<DType::float32, DType::uint8>(-1.0F) == 0);
  CHECK(convert<DType::float64, DType::int64>(1e300) == std::numeric_limits<std::int64_t>::max());
  CHECK(convert<DType::float64, DType::int64>(-1e300) == std::numeric_limits<std::int64_t>::min());
  CHECK(convert<DType::float64, DType::int64>(9223372036854774784.0) == 9223372036854774784LL);
  CHECK(convert<DType::float32, DType::int32>(2147483648.0F) == 2147483647);
  CHECK(convert<DType::float32, DType::int64>(NAN) == 0);
  CHECK(convert<DType::float16, DType::uint8>(0x7C00) == 255);
}

TEST_CASE("integer to integer wraps") {
  CHECK(convert<DType::int64, DType::int8>(0x1FF) == -1);
  CHECK(convert<DType::int32, DType::uint8>(-1) == 255);
  CHECK(convert<DType::int8, DType::int64>(-5) == -5);
}

TEST_CASE("64-bit integers pass through unharmed") {
  const std::int64_t value = 0x7FFFFFFFFFFFFFFDLL;
  CHECK(convert<DType::int64, DType::int64>(value) == value);
}

TEST_CASE("names and sizes of element types agree") {
  for (const DTypeTraits& traits : k_dtypes) {
    CHECK(dtype_from_name(traits.name) == traits.dtype);
    CHECK(dtype_bytes(traits.dtype) == traits.bytes);
  }
  CHECK_FALSE(dtype_from_name("float8"));
}
