// The engine's links and what it tells its control thread, for Python.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "buffer.hpp"
#include "engine_parts.hpp"
#include "tls.hpp"

using namespace nanobind::literals;

namespace monarch::bindings {
namespace {

nb::object event_tuple(const Handle& engine, actor::Event& event) {
  using Kind = actor::Event::Kind;
  switch (event.kind) {
    case Kind::kLinkLost:
      return nb::make_tuple("link_lost", event.peer, event.text);
    case Kind::kBroken:
      return nb::make_tuple("broken", event.peer, event.text);
    case Kind::kDial:
      return nb::make_tuple("dial", event.peer);
    case Kind::kReadable:
      return nb::make_tuple("readable", event.peer);
    case Kind::kWorker:
      return nb::make_tuple("worker", PyWorker{engine, event.worker});
    case Kind::kControl:
      return nb::make_tuple("control", event.peer, data_of(event.payload));
    case Kind::kCancel:
      return nb::make_tuple("cancel", PyRequest{engine, std::move(event.request)});
    case Kind::kReturned: {
      const actor::Request& request = *event.request;
      return nb::make_tuple("returned", event.peer, event.status, request.sender_proc,
                            request.sender, request.actor, request.endpoint);
    }
    case Kind::kStalled:
      return nb::make_tuple("stalled", event.peer, event.seconds);
    case Kind::kStuck:
      return nb::make_tuple("stuck", event.peer);
    case Kind::kWarning:
      return nb::make_tuple("warning", event.text);
    case Kind::kHandedOver:
      return nb::make_tuple("handed_over", event.peer, event.handed->release(),
                            nb::bytes(event.payload.data.data(), event.payload.data.size()));
    case Kind::kAlive:
      break;
  }
  return nb::make_tuple("alive", event.peer);
}

}  // namespace

void bind_links(nb::class_<PyEngine>& engine) {
  engine
      .def(
          "add_link",
          [](PyEngine& self, std::uint64_t peer, int fd, PyTlsStream* tls, bool session) {
            auto stream = tls == nullptr ? nullptr : std::move(tls->stream);
            if (auto added = self.engine->add_link(peer, fd, std::move(stream), session); !added) {
              raise(added.error());
            }
          },
          "peer"_a, "fd"_a, "tls"_a = nb::none(), "session"_a = false,
          "Talk to process `peer` over a connected stream socket, and through `tls` where there is "
          "one; both are the engine's from now on. A session outlives its connection.\n\nRaises:\n    FrameError: it is this process, it failed before, or the engine has "
          "stopped.")
      .def("close_link", [](PyEngine& self, std::uint64_t peer) { self.engine->close_link(peer); },
           "peer"_a)
      .def(
          "resume_link",
          [](PyEngine& self, std::uint64_t peer, int fd, PyTlsStream* tls) {
            auto stream = tls == nullptr ? nullptr : std::move(tls->stream);
            if (auto done = self.engine->resume_link(peer, fd, std::move(stream)); !done) {
              raise(done.error());
            }
          },
          "peer"_a, "fd"_a, "tls"_a = nb::none(),
          "Go on with the session with process `peer` over another connection.\n\nRaises:\n    "
          "FrameError: there is no session with it.")
      .def(
          "begin_link_again",
          [](PyEngine& self, std::uint64_t peer, int fd, PyTlsStream* tls) {
            auto stream = tls == nullptr ? nullptr : std::move(tls->stream);
            if (auto done = self.engine->begin_link_again(peer, fd, std::move(stream)); !done) {
              raise(done.error());
            }
          },
          "peer"_a, "fd"_a, "tls"_a = nb::none(),
          "As resume_link(), with a peer that never knew of the session.\n\nRaises:\n    "
          "FrameError: there is no session with it, or something of it has reached a side.")
      .def(
          "meet",
          [](PyEngine& self, std::uint64_t peer, bool going_on, bool dialling, bool stands) {
            switch (self.engine->meet(peer, going_on, dialling, stands)) {
              case wire::Meeting::kTake:
                return "take";
              case wire::Meeting::kGoOn:
                return "go_on";
              case wire::Meeting::kBegin:
                return "begin";
              case wire::Meeting::kDuplicate:
                return "duplicate";
              case wire::Meeting::kGone:
                break;
            }
            return "gone";
          },
          "peer"_a, "going_on"_a, "dialling"_a, "stands"_a,
          nb::sig("def meet(self, peer: int, going_on: bool, dialling: bool, stands: bool) -> str"),
          "What to do with a connection of process `peer`, which asks for a new link or for\n"
          "`going_on`: take it, go on or begin again (\"begin\") with the session there is, or refuse\n"
          "it as a \"duplicate\" or as \"gone\". `dialling`: this process dials it as well, and\n"
          "`stands`: its own dial is the one that stands.")
      .def(
          "lose_link",
          [](PyEngine& self, std::uint64_t peer, const std::string& why) {
            self.engine->lose_link(peer, why);
          },
          "peer"_a, "why"_a, "End the link to `peer` as if it had ended by itself.")
      .def(
          "set_heartbeat",
          [](PyEngine& self, std::uint64_t peer, double heartbeat, int misses) {
            if (!(heartbeat > 0) || misses < 1) {
              throw nb::value_error("heartbeat and misses are positive");
            }
            const auto nanoseconds = static_cast<std::int64_t>(heartbeat * 1e9);
            self.engine->set_heartbeat(peer, base::Duration(nanoseconds), misses);
          },
          "peer"_a, "heartbeat"_a, "misses"_a,
          "Look at `peer` every `heartbeat` seconds, in place of the engine's own setting.")
      .def("set_relay",
           [](PyEngine& self, std::uint64_t proc, std::uint64_t relay) {
             self.engine->set_relay(proc, relay);
           },
           "proc"_a, "relay"_a,
           "What goes to many may go to `proc` by way of the agent of its host.")
      .def(
          "wanted_edges", [](PyEngine& self) { return self.engine->wanted_edges(); },
          nb::sig("def wanted_edges(self) -> list[tuple[int, int]]"),
          "Pairs of host agents of which the first should have a link to the second.")
      .def("set_edge",
           [](PyEngine& self, std::uint64_t from, std::uint64_t to, bool linked) {
             self.engine->set_edge(from, to, linked);
           },
           "source"_a, "to"_a, "linked"_a, "Note whether one agent has a link to another.")
      .def(
          "casts", [](PyEngine& self) { return self.engine->casts(); },
          nb::sig("def casts(self) -> tuple[int, int]"),
          "How many messages by the tree are under way: from this process, and through it.")
      .def("is_broken",
           [](PyEngine& self, std::uint64_t peer) { return self.engine->is_broken(peer); }, "peer"_a,
           "Whether the session with `peer` waits for another connection.")
      .def("has_link", [](PyEngine& self, std::uint64_t peer) { return self.engine->has_link(peer); },
           "peer"_a)
      .def(
          "fail_peer",
          [](PyEngine& self, std::uint64_t peer, const nb::bytes& payload) {
            self.engine->fail_peer(peer, std::string(payload.c_str(), payload.size()));
          },
          "peer"_a, "payload"_a,
          "End what waits for process `peer`, now and later, with FAILED and `payload`.")
      .def(
          "hand_over",
          [](PyEngine& self, std::uint64_t peer, int fd, const nb::bytes& data) {
            const std::string_view view(data.c_str(), data.size());
            if (auto done = self.engine->hand_over(peer, fd, std::as_bytes(std::span(view)));
                !done) {
              raise(done.error());
            }
          },
          "peer"_a, "fd"_a, "data"_a,
          "Send (\"handed_over\", own id, fd, data) to process `peer` of this host; the descriptor "
          "is the engine's from now on.\n\nRaises:\n    FrameError: there is no Unix link to it.")
      .def(
          "watch",
          [](PyEngine& self, int fd, std::uint64_t token) {
            if (auto done = self.engine->watch(fd, token); !done) raise(done.error());
          },
          "fd"_a, "token"_a, "One event (\"readable\", token) when `fd` is; again to go on.")
      .def("unwatch", [](PyEngine& self, int fd) { self.engine->unwatch(fd); }, "fd"_a)
      .def(
          "control",
          [](PyEngine& self) -> nb::object {
            std::optional<actor::Event> event;
            {
              const GilReleased released;
              event = self.engine->control();
            }
            if (!event) return nb::none();
            return event_tuple(self.engine, *event);
          },
          nb::sig("def control(self) -> tuple[typing.Any, ...] | None"),
          "The next event, waited for without the GIL; None when the engine has stopped.")
      .def(
          "tell",
          [](PyEngine& self, std::uint64_t peer, nb::object data) -> nb::object {
            const auto failure = self.engine->tell(peer, HeldBuffer(data).bytes());
            if (failure == nullptr) return nb::none();
            return nb::bytes(failure->data(), failure->size());
          },
          "peer"_a, "data"_a,
          nb::sig("def tell(self, peer: int, data: typing_extensions.Buffer) -> bytes | None"),
          "Send (\"control\", own id, data) to process `peer`, in order with its calls; where it has\n"
          "failed nobody hears of it, and this gives the payload of fail_peer().");
}

}  // namespace monarch::bindings
