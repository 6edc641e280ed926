// What a process is doing, on a page that it shares with its parent: the endpoints being handled.
// The page outlives the process, so a death can be told with what was running.
//
// One process writes, in the order: text, actor, then the time, which makes a line count; any other
// may read at any moment and skips a line whose time is 0. A line that is replaced while it is read
// can mix two entries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"

namespace monarch::actor {

class Board {
 public:
  static constexpr std::size_t k_size = 4096;
  static constexpr std::size_t k_line = 128;
  static constexpr int k_lines = k_size / k_line;
  static constexpr int k_none = -1;

  struct Entry {
    std::uint64_t actor;
    base::Instant since;
    std::string endpoint;
  };

  Board() = default;  // without a page: keeps nothing
  // Maps page number `page` of `fd`, which stays the caller's. Keeps nothing when it cannot be
  // mapped, or the file ends before it.
  explicit Board(int fd, std::size_t page = 0) noexcept;
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;
  Board(Board&& other) noexcept;
  Board& operator=(Board&& other) noexcept;
  ~Board();

  [[nodiscard]] bool mapped() const noexcept { return page_ != nullptr; }

  // Writes a line and gives its number; k_none when all are taken. A long name is cut.
  [[nodiscard]] int enter(std::uint64_t actor, std::string_view endpoint,
                          base::Instant now) noexcept;
  void leave(int line) noexcept;

  // The lines of a page, oldest first, also of one that another process writes.
  [[nodiscard]] static std::vector<Entry> read(std::span<const std::byte> page);

 private:
  std::byte* page_ = nullptr;
  std::uint32_t taken_ = 0;
};

}  // namespace monarch::actor
