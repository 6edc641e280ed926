// Any bytes, cut anywhere: the decoder ends in a frame, an error or a wait, and what it accepts is
// exactly what the encoder makes of the decoded frame. The first byte of the input seeds the cuts.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "wire/decoder.hpp"
#include "wire/encoder.hpp"

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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::size_t cut = data[0];
  Bytes rest = std::as_bytes(std::span(data, size)).subspan(1);
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
      const auto again = encoded_again(**result);
      require(std::equal(again.begin(), again.end(), frame_start, input.data()));
      frame_start = input.data();
    }
  }
  return 0;
}
