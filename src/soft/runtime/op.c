/* op.c - operations and pieces: their memory. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/spin.h"
#include "soft/runtime/graph_block.h"
#include "soft/runtime/op.h"
#include "soft/runtime/stream.h"

/* Freed operations wait here for the next soft_op_new: queueing a launch must not cost a malloc on
 * one thread and a free on another. */
static struct spin spare_lock;
static struct soft_op *spare;
static unsigned spare_count;
enum { SPARE_MAX = 4096 };

static struct soft_op *take_spare(void) {
    spin_lock(&spare_lock);
    struct soft_op *op = spare;
    if (op) {
        spare = op->next;
        spare_count--;
    }
    spin_unlock(&spare_lock);
    return op;
}

/* Keeps a list of operations for reuse; those beyond the limit are freed. */
static void keep_spare(struct soft_op *first, struct soft_op *last, unsigned count) {
    spin_lock(&spare_lock);
    bool keep = spare_count < SPARE_MAX;
    if (keep) {
        last->next = spare;
        spare = first;
        spare_count += count;
    }
    spin_unlock(&spare_lock);
    for (struct soft_op *op = first, *next; !keep; op = next) {
        next = op->next;
        free(op);
        if (op == last)
            break;
    }
}

static bool uses_graph_block(const struct soft_op *op) {
    return op->kind == SOFT_OP_GRAPH_ALLOC || op->kind == SOFT_OP_GRAPH_FREE;
}

struct soft_op *soft_op_new(enum soft_op_kind kind, const char *what) {
    struct soft_op *op = take_spare();
    if (!op)
        op = malloc(sizeof *op);
    if (!op)
        return NULL;
    memset(op, 0, offsetof(struct soft_op, deps_inline));
    op->kind = kind;
    op->what = what;
    op->deps = op->deps_inline;
    op->dep_room = SOFT_OP_DEPS;
    op->data = op->data_inline;
    return op;
}

void soft_op_free_list(struct soft_op *first, struct soft_op *last) {
    unsigned count = 1;
    for (struct soft_op *op = first;; op = op->next, count++) {
        if (op->kind == SOFT_OP_PIECE)
            soft_piece_drop(op->u.piece);
        else if (uses_graph_block(op) && op->u.graph_block)
            soft_graph_block_drop(op->u.graph_block);
        if (op->deps != op->deps_inline)
            free(op->deps);
        if (op->data != op->data_inline)
            free(op->data);
        if (op == last)
            break;
    }
    keep_spare(first, last, count);
}

void soft_op_free(struct soft_op *op) {
    soft_op_free_list(op, op);
}

bool soft_op_reserve(struct soft_op *op, uint32_t n) {
    if (n > SOFT_OP_BYTES) {
        unsigned char *data = malloc(n);
        if (!data)
            return false;
        op->data = data;
    }
    op->bytes = n;
    return true;
}

struct soft_op *soft_op_clone(const struct soft_op *from) {
    struct soft_op *op = soft_op_new(from->kind, from->what);
    if (!op)
        return NULL;
    op->u = from->u;
    op->tag = from->tag;
    op->node = from->node;
    op->pageable = from->pageable;
    op->device_only = from->device_only;
    if (!soft_op_reserve(op, from->bytes)) {
        op->kind = SOFT_OP_BARRIER; /* it owns nothing yet */
        soft_op_free(op);
        return NULL;
    }
    memcpy(op->data, from->data, from->bytes);
    if (uses_graph_block(op))
        soft_graph_block_share(op->u.graph_block);
    return op;
}

bool soft_op_depend(struct soft_op *op, struct soft_stream *stream, uint64_t seq) {
    if (atomic_load_explicit(&stream->completed, memory_order_acquire) >= seq)
        return true;
    if (op->dep_count == op->dep_room) {
        struct soft_dep *more = malloc(2 * op->dep_room * sizeof *more);
        if (!more)
            return false;
        memcpy(more, op->deps, op->dep_count * sizeof *more);
        if (op->deps != op->deps_inline)
            free(op->deps);
        op->deps = more;
        op->dep_room *= 2;
    }
    op->deps[op->dep_count++] = (struct soft_dep){ stream, seq };
    return true;
}

hipError_t soft_op_graph_block(struct soft_op **out, struct soft_graph_block *g, bool frees) {
    *out = frees ? soft_op_new(SOFT_OP_GRAPH_FREE, "hipGraphMemFreeNode")
                 : soft_op_new(SOFT_OP_GRAPH_ALLOC, "hipGraphMemAllocNode");
    if (!*out) {
        soft_graph_block_drop(g);
        return hipErrorOutOfMemory;
    }
    (*out)->u.graph_block = g;
    return hipSuccess;
}

/* ---- pieces --------------------------------------------------------------------------------- */

struct soft_piece *soft_piece_new(uint32_t room) {
    struct soft_piece *p = malloc(sizeof *p + room * sizeof(struct soft_op *));
    if (!p)
        return NULL;
    atomic_init(&p->users, 1);
    p->count = 0;
    p->room = room;
    return p;
}

void soft_piece_add(struct soft_piece *p, struct soft_op *launch) {
    p->op[p->count++] = launch;
}

void soft_piece_drop(struct soft_piece *p) {
    if (!p || atomic_fetch_sub(&p->users, 1) != 1)
        return;
    for (uint32_t i = 0; i < p->count; i++)
        soft_op_free(p->op[i]);
    free(p);
}

struct soft_op *soft_piece_op(struct soft_piece *p) {
    struct soft_op *op = soft_op_new(SOFT_OP_PIECE, "hipGraphLaunch");
    if (!op)
        return NULL;
    atomic_fetch_add(&p->users, 1);
    op->u.piece = p;
    return op;
}
