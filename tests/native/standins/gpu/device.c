#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "standin.h"

EXPORT const char monarch_standin[] = "stand-in for a GPU library; for tests only";

struct Physical {
  int descriptor;
  int device;
  size_t size;
  int uses; /* the handle itself, and every mapping */
  int released;
};

/* An allocation, a reservation, or a mapping inside a reservation. */
typedef struct Range {
  uintptr_t base;
  size_t size;
  int device;
  int descriptor;
  int access;
  enum { ALLOCATION, RESERVATION, MAPPING } kind;
  Physical* physical;
  struct Range* next;
} Range;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Range* ranges;
static size_t used[MOST_DEVICES];
static _Thread_local int current_device;

static size_t setting(const char* name, size_t fallback) {
  const char* text = getenv(name);
  return text != NULL && *text != '\0' ? (size_t)strtoull(text, NULL, 10) : fallback;
}

static int device_all(void) {
  size_t count = setting("MONARCH_STANDIN_DEVICES", 2);
  return count > MOST_DEVICES ? MOST_DEVICES : (int)count;
}

/* The entry of the list of visible devices, or how many there are up to the first invalid one. */
static int visible(int wanted, int* count) {
  const char* text = getenv(STANDIN_HIP ? "ROCR_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES");
  if (text == NULL) {
    *count = device_all();
    return wanted;
  }
  int found = -1;
  for (*count = 0; *text != '\0'; ++*count) {
    char* end = NULL;
    long number = strtol(text, &end, 10);
    if (end == text || number < 0 || number >= device_all()) {
      break;
    }
    found = *count == wanted ? (int)number : found;
    text = *end == ',' ? end + 1 : end;
  }
  return found;
}

int device_total(void) {
  int count = 0;
  visible(0, &count);
  return count;
}

int device_physical(int device) {
  int count = 0;
  return visible(device, &count);
}

size_t device_memory(void) { return setting("MONARCH_STANDIN_MEMORY", (size_t)1 << 30); }

size_t device_free_memory(int device) {
  pthread_mutex_lock(&lock);
  size_t left = device_memory() - used[device];
  pthread_mutex_unlock(&lock);
  return left;
}

int device_current(void) { return current_device; }
void device_set_current(int device) { current_device = device; }

static Range* add_range(int kind, uintptr_t base, size_t size) {
  Range* range = calloc(1, sizeof *range);
  if (range == NULL) {
    abort();
  }
  range->kind = kind;
  range->base = base;
  range->size = size;
  range->descriptor = -1;
  range->next = ranges;
  ranges = range;
  return range;
}

static void drop_range(Range* gone) {
  for (Range** at = &ranges; *at != NULL; at = &(*at)->next) {
    if (*at == gone) {
      *at = gone->next;
      free(gone);
      return;
    }
  }
}

/* The range of this kind that starts at `base`. */
static Range* find_exact(int kind, uintptr_t base) {
  for (Range* range = ranges; range != NULL; range = range->next) {
    if ((int)range->kind == kind && range->base == base) {
      return range;
    }
  }
  return NULL;
}

/* What is behind an address, reservations left out. */
static Range* find_backed(uintptr_t address) {
  for (Range* range = ranges; range != NULL; range = range->next) {
    if (range->kind != RESERVATION && address >= range->base &&
        address - range->base < range->size) {
      return range;
    }
  }
  return NULL;
}

static Range* find_reservation(uintptr_t address, size_t size) {
  for (Range* range = ranges; range != NULL; range = range->next) {
    if (range->kind == RESERVATION && address >= range->base &&
        address - range->base + size <= range->size) {
      return range;
    }
  }
  return NULL;
}

static int take_memory(int device, size_t size) {
  if (size > device_memory() - used[device]) {
    return OUT_OF_MEMORY;
  }
  used[device] += size;
  return OK;
}

static int make_descriptor(size_t size) {
  int descriptor = memfd_create("gpu-standin", MFD_CLOEXEC);
  if (descriptor >= 0 && ftruncate(descriptor, (off_t)size) != 0) {
    close(descriptor);
    return -1;
  }
  return descriptor;
}

int memory_allocate(int device, size_t size, uintptr_t* address) {
  if (size == 0) {
    return INVALID_VALUE;
  }
  size_t whole = (size + 4095) / 4096 * 4096;
  pthread_mutex_lock(&lock);
  int status = take_memory(device, whole);
  if (status == OK) {
    int descriptor = make_descriptor(whole);
    void* made = descriptor < 0
                     ? MAP_FAILED
                     : mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (made == MAP_FAILED) {
      used[device] -= whole;
      status = OUT_OF_MEMORY;
    } else {
      Range* range = add_range(ALLOCATION, (uintptr_t)made, whole);
      range->device = device;
      range->descriptor = descriptor;
      range->access = 1;
      *address = range->base;
    }
  }
  pthread_mutex_unlock(&lock);
  return status;
}

int memory_free(uintptr_t address) {
  pthread_mutex_lock(&lock);
  Range* range = find_exact(ALLOCATION, address);
  if (range != NULL) {
    munmap((void*)range->base, range->size);
    close(range->descriptor);
    used[range->device] -= range->size;
    drop_range(range);
  }
  pthread_mutex_unlock(&lock);
  return range != NULL ? OK : INVALID_VALUE;
}

int memory_accessible(uintptr_t address, size_t size) {
  int accessible = 1;
  pthread_mutex_lock(&lock);
  while (size > 0) {
    Range* range = find_backed(address);
    if (range == NULL || !range->access) {
      accessible = 0;
      break;
    }
    size_t left = range->base + range->size - address;
    size_t step = left < size ? left : size;
    address += step;
    size -= step;
  }
  pthread_mutex_unlock(&lock);
  return accessible;
}

size_t memory_range(uintptr_t address, uintptr_t* base, int* descriptor) {
  pthread_mutex_lock(&lock);
  Range* range = find_backed(address);
  size_t size = range != NULL ? range->size : 0;
  if (range != NULL) {
    *base = range->base;
    *descriptor = range->kind == MAPPING ? range->physical->descriptor : range->descriptor;
  }
  pthread_mutex_unlock(&lock);
  return size;
}

int physical_create(int device, size_t size, Physical** made) {
  if (size == 0 || size % GRANULARITY != 0) {
    return INVALID_VALUE;
  }
  pthread_mutex_lock(&lock);
  int status = take_memory(device, size);
  if (status == OK) {
    Physical* physical = calloc(1, sizeof *physical);
    physical->descriptor = make_descriptor(size);
    physical->device = device;
    physical->size = size;
    physical->uses = 1;
    *made = physical;
  }
  pthread_mutex_unlock(&lock);
  return status;
}

/* Memory that another process paid for costs this one nothing. */
int physical_import(int descriptor, Physical** made) {
  struct stat about;
  int own = dup(descriptor);
  if (own < 0 || fstat(own, &about) != 0 || about.st_size == 0) {
    if (own >= 0) {
      close(own);
    }
    return INVALID_VALUE;
  }
  Physical* physical = calloc(1, sizeof *physical);
  physical->descriptor = own;
  physical->device = -1;
  physical->size = (size_t)about.st_size;
  physical->uses = 1;
  *made = physical;
  return OK;
}

int physical_export(Physical* physical, int* descriptor) {
  if (physical == NULL) {
    return INVALID_HANDLE;
  }
  *descriptor = dup(physical->descriptor);
  return *descriptor < 0 ? OUT_OF_MEMORY : OK;
}

static void drop_use(Physical* physical) {
  if (--physical->uses == 0) {
    close(physical->descriptor);
    if (physical->device >= 0) {
      used[physical->device] -= physical->size;
    }
    free(physical);
  }
}

int physical_release(Physical* physical) {
  if (physical == NULL || physical->released) {
    return INVALID_HANDLE;
  }
  pthread_mutex_lock(&lock);
  physical->released = 1;
  drop_use(physical);
  pthread_mutex_unlock(&lock);
  return OK;
}

int range_reserve(size_t size, size_t alignment, uintptr_t* address) {
  if (size == 0 || size % GRANULARITY != 0 || (alignment & (alignment - 1)) != 0) {
    return INVALID_VALUE;
  }
  size_t unit = alignment > GRANULARITY ? alignment : GRANULARITY;
  char* wide =
      mmap(NULL, size + unit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (wide == MAP_FAILED) {
    return OUT_OF_MEMORY;
  }
  char* start = (char*)(((uintptr_t)wide + unit - 1) / unit * unit);
  if (start != wide) {
    munmap(wide, (size_t)(start - wide));
  }
  if (wide + unit != start) {
    munmap(start + size, (size_t)(wide + unit - start));
  }
  pthread_mutex_lock(&lock);
  add_range(RESERVATION, (uintptr_t)start, size);
  pthread_mutex_unlock(&lock);
  *address = (uintptr_t)start;
  return OK;
}

int range_free(uintptr_t address, size_t size) {
  int status = INVALID_VALUE;
  pthread_mutex_lock(&lock);
  Range* range = find_exact(RESERVATION, address);
  int mapped = 0;
  for (Range* other = ranges; other != NULL; other = other->next) {
    mapped |= other->kind == MAPPING && other->base >= address && other->base < address + size;
  }
  if (range != NULL && range->size == size && !mapped) {
    munmap((void*)address, size);
    drop_range(range);
    status = OK;
  }
  pthread_mutex_unlock(&lock);
  return status;
}

int range_map(uintptr_t address, size_t size, size_t offset, Physical* physical) {
  int status = INVALID_VALUE;
  pthread_mutex_lock(&lock);
  int fits = physical != NULL && !physical->released && size % GRANULARITY == 0 &&
             address % GRANULARITY == 0 && offset <= physical->size &&
             size <= physical->size - offset;
  if (fits && find_reservation(address, size) != NULL && find_backed(address) == NULL) {
    void* made = mmap((void*)address, size, PROT_NONE, MAP_SHARED | MAP_FIXED, physical->descriptor,
                      (off_t)offset);
    if (made != MAP_FAILED) {
      Range* range = add_range(MAPPING, address, size);
      range->physical = physical;
      physical->uses++;
      status = OK;
    }
  }
  pthread_mutex_unlock(&lock);
  return status;
}

int range_unmap(uintptr_t address, size_t size) {
  int status = INVALID_VALUE;
  pthread_mutex_lock(&lock);
  Range* range = find_exact(MAPPING, address);
  if (range != NULL && range->size == size) {
    mmap((void*)address, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
         -1, 0);
    drop_use(range->physical);
    drop_range(range);
    status = OK;
  }
  pthread_mutex_unlock(&lock);
  return status;
}

int range_set_access(uintptr_t address, size_t size, int device, int readable, int writable) {
  if (device < 0 || device >= device_total()) {
    return INVALID_DEVICE;
  }
  int status = OK;
  pthread_mutex_lock(&lock);
  for (uintptr_t at = address; at < address + size && status == OK;) {
    Range* range = find_backed(at);
    if (range == NULL || range->kind != MAPPING) {
      status = INVALID_VALUE;
      break;
    }
    int protection = (readable ? PROT_READ : 0) | (writable ? PROT_WRITE : 0);
    if (mprotect((void*)range->base, range->size, protection) != 0) {
      status = INVALID_VALUE;
    }
    range->access = readable;
    at = range->base + range->size;
  }
  pthread_mutex_unlock(&lock);
  return status;
}
