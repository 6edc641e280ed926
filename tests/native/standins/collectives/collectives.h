/* A stand-in for NCCL and RCCL: ranks of one machine, in one or many processes, exchange real data
 * through shared memory. Operations run in the stand-in stream's own thread. It exports
 * `monarch_standin` as the other stand-ins do. */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_RANKS = 16, CHUNK = 1 << 18, MAIL = 1 << 16 };

/* ncclResult_t */
enum { SUCCESS = 0, SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4, INVALID_USAGE = 5, REMOTE_ERROR = 6 };

typedef struct UniqueId {
  char internal[128];
} UniqueId;

typedef struct Mailbox {
  size_t size; /* 0: empty */
  unsigned char data[MAIL];
} Mailbox;

/* What all ranks of a communicator map. */
typedef struct Shared {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int ready;
  int size;
  int joined;
  int arrived;
  unsigned long generation;
  unsigned char slots[MOST_RANKS][CHUNK];
  Mailbox mail[MOST_RANKS][MOST_RANKS]; /* from, to */
} Shared;

typedef struct Communicator {
  Shared* shared;
  int descriptor;
  int rank;
  int size;
  int aborted;
  int error;
  int uses; /* the handle, and every queued operation */
} Communicator;

/* shared.c */
int shared_join(const UniqueId* id, int rank, int size, Communicator** made);
void shared_leave(Communicator* communicator);
int shared_new_id(UniqueId* id);
void shared_lock(Communicator* communicator);
void shared_unlock(Communicator* communicator);
/* Waits a moment for a change, with the lock held; REMOTE_ERROR if a rank has gone, and so on. */
int shared_wait(Communicator* communicator);
int shared_barrier(Communicator* communicator);

/* reduce.c: ncclDataType_t and ncclRedOp_t by number. */
size_t element_size(int dtype);
/* `sources` (one a rank) reduced element by element in rank order. */
void reduce_elements(void* destination, const unsigned char* const* sources, int ranks,
                     size_t count, int dtype, int reduction);
