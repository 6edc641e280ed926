#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace monarch::native {

/// An address in device memory, the same type on both platforms: one vendor's is an integer and the
/// other's a pointer, and neither shows above this interface.
struct Address {
  std::uint64_t value{};

  friend constexpr auto operator<=>(Address, Address) = default;
  friend constexpr Address operator+(Address base, std::size_t bytes) {
    return {base.value + bytes};
  }
};

}  // namespace monarch::native
