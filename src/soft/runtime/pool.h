/* pool.h - one job on all cores. One job runs at a time; others wait. Thread-safe. */
#ifndef SOFT_RUNTIME_POOL_H
#define SOFT_RUNTIME_POOL_H

#include <stdbool.h>
#include <stdint.h>

/* Calls fn(user, first, last, worker, workers) until 0 <= i < count is covered, on this thread and
 * the pool's. Returns when all calls have returned. */
typedef void (*soft_pool_fn)(void *user, uint64_t first, uint64_t last, unsigned worker,
                             unsigned workers);
void soft_pool_run(soft_pool_fn fn, void *user, uint64_t count);
/* The same with every call of fn in a soft_fault_guard(); false if one made a bad access. */
bool soft_pool_run_guarded(soft_pool_fn fn, void *user, uint64_t count, uint64_t *address,
                           int *kind);
/* The kernel that this thread's jobs are counted for from now on (times.h); NULL: none. */
void soft_pool_time_as(const char *kernel);
/* Between hold and release many jobs follow each other: workers stay awake (HOLD_NS in pool.c). */
void soft_pool_hold(void);
void soft_pool_release(void);
void soft_pool_set_threads(unsigned threads);

#endif
