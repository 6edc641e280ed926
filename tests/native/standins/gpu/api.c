/* The driver's entry points, once for both vendors: -DSTANDIN_HIP=1 gives libamdhip64, else
 * libcuda. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "standin.h"

#ifndef STANDIN_VERSION
#error "STANDIN_VERSION: what the library says its version is, as the vendor encodes it"
#endif

static int version(void) {
  const char* text = getenv("MONARCH_STANDIN_VERSION");
  return text != NULL && *text != '\0' ? atoi(text) : STANDIN_VERSION;
}

static int known(int device) { return device >= 0 && device < device_total(); }

static int api_init(unsigned flags) {
  (void)flags;
  return device_total() > 0 ? OK : NO_DEVICE;
}

static int api_version(int* result) {
  *result = version();
  return OK;
}

static int api_device_count(int* count) {
  *count = device_total();
  return *count > 0 ? OK : NO_DEVICE;
}

static int api_device_get(int* device, int ordinal) {
  *device = ordinal;
  return known(ordinal) ? OK : INVALID_DEVICE;
}

static int api_device_name(char* name, int length, int device) {
  snprintf(name, (size_t)length, "Stand-in GPU %d", device_physical(device));
  return known(device) ? OK : INVALID_DEVICE;
}

static int api_device_uuid(unsigned char uuid[16], int device) {
  memset(uuid, 0xA5, 16);
  uuid[15] = (unsigned char)device_physical(device);
  return known(device) ? OK : INVALID_DEVICE;
}

static int api_device_pci_bus_id(char* name, int length, int device) {
  snprintf(name, (size_t)length, "0000:%02x:00.0", 0x10 + device_physical(device));
  return known(device) ? OK : INVALID_DEVICE;
}

static int api_device_total_memory(size_t* bytes, int device) {
  *bytes = device_memory();
  return known(device) ? OK : INVALID_DEVICE;
}

/* Numbers as the vendors' headers have them. */
static int api_device_attribute(int* value, int attribute, int device) {
#if STANDIN_HIP
  enum { UNITS = 63, WAVE = 87, MAJOR = 23, MINOR = 61, THREADS = 56, SHARED = 74, L2 = 19 };
  enum { WAVE_SIZE = 64 };
#else
  enum { UNITS = 16, WAVE = 10, MAJOR = 75, MINOR = 76, THREADS = 1, SHARED = 8, L2 = 38 };
  enum { WAVE_SIZE = 32 };
#endif
  switch (attribute) {
    case UNITS: *value = 8; break;
    case WAVE: *value = WAVE_SIZE; break;
    case MAJOR: *value = 9; break;
    case MINOR: *value = 0; break;
    case THREADS: *value = 1024; break;
    case SHARED: *value = 49152; break;
    case L2: *value = 4 << 20; break;
    default: return INVALID_VALUE;
  }
  return known(device) ? OK : INVALID_DEVICE;
}

static int api_can_access_peer(int* possible, int device, int peer) {
  *possible = known(device) && known(peer) && device != peer;
  return OK;
}

/* A context is the number of its device plus one, so that none is null. */
static int api_primary_context(void** context, int device) {
  *context = (void*)(uintptr_t)(device + 1);
  return known(device) ? OK : INVALID_DEVICE;
}

static _Thread_local void* current;

static int api_context_get(void** context) {
  *context = current;
  return OK;
}

static int api_context_set(void* context) {
  current = context;
  device_set_current(context != NULL ? (int)(uintptr_t)context - 1 : 0);
  return OK;
}

static int api_context_synchronize(void) {
  queue_drain_device(device_current());
  return OK;
}

static int api_memory_info(size_t* unused, size_t* total) {
  *unused = device_free_memory(device_current());
  *total = device_memory();
  return OK;
}

static int api_memory_allocate(uintptr_t* address, size_t size) {
  return memory_allocate(device_current(), size, address);
}

static int api_memory_free(uintptr_t address) {
  queue_drain_device(device_current());
  return memory_free(address);
}

static int api_host_allocate(void** data, size_t size, unsigned flags) {
  (void)flags;
  return posix_memalign(data, 4096, size) == 0 ? OK : OUT_OF_MEMORY;
}

static int api_host_free(void* data) {
  queue_drain_device(device_current());
  free(data);
  return OK;
}

typedef struct Copy {
  void* destination;
  const void* source;
  size_t size;
} Copy;

static void do_copy(void* argument) {
  Copy* copy = argument;
  memmove(copy->destination, copy->source, copy->size);
  free(copy);
}

static int push_copy(void* destination, const void* source, size_t size, Queue* queue) {
  Copy* copy = malloc(sizeof *copy);
  *copy = (Copy){destination, source, size};
  return queue_push(queue, do_copy, copy);
}

static int api_copy_to_device_async(uintptr_t destination, const void* source, size_t size,
                                    Queue* queue) {
  return memory_accessible(destination, size) ? push_copy((void*)destination, source, size, queue)
                                              : INVALID_VALUE;
}

static int api_copy_to_device(uintptr_t destination, const void* source, size_t size) {
  return api_copy_to_device_async(destination, source, size, NULL);
}

static int api_copy_to_host_async(void* destination, uintptr_t source, size_t size, Queue* queue) {
  return memory_accessible(source, size) ? push_copy(destination, (void*)source, size, queue)
                                         : INVALID_VALUE;
}

static int api_copy_to_host(void* destination, uintptr_t source, size_t size) {
  return api_copy_to_host_async(destination, source, size, NULL);
}

static int api_copy_on_device_async(uintptr_t destination, uintptr_t source, size_t size,
                                    Queue* queue) {
  return memory_accessible(destination, size) && memory_accessible(source, size)
             ? push_copy((void*)destination, (void*)source, size, queue)
             : INVALID_VALUE;
}

static int api_copy_on_device(uintptr_t destination, uintptr_t source, size_t size) {
  return api_copy_on_device_async(destination, source, size, NULL);
}

typedef struct Fill {
  void* destination;
  size_t size;
  unsigned char value;
} Fill;

static void do_fill(void* argument) {
  Fill* fill = argument;
  memset(fill->destination, fill->value, fill->size);
  free(fill);
}

static int api_fill_async(uintptr_t destination, unsigned char value, size_t size, Queue* queue) {
  if (!memory_accessible(destination, size)) {
    return INVALID_VALUE;
  }
  Fill* fill = malloc(sizeof *fill);
  *fill = (Fill){(void*)destination, size, value};
  return queue_push(queue, do_fill, fill);
}

static int api_fill(uintptr_t destination, unsigned char value, size_t size) {
  return api_fill_async(destination, value, size, NULL);
}

static int api_stream_create(Queue** queue, unsigned flags, int priority) {
  (void)flags;
  (void)priority;
  return queue_create(device_current(), queue);
}

static int api_stream_query(Queue* queue) { return queue_idle(queue) ? OK : NOT_READY; }

static int api_stream_wait(Queue* queue, Mark* mark, unsigned flags) {
  (void)flags;
  return queue_wait_mark(queue, mark);
}

static int api_host_function(Queue* queue, Work work, void* argument) {
  return queue_push(queue, work, argument);
}

static int api_event_create(Mark** mark, unsigned flags) {
  enum { DISABLE_TIMING = 2 };
  return mark_create((flags & DISABLE_TIMING) == 0, mark);
}

static int api_event_query(Mark* mark) { return mark_done(mark) ? OK : NOT_READY; }

/* The two layouts of the allocation properties; HIP had the second one before 5.7. */
typedef struct Properties {
  int type;
  int handle_types;
  int location_type;
  int location_id;
} Properties;

typedef struct OldProperties {
  unsigned char compression;
  int location_type;
  int location_id;
  int handle_types;
  int type;
} OldProperties;

/* The device the properties name, or -1 when they make no sense in the layout of this release. */
static int device_of(const void* properties) {
  int type, handle_types, location_type, device;
  if (STANDIN_HIP && version() < 50700000) {
    const OldProperties* old = properties;
    type = old->type, handle_types = old->handle_types;
    location_type = old->location_type, device = old->location_id;
  } else {
    const Properties* given = properties;
    type = given->type, handle_types = given->handle_types;
    location_type = given->location_type, device = given->location_id;
  }
  return type == 1 && handle_types == 1 && location_type == 1 && known(device) ? device : -1;
}

static int api_virtual_granularity(size_t* size, const void* properties, int option) {
  (void)option;
  *size = GRANULARITY;
  return device_of(properties) >= 0 ? OK : INVALID_VALUE;
}

static int api_virtual_create(Physical** made, size_t size, const void* properties,
                              unsigned long long flags) {
  int device = device_of(properties);
  return device < 0 || flags != 0 ? INVALID_VALUE : physical_create(device, size, made);
}

static int api_virtual_export(int* descriptor, Physical* physical, int type,
                              unsigned long long flags) {
  return type != 1 || flags != 0 ? INVALID_VALUE : physical_export(physical, descriptor);
}

static int api_virtual_import(Physical** made, void* handle, int type) {
  /* HIP before 7.1 wants the address of the descriptor, all others the descriptor itself. */
  int by_address = STANDIN_HIP && version() < 70100000;
  int descriptor = by_address ? *(int*)handle : (int)(intptr_t)handle;
  return type != 1 ? INVALID_VALUE : physical_import(descriptor, made);
}

static int api_virtual_reserve(uintptr_t* address, size_t size, size_t alignment, uintptr_t wanted,
                               unsigned long long flags) {
  (void)wanted;
  return flags != 0 ? INVALID_VALUE : range_reserve(size, alignment, address);
}

static int api_virtual_map(uintptr_t address, size_t size, size_t offset, Physical* physical,
                           unsigned long long flags) {
  return flags != 0 ? INVALID_VALUE : range_map(address, size, offset, physical);
}

typedef struct Access {
  int location_type;
  int location_id;
  int flags;
} Access;

static int api_virtual_set_access(uintptr_t address, size_t size, const Access* access,
                                  size_t count) {
  int status = OK;
  for (size_t at = 0; at < count && status == OK; ++at) {
    status = range_set_access(address, size, access[at].location_id, access[at].flags & 1,
                              (access[at].flags & 2) != 0);
  }
  return status;
}

#if !STANDIN_HIP || STANDIN_VERSION >= 70000000

/* A descriptor of the memory itself stands for the dma-buf; only whole pages of one range have one.
 */
static int api_range_handle(int* descriptor, uintptr_t address, size_t size, int kind,
                            unsigned long long flags) {
  uintptr_t base = 0;
  int held = -1;
  size_t whole = memory_range(address, &base, &held);
  if (kind != 1 || flags != 0 || address % 4096 != 0 || size % 4096 != 0 || whole == 0 ||
      address + size > base + whole) {
    return INVALID_VALUE;
  }
  *descriptor = dup(held);
  return *descriptor < 0 ? OUT_OF_MEMORY : OK;
}

#endif

static int api_stream_destroy(Queue* queue) { return queue_destroy(queue); }
static int api_stream_synchronize(Queue* queue) { return queue_drain(queue); }
static int api_event_destroy(Mark* mark) { return mark_destroy(mark); }
static int api_event_record(Mark* mark, Queue* queue) { return mark_record(mark, queue); }
static int api_event_synchronize(Mark* mark) { return mark_wait(mark); }
static int api_event_elapsed(float* milliseconds, Mark* start, Mark* end) {
  return mark_elapsed(milliseconds, start, end);
}
static int api_virtual_release(Physical* physical) { return physical_release(physical); }
static int api_virtual_free(uintptr_t address, size_t size) { return range_free(address, size); }
static int api_virtual_unmap(uintptr_t address, size_t size) { return range_unmap(address, size); }

#define EXPORT_AS(name, function) \
  extern __typeof__(function) name __attribute__((alias(#function), visibility("default")));

#if STANDIN_HIP

static const char* api_error_name(int status) {
  switch (status) {
    case OK: return "hipSuccess";
    case INVALID_VALUE: return "hipErrorInvalidValue";
    case OUT_OF_MEMORY: return "hipErrorOutOfMemory";
    case NO_DEVICE: return "hipErrorNoDevice";
    case INVALID_DEVICE: return "hipErrorInvalidDevice";
    case INVALID_HANDLE: return "hipErrorInvalidHandle";
    case NOT_READY: return "hipErrorNotReady";
    case NOT_SUPPORTED: return "hipErrorNotSupported";
    default: return "hipErrorUnknown";
  }
}

static const char* api_error_string(int status) { return api_error_name(status) + strlen("hip"); }

/* Kernels are registered while a module is loaded; launching one here is an error, never a no-op.
 */
static _Thread_local int last_error;

static void** api_register_binary(const void* binary) {
  static void* slot;
  (void)binary;
  return &slot;
}

static void api_register_nothing(void) {}

static int api_push_configuration(void) { return OK; }

static int api_pop_configuration(void) { return OK; }

static int api_launch(void) {
  last_error = NOT_SUPPORTED;
  return NOT_SUPPORTED;
}

static int api_last_error(void) {
  int status = last_error;
  last_error = OK;
  return status;
}

#include "exports_hip.h"
#else
#include "exports_cuda.h"
#endif
