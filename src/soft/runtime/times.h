/* times.h - the time that launches of native kernels take, and each thread's part in it, while
 * measuring is on (greta/soft_times.h). Thread-safe. */
#ifndef SOFT_RUNTIME_TIMES_H
#define SOFT_RUNTIME_TIMES_H

#include <stdbool.h>
#include <stdint.h>

bool soft_times_on(void);

/* A launch of `kernel` that took wall_ns; computing_ns[i] is thread i's part of it. */
void soft_times_add(const char *kernel, uint64_t wall_ns, unsigned threads,
                    const uint64_t *computing_ns);

#endif
