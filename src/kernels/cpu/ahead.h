/* ahead.h - how far ahead the decode loop fetches the weights of a type, chosen by measurement.
 *
 * One token reads every weight once, so it waits for memory, and which prefetching hides that best
 * depends on the processor and on the type (ahead.def). The ways differ only in when lines arrive,
 * never in a result, so they are tried on the work itself: the first launches of a type take turns,
 * and after AHEAD_TRIALS of each the one with the lowest median time per byte stays. The answer is
 * kept in the cache folder, one file per processor model and instruction set.
 *
 * Thread-safe. */
#ifndef KERNELS_CPU_AHEAD_H
#define KERNELS_CPU_AHEAD_H

#include <stdint.h>

#include "kernels/cpu/mm.h"

enum ahead_way {
#define AHEAD(name, far, near) AHEAD_##name,
#include "kernels/cpu/ahead.def"
    AHEAD_COUNT
};

enum { AHEAD_TRIALS = 15, AHEAD_LEAST = 256 << 10 };

/* A piece of work that may count as a measurement. */
struct ahead_trial {
    enum tensor_type type;
    int slot; /* -1: it does not count */
    uint64_t bytes, start_ns;
};

/* How to fetch the `bytes` bytes of weights that are read next, as one stream. Less than
 * AHEAD_LEAST says nothing about memory and is not measured. */
struct mm_ahead ahead_begin(enum tensor_type type, uint64_t bytes, struct ahead_trial *t);
void ahead_end(const struct ahead_trial *t);

/* What a measurement says, for tests: slots count through the ways, AHEAD_TRIALS times. */
void ahead_note(enum tensor_type type, int slot, uint64_t ns_per_mib);

/* The name of the choice, and what it is if `way` is not NULL; NULL while there is none. */
const char *ahead_chosen(enum tensor_type type, struct mm_ahead *way);

/* Forgets all choices and reads the file again at the next use: for tests. */
void ahead_reset(void);

#endif
