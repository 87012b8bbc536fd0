/* ahead.h - how far ahead the decode loop fetches the weights of a type, chosen by measurement.
 *
 * One token reads every weight once, so it waits for memory, and which prefetching hides that best
 * depends on the processor and on the type (ahead.def). The ways differ only in when lines arrive,
 * never in a result, so they are tried on the work itself: stretches of the packed weights take
 * turns, and after AHEAD_TRIALS of each the way with the lowest median time per byte stays. The
 * answer is kept in the cache folder, one file per processor model and instruction set.
 *
 * Work arrives in pieces that are too short to measure. A thread that is handed one piece after the
 * other, as they lie in memory, measures them as one stretch.
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

/* A stretch has at least AHEAD_LEAST bytes. All trials of a type together read about AHEAD_COUNT *
 * AHEAD_TRIALS * AHEAD_LEAST bytes, 10 MB: one millisecond or less. */
enum { AHEAD_TRIALS = 15, AHEAD_LEAST = 128 << 10 };

/* How to fetch the `bytes` bytes of packed weights from `at` on; when they are read, ahead_end() on
 * the same thread. */
struct mm_ahead ahead_begin(enum tensor_type type, const void *at, uint64_t bytes);
void ahead_end(void);

/* What a measurement says, and for tests. */
void ahead_note(enum tensor_type type, enum ahead_way way, uint64_t ns_per_mib);

/* The name of the choice, and what it is if `way` is not NULL; NULL while there is none. */
const char *ahead_chosen(enum tensor_type type, struct mm_ahead *way);

/* Forgets all choices and reads the file again at the next use: for tests. */
void ahead_reset(void);

#endif
