/* host.h - host functions on a stream: hipLaunchHostFunc and hipStreamAddCallback.
 * Builders return an operation that the caller owns. Thread-safe. */
#ifndef SOFT_RUNTIME_HOST_H
#define SOFT_RUNTIME_HOST_H

#include "hip/hip_types.h"
#include "soft/runtime/op.h"

/* Checks the arguments as HIP does; on success *out is an operation ready for soft_submit(). */
hipError_t soft_op_host(struct soft_op **out, const char *what, const struct soft_host_call *call);

/* How a host function is run, and what follows it. Called once, before the first soft_host_queue().
 */
void soft_host_init(void (*run)(struct soft_op *op), void (*complete)(struct soft_op *op));
/* Runs a host function whose turn has come on a thread where it may block. */
void soft_host_queue(struct soft_op *op);

#endif
