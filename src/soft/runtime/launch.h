/* launch.h - launches of native kernels and of machine code.
 * Builders return an operation that the caller owns. Thread-safe. */
#ifndef SOFT_RUNTIME_LAUNCH_H
#define SOFT_RUNTIME_LAUNCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <greta/soft.h>

#include "hip/hip_types.h"
#include "soft/runtime/function.h"
#include "soft/runtime/op.h"

/* Where an argument of `size` bytes goes in op->data when the ones before it end at `at`. */
static inline uint32_t soft_param_offset(uint32_t at, uint32_t size) {
    uint32_t lowest_bit = size & (~size + 1), align = lowest_bit < 8 ? lowest_bit : 8;
    return align ? (at + align - 1) / align * align : at;
}

/* Checks the arguments as HIP does and returns the error a HIP call would; on success *out is an
 * operation ready for soft_submit(). */
hipError_t soft_op_launch(struct soft_op **out, struct soft_function *function,
                          const uint32_t grid[3], const uint32_t block[3], uint32_t shared_bytes,
                          void **params, void **extra);

/* Runs the payload; false with address and kind of a bad access. */
bool soft_launch_run(const struct soft_op *op, uint64_t *address, int *kind);

const struct greta_soft_kernel *soft_kernel_find(const char *name);
/* The function's native twin is kernel; NULL: it has none. */
void soft_function_set_native(struct soft_function *f, const struct greta_soft_kernel *kernel);
/* The lock of the native kernels. For forks. */
pthread_mutex_t *soft_kernel_lock(void);

#endif
