/* way.h - how the decode loop goes through the weights of a type, chosen by measurement.
 *
 * One token reads every weight once, so it waits for memory, and which loop hides that best depends
 * on the processor and on the type: how far ahead it fetches, how many rows it has side by side,
 * how wide its vectors are (way.def). The ways differ only in time, never in a result, so they are
 * tried on the work itself: stretches of the packed weights take turns, and after WAY_TRIALS of
 * each the way with the lowest median time per byte stays. The answer is kept in the cache folder,
 * one file per processor model and instruction set.
 *
 * Work arrives in pieces that are too short to measure. A thread that is handed one piece after the
 * other, as they lie in memory, measures them as one stretch.
 *
 * Thread-safe. */
#ifndef KERNELS_CPU_WAY_H
#define KERNELS_CPU_WAY_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/cpu/mm.h"

enum way_id {
#define WAY(name, bits, groups, far, near) WAY_##name,
#include "kernels/cpu/way.def"
    WAY_COUNT
};

struct way {
    unsigned bits, groups;
    struct mm_ahead ahead;
};

/* A stretch has at least WAY_LEAST bytes. All trials of a type together read about WAY_COUNT *
 * WAY_TRIALS * WAY_LEAST bytes, 22 MB: two milliseconds or less. */
enum { WAY_TRIALS = 15, WAY_LEAST = 128 << 10 };

/* Whether the instruction set in use has it; the others are not tried. */
bool way_is_possible(enum way_id way);

/* How to go through the `bytes` bytes of packed weights from `at` on; when they are read, way_end()
 * on the same thread. */
struct way way_begin(enum tensor_type type, const void *at, uint64_t bytes);
void way_end(void);

/* What a measurement says, and for tests. */
void way_note(enum tensor_type type, enum way_id way, uint64_t ns_per_mib);

/* The name of the choice, and what it is if `way` is not NULL; NULL while there is none. */
const char *way_chosen(enum tensor_type type, struct way *way);

/* Forgets all choices and reads the file again at the next use: for tests. */
void way_reset(void);

#endif
