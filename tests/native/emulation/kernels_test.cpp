#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "monarch/native/kernels.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <vector>

#include "monarch/native/checksum.hpp"
#include "monarch/native/convert.hpp"

namespace monarch::native {

Result<Stream> Stream::create(int device, int) { return Stream(device, nullptr); }
Stream::Stream(Stream&& other) noexcept : device_(other.device_), handle_(nullptr) {}
Stream::~Stream() = default;

}  // namespace monarch::native

namespace {

using namespace monarch::native;
using Bytes = std::vector<unsigned char>;

Address at(const void* pointer) { return {reinterpret_cast<std::uint64_t>(pointer)}; }

Stream a_stream() { return std::move(Stream::create(0, 0)).value(); }

Bytes noise(std::size_t size) {
  std::mt19937 random(static_cast<unsigned>(size));
  Bytes bytes(size);
  for (unsigned char& byte : bytes) {
    byte = static_cast<unsigned char>(random());
  }
  return bytes;
}

double stored(DType dtype, const unsigned char* data, std::size_t index) {
  const auto read = [&](auto value) {
    std::memcpy(&value, data + index * sizeof value, sizeof value);
    return value;
  };
  switch (dtype) {
    case DType::int8: return read(std::int8_t{});
    case DType::uint8: return read(std::uint8_t{});
    case DType::int32: return read(std::int32_t{});
    case DType::int64: return static_cast<double>(read(std::int64_t{}));
    case DType::float16: return float16_to_float(read(std::uint16_t{}));
    case DType::bfloat16: return bfloat16_to_float(read(std::uint16_t{}));
    case DType::float32: return read(0.0F);
    case DType::float64: return read(0.0);
  }
  return 0;
}

void store(DType dtype, unsigned char* data, std::size_t index, int number) {
  const auto write = [&](auto value) {
    std::memcpy(data + index * sizeof value, &value, sizeof value);
  };
  const auto real = static_cast<float>(number);
  switch (dtype) {
    case DType::int8: return write(static_cast<std::int8_t>(number));
    case DType::uint8: return write(static_cast<std::uint8_t>(number));
    case DType::int32: return write(std::int32_t{number});
    case DType::int64: return write(std::int64_t{number});
    case DType::float16: return write(float_to_float16(real));
    case DType::bfloat16: return write(float_to_bfloat16(real));
    case DType::float32: return write(real);
    case DType::float64: return write(static_cast<double>(number));
  }
}

}  // namespace

TEST_CASE("the checksum kernel gives the checksum of the host") {
  const Stream stream = a_stream();
  for (const std::size_t size : {1, 7, 8, 9, 255, 2048, 2049, 100001}) {
    const Bytes bytes = noise(size + 1);
    for (const std::size_t skip : {0, 1}) {
      alignas(8) std::uint64_t result = 77;
      REQUIRE(checksum(at(&result), at(bytes.data() + skip), size, stream));
      CAPTURE(size);
      CHECK(result == checksum_of(bytes.data() + skip, size));
    }
  }
}

TEST_CASE("an empty checksum is the seed, and a result that is not aligned is refused") {
  const Stream stream = a_stream();
  alignas(8) std::uint64_t result[2] = {};
  REQUIRE(checksum(at(result), at(result), 0, stream));
  CHECK(result[0] == checksum_of(nullptr, 0));
  CHECK_FALSE(checksum(Address{at(result).value + 4}, at(result), 4, stream));
}

TEST_CASE("pack gathers a transposed view and unpack puts it back, for every unit") {
  const Stream stream = a_stream();
  for (const std::uint32_t item : {1U, 2U, 4U, 8U, 16U}) {
    constexpr std::uint64_t k_rows = 37;
    constexpr std::uint64_t k_columns = 21;
    const Bytes data = noise(k_rows * k_columns * item);
    const std::uint64_t extents[] = {k_columns, k_rows};
    const std::int64_t strides[] = {item, static_cast<std::int64_t>(k_columns * item)};
    Bytes packed(data.size());
    const Result<StridedPlan> plan =
        plan_strided(extents, strides, item, at(data.data()).value | at(packed.data()).value);
    REQUIRE(plan);
    REQUIRE(pack(at(packed.data()), at(data.data()), plan.value(), stream));
    Bytes expected;
    for (std::uint64_t column = 0; column < k_columns; ++column) {
      for (std::uint64_t row = 0; row < k_rows; ++row) {
        const auto* from = data.data() + (row * k_columns + column) * item;
        expected.insert(expected.end(), from, from + item);
      }
    }
    CHECK(packed == expected);
    Bytes back(data.size());
    REQUIRE(unpack(at(back.data()), at(packed.data()), plan.value(), stream));
    CHECK(back == data);
  }
}

TEST_CASE("pack takes rows with gaps, in the widest unit that fits") {
  const Stream stream = a_stream();
  const Bytes data = noise(64 * 100);
  const std::uint64_t extents[] = {100, 48};
  const std::int64_t strides[] = {64, 1};
  Bytes packed(48 * 100);
  const StridedPlan plan = plan_strided(extents, strides, 1, 0).value();
  CHECK(plan.unit == 16);
  REQUIRE(pack(at(packed.data()), at(data.data()), plan, stream));
  bool same = true;
  for (std::size_t row = 0; row < 100; ++row) {
    same = same && std::memcmp(packed.data() + row * 48, data.data() + row * 64, 48) == 0;
  }
  CHECK(same);
}

TEST_CASE("every pair of element types is cast by the kernel made for it") {
  const Stream stream = a_stream();
  constexpr std::size_t k_count = 300;
  for (const DTypeTraits& from : k_dtypes) {
    for (const DTypeTraits& to : k_dtypes) {
      Bytes source(k_count * from.bytes);
      Bytes target(k_count * to.bytes);
      for (std::size_t index = 0; index < k_count; ++index) {
        store(from.dtype, source.data(), index, static_cast<int>(index % 128));
      }
      REQUIRE(cast(at(target.data()), to.dtype, at(source.data()), from.dtype, k_count, stream));
      std::size_t wrong = 0;
      for (std::size_t index = 0; index < k_count; ++index) {
        wrong += stored(to.dtype, target.data(), index) == static_cast<double>(index % 128) ? 0 : 1;
      }
      CAPTURE(from.name);
      CAPTURE(to.name);
      CHECK(wrong == 0);
    }
  }
}
