// From a byte stream to frames: a state machine without I/O.
//
// Ownership: next() copies only what a later call has to complete. A frame that lies whole in one
// input is handed out as views into that input; of any other frame the bytes are gathered in
// storage of its own, made once, when its header has been accepted. So a decoder holds at most one
// header and one frame of the limit's size, whatever the peer sends and however it is cut up; what
// is allocated and not yet received is address space, not memory.
//
// An error is final: the stream has no place to go on from, and every later call repeats it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "wire/frame.hpp"

namespace monarch::wire {

enum class Checksums {
  kAccept,   // verified where a frame has one
  kRequire,  // a frame without one is refused
};

struct DecoderOptions {
  std::uint32_t limit = k_default_limit;
  Checksums checksums = Checksums::kAccept;
  std::uint64_t first_sequence = 0;
};

class Decoder {
 public:
  explicit Decoder(const DecoderOptions& options) noexcept
      : options_(options), expected_(options.first_sequence) {}

  // Takes bytes from the front of `input` up to the end of the next frame, and returns that frame;
  // nothing when all of `input` is taken and the frame goes on. Call again while input is left.
  [[nodiscard]] base::Result<std::optional<Frame>> next(Bytes& input);

  // The largest `length` accepted from the next header on: raised once a peer is known.
  void set_limit(std::uint32_t limit) noexcept { options_.limit = limit; }

  // The number that the next frame has to carry.
  [[nodiscard]] std::uint64_t expected_sequence() const noexcept { return expected_; }

  // Bytes of an unfinished frame held so far: zero at a frame's end, where a stream may stop.
  [[nodiscard]] std::size_t pending() const noexcept { return head_filled_ + body_filled_; }

 private:
  [[nodiscard]] base::Result<void> gather_header(Bytes& input);
  [[nodiscard]] base::Result<Header> accept(Bytes head) const;
  [[nodiscard]] base::Result<Frame> finish(const Header& header, Bytes body) const;
  [[nodiscard]] base::Result<std::optional<Frame>> step(Bytes& input);

  DecoderOptions options_;
  std::uint64_t expected_;
  std::optional<base::Error> failed_;

  std::array<std::byte, k_header_size> head_{};
  std::size_t head_filled_ = 0;
  Header header_;                      // valid when head_filled_ == k_header_size
  std::shared_ptr<std::byte[]> body_;  // padding and header_.length bytes, when gathering
  std::size_t body_filled_ = 0;
};

}  // namespace monarch::wire
