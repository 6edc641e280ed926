#include "wire/encoder.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

using monarch::base::Bytes;
using monarch::base::Code;
using namespace monarch::wire;

namespace {

Bytes bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

std::vector<std::byte> joined(const EncodedFrame& frame) {
  std::vector<std::byte> all;
  for (const Bytes piece : frame.pieces()) all.insert(all.end(), piece.begin(), piece.end());
  return all;
}

}  // namespace

TEST_CASE("a small frame, byte by byte") {
  const auto frame = encode(bytes("hi"), {}, {.kind = 7, .sequence = 0x0102});
  REQUIRE(frame.ok());
  const auto all = joined(*frame);
  const std::array<unsigned char, 20> head = {'M', 0xF2, 1, 7, 0, 0, 0, 0, 2, 1,
                                              0,   0,    0, 0, 0, 0, 2, 0, 0, 0};
  REQUIRE(all.size() == k_header_size + 2);
  CHECK(std::equal(head.begin(), head.end(), all.begin(),
                   [](unsigned char a, std::byte b) { return std::byte{a} == b; }));
  CHECK(all[24] == std::byte{'h'});
  CHECK(frame->size() == all.size());
}

TEST_CASE("message and buffers are passed on, not copied") {
  const Bytes message = bytes("message");
  const std::vector<Bytes> buffers = {bytes("first"), bytes(""), bytes("third buffer")};
  const auto frame = encode(message, buffers, {.checksum = true});
  REQUIRE(frame.ok());
  std::vector<const std::byte*> starts;
  for (const Bytes piece : frame->pieces()) starts.push_back(piece.data());
  for (const Bytes part : {message, buffers[0], buffers[2]}) {
    CHECK(std::find(starts.begin(), starts.end(), part.data()) != starts.end());
  }
}

TEST_CASE("buffers start at multiples of the alignment") {
  const Bytes message = bytes("seven..");
  const std::vector<Bytes> buffers = {bytes("a"), bytes("bc"), bytes("0123456789abcdef")};
  const auto frame = encode(message, buffers, {});
  REQUIRE(frame.ok());
  std::size_t offset = 0;
  for (const Bytes piece : frame->pieces()) {
    for (const Bytes buffer : buffers) {
      if (piece.data() == buffer.data()) CHECK(offset % k_alignment == 0);
    }
    offset += piece.size();
  }
}

TEST_CASE("a frame above the limit is refused with both sizes") {
  const std::vector<std::byte> large(101);
  const auto refused = encode(large, {}, {.limit = 100});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Code::kLimit);
  CHECK(refused.error().message.find("101 bytes") != std::string::npos);
  CHECK(refused.error().message.find("limit of 100") != std::string::npos);
  CHECK(encode(large, {}, {.limit = 101}).ok());
}

TEST_CASE("sizes that are past any memory are counted right") {
  // Never read: the views only claim to be this large.
  const std::byte nothing{};
  const Bytes huge(&nothing, std::size_t{1} << 62);
  const std::vector<Bytes> buffers = {huge, huge};
  CHECK(encode({}, buffers, {}).error().code == Code::kLimit);
}

TEST_CASE("one buffer too many is refused") {
  const std::vector<Bytes> buffers(k_max_buffers + 1);
  CHECK(encode({}, buffers, {}).error().code == Code::kLimit);
  CHECK(encode({}, std::span(buffers).first(k_max_buffers), {}).ok());
}
