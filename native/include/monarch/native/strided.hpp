#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "monarch/native/error.hpp"

namespace monarch::native {

inline constexpr int k_max_dimensions = 8;

/// A strided view as the kernels walk it: `extent` and `stride` (in bytes, may be 0 or negative)
/// from the outermost dimension in, counted in units of `unit` bytes. Plain data, passed to kernels
/// by value.
struct StridedPlan {
  int rank{};
  std::uint32_t unit{};
  std::uint64_t count{};
  std::uint64_t extent[k_max_dimensions]{};
  std::int64_t stride[k_max_dimensions]{};

  constexpr std::uint64_t bytes() const { return count * unit; }
};

/// Byte offset, from the first element, of the `index`th unit in row-major order.
constexpr std::int64_t strided_offset(const StridedPlan& plan, std::uint64_t index) {
  std::int64_t offset = 0;
  for (int axis = plan.rank - 1; axis >= 0; --axis) {
    offset += static_cast<std::int64_t>(index % plan.extent[axis]) * plan.stride[axis];
    index /= plan.extent[axis];
  }
  return offset;
}

/// Plans a walk over elements of `item_bytes` (1, 2, 4, 8 or 16): drops dimensions of extent 1,
/// joins dimensions that are contiguous with each other, and widens the unit to up to 16 bytes
/// where every stride and `addresses` allow it: the bitwise or of the addresses of the first
/// element and of the contiguous side. `strides` are in bytes.
///
/// Error `invalid_argument` for an item size outside the set, unequal lengths, an address that is
/// not a multiple of the item size, or more than `k_max_dimensions` dimensions after joining.
inline Result<StridedPlan> plan_strided(std::span<const std::uint64_t> extents,
                                        std::span<const std::int64_t> strides,
                                        std::uint32_t item_bytes, std::uint64_t addresses) {
  const auto refuse = [](std::string message) {
    return Error{ErrorCode::invalid_argument, std::move(message), "planning a strided copy"};
  };
  if (item_bytes == 0 || item_bytes > 16 || !std::has_single_bit(item_bytes)) {
    return refuse("element size " + std::to_string(item_bytes) + ", wanted 1, 2, 4, 8 or 16 bytes");
  }
  if (extents.size() != strides.size()) {
    return refuse(std::to_string(extents.size()) + " extents and " +
                  std::to_string(strides.size()) + " strides, wanted as many of both");
  }
  std::uint64_t alignment = addresses;
  StridedPlan plan{.rank = 0, .unit = item_bytes, .count = 1};
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    plan.count *= extents[axis];
    if (extents[axis] == 1) {
      continue;
    }
    alignment |= static_cast<std::uint64_t>(strides[axis]);
    const int last = plan.rank - 1;
    if (last >= 0 &&
        plan.stride[last] == strides[axis] * static_cast<std::int64_t>(extents[axis])) {
      plan.extent[last] *= extents[axis];
      plan.stride[last] = strides[axis];
      continue;
    }
    if (plan.rank == k_max_dimensions) {
      return refuse("more than " + std::to_string(k_max_dimensions) +
                    " dimensions that are not contiguous with each other");
    }
    plan.extent[plan.rank] = extents[axis];
    plan.stride[plan.rank] = strides[axis];
    ++plan.rank;
  }
  if (plan.count == 0) {
    return StridedPlan{.rank = 0, .unit = item_bytes, .count = 0};
  }
  if (alignment % item_bytes != 0) {
    return refuse("an address or stride is no multiple of the element size " +
                  std::to_string(item_bytes));
  }
  while (plan.unit < 16 && plan.rank > 0) {
    const int inner = plan.rank - 1;
    const std::uint32_t wider = plan.unit * 2;
    std::uint64_t outer = addresses;
    for (int axis = 0; axis < inner; ++axis) {
      outer |= static_cast<std::uint64_t>(plan.stride[axis]);
    }
    if (plan.stride[inner] != static_cast<std::int64_t>(plan.unit) || plan.extent[inner] % 2 != 0 ||
        outer % wider != 0) {
      break;
    }
    plan.extent[inner] /= 2;
    plan.stride[inner] = static_cast<std::int64_t>(wider);
    plan.count /= 2;
    plan.unit = wider;
  }
  return plan;
}

}  // namespace monarch::native
