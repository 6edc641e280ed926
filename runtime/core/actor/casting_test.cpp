// Messages by way of other processes: an origin, agents, and their processes, in one program.
#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "actor/engine.hpp"
#include "actor/engine_world.hpp"
#include "net/link.hpp"
#include "wire/cast.hpp"
#include "wire/message.hpp"

namespace monarch::actor {
namespace {

using namespace world;

constexpr std::uint64_t kOrigin = 1;
constexpr std::uint64_t kActor = 7;

// A process whose actor keeps what it gets, and answers with it; "late" ones later.
class Receiver {
 public:
  explicit Receiver(std::uint64_t id) : engine(id) {
    Worker& worker = engine.main_worker();
    thread_ = std::thread([this, &worker] { run(worker); });
  }
  ~Receiver() {
    engine.stop();
    thread_.join();
  }
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  Engine engine;
  std::string got;  // after the engine has stopped, or with nothing under way

 private:
  void run(Worker& worker) {
    while (true) {
      Waited ended = Waited::kDone;
      auto work = engine.next(worker, std::nullopt, ended);
      if (ended == Waited::kStopped) return;
      if (!work || work->kind != Work::Kind::kRequest) continue;
      auto& request = work->request;
      if (request->endpoint == "late") std::this_thread::sleep_for(std::chrono::milliseconds(80));
      got += text_of(request->payload.data);
      const std::string all = request->endpoint == "all" ? got : text_of(request->payload.data);
      (void)engine.reply(request, request->endpoint == "fail" ? 1 : 0, bytes_of(all), {});
      engine.finish(request);
    }
  }
  std::thread thread_;
};

struct World {
  explicit World(std::size_t hosts, std::size_t per_host, Limits limits = {.cast_from = 2})
      : origin(kOrigin, limits) {
    for (std::size_t host = 0; host < hosts; ++host) {
      agents.push_back(std::make_unique<Engine>(100 + host));
      connect(origin, *agents.back());
      for (std::size_t i = 0; i < per_host; ++i) {
        procs.push_back(std::make_unique<Receiver>(1000 + 10 * host + i));
        ids.push_back(procs.back()->engine.proc());
        connect(*agents.back(), procs.back()->engine);
        connect(origin, procs.back()->engine);
        origin.set_relay(ids.back(), 100 + host);
      }
    }
    targets = origin.targets(ids, std::vector<std::uint64_t>(ids.size(), kActor));
    auto inbox = origin.call(targets, {.endpoint = "make", .flags = k_create});
    REQUIRE(inbox.ok());
    wait(**inbox);
    (void)origin.cast(*targets, {.endpoint = "keep", .data = bytes_of("<")}, 0, 0, 0);
  }

  // All answers, by rank.
  std::vector<std::pair<int, std::string>> wait(Inbox& inbox) {
    Waited waited = Waited::kSignal;
    while (waited == Waited::kSignal) waited = origin.wait(inbox, inbox.expected, std::nullopt);
    std::vector<std::pair<int, std::string>> answers(inbox.expected);
    for (std::size_t i = 0; i < inbox.expected; ++i) {
      const auto arrival = origin.arrival(inbox, i);
      answers[arrival->rank] = {arrival->status, text_of(arrival->payload.data)};
    }
    return answers;
  }

  std::vector<std::pair<int, std::string>> call(std::string_view endpoint, std::string_view data) {
    auto inbox = origin.call(targets, {.endpoint = endpoint, .data = bytes_of(data)});
    REQUIRE(inbox.ok());
    return wait(**inbox);
  }

  // What has been said is settled in a moment.
  void settle() {
    for (int i = 0; i < 2000 && origin.casts().first > 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(origin.casts().first == 0);
    for (const auto& agent : agents) {
      for (int i = 0; i < 2000 && agent->casts().second > 0; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      CHECK(agent->casts().second == 0);
    }
  }

  Engine origin;
  std::vector<std::unique_ptr<Engine>> agents;
  std::vector<std::unique_ptr<Receiver>> procs;
  std::vector<std::uint64_t> ids;
  std::shared_ptr<const Targets> targets;
};

TEST_CASE("what many are sent goes by way of their hosts' agents, and the answers come back") {
  World world(3, 3);
  for (int i = 0; i < 50; ++i) {
    for (const auto& [status, text] : world.call("echo", "x" + std::to_string(i))) {
      CHECK(status == 0);
      CHECK(text == "x" + std::to_string(i));
    }
  }
  for (const auto& [status, text] : world.call("fail", "no")) CHECK(status == 1);
  world.settle();
}

TEST_CASE("an answer that is too large for the tree comes directly") {
  World world(2, 2);
  const std::string large(20'000, 'l');
  for (const auto& [status, text] : world.call("echo", large)) CHECK(text == large);
  world.settle();
}

TEST_CASE("what goes by the tree and what goes directly keeps its order") {
  World world(2, 3);
  const auto one = world.origin.targets(std::array{world.ids[4]}, std::array{kActor});
  std::string expected = "<";
  for (int i = 0; i < 400; ++i) {
    const std::string text(1, static_cast<char>('a' + i % 26));
    if (i % 3 == 0) {
      REQUIRE(world.origin.call(one, {.endpoint = "echo", .data = bytes_of(text)}).ok());
    } else {
      REQUIRE(world.origin.cast(*world.targets, {.endpoint = "keep", .data = bytes_of(text)}, 0, 0, 0)
                  .ok());
    }
    expected += text;
  }
  auto all = world.origin.call(one, {.endpoint = "all"});
  REQUIRE(all.ok());
  CHECK(world.wait(**all)[0].second == expected);
  world.settle();
}

TEST_CASE("answers of an agent for more ranks than a call has are those of its ranks") {
  Engine origin(kOrigin, {.cast_from = 2});
  const std::array<std::uint64_t, 2> ids{1000, 1001};
  std::vector<std::unique_ptr<net::Link>> ends;  // the agent's, and those of two processes
  for (const std::uint64_t id : {std::uint64_t{100}, ids[0], ids[1]}) {
    const auto pair = sockets();
    REQUIRE(origin.add_link(id, pair[0]).ok());
    ends.push_back(std::make_unique<net::Link>(pair[1]));
  }
  for (const std::uint64_t id : ids) origin.set_relay(id, 100);
  const auto inbox = world::call(origin, origin.targets(ids, std::array{kActor, kActor}), "e", "x");
  std::uint64_t number = 0;
  const auto read = [&](wire::Frame& frame) {
    Bytes plan;
    if (const auto cast = wire::read_cast(frame.message, plan)) number = cast->number;
    return true;
  };
  while (number == 0) REQUIRE(ends.front()->receive(read));
  wire::Group group{.status = 0, .payload = bytes_of("said"), .ranks = {}};
  group.ranks.add(0, ~std::uint32_t{0});
  const auto message =
      wire::gathered_message({.origin = kOrigin, .number = number, .groups = {group}});
  REQUIRE(ends.front()->send(wire::Kind::kGathered, std::array{Bytes(message)}, {}).ok());
  REQUIRE(ends.front()->flush());
  const auto began = std::chrono::steady_clock::now();
  CHECK(answer(origin, *inbox, 1) == "said");
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(10));
  CHECK(origin.arrived(*inbox) == 2);
}

TEST_CASE("a call by the tree that is cancelled is settled all the same") {
  World world(2, 2);
  for (int i = 0; i < 20; ++i) {
    auto inbox = world.origin.call(world.targets, {.endpoint = i == 0 ? "late" : "echo"});
    REQUIRE(inbox.ok());
    world.origin.cancel(**inbox);
  }
  for (const auto& [status, text] : world.call("echo", "after")) CHECK(text == "after");
  world.settle();
}

TEST_CASE("what an agent that is lost had under way is sent directly, and handled once") {
  World world(3, 2);
  for (int round = 0; round < 30; ++round) {
    (void)world.origin.cast(*world.targets, {.endpoint = "keep", .data = bytes_of("k")}, 0, 0, 0);
  }
  auto inbox = world.origin.call(world.targets, {.endpoint = "late", .data = bytes_of("l")});
  REQUIRE(inbox.ok());
  for (int round = 0; round < 30; ++round) {
    (void)world.origin.cast(*world.targets, {.endpoint = "keep", .data = bytes_of("m")}, 0, 0, 0);
  }
  world.origin.lose_link(101, "for a test");
  for (const auto& [status, text] : world.wait(**inbox)) CHECK(text == "l");
  const std::string expected = "<" + std::string(30, 'k') + "l" + std::string(30, 'm');
  for (const auto& [status, text] : world.call("all", "")) CHECK(text == expected);
  world.settle();
}

TEST_CASE("a process that dies is an error of its rank, the others answer") {
  World world(2, 3);
  auto inbox = world.origin.call(world.targets, {.endpoint = "late", .data = bytes_of("l")});
  REQUIRE(inbox.ok());
  world.procs[1]->engine.stop();
  world.origin.fail_peer(world.ids[1], "gone");
  const auto answers = world.wait(**inbox);
  CHECK(answers[1].first == static_cast<int>(Status::kFailed));
  for (const std::size_t rank : {0U, 2U, 3U, 4U, 5U}) CHECK(answers[rank].second == "l");
  CHECK(world.call("echo", "x")[1].first == static_cast<int>(Status::kUnsent));
  world.settle();
}

TEST_CASE("a tree of agents is passed down, and one in the middle that is lost passed by") {
  World world(5, 2, {.fan_out = 2, .cast_from = 2});
  CHECK(world.origin.wanted_edges().size() == 3);
  for (const auto& [from, to] : world.origin.wanted_edges()) {
    connect(*world.agents[from - 100], *world.agents[to - 100]);
    world.origin.set_edge(from, to, true);
  }
  CHECK(world.origin.wanted_edges().empty());
  for (int i = 0; i < 20; ++i) {
    for (const auto& [status, text] : world.call("echo", "x")) CHECK(text == "x");
  }
  std::vector<std::shared_ptr<Inbox>> inboxes;
  for (int i = 0; i < 20; ++i) {
    auto inbox = world.origin.call(world.targets, {.endpoint = "echo", .data = bytes_of("y")});
    REQUIRE(inbox.ok());
    inboxes.push_back(*inbox);
    if (i == 10) world.agents[0]->stop();  // two others are below it
  }
  for (const auto& inbox : inboxes) {
    for (const auto& [status, text] : world.wait(*inbox)) CHECK(text == "y");
  }
  const std::string expected = "<" + std::string(20, 'x') + std::string(20, 'y');
  for (const auto& [status, text] : world.call("all", "")) CHECK(text == expected);
}

}  // namespace
}  // namespace monarch::actor
