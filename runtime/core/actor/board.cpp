#include "actor/board.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <utility>

namespace monarch::actor {

namespace {

// A line: nanoseconds of the monotonic clock, the actor, then text up to the first zero.
constexpr std::size_t k_actor = 8;
constexpr std::size_t k_text = 16;
constexpr std::size_t k_longest = Board::k_line - k_text - 1;

std::atomic_ref<std::uint64_t> time_of(std::byte* line) {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(line));
}

}  // namespace

Board::Board(int fd, std::size_t page) noexcept {
  struct stat file {};
  const auto begin = static_cast<off_t>(page * k_size);
  if (fstat(fd, &file) != 0 || file.st_size < begin + static_cast<off_t>(k_size)) return;
  void* memory = mmap(nullptr, k_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, begin);
  if (memory != MAP_FAILED) page_ = static_cast<std::byte*>(memory);
}

Board::Board(Board&& other) noexcept
    : page_(std::exchange(other.page_, nullptr)), taken_(std::exchange(other.taken_, 0)) {}

Board& Board::operator=(Board&& other) noexcept {
  std::swap(page_, other.page_);
  std::swap(taken_, other.taken_);
  return *this;
}

Board::~Board() {
  if (page_ != nullptr) munmap(page_, k_size);
}

int Board::enter(std::uint64_t actor, std::string_view endpoint, base::Instant now) noexcept {
  const int line = std::countr_one(taken_);
  if (page_ == nullptr || line >= k_lines) return k_none;
  taken_ |= std::uint32_t{1} << line;
  std::byte* at = page_ + static_cast<std::size_t>(line) * k_line;
  const std::size_t length = std::min(endpoint.size(), k_longest);
  std::memcpy(at + k_text, endpoint.data(), length);
  at[k_text + length] = std::byte{0};
  std::memcpy(at + k_actor, &actor, sizeof actor);
  const auto since = static_cast<std::uint64_t>(now.time_since_epoch().count());
  time_of(at).store(std::max<std::uint64_t>(since, 1), std::memory_order_release);
  return line;
}

void Board::leave(int line) noexcept {
  if (page_ == nullptr || line < 0) return;
  time_of(page_ + static_cast<std::size_t>(line) * k_line).store(0, std::memory_order_release);
  taken_ &= ~(std::uint32_t{1} << line);
}

std::vector<Board::Entry> Board::read(std::span<const std::byte> page) {
  std::vector<Entry> entries;
  for (std::size_t at = 0; at + k_line <= page.size(); at += k_line) {
    std::uint64_t since = 0;
    std::uint64_t actor = 0;
    std::memcpy(&since, page.data() + at, sizeof since);
    std::memcpy(&actor, page.data() + at + k_actor, sizeof actor);
    if (since == 0) continue;
    const auto* text = reinterpret_cast<const char*>(page.data() + at + k_text);
    entries.push_back({actor, base::Instant(base::Duration(static_cast<std::int64_t>(since))),
                       std::string(text, strnlen(text, k_longest))});
  }
  std::ranges::sort(entries, {}, &Entry::since);
  return entries;
}

}  // namespace monarch::actor
