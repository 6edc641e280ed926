#include "actor/shipping.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "actor/engine.hpp"
#include "wire/encoder.hpp"

using namespace std::chrono_literals;
using monarch::actor::Engine;
using monarch::actor::Event;
using monarch::actor::Limits;
using monarch::actor::Message;
using monarch::actor::Payload;
using monarch::actor::Shipping;
using monarch::actor::Waited;
using monarch::base::Bytes;

namespace {

constexpr std::uint64_t kClient = 1;
constexpr std::uint64_t kServer = 2;
constexpr std::uint64_t kActor = 7;
constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;

monarch::base::Instant soon() { return monarch::base::SteadyClock().now() + 60s; }

std::vector<std::byte> pattern(std::size_t size, std::size_t seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(seed + i / 997);
  return bytes;
}

template <typename Send>
auto send_ahead(Engine& engine, std::uint64_t proc, Bytes data, std::span<const Bytes> buffers,
                Send send) {
  Shipping shipping({proc}, data, buffers);
  while (engine.ship(shipping) == Waited::kSignal) {
  }
  auto result = send(&shipping);
  engine.offer(shipping);
  return result;
}

std::array<int, 2> socket_pair() {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
  return ends;
}

// Two processes in one: the server sends back what it gets.
class Pair {
 public:
  explicit Pair(Limits limits = {}) : client(kClient, limits), server(kServer, limits) {
    (void)server.main_worker();  // before an actor comes: else it gets a worker of its own
    const auto ends = socket_pair();
    REQUIRE(client.add_link(kServer, ends[0]).ok());
    REQUIRE(server.add_link(kClient, ends[1]).ok());
    thread_ = std::thread([this] { serve(); });
    targets_ = client.targets(std::array{kServer}, std::array{kActor});
    auto created = client.call(targets_, {.flags = monarch::actor::k_create});
    REQUIRE(created.ok());
    while (client.wait(**created, 1, soon()) == Waited::kSignal) {
    }
  }
  ~Pair() {
    client.stop();
    server.stop();
    thread_.join();
  }

  Payload echo(Bytes data, std::span<const Bytes> buffers) {
    Message message{.data = data, .buffers = buffers};
    auto inbox = send_ahead(client, kServer, data, buffers, [&](Shipping* shipping) {
      message.shipping = shipping;
      return client.call(targets_, message);
    });
    REQUIRE(inbox.ok());
    Waited waited = Waited::kSignal;
    while (waited == Waited::kSignal) waited = client.wait(**inbox, 1, soon());
    if (waited != Waited::kDone) return {};
    return client.take(**inbox)->payload;
  }

  // Both sides have got back what they lent.
  bool settles() {
    for (int i = 0; i < 500; ++i) {
      if (client.segments().lent == 0 && server.segments().lent == 0) return true;
      auto inbox = client.open_inbox(true);
      (void)client.wait(*inbox, 1, monarch::base::SteadyClock().now() + 10ms);
      client.close_inbox(*inbox);
    }
    return false;
  }

  Engine client;
  Engine server;

 private:
  void serve() {
    monarch::actor::Worker& worker = server.main_worker();
    while (true) {
      Waited ended = Waited::kDone;
      auto work = server.next(worker, std::nullopt, ended);
      if (ended == Waited::kStopped) return;
      if (!work || work->request == nullptr) continue;
      const auto request = work->request;
      const Payload payload = std::exchange(request->payload, {});
      (void)send_ahead(server, kClient, payload.data, payload.buffers, [&](Shipping* shipping) {
        return server.reply(request, 0, payload.data, payload.buffers, shipping);
      });
      server.finish(request);
    }
  }

  std::thread thread_;
  std::shared_ptr<const monarch::actor::Targets> targets_;
};

bool equal(Bytes a, Bytes b) { return std::ranges::equal(a, b); }

void check_echoes(Pair& pair) {
  for (std::size_t i = 0; i < 40; ++i) {
    const auto data = pattern(i % 3 == 0 ? 200 : 100 * kKiB, i);
    const auto first = pattern(i * 50 * kKiB, i + 1);
    const auto second = pattern(i % 2 == 0 ? 3 : 65 * kKiB, i + 2);
    const std::array<Bytes, 3> buffers{first, Bytes(), second};
    const Payload back = pair.echo(data, buffers);
    REQUIRE(back.buffers.size() == 3);
    CHECK(equal(back.data, data));
    CHECK(equal(back.buffers[0], first));
    CHECK(back.buffers[1].empty());
    CHECK(equal(back.buffers[2], second));
  }
}

// A peer that is a bare socket.
class Raw {
 public:
  explicit Raw(Engine& engine) {
    const auto ends = socket_pair();
    fd_ = ends[1];
    REQUIRE(engine.add_link(99, ends[0]).ok());
  }
  ~Raw() { ::close(fd_); }

  void send(monarch::wire::Kind kind, Bytes message) {
    const auto frame = monarch::wire::encode(
        message, {}, {.kind = static_cast<std::uint8_t>(kind), .sequence = sequence_++});
    REQUIRE(frame.ok());
    for (const Bytes piece : frame->pieces()) {
      REQUIRE(::send(fd_, piece.data(), piece.size(), 0) == static_cast<ssize_t>(piece.size()));
    }
  }

 private:
  int fd_ = -1;
  std::uint64_t sequence_ = 0;
};

std::string lost_because(const std::function<void(Raw&)>& speak) {
  Engine engine(kClient);
  Raw raw(engine);
  speak(raw);
  const auto event = engine.control();
  REQUIRE(event.has_value());
  CHECK(event->kind == Event::Kind::kLinkLost);
  return event->text;
}

}  // namespace

TEST_CASE("large messages come through segments, which come back and are used again") {
  Pair pair({.keep_segments = 1h});  // a machine that stands still for a while is no pause
  check_echoes(pair);
  CHECK(pair.settles());
  const std::size_t before = pair.client.segments().made;
  CHECK(before > 0);
  const auto data = pattern(kMiB, 5);
  const std::array<Bytes, 1> buffers{data};
  // One is made each time that none is back yet; how often that is depends on who runs when, but
  // with as many as can be on their way there is always one.
  std::size_t made = before;
  for (int same = 0, all = 0; same < 100; ++all) {
    REQUIRE(all < 3000);
    CHECK(equal(pair.echo({}, buffers).buffers[0], data));
    const std::size_t now = pair.client.segments().made;
    same = std::exchange(made, now) == now ? same + 1 : 0;
  }
  CHECK(pair.settles());
  CHECK(made <= before + 16);
  CHECK(pair.client.borrowed() == 0);
}

TEST_CASE("memory of segments goes when there were no large messages for a while") {
  Pair pair({.heartbeat = 5ms, .misses = 1000, .keep_segments = 100ms});
  const auto data = pattern(kMiB, 5);
  const std::array<Bytes, 1> buffers{data};
  for (int i = 0; i < 4; ++i) (void)pair.echo({}, buffers);
  CHECK(pair.client.segments().made > 0);
  CHECK(pair.settles());
  for (int i = 0; i < 2000 && pair.client.segments().idle > 0; ++i) {
    auto inbox = pair.client.open_inbox(true);
    (void)pair.client.wait(*inbox, 1, monarch::base::SteadyClock().now() + 5ms);
    pair.client.close_inbox(*inbox);
  }
  CHECK(pair.client.segments().idle == 0);
  CHECK(equal(pair.echo({}, buffers).buffers[0], data));
}

TEST_CASE("without segments they come in chunks, interleaved with those of other threads") {
  Pair pair({.segments = 0});
  check_echoes(pair);
  std::vector<std::thread> threads;
  std::array<bool, 3> same{};
  for (std::size_t t = 0; t < same.size(); ++t) {
    threads.emplace_back([&pair, &good = same[t], t] {
      const auto data = pattern(9 * kMiB + t, t);
      const std::array<Bytes, 1> buffers{data};
      const Payload back = pair.echo({}, buffers);
      good = back.buffers.size() == 1 && equal(back.buffers[0], data);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(same == std::array{true, true, true});
  CHECK(pair.client.segments().made == 0);
}

TEST_CASE("a first message in more parts than a frame holds waits for its link, and arrives") {
  Engine client(kClient), server(kServer);
  auto& main = server.main_worker();  // there before the actor, which lives on it then
  const auto targets = client.targets(std::array{kServer}, std::array{kActor});
  const auto byte = pattern(1, 7);
  const std::vector<Bytes> buffers(monarch::wire::k_max_buffers + 1, byte);
  std::thread dialler([&] {
    const auto event = client.control();
    REQUIRE(event.has_value());
    CHECK(event->kind == Event::Kind::kDial);
    const auto ends = socket_pair();
    REQUIRE(server.add_link(kClient, ends[1]).ok());
    REQUIRE(client.add_link(kServer, ends[0]).ok());
  });
  Message message{.endpoint = "e", .buffers = buffers};
  const auto sent = send_ahead(client, kServer, {}, buffers, [&](Shipping* shipping) {
    message.shipping = shipping;
    return client.call(targets, message);
  });
  dialler.join();
  REQUIRE(sent.ok());
  REQUIRE(client.cast(*targets, {.flags = monarch::actor::k_create}, 0, 0, 0).ok());
  std::size_t parts = 0;
  while (parts == 0) {
    Waited ended = Waited::kDone;
    const auto work = server.next(main, soon(), ended);
    REQUIRE(ended != Waited::kTimeout);
    if (!work || work->request == nullptr) continue;
    parts = work->request->payload.buffers.size();
    server.finish(work->request);
  }
  CHECK(parts == buffers.size());
}

TEST_CASE("what came by segment stays as it is when its sender is gone") {
  Payload kept;
  const auto data = pattern(300 * kKiB, 3);
  {
    Pair pair;
    const std::array<Bytes, 1> buffers{data};
    for (int i = 0; i < 1000 && pair.client.borrowed() == 0; ++i) kept = pair.echo({}, buffers);
    CHECK(pair.client.borrowed() == 1);
    pair.server.close_link(kClient);
    CHECK(equal(kept.buffers[0], data));
    pair.client.fail_peer(kServer, "gone");
    CHECK(pair.client.segments().lent == 0);
  }
  CHECK(equal(kept.buffers[0], data));
}

TEST_CASE("a large message to oneself is copied once") {
  Engine engine(kClient);
  const auto data = pattern(100 * kKiB, 1);
  const std::array<Bytes, 1> buffers{data};
  auto inbox = engine.open_inbox(true);
  const auto sent = send_ahead(engine, kClient, {}, buffers, [&](Shipping* shipping) {
    return engine.post(kClient, inbox->id, 0, 0, {}, buffers, shipping);
  });
  REQUIRE(sent.ok());
  const auto arrival = engine.take(*inbox);
  REQUIRE(arrival.has_value());
  CHECK(equal(arrival->payload.buffers[0], data));
  CHECK(arrival->payload.buffers[0].data() != data.data());
}

TEST_CASE("a shipped message that is not sent leaves nothing lent") {
  Pair pair;
  const auto data = pattern(kMiB, 5);
  const std::array<Bytes, 1> buffers{data};
  for (int i = 0; i < 4; ++i) (void)pair.echo({}, buffers);
  REQUIRE(pair.settles());
  Shipping shipping({kServer}, {}, buffers);
  REQUIRE(pair.client.ship(shipping) == Waited::kDone);
  CHECK(pair.client.segments().lent == 1);
  pair.client.abandon(shipping);
  CHECK(pair.client.segments().lent == 0);
  CHECK(equal(pair.echo({}, buffers).buffers[0], data));
}

TEST_CASE("a peer that says of large payloads what cannot be loses its link") {
  using monarch::wire::Kind;
  using monarch::wire::Source;
  const auto attach = [](Source source, std::vector<std::uint64_t> lengths) {
    return monarch::wire::attach_message({.source = source, .id = 5, .lengths = std::move(lengths)});
  };
  const auto chunk = [](std::uint64_t total, std::size_t bytes) {
    std::vector<std::byte> message(monarch::wire::k_chunk_head + bytes);
    monarch::wire::write_chunk({.id = 5, .total = total}, message);
    return message;
  };
  const std::string expected = "a message that says nothing of ours";
  CHECK(lost_because([&](Raw& raw) { raw.send(Kind::kAttach, attach(Source::kSegment, {9})); }) ==
        expected);
  CHECK(lost_because([&](Raw& raw) { raw.send(Kind::kAttach, attach(Source::kChunks, {9})); }) ==
        expected);
  CHECK(lost_because([&](Raw& raw) {
          raw.send(Kind::kChunk, chunk(10, 6));
          raw.send(Kind::kAttach, attach(Source::kChunks, {10}));
        }) == expected);
  CHECK(lost_because([&](Raw& raw) {
          raw.send(Kind::kChunk, chunk(10, 6));
          raw.send(Kind::kChunk, chunk(10, 6));
        }) == expected);
  CHECK(lost_because([&](Raw& raw) {
          raw.send(Kind::kChunk, chunk(10, 10));
          raw.send(Kind::kAttach, attach(Source::kChunks, {3, ~std::uint64_t{0} - 2}));
        }) == expected);
  CHECK(lost_because([&](Raw& raw) {
          for (int i = 0; i < 2; ++i) {
            raw.send(Kind::kChunk, chunk(10, 10));
            raw.send(Kind::kAttach, attach(Source::kChunks, {10}));
          }
        }) == expected);
  CHECK(lost_because([&](Raw& raw) { raw.send(Kind::kRelease, {}); }) == expected);
  CHECK(lost_because([&](Raw& raw) { raw.send(static_cast<Kind>(77), {}); }) == expected);
}

TEST_CASE("a segment without its descriptor is refused, and what it is told twice is ignored") {
  using monarch::wire::Kind;
  Engine engine(kClient);
  Raw raw(engine);
  std::array<std::byte, 16> head;
  monarch::wire::write_segment({.id = 3, .capacity = kMiB}, head);
  raw.send(Kind::kSegment, head);
  raw.send(Kind::kRelease, monarch::wire::ids_message(std::array<std::uint64_t, 2>{1, 2}));
  raw.send(Kind::kDrop, monarch::wire::ids_message(std::array<std::uint64_t, 1>{1}));
  raw.send(Kind::kControl, pattern(10, 1));
  const auto event = engine.control();
  REQUIRE(event.has_value());
  CHECK(event->kind == Event::Kind::kControl);
}
