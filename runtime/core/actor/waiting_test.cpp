// Who polls while threads wait and work, and how all of it ends. No heartbeat helps where the next
// one is in an hour.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <future>
#include <string>
#include <thread>

#include "actor/engine.hpp"
#include "actor/engine_world.hpp"

namespace monarch::actor {
namespace {

using namespace world;

constexpr Limits kNoBeats{.heartbeat = std::chrono::hours(1)};

Waited wait_for_seconds(Engine& engine, Inbox& inbox, int seconds) {
  const auto late = base::SteadyClock().now() + std::chrono::seconds(seconds);
  return waited_out([&] { return engine.wait(inbox, 1, late); });
}

// A worker leads until an answer comes for another thread, which takes the lead over only if it has
// to wait on.
TEST_CASE("a process is reached while the thread that was to lead next is busy") {
  Engine here(1, kNoBeats), there(2, kNoBeats);
  connect(here, there);
  const Echo echo_here(here, here.main_worker());
  const Echo echo_there(there, there.main_worker());
  const auto from_here = target(here, 2, 7);
  const auto from_there = target(there, 1, 7);
  create(here, *from_here);
  create(there, *from_there);
  for (int i = 0; i < 3; ++i) {
    CHECK(answer(here, *call(here, from_here, "slow", "x")) == "x");
    const auto inbox = call(there, from_there, "e", "y");
    CHECK(wait_for_seconds(there, *inbox, 5) == Waited::kDone);
  }
  here.stop();
  there.stop();
}

// The one thread that polls there was away for no time, a thousand times, and then stays away.
TEST_CASE("a process is read while its only thread is long in an endpoint after many short ones") {
  Engine here(1, kNoBeats), there(2, kNoBeats);
  connect(here, there);
  Worker& worker = there.main_worker();
  std::promise<void> refused;
  std::thread only([&, end = refused.get_future()] {
    Waited ended = Waited::kDone;
    while (const auto work = there.next(worker, std::nullopt, ended)) {
      if (work->request->endpoint == "hold") end.wait();
      (void)there.reply(work->request, 0, {}, {});
      there.finish(work->request);
    }
  });
  const auto closed = target(here, 2, 8);
  create(here, *closed);
  CHECK(answer(here, *call(here, closed, "e", "x")).empty());
  there.close_actor(8, 2, "closed");
  const auto actor = target(here, 2, 7);
  create(here, *actor);
  for (int i = 0; i < 1000; ++i) CHECK(answer(here, *call(here, actor, "e", "x")).empty());
  const auto held = call(here, actor, "hold", "x");
  const auto inbox = call(here, closed, "e", "x");
  CHECK(wait_for_seconds(here, *inbox, 20) == Waited::kDone);
  refused.set_value();
  CHECK(answer(here, *held).empty());
  there.stop();
  only.join();
}

TEST_CASE("a message for an actor that does not come is refused in time") {
  Engine here(1, kNoBeats), there(2, kNoBeats);
  connect(here, there);
  const Echo echo(there, there.main_worker());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the caretaker of both sleeps deep
  const auto inbox = call(here, target(here, 2, 8), "e", "x");
  CHECK(wait_for_seconds(here, *inbox, 20) == Waited::kDone);
  there.stop();
}

TEST_CASE("an actor that is made again and again costs its senders no credit") {
  Engine here(1, {.window = 64 << 10}), there(2, {.window = 64 << 10});
  connect(here, there);
  const Echo echo(there, there.main_worker());
  const auto targets = target(here, 2, 7);
  const std::string data(4096, 'x');
  for (int i = 0; i < 20; ++i) {
    create(here, *targets);
    REQUIRE(here.cast(*targets, {.endpoint = "n", .data = bytes_of(data), .buffers = {}}, 0, 0, 0).ok());
    CHECK(answer(here, *call(here, targets, "e", "x")) == "x");
    there.close_actor(7, 2, "ended");
  }
  create(here, *targets);
  CHECK(answer(here, *call(here, targets, "e", "x")) == "x");
  CHECK(here.has_credit(*targets));
  there.stop();
}

TEST_CASE("the end of what is watched is told once") {
  Engine here(1);
  const auto ends = sockets();
  REQUIRE(here.watch(ends[0], 5).ok());
  ::close(ends[1]);
  CHECK(here.control()->kind == Event::Kind::kReadable);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  here.tell(1, bytes_of("after"));
  CHECK(here.control()->kind == Event::Kind::kControl);
  REQUIRE(here.watch(ends[0], 5).ok());
  CHECK(here.control()->kind == Event::Kind::kReadable);
  here.unwatch(ends[0]);
  ::close(ends[0]);
}

TEST_CASE("an engine that two threads stop at once is stopped for both") {
  for (int i = 0; i < 200; ++i) {
    Engine here(1);
    std::thread other([&] { here.stop(); });
    here.stop();
    other.join();
  }
}

#if defined(__linux__)
int poller_of_this_process() {
  for (int fd = 3; fd < 1024; ++fd) {
    std::array<char, 64> name{};
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    if (::readlink(path.c_str(), name.data(), name.size() - 1) < 0) continue;
    if (std::string_view(name.data()) == "anon_inode:[eventpoll]") return fd;
  }
  return -1;
}

TEST_CASE("all waits end where somebody has taken the engine's descriptors from it") {
  Engine here(1, {.heartbeat = std::chrono::milliseconds(5)});
  const auto inbox = here.open_inbox(false);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  REQUIRE(::dup2(null, poller_of_this_process()) >= 0);
  ::close(null);
  CHECK(waited_out([&] { return here.wait(*inbox, 1, std::nullopt); }) == Waited::kStopped);
  const auto event = here.control();
  REQUIRE(event.has_value());
  CHECK(event->kind == Event::Kind::kWarning);
  CHECK(event->text.find("cannot wait for messages any more: Invalid argument") != std::string::npos);
  CHECK(!here.control().has_value());
}
#endif

}  // namespace
}  // namespace monarch::actor
