#include "wire/transfer.hpp"

#include <doctest/doctest.h>

#include <array>
#include <vector>

using monarch::base::Bytes;
using namespace monarch::wire;

namespace {

std::vector<std::byte> raw(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

}  // namespace

TEST_CASE("what is said about large payloads reads back as written") {
  std::array<std::byte, 16> head;
  write_segment({.id = 7, .capacity = 1 << 20}, head);
  CHECK(read_segment(head)->id == 7);
  CHECK(read_segment(head)->capacity == 1 << 20);
  write_mapped({.id = 8, .accepted = true}, head);
  CHECK(read_mapped(head)->id == 8);
  CHECK(read_mapped(head)->accepted);
  write_mapped({.id = 8, .accepted = false}, head);
  CHECK_FALSE(read_mapped(head)->accepted);

  const auto message = attach_message({.source = Source::kChunks, .id = 9, .lengths = {0, 5, 70}});
  const auto attach = read_attach(message);
  REQUIRE(attach.ok());
  CHECK(attach->source == Source::kChunks);
  CHECK(attach->id == 9);
  CHECK(attach->lengths == std::vector<std::uint64_t>{0, 5, 70});

  const std::vector<std::uint64_t> ids{1, std::uint64_t{1} << 63};
  CHECK(*read_ids(ids_message(ids)) == ids);
}

TEST_CASE("a segment has these bytes on the wire") {
  std::array<std::byte, 16> head;
  write_segment({.id = 0x0102, .capacity = 0x10000}, head);
  CHECK(std::vector<std::byte>(head.begin(), head.end()) ==
        raw({2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0}));
}

TEST_CASE("a chunk is its head and the bytes behind it") {
  std::vector<std::byte> message(k_chunk_head + 3);
  write_chunk({.id = 4, .total = 10}, message);
  Bytes rest(message);
  const auto chunk = read_chunk(rest);
  REQUIRE(chunk.ok());
  CHECK(chunk->id == 4);
  CHECK(chunk->total == 10);
  CHECK(rest.data() == message.data() + k_chunk_head);
  CHECK(rest.size() == 3);

  write_chunk({.id = 4, .total = 0}, message);
  rest = Bytes(message).first(k_chunk_head);
  CHECK(read_chunk(rest)->total == 0);
}

TEST_CASE("messages about payloads that do not add up are refused") {
  std::vector<std::byte> sixteen(16);
  CHECK_FALSE(read_segment(sixteen).ok());  // of no size
  CHECK_FALSE(read_segment(Bytes(sixteen).first(15)).ok());
  sixteen[8] = std::byte{2};
  CHECK_FALSE(read_mapped(sixteen).ok());
  CHECK(read_mapped(sixteen).error().message == "a mapping of 16 bytes does not add up");
  CHECK_FALSE(read_ids({}).ok());
  CHECK_FALSE(read_ids(Bytes(sixteen).first(9)).ok());

  auto attach = attach_message({.source = Source::kSegment, .id = 1, .lengths = {1, 2}});
  CHECK_FALSE(read_attach(Bytes(attach).first(attach.size() - 1)).ok());
  CHECK_FALSE(read_attach(Bytes(attach).first(16)).ok());
  attach[0] = std::byte{2};
  CHECK_FALSE(read_attach(attach).ok());
  CHECK_FALSE(read_attach(attach_message({.source = Source::kSegment, .id = 1, .lengths = {}})).ok());

  std::vector<std::byte> chunk(k_chunk_head + 3);
  for (const std::uint64_t total : {0U, 2U}) {
    write_chunk({.id = 1, .total = total}, chunk);
    Bytes rest(chunk);
    CHECK_FALSE(read_chunk(rest).ok());
  }
  write_chunk({.id = 1, .total = 2}, chunk);
  Bytes rest = Bytes(chunk).first(k_chunk_head);
  CHECK_FALSE(read_chunk(rest).ok());
}

TEST_CASE("parts are laid out one behind the other, each aligned to a cache line") {
  const std::vector<std::uint64_t> lengths{3, 64, 0, 1};
  const auto layout = layout_of(lengths);
  REQUIRE(layout);
  CHECK(layout->offsets == std::vector<std::size_t>{0, 64, 128, 128});
  CHECK(layout->total == 129);
  CHECK(layout_of({})->total == 0);
}

TEST_CASE("lengths whose sum overflows have no layout") {
  const std::uint64_t most = ~std::uint64_t{0};
  CHECK_FALSE(layout_of(std::vector<std::uint64_t>{most}));
  CHECK_FALSE(layout_of(std::vector<std::uint64_t>{most / 2, most / 2, most / 2}));
  CHECK_FALSE(layout_of(std::vector<std::uint64_t>{1, most - 63}));
  CHECK(layout_of(std::vector<std::uint64_t>{most / 8, most / 8})->total > most / 8);
}
