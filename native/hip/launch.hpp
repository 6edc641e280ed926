#pragma once

#include <cstddef>
#include <cstdint>

#include "monarch/native/dtype.hpp"
#include "monarch/native/strided.hpp"

// The border between what the vendor's compiler makes and the rest. Nothing of the C++ library
// crosses it: the two sides may be compiled with different ones. Each function queues one kernel on
// `stream`, a handle of the vendor's, in the current context, and returns the runtime's status.
namespace monarch::native::launch {

int pack(void* destination, const void* source, const StridedPlan& plan, void* stream);
int unpack(void* destination, const void* source, const StridedPlan& plan, void* stream);
int cast(void* destination, DType destination_dtype, const void* source, DType source_dtype,
         std::uint64_t count, void* stream);
/// Adds to `result`, which has to be 0 before.
int checksum(void* result, const void* data, std::size_t bytes, void* stream);

}  // namespace monarch::native::launch
