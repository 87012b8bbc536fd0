/* start.h - the start of the runtime, and forks. Thread-safe. */
#ifndef SOFT_RUNTIME_START_H
#define SOFT_RUNTIME_START_H

#include <pthread.h>
#include <stdbool.h>

#include "hip/hip_types.h"

/* Starts the runtime on the first call of any function; cheap afterwards. */
hipError_t soft_start(void);
/* True in a child that was forked when the runtime had started, or was starting: nothing works, and
 * no lock may be touched. */
bool soft_is_forked(void);

/* What start.c needs of the other parts, so that it depends on none of them (parts.c). */
struct soft_parts {
    hipError_t (*start)(void); /* once, under a lock, signals blocked */
    void (*each_lock)(void (*hold)(pthread_mutex_t *lock)); /* locks that a fork must take */
    void (*forget)(void);                                   /* in a child: errors of the parent */
};
void soft_start_set_parts(const struct soft_parts *parts);

/* 5, 6 or 7: which ABI the exported library speaks (src/soft/entry). */
int soft_hip_major(void);

#endif
