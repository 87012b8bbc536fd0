/* op.h - one queued operation: a copy, a fill, a launch, a host function, an event's record.
 *
 * An operation belongs to its builder until it is submitted, then to the scheduler, which frees it.
 * Not thread-safe: only its owner uses an operation. */
#ifndef SOFT_RUNTIME_OP_H
#define SOFT_RUNTIME_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hip/hip_types.h"
#include "soft/runtime/memory.h"

struct soft_event;
struct soft_graph_block;
struct soft_function; /* function.h */
struct soft_piece;
struct soft_stream;

struct soft_dep {
    struct soft_stream *stream;
    uint64_t seq;
};

enum soft_op_kind {
    SOFT_OP_COPY,
    SOFT_OP_FILL,
    SOFT_OP_LAUNCH,
    SOFT_OP_PIECE,       /* several launches: struct soft_piece */
    SOFT_OP_HOST,        /* a host function: runs on a thread of its own, may block */
    SOFT_OP_RECORD,      /* event record */
    SOFT_OP_BARRIER,     /* only waits for its dependencies */
    SOFT_OP_COMMIT,      /* hipMallocAsync */
    SOFT_OP_UNMAP,       /* hipFreeAsync */
    SOFT_OP_GRAPH_ALLOC, /* a graph's allocation node: graph_block.h */
    SOFT_OP_GRAPH_FREE,
};

/* Rectangles: a plain copy has height = depth = 1. Addresses are the program's. */
struct soft_copy {
    uint64_t dst, src;
    size_t width, height, depth; /* bytes, rows, slices */
    size_t dst_pitch, src_pitch; /* bytes from row to row */
    size_t dst_slice, src_slice; /* bytes from slice to slice */
};

struct soft_fill {
    uint64_t dst;
    size_t width, height, depth; /* elements, rows, slices */
    size_t pitch, slice;         /* bytes */
    uint32_t value, element;     /* element: 1, 2 or 4 bytes */
};

struct soft_launch {
    struct soft_function *function;
    uint32_t grid[3], block[3]; /* blocks; threads per block */
    uint32_t shared_bytes;
    bool cooperative; /* groups may wait for each other */
};

enum soft_value_how {
    SOFT_VALUE_WRITE,
    SOFT_VALUE_WAIT_GTE,
    SOFT_VALUE_WAIT_EQ,
    SOFT_VALUE_WAIT_AND,
    SOFT_VALUE_WAIT_NOR
};

/* A value in memory that a stream waits for or writes. */
struct soft_value {
    uint64_t addr, value, mask;
    uint32_t bytes; /* 4 or 8; 0: none */
    enum soft_value_how how;
};

/* One of the three. */
struct soft_host_call {
    struct soft_value value;                                             /* value.c */
    void (*fn)(void *user);                                              /* hipLaunchHostFunc */
    void (*callback)(hipStream_t stream, hipError_t status, void *user); /* hipStreamAddCallback */
    void *user;
    hipStream_t stream;
};

enum { SOFT_OP_DEPS = 4, SOFT_OP_BYTES = 256 };

/* A graph node keeps one as a template and submits copies. */
struct soft_op {
    struct soft_op *next;      /* in its stream */
    struct soft_op *host_next; /* among host functions whose turn has come */
    struct soft_stream *stream;
    uint64_t seq;  /* in its stream, from 1 */
    uint64_t tag;  /* greta_soft_tag of the submitting thread */
    uint64_t node; /* of a graph's operation: the same of the thread that captured it, or its node
                    * (GRETA_SOFT_NODE_ADDED) */
    const char *what; /* HIP function or kernel name, static or owned by the function */
    enum soft_op_kind kind;
    bool running;
    bool stuck;       /* running for so long that lazy no longer waits for it */
    bool pageable;    /* a copy with pageable host memory on one side */
    bool device_only; /* a copy or fill that touches device memory only */
    int device;       /* whose error it raises */

    uint32_t dep_count, dep_room;
    struct soft_dep *deps; /* deps_inline or on the heap */

    union {
        struct soft_copy copy;
        struct soft_fill fill;
        struct soft_launch launch;
        struct soft_host_call host;
        struct {
            struct soft_event *event;
            uint64_t generation;
            struct soft_event_shared *shared; /* event.h; NULL: of this process alone */
            uint64_t number;
        } record;
        struct soft_block *block;
        struct soft_piece *piece;
        struct soft_graph_block *graph_block; /* a user of it */
    } u;

    uint32_t bytes;      /* of kernel arguments in data */
    unsigned char *data; /* data_inline or on the heap */

    /* Cleared up to here in a new operation: what follows is written before it is read. */
    struct soft_dep deps_inline[SOFT_OP_DEPS];
    unsigned char data_inline[SOFT_OP_BYTES];
};

struct soft_op *soft_op_new(enum soft_op_kind kind, const char *what); /* NULL: no memory */
struct soft_op *soft_op_clone(const struct soft_op *op); /* payload only, not the dependencies */
void soft_op_free(struct soft_op *op);
void soft_op_free_list(struct soft_op *first, struct soft_op *last); /* linked by next */
/* The operation of a graph's allocation or free node, which takes the caller's place as a user of
 * the block. Without memory it fails, and the caller's use of the block ends too. */
hipError_t soft_op_graph_block(struct soft_op **out, struct soft_graph_block *block, bool frees);
/* Room for n bytes in op->data; false without memory. */
bool soft_op_reserve(struct soft_op *op, uint32_t n);
/* Adds a dependency to an operation that is not yet submitted; false without memory. */
bool soft_op_depend(struct soft_op *op, struct soft_stream *stream, uint64_t seq);

/* Kernels that are queued as one operation: a launch of a graph that has nothing else.
 *
 * A piece is immutable and shared: the executable graph keeps one, and every launch of it that is
 * under way. Thread-safe. */
struct soft_piece {
    _Atomic uint32_t users;
    uint32_t count, room;
    struct soft_op *op[]; /* launches, in the order in which they run */
};

struct soft_piece *soft_piece_new(uint32_t room); /* NULL: no memory */
/* Takes over a launch, which there is room for. */
void soft_piece_add(struct soft_piece *piece, struct soft_op *launch);
void soft_piece_drop(struct soft_piece *piece); /* the last user frees it; NULL is fine */

/* An operation that runs the piece, as one more user; NULL: no memory. */
struct soft_op *soft_piece_op(struct soft_piece *piece);

#endif
