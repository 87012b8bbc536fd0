/* race.h - data races within one launch: accesses to the same bytes that nothing orders.
 *
 * A wave's own instructions are ordered; so are the lanes of one instruction, unless two of them
 * store different values to the same byte. Waves of a group are ordered by barriers. Otherwise
 * waves are ordered by what they say to each other through memory:
 *
 *   An atomic that writes releases what its wave had done when it last waited for its stores
 *   (s_waitcnt vmcnt(0), to which release fences compile), and a store does the same for whoever
 *   reads it with a load that bypasses the caches (glc, sc0, sc1: loads of atomics and of volatile
 *   variables). An atomic that returns a value, and such a load, acquire what was released at that
 *   address.
 *
 * Between groups, what one wave acquires counts for its whole group, and what it releases covers
 * all of it. So some races are missed; none is invented. Atomics, and loads past the caches, race
 * with nothing, because compilers turn atomic stores into plain ones, and begin loops of
 * compare-and-swap with plain loads. Two stores of the same value, such as to a flag that any
 * thread may raise, are no race: whichever comes last, the bytes are the same.
 *
 * One isa_race belongs to one launch. isa_race_access() and the instruction that it is about must
 * be one step as seen by other threads: the caller holds isa_race_lock() over both. The other
 * functions lock by themselves, or touch nothing that is shared. */
#ifndef ISA_RACE_H
#define ISA_RACE_H

#include "isa/isa.h"

struct isa_race;
struct isa_race_group;

/* How much is followed: accesses, one per lane, and bytes of memory that is accessed, in pages. */
struct isa_race_limits {
    uint64_t accesses, bytes;
};

/* limits: NULL for none but the machine's own. NULL without memory. */
struct isa_race *isa_race_open(uint32_t waves_per_group, const struct isa_race_limits *limits);
void isa_race_close(struct isa_race **r);

/* A limit was reached, or memory ran out: later accesses are not followed, and no race is reported.
 */
bool isa_race_is_full(const struct isa_race *r);
/* How many accesses were followed so far. */
uint64_t isa_race_accesses(const struct isa_race *r);

struct spin *isa_race_lock(struct isa_race *r);

/* A workgroup begins; its number among all of the launch. NULL without memory. */
struct isa_race_group *isa_race_begin(struct isa_race *r, uint64_t number);
void isa_race_end(struct isa_race_group **g);
/* All its waves have reached a barrier. */
void isa_race_barrier(struct isa_race_group *g);
/* All waves of all groups have reached a barrier of the grid: what was done is before what comes.
 */
void isa_race_grid_barrier(struct isa_race *r);
/* The wave has waited for its stores. */
void isa_race_wait(struct isa_race_group *g, uint32_t wave);

struct isa_race_side {
    uint64_t group; /* its number */
    uint64_t pc;
    uint32_t wave, lane;
    uint8_t kind; /* enum isa_access_kind */
};

struct isa_race_found {
    uint8_t space;                /* enum isa_space: GLOBAL or LDS */
    uint64_t address;             /* the first byte; of LDS its offset */
    struct isa_race_side side[2]; /* the earlier one first */
};

/* Enters an access to global memory or LDS, before it is made. True with a race that was not found
 * before at these two instructions. pc: of the instruction; host: where the bytes of each lane are,
 * NULL if that is not known. */
bool isa_race_access(struct isa_race_group *g, const struct isa_access *a, uint64_t pc,
                     const uint64_t address[ISA_LANES], void *const host[ISA_LANES],
                     struct isa_race_found *found);

/* What device memory was before the launch. Restorable: all of its writes were seen, with the bytes
 * that they replaced. For one thread, after the launch. */
bool isa_race_is_restorable(const struct isa_race *r);
bool isa_race_is_written(const struct isa_race *r, uint64_t address);
/* Some address in every page that was written. */
void isa_race_visit_pages(const struct isa_race *r, void (*visit)(uint64_t address, void *user),
                          void *user);
/* out holds the bytes at that address as they are now: makes them what they were. */
void isa_race_restore(const struct isa_race *r, uint64_t start, uint64_t bytes, unsigned char *out);

#endif
