/* selftest.h - every kernel of a device against the CPU, on small examples: the first thing to run
 * on a GPU that greta has not seen before. */
#ifndef KERNELS_SELFTEST_H
#define KERNELS_SELFTEST_H

#include "kernels/kern.h"

struct selftest_line {
    const char *kernel;
    unsigned cases;
    double distance; /* the largest of the cases, in units of what is allowed: 1 is the limit */
    const char *why; /* why it could not be compared; NULL: it was */
};

/* Reports a line per kernel. RC_DEVICE if one is too far from the CPU or fails. */
NODISCARD enum rc selftest_run(kern_device *d, const struct hip_api *hip,
                               void (*report)(const struct selftest_line *line, void *user),
                               void *user, struct err *e);

#endif
