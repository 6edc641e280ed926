#pragma once

#include <cstddef>
#include <cstdint>

#include "monarch/native/address.hpp"
#include "monarch/native/dtype.hpp"
#include "monarch/native/error.hpp"
#include "monarch/native/stream.hpp"
#include "monarch/native/strided.hpp"

// Kernels queue on the stream and return. They are launched through the vendor's runtime library,
// which works in the primary context that the rest of this layer uses.
namespace monarch::native {

/// Gathers the strided elements at `source` into contiguous memory at `destination`.
Status pack(Address destination, Address source, const StridedPlan& plan, const Stream& stream);

/// Scatters contiguous memory at `source` to the strided elements at `destination`; strides must
/// not make elements overlap.
Status unpack(Address destination, Address source, const StridedPlan& plan, const Stream& stream);

/// Converts `count` contiguous elements (convert.hpp says how). The ranges must not overlap.
Status cast(Address destination, DType destination_dtype, Address source, DType source_dtype,
            std::uint64_t count, const Stream& stream);

/// Writes the 8-byte checksum of `bytes` bytes at `data` (checksum.hpp) to `result`, which must be
/// aligned to 8 bytes.
Status checksum(Address result, Address data, std::size_t bytes, const Stream& stream);

}  // namespace monarch::native
