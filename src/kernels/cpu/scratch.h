/* scratch.h - memory that a kernel needs while it runs, kept by each thread for the next launch. */
#ifndef KERNELS_CPU_SCRATCH_H
#define KERNELS_CPU_SCRATCH_H

#include <stddef.h>

/* Uses that may overlap on one thread. */
enum scratch_use {
    SCRATCH_WEIGHTS,
    SCRATCH_TILES,
    SCRATCH_SUMS,
    SCRATCH_READY,
    SCRATCH_HEADS,
    SCRATCH_COUNT
};

/* At least `bytes` bytes, aligned to 64, with whatever was there before. Never NULL: a kernel has
 * no way to report a failure, so it aborts. */
void *scratch_need(enum scratch_use use, size_t bytes);

#endif
