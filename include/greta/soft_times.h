/* greta/soft_times.h - where the time of native kernels on the software device goes: per kernel,
 * and per thread computing and waiting for the others; and how often threads of the device sleep
 * while there is work. Looked up with dlsym(), like all of greta/soft.h. All functions may be
 * called from any thread. */
#ifndef GRETA_SOFT_TIMES_H
#define GRETA_SOFT_TIMES_H

#include <greta/soft.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { GRETA_SOFT_TIMES_THREADS = 64 };

struct greta_soft_kernel_time {
    const char *name; /* the kernel's own */
    uint64_t launches;
    uint64_t wall_ns; /* from the beginning of its launches to their end */
    unsigned threads; /* of the launch that used the most, at most GRETA_SOFT_TIMES_THREADS */
    uint64_t computing_ns[GRETA_SOFT_TIMES_THREADS]; /* computing, by thread; the rest of wall_ns it
                                                        waited */
};

/* Clears the times and starts timing launches (on != 0), or stops it. */
GRETA_SOFT_API void greta_soft_time_kernels(int on);

/* Copies up to `room` kernels in the order of their first launch; returns how many there are. */
GRETA_SOFT_API unsigned greta_soft_kernel_times(struct greta_soft_kernel_time *out, unsigned room);

/* How many times since the start of the process a thread slept, or woke another, while operations
 * were queued: the device's own threads, and those of the program that wait for it. */
GRETA_SOFT_API uint64_t greta_soft_futex_calls(void);

#ifdef __cplusplus
}
#endif
#endif
