/* launch.h - launches of native kernels and of machine code.
 * Builders return an operation that the caller owns. Thread-safe. */
#ifndef SOFT_RUNTIME_LAUNCH_H
#define SOFT_RUNTIME_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

#include "hip/hip_types.h"
#include "soft/runtime/function.h"
#include "soft/runtime/op.h"

/* Checks the arguments as HIP does and returns the error a HIP call would; on success *out is an
 * operation ready for soft_submit(). */
hipError_t soft_op_launch(struct soft_op **out, struct soft_function *function,
                          const uint32_t grid[3], const uint32_t block[3], uint32_t shared_bytes,
                          void **params, void **extra);

/* Runs the payload; false with address and kind of a bad access. */
bool soft_launch_run(const struct soft_op *op, uint64_t *address, int *kind);

#endif
