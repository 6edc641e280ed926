// The engine for Python. Waits release the GIL; what only takes the engine's lock keeps it, since
// no thread asks for the GIL while it holds that lock.
#include "engine.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "actor/engine.hpp"
#include "base/fault.hpp"
#include "engine_parts.hpp"
#include "quick.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace monarch::bindings {
namespace {

using actor::Engine;

constexpr std::chrono::seconds kReturn(2);  // in which threads that waited are back in Python

void drop_token(actor::Token token) {
  if (token != nullptr) Py_DECREF(static_cast<PyObject*>(token));
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
            nb::list awaited;
            for (const actor::Awaited& each : found->awaited) {
              nb::list tokens;
              for (actor::Token token : each.tokens) {
                tokens.append(reinterpret_cast<std::uintptr_t>(token));
              }
              nb::list missing;
              for (const auto& [id, other] : each.missing) {
                missing.append(nb::make_tuple(id, other));
              }
              awaited.append(
                  nb::make_tuple(each.inbox, each.rank, each.by_thread, tokens, missing));
            }
            return nb::make_tuple(found->running, found->called, awaited);
          },
          "actor"_a, "proc"_a = 0, "inbox"_a = 0,
          nb::sig("def blocked(self, actor: int, proc: int = 0, inbox: int = 0) -> "
                  "tuple[str, str, list[tuple[int, int, bool, list[int], "
                  "list[tuple[int, int]]]]] | None"),
          "What holds up a call to `actor`, if that actor waits for something.\n\n"
          "(running endpoint, called endpoint, inboxes that the actor waits at: each with its id,\n"
          "the first rank that is missing there, whether a thread is blocked for it, the `id()` of\n"
          "the tokens that subscribed to it, and (process, actor) of every answer that is missing,\n"
          "none where not all of a call are waited for). `inbox` of process `proc` tells which call\n"
          "to `actor`; with 0 it is any.")
      .def("keep_board",
           [](PyEngine& self, int fd, std::size_t page) { self.engine->keep_board(fd, page); },
           "fd"_a, "page"_a,
           "Keep a page of a file up to date with what is being handled.")
      .def("main_worker",
           [](PyEngine& self) { return PyWorker{self.engine, &self.engine->main_worker()}; })
      .def("foreign_worker",
           [](PyEngine& self) { return PyWorker{self.engine, &self.engine->foreign_worker()}; },
           "For an event loop that is not the runtime's: see Worker.fileno().");
}

}  // namespace

void Handle::note_forks() {
  const int failed = ::pthread_atfork(nullptr, nullptr, [] {
    forks_.fetch_add(1, std::memory_order_relaxed);
    GilReleased::away = 0;  // the threads that were are not here
  });
  if (failed != 0) throw std::system_error(failed, std::generic_category(), "pthread_atfork");
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Forked& error) {
      const nb::object type = nb::module_::import_("monarch.errors").attr("StoppedError");
      PyErr_SetString(type.ptr(), error.what());
    }
  });
}

void bind_engine(nb::module_& module) {
  Handle::note_forks();
  nb::class_<PyTargets>(module, "Targets", "Receivers of calls.")
      .def("__len__", [](const PyTargets& self) { return self.targets->list.size(); });
  bind_handling(module);
  bind_inbox(module);
  nb::class_<PyEngine> engine(module, "Engine", "The runtime of one process.");
  engine
      .def(
          "__init__",
          [](PyEngine* self, std::uint64_t proc, std::uint32_t workers, double heartbeat, int misses,
             std::size_t segments, std::size_t fan_out, std::size_t cast_from) {
            if (proc == 0) throw nb::value_error("the id of a process is not 0");
            const actor::Limits limits{
                .workers = workers,
                .segments = segments,
                .heartbeat = base::Duration(static_cast<std::int64_t>(heartbeat * 1e9)),
                .misses = misses,
                .fan_out = std::max<std::size_t>(fan_out, 2),
                .cast_from = cast_from};
            new (self) PyEngine{Handle(std::make_shared<Engine>(proc, limits))};
          },
          "proc"_a, nb::kw_only(), "workers"_a = 32, "heartbeat"_a = 0.5, "misses"_a = 4,
          "segments"_a = 256, "fan_out"_a = std::size_t{16}, "cast_from"_a = std::size_t{8},
          "`workers`: threads made for actors as they come; `heartbeat`: seconds between the looks at\n"
          "a silent peer, `misses` of which say that it stalled; `segments`: of shared memory that\n"
          "carry large messages at once, at most; without any they go by socket; `fan_out`: branches\n"
          "of the tree of host agents, at least 2; `cast_from`: receivers that a message has to have\n"
          "to go by the tree.")
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
  constant("BESIDE", actor::k_beside);
  constant("LOOP", actor::k_loop);
  constant("EXPLICIT", actor::k_explicit);
}

}  // namespace monarch::bindings
