// Whether a history keeps the promises. It knows nothing of how the runtime works.
#pragma once

#include <string>
#include <vector>

#include "sim/history.hpp"

namespace monarch::sim {

struct Verdict {
  std::vector<std::string> broken;  // each promise that was, with the event that shows it
  std::uint64_t handled = 0;
  std::uint64_t deaths = 0;
  std::uint64_t calls = 0;
  base::Duration slowest_death{};   // from the end of a process until its owner was told

  [[nodiscard]] bool ok() const noexcept { return broken.empty(); }
};

// `ranks`: the processes that have the places of the mesh at the end. Where the history has a calm,
// what was begun has to have come to its end.
[[nodiscard]] Verdict check(const History& history, const std::vector<std::uint64_t>& ranks);

}  // namespace monarch::sim
