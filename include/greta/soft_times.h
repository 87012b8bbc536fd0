/* greta/soft_times.h - where the time of native kernels on the software device goes: per kernel,
 * and per thread computing and waiting for the others. Looked up with dlsym(), like all of
 * greta/soft.h. Both functions may be called from any thread. */
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

#ifdef __cplusplus
}
#endif
#endif
