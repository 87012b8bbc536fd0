#include "soft/runtime/piece.h"

#include <stdatomic.h>
#include <stdlib.h>

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
