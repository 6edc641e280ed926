#define _GNU_SOURCE
#include <string.h>

#include "collectives.h"

#define EXPORT __attribute__((visibility("default")))

enum { VERSION = 22703 }; /* 2.27.3 */

EXPORT int ncclGetVersion(int* version) {
  *version = VERSION;
  return SUCCESS;
}

EXPORT int ncclGetUniqueId(UniqueId* id) { return shared_new_id(id); }

EXPORT int ncclCommInitRank(Communicator** communicator, int size, UniqueId id, int rank) {
  return shared_join(&id, rank, size, communicator);
}

EXPORT int ncclCommUserRank(const Communicator* communicator, int* rank) {
  *rank = communicator->rank;
  return SUCCESS;
}

EXPORT int ncclCommCount(const Communicator* communicator, int* size) {
  *size = communicator->size;
  return SUCCESS;
}

EXPORT int ncclCommGetAsyncError(Communicator* communicator, int* status) {
  *status = __atomic_load_n(&communicator->error, __ATOMIC_ACQUIRE);
  return SUCCESS;
}

EXPORT const char* ncclGetErrorString(int status) {
  switch (status) {
    case SUCCESS: return "no error";
    case SYSTEM_ERROR: return "unhandled system error";
    case INVALID_ARGUMENT: return "invalid argument";
    case INVALID_USAGE: return "invalid usage";
    case REMOTE_ERROR: return "remote process exited or there was a network error";
    default: return "unknown result code";
  }
}

EXPORT const char* ncclGetLastError(Communicator* communicator) {
  (void)communicator;
  return "";
}

typedef struct Choice {
  int color;
  int key;
  UniqueId id;
} Choice;

EXPORT int ncclCommSplit(Communicator* communicator, int color, int key, Communicator** made,
                         void* configuration) {
  (void)configuration;
  Choice mine = {.color = color, .key = key};
  int status = shared_new_id(&mine.id);
  memcpy(communicator->shared->slots[communicator->rank], &mine, sizeof mine);
  if (status == SUCCESS) {
    status = shared_barrier(communicator);
  }
  if (status != SUCCESS) {
    return status;
  }
  /* A rank's place is how many of its colour come before it; the id is that of the lowest rank. */
  UniqueId id = mine.id;
  int size = 0, place = 0;
  for (int rank = communicator->size - 1; rank >= 0; --rank) {
    Choice other;
    memcpy(&other, communicator->shared->slots[rank], sizeof other);
    if (other.color == color) {
      size++;
      place += other.key < key || (other.key == key && rank < communicator->rank);
      id = other.id;
    }
  }
  status = shared_barrier(communicator);
  *made = NULL;
  if (status != SUCCESS || color < 0) {
    return status;
  }
  return shared_join(&id, place, size, made);
}
