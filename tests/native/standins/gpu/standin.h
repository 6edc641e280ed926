/* Stand-ins for GPU libraries, for tests on machines without a GPU. They prove wiring and
 * lifetimes, not what a GPU does. Every one of them exports `monarch_standin`; port.verify refuses
 * a wheel that carries that symbol.
 *
 * Environment: MONARCH_STANDIN_DEVICES (default 2), MONARCH_STANDIN_MEMORY (bytes of each device,
 * default 1 GiB), MONARCH_STANDIN_VERSION (what the runtime says its version is), and the variable
 * with which a user hides devices: CUDA_VISIBLE_DEVICES or ROCR_VISIBLE_DEVICES, a list of numbers.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

/* Statuses, with the numbers that CUDA's and HIP's have in common. */
enum {
  OK = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NO_DEVICE = 100,
  INVALID_DEVICE = 101,
  INVALID_HANDLE = 400,
  NOT_READY = 600,
  NOT_SUPPORTED = 801,
};

enum { GRANULARITY = 2 << 20, MOST_DEVICES = 16 };

/* device.c */
int device_total(void);
/* The number that a visible device has among all of them. */
int device_physical(int device);
size_t device_memory(void);
size_t device_free_memory(int device);
int device_current(void);
void device_set_current(int device);

int memory_allocate(int device, size_t size, uintptr_t* address);
int memory_free(uintptr_t address);
/* Whether a device could touch all of [address, address + size). */
int memory_accessible(uintptr_t address, size_t size);
/* Size and start of the allocation or mapping that holds `address`; 0 if none does. */
size_t memory_range(uintptr_t address, uintptr_t* base, int* descriptor);

typedef struct Physical Physical;
int physical_create(int device, size_t size, Physical** made);
int physical_import(int descriptor, Physical** made);
int physical_export(Physical* physical, int* descriptor);
int physical_release(Physical* physical);
int range_reserve(size_t size, size_t alignment, uintptr_t* address);
int range_free(uintptr_t address, size_t size);
int range_map(uintptr_t address, size_t size, size_t offset, Physical* physical);
int range_unmap(uintptr_t address, size_t size);
int range_set_access(uintptr_t address, size_t size, int device, int readable, int writable);

/* queue.c: a stream is a thread that works off a queue, so that nothing is done early by accident.
 */
typedef struct Queue Queue;
typedef struct Mark Mark;
typedef void (*Work)(void* argument);
int queue_create(int device, Queue** made);
int queue_destroy(Queue* queue);
/* `queue` null is the default stream, which works at once. */
int queue_push(Queue* queue, Work work, void* argument);
int queue_drain(Queue* queue);
void queue_drain_device(int device);
int queue_idle(Queue* queue);
int mark_create(int timing, Mark** made);
int mark_destroy(Mark* mark);
int mark_record(Mark* mark, Queue* queue);
int mark_wait(Mark* mark);
int mark_done(Mark* mark);
int mark_elapsed(float* milliseconds, Mark* start, Mark* end);
int queue_wait_mark(Queue* queue, Mark* mark);
