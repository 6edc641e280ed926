#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "collectives.h"

__attribute__((visibility("default"))) const char monarch_standin[] =
    "stand-in for a collectives library; for tests only";

/* Each rank holds a lock on its own byte of the file. The kernel drops it when the process is gone,
 * reaped or not, which is how the others notice. */
static int lock_rank(int descriptor, int rank, int command) {
  struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};
  if (fcntl(descriptor, command, &range) != 0) {
    return -1;
  }
  return range.l_type == F_UNLCK ? 0 : 1;
}

static int others_alive(const Communicator* communicator) {
  for (int rank = 0; rank < communicator->size; ++rank) {
    if (rank != communicator->rank && lock_rank(communicator->descriptor, rank, F_OFD_GETLK) == 0) {
      return 0;
    }
  }
  return 1;
}

int shared_new_id(UniqueId* id) {
  unsigned char random[16];
  if (getrandom(random, sizeof random, 0) != sizeof random) {
    return SYSTEM_ERROR;
  }
  memset(id, 0, sizeof *id);
  int at = snprintf(id->internal, sizeof id->internal, "/monarch-standin-");
  for (size_t byte = 0; byte < sizeof random; ++byte) {
    at += snprintf(id->internal + at, sizeof id->internal - (size_t)at, "%02x", random[byte]);
  }
  return SUCCESS;
}

static struct timespec soon(void) {
  struct timespec when;
  clock_gettime(CLOCK_MONOTONIC, &when);
  when.tv_nsec += 20 * 1000 * 1000;
  if (when.tv_nsec >= 1000000000) {
    when.tv_sec++;
    when.tv_nsec -= 1000000000;
  }
  return when;
}

static void prepare(Shared* shared, int size) {
  pthread_mutexattr_t mutex;
  pthread_condattr_t condition;
  pthread_mutexattr_init(&mutex);
  pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&mutex, PTHREAD_MUTEX_ROBUST);
  pthread_condattr_init(&condition);
  pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
  pthread_condattr_setclock(&condition, CLOCK_MONOTONIC);
  pthread_mutex_init(&shared->lock, &mutex);
  pthread_cond_init(&shared->changed, &condition);
  shared->size = size;
  __atomic_store_n(&shared->ready, 1, __ATOMIC_RELEASE);
}

static void lock_shared(Shared* shared) {
  if (pthread_mutex_lock(&shared->lock) == EOWNERDEAD) {
    pthread_mutex_consistent(&shared->lock);
  }
}

void shared_lock(Communicator* communicator) { lock_shared(communicator->shared); }

void shared_unlock(Communicator* communicator) {
  pthread_mutex_unlock(&communicator->shared->lock);
}

int shared_wait(Communicator* communicator) {
  Shared* shared = communicator->shared;
  if (__atomic_load_n(&communicator->aborted, __ATOMIC_ACQUIRE)) {
    return SYSTEM_ERROR;
  }
  if (!others_alive(communicator)) {
    return REMOTE_ERROR;
  }
  struct timespec until = soon();
  if (pthread_cond_timedwait(&shared->changed, &shared->lock, &until) == EOWNERDEAD) {
    pthread_mutex_consistent(&shared->lock);
  }
  return SUCCESS;
}

int shared_barrier(Communicator* communicator) {
  Shared* shared = communicator->shared;
  int status = SUCCESS;
  shared_lock(communicator);
  unsigned long generation = shared->generation;
  if (++shared->arrived == shared->size) {
    shared->arrived = 0;
    shared->generation++;
    pthread_cond_broadcast(&shared->changed);
  }
  while (status == SUCCESS && shared->generation == generation) {
    status = shared_wait(communicator);
    if (shared->generation != generation) {
      status = SUCCESS; /* the last one came, and may have gone since */
    }
  }
  shared_unlock(communicator);
  return status;
}

int shared_join(const UniqueId* id, int rank, int size, Communicator** made) {
  if (size < 1 || size > MOST_RANKS || rank < 0 || rank >= size || id->internal[0] != '/') {
    return INVALID_ARGUMENT;
  }
  int first = 1;
  int descriptor = shm_open(id->internal, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0 && errno == EEXIST) {
    first = 0;
    descriptor = shm_open(id->internal, O_RDWR | O_CLOEXEC, 0600);
  }
  if (descriptor < 0 || (first && ftruncate(descriptor, sizeof(Shared)) != 0)) {
    return SYSTEM_ERROR;
  }
  struct stat about = {0};
  const struct timespec pause = {.tv_nsec = 1000 * 1000};
  while (fstat(descriptor, &about) == 0 && about.st_size == 0) {
    nanosleep(&pause, NULL);
  }
  Shared* shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (shared == MAP_FAILED || lock_rank(descriptor, rank, F_OFD_SETLK) < 0) {
    close(descriptor);
    return INVALID_USAGE;
  }
  if (first) {
    prepare(shared, size);
  }
  while (!__atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE)) {
    nanosleep(&pause, NULL);
  }
  lock_shared(shared);
  int status = shared->size == size ? SUCCESS : INVALID_ARGUMENT;
  shared->joined++;
  pthread_cond_broadcast(&shared->changed);
  while (status == SUCCESS && shared->joined < size) {
    struct timespec until = soon();
    pthread_cond_timedwait(&shared->changed, &shared->lock, &until);
  }
  pthread_mutex_unlock(&shared->lock);
  shm_unlink(id->internal); /* all have it open; whoever comes first does it */
  if (status != SUCCESS) {
    munmap(shared, sizeof *shared);
    close(descriptor);
    return status;
  }
  Communicator* communicator = calloc(1, sizeof *communicator);
  *communicator = (Communicator){
      .shared = shared, .descriptor = descriptor, .rank = rank, .size = size, .uses = 1};
  *made = communicator;
  return SUCCESS;
}

void shared_leave(Communicator* communicator) {
  close(communicator->descriptor);
  munmap(communicator->shared, sizeof *communicator->shared);
  free(communicator);
}
