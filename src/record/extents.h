/* extents.h - which parts of a file hold data, and which are holes.
 *
 * A sparse file of a few kilobytes can be terabytes long. Reading through its holes costs time and
 * memory in the page cache. Where the file system does not report holes, all of the file counts as
 * data. Read-only after extents_read(). */
#ifndef RECORD_EXTENTS_H
#define RECORD_EXTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct extents {
    struct extent {
        uint64_t from, to;
    } * at; /* in order, apart from each other */
    size_t count, room;
    uint64_t bytes; /* of all of them */
};

/* Reads them from an open file of that size. False if there is no memory. */
bool extents_read(struct extents *x, int fd, uint64_t size);
void extents_free(struct extents *x);

/* The first extent that ends after offset: the one that holds it, or else the next. NULL if there
 * is no data from there on. */
const struct extent *extents_find(const struct extents *x, uint64_t offset);

#endif
