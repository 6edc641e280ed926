#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace monarch::wire {

// A set of ranks, as runs.
class Ranks {
 public:
  struct Run {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    bool operator==(const Run&) const = default;
  };

  void add(std::uint32_t first, std::uint32_t count = 1);
  void add(const Ranks& others);
  // Removes what is in both, and gives that.
  Ranks take(const Ranks& others);
  bool take(std::uint32_t rank);

  [[nodiscard]] bool empty() const noexcept { return runs_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] bool has(std::uint32_t rank) const noexcept;
  [[nodiscard]] const std::vector<Run>& runs() const noexcept { return runs_; }
  bool operator==(const Ranks&) const = default;

 private:
  std::vector<Run> runs_;  // in order, with something between any two
};

}  // namespace monarch::wire
