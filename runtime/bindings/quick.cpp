#include "quick.hpp"

#include <nanobind/stl/string.h>

#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace monarch::bindings {
namespace {

using namespace nb::literals;

constexpr Py_ssize_t kLarge = actor::k_large;  // what is shipped ahead of its message

// Python objects that are needed for each call; they live as long as the module.
struct Pickle {
  PyObject* dumps = nullptr;
  PyObject* loads = nullptr;
  PyObject* protocol = nullptr;
  PyObject* keywords = nullptr;
  PyObject* refuse = nullptr;  // raises for whatever it is called with
  PyObject* torch = nullptr;   // the name of the module
  PyObject* dumps_tensors = nullptr;  // where there is that module
};
Pickle pickle;

void find_pickle() {
  if (pickle.dumps != nullptr) return;
  const nb::module_ module = nb::module_::import_("_pickle");
  pickle.loads = nb::object(module.attr("loads")).release().ptr();
  pickle.protocol = nb::int_(5).release().ptr();
  pickle.keywords = nb::make_tuple("buffer_callback").release().ptr();
  pickle.refuse = nb::object(nb::module_::import_("builtins").attr("abs")).release().ptr();
  pickle.torch = nb::str("torch").release().ptr();
  pickle.dumps = nb::object(module.attr("dumps")).release().ptr();
}

// True when an error was one of pickling, and is forgotten; others go on.
void forget_error() {
  if (PyErr_ExceptionMatches(PyExc_Exception) == 0) throw nb::python_error();
  PyErr_Clear();
}

bool is_large(PyObject* value) {
  if (Py_TYPE(value) == &PyBytes_Type) return PyBytes_Size(value) >= kLarge;
  return Py_TYPE(value) == &PyByteArray_Type && PyByteArray_Size(value) >= kLarge;
}

// What has no tensors in it.
bool is_plain(PyObject* value) {
  const PyTypeObject* const type = Py_TYPE(value);
  return value == Py_None || type == &PyLong_Type || type == &PyUnicode_Type ||
         type == &PyFloat_Type || type == &PyBool_Type || type == &PyBytes_Type;
}

// As pickle's dumps(), and what is to go out of band is refused.
nb::object dump(PyObject* value, bool plain) {
  if (plain || PyDict_GetItem(PyImport_GetModuleDict(), pickle.torch) == nullptr) {
    PyObject* arguments[] = {value, pickle.protocol, pickle.refuse};
    return nb::steal(PyObject_Vectorcall(pickle.dumps, arguments, 2, pickle.keywords));
  }
  if (pickle.dumps_tensors == nullptr) {
    const nb::module_ module = nb::module_::import_("monarch._actor.tensors");
    pickle.dumps_tensors = nb::object(module.attr("dumps")).release().ptr();
  }
  PyObject* arguments[] = {value, pickle.refuse};
  return nb::steal(PyObject_Vectorcall(pickle.dumps_tensors, arguments, 2, nullptr));
}

// The value as bytes; none where pickle alone does not do: buffers out of band, large ones, what
// only the running script has, errors.
nb::object pickled(PyObject* value, bool plain) {
  nb::object made = dump(value, plain);
  if (!made.is_valid()) {
    forget_error();
    return made;
  }
  char* start = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(made.ptr(), &start, &size) != 0) throw nb::python_error();
  if (size >= kLarge) return {};
  const std::string_view text(start, static_cast<std::size_t>(size));
  return text.find("_main__") == std::string_view::npos ? made : nb::object();
}

base::Bytes bytes_of(const nb::object& data) {
  return {reinterpret_cast<const std::byte*>(PyBytes_AsString(data.ptr())),
          static_cast<std::size_t>(PyBytes_Size(data.ptr()))};
}

// One endpoint of some receivers, ready to be called.
struct Sender {
  Handle engine;
  std::shared_ptr<const actor::Targets> targets;
  std::string endpoint;
  std::string extent;
  std::uint16_t flags;

  // The arguments as bytes, or none.
  [[nodiscard]] static nb::object pack(const nb::tuple& args, const nb::dict& kwargs) {
    if (nb::len(kwargs) != 0) return {};
    const std::size_t count = nb::len(args);
    bool plain = true;
    for (std::size_t i = 0; i < count; ++i) {
      PyObject* const value = PyTuple_GetItem(args.ptr(), static_cast<Py_ssize_t>(i));
      if (is_large(value)) return {};
      plain = plain && is_plain(value);
    }
    return pickled(nb::make_tuple(args, kwargs).ptr(), plain);
  }

  [[nodiscard]] actor::Message message(const nb::object& data, std::uint64_t sender) const {
    return {.endpoint = endpoint,
            .data = bytes_of(data),
            .buffers = {},
            .sender = sender,
            .extent = extent,
            .flags = flags};
  }
};

nb::object call(const Sender& self, const nb::tuple& args, const nb::dict& kwargs,
                std::uint64_t sender) {
  const nb::object data = Sender::pack(args, kwargs);
  if (!data.is_valid()) return nb::none();
  ensure_credit(*self.engine, *self.targets);
  auto inbox = self.engine->call(self.targets, self.message(data, sender));
  if (!inbox) raise(inbox.error());
  return nb::cast(PyInbox(self.engine, *inbox));
}

bool cast(const Sender& self, const nb::tuple& args, const nb::dict& kwargs,
          std::uint64_t sender) {
  const nb::object data = Sender::pack(args, kwargs);
  if (!data.is_valid()) return false;
  ensure_credit(*self.engine, *self.targets);
  if (auto sent = self.engine->cast(*self.targets, self.message(data, sender), 0, 0, 0);
      !sent) {
    raise(sent.error());
  }
  return true;
}

nb::object not_implemented() { return nb::borrow(Py_NotImplemented); }

// The only answer, if it is a plain value.
nb::object value(PyInbox& self) {
  std::optional<actor::Arrival> arrival = self.engine->arrival(*self.inbox, 0);
  if (!arrival) {
    const Waited waited =
        wait_out([&] { return self.engine->wait(*self.inbox, 1, std::nullopt); });
    if (waited == Waited::kStopped) raise_stopped();
    arrival = self.engine->arrival(*self.inbox, 0);
  }
  if (!arrival || arrival->status != 0 || !arrival->payload.buffers.empty()) {
    return not_implemented();
  }
  const base::Bytes data = arrival->payload.data;
  if (data.size() >= static_cast<std::size_t>(kLarge)) return not_implemented();
  const nb::bytes whole(data.data(), data.size());
  PyObject* arguments[] = {whole.ptr()};
  nb::object made = nb::steal(PyObject_Vectorcall(pickle.loads, arguments, 1, nullptr));
  if (made.is_valid()) return made;
  forget_error();
  return not_implemented();
}

bool answer(const PyRequest& self, nb::handle value) {
  if (self.request->inbox != 0) {
    if (is_large(value.ptr())) return false;
    const nb::object data = pickled(value.ptr(), is_plain(value.ptr()));
    if (!data.is_valid()) return false;
    auto done = self.engine->reply(self.request, 0, bytes_of(data), {});
    if (!done) raise(done.error());
  }
  self.engine->finish(self.request);
  return true;
}

}  // namespace

void bind_sender(nb::module_& module) {
  find_pickle();
  nb::class_<Sender>(module, "Sender", "One endpoint of some receivers, ready to be called.")
      .def(
          "__init__",
          [](Sender* self, const PyEngine& engine, const PyTargets& targets, std::string endpoint,
             const nb::bytes& extent, std::uint16_t flags) {
            if (endpoint.size() > wire::k_max_name || extent.size() > wire::k_max_name) {
              throw nb::value_error(
                  "the name of an endpoint has at most 65535 bytes, and so has an extent");
            }
            new (self) Sender{engine.engine, targets.targets, std::move(endpoint),
                              std::string(extent.c_str(), extent.size()), flags};
          },
          "engine"_a, "targets"_a, "endpoint"_a, "extent"_a, "flags"_a)
      .def("call", &call, "args"_a, "kwargs"_a, "sender"_a,
           nb::sig("def call(self, args: tuple[typing.Any, ...], kwargs: dict[str, typing.Any], "
                   "sender: int) -> Inbox | None"),
           "As Engine.call with the pickled arguments; None when they are not for pickle alone,\n"
           "and nothing was sent.")
      .def("cast", &cast, "args"_a, "kwargs"_a, "sender"_a,
           nb::sig("def cast(self, args: tuple[typing.Any, ...], kwargs: dict[str, typing.Any], "
                   "sender: int) -> bool"),
           "As Engine.cast with the pickled arguments; False when they are not for pickle alone,\n"
           "and nothing was sent.");
}

void bind_quick_values(nb::class_<PyInbox>& inbox) {
  inbox.def("value", &value, nb::sig("def value(self) -> typing.Any"),
            "The first answer, waited for and unpickled; NotImplemented when it is no plain value.");
}

void bind_quick_answers(nb::class_<PyRequest>& request) {
  request.def("answer", &answer, "value"_a.none(),
              nb::sig("def answer(self, value: typing.Any) -> bool"),
              "Answer with the pickled value and finish; False when it is not for pickle alone,\n"
              "and nothing was done.");
}

}  // namespace monarch::bindings
