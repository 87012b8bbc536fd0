#include "verdict/table.h"

#include <stdlib.h>

static size_t place_of(const struct table *t, uint64_t key) {
    uint64_t h = key * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(h ^ h >> 29) & (t->room - 1);
}

/* Where key is, or the free place where it would be. */
static size_t probe(const struct table *t, uint64_t key) {
    size_t i = place_of(t, key);
    while (t->at[i].value && t->at[i].key != key)
        i = (i + 1) & (t->room - 1);
    return i;
}

void *table_find(const struct table *t, uint64_t key) {
    return t->count ? t->at[probe(t, key)].value : NULL;
}

static bool grow(struct table *t) {
    struct table bigger = { .room = t->room ? 2 * t->room : 16, .count = t->count };
    bigger.at = calloc(bigger.room, sizeof *bigger.at);
    if (!bigger.at)
        return false;
    for (size_t i = 0; i < t->room; i++)
        if (t->at[i].value)
            bigger.at[probe(&bigger, t->at[i].key)] = t->at[i];
    free(t->at);
    *t = bigger;
    return true;
}

bool table_set(struct table *t, uint64_t key, void *value) {
    if (4 * (t->count + 1) > 3 * t->room && !grow(t))
        return false;
    size_t i = probe(t, key);
    t->count += !t->at[i].value;
    t->at[i] = (struct table_entry){ key, value };
    return true;
}

void *table_remove(struct table *t, uint64_t key) {
    if (!t->count)
        return NULL;
    size_t i = probe(t, key), mask = t->room - 1;
    void *value = t->at[i].value;
    if (!value)
        return NULL;
    t->count--;
    /* Followers whose own place is not between the hole and where they are move into the hole. */
    for (size_t k = (i + 1) & mask; t->at[k].value; k = (k + 1) & mask) {
        size_t home = place_of(t, t->at[k].key);
        if (((k - home) & mask) >= ((k - i) & mask)) {
            t->at[i] = t->at[k];
            i = k;
        }
    }
    t->at[i].value = NULL;
    return value;
}

const struct table_entry *table_next(const struct table *t, size_t *at) {
    while (*at < t->room) {
        const struct table_entry *e = &t->at[(*at)++];
        if (e->value)
            return e;
    }
    return NULL;
}

void table_clear(struct table *t) {
    free(t->at);
    *t = (struct table){ 0 };
}
