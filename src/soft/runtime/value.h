/* value.h - stream memory operations: hipStreamWaitValue and hipStreamWriteValue. Thread-safe. */
#ifndef SOFT_RUNTIME_VALUE_H
#define SOFT_RUNTIME_VALUE_H

#include "soft/runtime/op.h"

/* Writes the value of a host operation, or returns when it is there; blocks. */
void soft_value_run(const struct soft_op *op);

/* The stream waits until the 64 bits at `at`, in memory that the device reaches, are at least
 * `value`. */
hipError_t soft_value_await(struct soft_stream *stream, const char *what, const void *at,
                            uint64_t value);

#endif
