// TLS for Python, which makes links: the handshake and the few bytes that follow it. Then the engine
// takes the stream over.
#include "tls.hpp"

#include <nanobind/stl/string.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

namespace nb = nanobind;
using namespace nb::literals;

namespace monarch::bindings {
namespace {

using net::TlsContext;
using net::TlsStream;

[[noreturn]] void refuse(const base::Error& error) {
  const nb::object type = nb::module_::import_("monarch.errors").attr("LinkError");
  PyErr_SetObject(type.ptr(), nb::make_tuple("tls", error.message).ptr());
  throw nb::python_error();
}

[[noreturn]] void fail(const TlsStream& stream) {
  if (errno == EPROTO) refuse({base::Code::kSystem, stream.why()});
  PyErr_SetFromErrno(PyExc_OSError);
  throw nb::python_error();
}

base::Bytes bytes_of(const nb::bytes& data) {
  return std::as_bytes(std::span(data.c_str(), data.size()));
}

PyTlsContext taken(base::Result<std::shared_ptr<TlsContext>> made) {
  if (!made) refuse(made.error());
  return {*std::move(made)};
}

TlsStream& open(const PyTlsStream& self) {
  if (self.stream == nullptr) throw nb::value_error("a link has this stream");
  return *self.stream;
}

nb::bytes receive(PyTlsStream& self, std::size_t size) {
  std::string buffer(std::min<std::size_t>(size, 1 << 16), '\0');
  const auto count = open(self).read(std::as_writable_bytes(std::span(buffer)));
  if (count < 0) fail(*self.stream);
  return nb::bytes(buffer.data(), static_cast<std::size_t>(count));
}

std::size_t send(PyTlsStream& self, const nb::bytes& data) {
  if (data.size() == 0) return 0;
  const auto count = open(self).write(bytes_of(data));
  if (count < 0) fail(*self.stream);
  return static_cast<std::size_t>(count);
}

std::string handshake(PyTlsStream& self) {
  const auto step = open(self).handshake();
  if (!step) refuse(step.error());
  switch (*step) {
    case TlsStream::Step::kRead:
      return "read";
    case TlsStream::Step::kWrite:
      return "write";
    case TlsStream::Step::kDone:
      break;
  }
  return "done";
}

}  // namespace

void bind_tls(nb::module_& module) {
  nb::class_<PyTlsContext>(module, "TlsContext",
                           "Who a process is in TLS, and whom it believes. Every way to make one "
                           "raises LinkError where it cannot be.")
      .def_static(
          "derive",
          [](const nb::bytes& authority, const nb::bytes& own, const std::string& names,
             long seconds) {
            return taken(TlsContext::derive(bytes_of(authority), bytes_of(own), names, seconds));
          },
          "authority"_a, "own"_a, "names"_a, "seconds"_a,
          "With a certificate made here, by keys drawn from 32 bytes each; good for `names` "
          "(\"IP:10.0.0.1,DNS:node7\") until `seconds` from now.")
      .def_static(
          "read",
          [](const std::string& authorities, const std::string& certificate,
             const std::string& key) {
            return taken(TlsContext::read(authorities, certificate, key));
          },
          "authorities"_a, "certificate"_a, "key"_a, "From three PEM files.");
  nb::class_<PyTlsStream>(module, "TlsStream",
                          "TLS over a connected non-blocking socket, which stays the caller's.")
      .def(
          "__init__",
          [](PyTlsStream* self, const PyTlsContext& context, int fd, bool listens,
             const std::string& host) {
            const auto side = listens ? TlsStream::Side::kListener : TlsStream::Side::kDialer;
            auto made = TlsStream::begin(context.context, fd, side, host);
            if (!made) refuse(made.error());
            new (self) PyTlsStream{*std::move(made)};
          },
          "context"_a, "fd"_a, "listens"_a, "host"_a = "")
      .def("handshake", &handshake,
           "\"done\", or \"read\" or \"write\": what the socket has to be ready for.\n\nRaises:\n"
           "    LinkError: it failed; `verified` says whether by the other's certificate.")
      .def_prop_ro(
          "verified", [](const PyTlsStream& self) { return open(self).verified(); },
          "OpenSSL's number of the check that the other side's certificate failed, 0 for none.")
      .def("recv", &receive, "size"_a,
           "Up to `size` bytes, none at the end.\n\nRaises:\n    BlockingIOError: there is nothing "
           "yet.\n    LinkError: it is no TLS, or the other side refuses.")
      .def("send", &send, "data"_a, "How many of these bytes the socket took.")
      .def(
          "binding",
          [](const PyTlsStream& self) {
            const auto found = open(self).binding();
            if (!found) refuse(found.error());
            return nb::bytes(found->data(), found->size());
          },
          "32 bytes that both ends of this connection have, and nobody in the middle can have.");
}

}  // namespace monarch::bindings
