// What comes back, for Python: answers of calls and messages of ports.
#include <nanobind/stl/vector.h>

#include <optional>

#include "buffer.hpp"
#include "deadline.hpp"
#include "engine_parts.hpp"
#include "quick.hpp"

using namespace nanobind::literals;

namespace monarch::bindings {
namespace {

using base::Bytes;

constexpr std::size_t kCopied = 64 << 10;  // of larger payloads Python gets a view

nb::object arrival_tuple(const actor::Arrival& arrival) {
  return nb::make_tuple(arrival.rank, arrival.status, data_of(arrival.payload),
                        buffers_of(arrival.payload));
}

}  // namespace

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

}  // namespace monarch::bindings
