/* piece.h - kernels that are queued as one operation: a launch of a graph that has nothing else.
 *
 * A piece is immutable and shared: the executable graph keeps one, and every launch of it that is
 * under way. Thread-safe. */
#ifndef SOFT_RUNTIME_PIECE_H
#define SOFT_RUNTIME_PIECE_H

#include <stdint.h>

#include "soft/runtime/op.h"

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
