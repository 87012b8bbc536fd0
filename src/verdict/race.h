/* race.h - one access as it is compared with others; shared by races.c and the race_*.c files.
 *
 *   races.c           exact ranges, launches that may go anywhere, stream-ordered memory
 *   race.c            two accesses in no order as a finding: its hypothesis and its sentence
 *   race_vague.c      kernels of which only the pointers are known
 *   race_undefined.c  reads of bytes that nobody wrote
 *   race_host.c       accesses of the host */
#ifndef VERDICT_RACE_H
#define VERDICT_RACE_H

#include "verdict/replay.h"

/* Rows of one access that the device saw. */
enum { RACE_SEEN_ROWS_MAX = 1 << 20 };

/* A kernel that got a pointer into a block. */
struct vague {
    struct shadow_mark mark;
    uint64_t pointer, limit; /* it may touch [pointer, limit) */
    uint64_t hash;
    uint32_t kernel;
    bool reads, writes; /* known; neither: unknown */
    bool guessed;
    bool at_most; /* which of the bytes it touched is not known */
};

struct race {
    struct replay *r;
    const struct op *op;
    struct thread *t;
    struct vclock *clock;
    struct shadow_mark me;
    const struct use *use;
    struct block *block;
};

/* ---- race.c ---------------------------------------------------------------------------------- */

/* The access x and another one in no order, at [start, end), as a finding. */
struct found race_found(struct race *x, const struct shadow_mark *other, bool other_writes,
                        uint64_t start, uint64_t end);
/* Enters a finding of exact accesses. */
void race_add(struct race *x, const struct shadow_conflict *c);
/* True where an order that greta does not understand may be what orders the two operations of f;
 * notes the doubt. clock: what is before the later one; NULL: not known. */
bool race_cannot_tell(struct replay *r, const struct space *s, const struct vclock *clock,
                      const struct found *f);
/* For shadow_access: is x (user, a struct race) unordered with an access that no clock covers? */
bool race_is_unordered(const struct shadow_mark *other, void *user);
/* The same of an access of the host. Of one that hit a protected page only the first byte is known:
 * "offset 12 of a block of 4 KiB"; its len is race_host_len()'s 0. */
struct sentence_value race_host_amount(struct replay *r, const struct found *f);
uint64_t race_host_len(uint64_t start, uint64_t end);
bool race_is_host_family(unsigned family);

/* ---- race_vague.c ---------------------------------------------------------------------------- */

/* A kernel got the pointer x->use. */
void race_vague_check(struct race *x);
/* Compares an exact range with the kernels that got pointers into its block. */
void race_vague_compare(struct race *x, uint64_t start, uint64_t end, bool writes);
/* Copies, sets and known footprints of a lane: the part of the block that they took up so far. */
void race_vague_widen(struct race *x, uint64_t low, uint64_t high);
bool race_vague_hull(const struct block_use *u, uint32_t lane, uint64_t *low, uint64_t *high);

/* Does the operation wait with the block as a suspect? */
bool race_vague_suspects(const struct block *b, uint64_t culprit);

/* ---- race_undefined.c ------------------------------------------------------------------------ */

/* A read of `total` bytes; a says how many of them nothing has written; is_row: a whole row is. */
void race_undefined_exact(struct race *x, const struct shadow_answer *a, uint64_t total,
                          bool is_row);
/* A kernel reads through a pointer; nothing has written `undefined` of the bytes it points to. */
void race_undefined_vague(struct race *x, const struct vague *mine, uint64_t undefined);

#endif
