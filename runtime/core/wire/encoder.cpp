#include "wire/encoder.hpp"

#include <array>
#include <string>

#include "base/crc32c.hpp"

namespace monarch::wire {
namespace {

using base::Code;
using base::Error;

constexpr std::array<std::byte, k_alignment> kZeros{};

}  // namespace

const Bytes k_zeros(kZeros);

base::Result<void> check_limits(const FrameShape& shape, std::size_t buffers) {
  if (shape.length <= k_default_limit && buffers <= k_max_buffers) return {};
  return Error{Code::kLimit, "a message of " + std::to_string(shape.length) + " bytes in " +
                                 std::to_string(buffers + 1) + " parts is above the limit of " +
                                 std::to_string(k_default_limit) + " bytes in " +
                                 std::to_string(k_max_buffers + 1) + " parts"};
}

base::Result<EncodedFrame> encode(Bytes message, std::span<const Bytes> buffers,
                                  const EncodeOptions& options) {
  if (buffers.size() > k_max_buffers) {
    return Error{Code::kLimit, "a frame carries at most " + std::to_string(k_max_buffers) +
                                   " out-of-band buffers, not " + std::to_string(buffers.size())};
  }
  // No sum of what fits into memory leaves 64 bits.
  const std::uint64_t length =
      shape_of({&message, 1}, buffers).length + (options.checksum ? k_checksum_size : 0);
  if (length > options.limit) {
    return Error{Code::kLimit, "a frame of " + std::to_string(length) + " bytes is above the limit of " +
                                   std::to_string(options.limit) + "; send it in chunks"};
  }
  const Header header{
      .kind = options.kind,
      .flags = options.checksum ? k_checksummed : std::uint16_t{0},
      .buffers = static_cast<std::uint16_t>(buffers.size()),
      .sequence = options.sequence,
      .length = static_cast<std::uint32_t>(length),
  };

  EncodedFrame frame;
  const std::size_t head_size = k_header_size + table_size(buffers.size());
  frame.head_ = std::make_unique_for_overwrite<std::byte[]>(head_size);
  const base::MutableBytes head(frame.head_.get(), head_size);
  write_header(header, head);
  write_table(message.size(), buffers, head.subspan(k_header_size));

  const auto add = [&frame](Bytes piece) {
    if (piece.empty()) return;
    frame.pieces_.push_back(piece);
    frame.size_ += piece.size();
  };
  add(head);
  add(message);
  for (const Bytes buffer : buffers) {
    add(k_zeros.first(padding_at(frame.size_)));
    add(buffer);
  }
  if (options.checksum) {
    std::uint32_t crc = base::crc32c(head.subspan(k_header_size));
    for (const Bytes piece : frame.pieces().subspan(1)) crc = base::crc32c(piece, crc);
    frame.tail_ = std::make_unique_for_overwrite<std::byte[]>(k_checksum_size);
    const base::MutableBytes tail(frame.tail_.get(), k_checksum_size);
    base::store_little(tail, crc);
    add(tail);
  }
  return frame;
}

}  // namespace monarch::wire
