/* hip_soft.h - the software device's functions beyond HIP, as one table.
 *
 * On ROCm all entries are NULL; in an older software device those that it lacks are. Portable code
 * checks an entry before it calls it. */
#ifndef HIP_HIP_SOFT_H
#define HIP_HIP_SOFT_H

#include <greta/soft.h>

struct hip_soft {
#define HIP_SOFT(name) __typeof__(greta_soft_##name) *name;
#include "hip/hip_soft.def"
#undef HIP_SOFT
};

/* What the library has of them; library NULL: nothing. */
void hip_soft_find(struct hip_soft *out, void *library);

#endif
