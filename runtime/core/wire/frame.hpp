// The frame: one message and its out-of-band buffers, as they travel on a byte stream.
//
// All integers are little-endian. A frame is
//
//   offset  size  header
//        0     2  magic, "M" 0xF2
//        2     1  version of this layout
//        3     1  kind, the business of the floor above
//        4     2  flags
//        6     2  number of out-of-band buffers
//        8     8  sequence number within the session
//       16     4  length of all that follows the header
//       20     4  CRC-32C of the 20 bytes before
//
// followed by the message; under the flag k_checksummed, last, by the CRC-32C of all between.
// With out-of-band buffers there is a table before the message (4-byte lengths of the message and
// of each buffer), and the buffers come after it, zeros in front of each up to a multiple of 16
// bytes from the frame's start. A frame has one encoding: anything else is refused.
//
// The header's checksum is always there: it is what tells a peer that lost its place, or speaks
// another protocol, from one that sends a large frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace monarch::wire {

using base::Bytes;

inline constexpr std::size_t k_header_size = 24;
inline constexpr std::uint8_t k_version = 1;
inline constexpr std::size_t k_alignment = 16;
inline constexpr std::size_t k_checksum_size = 4;
// Of `length`; larger things travel in chunks.
inline constexpr std::uint32_t k_default_limit = 64U << 20;
inline constexpr std::size_t k_max_buffers = 0xFFFF;

inline constexpr std::uint16_t k_checksummed = 1;
inline constexpr std::uint16_t k_known_flags = k_checksummed;

struct Header {
  std::uint8_t kind = 0;
  std::uint16_t flags = 0;
  std::uint16_t buffers = 0;
  std::uint64_t sequence = 0;
  std::uint32_t length = 0;
};

// The 24 bytes of `header`, checksum included.
void write_header(const Header& header, base::MutableBytes out) noexcept;

// The header in 24 bytes. Fails for another magic, version or checksum and for unknown flags;
// limits and sequence numbers are the decoder's.
[[nodiscard]] base::Result<Header> read_header(Bytes bytes);

// Whether fewer than 24 bytes can still become a header: fails at the first byte that cannot.
[[nodiscard]] base::Result<void> check_prefix(Bytes bytes);

// Bytes of the table in front of the message.
[[nodiscard]] constexpr std::size_t table_size(std::size_t buffers) noexcept {
  return buffers == 0 ? 0 : 4 * (buffers + 1);
}

// The zeros in front of a buffer that would else start `offset` bytes into the frame.
[[nodiscard]] constexpr std::size_t padding_at(std::size_t offset) noexcept {
  return (k_alignment - offset % k_alignment) % k_alignment;
}

// A frame that was decoded. `message` and `buffers` point into `storage`, or, where that is null,
// into the input that Decoder::next was given, and live as long as that.
struct Frame {
  Header header;
  Bytes message;
  std::vector<Bytes> buffers;
  std::shared_ptr<const std::byte[]> storage;
};

}  // namespace monarch::wire
