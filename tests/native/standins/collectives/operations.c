#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "collectives.h"

#define EXPORT __attribute__((visibility("default")))

enum Kind { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE, SEND, RECEIVE };

typedef struct Operation {
  enum Kind kind;
  const unsigned char* send;
  unsigned char* receive;
  size_t count;
  int dtype;
  int reduction;
  int root;    /* or the peer */
  size_t done; /* bytes, of a send or receive */
  Communicator* communicator;
  void* stream;
  struct Operation* next;
} Operation;

static _Thread_local int depth;
static _Thread_local Operation* collected;

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* Puts this rank's part in its slot, waits for all, and gives the slots. */
static int exchange(Communicator* communicator, const unsigned char* part, size_t size,
                    const unsigned char* slots[MOST_RANKS]) {
  if (part != NULL) {
    memcpy(communicator->shared->slots[communicator->rank], part, size);
  }
  for (int rank = 0; rank < communicator->size; ++rank) {
    slots[rank] = communicator->shared->slots[rank];
  }
  return shared_barrier(communicator);
}

static int run_reduction(const Operation* operation, int only) {
  Communicator* communicator = operation->communicator;
  size_t width = element_size(operation->dtype);
  for (size_t at = 0; at < operation->count;) {
    const unsigned char* slots[MOST_RANKS];
    size_t count = smaller(CHUNK / width, operation->count - at);
    int status = exchange(communicator, operation->send + at * width, count * width, slots);
    if (status != SUCCESS) {
      return status;
    }
    if (only < 0 || only == communicator->rank) {
      reduce_elements(operation->receive + at * width, slots, communicator->size, count,
                      operation->dtype, operation->reduction);
    }
    status = shared_barrier(communicator);
    if (status != SUCCESS) {
      return status;
    }
    at += count;
  }
  return SUCCESS;
}

static int run_reduce_scatter(const Operation* operation) {
  for (int rank = 0; rank < operation->communicator->size; ++rank) {
    Operation part = *operation;
    part.send += (size_t)rank * operation->count * element_size(operation->dtype);
    int status = run_reduction(&part, rank);
    if (status != SUCCESS) {
      return status;
    }
  }
  return SUCCESS;
}

static int run_copies(const Operation* operation) {
  Communicator* communicator = operation->communicator;
  size_t size = operation->count * element_size(operation->dtype);
  for (size_t at = 0; at < size; at += CHUNK) {
    const unsigned char* slots[MOST_RANKS];
    size_t step = smaller(CHUNK, size - at);
    int sends = operation->kind == ALL_GATHER || operation->root == communicator->rank;
    int status = exchange(communicator, sends ? operation->send + at : NULL, step, slots);
    if (status != SUCCESS) {
      return status;
    }
    if (operation->kind == BROADCAST) {
      memcpy(operation->receive + at, slots[operation->root], step);
    } else {
      for (int rank = 0; rank < communicator->size; ++rank) {
        memcpy(operation->receive + (size_t)rank * size + at, slots[rank], step);
      }
    }
    status = shared_barrier(communicator);
    if (status != SUCCESS) {
      return status;
    }
  }
  return SUCCESS;
}

/* Moves what can be moved now; 1 if anything was. The lock is held. */
static int move_mail(Operation* operation) {
  Communicator* communicator = operation->communicator;
  size_t size = operation->count * element_size(operation->dtype);
  if (operation->done == size) {
    return 0;
  }
  int sends = operation->kind == SEND;
  Mailbox* box = sends ? &communicator->shared->mail[communicator->rank][operation->root]
                       : &communicator->shared->mail[operation->root][communicator->rank];
  if (sends == (box->size != 0)) {
    return 0;
  }
  if (sends) {
    box->size = smaller(MAIL, size - operation->done);
    memcpy(box->data, operation->send + operation->done, box->size);
    operation->done += box->size;
  } else {
    size_t step = smaller(box->size, size - operation->done);
    memcpy(operation->receive + operation->done, box->data, step);
    operation->done += step;
    box->size = 0;
  }
  pthread_cond_broadcast(&communicator->shared->changed);
  return 1;
}

static int run_mail(Operation* operations) {
  Communicator* communicator = operations->communicator;
  int status = SUCCESS;
  shared_lock(communicator);
  for (int left = 1; left && status == SUCCESS;) {
    int moved = 0;
    left = 0;
    for (Operation* operation = operations; operation != NULL; operation = operation->next) {
      if (operation->kind == SEND || operation->kind == RECEIVE) {
        moved |= move_mail(operation);
        left |= operation->done < operation->count * element_size(operation->dtype);
      }
    }
    if (left && !moved) {
      status = shared_wait(communicator);
    }
  }
  shared_unlock(communicator);
  return status;
}

static void drop_use(Communicator* communicator) {
  if (__atomic_sub_fetch(&communicator->uses, 1, __ATOMIC_ACQ_REL) == 0) {
    shared_leave(communicator);
  }
}

/* Works off operations of one communicator and stream; sends and receives of a group go together.
 */
static void run(void* argument) {
  Operation* operations = argument;
  Communicator* communicator = operations->communicator;
  int status = __atomic_load_n(&communicator->error, __ATOMIC_ACQUIRE);
  int mail = 0;
  for (Operation* at = operations; at != NULL && status == SUCCESS; at = at->next) {
    switch (at->kind) {
      case ALL_REDUCE: status = run_reduction(at, -1); break;
      case REDUCE: status = run_reduction(at, at->root); break;
      case REDUCE_SCATTER: status = run_reduce_scatter(at); break;
      case ALL_GATHER:
      case BROADCAST: status = run_copies(at); break;
      default: mail = 1; break;
    }
  }
  if (mail && status == SUCCESS) {
    status = run_mail(operations);
  }
  if (status != SUCCESS) {
    __atomic_store_n(&communicator->error, status, __ATOMIC_RELEASE);
  }
  while (operations != NULL) {
    Operation* next = operations->next;
    free(operations);
    operations = next;
  }
  drop_use(communicator);
}

/* The stand-in driver of this process puts the work into its stream. */
static int start(Operation* operations) {
  static const char* const drivers[][2] = {
      {"libcuda.so.1", "cuLaunchHostFunc"},
      {"libamdhip64.so.5", "hipLaunchHostFunc"},
      {"libamdhip64.so.6", "hipLaunchHostFunc"},
      {"libamdhip64.so.7", "hipLaunchHostFunc"},
  };
  for (size_t at = 0; at < sizeof drivers / sizeof *drivers; ++at) {
    void* library = dlopen(drivers[at][0], RTLD_NOW | RTLD_NOLOAD);
    if (library != NULL) {
      int (*launch)(void*, void (*)(void*), void*);
      *(void**)&launch = dlsym(library, drivers[at][1]);
      dlclose(library);
      __atomic_add_fetch(&operations->communicator->uses, 1, __ATOMIC_ACQ_REL);
      return launch != NULL && launch(operations->stream, run, operations) == 0 ? SUCCESS
                                                                                : SYSTEM_ERROR;
    }
  }
  return SYSTEM_ERROR;
}

EXPORT int ncclGroupStart(void) {
  depth++;
  return SUCCESS;
}

EXPORT int ncclGroupEnd(void) {
  if (depth == 0) {
    return INVALID_USAGE;
  }
  if (--depth > 0) {
    return SUCCESS;
  }
  Operation* rest = collected;
  collected = NULL;
  int status = SUCCESS;
  while (rest != NULL) {
    /* One batch for each communicator and stream, in the order of calling. */
    Operation* batch = NULL;
    Operation** last = &batch;
    Communicator* communicator = rest->communicator;
    void* stream = rest->stream;
    for (Operation** at = &rest; *at != NULL;) {
      Operation* operation = *at;
      if (operation->communicator == communicator && operation->stream == stream) {
        *at = operation->next;
        operation->next = NULL;
        *last = operation;
        last = &operation->next;
      } else {
        at = &operation->next;
      }
    }
    int started = start(batch);
    status = status == SUCCESS ? started : status;
  }
  return status;
}

static int submit(Operation wanted) {
  Communicator* communicator = wanted.communicator;
  if (communicator == NULL || element_size(wanted.dtype) == 0 || wanted.root < 0 ||
      wanted.root >= communicator->size || wanted.reduction < 0 || wanted.reduction > 4) {
    return INVALID_ARGUMENT;
  }
  Operation* operation = malloc(sizeof *operation);
  *operation = wanted;
  if (depth == 0) {
    return start(operation);
  }
  Operation** last = &collected;
  while (*last != NULL) {
    last = &(*last)->next;
  }
  *last = operation;
  return SUCCESS;
}

EXPORT int ncclAllReduce(const void* send, void* receive, size_t count, int dtype, int reduction,
                         Communicator* communicator, void* stream) {
  return submit((Operation){.kind = ALL_REDUCE,
                            .send = send,
                            .receive = receive,
                            .count = count,
                            .dtype = dtype,
                            .reduction = reduction,
                            .communicator = communicator,
                            .stream = stream});
}

EXPORT int ncclAllGather(const void* send, void* receive, size_t count, int dtype,
                         Communicator* communicator, void* stream) {
  return submit((Operation){.kind = ALL_GATHER,
                            .send = send,
                            .receive = receive,
                            .count = count,
                            .dtype = dtype,
                            .communicator = communicator,
                            .stream = stream});
}

EXPORT int ncclReduceScatter(const void* send, void* receive, size_t count, int dtype,
                             int reduction, Communicator* communicator, void* stream) {
  return submit((Operation){.kind = REDUCE_SCATTER,
                            .send = send,
                            .receive = receive,
                            .count = count,
                            .dtype = dtype,
                            .reduction = reduction,
                            .communicator = communicator,
                            .stream = stream});
}

EXPORT int ncclBroadcast(const void* send, void* receive, size_t count, int dtype, int root,
                         Communicator* communicator, void* stream) {
  return submit((Operation){.kind = BROADCAST,
                            .send = send,
                            .receive = receive,
                            .count = count,
                            .dtype = dtype,
                            .root = root,
                            .communicator = communicator,
                            .stream = stream});
}

EXPORT int ncclReduce(const void* send, void* receive, size_t count, int dtype, int reduction,
                      int root, Communicator* communicator, void* stream) {
  return submit((Operation){.kind = REDUCE,
                            .send = send,
                            .receive = receive,
                            .count = count,
                            .dtype = dtype,
                            .reduction = reduction,
                            .root = root,
                            .communicator = communicator,
                            .stream = stream});
}

EXPORT int ncclSend(const void* data, size_t count, int dtype, int peer, Communicator* communicator,
                    void* stream) {
  return submit((Operation){.kind = SEND,
                            .send = data,
                            .count = count,
                            .dtype = dtype,
                            .root = peer,
                            .communicator = communicator,
                            .stream = stream});
}

EXPORT int ncclRecv(void* data, size_t count, int dtype, int peer, Communicator* communicator,
                    void* stream) {
  return submit((Operation){.kind = RECEIVE,
                            .receive = data,
                            .count = count,
                            .dtype = dtype,
                            .root = peer,
                            .communicator = communicator,
                            .stream = stream});
}

EXPORT int ncclCommDestroy(Communicator* communicator) {
  if (communicator == NULL) {
    return INVALID_ARGUMENT;
  }
  drop_use(communicator);
  return SUCCESS;
}

EXPORT int ncclCommAbort(Communicator* communicator) {
  if (communicator == NULL) {
    return INVALID_ARGUMENT;
  }
  __atomic_store_n(&communicator->aborted, 1, __ATOMIC_RELEASE);
  drop_use(communicator);
  return SUCCESS;
}
