#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "net/tls.hpp"

namespace monarch::bindings {

struct PyTlsContext {
  std::shared_ptr<net::TlsContext> context;
};
// The stream is null once a link has it.
struct PyTlsStream {
  std::unique_ptr<net::TlsStream> stream;
};

void bind_tls(nanobind::module_& module);

}  // namespace monarch::bindings
