// The way of a call and its reply, walked again and again by one thread, so that a profiler can
// count its instructions: `call_path engine 1000`, `call_path link 1000`.
//
// Neither waits for anything: what a wait costs is a matter of time, and does not repeat.
#include <sys/socket.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "actor/engine.hpp"
#include "net/link.hpp"

namespace {

using monarch::base::Bytes;
namespace actor = monarch::actor;
namespace wire = monarch::wire;

constexpr std::uint64_t kProc = 1;
constexpr std::uint64_t kActor = 7;
constexpr std::array<std::byte, 40> kArguments{};

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "call_path: %s\n", what);
  std::exit(70);
}

void answer(actor::Engine& engine, actor::Worker& worker) {
  const auto work = engine.next_ready(worker);
  if (!work || work->request == nullptr) fail("the call did not arrive");
  if (!engine.reply(work->request, 0, kArguments, {})) fail("the reply was refused");
  engine.finish(work->request);
}

// From a call to its reply through the mailbox of an actor of the same process.
[[gnu::noinline]] void measure_engine(actor::Engine& engine, actor::Worker& worker,
                                      const std::shared_ptr<const actor::Targets>& targets,
                                      int calls) {
  for (int i = 0; i < calls; ++i) {
    auto inbox = engine.call(targets, {.endpoint = "increment", .data = kArguments});
    if (!inbox) fail("the call was refused");
    answer(engine, worker);
    if (!engine.take(**inbox)) fail("the reply did not arrive");
  }
}

void through_engine(int calls) {
  actor::Engine engine(kProc);
  actor::Worker& worker = engine.main_worker();
  const auto targets = engine.targets(std::array{kProc}, std::array{kActor});
  auto created = engine.call(targets, {.flags = actor::k_create});
  if (!created) fail("the actor was refused");
  answer(engine, worker);
  measure_engine(engine, worker, targets, calls);
}

void pass(monarch::net::Link& from, monarch::net::Link& to, wire::Kind kind, Bytes head) {
  if (!from.send(kind, std::array{head, Bytes(kArguments)}, {})) fail("a frame was refused");
  if (!from.flush()) fail("the link is gone");
  bool arrived = false;
  to.receive([&](wire::Frame& frame) {
    Bytes message = frame.message;
    arrived = kind == wire::Kind::kCall ? wire::read_call(message).ok()
                                        : wire::read_reply(message).ok();
    return true;
  });
  if (!arrived) fail("a frame did not arrive");
}

// The frames of a call and of its reply, over a socket pair.
[[gnu::noinline]] void measure_link(monarch::net::Link& here, monarch::net::Link& there,
                                    int calls) {
  for (int i = 0; i < calls; ++i) {
    std::array<std::byte, wire::k_call_head> call;
    wire::write_call({.actor = kActor, .inbox = 3}, call);
    pass(here, there, wire::Kind::kCall, call);
    std::array<std::byte, wire::k_reply_head> reply;
    wire::write_reply({.inbox = 3}, reply);
    pass(there, here, wire::Kind::kReply, reply);
  }
}

void through_link(int calls) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) fail("no socket pair");
  monarch::net::Link here(ends[0]);
  monarch::net::Link there(ends[1]);
  measure_link(here, there, calls);
}

}  // namespace

int main(int count, char** words) {
  const int calls = count == 3 ? std::atoi(words[2]) : 0;
  const std::string_view what = count == 3 ? words[1] : "";
  if (calls <= 0 || (what != "engine" && what != "link")) {
    std::fprintf(stderr, "usage: call_path engine|link CALLS\n");
    return 2;
  }
  what == "engine" ? through_engine(calls) : through_link(calls);
  return 0;
}
