// What the engine sends, for Python.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "engine_parts.hpp"

using namespace nanobind::literals;

namespace monarch::bindings {
namespace {

std::string_view text_of(nb::str text) {
  Py_ssize_t size = 0;
  const char* start = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (start == nullptr) throw nb::python_error();
  return {start, static_cast<std::size_t>(size)};
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

}  // namespace

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
             nb::object data, nb::object buffers, std::optional<std::uint64_t> sender) {
            const Outgoing outgoing(data, buffers);
            const auto said = static_cast<actor::Status>(status);
            const auto sent = send_ahead(
                *self.engine, outgoing, [&] { return std::vector{proc}; },
                [&](actor::Shipping* shipping) {
                  if (sender) {
                    return self.engine->post_from(*sender, proc, inbox, rank, said, outgoing.data(),
                                                  outgoing.buffers(), shipping);
                  }
                  return self.engine->post(proc, inbox, rank, static_cast<std::uint8_t>(status),
                                           outgoing.data(), outgoing.buffers(), shipping);
                });
            if (!sent) raise(sent.error());
          },
          "proc"_a, "inbox"_a, "rank"_a, "status"_a, "data"_a, "buffers"_a.none() = nb::none(),
          "sender"_a.none() = nb::none(),
          nb::sig("def post(self, proc: int, inbox: int, rank: int, status: int, data: "
                  "typing_extensions.Buffer, buffers: list[typing.Any] | None = None, "
                  "sender: int | None = None) -> None"),
          "Send into an inbox of any process.\n\n"
          "With the `sender`, an actor, the event (\"returned\", process, status, process of the\n"
          "sender, sender, inbox, \"\") comes, in either process, when there is no such inbox.")
      .def(
          "open_inbox",
          [](PyEngine& self, bool once) { return PyInbox(self.engine, self.engine->open_inbox(once)); },
          "once"_a = false);
}

}  // namespace monarch::bindings
