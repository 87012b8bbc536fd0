/* shadow.h - who last touched which bytes.
 *
 * For every byte that operations use: the last write, and the reads since then that are not ordered
 * among themselves, as (lane, number) pairs that a vector clock can be asked about. That is enough
 * to find a race at its second access: an access collides if nothing orders it after the last
 * write, a write also if nothing orders it after one of the reads. (What came before the last write
 * was compared with that write when it happened.)
 *
 * Representation: disjoint segments of bytes with equal history in a B+ tree, so that a buffer that
 * is always used as a whole costs one segment, however big and however often. A write makes its
 * range one segment; a read splits segments at its ends. The reads of a segment are one mark inline
 * and, where several lanes read at the same time, a list.
 *
 * Options rejected: a cell for every byte or word (8 GiB of weights are one segment here), a
 * balanced binary tree (twenty cache misses where this has four).
 *
 * Not thread-safe. */
#ifndef VERDICT_SHADOW_H
#define VERDICT_SHADOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "verdict/vclock.h"

/* What kind of operation left a mark. */
enum shadow_what {
    SHADOW_COPY,
    SHADOW_SET,
    SHADOW_LAUNCH,
    SHADOW_ALLOC, /* stream-ordered allocation: orders like a write, but defines no bytes */
    SHADOW_FREE,
    SHADOW_HOST,
};

enum { SHADOW_LANES_MAX = 1 << 24 };

/* One access: operation `number` of a lane. number 0: none. */
struct shadow_mark {
    uint64_t seq; /* the operation's event */
    uint32_t number;
    uint32_t lane : 24;
    uint32_t what : 8; /* enum shadow_what */
};

typedef struct shadow shadow;

/* NULL without memory. */
shadow *shadow_open(void);
void shadow_close(shadow **s);

struct shadow_conflict {
    struct shadow_mark other;
    bool other_writes;
    uint64_t start, end; /* the bytes in common */
};

enum { SHADOW_CONFLICTS = 4 };

struct shadow_answer {
    uint64_t pairs, copy_pairs; /* comparisons made; between two copies */
    uint64_t undefined;         /* of a read: bytes that nothing had written */
    uint64_t undefined_at;      /* the first of them */
    uint64_t longest;           /* the most of them in a row */
    uint64_t undefined_end;     /* where the last ones end */
    uint64_t row;               /* and how many in a row they are */
    unsigned conflicts;         /* how many of conflict[] are set; more are left out */
    struct shadow_conflict conflict[SHADOW_CONFLICTS];
};

struct shadow_access {
    uint64_t start, end; /* start < end */
    struct shadow_mark me;
    bool writes;
    const struct vclock *known; /* what is before this access */
    /* Asked about accesses that known does not cover: false if they are ordered nevertheless. */
    bool (*unordered)(const struct shadow_mark *other, void *user);
    void *user;
};

/* Compares an access with what is there, adds to *answer, and enters it. False without memory. */
bool shadow_touch(shadow *s, const struct shadow_access *a, struct shadow_answer *answer);

/* Only compares. */
void shadow_compare(shadow *s, const struct shadow_access *a, struct shadow_answer *answer);

/* Forgets [start, end): new memory lies there. False without memory. */
bool shadow_clear(shadow *s, uint64_t start, uint64_t end);

size_t shadow_segments(const shadow *s);

/* Reads were left out, because the map had become too big: no proof over all of them is possible.
 */
bool shadow_is_saturated(const shadow *s);

#endif
