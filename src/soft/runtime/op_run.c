/* op_run.c - how an operation is run: by the part of the runtime that its kind belongs to. Above
 * all of them, so that building and queueing an operation depends on none. */
#include <string.h>

#include "soft/runtime/copy.h"
#include "soft/runtime/error.h"
#include "soft/runtime/event.h"
#include "soft/runtime/fault_signal.h"
#include "soft/runtime/graph_block.h"
#include "soft/runtime/launch.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/op.h"
#include "soft/runtime/op_run.h"
#include "soft/runtime/pool.h"
#include "soft/runtime/slack.h"
#include "soft/runtime/value.h"

/* False with address and kind of a bad access. */
static bool run_payload(struct soft_op *op, uint64_t *address, int *kind) {
    switch (op->kind) {
    case SOFT_OP_COPY:
        return soft_copy_run(&op->u.copy, address, kind);
    case SOFT_OP_FILL:
        return soft_fill_run(&op->u.fill, address, kind);
    case SOFT_OP_LAUNCH:
        return soft_launch_run(op, address, kind);
    case SOFT_OP_RECORD:
        soft_event_completed(op->u.record.event, op->u.record.generation, op->u.record.shared,
                             op->u.record.number);
        break;
    case SOFT_OP_COMMIT:
        if (soft_memory_commit(op->u.block) != hipSuccess)
            soft_error_raise(op->device, hipErrorOutOfMemory);
        break;
    case SOFT_OP_UNMAP:
        soft_memory_free(op->u.block);
        break;
    case SOFT_OP_GRAPH_ALLOC:
        if (!soft_graph_block_commit(op->u.graph_block))
            soft_error_raise(op->device, hipErrorOutOfMemory);
        break;
    case SOFT_OP_GRAPH_FREE:
        soft_graph_block_withdraw(op->u.graph_block);
        break;
    case SOFT_OP_HOST:
    case SOFT_OP_PIECE:
    case SOFT_OP_BARRIER:
        break;
    }
    return true;
}

/* A host function is the program's code: its faults are the program's. A stream callback is told
 * about a device error, a host function is not called after one. */
static void run_host(const struct soft_op *op, bool failed) {
    const struct soft_host_call *call = &op->u.host;
    if (call->value.bytes) {
        if (!failed)
            soft_value_run(op);
    } else if (call->callback)
        call->callback(call->stream, failed ? hipErrorIllegalAddress : hipSuccess, call->user);
    else if (!failed)
        call->fn(call->user);
}

/* A launch as if it had been queued by itself. Its arguments stay where they are. */
static void run_one(const struct soft_op *op, const struct soft_op *launch) {
    struct soft_op one;
    memcpy(&one, launch, offsetof(struct soft_op, deps_inline));
    one.deps = one.deps_inline;
    one.stream = op->stream;
    one.device = op->device;
    one.seq = op->seq;
    one.tag = op->tag;
    soft_op_run(&one);
}

static void run_piece(const struct soft_op *op) {
    const struct soft_piece *p = op->u.piece;
    soft_pool_hold();
    for (uint32_t i = 0; i < p->count; i++)
        run_one(op, p->op[i]);
    soft_pool_release();
}

void soft_op_run(struct soft_op *op) {
    bool failed = soft_error_raised(op->device);
    uint64_t address;
    int kind;
    if (op->kind == SOFT_OP_HOST)
        run_host(op, failed);
    else if (op->kind == SOFT_OP_PIECE)
        run_piece(op);
    else if (failed)
        soft_launch_skipped(op);
    else if (!run_payload(op, &address, &kind))
        soft_fault_report(op, address, kind);
    else
        soft_launch_done(op);
}
