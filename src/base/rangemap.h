/* rangemap.h - an ordered map from disjoint address ranges to values.
 *
 * Holds ranges [addr, addr + len) that never overlap, each with a caller's pointer; it answers
 * "what is at this address?" and walks in address order. A zeroed struct rangemap is an empty map.
 * The map owns its nodes, never the values. Not thread-safe: callers lock.
 *
 * Representation: an AVL tree (at most 1.44 log2 n levels) without parent links, one malloc per
 * range. Removing relinks nodes and never copies them, so that a struct range stays where it is,
 * and valid, until that very range is removed. */
#ifndef BASE_RANGEMAP_H
#define BASE_RANGEMAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct range {
    uint64_t addr, len; /* len > 0; addr + len - 1 does not wrap. Read only. */
    void *value;        /* the caller's; may be changed in place */
};

struct rangemap {
    struct rangemap_node *root;
    size_t count; /* ranges in the map */
};

/* Adds [addr, addr + len). RC_RANGE if it is empty, wraps, or overlaps a range that is there;
 * RC_MEMORY if there is no memory. On failure the map is unaltered. */
NODISCARD enum rc rangemap_insert(struct rangemap *m, uint64_t addr, uint64_t len, void *value,
                                  struct err *e);

/* The range that contains addr, or NULL. */
struct range *rangemap_find(const struct rangemap *m, uint64_t addr);

/* The range that contains addr or, if there is none, the first that starts after it, or NULL. So
 * the ranges that overlap [a, b) are this one and its successors while r->addr < b. */
struct range *rangemap_find_first_at_or_after(const struct rangemap *m, uint64_t addr);

/* The last range that ends at or before addr, or NULL: the left neighbour of a stray address. */
struct range *rangemap_find_last_before(const struct rangemap *m, uint64_t addr);

/* The lowest range, and the one after r; NULL at the end. Removing any range but r, or inserting,
 * between two calls is allowed. */
struct range *rangemap_first(const struct rangemap *m);
struct range *rangemap_next(const struct rangemap *m, const struct range *r);

/* Removes the range that starts at addr and returns its value in *value (value may be NULL).
 * RC_RANGE, and the map unaltered, if none starts there. */
enum rc rangemap_remove(struct rangemap *m, uint64_t addr, void **value);

/* Removes everything. The values are the caller's to free before. */
void rangemap_clear(struct rangemap *m);

#endif
