#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace monarch::native {

enum class ErrorCode {
  invalid_argument,
  library_missing,
  symbol_missing,
  unsupported,
  no_device,
  out_of_memory,
  peer_failed,
  device_failure,
};

/// The name the binding and the messages use for a code.
constexpr const char* error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::library_missing: return "library_missing";
    case ErrorCode::symbol_missing: return "symbol_missing";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::no_device: return "no_device";
    case ErrorCode::out_of_memory: return "out_of_memory";
    case ErrorCode::peer_failed: return "peer_failed";
    case ErrorCode::device_failure: return "device_failure";
  }
  return "device_failure";
}

/// What went wrong (`message`) and during what (`context`, may be empty).
struct Error {
  ErrorCode code{};
  std::string message;
  std::string context;
};

/// A value or an Error. Nothing below the binding throws.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  explicit operator bool() const { return !error_.has_value(); }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace monarch::native
