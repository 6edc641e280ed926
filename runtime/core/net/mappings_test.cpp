#include "net/mappings.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "net/arena.hpp"
#include "net/copy.hpp"

using monarch::base::Bytes;
using monarch::base::Code;
using monarch::net::Arena;
using monarch::net::ArenaOptions;
using monarch::net::Backing;
using monarch::net::Descriptor;
using monarch::net::Leftovers;
using monarch::net::Mappings;
using monarch::net::PeerId;
using monarch::net::Segment;
using monarch::net::SegmentId;

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr PeerId kPeer = 41;

struct Announcement {
  SegmentId id;
  std::size_t capacity;
  std::size_t bytes;
};

bool send_segment(int socket, const Announcement& announcement, int fd) {
  iovec part{const_cast<Announcement*>(&announcement), sizeof announcement};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  return ::sendmsg(socket, &message, 0) == sizeof announcement;
}

struct Received {
  Announcement announcement{};
  int fd = -1;
};

std::optional<Received> receive_segment(int socket) {
  Received received;
  iovec part{&received.announcement, sizeof received.announcement};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (::recvmsg(socket, &message, 0) != sizeof(Announcement)) return std::nullopt;
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header != nullptr) std::memcpy(&received.fd, CMSG_DATA(header), sizeof(int));
  return received;
}

std::byte mark(std::size_t message, std::size_t at) {
  return static_cast<std::byte>(message * 31 + at / 4096);
}

// A peer's segment in this process: what the descriptor would be after its journey.
Descriptor copy_of(int fd) { return Descriptor(::fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

struct Borrower {
  explicit Borrower(Backing backing = Backing::kBest)
      : arena(ArenaOptions{.backing = backing}),
        mappings([this](PeerId peer, SegmentId id) {
          if (peer == kPeer && arena.give_back(1, id, left).ok()) ++released;
        }) {}

  Segment announce(std::size_t bytes) {
    auto taken = arena.take(1, bytes, left);
    REQUIRE(taken.ok());
    REQUIRE(mappings.add(kPeer, taken->id, copy_of(taken->fd), taken->capacity).ok());
    return *std::move(taken);
  }

  Leftovers left;
  Arena arena;
  std::atomic<int> released{0};
  Mappings mappings;
};

}  // namespace

TEST_CASE("payloads of every size reach another process by descriptor, and segments come back") {
  int sockets[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  constexpr std::size_t kMessages = 200;
  const auto size_of = [](std::size_t message) { return 65'000 + message % 5 * 300'001; };
  if (child == 0) {
    // The receiver: checks, scribbles over what it got (the view is its own) and lets go.
    ::close(sockets[0]);
    Mappings mappings([&](PeerId, SegmentId id) {
      if (::send(sockets[1], &id, sizeof id, 0) != sizeof id) ::_exit(10);
    });
    std::size_t message = 0;
    while (auto received = receive_segment(sockets[1])) {
      const auto& [id, capacity, bytes] = received->announcement;
      if (received->fd >= 0 &&
          !mappings.add(kPeer, id, Descriptor(received->fd), capacity).ok()) {
        ::_exit(11);
      }
      auto loan = mappings.open(kPeer, id, bytes);
      if (!loan) ::_exit(12);
      for (std::size_t at = 0; at < bytes; at += 4096) {
        if ((*loan)->bytes()[at] != mark(message, at)) ::_exit(13);
        (*loan)->bytes()[at] = std::byte{0};
      }
      ++message;
    }
    ::_exit(message == kMessages && mappings.size() == 4 && mappings.loans() == 0 ? 0 : 14);
  }
  ::close(sockets[1]);
  Arena arena;
  Leftovers left;
  for (std::size_t message = 0; message < kMessages; ++message) {
    const std::size_t bytes = size_of(message);
    auto segment = arena.take(kPeer, bytes, left);
    REQUIRE(segment.ok());
    std::vector<std::byte> payload(bytes);
    for (std::size_t at = 0; at < bytes; at += 4096) payload[at] = mark(message, at);
    monarch::net::copy_payload({segment->data, bytes}, payload);
    REQUIRE(send_segment(sockets[0], {segment->id, segment->capacity, bytes},
                         segment->known ? -1 : segment->fd));
    SegmentId released = 0;
    REQUIRE(::recv(sockets[0], &released, sizeof released, 0) == sizeof released);
    CHECK(released == segment->id);
    CHECK(arena.give_back(kPeer, released, left).ok());
  }
  ::close(sockets[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(arena.usage().made == 4);
}

TEST_CASE("a receiver killed while it holds a payload costs its segment and nothing else") {
  int sockets[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) == 0);
  Arena arena;
  Leftovers left;
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    Mappings mappings([](PeerId, SegmentId) {});
    auto received = receive_segment(sockets[1]);
    if (!received) ::_exit(1);
    const auto& [id, capacity, bytes] = received->announcement;
    if (!mappings.add(kPeer, id, Descriptor(received->fd), capacity).ok()) ::_exit(2);
    const auto loan = mappings.open(kPeer, id, bytes);
    const char ready = 1;
    if (::send(sockets[1], &ready, 1, 0) != 1) ::_exit(3);
    for (;;) ::pause();
  }
  SegmentId lost = 0;
  {
    auto segment = arena.take(kPeer, kMiB, left);
    REQUIRE(segment.ok());
    lost = segment->id;
    REQUIRE(send_segment(sockets[0], {segment->id, segment->capacity, kMiB}, segment->fd));
  }
  char ready = 0;
  REQUIRE(::recv(sockets[0], &ready, 1, 0) == 1);
  REQUIRE(::kill(child, SIGKILL) == 0);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  arena.forget(kPeer, left);
  CHECK(arena.usage().lent == 0);
  CHECK(arena.usage().idle == 0);
  auto next = arena.take(kPeer, kMiB, left);
  REQUIRE(next.ok());
  CHECK(next->id != lost);
  ::close(sockets[0]);
  ::close(sockets[1]);
}

TEST_CASE("the release comes once, when the last view goes") {
  Borrower borrower;
  const Segment segment = borrower.announce(kMiB);
  std::memset(segment.data, 0x44, kMiB);
  {
    auto loan = borrower.mappings.open(kPeer, segment.id, kMiB - 7);
    REQUIRE(loan.ok());
    CHECK((*loan)->bytes().size() == kMiB - 7);
    CHECK((*loan)->bytes()[kMiB - 8] == std::byte{0x44});
    const auto second = *loan;
    loan = second;
    CHECK(borrower.released == 0);
    CHECK(borrower.mappings.loans() == 1);
  }
  CHECK(borrower.released == 1);
  CHECK(borrower.mappings.loans() == 0);
  CHECK(borrower.arena.usage().idle == 1);
}

TEST_CASE("what a view shows stays there after its peer dropped the segment or died") {
  Borrower borrower;
  const Segment first = borrower.announce(kMiB);
  const Segment second = borrower.announce(kMiB);
  std::memset(first.data, 0x55, kMiB);
  std::memset(second.data, 0x66, kMiB);
  auto a = borrower.mappings.open(kPeer, first.id, kMiB);
  auto b = borrower.mappings.open(kPeer, second.id, kMiB);
  REQUIRE(a.ok());
  REQUIRE(b.ok());
  borrower.mappings.drop(kPeer, first.id);
  borrower.mappings.drop(kPeer, first.id);
  CHECK(borrower.mappings.size() == 1);
  borrower.mappings.drop_peer(kPeer);
  CHECK(borrower.mappings.size() == 0);
  borrower.arena.forget(1, borrower.left);
  CHECK((*a)->bytes()[kMiB - 1] == std::byte{0x55});
  CHECK((*b)->bytes()[kMiB - 1] == std::byte{0x66});
  a = b = std::shared_ptr<monarch::net::Loan>();
  CHECK(borrower.released == 0);
}

TEST_CASE("a view may outlive the mappings") {
  std::shared_ptr<monarch::net::Loan> loan;
  {
    Borrower borrower;
    const Segment segment = borrower.announce(kMiB);
    std::memset(segment.data, 0x77, kMiB);
    loan = *borrower.mappings.open(kPeer, segment.id, kMiB);
  }
  CHECK(loan->bytes()[kMiB - 1] == std::byte{0x77});
}

TEST_CASE("announcements and references that do not fit are refused") {
  Borrower borrower;
  const Segment segment = borrower.announce(kMiB);
  const auto refused = [](const auto& result) { return !result.ok() ? result.error().message : ""; };
  Mappings& mappings = borrower.mappings;
  CHECK(refused(mappings.open(kPeer, segment.id + 1, 1)).find("did not announce") !=
        std::string::npos);
  CHECK(refused(mappings.open(kPeer + 1, segment.id, 1)).find("did not announce") !=
        std::string::npos);
  CHECK(refused(mappings.open(kPeer, segment.id, kMiB + 1)).find("in a shared-memory segment of") !=
        std::string::npos);
  CHECK(refused(mappings.add(kPeer, segment.id, copy_of(segment.fd), kMiB)).find("twice") !=
        std::string::npos);
  const auto small = mappings.add(kPeer, 99, copy_of(segment.fd), 2 * kMiB);
  CHECK(refused(small) ==
        "the peer announced 2097152 bytes of shared memory, but its descriptor holds 1048576");
  CHECK(small.error().code == Code::kMalformed);
  CHECK(mappings.add(kPeer, 99, Descriptor(), kMiB).error().code == Code::kSystem);
#if defined(__linux__)
  const Descriptor unsealed(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(::ftruncate(unsealed.get(), static_cast<off_t>(kMiB)) == 0);
  CHECK(refused(mappings.add(kPeer, 99, copy_of(unsealed.get()), kMiB)).find("may shrink") !=
        std::string::npos);
#endif
  CHECK(mappings.size() == 1);
}

TEST_CASE("named shared memory is accepted as well") {
  Borrower borrower(Backing::kNamed);
  const Segment segment = borrower.announce(kMiB);
  segment.data[kMiB - 1] = std::byte{0x12};
  CHECK((*borrower.mappings.open(kPeer, segment.id, kMiB))->bytes()[kMiB - 1] == std::byte{0x12});
}

TEST_CASE("a view in a forked child does not give the parent's segment back") {
  Borrower borrower;
  const Segment segment = borrower.announce(kMiB);
  auto loan = *borrower.mappings.open(kPeer, segment.id, kMiB);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    loan.reset();
    ::_exit(borrower.released == 0 ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  loan.reset();
  CHECK(borrower.released == 1);
}

TEST_CASE("views released by many threads come back once each") {
  std::atomic<int> released{0};
  Mappings mappings([&](PeerId, SegmentId) { ++released; });
  Arena arena;
  Leftovers left;
  std::vector<SegmentId> ids;
  for (int i = 0; i < 8; ++i) {
    auto segment = arena.take(1, 1, left);
    REQUIRE(segment.ok());
    REQUIRE(mappings.add(kPeer, segment->id, copy_of(segment->fd), segment->capacity).ok());
    ids.push_back(segment->id);
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        auto loan = mappings.open(kPeer, ids[static_cast<std::size_t>(i % 4)], 1000);
        if (loan.ok()) std::thread([view = *loan] { (void)view->bytes(); }).join();
      }
    });
  }
  mappings.drop(kPeer, ids[7]);
  for (std::thread& thread : threads) thread.join();
  CHECK(released == 800);
  CHECK(mappings.loans() == 0);
}
