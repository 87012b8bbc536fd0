/* vclock.h - vector clocks: how far each lane had come.
 *
 * A lane is a sequence of operations that run one after the other: a stream, or a branch of a
 * graph. Its operations are numbered from 1. A vector clock says of every lane up to which
 * operation something is known to have happened; operation (lane, n) is before a moment if the
 * moment's clock has at least n there.
 *
 * Host threads have no lanes: what a thread knows is a vector clock, and the recording does not
 * show what it does between its calls.
 *
 * A zeroed struct vclock is the clock of the beginning. Not thread-safe. */
#ifndef VERDICT_VCLOCK_H
#define VERDICT_VCLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct vclock {
    uint32_t *at; /* by lane; those beyond size are 0 */
    uint32_t size, room;
};

static inline uint32_t vclock_get(const struct vclock *c, uint32_t lane) {
    return lane < c->size ? c->at[lane] : 0;
}

static inline bool vclock_covers(const struct vclock *c, uint32_t lane, uint32_t number) {
    return vclock_get(c, lane) >= number;
}

/* All of these return false, with nothing changed, if there is no memory, or the replay has cost
 * too much (effort.h). */

/* Lane goes up to number, if it is not there yet. */
bool vclock_raise(struct vclock *c, uint32_t lane, uint32_t number);

/* c takes in all that from knows. */
bool vclock_join(struct vclock *c, const struct vclock *from);

/* c becomes a copy. */
bool vclock_copy(struct vclock *c, const struct vclock *from);

/* Does c know all that other knows? */
bool vclock_includes(const struct vclock *c, const struct vclock *other);

void vclock_free(struct vclock *c);

#endif
