#include "infer/blocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* ---- the free list: blocks that no sequence has ---------------------------------------------- */

static void unlink_block(struct blocks *b, int32_t n) {
    struct block *x = &b->all[n];
    *(x->before >= 0 ? &b->all[x->before].after : &b->first) = x->after;
    *(x->after >= 0 ? &b->all[x->after].before : &b->last) = x->before;
    b->unused--;
}

static void link_block(struct blocks *b, int32_t n, bool in_front) {
    struct block *x = &b->all[n];
    x->before = in_front ? BLOCKS_NONE : b->last;
    x->after = in_front ? b->first : BLOCKS_NONE;
    *(x->before >= 0 ? &b->all[x->before].after : &b->first) = n;
    *(x->after >= 0 ? &b->all[x->after].before : &b->last) = n;
    b->unused++;
}

/* ---- published blocks ------------------------------------------------------------------------ */

static int32_t *bucket_of(const struct blocks *b, uint64_t hash) {
    return &b->buckets[hash & (b->bucket_count - 1)];
}

static void put_in_bucket(struct blocks *b, int32_t n) {
    int32_t *bucket = bucket_of(b, b->all[n].hash);
    b->all[n].next = *bucket;
    *bucket = n;
}

static void take_from_bucket(struct blocks *b, int32_t n) {
    int32_t *at = bucket_of(b, b->all[n].hash);
    while (*at != n)
        at = &b->all[*at].next;
    *at = b->all[n].next;
    b->all[n].published = false;
}

static int32_t look_up(const struct blocks *b, uint64_t parent, const int32_t *tokens) {
    uint64_t hash = blocks_hash(parent, tokens);
    int32_t n = b->count ? *bucket_of(b, hash) : BLOCKS_NONE;
    while (n >= 0 && (b->all[n].hash != hash || b->all[n].parent != parent ||
                      memcmp(b->all[n].tokens, tokens, sizeof b->all[n].tokens) != 0))
        n = b->all[n].next;
    return n;
}

/* ---- the interface --------------------------------------------------------------------------- */

enum rc blocks_grow(struct blocks *b, uint32_t count, struct err *e) {
    uint32_t buckets = 16;
    if (count <= b->count)
        return RC_OK;
    while (buckets < count && buckets < 1u << 30)
        buckets *= 2;
    int32_t *table = malloc(buckets * sizeof *table);
    struct block *all = table ? realloc(b->all, count * sizeof *all) : NULL;
    if (!all) {
        free(table);
        return err_set(e, RC_MEMORY, "out of memory");
    }
    if (!b->count)
        b->first = b->last = BLOCKS_NONE;
    free(b->buckets);
    b->all = all;
    b->buckets = table;
    b->bucket_count = buckets;
    memset(table, 0xff, buckets * sizeof *table); /* BLOCKS_NONE */
    for (uint32_t n = 0; n < b->count; n++)
        if (all[n].published)
            put_in_bucket(b, (int32_t)n);
    memset(all + b->count, 0, (count - b->count) * sizeof *all);
    for (uint32_t n = count; n-- > b->count;) /* so that low numbers are taken first */
        link_block(b, (int32_t)n, true);
    b->count = count;
    return RC_OK;
}

void blocks_close(struct blocks *b) {
    free(b->all);
    free(b->buckets);
    *b = (struct blocks){ 0 };
}

int32_t blocks_take(struct blocks *b) {
    if (!b->unused)
        return BLOCKS_NONE;
    int32_t n = b->first;
    unlink_block(b, n);
    if (b->all[n].published)
        take_from_bucket(b, n);
    b->all[n].users = 1;
    return n;
}

void blocks_share(struct blocks *b, int32_t block) {
    b->all[block].users++;
}

void blocks_give_back(struct blocks *b, int32_t block) {
    if (--b->all[block].users == 0)
        link_block(b, block, !b->all[block].published);
}

uint64_t blocks_hash(uint64_t parent, const int32_t tokens[KERN_BLOCK]) {
    return hash_bytes(tokens, KERN_BLOCK * sizeof *tokens, parent);
}

int32_t blocks_find(struct blocks *b, uint64_t parent, const int32_t tokens[KERN_BLOCK]) {
    int32_t n = look_up(b, parent, tokens);
    if (n >= 0 && b->all[n].users++ == 0)
        unlink_block(b, n);
    return n;
}

void blocks_publish(struct blocks *b, int32_t block, uint64_t parent,
                    const int32_t tokens[KERN_BLOCK]) {
    struct block *x = &b->all[block];
    if (x->published || look_up(b, parent, tokens) >= 0)
        return;
    x->parent = parent;
    x->hash = blocks_hash(parent, tokens);
    memcpy(x->tokens, tokens, sizeof x->tokens);
    x->published = true;
    put_in_bucket(b, block);
}
