/* blocks.h - which sequence has which block of the KV cache.
 *
 * A block is KERN_BLOCK positions. It belongs to one sequence while that fills it; once full it is
 * published under a hash of all tokens up to its end, and any sequence that begins with the same
 * tokens may have it too. Blocks that no sequence has any more go to the free list but stay
 * published until they are reused, the one given back first being reused first. Nothing here
 * touches a device. Used by one thread at a time. */
#ifndef INFER_BLOCKS_H
#define INFER_BLOCKS_H

#include "base/err.h"
#include "kernels/kern.h"

enum { BLOCKS_NONE = -1 };

struct block {
    uint64_t parent, hash; /* of the tokens before it, and to its end */
    int32_t tokens[KERN_BLOCK];
    uint32_t users;
    bool published;
    int32_t before, after; /* in the free list */
    int32_t next;          /* of the same bucket */
};

struct blocks {
    struct block *all;
    uint32_t count, unused; /* unused: how many are in the free list */
    int32_t first, last;    /* of the free list: the first is taken next */
    int32_t *buckets;
    uint32_t bucket_count; /* a power of 2 */
};

/* Makes room for blocks up to number count - 1; a zeroed struct is empty. On failure nothing has
 * changed. */
NODISCARD enum rc blocks_grow(struct blocks *b, uint32_t count, struct err *e);
void blocks_close(struct blocks *b);

/* Takes a block from the free list for one user; BLOCKS_NONE if it is empty. */
int32_t blocks_take(struct blocks *b);
/* Adds a user to a block that has one already. */
void blocks_share(struct blocks *b, int32_t block);
/* Removes a user; after the last one the block goes to the free list. */
void blocks_give_back(struct blocks *b, int32_t block);

/* The hash of a full block that follows a parent (0: it is the first). */
uint64_t blocks_hash(uint64_t parent, const int32_t tokens[KERN_BLOCK]);
/* Finds a published block with these tokens after that parent and adds a user to it; BLOCKS_NONE if
 * there is none. */
int32_t blocks_find(struct blocks *b, uint64_t parent, const int32_t tokens[KERN_BLOCK]);
/* Lets others find a full block. If an equal one has been published already, nothing happens. */
void blocks_publish(struct blocks *b, int32_t block, uint64_t parent,
                    const int32_t tokens[KERN_BLOCK]);

#endif
