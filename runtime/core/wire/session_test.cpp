#include "wire/session.hpp"

#include <doctest/doctest.h>

#include <array>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"

namespace monarch::wire {
namespace {

base::Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string text_of(base::Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void add(SendLog& log, std::string_view text) {
  log.begin();
  log.append(bytes_of(text));
}

TEST_CASE("what was not acknowledged is written again on another connection, and no more") {
  SendLog log;
  add(log, "one");
  add(log, "two");
  CHECK(text_of(log.next()) == "onetwo");
  log.wrote(5);
  CHECK(text_of(log.next()) == "o");
  REQUIRE(log.acknowledged(1).ok());
  CHECK(log.held() == 3);
  REQUIRE(log.resume(1).ok());
  CHECK(text_of(log.next()) == "two");
  log.wrote(3);
  REQUIRE(log.resume(2).ok());
  CHECK(log.next().empty());
  CHECK(log.held() == 0);
  CHECK(log.frames() == 2);
}

TEST_CASE("what was not sent cannot have been taken, and what was taken cannot be asked for") {
  SendLog log;
  add(log, "one");
  add(log, "two");
  CHECK_FALSE(log.acknowledged(3).ok());
  REQUIRE(log.acknowledged(2).ok());
  CHECK(log.acknowledged(1).ok());  // said before the break, and again after it
  CHECK(log.frames() == 2);
  CHECK_FALSE(log.resume(1).ok());
}

TEST_CASE("memory is given back when everything was taken") {
  SendLog log;
  const std::string large(3U << 20, 'x');
  for (int round = 0; round < 8; ++round) {
    add(log, large);
    log.wrote(log.next().size());
    if (round > 0) REQUIRE(log.acknowledged(static_cast<std::uint64_t>(round)).ok());
    CHECK(log.held() == large.size());
  }
  REQUIRE(log.acknowledged(8).ok());
  CHECK(log.held() == 0);
}

// Cuts at random places, random acknowledgements: the other side sees each frame once, in order.
TEST_CASE("nothing is lost and nothing comes twice, wherever the connection breaks") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto upto = [&random](std::size_t most) {
      return std::uniform_int_distribution<std::size_t>(0, most)(random);
    };
    SendLog log;
    std::vector<std::size_t> sizes;
    std::size_t taken = 0;   // frames, by the other side
    std::size_t partial = 0;  // bytes of the next one, lost with the connection
    for (int step = 0; step < 400; ++step) {
      switch (upto(9)) {
        case 0:
        case 1:
        case 2:
          sizes.push_back(1 + upto(upto(20) == 0 ? 2'000'000 : 300));
          add(log, std::string(sizes.back(), static_cast<char>(sizes.size() % 251)));
          break;
        case 3:
          REQUIRE(log.resume(taken).ok());
          partial = 0;
          break;
        case 4:
          if (taken > 0) REQUIRE(log.acknowledged(taken).ok());
          break;
        default: {
          const base::Bytes next = log.next();
          std::size_t written = upto(next.size());
          log.wrote(written);
          std::size_t at = 0;
          while (written > 0) {
            REQUIRE(taken < sizes.size());
            const auto letter = static_cast<std::byte>((taken + 1) % 251);
            const std::size_t left = sizes[taken] - partial;
            const std::size_t size = std::min(left, written);
            REQUIRE(next[at] == letter);
            REQUIRE(next[at + size - 1] == letter);
            at += size;
            written -= size;
            partial += size;
            if (partial == sizes[taken]) {
              ++taken;
              partial = 0;
            }
          }
        }
      }
    }
    REQUIRE(log.resume(taken).ok());
    std::size_t left = 0;
    for (std::size_t i = taken; i < sizes.size(); ++i) left += sizes[i];
    CHECK(log.next().size() == left);
  }
}

struct Taken {
  Session session;
  std::vector<std::string> frames;

  void send(std::string_view text) {
    const base::Bytes part = bytes_of(text);
    session.send(1, {&part, 1}, {});
  }
  bool take(base::Bytes bytes) {
    return session
        .take(bytes,
              [this](Frame& frame) {
                frames.push_back(text_of(frame.message));
                return true;
              })
        .ok();
  }
};

std::vector<std::byte> written(Session& session) {
  std::vector<std::byte> all;
  for (base::Bytes next = session.next(); !next.empty(); next = session.next()) {
    all.insert(all.end(), next.begin(), next.end());
    session.wrote(next.size());
  }
  return all;
}

TEST_CASE("a session whose peer never heard of it begins again with nothing lost") {
  Taken one, other;
  one.send("first");
  (void)written(one.session);  // on a connection that the other side never knew
  REQUIRE(one.session.untouched());
  one.session.begin_again();
  other.send("hello");
  REQUIRE(one.take(written(other.session)));
  REQUIRE(other.take(written(one.session)));
  CHECK(one.frames == std::vector<std::string>{"hello"});
  CHECK(other.frames == std::vector<std::string>{"first"});
  CHECK_FALSE(one.session.untouched());
}

TEST_CASE("after a break nothing is written before the peer has said where to go on") {
  Taken one, other;
  one.send("first");
  const std::vector<std::byte> sent = written(one.session);
  REQUIRE(other.take(base::Bytes(sent).first(10)));  // the rest never arrives
  one.session.resume();
  other.session.resume();
  CHECK(written(one.session).size() == k_resume_size);
  REQUIRE(one.take({}));
  CHECK_FALSE(one.session.went_on());
  REQUIRE(one.take(written(other.session)));
  CHECK(one.session.went_on());
  const std::array<std::byte, k_resume_size> nothing{};
  REQUIRE(other.take(nothing));
  REQUIRE(other.take(written(one.session)));
  CHECK(other.frames == std::vector<std::string>{"first"});
}

TEST_CASE("a peer that says what cannot be is refused for good") {
  Taken one;
  one.session.resume();
  const std::array<std::byte, k_resume_size> lie{std::byte{9}};
  CHECK_FALSE(one.take(lie));
  CHECK(one.session.refused());
}

}  // namespace
}  // namespace monarch::wire
