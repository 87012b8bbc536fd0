/* op_run.h - running operations. The scheduler is given soft_op_run() when the runtime starts. */
#ifndef SOFT_RUNTIME_OP_RUN_H
#define SOFT_RUNTIME_OP_RUN_H

#include "soft/runtime/op.h"

/* Runs one operation's payload on this thread (no dependencies, no queue). Faults are raised. */
void soft_op_run(struct soft_op *op);

#endif
