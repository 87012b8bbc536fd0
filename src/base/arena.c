#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BLOCK = 4096, LARGEST_BLOCK = 1 << 20 };

struct arena_block {
    struct arena_block *next;
    size_t size; /* of data */
    alignas(max_align_t) unsigned char data[];
};

/* Puts a block with room for at least size bytes in front. */
static int add_block(struct arena *a, size_t size) {
    size_t room = FIRST_BLOCK;
    if (a->blocks)
        room = a->blocks->size < LARGEST_BLOCK ? 2 * a->blocks->size : LARGEST_BLOCK;
    if (room < size)
        room = size;
    if (room > SIZE_MAX - sizeof(struct arena_block))
        return 0;
    struct arena_block *b = calloc(1, sizeof *b + room);
    if (!b)
        return 0;
    b->next = a->blocks;
    b->size = room;
    a->blocks = b;
    a->used = 0;
    return 1;
}

void *arena_alloc(struct arena *a, size_t size) {
    const size_t align = alignof(max_align_t);
    if (size > SIZE_MAX - align)
        return NULL;
    size_t rounded = size == 0 ? align : (size + align - 1) / align * align;
    if ((!a->blocks || a->blocks->size - a->used < rounded) && !add_block(a, rounded))
        return NULL;
    void *p = a->blocks->data + a->used;
    a->used += rounded;
    return p;
}

void *arena_alloc_array(struct arena *a, size_t count, size_t size) {
    size_t total;
    return __builtin_mul_overflow(count, size, &total) ? NULL : arena_alloc(a, total);
}

char *arena_copy_text(struct arena *a, const char *text, size_t len) {
    char *copy = len < SIZE_MAX ? arena_alloc(a, len + 1) : NULL;
    if (copy)
        memcpy(copy, text, len); /* arena memory is zeroed: the terminator is there */
    return copy;
}

void arena_clear(struct arena *a) {
    for (struct arena_block *b = a->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    *a = (struct arena){ 0 };
}
