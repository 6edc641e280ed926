#include "monarch/native/strided.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <vector>

namespace {

using namespace monarch::native;
using Extents = std::vector<std::uint64_t>;
using Strides = std::vector<std::int64_t>;

StridedPlan planned(const Extents& extents, const Strides& strides, std::uint32_t item,
                    std::uint64_t addresses = 0) {
  Result<StridedPlan> plan = plan_strided(extents, strides, item, addresses);
  REQUIRE(plan);
  return plan.value();
}

// Byte offsets of all bytes of the view, from its own extents and strides.
std::vector<std::int64_t> bytes_of(const Extents& extents, const Strides& strides,
                                   std::uint32_t item) {
  std::vector<std::int64_t> offsets{0};
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    std::vector<std::int64_t> next;
    for (const std::int64_t offset : offsets) {
      for (std::uint64_t at = 0; at < extents[axis]; ++at) {
        next.push_back(offset + static_cast<std::int64_t>(at) * strides[axis]);
      }
    }
    offsets = next;
  }
  std::vector<std::int64_t> bytes;
  for (const std::int64_t offset : offsets) {
    for (std::uint32_t byte = 0; byte < item; ++byte) {
      bytes.push_back(offset + byte);
    }
  }
  return bytes;
}

std::vector<std::int64_t> bytes_of(const StridedPlan& plan) {
  std::vector<std::int64_t> bytes;
  for (std::uint64_t index = 0; index < plan.count; ++index) {
    for (std::uint32_t byte = 0; byte < plan.unit; ++byte) {
      bytes.push_back(strided_offset(plan, index) + byte);
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("a contiguous view becomes one run of the widest units") {
  const StridedPlan plan = planned({4, 8, 16}, {512, 64, 4}, 4);
  CHECK(plan.rank == 1);
  CHECK(plan.unit == 16);
  CHECK(plan.count == 128);
  CHECK(plan.bytes() == 4 * 8 * 16 * 4);
}

TEST_CASE("dimensions of extent one vanish, whatever their stride") {
  const StridedPlan plan = planned({1, 3, 1}, {-7, 100, 13}, 1);
  CHECK(plan.rank == 1);
  CHECK(plan.extent[0] == 3);
  CHECK(plan.stride[0] == 100);
}

TEST_CASE("an odd address keeps the units as narrow as it asks") {
  CHECK(planned({64}, {1}, 1, 0x1001).unit == 1);
  CHECK(planned({64}, {1}, 1, 0x1002).unit == 2);
  CHECK(planned({64}, {1}, 1, 0x1004).unit == 4);
}

TEST_CASE("an outer stride keeps the units as narrow as it asks") {
  CHECK(planned({4, 8}, {10, 1}, 1).unit == 2);
  CHECK(planned({4, 8}, {12, 1}, 1).unit == 4);
  CHECK(planned({4, 8}, {16, 1}, 1).unit == 8);
}

TEST_CASE("an empty view plans nothing to do") {
  CHECK(planned({4, 0, 2}, {8, 8, 4}, 4).count == 0);
}

TEST_CASE("a view without dimensions is one element") {
  const StridedPlan plan = planned({}, {}, 8);
  CHECK(plan.count == 1);
  CHECK(plan.unit == 8);
  CHECK(strided_offset(plan, 0) == 0);
}

TEST_CASE("what cannot be planned is refused with a reason") {
  const auto refused = [](const Extents& extents, const Strides& strides, std::uint32_t item,
                          std::uint64_t addresses = 0) {
    const Result<StridedPlan> plan = plan_strided(extents, strides, item, addresses);
    REQUIRE_FALSE(plan);
    CHECK(plan.error().code == ErrorCode::invalid_argument);
    return plan.error().message;
  };
  CHECK(refused({2}, {4}, 3).find("element size 3") != std::string::npos);
  CHECK(refused({2}, {4}, 0).find("element size 0") != std::string::npos);
  CHECK(refused({2}, {4}, 32).find("element size 32") != std::string::npos);
  CHECK(refused({2, 2}, {4}, 4).find("2 extents and 1 strides") != std::string::npos);
  CHECK(refused({2}, {6}, 4).find("no multiple") != std::string::npos);
  CHECK(refused({2}, {8}, 8, 4).find("no multiple") != std::string::npos);
  CHECK(refused(Extents(9, 2), Strides(9, 3), 1).find("more than 8") != std::string::npos);
}

TEST_CASE("a plan walks the same bytes in the same order as the view it was made from") {
  std::mt19937 random(20);
  for (int round = 0; round < 400; ++round) {
    const std::uint32_t item = 1U << (random() % 5);
    Extents extents(random() % 5);
    Strides strides(extents.size());
    std::int64_t dense = item;
    for (std::size_t axis = extents.size(); axis-- > 0;) {
      extents[axis] = 1 + random() % 5;
      const std::int64_t gap = random() % 3 == 0 ? static_cast<std::int64_t>(item) * 3 : 0;
      strides[axis] = random() % 7 == 0 ? 0 : dense + gap;
      strides[axis] = random() % 5 == 0 ? -strides[axis] : strides[axis];
      dense = (dense + gap) * static_cast<std::int64_t>(extents[axis]);
    }
    CAPTURE(round);
    CHECK(bytes_of(planned(extents, strides, item)) == bytes_of(extents, strides, item));
  }
}
