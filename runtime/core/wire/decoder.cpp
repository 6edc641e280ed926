#include "wire/decoder.hpp"

#include <algorithm>
#include <new>
#include <string>

#include "base/crc32c.hpp"

namespace monarch::wire {
namespace {

using base::Code;
using base::Error;

// The body starts where it would start in a frame that is aligned itself, so that the buffers'
// padding, which counts from the frame's start, makes their addresses aligned too.
constexpr std::size_t kBodyOffset = k_header_size % k_alignment;

std::shared_ptr<std::byte[]> make_body(std::size_t length) {
  auto* start = static_cast<std::byte*>(
      ::operator new[](kBodyOffset + length, std::align_val_t{k_alignment}));
  return {start, [](std::byte* p) { ::operator delete[](p, std::align_val_t{k_alignment}); }};
}

Bytes take(Bytes& input, std::size_t count) noexcept {
  const Bytes taken = input.first(count);
  input = input.subspan(count);
  return taken;
}

std::string frame_name(const Header& header) { return "frame " + std::to_string(header.sequence); }

}  // namespace

base::Result<std::optional<Frame>> Decoder::next(Bytes& input) {
  if (failed_) return *failed_;
  auto result = step(input);
  if (!result) {
    failed_ = result.error();
    body_.reset();
    head_filled_ = body_filled_ = 0;
  }
  return result;
}

base::Result<std::optional<Frame>> Decoder::step(Bytes& input) {
  if (head_filled_ == 0 && input.size() >= k_header_size) {
    auto header = accept(input.first(k_header_size));
    if (!header) return std::move(header).error();
    if (input.size() - k_header_size >= header->length) {
      (void)take(input, k_header_size);
      auto frame = finish(*header, take(input, header->length));
      if (!frame) return std::move(frame).error();
      ++expected_;
      return std::optional<Frame>(*std::move(frame));
    }
  }
  if (head_filled_ < k_header_size) {
    if (auto gathered = gather_header(input); !gathered) return std::move(gathered).error();
    if (head_filled_ < k_header_size) return std::optional<Frame>();
  }

  const Bytes part = take(input, std::min(input.size(), header_.length - body_filled_));
  std::copy(part.begin(), part.end(), body_.get() + kBodyOffset + body_filled_);
  body_filled_ += part.size();
  if (body_filled_ < header_.length) return std::optional<Frame>();

  auto frame = finish(header_, Bytes(body_.get() + kBodyOffset, header_.length));
  if (!frame) return std::move(frame).error();
  frame->storage = std::move(body_);
  body_.reset();
  head_filled_ = body_filled_ = 0;
  ++expected_;
  return std::optional<Frame>(*std::move(frame));
}

base::Result<void> Decoder::gather_header(Bytes& input) {
  const Bytes part = take(input, std::min(input.size(), k_header_size - head_filled_));
  std::copy(part.begin(), part.end(), head_.begin() + static_cast<std::ptrdiff_t>(head_filled_));
  head_filled_ += part.size();
  if (head_filled_ < k_header_size) return check_prefix(Bytes(head_).first(head_filled_));
  auto header = accept(head_);
  if (!header) return std::move(header).error();
  header_ = *header;
  body_ = make_body(header_.length);
  return {};
}

base::Result<Header> Decoder::accept(Bytes head) const {
  auto header = read_header(head);
  if (!header) return header;
  if (header->length > options_.limit) {
    return Error{Code::kLimit, frame_name(*header) + " of " + std::to_string(header->length) +
                                   " bytes is above the limit of " + std::to_string(options_.limit)};
  }
  if (header->sequence != expected_) {
    return Error{Code::kSequence,
                 frame_name(*header) + (header->sequence < expected_ ? " was here before"
                                                                     : " came too early") +
                     ", wanted frame " + std::to_string(expected_)};
  }
  const bool checksummed = (header->flags & k_checksummed) != 0;
  if (!checksummed && options_.checksums == Checksums::kRequire) {
    return Error{Code::kCorrupt, frame_name(*header) + " has no checksum, and this link wants one"};
  }
  const std::size_t least = table_size(header->buffers) + (checksummed ? k_checksum_size : 0);
  if (header->length < least) {
    return Error{Code::kMalformed, frame_name(*header) + " of " + std::to_string(header->length) +
                                       " bytes cannot hold its table, which takes " +
                                       std::to_string(least)};
  }
  return header;
}

base::Result<Frame> Decoder::finish(const Header& header, Bytes body) const {
  if ((header.flags & k_checksummed) != 0) {
    const Bytes trailer = body.last(k_checksum_size);
    body = body.first(body.size() - k_checksum_size);
    const auto stated = base::load_little<std::uint32_t>(trailer);
    if (stated != base::crc32c(body)) {
      return Error{Code::kCorrupt, frame_name(header) + " of " + std::to_string(header.length) +
                                       " bytes does not fit its checksum"};
    }
  }

  Frame frame{.header = header, .message = body, .buffers = {}, .storage = {}};
  if (header.buffers == 0) return frame;

  Bytes table = take(body, table_size(header.buffers));
  const auto next_size = [&table] {
    return std::size_t{base::load_little<std::uint32_t>(take(table, 4))};
  };
  std::size_t offset = k_header_size + table.size();  // within the frame
  const auto cut = [&](std::size_t padding, std::size_t size) -> base::Result<Bytes> {
    if (padding + size > body.size()) {
      return Error{Code::kMalformed, frame_name(header) + " of " + std::to_string(header.length) +
                                         " bytes ends inside its part of " + std::to_string(size) +
                                         " bytes"};
    }
    const Bytes zeros = take(body, padding);
    if (std::any_of(zeros.begin(), zeros.end(), [](std::byte b) { return b != std::byte{0}; })) {
      return Error{Code::kMalformed, frame_name(header) + " has padding that is not zero"};
    }
    offset += padding + size;
    return take(body, size);
  };

  auto message = cut(0, next_size());
  if (!message) return std::move(message).error();
  frame.message = *message;
  frame.buffers.reserve(header.buffers);
  while (!table.empty()) {
    auto buffer = cut(padding_at(offset), next_size());
    if (!buffer) return std::move(buffer).error();
    frame.buffers.push_back(*buffer);
  }
  if (!body.empty()) {
    return Error{Code::kMalformed, frame_name(header) + " of " + std::to_string(header.length) +
                                       " bytes has " + std::to_string(body.size()) +
                                       " more than its table says"};
  }
  return frame;
}

}  // namespace monarch::wire
