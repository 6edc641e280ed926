#pragma once

#include <nanobind/nanobind.h>

namespace monarch::bindings {

void bind_engine(nanobind::module_& module);

}  // namespace monarch::bindings
