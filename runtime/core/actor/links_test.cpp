#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <ctime>
#include <string>
#include <thread>

#include "actor/engine.hpp"
#include "actor/engine_world.hpp"

namespace monarch::actor {
namespace {

using namespace world;

TEST_CASE("a lost peer is an event, and what waited for it ends when it is said to have failed") {
  Engine here(1);
  const auto ends = sockets();
  REQUIRE(here.add_link(2, ends[0]).ok());
  const auto targets = target(here, 2, 7);
  const auto inbox = call(here, targets, "e", "x");
  ::close(ends[1]);
  std::optional<Event> event = here.control();
  REQUIRE(event.has_value());
  CHECK(event->kind == Event::Kind::kLinkLost);
  CHECK(event->peer == 2);
  const auto later = call(here, targets, "e", "x");
  here.fail_peer(2, "gone");
  const auto ends_as = [&here](actor::Inbox& waiting) {
    CHECK(answer(here, waiting) == "gone");
    return static_cast<Status>(here.arrival(waiting, 0)->status);
  };
  CHECK(ends_as(*inbox) == Status::kFailed);
  CHECK(ends_as(*later) == Status::kUnsent);
  CHECK(ends_as(*call(here, targets, "e", "x")) == Status::kUnsent);
}

TEST_CASE("what is sent before there is a link goes out with it, in order") {
  Engine here(1), there(2);
  const auto targets = target(here, 2, 7);
  create(here, *targets);
  const auto first = call(here, targets, "e", "one");
  const auto second = call(here, targets, "e", "two");
  const auto event = here.control();
  CHECK(event->kind == Event::Kind::kDial);
  const Echo echo(there, there.main_worker());
  connect(here, there);
  CHECK(answer(here, *first) == "one");
  CHECK(answer(here, *second) == "two");
  there.stop();
}

TEST_CASE("what no frame can hold is refused before there is a link as well") {
  Engine here(1);
  const auto targets = target(here, 2, 7);
  const std::vector<Bytes> many(wire::k_max_buffers + 1, bytes_of("x"));
  const auto refused = here.call(targets, {.endpoint = "e", .data = {}, .buffers = many});
  REQUIRE(!refused.ok());
  CHECK(refused.error().code == base::Code::kLimit);
  CHECK(refused.error().message.find("in 65537 parts") != std::string::npos);
}

TEST_CASE("bytes that are no frames of ours cost the link, nothing else") {
  Engine here(1);
  const auto ends = sockets();
  REQUIRE(here.add_link(2, ends[0]).ok());
  const std::string garbage(1000, 'g');
  REQUIRE(::write(ends[1], garbage.data(), garbage.size()) == 1000);
  const auto event = here.control();
  CHECK(event->kind == Event::Kind::kLinkLost);
  CHECK_FALSE(event->text.empty());
  ::close(ends[1]);
}

TEST_CASE("a silent peer is pinged, and reported when it stays silent") {
  Engine here(1, {.heartbeat = std::chrono::milliseconds(5)});
  const auto ends = sockets();
  REQUIRE(here.add_link(2, ends[0]).ok());
  const auto event = here.control();
  CHECK(event->kind == Event::Kind::kStalled);
  CHECK(event->seconds >= 0.02);
  std::array<std::byte, wire::k_header_size> ping;
  REQUIRE(::read(ends[1], ping.data(), ping.size()) == static_cast<ssize_t>(ping.size()));
  CHECK(wire::read_header(ping)->kind == static_cast<std::uint8_t>(wire::Kind::kPing));
  ::close(ends[1]);
}

TEST_CASE("a peer with a heartbeat of its own is looked at by that") {
  Engine here(1, {.heartbeat = std::chrono::hours(1)});
  const auto ends = sockets();
  REQUIRE(here.add_link(2, ends[0]).ok());
  here.set_heartbeat(2, std::chrono::milliseconds(5), 3);
  const auto event = here.control();
  CHECK(event->kind == Event::Kind::kStalled);
  CHECK(event->seconds >= 0.015);
  ::close(ends[1]);
}

TEST_CASE("what waited for a link and went out on it may have arrived when its peer is fenced") {
  Engine here(1);
  const auto inbox = call(here, target(here, 2, 9), "e", "data");
  const auto ends = sockets();
  REQUIRE(here.add_link(2, ends[0]).ok());
  here.fail_peer(2, "gone");
  REQUIRE(waited_out([&] { return here.wait(*inbox, 1, std::nullopt); }) == Waited::kDone);
  CHECK(here.arrival(*inbox, 0)->status == static_cast<std::uint8_t>(Status::kFailed));
  ::close(ends[1]);
}

TEST_CASE("who is fenced gets no link, and is told so") {
  Engine here(1);
  CHECK(here.meet(2, false, false, false) == wire::Meeting::kTake);
  here.fail_peer(2, "gone");
  CHECK(here.meet(2, false, false, false) == wire::Meeting::kGone);
  CHECK(here.meet(2, true, false, false) == wire::Meeting::kGone);
}

TEST_CASE("a peer that was silent is back when its session has another connection") {
  Engine here(1, {.heartbeat = std::chrono::milliseconds(5)});
  const auto ends = sockets();
  REQUIRE(here.add_link(2, ends[0], nullptr, /*session=*/true).ok());
  CHECK(here.control()->kind == Event::Kind::kStalled);
  const auto next = sockets();
  ::close(ends[1]);
  REQUIRE(here.resume_link(2, next[0], nullptr).ok());
  std::optional<Event> event;
  do {
    event = here.control();
  } while (event.has_value() && event->kind == Event::Kind::kBroken);
  REQUIRE(event.has_value());
  CHECK(event->kind == Event::Kind::kAlive);
  ::close(next[1]);
}

TEST_CASE("a session whose peer has not said where to go on costs no processor") {
  Engine here(1);
  const auto ends = sockets();
  REQUIRE(here.add_link(2, ends[0], nullptr, /*session=*/true).ok());
  const auto inbox = call(here, target(here, 2, 7), "e", "x");
  ::close(ends[1]);
  CHECK(here.control()->kind == Event::Kind::kBroken);
  const auto next = sockets();
  REQUIRE(here.resume_link(2, next[0], nullptr).ok());
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  CHECK(std::clock() - before < CLOCKS_PER_SEC / 10);
  ::close(next[1]);
}

// Of a thread that waits for work, and of the caretaker, in both.
TEST_CASE("engines with nothing to do wake for their heartbeats alone") {
  constexpr auto kBeat = std::chrono::milliseconds(20);
  Engine here(1, {.heartbeat = kBeat, .misses = 1000}), there(2, {.heartbeat = kBeat, .misses = 1000});
  connect(here, there);
  const Echo echo_here(here, here.main_worker());
  const Echo echo(there, there.main_worker());
  const auto targets = target(here, 2, 7);
  create(here, *targets);
  CHECK(answer(here, *call(here, targets, "e", "x")) == "x");
  std::this_thread::sleep_for(5 * kBeat);
  const auto wakes = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw;
  };
  const auto began = std::chrono::steady_clock::now();
  const long before = wakes();
  std::this_thread::sleep_for(50 * kBeat);
  const long after = wakes();
  const auto beats = (std::chrono::steady_clock::now() - began) / kBeat;
  CHECK(after - before <= 8 * beats);  // of each: a timer, and up to three messages
  here.stop();
  there.stop();
}

}  // namespace
}  // namespace monarch::actor
