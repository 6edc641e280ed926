#include "net/tls.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "net/link.hpp"
#include "net/openssl.hpp"
#include "wire/message.hpp"

namespace monarch::net {
namespace {

constexpr long kDay = 24L * 60 * 60;

base::Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::shared_ptr<TlsContext> context(char authority, char own, const std::string& names = "IP:10.0.0.1",
                                    long seconds = kDay) {
  const std::string ca(32, authority);
  const std::string key(32, own);
  auto made = TlsContext::derive(bytes_of(ca), bytes_of(key), names, seconds);
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? "" : made.error().message));
  return *std::move(made);
}

struct Ends {
  Ends() {
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds.data()) == 0);
    for (const int fd : fds) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  }
  ~Ends() {
    for (const int fd : fds) {
      if (fd >= 0) ::close(fd);
    }
  }
  std::array<int, 2> fds{-1, -1};
};

struct Pair {
  std::unique_ptr<TlsStream> dialer, listener;
  std::string dialer_error, listener_error;
};

Pair shake(const Ends& ends, std::shared_ptr<TlsContext> one, std::shared_ptr<TlsContext> other,
           const std::string& host = "10.0.0.1") {
  Pair pair;
  auto dialer = TlsStream::begin(std::move(one), ends.fds[0], TlsStream::Side::kDialer, host);
  auto listener = TlsStream::begin(std::move(other), ends.fds[1], TlsStream::Side::kListener, "");
  REQUIRE(dialer.ok());
  REQUIRE(listener.ok());
  pair.dialer = *std::move(dialer);
  pair.listener = *std::move(listener);
  for (int round = 0; round < 8; ++round) {
    if (auto step = pair.dialer->handshake(); !step) {
      pair.dialer_error = step.error().message;
      break;
    }
    if (auto step = pair.listener->handshake(); !step) {
      pair.listener_error = step.error().message;
      break;
    }
  }
  return pair;
}

TEST_CASE("who hold the same authority talk, and both know the same of their connection") {
  const Ends ends;
  const Pair pair = shake(ends, context('a', '1'), context('a', '2'));
  REQUIRE(pair.dialer_error == "");
  REQUIRE(pair.listener_error == "");
  CHECK(*pair.dialer->binding() == *pair.listener->binding());
  CHECK(pair.dialer->write(bytes_of("hello")) == 5);
  std::array<std::byte, 64> buffer{};
  CHECK(pair.listener->read(buffer) == 5);
  CHECK(pair.listener->read(buffer) == -1);
  CHECK(errno == EAGAIN);
}

TEST_CASE("another authority, an expired certificate and another host are told apart") {
  const Ends ends;
  SUBCASE("authority") {
    const Pair pair = shake(ends, context('a', '1'), context('b', '2'));
    CHECK(pair.dialer->verified() != 0);
    CHECK(pair.dialer_error.find("signature") != std::string::npos);
  }
  SUBCASE("expired") {
    const Pair pair = shake(ends, context('a', '1'), context('a', '2', "IP:10.0.0.1", -60));
    CHECK(pair.dialer_error.find("expired") != std::string::npos);
  }
  SUBCASE("host") {
    const Pair pair = shake(ends, context('a', '1'), context('a', '2', "IP:10.0.0.2,DNS:node"));
    CHECK(pair.dialer_error.find("IP address mismatch") != std::string::npos);
  }
  SUBCASE("the dialer's certificate is asked for as well") {
    const Pair pair = shake(ends, context('a', '1', "", -60), context('a', '2'));
    CHECK(pair.listener_error.find("expired") != std::string::npos);
  }
}

TEST_CASE("names and IPv6 addresses are good in a certificate") {
  const Ends ends;
  for (const char* const host : {"fd77::1", "node7"}) {
    const Ends these;
    const Pair pair = shake(these, context('a', '1'), context('a', '2', "IP:fd77::1,DNS:node7"), host);
    CHECK(pair.dialer_error == "");
  }
}

TEST_CASE("frames of any size pass a link with TLS") {
  Ends ends;
  Pair pair = shake(ends, context('a', '1'), context('a', '2'));
  Link one(std::exchange(ends.fds[0], -1), std::move(pair.dialer));
  Link other(std::exchange(ends.fds[1], -1), std::move(pair.listener));
  std::vector<std::size_t> sizes{1, 100, 16'384, 100'000, 3'000'000, 7};
  std::vector<std::size_t> seen;
  for (const std::size_t size : sizes) {
    const std::string text(size, static_cast<char>('a' + size % 26));
    const base::Bytes part = bytes_of(text);
    REQUIRE(one.send(wire::Kind::kControl, {&part, 1}, {}).ok());
  }
  const auto take = [&seen](wire::Frame& frame) {
    const std::size_t size = frame.message.size();
    const auto letter = static_cast<std::byte>('a' + size % 26);
    CHECK(std::ranges::all_of(frame.message, [letter](std::byte b) { return b == letter; }));
    seen.push_back(size);
    return true;
  };
  for (int round = 0; round < 10'000 && seen.size() < sizes.size(); ++round) {
    REQUIRE(one.flush());
    REQUIRE(other.receive(take));
  }
  CHECK(seen == sizes);
}

TEST_CASE("what others left in OpenSSL's errors of this thread is no failure of a connection") {
  const Ends ends;
  const Pair pair = shake(ends, context('a', '1'), context('a', '2'));
  const auto leave_error = [] {
    const unsigned char short_seed = 0;
    REQUIRE(openssl::library()->EVP_PKEY_new_raw_private_key(openssl::k_ed25519, nullptr,
                                                             &short_seed, 1) == nullptr);
  };
  std::array<std::byte, 16> buffer{};
  leave_error();
  errno = 0;
  CHECK(pair.listener->read(buffer) == -1);
  CHECK(errno == EAGAIN);
  leave_error();
  const std::string much(1 << 20, 'x');
  while (pair.dialer->write(bytes_of(much)) > 0) leave_error();
  CHECK(errno == EAGAIN);
}

}  // namespace
}  // namespace monarch::net
