/* handle.h - handles that can be checked.
 *
 * Objects handed to programs as opaque pointers come from a pool at fixed addresses that are never
 * unmapped, and a freed one is reused last, so that a stale or foreign handle is told from a live
 * one without following it. Every pooled struct starts with struct soft_handle. A pool owns its
 * objects and lives as long as the process. Thread-safe. */
#ifndef SOFT_RUNTIME_HANDLE_H
#define SOFT_RUNTIME_HANDLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct soft_handle {
    _Atomic uint32_t live; /* 1 while the program may use it */
    uint32_t index;
};

struct soft_handles;
enum { SOFT_HANDLES_MAX = 16 }; /* pools */
struct soft_handles *soft_handles_new(size_t object_size, size_t capacity);
/* Pool number i in order of creation, or NULL; and its lock. For forks. */
struct soft_handles *soft_handles_number(unsigned i);
pthread_mutex_t *soft_handles_lock(struct soft_handles *pool);
void *soft_handle_alloc(struct soft_handles *pool); /* zeroed, live; NULL when full */
/* The two halves of alloc, for an object that others may still look at when it is reused: as its
 * last user left it, at first zeroed, or NULL when full; and live. */
void *soft_handle_take(struct soft_handles *pool);
void soft_handle_open(void *object);
void soft_handle_free(struct soft_handles *pool, void *object);
/* The two halves of free, for an object that outlives its handle: no longer valid; reusable. */
bool soft_handle_close(void *object); /* false if it was closed already */
void soft_handle_recycle(struct soft_handles *pool, void *object);
bool soft_handle_valid(const struct soft_handles *pool, const void *object);
/* The object with that index, live or not; NULL if none has been made. */
void *soft_handle_at(struct soft_handles *pool, size_t index);
/* Calls visit for every live object. */
void soft_handles_each(struct soft_handles *pool, void (*visit)(void *object, void *user),
                       void *user);

#endif
