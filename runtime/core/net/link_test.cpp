#include "net/link.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "net/connections.hpp"
#include "wire/message.hpp"

namespace monarch::net {
namespace {

std::array<int, 2> sockets() {
  std::array<int, 2> ends{-1, -1};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
  return ends;
}

struct Session {
  Session() : Session(sockets()) {}
  explicit Session(std::array<int, 2> ends)
      : one(ends[0], nullptr, /*session=*/true), other(ends[1], nullptr, /*session=*/true) {}

  void send(std::uint32_t number, std::size_t size) {
    std::string text(sizeof number + size, 'x');
    std::memcpy(text.data(), &number, sizeof number);
    const base::Bytes part = std::as_bytes(std::span(text));
    REQUIRE(one.send(wire::Kind::kControl, {&part, 1}, {}).ok());
  }

  // What the other side has read; false where the connection has ended for it.
  bool read() {
    const bool open = other.receive([this](wire::Frame& frame) {
      std::uint32_t number = 0;
      std::memcpy(&number, frame.message.data(), sizeof number);
      taken.push_back(number);
      return true;
    });
    if (open && other.acknowledge(/*now=*/false)) (void)other.flush();
    return open;
  }

  // The first side reads what the other one says: acknowledgements, and where to go on.
  bool hear() {
    return one.receive([](wire::Frame&) { return true; });
  }

  void go_on() {
    const auto ends = sockets();
    one.resume(ends[0], nullptr);
    other.resume(ends[1], nullptr);
    REQUIRE(one.flush());
    REQUIRE(other.flush());
    REQUIRE(read());
    REQUIRE(hear());
    REQUIRE(one.flush());
  }

  Link one, other;
  std::vector<std::uint32_t> taken;
};

TEST_CASE("a session goes on over another connection where the last one broke") {
  Session session;
  session.send(0, 10);
  session.send(1, 3'000'000);  // more than the socket takes
  (void)session.one.flush();
  REQUIRE(session.read());
  CHECK(session.taken == std::vector<std::uint32_t>{0});
  session.one.break_off();
  session.other.break_off();
  CHECK(session.one.broken());
  session.send(2, 10);  // meanwhile
  session.go_on();
  for (int round = 0; round < 1000 && session.taken.size() < 3; ++round) {
    REQUIRE(session.one.flush());
    REQUIRE(session.read());
  }
  CHECK(session.taken == std::vector<std::uint32_t>{0, 1, 2});
}

TEST_CASE("breaks at any moment lose nothing and repeat nothing") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const auto upto = [&random](std::size_t most) {
      return std::uniform_int_distribution<std::size_t>(0, most)(random);
    };
    Session session;
    std::uint32_t sent = 0;
    for (int step = 0; step < 300; ++step) {
      switch (upto(7)) {
        case 0:
        case 1:
          session.send(sent++, upto(9) == 0 ? upto(400'000) : upto(2000));
          break;
        case 2:
          session.one.break_off();
          session.other.break_off();
          session.go_on();
          break;
        case 3:
          REQUIRE(session.hear());
          break;
        case 4:
          REQUIRE(session.one.flush());
          break;
        default:
          REQUIRE(session.read());
      }
    }
    for (int round = 0; round < 1000 && session.taken.size() < sent; ++round) {
      REQUIRE(session.one.flush());
      REQUIRE(session.read());
    }
    REQUIRE(session.taken.size() == sent);
    for (std::uint32_t i = 0; i < sent; ++i) REQUIRE(session.taken[i] == i);
  }
}

TEST_CASE("a write that fails with the peer alive ends the link for both") {
  const auto ends = sockets();
  Link here(ends[0]), there(ends[1]);
  const auto closed = sockets();
  for (const int fd : closed) ::close(fd);
  REQUIRE(here.send_descriptor(wire::Kind::kControl, {}, closed[0], nullptr).ok());
  CHECK_FALSE(here.flush());
  const auto none = [](wire::Frame&) { return false; };
  CHECK_FALSE(here.receive(none));
  CHECK(here.why() == "closed by the peer");
  CHECK_FALSE(there.receive(none));
}

TEST_CASE("a fork lets go of what links have open, and of nothing else") {
  const auto ends = sockets();
  const auto others = sockets();
  {
    const Link link(ends[0]);
    {
      const Link passed(others[0]);
    }
    const auto again = sockets();  // at numbers that a link had before
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      leave_connections();
      // The link of the parent is still there, and open; what it had here is not.
      struct stat left {};
      struct stat kept {};
      const bool gone = ::fstat(link.fd(), &left) == 0 && !S_ISSOCK(left.st_mode);
      const bool stays = ::fstat(again[0], &kept) == 0 && S_ISSOCK(kept.st_mode);
      ::_exit(gone && stays ? 0 : 1);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    ::close(again[0]);
    ::close(again[1]);
  }
  ::close(ends[1]);
  ::close(others[1]);
}

TEST_CASE("a peer that claims to have taken what was never sent has no session any more") {
  const auto ends = sockets();
  Link link(ends[0], nullptr, /*session=*/true);
  const auto next = sockets();
  link.resume(next[0], nullptr);
  const std::array<char, 8> lie{9};
  REQUIRE(::send(next[1], lie.data(), lie.size(), 0) == 8);
  CHECK_FALSE(link.receive([](wire::Frame&) { return true; }));
  CHECK_FALSE(link.resumable());
}

}  // namespace
}  // namespace monarch::net
