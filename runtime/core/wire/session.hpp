// What one side of a session keeps so that its frames survive the connection they were sent on: the
// bytes of every frame that the other side has not acknowledged, in order. Without I/O.
//
// Frames are numbered by their headers. After a break each side says how many frames it has taken;
// the other one goes on from there, so that nothing is lost and nothing is taken twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace monarch::wire {

// Bytes that were taken before an acknowledgement is due.
inline constexpr std::size_t k_acknowledge_after = 256U << 10;
inline constexpr std::size_t k_resume_size = 8;  // what each side says first after a break

class SendLog {
 public:
  // Begins a frame, the next in number; its bytes are what append() adds until the next begin().
  void begin();
  void append(base::Bytes bytes);
  [[nodiscard]] base::MutableBytes extend(std::size_t size);

  // What is to be written next, all of it; wrote() says how much was.
  [[nodiscard]] base::Bytes next() const noexcept;
  void wrote(std::size_t size) noexcept { sent_ += size; }

  // The other side has taken this many frames. Fails for more than were begun; what it said before
  // comes again after a break, and says nothing new.
  [[nodiscard]] base::Result<void> acknowledged(std::uint64_t frames);
  // On a new connection: everything that the other side has not taken is to be written again. Fails
  // as well for fewer than it said before: those are not kept.
  [[nodiscard]] base::Result<void> resume(std::uint64_t frames);

  [[nodiscard]] std::uint64_t frames() const noexcept { return acknowledged_ + starts_.size(); }
  [[nodiscard]] std::size_t held() const noexcept { return bytes_.size() - front_; }

 private:
  void drop_front();
  [[nodiscard]] base::Error unknown(std::uint64_t frames) const;

  std::vector<std::byte> bytes_;  // from `front_` on, what is not acknowledged
  std::size_t front_ = 0;
  std::size_t sent_ = 0;             // of bytes_: what was written to this connection
  std::deque<std::uint64_t> starts_;  // of each frame, as a position in all there ever was
  std::uint64_t base_ = 0;           // the position of bytes_[0]
  std::uint64_t acknowledged_ = 0;   // frames
};

}  // namespace monarch::wire
