// What the frames say that large payloads need: they travel apart from their messages, through
// segments of shared memory or in chunks, and a message only refers to them. Little-endian.
//
//   segment  id 8, capacity 8; its descriptor comes with the first byte
//   mapped   id 8, accepted 8 (0 or 1)
//   attach   source 4, count 4, id 8; then `count` lengths of 8: the parts of the next message
//   release  ids of 8, at least one: the receiver has no view of these segments any more
//   drop     ids of 8, at least one: the sender has no use for these segments any more
//   chunk    id 8, total 8; then bytes, to be put behind those of the chunks before. Total 0: the
//            transfer was given up
//
// The parts of a payload lie one behind the other, each from a multiple of 64 bytes on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace monarch::wire {

enum class Source : std::uint32_t { kSegment = 0, kChunks = 1 };

struct SegmentOffer {
  std::uint64_t id = 0;
  std::uint64_t capacity = 0;
};

struct Mapped {
  std::uint64_t id = 0;
  bool accepted = false;
};

struct Attach {
  Source source = Source::kSegment;
  std::uint64_t id = 0;
  std::vector<std::uint64_t> lengths;
};

struct Chunk {
  std::uint64_t id = 0;
  std::uint64_t total = 0;
};

inline constexpr std::size_t k_segment_head = 16;
inline constexpr std::size_t k_mapped_head = 16;
inline constexpr std::size_t k_chunk_head = 16;
inline constexpr std::size_t k_part_alignment = 64;

void write_segment(const SegmentOffer& offer, base::MutableBytes out) noexcept;
void write_mapped(const Mapped& mapped, base::MutableBytes out) noexcept;
void write_chunk(const Chunk& chunk, base::MutableBytes out) noexcept;
[[nodiscard]] std::vector<std::byte> attach_message(const Attach& attach);
[[nodiscard]] std::vector<std::byte> ids_message(std::span<const std::uint64_t> ids);

[[nodiscard]] base::Result<SegmentOffer> read_segment(base::Bytes message);
[[nodiscard]] base::Result<Mapped> read_mapped(base::Bytes message);
[[nodiscard]] base::Result<Attach> read_attach(base::Bytes message);
[[nodiscard]] base::Result<std::vector<std::uint64_t>> read_ids(base::Bytes message);
// Takes the head from the front and leaves the bytes.
[[nodiscard]] base::Result<Chunk> read_chunk(base::Bytes& message);

// Where the parts lie.
struct Layout {
  std::vector<std::size_t> offsets;
  std::size_t total = 0;
};

// None where the sum does not fit into 63 bits.
[[nodiscard]] std::optional<Layout> layout_of(std::span<const std::uint64_t> lengths);

}  // namespace monarch::wire
