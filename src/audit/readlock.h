/* readlock.h - a lock for data that is read on every copy and written on every allocation.
 *
 * Readers count themselves in one of several counters, each on a cache line of its own and chosen
 * by thread, so that threads that only read do not slow each other down; a writer raises a flag and
 * waits for all counters to drain. A read section costs two uncontended atomic operations, a write
 * section a walk over the counters, which is nothing beside the allocation it stands for.
 *
 * Zero-initialised is unlocked. Not recursive; a reader must not become a writer. Sections are
 * short and never call out of the module. */
#ifndef AUDIT_READLOCK_H
#define AUDIT_READLOCK_H

#include <stdatomic.h>

#include "base/spin.h"

enum { READLOCK_SLOTS = 32 };

struct readlock {
    struct {
        _Alignas(64) atomic_uint readers;
    } slot[READLOCK_SLOTS];
    _Alignas(64) atomic_bool writing;
    struct spin writer;
};

/* Token for readlock_give: the counter that was used. */
typedef atomic_uint *readlock_token;

readlock_token readlock_take(struct readlock *l);
/* The same for callers that must not wait long, such as a signal handler that may have interrupted
 * the writer: NULL if a writer keeps the lock. */
readlock_token readlock_try(struct readlock *l);

static inline void readlock_give(readlock_token t) {
    atomic_fetch_sub_explicit(t, 1, memory_order_release);
}

void readlock_write_take(struct readlock *l);
void readlock_write_give(struct readlock *l);

#endif
