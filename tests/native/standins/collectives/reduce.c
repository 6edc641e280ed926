#include <string.h>

#include "collectives.h"

enum { INT8, UINT8, INT32, UINT32, INT64, UINT64, FLOAT16, FLOAT32, FLOAT64, BFLOAT16 };
enum { SUM, PRODUCT, MAXIMUM, MINIMUM, AVERAGE };

size_t element_size(int dtype) {
  static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return dtype >= 0 && dtype <= BFLOAT16 ? sizes[dtype] : 0;
}

#define COMBINE(into, value)                                 \
  switch (reduction) {                                       \
    case PRODUCT: into *= value; break;                      \
    case MAXIMUM: into = value > into ? value : into; break; \
    case MINIMUM: into = value < into ? value : into; break; \
    default: into += value; break;                           \
  }

#define REDUCE(type, wide, load, store)                             \
  for (size_t at = 0; at < count; ++at) {                           \
    type raw;                                                       \
    memcpy(&raw, sources[0] + at * sizeof raw, sizeof raw);         \
    wide sum = load(raw);                                           \
    for (int rank = 1; rank < ranks; ++rank) {                      \
      memcpy(&raw, sources[rank] + at * sizeof raw, sizeof raw);    \
      wide value = load(raw);                                       \
      COMBINE(sum, value)                                           \
    }                                                               \
    if (reduction == AVERAGE) {                                     \
      sum = (wide)(sum / (wide)ranks);                              \
    }                                                               \
    raw = store(sum);                                               \
    memcpy((char*)destination + at * sizeof raw, &raw, sizeof raw); \
  }

#define SAME(value) (value)

static float from_bfloat16(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

static uint16_t to_bfloat16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

static float from_float16(_Float16 value) { return (float)value; }
static _Float16 to_float16(float value) { return (_Float16)value; }

void reduce_elements(void* destination, const unsigned char* const* sources, int ranks,
                     size_t count, int dtype, int reduction) {
  switch (dtype) {
    case INT8: REDUCE(int8_t, int8_t, SAME, (int8_t)) break;
    case UINT8: REDUCE(uint8_t, uint8_t, SAME, (uint8_t)) break;
    case INT32: REDUCE(int32_t, int32_t, SAME, (int32_t)) break;
    case UINT32: REDUCE(uint32_t, uint32_t, SAME, (uint32_t)) break;
    case INT64: REDUCE(int64_t, int64_t, SAME, (int64_t)) break;
    case UINT64: REDUCE(uint64_t, uint64_t, SAME, (uint64_t)) break;
    case FLOAT16: REDUCE(_Float16, float, from_float16, to_float16) break;
    case FLOAT32: REDUCE(float, float, SAME, (float)) break;
    case FLOAT64: REDUCE(double, double, SAME, (double)) break;
    case BFLOAT16: REDUCE(uint16_t, float, from_bfloat16, to_bfloat16) break;
    default: break;
  }
}
