#include "wire/transfer.hpp"

#include <limits>
#include <string>
#include <string_view>

namespace monarch::wire {
namespace {

using base::Bytes;
using base::Code;
using base::Error;
using base::load_little;
using base::MutableBytes;
using base::store_little;

constexpr std::size_t kAttachHead = 16;
constexpr std::size_t kWord = 8;

void write_pair(std::uint64_t first, std::uint64_t second, MutableBytes out) noexcept {
  store_little(out, first);
  store_little(out.subspan(kWord), second);
}

Error malformed(std::string_view what, std::size_t size) {
  return Error{Code::kMalformed,
               std::string(what) + " of " + std::to_string(size) + " bytes does not add up"};
}

}  // namespace

void write_segment(const SegmentOffer& offer, MutableBytes out) noexcept {
  write_pair(offer.id, offer.capacity, out);
}

void write_mapped(const Mapped& mapped, MutableBytes out) noexcept {
  write_pair(mapped.id, mapped.accepted ? 1 : 0, out);
}

void write_chunk(const Chunk& chunk, MutableBytes out) noexcept {
  write_pair(chunk.id, chunk.total, out);
}

std::vector<std::byte> attach_message(const Attach& attach) {
  std::vector<std::byte> message(kAttachHead + attach.lengths.size() * kWord);
  MutableBytes out(message);
  store_little(out, static_cast<std::uint32_t>(attach.source));
  store_little(out.subspan(4), static_cast<std::uint32_t>(attach.lengths.size()));
  store_little(out.subspan(8), attach.id);
  for (const std::uint64_t length : attach.lengths) {
    out = out.subspan(kWord);
    store_little(out.subspan(kWord), length);
  }
  return message;
}

std::vector<std::byte> ids_message(std::span<const std::uint64_t> ids) {
  std::vector<std::byte> message(ids.size() * kWord);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    store_little(MutableBytes(message).subspan(i * kWord), ids[i]);
  }
  return message;
}

base::Result<SegmentOffer> read_segment(Bytes message) {
  if (message.size() != k_segment_head) return malformed("a segment", message.size());
  const SegmentOffer offer{.id = load_little<std::uint64_t>(message),
                           .capacity = load_little<std::uint64_t>(message.subspan(kWord))};
  if (offer.capacity == 0) return malformed("a segment", message.size());
  return offer;
}

base::Result<Mapped> read_mapped(Bytes message) {
  if (message.size() != k_mapped_head) return malformed("a mapping", message.size());
  const auto accepted = load_little<std::uint64_t>(message.subspan(kWord));
  if (accepted > 1) return malformed("a mapping", message.size());
  return Mapped{.id = load_little<std::uint64_t>(message), .accepted = accepted == 1};
}

base::Result<Attach> read_attach(Bytes message) {
  const std::size_t size = message.size();
  if (size < kAttachHead) return malformed("an attachment", size);
  const auto source = load_little<std::uint32_t>(message);
  const auto count = load_little<std::uint32_t>(message.subspan(4));
  if (source > static_cast<std::uint32_t>(Source::kChunks) || count == 0 ||
      size != kAttachHead + std::size_t{count} * kWord) {
    return malformed("an attachment", size);
  }
  Attach attach{.source = static_cast<Source>(source),
                .id = load_little<std::uint64_t>(message.subspan(8)),
                .lengths = {}};
  attach.lengths.reserve(count);
  for (std::size_t at = kAttachHead; at < size; at += kWord) {
    attach.lengths.push_back(load_little<std::uint64_t>(message.subspan(at)));
  }
  return attach;
}

base::Result<std::vector<std::uint64_t>> read_ids(Bytes message) {
  if (message.empty() || message.size() % kWord != 0) return malformed("a list", message.size());
  std::vector<std::uint64_t> ids;
  ids.reserve(message.size() / kWord);
  for (; !message.empty(); message = message.subspan(kWord)) {
    ids.push_back(load_little<std::uint64_t>(message));
  }
  return ids;
}

base::Result<Chunk> read_chunk(Bytes& message) {
  if (message.size() < k_chunk_head) return malformed("a chunk", message.size());
  const Chunk chunk{.id = load_little<std::uint64_t>(message),
                    .total = load_little<std::uint64_t>(message.subspan(kWord))};
  const std::size_t size = message.size();
  message = message.subspan(k_chunk_head);
  if (message.size() > chunk.total || message.empty() != (chunk.total == 0)) {
    return malformed("a chunk", size);
  }
  return chunk;
}

std::optional<Layout> layout_of(std::span<const std::uint64_t> lengths) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max() >> 1;
  Layout layout;
  layout.offsets.reserve(lengths.size());
  std::uint64_t end = 0;
  for (const std::uint64_t length : lengths) {
    end = (end + k_part_alignment - 1) / k_part_alignment * k_part_alignment;
    if (length > kMost - end) return std::nullopt;
    layout.offsets.push_back(end);
    end += length;
    if (end > kMost - k_part_alignment) return std::nullopt;
  }
  layout.total = end;
  return layout;
}

}  // namespace monarch::wire
