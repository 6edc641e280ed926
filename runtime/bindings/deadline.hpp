// Seconds as Python gives them, as a point in time.
#pragma once

#include <nanobind/nanobind.h>

#include <cmath>
#include <optional>

#include "base/clock.hpp"

namespace monarch::bindings {

inline std::optional<base::Instant> deadline_of(nanobind::handle timeout) {
  if (timeout.is_none()) return std::nullopt;
  const double seconds = nanobind::cast<double>(timeout);
  if (!(seconds >= 0)) throw nanobind::value_error("a timeout is a number of seconds, not negative");
  if (seconds > 1e9) return std::nullopt;
  return base::SteadyClock().now() +
         base::Duration(static_cast<std::int64_t>(std::ceil(seconds * 1e9)));
}

}  // namespace monarch::bindings
