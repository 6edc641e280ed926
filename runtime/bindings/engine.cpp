// The engine for Python. Waits release the GIL; what only takes the engine's lock keeps it, since
// no thread asks for the GIL while it holds that lock.
#include "engine.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "actor/engine.hpp"
#include "base/fault.hpp"
#include "buffer.hpp"
#include "engine_types.hpp"
#include "outgoing.hpp"
#include "quick.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace monarch::bindings {
namespace {

using actor::Engine;
using actor::Waited;
using base::Bytes;

constexpr std::size_t kCopied = 64 << 10;  // of larger payloads Python gets a view
constexpr std::chrono::seconds kReturn(2);  // in which threads that waited are back in Python

nb::object data_of(const actor::Payload& payload) {
  const Bytes data = payload.data;
  if (data.size() <= kCopied) return nb::bytes(data.data(), data.size());
  return memory_view({.storage = payload.storage, .bytes = data});
}

nb::object buffers_of(const actor::Payload& payload) {
  if (payload.buffers.empty()) return nb::none();
  nb::list views;
  for (const Bytes buffer : payload.buffers) {
    // The storage is this message's alone: who receives it may write.
    views.append(memory_view({.storage = payload.storage, .bytes = buffer, .writable = true}));
  }
  return views;
}

std::string_view text_of(nb::str text) {
  Py_ssize_t size = 0;
  const char* start = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (start == nullptr) throw nb::python_error();
  return {start, static_cast<std::size_t>(size)};
}

std::optional<base::Instant> deadline_of(nb::handle timeout) {
  if (timeout.is_none()) return std::nullopt;
  const double seconds = nb::cast<double>(timeout);
  if (!(seconds >= 0)) throw nb::value_error("a timeout is a number of seconds, not negative");
  if (seconds > 1e9) return std::nullopt;
  return base::SteadyClock().now() +
         base::Duration(static_cast<std::int64_t>(std::ceil(seconds * 1e9)));
}

std::vector<std::uint64_t> procs_of(const actor::Targets& targets) {
  std::vector<std::uint64_t> procs;
  procs.reserve(targets.list.size());
  for (const actor::Target& target : targets.list) procs.push_back(target.peer->id);
  return procs;
}

actor::Message message_of(nb::str endpoint, const Outgoing& outgoing, std::uint64_t sender,
                          const nb::bytes& extent, std::uint16_t flags) {
  const std::string_view name = text_of(std::move(endpoint));
  if (name.size() > wire::k_max_name || extent.size() > wire::k_max_name) {
    throw nb::value_error("the name of an endpoint has at most 65535 bytes, and so has an extent");
  }
  return {.endpoint = name,
          .data = outgoing.data(),
          .buffers = outgoing.buffers(),
          .sender = sender,
          .extent = {extent.c_str(), extent.size()},
          .flags = flags};
}

PyInbox call(const PyEngine& self, const PyTargets& targets, nb::str endpoint, nb::object data,
             nb::object buffers, std::uint64_t sender, nb::bytes extent, std::uint16_t flags) {
  const Outgoing outgoing(data, buffers);
  actor::Message message = message_of(std::move(endpoint), outgoing, sender, extent, flags);
  ensure_credit(*self.engine, *targets.targets);
  auto inbox = send_ahead(
      *self.engine, outgoing, [&] { return procs_of(*targets.targets); },
      [&](actor::Shipping* shipping) {
        message.shipping = shipping;
        return self.engine->call(targets.targets, message);
      });
  if (!inbox) raise(inbox.error());
  return {self.engine, *inbox};
}

void cast(const PyEngine& self, const PyTargets& targets, nb::str endpoint, nb::object data,
          nb::object buffers, std::uint64_t sender, nb::bytes extent, std::uint16_t flags,
          std::uint64_t reply_proc, std::uint64_t inbox, std::uint32_t rank) {
  const Outgoing outgoing(data, buffers);
  actor::Message message = message_of(std::move(endpoint), outgoing, sender, extent, flags);
  ensure_credit(*self.engine, *targets.targets);
  const auto sent = send_ahead(
      *self.engine, outgoing, [&] { return procs_of(*targets.targets); },
      [&](actor::Shipping* shipping) {
        message.shipping = shipping;
        return self.engine->cast(*targets.targets, message, reply_proc, inbox, rank);
      });
  if (!sent) raise(sent.error());
}

nb::object arrival_tuple(const actor::Arrival& arrival) {
  return nb::make_tuple(arrival.rank, arrival.status, data_of(arrival.payload),
                        buffers_of(arrival.payload));
}

nb::object token_object(actor::Token token) { return nb::steal(static_cast<PyObject*>(token)); }

void drop_token(actor::Token token) {
  if (token != nullptr) Py_DECREF(static_cast<PyObject*>(token));
}

nb::object work_tuple(const Handle& engine, actor::Work work) {
  switch (work.kind) {
    case actor::Work::Kind::kToken:
      return nb::make_tuple(1, token_object(work.token));
    case actor::Work::Kind::kReadable:
      return nb::make_tuple(2, nb::none());
    case actor::Work::Kind::kRequest:
      break;
  }
  actor::Request& request = *work.request;
  nb::object state = work.state == nullptr ? nb::object(nb::none())
                                           : nb::borrow(static_cast<PyObject*>(work.state));
  nb::object data = data_of(request.payload);
  nb::object buffers = buffers_of(request.payload);
  request.payload = {};
  nb::str endpoint(request.endpoint.data(), request.endpoint.size());
  return nb::make_tuple(0, std::move(state), std::move(endpoint), std::move(data),
                        std::move(buffers), PyRequest{engine, std::move(work.request)});
}

nb::object next(PyWorker& self, nb::object timeout) {
  auto work = self.engine->next_ready(*self.worker);
  if (!work && !self.worker->is_foreign) {
    const auto deadline = deadline_of(timeout);
    wait_out([&] {
      Waited ended = Waited::kDone;
      work = self.engine->next(*self.worker, deadline, ended);
      return ended;
    });
  }
  if (!work) return nb::none();
  return work_tuple(self.engine, *std::move(work));
}

nb::object event_tuple(const Handle& engine, actor::Event& event) {
  using Kind = actor::Event::Kind;
  switch (event.kind) {
    case Kind::kLinkLost:
      return nb::make_tuple("link_lost", event.peer, event.text);
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
    case Kind::kStalled:
      return nb::make_tuple("stalled", event.peer, event.seconds);
    case Kind::kStuck:
      return nb::make_tuple("stuck", event.peer);
    case Kind::kWarning:
      return nb::make_tuple("warning", event.text);
    case Kind::kAlive:
      break;
  }
  return nb::make_tuple("alive", event.peer);
}

void bind_worker(nb::module_& module) {
  nb::class_<PyWorker>(module, "Worker", "A thread that handles messages.")
      .def_prop_ro("index", [](const PyWorker& self) { return self.worker->index; })
      .def_prop_ro("is_loop", [](const PyWorker& self) { return self.worker->is_loop; },
                   "Whether actors with asynchronous endpoints live here.")
      .def_prop_ro("stopped", [](const PyWorker& self) { return self.worker->stopped; })
      .def("next", &next, "timeout"_a.none() = nb::none(),
           nb::sig("def next(self, timeout: float | None = None) -> tuple[typing.Any, ...] | None"),
           "The next thing to do, without the GIL until it is there.\n\n"
           "(0, state, endpoint, data, buffers, request), (1, token) of a subscription, or\n"
           "(2, None) when the attached descriptor is readable. None after `timeout` seconds, and\n"
           "when the engine has stopped; a foreign worker does not wait.")
      .def(
          "attach",
          [](PyWorker& self, int fd) {
            if (auto done = self.engine->attach(*self.worker, fd); !done) raise(done.error());
          },
          "fd"_a, "End next() with (2, None) when `fd` is readable.")
      .def("fileno", [](const PyWorker& self) { return self.worker->signal_read; },
           "Of a foreign worker: readable when next() has something.");
}

void bind_request(nb::module_& module) {
  using Self = const PyRequest&;
  nb::class_<PyRequest> requests(module, "Request", "A message that an actor handles.");
  bind_quick_answers(requests);
  requests
      .def_prop_ro("actor", [](Self self) { return self.request->actor; })
      .def_prop_ro("sender_proc", [](Self self) { return self.request->sender_proc; })
      .def_prop_ro("sender", [](Self self) { return self.request->sender; })
      .def_prop_ro("rank", [](Self self) { return self.request->rank; })
      .def_prop_ro("extent",
                   [](Self self) {
                     const std::string& extent = self.request->extent;
                     return nb::bytes(extent.data(), extent.size());
                   })
      .def_prop_ro("endpoint", [](Self self) { return self.request->endpoint; })
      .def_prop_ro("flags", [](Self self) { return self.request->flags; })
      .def_prop_ro("wants_reply", [](Self self) { return self.request->inbox != 0; })
      .def_prop_ro("replied", [](Self self) { return self.request->replied; })
      .def_prop_ro("cancelled", [](Self self) { return self.request->cancelled; })
      .def_prop_ro("reply_proc", [](Self self) { return self.request->reply_proc; })
      .def_prop_ro("reply_inbox", [](Self self) { return self.request->inbox; })
      .def(
          "reply",
          [](Self self, int status, nb::object data, nb::object buffers) {
            const Outgoing outgoing(data, buffers);
            const auto send = [&](actor::Shipping* shipping) {
              return self.engine->reply(self.request, static_cast<std::uint8_t>(status),
                                        outgoing.data(), outgoing.buffers(), shipping);
            };
            const actor::Request& request = *self.request;
            const bool nobody = request.inbox == 0 || request.replied || request.cancelled;
            const auto done = nobody ? send(nullptr)
                                     : send_ahead(*self.engine, outgoing,
                                                  [&] { return std::vector{request.reply_proc}; },
                                                  send);
            if (!done) raise(done.error());
          },
          "status"_a, "data"_a, "buffers"_a.none() = nb::none(),
          nb::sig("def reply(self, status: int, data: typing_extensions.Buffer, "
                  "buffers: list[typing.Any] | None = None) -> None"),
          "Answer, once. Nothing happens when no reply is wanted.\n\n"
          "Raises:\n    FrameError: it was answered before, or the answer is above the limit.")
      .def("finish", [](Self self) { self.engine->finish(self.request); },
           "Let the actor take its next message.");
}

void bind_inbox(nb::module_& module) {
  nb::class_<PyInbox> inboxes(module, "Inbox", "The receiving end of calls, ports and channels.");
  bind_quick_values(inboxes);
  inboxes
      .def_prop_ro("id", [](const PyInbox& self) { return self.inbox->id; })
      .def_prop_ro("expected", [](const PyInbox& self) { return self.inbox->expected; })
      .def_prop_rw(
          "fail_fast", [](const PyInbox& self) { return self.inbox->fail_fast; },
          [](PyInbox& self, bool on) { self.engine->set_fail_fast(*self.inbox, on); },
          "Whether one answer that is no value ends every wait for more of them.")
      .def_prop_ro("arrived", [](const PyInbox& self) { return self.engine->arrived(*self.inbox); })
      .def(
          "wait",
          [](PyInbox& self, std::size_t count, nb::object timeout) {
            const auto deadline = deadline_of(timeout);
            const Waited waited =
                wait_out([&] { return self.engine->wait(*self.inbox, count, deadline); });
            if (waited == Waited::kStopped) raise_stopped();
            return waited == Waited::kDone;
          },
          "count"_a, "timeout"_a.none() = nb::none(),
          nb::sig("def wait(self, count: int, timeout: float | None = None) -> bool"),
          "Wait until `count` answers have come in all; False after `timeout` seconds.")
      .def(
          "get",
          [](PyInbox& self, std::size_t index) {
            const auto arrival = self.engine->arrival(*self.inbox, index);
            if (!arrival) throw nb::index_error("no answer with this number has come");
            return arrival_tuple(*arrival);
          },
          "index"_a,
          nb::sig("def get(self, index: int) -> tuple[int, int, bytes | memoryview, "
                  "list[memoryview] | None]"),
          "(rank, status, data, buffers) of an answer, by order of arrival.")
      .def(
          "take",
          [](PyInbox& self) -> nb::object {
            const auto arrival = self.engine->take(*self.inbox);
            if (!arrival) return nb::none();
            return arrival_tuple(*arrival);
          },
          nb::sig("def take(self) -> tuple[int, int, bytes | memoryview, list[memoryview] | None] "
                  "| None"),
          "The oldest answer, which is forgotten; None when there is none.")
      .def("missing", [](PyInbox& self) { return self.engine->missing(*self.inbox); },
           nb::sig("def missing(self) -> list[int]"), "Ranks that have not answered.")
      .def(
          "subscribe",
          [](PyInbox& self, PyWorker& worker, std::size_t count, nb::object token) {
            const bool there =
                self.engine->subscribe(*self.inbox, *worker.worker, count, token.ptr());
            if (!there) token.inc_ref();
            return there;
          },
          "worker"_a, "count"_a, "token"_a.none(),
          "True when `count` answers are there; else worker.next() says (1, token) when they are.")
      .def(
          "unsubscribe",
          [](PyInbox& self, nb::object token) {
            if (self.engine->unsubscribe(*self.inbox, token.ptr())) token.dec_ref();
          },
          "token"_a.none())
      .def("cancel", [](PyInbox& self) { self.engine->cancel(*self.inbox); },
           "Tell those who have not answered that nobody waits; what they say is dropped.");
}

void bind_links(nb::class_<PyEngine>& engine) {
  engine
      .def(
          "add_link",
          [](PyEngine& self, std::uint64_t peer, int fd) {
            if (auto added = self.engine->add_link(peer, fd); !added) raise(added.error());
          },
          "peer"_a, "fd"_a,
          "Talk to process `peer` over a connected stream socket, which is the engine's from now "
          "on.\n\nRaises:\n    FrameError: it is this process, it failed before, or the engine has "
          "stopped.")
      .def("close_link", [](PyEngine& self, std::uint64_t peer) { self.engine->close_link(peer); },
           "peer"_a)
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
          [](PyEngine& self, std::uint64_t peer, nb::object data) {
            self.engine->tell(peer, HeldBuffer(data).bytes());
          },
          "peer"_a, "data"_a, nb::sig("def tell(self, peer: int, data: typing_extensions.Buffer) -> None"),
          "Send (\"control\", own id, data) to process `peer`, in order with its calls.");
}

void bind_sending(nb::class_<PyEngine>& engine) {
  engine
      .def(
          "targets",
          [](PyEngine& self, const std::vector<std::uint64_t>& procs,
             const std::vector<std::uint64_t>& actors) {
            if (procs.size() != actors.size()) {
              throw nb::value_error("as many processes as actors are wanted");
            }
            return PyTargets{self.engine->targets(procs, actors)};
          },
          "procs"_a, "actors"_a,
          nb::sig("def targets(self, procs: collections.abc.Sequence[int], actors: "
                  "collections.abc.Sequence[int]) -> Targets"),
          "Receivers of calls, in the order of their ranks. To be made once and kept.")
      .def("call", &call, "targets"_a, "endpoint"_a, "data"_a, "buffers"_a.none(), "sender"_a,
           "extent"_a, "flags"_a,
           nb::sig("def call(self, targets: Targets, endpoint: str, data: typing_extensions.Buffer, "
                   "buffers: list[typing.Any] | None, sender: int, extent: bytes, flags: int) -> "
                   "Inbox"),
           "Send, and get the inbox of the replies, one per target, rank = place in `targets`.\n\n"
           "Waits while a receiver has too much of ours to handle.\n\n"
           "Raises:\n    FrameError: the message is above the limit.")
      .def("cast", &cast, "targets"_a, "endpoint"_a, "data"_a, "buffers"_a.none(), "sender"_a,
           "extent"_a, "flags"_a, "reply_proc"_a = 0, "inbox"_a = 0, "rank"_a = 0,
           nb::sig("def cast(self, targets: Targets, endpoint: str, data: typing_extensions.Buffer, "
                   "buffers: list[typing.Any] | None, sender: int, extent: bytes, flags: int, "
                   "reply_proc: int = 0, inbox: int = 0, rank: int = 0) -> None"),
           "Send; what replies there are go to `inbox` of process `reply_proc`.\n\n"
           "The first of `targets` gets the message as rank `rank`, the others follow.")
      .def(
          "post",
          [](PyEngine& self, std::uint64_t proc, std::uint64_t inbox, std::uint32_t rank, int status,
             nb::object data, nb::object buffers) {
            const Outgoing outgoing(data, buffers);
            const auto sent = send_ahead(
                *self.engine, outgoing, [&] { return std::vector{proc}; },
                [&](actor::Shipping* shipping) {
                  return self.engine->post(proc, inbox, rank, static_cast<std::uint8_t>(status),
                                           outgoing.data(), outgoing.buffers(), shipping);
                });
            if (!sent) raise(sent.error());
          },
          "proc"_a, "inbox"_a, "rank"_a, "status"_a, "data"_a, "buffers"_a.none() = nb::none(),
          nb::sig("def post(self, proc: int, inbox: int, rank: int, status: int, data: "
                  "typing_extensions.Buffer, buffers: list[typing.Any] | None = None) -> None"),
          "Send into an inbox of any process.")
      .def(
          "open_inbox",
          [](PyEngine& self, bool once) { return PyInbox(self.engine, self.engine->open_inbox(once)); },
          "once"_a = false);
}

void bind_actors(nb::class_<PyEngine>& engine) {
  engine
      .def(
          "set_state",
          [](PyEngine& self, std::uint64_t actor, nb::object state) {
            drop_token(self.engine->set_state(actor, state.inc_ref().ptr()));
          },
          "actor"_a, "state"_a.none(), "What next() hands out with the messages of `actor`.")
      .def(
          "close_actor",
          [](PyEngine& self, std::uint64_t actor, int status, const nb::bytes& payload) {
            drop_token(self.engine->close_actor(actor, static_cast<std::uint8_t>(status),
                                                std::string(payload.c_str(), payload.size())));
          },
          "actor"_a, "status"_a, "payload"_a,
          "Answer what is queued for `actor`, and what still comes, with `status` and `payload`.")
      .def("running", [](PyEngine& self, std::uint64_t actor) { return self.engine->running(actor); },
           "actor"_a, nb::sig("def running(self, actor: int) -> list[str]"),
           "Endpoints of `actor` being handled now.")
      .def(
          "blocked",
          [](PyEngine& self, std::uint64_t actor, std::uint64_t proc,
             std::uint64_t inbox) -> nb::object {
            const auto found = self.engine->blocked(actor, proc, inbox);
            if (!found) return nb::none();
            nb::list missing;
            for (const auto& [id, other] : found->missing) {
              missing.append(nb::make_tuple(id, other));
            }
            return nb::make_tuple(found->running, found->called, found->inbox, found->rank,
                                  missing);
          },
          "actor"_a, "proc"_a = 0, "inbox"_a = 0,
          nb::sig("def blocked(self, actor: int, proc: int = 0, inbox: int = 0) -> "
                  "tuple[str, str, int, int, list[tuple[int, int]]] | None"),
          "What holds up a call to `actor`, if its endpoint waits for the answers of one call.\n\n"
          "(running endpoint, called endpoint, inbox it waits at, first rank that is missing there,\n"
          "(process, actor) of every answer that is missing). `inbox` of process `proc` tells which\n"
          "call; with 0 it is any.")
      .def("keep_board",
           [](PyEngine& self, int fd, std::size_t page) { self.engine->keep_board(fd, page); },
           "fd"_a, "page"_a,
           "Keep a page of a file up to date with what is being handled.")
      .def("main_worker",
           [](PyEngine& self) { return PyWorker{self.engine, &self.engine->main_worker()}; })
      .def(
          "loop_worker",
          [](PyEngine& self) -> nb::object {
            actor::Worker* worker = self.engine->loop_worker();
            if (worker == nullptr) return nb::none();
            return nb::cast(PyWorker{self.engine, worker});
          },
          nb::sig("def loop_worker(self) -> Worker | None"))
      .def("foreign_worker",
           [](PyEngine& self) { return PyWorker{self.engine, &self.engine->foreign_worker()}; },
           "For an event loop that is not the runtime's: see Worker.fileno().");
}

}  // namespace

void bind_engine(nb::module_& module) {
  nb::class_<PyTargets>(module, "Targets", "Receivers of calls.")
      .def("__len__", [](const PyTargets& self) { return self.targets->list.size(); });
  bind_worker(module);
  bind_request(module);
  bind_inbox(module);
  nb::class_<PyEngine> engine(module, "Engine", "The runtime of one process.");
  engine
      .def(
          "__init__",
          [](PyEngine* self, std::uint64_t proc, std::size_t window, std::uint32_t workers,
             double heartbeat, int misses, std::size_t segments) {
            if (proc == 0) throw nb::value_error("the id of a process is not 0");
            new (self) PyEngine{std::make_shared<Engine>(
                proc, actor::Limits{.window = window,
                                    .workers = workers,
                                    .segments = segments,
                                    .heartbeat = base::Duration(
                                        static_cast<std::int64_t>(heartbeat * 1e9)),
                                    .misses = misses})};
          },
          "proc"_a, nb::kw_only(), "window"_a = std::size_t{16} << 20, "workers"_a = 32,
          "heartbeat"_a = 0.5, "misses"_a = 4, "segments"_a = 256,
          "`window`: bytes in flight per receiver; `workers`: threads made for actors as they "
          "come;\n`heartbeat`: seconds between the looks at a silent peer, `misses` of which say "
          "that it\nstalled; `segments`: of shared memory that carry large messages at once, at "
          "most;\nwithout any they go by socket.")
      .def(
          "segments",
          [](PyEngine& self) {
            const net::Arena::Usage usage = self.engine->segments();
            nb::dict counts;
            counts["lent"] = usage.lent;
            counts["idle"] = usage.idle;
            counts["idle_bytes"] = usage.idle_bytes;
            counts["made"] = usage.made;
            counts["borrowed"] = self.engine->borrowed();
            return counts;
          },
          nb::sig("def segments(self) -> dict[str, int]"),
          "Of this process's shared-memory segments, those that a peer reads (lent), those kept\n"
          "for reuse (idle, with their bytes) and all that were made; and how many segments of\n"
          "peers there are views of here (borrowed).")
      .def("trim", [](PyEngine& self) { self.engine->trim(); },
           "Free the segments that are kept for the next large message.")
      .def_prop_ro("proc", [](const PyEngine& self) { return self.engine->proc(); })
      .def(
          "stop",
          [](PyEngine& self) {
            {
              const GilReleased released;
              self.engine->stop();
            }
            // Whoever waited is on the way back to Python, and gets there before this returns.
            const auto end = std::chrono::steady_clock::now() + kReturn;
            while (GilReleased::away > 0 && std::chrono::steady_clock::now() < end) {
              const nb::gil_scoped_release released;
              std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
          },
          "End every wait, close all links. Idempotent.");
  bind_sender(module);
  bind_links(engine);
  bind_sending(engine);
  bind_actors(engine);
  module.def(
      "set_fault",
      [](const std::string& text) {
        if (auto set = base::set_fault(text); !set) throw nb::value_error(set.error().message.c_str());
      },
      "text"_a,
      "For tests: kill this process, or cut its links, at the N-th passing of a place on the way\n"
      "of a call: \"kill:PLACE:N\", \"cut:PLACE:N\", or \"\" for none.\n\n"
      "Raises:\n    ValueError: the text is none of these; it names the places.");
  const auto constant = [&module](const char* name, int value) { module.attr(name) = value; };
  constant("OK", static_cast<int>(actor::Status::kOk));
  constant("ERROR", static_cast<int>(actor::Status::kError));
  constant("FAILED", static_cast<int>(actor::Status::kFailed));
  constant("CANCELLED", static_cast<int>(actor::Status::kCancelled));
  constant("UNDELIVERED", static_cast<int>(actor::Status::kUndelivered));
  constant("UNSENT", static_cast<int>(actor::Status::kUnsent));
  constant("CREATE", actor::k_create);
  constant("STOP", actor::k_stop);
  constant("SUPERVISE", actor::k_supervise);
  constant("LOOP", actor::k_loop);
  constant("EXPLICIT", actor::k_explicit);
}

}  // namespace monarch::bindings
