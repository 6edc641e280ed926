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

[[nodiscard]] FrameShape shape_of(std::span<const Bytes> parts,
                                  std::span<const Bytes> buffers) noexcept;
// The first `shape.head` bytes of that frame, which has to be within the limits.
void write_head(std::uint8_t kind, std::uint64_t sequence, const FrameShape& shape,
                std::span<const Bytes> buffers, base::MutableBytes out) noexcept;

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
