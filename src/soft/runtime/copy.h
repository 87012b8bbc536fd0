/* copy.h - copies and fills. Builders return an operation that the caller owns. Thread-safe. */
#ifndef SOFT_RUNTIME_COPY_H
#define SOFT_RUNTIME_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "hip/hip_types.h"
#include "soft/runtime/op.h"

/* Check the arguments as HIP does and return the error a HIP call would; on success *out is an
 * operation ready for soft_submit(). */
hipError_t soft_op_copy(struct soft_op **out, const char *what, const struct soft_copy *copy,
                        hipMemcpyKind kind);
hipError_t soft_op_fill(struct soft_op **out, const char *what, const struct soft_fill *fill);

/* The rectangle of a hipMemcpy3DParms; the second is that of one with arrays. */
hipError_t soft_copy_from_3d(const hipMemcpy3DParms *params, struct soft_copy *out);
hipError_t soft_copy_from_3d_arrays(const hipMemcpy3DParms *params, struct soft_copy *out);

/* Queues a copy as the call named `what` does, and waits for it if such a call does. */
hipError_t soft_copy_queue(const char *what, const struct soft_copy *copy, hipMemcpyKind kind,
                           hipStream_t stream, bool async);
/* Queues a copy or a fill that is built already, and waits in the same way; owns it. */
hipError_t soft_copy_finish(struct soft_stream *stream, struct soft_op *op, bool async);
/* The same for the driver's description of a rectangle, with or without arrays. */
hipError_t soft_copy_param_2d(const char *what, const hip_Memcpy2D *p, hipStream_t stream,
                              bool async);

/* Run the payload on this thread; false with address and kind of a bad access. */
bool soft_copy_run(const struct soft_copy *copy, uint64_t *address, int *kind);
bool soft_fill_run(const struct soft_fill *fill, uint64_t *address, int *kind);

#endif
