// The threads that handle messages, and the messages they handle, for Python.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "deadline.hpp"
#include "engine_parts.hpp"
#include "quick.hpp"

using namespace nanobind::literals;

namespace monarch::bindings {
namespace {

// What a peer calls an endpoint may be any bytes.
nb::object name_of(const actor::Request& request) {
  PyObject* const name =
      PyUnicode_DecodeUTF8(request.endpoint.data(),
                           static_cast<Py_ssize_t>(request.endpoint.size()), "replace");
  if (name == nullptr) nb::raise_python_error();
  return nb::steal(name);
}

nb::object token_object(actor::Token token) { return nb::steal(static_cast<PyObject*>(token)); }

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
  nb::object endpoint = name_of(request);
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
      .def_prop_ro("endpoint", [](Self self) { return name_of(*self.request); },
                   nb::sig("def endpoint(self) -> str"))
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

}  // namespace

void bind_handling(nb::module_& module) {
  bind_worker(module);
  bind_request(module);
}

}  // namespace monarch::bindings
