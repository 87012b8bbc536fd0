/* tokenizer_merge.h - merges neighbours, best first, until none can be merged: the core of both
 * algorithms.
 *
 * SentencePiece and BPE differ in what a pair of neighbours is worth and what it becomes; the
 * caller supplies that as a function. Work is O(n log n) in the number of symbols. A merger is
 * scratch memory for one thread, used again for one word after the other. */
#ifndef MODEL_TOKENIZER_MERGE_H
#define MODEL_TOKENIZER_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define MERGER_NONE UINT32_MAX

struct merger_symbol {
    uint32_t start, len; /* bytes of the text; len 0: merged into the one before */
    int32_t prev, next;  /* neighbours, -1 at the ends */
    uint32_t symbol;     /* the caller's name for it */
    uint32_t priority;   /* of merging with next: the lowest is first, among equals the leftmost */
    uint32_t merged;     /* what that makes; MERGER_NONE: it cannot be */
};

struct merger {
    struct merger_symbol *symbols;
    size_t count, room;
    uint64_t *heap; /* priority << 32 | left, smallest at the root; 3 * room entries */
    size_t heap_count;
}; /* {0} is a merger without memory */

/* What left and right become, or MERGER_NONE; sets *priority unless that. */
typedef uint32_t merger_pair(const void *context, const struct merger_symbol *left,
                             const struct merger_symbol *right, uint32_t *priority);

/* Makes room for count symbols and forgets those that were there. */
NODISCARD enum rc merger_start(struct merger *m, size_t count, struct err *e);

/* Appends a symbol; at most as many as merger_start made room for. */
static inline void merger_add(struct merger *m, uint32_t start, uint32_t len, uint32_t symbol) {
    int32_t i = (int32_t)m->count++;
    m->symbols[i] = (struct merger_symbol){ .start = start,
                                            .len = len,
                                            .prev = i - 1,
                                            .next = -1,
                                            .symbol = symbol,
                                            .merged = MERGER_NONE };
    if (i > 0)
        m->symbols[i - 1].next = i;
}

/* Merges. What is left is the chain from symbol 0 along next. */
void merger_run(struct merger *m, merger_pair *pair, const void *context);

void merger_close(struct merger *m);

#endif
