// From a message and its buffers to the pieces that go to the socket, in order, without copying
// them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "wire/frame.hpp"

namespace monarch::wire {

// What goes between a message and its buffers, as far as there is need of it.
extern const Bytes k_zeros;

// The sizes of a frame without a checksum, whose message is the concatenation of `parts`.
struct FrameShape {
  std::size_t head;      // header and table
  std::size_t message;
  std::uint64_t length;  // of all that follows the header
};

// These are part of every message sent, and not worth a call.
[[nodiscard]] inline FrameShape shape_of(std::span<const Bytes> parts,
                                         std::span<const Bytes> buffers) noexcept {
  FrameShape shape{.head = k_header_size + table_size(buffers.size()), .message = 0, .length = 0};
  for (const Bytes part : parts) shape.message += part.size();
  std::uint64_t end = shape.head + shape.message;
  for (const Bytes buffer : buffers) end += padding_at(end) + buffer.size();
  shape.length = end - k_header_size;
  return shape;
}

// Whether a frame of this shape, with so many buffers, is within the limits; the error says what it
// has and what they are.
[[nodiscard]] base::Result<void> check_limits(const FrameShape& shape, std::size_t buffers);

// The sizes of a message and its buffers, where it has any.
inline void write_table(std::size_t message, std::span<const Bytes> buffers,
                        base::MutableBytes entry) noexcept {
  if (buffers.empty()) return;
  base::store_little(entry, static_cast<std::uint32_t>(message));
  for (const Bytes buffer : buffers) {
    entry = entry.subspan(4);
    base::store_little(entry, static_cast<std::uint32_t>(buffer.size()));
  }
}

// The first `shape.head` bytes of that frame, which has to be within the limits.
inline void write_head(std::uint8_t kind, std::uint64_t sequence, const FrameShape& shape,
                       std::span<const Bytes> buffers, base::MutableBytes out) noexcept {
  write_header({.kind = kind,
                .flags = 0,
                .buffers = static_cast<std::uint16_t>(buffers.size()),
                .sequence = sequence,
                .length = static_cast<std::uint32_t>(shape.length)},
               out);
  write_table(shape.message, buffers, out.subspan(k_header_size));
}

struct EncodeOptions {
  std::uint8_t kind = 0;
  std::uint64_t sequence = 0;
  bool checksum = false;
  std::uint32_t limit = k_default_limit;
};

// The pieces of one frame, for a gathering write. Those of the message and the buffers point to
// what encode() was given and live as long as that; the rest is owned here.
class EncodedFrame {
 public:
  [[nodiscard]] std::span<const Bytes> pieces() const noexcept { return pieces_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  friend base::Result<EncodedFrame> encode(Bytes, std::span<const Bytes>, const EncodeOptions&);

  std::unique_ptr<std::byte[]> head_;  // header and table
  std::unique_ptr<std::byte[]> tail_;  // checksum
  std::vector<Bytes> pieces_;
  std::size_t size_ = 0;
};

// Fails when there are more than k_max_buffers buffers, or when the frame's length would go past
// the limit: the message names both sizes.
[[nodiscard]] base::Result<EncodedFrame> encode(Bytes message, std::span<const Bytes> buffers,
                                                const EncodeOptions& options);

}  // namespace monarch::wire
