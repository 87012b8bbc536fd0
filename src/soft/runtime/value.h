/* value.h - stream memory operations: hipStreamWaitValue and hipStreamWriteValue. Thread-safe. */
#ifndef SOFT_RUNTIME_VALUE_H
#define SOFT_RUNTIME_VALUE_H

#include "soft/runtime/op.h"

/* Writes the value, or returns when it is there; blocks. */
void soft_value_run(const struct soft_value *value, int device);

#endif
