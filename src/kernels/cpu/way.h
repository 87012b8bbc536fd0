/* way.h - how the loops of one token and of several go through the weights of a type, chosen by
 * measurement.
 *
 * One token reads every weight once, so it waits for memory, and which loop hides that best depends
 * on the processor and on the type: how far ahead it fetches, how many rows it has side by side,
 * how wide its vectors are. What suits several tokens depends on the caches and on how many tokens
 * there are: up to 2, 4, 8, 12, 32, 64 and more have a choice of their own. The ways (way.def)
 * differ only in time, never in a result, so they are tried on the work itself: stretches of the
 * packed weights take turns, and after way_trials() of each the way with the lowest median time per
 * byte and token stays. The answer is kept in the cache folder, one file per processor model and
 * instruction set.
 *
 * Memory may be slow during the trials, because neighbours read too. All ways that fetch early
 * enough then take the same time, while some are 10 to 20% faster than others as soon as memory is
 * fast again. So ways of one token through packed weights that are within WAY_TIE_PERCENT of the
 * best count as equal, and the one that way.def names first stays.
 *
 * Work arrives in pieces that are too short to measure. A thread that is handed one piece after the
 * other, as they lie in memory, measures them as one stretch. A way is tried on WAY_ROW stretches
 * in a row, by all threads: most of them begin with what the same way has fetched, and what it
 * takes from other threads is part of what it costs.
 *
 * Thread-safe. */
#ifndef KERNELS_CPU_WAY_H
#define KERNELS_CPU_WAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu/mm.h"

enum way_id {
#define WAY(name, bits, groups, far, near)     WAY_##name,
#define ROWS(name, rows, far)                  WAY_##name,
#define PASS(name, bits, shared, panels, turn) WAY_##name,
#include "kernels/cpu/way.def"
    WAY_COUNT
};

struct way {
    bool several;  /* tokens */
    unsigned bits; /* of a vector, at most */
    /* one token, floats */
    struct mm_stream stream;
    /* one token, packed */
    unsigned groups;
    struct mm_ahead ahead;
    /* several tokens */
    bool shared;
    unsigned panels, turn;
};

/* A stretch has at least WAY_LEAST bytes. The trials of a type for one token read 330 MB, some ten
 * milliseconds; those for several tokens 30 MB, some twentieth of a prompt. Nothing of it is read
 * or computed twice. For one token, trials in two rows only (32) differed by 15% from one run to
 * the next; twelve rows gave the same choice in six of six. */
enum {
    WAY_TRIALS = 192,
    WAY_TRIALS_FEW = 32,
    WAY_ROW = 16,
    WAY_LEAST = 128 << 10,
    WAY_TIE_PERCENT = 5,
    WAY_PANELS = 4 /* of a pass, at most */
};

/* How many kinds of numbers of tokens there are, and the largest number of a kind; of the last one,
 * which has no end, the smallest. */
enum { WAY_KINDS = 8 };
size_t way_kind_tokens(unsigned kind);

/* Stretches per way. */
int way_trials(size_t tokens);

/* Whether it is one for this type and so many tokens and the instruction set in use has it; the
 * others are not tried. Several tokens of floats have none. */
bool way_is_possible(enum way_id way, enum tensor_type type, size_t tokens);

/* How to go through the `bytes` bytes of weights from `at` on, packed ones or floats for one token;
 * when they are read, way_end() on the same thread. */
struct way way_begin(enum tensor_type type, size_t tokens, const void *at, uint64_t bytes);
void way_end(void);

/* The choice, or what serves until there is one; nothing is measured. */
struct way way_usual(enum tensor_type type, size_t tokens);

/* The set that levels are unpacked and multiplied with. */
const struct mm_set *way_set(const struct way *way);

/* What a measurement says, and for tests: nanoseconds for a MiB and a thousand tokens. */
void way_note(enum tensor_type type, size_t tokens, enum way_id way, uint64_t cost);

/* The name of the choice, and what it is if `way` is not NULL; NULL while there is none. */
const char *way_chosen(enum tensor_type type, size_t tokens, struct way *way);

/* Forgets all choices and reads the file again at the next use: for tests. */
void way_reset(void);

#endif
