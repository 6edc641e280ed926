#include "wire/message.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

namespace monarch::wire {
namespace {

using base::Bytes;

std::vector<std::byte> call_bytes(const Call& call, std::string_view payload) {
  std::vector<std::byte> bytes(k_call_head);
  write_call(call, bytes);
  for (const std::string_view text : {call.endpoint, call.extent, payload}) {
    for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
  }
  return bytes;
}

TEST_CASE("a call is read as it was written, and leaves its payload") {
  const Call call{.actor = 1ULL << 60,
                  .sender = 2,
                  .reply_proc = 3,
                  .inbox = 4,
                  .rank = 5,
                  .flags = 6,
                  .endpoint = "step",
                  .extent = "gpus=2"};
  const auto bytes = call_bytes(call, "payload");
  Bytes message(bytes);
  const auto read = read_call(message);
  REQUIRE(read.ok());
  CHECK(read->actor == call.actor);
  CHECK(read->sender == 2);
  CHECK(read->reply_proc == 3);
  CHECK(read->inbox == 4);
  CHECK(read->rank == 5);
  CHECK(read->flags == 6);
  CHECK(read->endpoint == "step");
  CHECK(read->extent == "gpus=2");
  CHECK(message.size() == 7);
}

TEST_CASE("a call cut short anywhere in its head or names is refused") {
  const auto bytes = call_bytes({.actor = 1, .endpoint = "step", .extent = "gpus=2"}, "");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    Bytes message = Bytes(bytes).first(size);
    CHECK_FALSE(read_call(message).ok());
  }
}

TEST_CASE("replies, cancels and credits are read as they were written, and refused when cut") {
  std::array<std::byte, k_reply_head> reply;
  write_reply({.inbox = 9, .rank = 8, .status = 7}, reply);
  Bytes message(reply);
  CHECK(read_reply(message)->inbox == 9);
  message = Bytes(reply);
  CHECK(read_reply(message)->rank == 8);
  message = Bytes(reply);
  CHECK(read_reply(message)->status == 7);
  message = Bytes(reply).first(k_reply_head - 1);
  CHECK_FALSE(read_reply(message).ok());

  std::array<std::byte, k_pair_head> pair;
  write_cancel({.actor = 1, .inbox = 2}, pair);
  message = Bytes(pair);
  CHECK(read_cancel(message)->inbox == 2);
  write_credit({.target = 3, .bytes = 4}, pair);
  message = Bytes(pair);
  CHECK(read_credit(message)->bytes == 4);
  message = Bytes(pair).first(k_pair_head - 1);
  CHECK_FALSE(read_credit(message).ok());
}

TEST_CASE("reserved bytes that are not zero are refused") {
  auto bytes = call_bytes({.actor = 1}, "");
  bytes[k_call_head - 1] = std::byte{1};
  Bytes message(bytes);
  CHECK_FALSE(read_call(message).ok());
  std::array<std::byte, k_reply_head> reply;
  write_reply({.inbox = 9}, reply);
  reply[k_reply_head - 1] = std::byte{1};
  message = Bytes(reply);
  CHECK_FALSE(read_reply(message).ok());
}

}  // namespace
}  // namespace monarch::wire
