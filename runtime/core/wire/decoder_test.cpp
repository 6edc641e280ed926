#include "wire/decoder.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/crc32c.hpp"
#include "wire/encoder.hpp"

using monarch::base::Bytes;
using monarch::base::Code;
using namespace monarch::wire;

namespace {

using Stream = std::vector<std::byte>;

Bytes bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

void append(Stream& stream, Bytes message, std::span<const Bytes> buffers, EncodeOptions options) {
  const auto frame = encode(message, buffers, options);
  REQUIRE(frame.ok());
  for (const Bytes piece : frame->pieces()) stream.insert(stream.end(), piece.begin(), piece.end());
}

Stream one(std::string_view message, EncodeOptions options = {}) {
  Stream stream;
  append(stream, bytes(message), {}, options);
  return stream;
}

// Puts the header's checksum right again after a test has changed the header.
void reseal(Stream& stream) {
  monarch::base::store_little(std::span(stream).subspan(20),
                              monarch::base::crc32c(Bytes(stream).first(20)));
}

// What the decoder says to a stream in one piece.
monarch::base::Result<std::optional<Frame>> decoded(const Stream& stream,
                                                    const DecoderOptions& options = {}) {
  Decoder decoder(options);
  Bytes input(stream);
  return decoder.next(input);
}

bool same(Bytes a, Bytes b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a frame comes out as it went in") {
  const std::vector<Bytes> buffers = {bytes("first"), bytes(""), bytes("a longer third buffer")};
  for (const bool checksum : {false, true}) {
    Stream stream;
    append(stream, bytes("message"), buffers, {.kind = 9, .sequence = 5, .checksum = checksum});
    const auto frame = decoded(stream, {.first_sequence = 5});
    REQUIRE(frame.ok());
    REQUIRE(frame->has_value());
    CHECK((*frame)->header.kind == 9);
    CHECK((*frame)->header.sequence == 5);
    CHECK(same((*frame)->message, bytes("message")));
    REQUIRE((*frame)->buffers.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) CHECK(same((*frame)->buffers[i], buffers[i]));
  }
}

TEST_CASE("a frame that is whole in the input is not copied") {
  const Stream stream = one("message");
  const auto frame = decoded(stream);
  REQUIRE(frame.ok());
  CHECK((*frame)->storage == nullptr);
  CHECK((*frame)->message.data() == stream.data() + k_header_size);
}

TEST_CASE("any cutting of a stream gives the same frames") {
  std::mt19937 random(20251129);  // NOLINT: the seed is the point
  Stream stream;
  std::vector<std::vector<Stream>> sent;
  for (std::uint64_t sequence = 0; sequence < 40; ++sequence) {
    std::vector<Stream> parts;
    for (std::size_t i = 0, count = 1 + random() % 4; i < count; ++i) {
      Stream part(random() % 90);
      for (std::byte& byte : part) byte = static_cast<std::byte>(random());
      parts.push_back(std::move(part));
    }
    const std::vector<Bytes> buffers(parts.begin() + 1, parts.end());
    append(stream, parts[0], buffers, {.sequence = sequence, .checksum = random() % 2 == 0});
    sent.push_back(std::move(parts));
  }
  for (std::size_t largest = 1; largest < 400; largest += 1 + largest / 4) {
    Decoder decoder({});
    std::size_t count = 0;
    for (Bytes rest(stream); !rest.empty();) {
      const std::size_t size = std::min<std::size_t>(rest.size(), 1 + random() % largest);
      Bytes input = rest.first(size);
      rest = rest.subspan(size);
      while (!input.empty()) {
        const auto frame = decoder.next(input);
        REQUIRE(frame.ok());
        if (!frame->has_value()) continue;
        const auto& parts = sent.at(count++);
        REQUIRE((*frame)->buffers.size() == parts.size() - 1);
        REQUIRE(same((*frame)->message, parts[0]));
        for (std::size_t i = 1; i < parts.size(); ++i) {
          REQUIRE(same((*frame)->buffers[i - 1], parts[i]));
        }
      }
    }
    CHECK(count == sent.size());
    CHECK(decoder.pending() == 0);
  }
}

TEST_CASE("an empty message in single bytes") {
  const Stream stream = one("");
  Decoder decoder({});
  for (std::size_t i = 0; i < stream.size(); ++i) {
    Bytes input = Bytes(stream).subspan(i, 1);
    const auto frame = decoder.next(input);
    REQUIRE(frame.ok());
    CHECK(frame->has_value() == (i + 1 == stream.size()));
  }
}

TEST_CASE("gathered buffers are aligned") {
  const std::vector<Bytes> buffers = {bytes("a"), bytes("bcd")};
  Stream stream;
  append(stream, bytes("message"), buffers, {});
  Decoder decoder({});
  Bytes first = Bytes(stream).first(30);
  Bytes second = Bytes(stream).subspan(30);
  REQUIRE(decoder.next(first).ok());
  CHECK(decoder.pending() == 30);
  const auto frame = decoder.next(second);
  REQUIRE(frame.ok());
  REQUIRE((*frame)->storage != nullptr);
  for (const Bytes buffer : (*frame)->buffers) {
    CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % k_alignment == 0);
  }
}

TEST_CASE("a length above the limit is refused when the header is read, with both sizes") {
  for (const std::uint32_t length : {k_default_limit + 1, 0x80000000U, 0xFFFFFFFFU}) {
    Stream stream = one("");
    monarch::base::store_little(std::span(stream).subspan(16), length);
    reseal(stream);
    const auto refused = decoded(stream);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == Code::kLimit);
    CHECK(has(refused.error().message, std::to_string(length) + " bytes"));
    CHECK(has(refused.error().message, "limit of " + std::to_string(k_default_limit)));
  }
}

TEST_CASE("the limit can be raised between frames") {
  Stream stream = one("small");
  append(stream, bytes(std::string(5000, 'x')), {}, {.sequence = 1});
  Decoder decoder({.limit = 4096});
  Bytes input(stream);
  REQUIRE(decoder.next(input).ok());
  decoder.set_limit(k_default_limit);
  const auto frame = decoder.next(input);
  REQUIRE(frame.ok());
  CHECK((*frame)->message.size() == 5000);
}

TEST_CASE("what is no frame is refused at its first byte") {
  Decoder decoder({});
  Bytes input = bytes("G");
  const auto refused = decoder.next(input);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Code::kMalformed);
  CHECK(has(refused.error().message, "starts with 47, wanted 4d f2"));
}

TEST_CASE("another version is told apart and both are named") {
  Stream stream = one("");
  stream[2] = std::byte{2};
  const auto refused = decoded(stream);
  CHECK(refused.error().code == Code::kVersion);
  CHECK(has(refused.error().message, "version 2, this side speaks 1"));
}

TEST_CASE("a changed header does not fit its checksum, whichever bit it is") {
  const Stream good = one("message", {.kind = 3, .sequence = 0});
  for (std::size_t bit = 24; bit < 8 * k_header_size; ++bit) {
    Stream stream = good;
    stream[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    CHECK(decoded(stream).error().code == Code::kCorrupt);
  }
}

TEST_CASE("a changed body is found where there is a checksum") {
  const Stream good = one("message", {.checksum = true});
  for (std::size_t bit = 8 * k_header_size; bit < 8 * good.size(); ++bit) {
    Stream stream = good;
    stream[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    CHECK(decoded(stream).error().code == Code::kCorrupt);
  }
}

TEST_CASE("a link that wants checksums refuses a frame without one") {
  const DecoderOptions strict{.checksums = Checksums::kRequire};
  CHECK(decoded(one("message"), strict).error().code == Code::kCorrupt);
  CHECK(decoded(one("message", {.checksum = true}), strict).ok());
}

TEST_CASE("replayed and skipped numbers end the stream") {
  for (const std::uint64_t sequence : {0U, 2U}) {
    Stream stream = one("first");
    append(stream, bytes("second"), {}, {.sequence = sequence});
    Decoder decoder({});
    Bytes input(stream);
    REQUIRE(decoder.next(input).ok());
    const auto refused = decoder.next(input);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == Code::kSequence);
    CHECK(has(refused.error().message, "wanted frame 1"));
  }
}

TEST_CASE("unknown flags are refused") {
  Stream stream = one("");
  stream[5] = std::byte{0x40};
  reseal(stream);
  CHECK(decoded(stream).error().code == Code::kMalformed);
}

TEST_CASE("tables that do not fit the frame are refused") {
  const std::vector<Bytes> buffers = {bytes("buffer")};
  Stream good;
  append(good, bytes("message"), buffers, {});
  SUBCASE("a message past the end") { good[24] = std::byte{200}; }
  SUBCASE("a buffer past the end") { good[31] = std::byte{0xFF}; }
  SUBCASE("a buffer that leaves bytes over") { good[28] = std::byte{5}; }
  SUBCASE("padding that is not zero") { good[39] = std::byte{1}; }
  SUBCASE("a frame too small for its table") {
    good.resize(k_header_size + 7);
    good[16] = std::byte{7};
    reseal(good);
  }
  CHECK(decoded(good).error().code == Code::kMalformed);
}

TEST_CASE("an error is final") {
  Decoder decoder({});
  Bytes garbage = bytes("garbage");
  const auto first = decoder.next(garbage);
  const Stream stream = one("good");
  Bytes input(stream);
  const auto second = decoder.next(input);
  CHECK(second.error().message == first.error().message);
  CHECK(input.size() == stream.size());
  CHECK(decoder.pending() == 0);
}
