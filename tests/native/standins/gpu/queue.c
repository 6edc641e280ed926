#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "standin.h"

typedef struct Item {
  Work work;
  void* argument;
  struct Item* next;
} Item;

struct Queue {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  Item* first;
  Item** last;
  int busy;
  int closing;
  int device;
  Queue* next;
};

struct Mark {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  unsigned long asked;
  unsigned long reached;
  int timing;
  int uses; /* the handle, and work that will touch it */
  double when;
};

static pthread_mutex_t queues_lock = PTHREAD_MUTEX_INITIALIZER;
static Queue* queues;

static void* work_off(void* argument) {
  Queue* queue = argument;
  pthread_mutex_lock(&queue->lock);
  for (;;) {
    while (queue->first == NULL && !queue->closing) {
      pthread_cond_wait(&queue->changed, &queue->lock);
    }
    if (queue->first == NULL) {
      break;
    }
    Item* item = queue->first;
    queue->first = item->next;
    if (queue->first == NULL) {
      queue->last = &queue->first;
    }
    queue->busy = 1;
    pthread_mutex_unlock(&queue->lock);
    item->work(item->argument);
    free(item);
    pthread_mutex_lock(&queue->lock);
    queue->busy = 0;
    pthread_cond_broadcast(&queue->changed);
  }
  pthread_mutex_unlock(&queue->lock);
  return NULL;
}

int queue_create(int device, Queue** made) {
  Queue* queue = calloc(1, sizeof *queue);
  if (queue == NULL) {
    return OUT_OF_MEMORY;
  }
  pthread_mutex_init(&queue->lock, NULL);
  pthread_cond_init(&queue->changed, NULL);
  queue->last = &queue->first;
  queue->device = device;
  if (pthread_create(&queue->thread, NULL, work_off, queue) != 0) {
    free(queue);
    return OUT_OF_MEMORY;
  }
  pthread_mutex_lock(&queues_lock);
  queue->next = queues;
  queues = queue;
  pthread_mutex_unlock(&queues_lock);
  *made = queue;
  return OK;
}

int queue_destroy(Queue* queue) {
  if (queue == NULL) {
    return INVALID_HANDLE;
  }
  pthread_mutex_lock(&queues_lock);
  for (Queue** at = &queues; *at != NULL; at = &(*at)->next) {
    if (*at == queue) {
      *at = queue->next;
      break;
    }
  }
  pthread_mutex_unlock(&queues_lock);
  pthread_mutex_lock(&queue->lock);
  queue->closing = 1;
  pthread_cond_broadcast(&queue->changed);
  pthread_mutex_unlock(&queue->lock);
  pthread_join(queue->thread, NULL);
  free(queue);
  return OK;
}

int queue_push(Queue* queue, Work work, void* argument) {
  if (queue == NULL) {
    work(argument);
    return OK;
  }
  Item* item = calloc(1, sizeof *item);
  if (item == NULL) {
    return OUT_OF_MEMORY;
  }
  item->work = work;
  item->argument = argument;
  pthread_mutex_lock(&queue->lock);
  *queue->last = item;
  queue->last = &item->next;
  pthread_cond_broadcast(&queue->changed);
  pthread_mutex_unlock(&queue->lock);
  return OK;
}

int queue_drain(Queue* queue) {
  if (queue == NULL) {
    return OK;
  }
  pthread_mutex_lock(&queue->lock);
  while (queue->first != NULL || queue->busy) {
    pthread_cond_wait(&queue->changed, &queue->lock);
  }
  pthread_mutex_unlock(&queue->lock);
  return OK;
}

void queue_drain_device(int device) {
  pthread_mutex_lock(&queues_lock);
  for (Queue* queue = queues; queue != NULL; queue = queue->next) {
    if (queue->device == device) {
      queue_drain(queue);
    }
  }
  pthread_mutex_unlock(&queues_lock);
}

int queue_idle(Queue* queue) {
  if (queue == NULL) {
    return 1;
  }
  pthread_mutex_lock(&queue->lock);
  int idle = queue->first == NULL && !queue->busy;
  pthread_mutex_unlock(&queue->lock);
  return idle;
}

int mark_create(int timing, Mark** made) {
  Mark* mark = calloc(1, sizeof *mark);
  if (mark == NULL) {
    return OUT_OF_MEMORY;
  }
  pthread_mutex_init(&mark->lock, NULL);
  pthread_cond_init(&mark->changed, NULL);
  mark->timing = timing;
  mark->uses = 1;
  *made = mark;
  return OK;
}

static void drop_mark(Mark* mark) {
  int left = --mark->uses;
  pthread_mutex_unlock(&mark->lock);
  if (left == 0) {
    free(mark);
  }
}

int mark_destroy(Mark* mark) {
  if (mark == NULL) {
    return INVALID_HANDLE;
  }
  pthread_mutex_lock(&mark->lock);
  drop_mark(mark);
  return OK;
}

static void reach(void* argument) {
  Mark* mark = argument;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  pthread_mutex_lock(&mark->lock);
  mark->reached++;
  mark->when = (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
  pthread_cond_broadcast(&mark->changed);
  drop_mark(mark);
}

int mark_record(Mark* mark, Queue* queue) {
  if (mark == NULL) {
    return INVALID_HANDLE;
  }
  pthread_mutex_lock(&mark->lock);
  mark->asked++;
  mark->uses++;
  pthread_mutex_unlock(&mark->lock);
  return queue_push(queue, reach, mark);
}

typedef struct Waiting {
  Mark* mark;
  unsigned long until;
} Waiting;

static void wait_until(Mark* mark, unsigned long until) {
  while (mark->reached < until) {
    pthread_cond_wait(&mark->changed, &mark->lock);
  }
}

static void wait_in_queue(void* argument) {
  Waiting* waiting = argument;
  pthread_mutex_lock(&waiting->mark->lock);
  wait_until(waiting->mark, waiting->until);
  drop_mark(waiting->mark);
  free(waiting);
}

int mark_wait(Mark* mark) {
  if (mark == NULL) {
    return INVALID_HANDLE;
  }
  pthread_mutex_lock(&mark->lock);
  wait_until(mark, mark->asked);
  pthread_mutex_unlock(&mark->lock);
  return OK;
}

int mark_done(Mark* mark) {
  pthread_mutex_lock(&mark->lock);
  int done = mark->reached >= mark->asked;
  pthread_mutex_unlock(&mark->lock);
  return done;
}

int mark_elapsed(float* milliseconds, Mark* start, Mark* end) {
  if (start == NULL || end == NULL || !start->timing || !end->timing) {
    return INVALID_HANDLE;
  }
  if (!mark_done(start) || !mark_done(end)) {
    return NOT_READY;
  }
  if (start->reached == 0 || end->reached == 0) {
    return INVALID_HANDLE;
  }
  *milliseconds = (float)(end->when - start->when);
  return OK;
}

int queue_wait_mark(Queue* queue, Mark* mark) {
  if (mark == NULL) {
    return INVALID_HANDLE;
  }
  Waiting* waiting = calloc(1, sizeof *waiting);
  pthread_mutex_lock(&mark->lock);
  mark->uses++;
  waiting->mark = mark;
  waiting->until = mark->asked;
  pthread_mutex_unlock(&mark->lock);
  return queue_push(queue, wait_in_queue, waiting);
}
