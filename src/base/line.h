/* line.h - lines of text put together piece by piece, much faster than printf().
 *
 * What does not fit is left out; a caller that needs all of it compares used with size. A
 * struct line belongs to one thread. */
#ifndef BASE_LINE_H
#define BASE_LINE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct line {
    char *text; /* not terminated */
    size_t used, size;
};

static inline void line_add_bytes(struct line *l, const char *bytes, size_t n) {
    size_t room = l->size - l->used;
    n = n < room ? n : room;
    memcpy(l->text + l->used, bytes, n);
    l->used += n;
}

static inline void line_add(struct line *l, const char *text) {
    line_add_bytes(l, text, strlen(text));
}

/* In decimal, with zeros in front up to `digits`. */
void line_add_u64(struct line *l, uint64_t value, unsigned digits);
void line_add_i64(struct line *l, int64_t value);
/* "0x" and the digits. */
void line_add_hex(struct line *l, uint64_t value);

#endif
