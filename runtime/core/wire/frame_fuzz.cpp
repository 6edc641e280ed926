// Any bytes, cut anywhere: the decoder ends in a frame, an error or a wait, and what it accepts is
// exactly what the encoder makes of the decoded frame. The first byte of the input seeds the cuts,
// and when it is odd the checksums are put right first: else few inputs get past the header.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "base/crc32c.hpp"
#include "wire/decoder.hpp"
#include "wire/encoder.hpp"
#include "wire/message.hpp"
#include "wire/transfer.hpp"

namespace {

using monarch::base::Bytes;
namespace wire = monarch::wire;

constexpr std::uint32_t kLimit = 1U << 16;

void require(bool condition) {
  if (!condition) std::abort();
}

std::vector<std::byte> encoded_again(const wire::Frame& frame) {
  const auto again = wire::encode(frame.message, frame.buffers,
                                  {.kind = frame.header.kind,
                                   .sequence = frame.header.sequence,
                                   .checksum = (frame.header.flags & wire::k_checksummed) != 0,
                                   .limit = kLimit});
  require(again.ok());
  std::vector<std::byte> all;
  for (const Bytes piece : again->pieces()) all.insert(all.end(), piece.begin(), piece.end());
  return all;
}

// Whatever a frame says, each reader takes it or refuses it.
void read_message(Bytes message) {
  for (const auto read : {+[](Bytes& of) { return wire::read_call(of).ok(); },
                          +[](Bytes& of) { return wire::read_reply(of).ok(); },
                          +[](Bytes& of) { return wire::read_cancel(of).ok(); },
                          +[](Bytes& of) { return wire::read_credit(of).ok(); },
                          +[](Bytes& of) { return wire::read_chunk(of).ok(); }}) {
    Bytes rest = message;
    (void)read(rest);
    require(rest.size() <= message.size());
  }
  (void)wire::read_segment(message);
  (void)wire::read_mapped(message);
  (void)wire::read_ids(message);
  const auto attach = wire::read_attach(message);
  if (!attach.ok()) return;
  const auto layout = wire::layout_of(attach->lengths);
  if (!layout) return;
  std::size_t end = 0;
  for (std::size_t i = 0; i < attach->lengths.size(); ++i) {
    require(layout->offsets[i] >= end);
    end = layout->offsets[i] + attach->lengths[i];
  }
  require(end == layout->total);
}

void put_checksums_right(std::span<std::byte> stream) {
  while (stream.size() >= wire::k_header_size) {
    const auto flags = monarch::base::load_little<std::uint16_t>(stream.subspan(4));
    const auto length = monarch::base::load_little<std::uint32_t>(stream.subspan(16));
    const auto head = monarch::base::crc32c(stream.first(20));
    monarch::base::store_little(stream.subspan(20), head);
    stream = stream.subspan(wire::k_header_size);
    if (length > stream.size()) return;
    if ((flags & wire::k_checksummed) != 0 && length >= wire::k_checksum_size) {
      const auto body = stream.first(length - wire::k_checksum_size);
      monarch::base::store_little(stream.subspan(body.size()), monarch::base::crc32c(body));
    }
    stream = stream.subspan(length);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::size_t cut = data[0];
  const Bytes given = std::as_bytes(std::span(data, size)).subspan(1);
  std::vector<std::byte> stream(given.begin(), given.end());
  if (cut % 2 == 1) put_checksums_right(stream);
  Bytes rest(stream);
  const std::byte* frame_start = rest.data();

  wire::Decoder decoder({.limit = kLimit});
  while (!rest.empty()) {
    const std::size_t take = std::min(rest.size(), cut == 0 ? rest.size() : cut);
    cut = (cut * 7 + 3) % 256;
    Bytes input = rest.first(take);
    rest = rest.subspan(take);
    while (!input.empty()) {
      const std::size_t before = input.size();
      auto result = decoder.next(input);
      if (!result.ok()) return 0;
      require(input.size() < before);
      require(decoder.pending() <= wire::k_header_size + kLimit);
      if (!result->has_value()) {
        require(input.empty());
        continue;
      }
      read_message((*result)->message);
      const auto again = encoded_again(**result);
      require(std::equal(again.begin(), again.end(), frame_start, input.data()));
      frame_start = input.data();
    }
  }
  return 0;
}
