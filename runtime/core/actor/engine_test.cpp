#include "actor/engine.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <future>
#include <string>
#include <thread>

#include "actor/engine_world.hpp"

namespace monarch::actor {
namespace {

using namespace world;

TEST_CASE("a call to another process is answered, with its buffers") {
  Engine here(1), there(2);
  connect(here, there);
  const Echo echo(there, there.main_worker());
  const auto targets = target(here, 2, 7);
  create(here, *targets);
  const std::string large(300'000, 'x');
  const std::array<Bytes, 2> buffers{bytes_of(large), bytes_of("small")};
  auto inbox = here.call(targets, {.endpoint = "e", .data = bytes_of("data"), .buffers = buffers});
  REQUIRE(inbox.ok());
  CHECK(answer(here, **inbox) == "data");
  const auto arrival = here.arrival(**inbox, 0);
  REQUIRE(arrival->payload.buffers.size() == 2);
  CHECK(text_of(arrival->payload.buffers[0]) == large);
  CHECK(text_of(arrival->payload.buffers[1]) == "small");
  there.stop();
}

TEST_CASE("calls of several threads are answered in the order in which each sent them") {
  Engine here(1), there(2);
  connect(here, there);
  const Echo echo(there, there.main_worker());
  const auto targets = target(here, 2, 7);
  create(here, *targets);
  const auto client = [&](int which) {
    for (int round = 0; round < 40; ++round) {
      std::vector<std::shared_ptr<Inbox>> inboxes;
      for (int i = 0; i < 25; ++i) {
        inboxes.push_back(call(here, targets, "e", std::to_string(which * 1000 + i)));
      }
      for (int i = 0; i < 25; ++i) {
        CHECK(answer(here, *inboxes[static_cast<std::size_t>(i)]) == std::to_string(which * 1000 + i));
      }
    }
  };
  std::vector<std::thread> threads;
  for (int which = 1; which <= 4; ++which) threads.emplace_back(client, which);
  for (std::thread& thread : threads) thread.join();
  there.stop();
}

TEST_CASE("a call to an actor of the same process is answered by its worker") {
  Engine here(1);
  const Echo echo(here, here.main_worker());
  const auto targets = target(here, 1, 7);
  create(here, *targets);
  for (int i = 0; i < 200; ++i) CHECK(answer(here, *call(here, targets, "e", "x")) == "x");
  here.stop();
}

TEST_CASE("messages of one sender are handled in order, none twice, none lost") {
  Engine here(1), there(2);
  Worker& worker = there.main_worker();
  connect(here, there);
  const auto targets = target(here, 2, 7);
  create(here, *targets);
  constexpr std::uint32_t kCount = 50'000;
  std::thread reader([&] {
    std::uint32_t expected = 0;
    while (expected < kCount) {
      Waited ended = Waited::kDone;
      auto work = there.next(worker, std::nullopt, ended);
      if (!work) continue;
      if (work->request->endpoint == "n") {
        std::uint32_t number = 0;
        std::memcpy(&number, work->request->payload.data.data(), sizeof number);
        REQUIRE(number == expected++);
      }
      there.finish(work->request);
    }
  });
  std::string data(1024, 'x');
  for (std::uint32_t i = 0; i < kCount; ++i) {
    std::memcpy(data.data(), &i, sizeof i);
    const std::size_t size = sizeof i + i % 1000;
    if (!here.has_credit(*targets)) {
      REQUIRE(waited_out([&] { return here.wait_credit(*targets); }) == Waited::kDone);
    }
    REQUIRE(here.cast(*targets, {.endpoint = "n", .data = bytes_of(data).first(size), .buffers = {}},
                      0, 0, 0)
                .ok());
  }
  reader.join();
}

TEST_CASE("a sender waits for credit when its receiver does not handle what it has") {
  Engine here(1, {.window = 64 << 10}), there(2, {.window = 64 << 10});
  Worker& worker = there.main_worker();
  connect(here, there);
  const auto targets = target(here, 2, 7);
  create(here, *targets);
  const std::string data(4096, 'x');
  int sent = 0;
  while (here.has_credit(*targets)) {
    REQUIRE(here.cast(*targets, {.endpoint = "n", .data = bytes_of(data), .buffers = {}}, 0, 0, 0).ok());
    REQUIRE(++sent < 100);
  }
  CHECK(sent >= 14);
  auto waiting = std::async(std::launch::async, [&] {
    return waited_out([&] { return here.wait_credit(*targets); });
  });
  const Echo echo(there, worker);
  CHECK(waiting.get() == Waited::kDone);
  there.stop();
}

TEST_CASE("a wait ends at its deadline, and at the engine's stop") {
  Engine here(1);
  const auto inbox = here.open_inbox(false);
  const auto now = base::SteadyClock().now();
  CHECK(here.wait(*inbox, 1, now) == Waited::kTimeout);
  CHECK(here.wait(*inbox, 1, now + std::chrono::milliseconds(5)) != Waited::kDone);
  auto waiting = std::async(std::launch::async, [&] {
    return waited_out([&] { return here.wait(*inbox, 1, std::nullopt); });
  });
  here.stop();
  CHECK(waiting.get() == Waited::kStopped);
}

TEST_CASE("a cancelled request that still waits is not handled, one that runs is told") {
  Engine here(1), there(2);
  Worker& worker = there.main_worker();
  connect(here, there);
  const auto targets = target(here, 2, 7);
  create(here, *targets);
  const auto running = call(here, targets, "a", "x");
  const auto queued = call(here, targets, "b", "x");
  Waited ended = Waited::kDone;
  const auto created = there.next(worker, std::nullopt, ended);
  there.finish(created->request);
  const auto first = there.next(worker, std::nullopt, ended);
  CHECK(first->request->endpoint == "a");
  here.cancel(*queued);
  here.cancel(*running);  // told last, so that the event says that both have arrived
  const auto event = there.control();
  CHECK(static_cast<int>(event->kind) == static_cast<int>(Event::Kind::kCancel));
  CHECK(event->request == first->request);
  CHECK(first->request->cancelled);
  there.finish(first->request);
  CHECK(!there.next(worker, base::SteadyClock().now() + std::chrono::milliseconds(2), ended));
  CHECK(there.running(7).size() == 1);  // the first was never answered
}

TEST_CASE("there is no such actor, and it was closed: the caller is told which") {
  Engine here(1), there(2);
  connect(here, there);
  const Echo echo(there, there.main_worker());
  const auto none = call(here, target(here, 2, 8), "e", "x");
  CHECK(answer(here, *none) == "there is no such actor");
  const auto targets = target(here, 2, 7);
  create(here, *targets);
  CHECK(answer(here, *call(here, targets, "e", "x")) == "x");
  there.close_actor(7, static_cast<std::uint8_t>(Status::kFailed), "closed");
  CHECK(answer(here, *call(here, targets, "e", "x")) == "closed");
  there.stop();
}

TEST_CASE("a closed actor is made again under its id, one that lives is not") {
  Engine here(1), there(2);
  connect(here, there);
  const Echo echo(there, there.main_worker());
  const auto targets = target(here, 2, 7);
  create(here, *targets);
  CHECK(answer(here, *call(here, targets, "e", "x")) == "x");  // it is there
  there.close_actor(7, static_cast<std::uint8_t>(Status::kFailed), "closed");
  CHECK(answer(here, *call(here, targets, "e", "x")) == "closed");
  create(here, *targets);
  CHECK(answer(here, *call(here, targets, "e", "y")) == "y");
  const auto again = here.call(targets, {.endpoint = "", .data = {}, .buffers = {}, .flags = k_create});
  REQUIRE(again.ok());
  CHECK(answer(here, **again) == "an actor with this id exists already");
  there.stop();
}

TEST_CASE("of closed actors a number of answers is kept, and the requests that are still open") {
  Engine here(1);
  const Echo echo(here, here.main_worker());
  constexpr std::uint64_t kMany = 5000;
  const auto closed = static_cast<std::uint8_t>(Status::kFailed);
  for (std::uint64_t actor = 1; actor <= kMany; ++actor) {
    const auto targets = target(here, 1, actor);
    create(here, *targets);
    CHECK(answer(here, *call(here, targets, "e", "x")) == "x");
    here.close_actor(actor, closed, "closed " + std::to_string(actor));
    here.close_actor(actor, closed, "closed twice");
  }
  CHECK(answer(here, *call(here, target(here, 1, kMany), "e", "x")) == "closed 5000");
  CHECK(answer(here, *call(here, target(here, 1, 1), "e", "x")) == "there is no such actor");
  here.stop();
}

TEST_CASE("an actor that was closed while it handles a request finishes that, and is answered for") {
  Engine here(1);
  Worker& main = here.main_worker();
  const auto targets = target(here, 1, 7);
  create(here, *targets);
  Waited ended = Waited::kDone;
  here.finish(here.next(main, std::nullopt, ended)->request);
  const auto open = call(here, targets, "e", "x");
  const auto late = here.call(
      targets, {.endpoint = "late", .data = {}, .buffers = {}, .flags = k_explicit});
  auto first = here.next(main, std::nullopt, ended);
  REQUIRE(first.has_value());
  here.close_actor(7, static_cast<std::uint8_t>(Status::kFailed), "closed");
  CHECK(here.running(7).size() == 1);
  CHECK(answer(here, **late) == "closed");
  CHECK(here.reply(first->request, 0, bytes_of("done"), {}).ok());
  here.finish(first->request);
  CHECK(answer(here, *open) == "done");
  CHECK(here.running(7).empty());
  CHECK(answer(here, *call(here, targets, "e", "x")) == "closed");
  create(here, *targets);
  auto again = here.next(main, std::nullopt, ended);
  REQUIRE(again.has_value());
  here.finish(again->request);
}

TEST_CASE("what is to be handled beside does not wait for an actor of a loop, nor hold it up") {
  Engine here(1);
  const auto targets = target(here, 1, 7);
  Worker& loop = here.main_worker();
  create(here, *targets, k_loop);
  Waited ended = Waited::kDone;
  here.finish(here.next(loop, std::nullopt, ended)->request);
  const auto send = [&](const char* name, std::uint16_t flags) {
    REQUIRE(here.cast(*targets, {.endpoint = name, .data = {}, .buffers = {}, .flags = flags}, 0, 0, 0)
                .ok());
  };
  send("waits", 0);
  auto waits = here.next(loop, std::nullopt, ended)->request;
  send("later", 0);
  send("beside", k_beside);
  auto beside = here.next(loop, std::nullopt, ended)->request;
  CHECK(beside->endpoint == "beside");
  CHECK(!here.next_ready(loop));  // "later" waits for "waits"
  here.finish(waits);
  auto later = here.next(loop, std::nullopt, ended)->request;
  CHECK(later->endpoint == "later");
  here.finish(beside);
  send("last", 0);
  CHECK(!here.next_ready(loop));  // which "beside" does not let in
  here.finish(later);
  CHECK(here.next(loop, std::nullopt, ended)->request->endpoint == "last");
  send("too late", k_beside);
  here.close_actor(7, static_cast<std::uint8_t>(Status::kFailed), "closed");
  CHECK(!here.next_ready(loop));
}

TEST_CASE("an actor that shares a worker stuck in another's endpoint moves to a new one") {
  Engine here(1, {.workers = 1});
  Worker& main = here.main_worker();
  const auto stuck = target(here, 1, 7);
  const auto other = target(here, 1, 8);
  create(here, *stuck);
  create(here, *other);
  std::promise<void> release;
  std::thread first([&] {
    for (int i = 0; i < 3; ++i) {
      Waited ended = Waited::kDone;
      auto work = here.next(main, std::nullopt, ended);
      if (work->request->endpoint == "wait") release.get_future().wait();
      here.finish(work->request);
    }
  });
  const auto waits = here.cast(*stuck, {.endpoint = "wait", .data = {}, .buffers = {}}, 0, 0, 0);
  REQUIRE(waits.ok());
  const auto inbox = call(here, other, "e", "moved");
  const auto event = here.control();
  REQUIRE(event->kind == Event::Kind::kWorker);
  const Echo echo(here, *event->worker);
  CHECK(answer(here, *inbox) == "moved");
  release.set_value();
  first.join();
  here.stop();
}

TEST_CASE("a failure of what an actor owns comes before the messages that wait for the actor") {
  Engine here(1);
  Worker& main = here.main_worker();
  const auto targets = target(here, 1, 7);
  create(here, *targets);
  const auto send = [&](std::string_view endpoint, std::uint16_t flags) {
    REQUIRE(
        here.cast(*targets, {.endpoint = endpoint, .data = {}, .buffers = {}, .flags = flags}, 0, 0, 0)
            .ok());
  };
  send("first", 0);
  send("second", 0);
  send("told", k_supervise);
  send("told again", k_supervise);
  send("third", 0);
  std::vector<std::string> order;
  while (order.size() < 6) {
    Waited ended = Waited::kDone;
    auto work = here.next(main, std::nullopt, ended);
    REQUIRE(work.has_value());
    order.push_back(work->request->endpoint);
    here.finish(work->request);
  }
  CHECK(order == std::vector<std::string>{"", "told", "told again", "first", "second", "third"});
  here.stop();
}

TEST_CASE("actors that need an event loop have one each, up to a number of loops") {
  Engine here(1, {.loops = 2});
  Worker& main = here.main_worker();
  std::vector<Worker*> made;
  const auto add = [&](std::uint64_t actor) {
    const auto targets = target(here, 1, actor);
    REQUIRE(
        here.cast(*targets, {.data = {}, .buffers = {}, .flags = k_create | k_loop}, 0, 0, 0).ok());
  };
  for (const std::uint64_t actor : {7U, 8U, 9U, 10U}) add(actor);
  const auto event = here.control();
  REQUIRE(event->kind == Event::Kind::kWorker);
  CHECK(event->worker != &main);
  CHECK(main.is_loop);
  CHECK(event->worker->is_loop);
  CHECK(main.actors == 2);
  CHECK(event->worker->actors == 2);
  here.stop();
}

TEST_CASE("a subscription is handed to its worker when the answers are there") {
  Engine here(1);
  Worker& foreign = here.foreign_worker();
  const auto inbox = here.open_inbox(false);
  int token = 0;
  CHECK(!here.subscribe(*inbox, foreign, 1, &token));
  CHECK(!here.next_ready(foreign));
  REQUIRE(here.post(1, inbox->id, 0, 0, bytes_of("x"), {}).ok());
  char byte = 0;
  CHECK(::read(foreign.signal_read, &byte, 1) == 1);
  const auto work = here.next_ready(foreign);
  REQUIRE(work.has_value());
  CHECK(work->token == &token);
  CHECK(here.subscribe(*inbox, foreign, 1, &token));
}

TEST_CASE("what asks for no reply and reaches nobody is given back, by name of who sent it") {
  Engine here(1);
  Engine there(2);
  connect(here, there);
  const auto inbox = here.open_inbox(/*once=*/false);
  REQUIRE(there.post_from(7, 1, inbox->id, 3, Status::kOk, bytes_of("x"), {}).ok());
  REQUIRE(waited_out([&] { return here.wait(*inbox, 1, std::nullopt); }) == Waited::kDone);
  CHECK(here.arrival(*inbox, 0)->rank == 3);
  here.close_inbox(*inbox);

  REQUIRE(there.post_from(7, 1, inbox->id, 0, Status::kError, bytes_of("x"), {}).ok());
  auto event = here.control();
  REQUIRE(event.has_value());
  CHECK(event->kind == Event::Kind::kReturned);
  CHECK(event->status == static_cast<std::uint8_t>(Status::kUndelivered));
  CHECK(event->request->sender_proc == 2);
  CHECK(event->request->sender == 7);
  CHECK(event->request->actor == inbox->id);

  here.fail_peer(2, "gone");
  REQUIRE(here.cast(*target(here, 2, 9), {.endpoint = "e", .data = {}, .buffers = {}, .sender = 8}, 0,
                    0, 0)
              .ok());
  do {
    event = here.control();
  } while (event.has_value() && event->kind != Event::Kind::kReturned);
  REQUIRE(event.has_value());
  CHECK(event->status == static_cast<std::uint8_t>(Status::kUnsent));
  CHECK(event->request->sender == 8);
  CHECK(event->request->endpoint == "e");
}

}  // namespace
}  // namespace monarch::actor
