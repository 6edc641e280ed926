#include "net/arena.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "net/copy.hpp"

using monarch::base::Code;
using monarch::net::Arena;
using monarch::net::ArenaOptions;
using monarch::net::Backing;
using monarch::net::Leftovers;
using monarch::net::Segment;

namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;

std::size_t open_descriptors() {
  std::size_t count = 0;
  for (int fd = 0; fd < 1024; ++fd) count += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

struct Lender {
  explicit Lender(ArenaOptions options = {}) : arena(options) {}

  Segment take(monarch::net::PeerId peer, std::size_t bytes) {
    auto taken = arena.take(peer, bytes, left);
    REQUIRE_MESSAGE(taken.ok(), taken.error().message);
    return *std::move(taken);
  }
  bool give_back(monarch::net::PeerId peer, monarch::net::SegmentId id) {
    return arena.give_back(peer, id, left).ok();
  }

  Arena arena;
  Leftovers left;
};

// Runs `body` in a child that may spoil its own limits; its answer is the exit status.
int status_in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(body());
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void set_limit(decltype(RLIMIT_NOFILE) which, rlim_t soft) {
  rlimit limit{};
  ::getrlimit(which, &limit);
  limit.rlim_cur = soft;
  ::setrlimit(which, &limit);
}

}  // namespace

TEST_CASE("a segment is the next power of two, from 64 KiB, and can be written to its end") {
  for (const auto& [bytes, capacity] :
       {std::pair{5 * kMiB, 8 * kMiB}, std::pair{64 * kKiB + 1, 128 * kKiB},
        std::pair{64 * kKiB, 64 * kKiB}, std::pair{std::size_t{1}, 64 * kKiB}}) {
    Lender lender;
    const Segment segment = lender.take(1, bytes);
    CHECK(segment.capacity == capacity);
    CHECK_FALSE(segment.known);
    std::memset(segment.data, 0x11, bytes);
    CHECK(lender.give_back(1, segment.id));
  }
}

TEST_CASE("a segment that came back is lent again, and to the same peer as known") {
  Lender lender;
  const auto first = lender.take(1, kMiB).id;
  REQUIRE(lender.give_back(1, first));
  const Segment again = lender.take(1, kMiB - 5);
  CHECK(again.id == first);
  CHECK(again.known);
  REQUIRE(lender.give_back(1, first));
  const Segment other = lender.take(2, kMiB);
  CHECK(other.id == first);
  CHECK_FALSE(other.known);
  CHECK(lender.take(1, 2 * kMiB).id != first);
  CHECK(lender.arena.usage().made == 2);
}

TEST_CASE("of several idle segments a peer gets one that it has mapped") {
  Lender lender;
  const auto mine = lender.take(1, kMiB).id;
  const auto theirs = lender.take(2, kMiB).id;
  REQUIRE(lender.give_back(1, mine));
  REQUIRE(lender.give_back(2, theirs));
  CHECK(lender.take(1, kMiB).id == mine);
  auto none = lender.arena.take_known(1, kMiB);
  REQUIRE(none.ok());
  CHECK(none->id == 0);
  auto known = lender.arena.take_known(2, kMiB);
  REQUIRE(known.ok());
  CHECK(known->id == theirs);
}

TEST_CASE("a peer gets one more segment when it is asked for, also while one is idle") {
  Lender lender;
  const auto first = lender.take(1, kMiB).id;
  REQUIRE(lender.give_back(1, first));
  auto second = lender.arena.take(1, kMiB, lender.left, Arena::Which::kNew);
  REQUIRE(second.ok());
  CHECK(second->id != first);
  CHECK_FALSE(second->known);
  auto theirs = lender.arena.take(2, kMiB, lender.left, Arena::Which::kNew);
  REQUIRE(theirs.ok());
  CHECK(theirs->id == first);
}

TEST_CASE("ten thousand loans of mixed sizes leave as many segments as were lent at once") {
  Lender lender;
  const std::size_t before = open_descriptors();
  for (std::size_t i = 0; i < 10'000; ++i) {
    const Segment segment = lender.take(1 + i % 3, 70 * kKiB << (i % 4));
    segment.data[0] = std::byte{1};
    REQUIRE(lender.give_back(1 + i % 3, segment.id));
  }
  CHECK(lender.arena.usage().made == 4);
  CHECK(lender.arena.usage().loans == 10'000);
  CHECK(lender.arena.usage().lent == 0);
  CHECK(open_descriptors() == before + 4);
}

TEST_CASE("idle segments beyond the budget go, the longest idle first, and their peers are named") {
  Lender lender(ArenaOptions{.idle_budget = 3 * kMiB});
  const auto a = lender.take(7, kMiB).id;
  const auto b = lender.take(8, 2 * kMiB).id;
  const auto c = lender.take(9, kMiB).id;
  REQUIRE(lender.give_back(7, a));
  REQUIRE(lender.give_back(8, b));
  CHECK(lender.left.dropped.empty());
  REQUIRE(lender.give_back(9, c));
  REQUIRE(lender.left.dropped.size() == 1);
  CHECK(lender.left.dropped[0].peer == 7);
  CHECK(lender.left.dropped[0].id == a);
  CHECK(lender.arena.usage().idle_bytes == 3 * kMiB);
  lender.arena.trim(lender.left);
  CHECK(lender.left.dropped.size() == 3);
  CHECK(lender.arena.usage().idle == 0);
  CHECK(lender.arena.usage().idle_bytes == 0);
}

TEST_CASE("only what a segment was used for has memory behind it and counts as idle") {
  Lender lender;
  const Segment segment = lender.take(1, 5 * kMiB);
  REQUIRE(lender.give_back(1, segment.id));
  CHECK(lender.arena.usage().idle_bytes == 5 * kMiB);
  REQUIRE(lender.take(1, 8 * kMiB).id == segment.id);
  segment.data[8 * kMiB - 1] = std::byte{1};
  REQUIRE(lender.give_back(1, segment.id));
  CHECK(lender.arena.usage().idle_bytes == 8 * kMiB);
}

TEST_CASE("only its borrower gives a segment back, and once") {
  Lender lender;
  const auto id = lender.take(1, kMiB).id;
  CHECK_FALSE(lender.give_back(2, id));
  CHECK_FALSE(lender.give_back(0, id));
  CHECK_FALSE(lender.give_back(1, id + 1));
  CHECK(lender.give_back(1, id));
  CHECK_FALSE(lender.give_back(1, id));
  CHECK_FALSE(lender.give_back(0, id));
  CHECK(lender.arena.usage().idle == 1);
}

TEST_CASE("what a dead peer was lent is never lent again, and stays valid for who fills it") {
  Lender lender;
  const std::size_t before = open_descriptors();
  {
    const Segment lost = lender.take(1, kMiB);
    const auto idle = lender.take(1, kMiB).id;
    REQUIRE(lender.give_back(1, idle));
    lender.arena.forget(1, lender.left);
    std::memset(lost.data, 0x22, kMiB);
    CHECK(::fcntl(lost.fd, F_GETFD) >= 0);
    CHECK_FALSE(lender.give_back(1, lost.id));
    const Segment reused = lender.take(1, kMiB);
    CHECK(reused.id == idle);
    CHECK_FALSE(reused.known);
    CHECK(lender.take(1, kMiB).id != lost.id);
  }
  lender.arena.forget(1, lender.left);
  lender.left.memory.clear();
  CHECK(lender.arena.usage().lent == 0);
  CHECK(open_descriptors() == before);
}

TEST_CASE("a segment that its peer could not map goes, and others that have it are told") {
  Lender lender;
  const auto id = lender.take(1, kMiB).id;
  REQUIRE(lender.give_back(1, id));
  REQUIRE(lender.take(2, kMiB).id == id);
  lender.arena.discard(1, id, lender.left);
  CHECK(lender.arena.usage().lent == 1);
  lender.arena.discard(2, id, lender.left);
  CHECK(lender.arena.usage().lent == 0);
  REQUIRE(lender.left.dropped.size() == 1);
  CHECK(lender.left.dropped[0].peer == 1);
  CHECK_FALSE(lender.give_back(2, id));
}

TEST_CASE("the number of segments is bounded; idle ones make room first") {
  Lender lender(ArenaOptions{.most_segments = 2});
  const auto idle = lender.take(1, kMiB).id;
  const auto lent = lender.take(1, 2 * kMiB).id;
  REQUIRE(lender.give_back(1, idle));
  const auto third = lender.take(1, 4 * kMiB).id;
  CHECK(lender.left.dropped.size() == 1);
  auto refused = lender.arena.take(1, kMiB, lender.left);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Code::kLimit);
  CHECK(refused.error().message == "all 2 shared-memory segments are lent");
  CHECK(lender.give_back(1, lent));
  CHECK(lender.give_back(1, third));
}

TEST_CASE("exhausted descriptors, file size and address space are errors, and pass") {
  CHECK(status_in_child([] {
          Lender lender;
          const Segment kept = lender.take(1, kMiB);
          set_limit(RLIMIT_NOFILE, 0);
          auto refused = lender.arena.take(1, kMiB, lender.left);
          if (refused.ok() || refused.error().code != Code::kSystem) return 1;
          if (refused.error().message.find("1048576 bytes") == std::string::npos) return 2;
          set_limit(RLIMIT_NOFILE, 256);
          return lender.arena.take(1, kMiB, lender.left).ok() ? 0 : 3;
        }) == 0);
  CHECK(status_in_child([] {
          std::signal(SIGXFSZ, SIG_IGN);
          set_limit(RLIMIT_FSIZE, 100 * kKiB);
          Lender lender;
          auto refused = lender.arena.take(1, kMiB, lender.left);
          if (refused.ok() || refused.error().code != Code::kSystem) return 1;
          if (lender.arena.usage().lent != 0) return 2;
          return lender.arena.take(1, 64 * kKiB, lender.left).ok() ? 0 : 3;
        }) == 0);
  Lender lender;
  for (const std::size_t bytes : {std::size_t{1} << 42, ~std::size_t{0}}) {
    auto refused = lender.arena.take(1, bytes, lender.left);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == Code::kSystem);
  }
  CHECK(lender.arena.usage().lent == 0);
}

TEST_CASE("the size of a segment is sealed against whoever holds its descriptor") {
#if defined(__linux__)
  Lender lender;
  const Segment segment = lender.take(1, kMiB);
  CHECK(::ftruncate(segment.fd, 0) != 0);
  CHECK(::ftruncate(segment.fd, static_cast<off_t>(2 * kMiB)) != 0);
  CHECK((::fcntl(segment.fd, F_GETFD) & FD_CLOEXEC) != 0);
#endif
}

TEST_CASE("named shared memory serves where there is no memfd, and leaves no name behind") {
  Lender lender(ArenaOptions{.backing = Backing::kNamed});
  const Segment segment = lender.take(1, 3 * kMiB);
  std::memset(segment.data, 0x33, 3 * kMiB);
  CHECK((::fcntl(segment.fd, F_GETFD) & FD_CLOEXEC) != 0);
#if defined(__linux__)
  char target[256] = {};
  const std::string link = "/proc/self/fd/" + std::to_string(segment.fd);
  REQUIRE(::readlink(link.c_str(), target, sizeof target - 1) > 0);
  CHECK(std::string(target).find("(deleted)") != std::string::npos);
#endif
  CHECK(lender.give_back(1, segment.id));
}

TEST_CASE("threads that take, fill and give back never share a segment") {
  Arena arena(ArenaOptions{.idle_budget = kMiB, .most_segments = 16});
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&arena, &bad = wrong[t], t] {
      Leftovers left;
      for (unsigned i = 0; i < 300; ++i) {
        const auto taken = arena.take(1 + t % 2, (64 * kKiB) << (i % 3), left);
        if (!taken) {
          ++bad;
          continue;
        }
        const auto mark = static_cast<std::byte>(t + 1);
        std::memset(taken->data, static_cast<int>(mark), 4096);
        bad += std::count(taken->data, taken->data + 4096, mark) == 4096 ? 0 : 1;
        bad += arena.give_back(1 + t % 2, taken->id, left).ok() ? 0 : 1;
        if (i % 100 == 99) arena.forget(3, left);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4));
  CHECK(arena.usage().lent == 0);
}
