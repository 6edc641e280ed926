// A value or an Error: std::expected for C++20, as far as the core needs it.
#pragma once

#include <cassert>
#include <optional>
#include <utility>
#include <variant>

#include "base/error.hpp"

namespace monarch::base {

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  // Only where ok().
  T& operator*() & noexcept { return *checked(state_); }
  const T& operator*() const& noexcept { return *checked(state_); }
  T&& operator*() && noexcept { return std::move(*checked(state_)); }
  T* operator->() noexcept { return checked(state_); }
  const T* operator->() const noexcept { return checked(state_); }

  // Only where not ok().
  [[nodiscard]] const Error& error() const& noexcept {
    assert(!ok());
    return *std::get_if<1>(&state_);
  }
  [[nodiscard]] Error&& error() && noexcept {
    assert(!ok());
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  static auto* checked(auto& state) noexcept {
    assert(state.index() == 0);
    return std::get_if<0>(&state);
  }

  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  [[nodiscard]] bool ok() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }

  // Only where not ok().
  [[nodiscard]] const Error& error() const& noexcept {
    assert(!ok());
    return *error_;
  }
  [[nodiscard]] Error&& error() && noexcept {
    assert(!ok());
    return std::move(*error_);
  }

 private:
  std::optional<Error> error_;
};

}  // namespace monarch::base
