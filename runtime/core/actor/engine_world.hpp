// Engines in one program and what they say to each other, for tests.
#pragma once

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "actor/engine.hpp"

namespace monarch::actor::world {

using base::Bytes;

inline Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

inline std::string text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline std::array<int, 2> sockets() {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
  return ends;
}

inline void connect(Engine& one, Engine& other) {
  const auto ends = sockets();
  REQUIRE(one.add_link(other.proc(), ends[0]).ok());
  REQUIRE(other.add_link(one.proc(), ends[1]).ok());
}

inline std::shared_ptr<const Targets> target(Engine& engine, std::uint64_t proc, std::uint64_t actor) {
  return engine.targets(std::array{proc}, std::array{actor});
}

inline void create(Engine& from, const Targets& targets, std::uint16_t also = 0) {
  const auto flags = static_cast<std::uint16_t>(k_create | also);
  REQUIRE(from.cast(targets, {.endpoint = "", .data = {}, .buffers = {}, .flags = flags}, 0, 0, 0)
              .ok());
}

inline std::shared_ptr<Inbox> call(Engine& from, const std::shared_ptr<const Targets>& targets,
                            std::string_view endpoint, std::string_view data) {
  auto inbox =
      from.call(targets, {.endpoint = endpoint, .data = bytes_of(data), .buffers = {}});
  REQUIRE(inbox.ok());
  return *inbox;
}

// The end of a wait: kSignal only asks to look after signals and to wait on.
template <typename Wait>
Waited waited_out(Wait wait) {
  Waited waited = Waited::kSignal;
  while (waited == Waited::kSignal) waited = wait();
  return waited;
}

inline std::string answer(Engine& engine, Inbox& inbox, std::size_t index = 0) {
  REQUIRE(waited_out([&] { return engine.wait(inbox, index + 1, std::nullopt); }) == Waited::kDone);
  return text_of(engine.arrival(inbox, index)->payload.data);
}

// A thread that answers every call with its own data until the engine stops.
class Echo {
 public:
  Echo(Engine& engine, Worker& worker)
      : thread_([&engine, &worker] {
          while (true) {
            Waited ended = Waited::kDone;
            auto work = engine.next(worker, std::nullopt, ended);
            if (ended == Waited::kStopped) return;
            if (!work || work->kind != Work::Kind::kRequest) continue;
            auto& request = work->request;
            if (request->endpoint == "slow") std::this_thread::sleep_for(std::chrono::milliseconds(60));
            (void)engine.reply(request, 0, request->payload.data, request->payload.buffers);
            engine.finish(request);
          }
        }) {}
  ~Echo() { thread_.join(); }

 private:
  std::thread thread_;
};

}  // namespace monarch::actor::world
