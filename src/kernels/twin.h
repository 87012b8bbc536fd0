/* twin.h - a kernel on the host and the same kernel on a device: how far apart are the results?
 *
 * The native code of src/kernels/cpu is the definition of every kernel; GPU code must agree with
 * it. Used by greta_infer --self-test and by the tests. One thread per kern_device. */
#ifndef KERNELS_TWIN_H
#define KERNELS_TWIN_H

#include "kernels/kern.h"

/* Runs a kernel on both with the same arguments, a struct kern_<kernel> whose views point at host
 * memory. Device buffers are exactly as large as the launch's footprint. Host memory stays as it
 * is.
 *
 * *distance is the largest difference in anything written, as a fraction of the root mean square of
 * what the host wrote there; infinity if one is not a number where the other is. For levels it is
 * the fraction of bytes that differ. RC_DEVICE if HIP fails, RC_REFUSED if the arguments do not
 * fit. */
NODISCARD enum rc twin_compare(kern_device *d, const struct hip_api *hip, enum kern_id id,
                               const void *arguments, double *distance, struct err *e);

#endif
