/* table.h - a hash table from 64-bit keys to pointers: handles, tokens, event numbers.
 *
 * Open addressing with linear probing; removing moves the followers up, so that there are no
 * tombstones and a table through which millions of handles pass stays as small as the set of those
 * alive. A zeroed struct table is empty. The values are the caller's. Not thread-safe. */
#ifndef VERDICT_TABLE_H
#define VERDICT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct table_entry {
    uint64_t key;
    void *value; /* NULL: the place is free */
};

struct table {
    struct table_entry *at;
    size_t room, count; /* room: a power of two, or 0 */
};

/* The value of key, NULL if there is none. */
void *table_find(const struct table *t, uint64_t key);

/* Enters or replaces; value is not NULL. False, and nothing changed, without memory. */
bool table_set(struct table *t, uint64_t key, void *value);

/* Takes key out and returns its value, NULL if there was none. */
void *table_remove(struct table *t, uint64_t key);

/* The entry at or after position *at, which moves past it; NULL at the end. Nothing may be entered
 * or removed meanwhile. */
const struct table_entry *table_next(const struct table *t, size_t *at);

void table_clear(struct table *t);

#endif
