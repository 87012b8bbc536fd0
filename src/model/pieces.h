/* pieces.h - tensors cut into pieces that several threads take, one after the other.
 *
 * Pieces do not depend on the number of threads. A cursor is guarded by its owner's lock. */
#ifndef MODEL_PIECES_H
#define MODEL_PIECES_H

#include <stdint.h>

/* Where the next piece begins; zeroed: at the first. */
struct pieces {
    uint64_t tensor, first; /* number of the tensor; its element */
};

struct piece {
    uint64_t tensor, first, count; /* count: its number of elements */
};

/* The next piece, of at most `most` elements; the tensor it begins in has `elements`. */
struct piece pieces_take(struct pieces *p, uint64_t elements, uint64_t most);

/* Calls work(arg) on this thread and on others beside it, `threads` in all (0: as many as this
 * process may run on), and waits until all have returned. If the system cannot start so many
 * threads, fewer do the work. */
void pieces_work(int threads, void *(*work)(void *arg), void *arg);

#endif
