#include "soft/runtime/machine/machine_copies.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCKS_MAX = 512, BYTES_MAX = 256 << 20 };

struct copy {
    uint64_t start, bytes;
    unsigned char *at;
};

struct machine_copies {
    const struct isa_race *race;
    bool incomplete;
    uint64_t bytes;
    size_t count;
    struct copy copy[BLOCKS_MAX];
};

unsigned char *machine_copies_reach(struct machine_copies *c, const struct soft_block *b) {
    for (size_t i = 0; i < c->count; i++)
        if (c->copy[i].start == b->addr)
            return c->copy[i].at;
    unsigned char *at = NULL;
    if (c->count < BLOCKS_MAX && b->size <= BYTES_MAX - c->bytes)
        at = malloc(b->size ? b->size : 1);
    if (!at) {
        c->incomplete = true;
        return NULL;
    }
    memcpy(at, soft_reach(b->addr), b->size);
    isa_race_restore(c->race, b->addr, b->size, at);
    c->bytes += b->size;
    c->copy[c->count++] = (struct copy){ b->addr, b->size, at };
    return at;
}

static void copy_written(uint64_t address, void *user) {
    struct machine_copies *c = user;
    struct soft_block b;
    if (!soft_memory_find(address, &b) || b.state != SOFT_LIVE)
        c->incomplete = true;
    else
        (void)machine_copies_reach(c, &b);
}

struct machine_copies *machine_copies_open(const struct isa_race *race) {
    struct machine_copies *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->race = race;
    isa_race_visit_pages(race, copy_written, c);
    if (c->incomplete)
        machine_copies_close(&c);
    return c;
}

void machine_copies_close(struct machine_copies **copies) {
    struct machine_copies *c = *copies;
    *copies = NULL;
    for (size_t i = 0; c && i < c->count; i++)
        free(c->copy[i].at);
    free(c);
}

bool machine_copies_are_equal(const struct machine_copies *c) {
    for (size_t i = 0; i < c->count; i++) {
        const struct copy *copy = &c->copy[i];
        struct soft_block b;
        if (!soft_memory_find(copy->start, &b) || b.state != SOFT_LIVE || b.addr != copy->start ||
            b.size != copy->bytes || memcmp(copy->at, soft_reach(copy->start), copy->bytes) != 0)
            return false;
    }
    return !c->incomplete;
}
