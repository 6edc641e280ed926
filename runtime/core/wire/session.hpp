// One side of a session: frames that survive the connection they were sent on. Without I/O.
//
// It keeps the bytes of every frame that the other side has not acknowledged, in order. Frames are
// numbered by their headers. After a break each side says how many frames it has taken; the other
// one goes on from there, so that nothing is lost and nothing is taken twice.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "wire/decoder.hpp"

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
  [[nodiscard]] std::uint64_t acknowledged() const noexcept { return acknowledged_; }
  [[nodiscard]] std::size_t held() const noexcept { return bytes_.size() - front_; }
  // Bytes of all frames there ever were.
  [[nodiscard]] std::uint64_t size() const noexcept { return base_ + bytes_.size(); }

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

class Session {
 public:
  using Handle = std::function<bool(Frame&)>;

  // Queues one frame, whose message is the concatenation of `parts`; its size is within the limit.
  void send(std::uint8_t kind, std::span<const base::Bytes> parts,
            std::span<const base::Bytes> buffers);
  // Queues an acknowledgement where one is due, always with `now`. Whether there was any to say.
  bool acknowledge(bool now);

  // What is to be written next; nothing on a resumed connection until the peer said where to go on.
  [[nodiscard]] base::Bytes next() const noexcept;
  void wrote(std::size_t size) noexcept;
  // Bytes of frames that this connection has not taken.
  [[nodiscard]] std::size_t unsent() const noexcept { return log_.next().size(); }

  // Bytes came from the peer. Frames of the floors above go to `handle`; what it has no use for it
  // answers with false. An error is final: the peer broke the rules, and there is no going on.
  [[nodiscard]] base::Result<void> take(base::Bytes input, const Handle& handle);
  // Whether the peer has said where to go on, since this was asked last.
  [[nodiscard]] bool went_on() noexcept;
  [[nodiscard]] bool refused() const noexcept { return refused_; }
  [[nodiscard]] bool in_a_frame() const noexcept { return decoder_.pending() != 0; }

  // Another connection takes the place of the last one: both sides say first what they have taken.
  void resume();
  // As resume(), where the peer has no session: it never heard of the connection that this one was
  // made with. Only where untouched(): the peer begins anew, and so does this side.
  void begin_again();
  [[nodiscard]] bool untouched() const noexcept;

  [[nodiscard]] const SendLog& log() const noexcept { return log_; }

 private:
  [[nodiscard]] base::Result<void> read_greeting(base::Bytes& input);
  [[nodiscard]] base::Result<void> take_acknowledgement(base::Bytes message);
  void reset();

  SendLog log_;
  Decoder decoder_{DecoderOptions{}};
  std::uint64_t sequence_ = 0;
  std::array<std::byte, k_resume_size> greeting_{};  // ours
  std::size_t greeting_left_ = 0;                    // of ours, to be written
  std::array<std::byte, k_resume_size> heard_{};     // the peer's
  std::optional<std::size_t> greeted_;               // bytes of the peer's, until it is there
  std::size_t unacknowledged_ = 0;                   // bytes taken since we last said so
  bool went_on_ = false;
  bool refused_ = false;
};

}  // namespace monarch::wire
