#include "kernel_launch.cuh"
#include "monarch/native/convert.hpp"

namespace monarch::native::launch {
inline namespace cast_kernels {

template <DType Source, DType Destination>
__global__ void cast_kernel(typename Element<Destination>::Storage* destination,
                            const typename Element<Source>::Storage* source, std::uint64_t count) {
  for (std::uint64_t index = first_index(); index < count; index += index_step()) {
    destination[index] = convert<Source, Destination>(source[index]);
  }
}

template <DType Source, DType Destination>
void start_cast(void* destination, const void* source, std::uint64_t count, hipStream_t stream) {
  cast_kernel<Source, Destination><<<blocks_for(count), k_threads, 0, stream>>>(
      static_cast<typename Element<Destination>::Storage*>(destination),
      static_cast<const typename Element<Source>::Storage*>(source), count);
}

template <DType Source>
void start_cast_from(DType destination_dtype, void* destination, const void* source,
                     std::uint64_t count, hipStream_t stream) {
  switch (destination_dtype) {
    case DType::int8: return start_cast<Source, DType::int8>(destination, source, count, stream);
    case DType::uint8: return start_cast<Source, DType::uint8>(destination, source, count, stream);
    case DType::int32: return start_cast<Source, DType::int32>(destination, source, count, stream);
    case DType::int64: return start_cast<Source, DType::int64>(destination, source, count, stream);
    case DType::float16:
      return start_cast<Source, DType::float16>(destination, source, count, stream);
    case DType::bfloat16:
      return start_cast<Source, DType::bfloat16>(destination, source, count, stream);
    case DType::float32:
      return start_cast<Source, DType::float32>(destination, source, count, stream);
    case DType::float64:
      return start_cast<Source, DType::float64>(destination, source, count, stream);
  }
}

}  // namespace cast_kernels

int cast(void* destination, DType destination_dtype, const void* source, DType source_dtype,
         std::uint64_t count, void* stream) {
  const auto queue = static_cast<hipStream_t>(stream);
  const DType to = destination_dtype;
  switch (source_dtype) {
    case DType::int8: start_cast_from<DType::int8>(to, destination, source, count, queue); break;
    case DType::uint8: start_cast_from<DType::uint8>(to, destination, source, count, queue); break;
    case DType::int32: start_cast_from<DType::int32>(to, destination, source, count, queue); break;
    case DType::int64: start_cast_from<DType::int64>(to, destination, source, count, queue); break;
    case DType::float16:
      start_cast_from<DType::float16>(to, destination, source, count, queue);
      break;
    case DType::bfloat16:
      start_cast_from<DType::bfloat16>(to, destination, source, count, queue);
      break;
    case DType::float32:
      start_cast_from<DType::float32>(to, destination, source, count, queue);
      break;
    case DType::float64:
      start_cast_from<DType::float64>(to, destination, source, count, queue);
      break;
  }
  return launched();
}

}  // namespace monarch::native::launch
