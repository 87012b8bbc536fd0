/* arena.h - many small allocations that live and die together.
 *
 * A zeroed struct arena is empty and ready. Memory comes from blocks that double in size; nothing
 * is freed singly, arena_clear frees all. Not thread-safe. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

struct arena {
    struct arena_block *blocks; /* newest first */
    size_t used;                /* bytes taken from the newest block */
};

/* size bytes, zeroed, aligned for any type; NULL if memory ran out (the arena stays usable). A size
 * of 0 gives a unique pointer. */
void *arena_alloc(struct arena *a, size_t size);

/* count * size bytes; NULL also if the product does not fit a size_t. */
void *arena_alloc_array(struct arena *a, size_t count, size_t size);

/* A copy of the first len bytes of text with a terminator; NULL if memory ran out. */
char *arena_copy_text(struct arena *a, const char *text, size_t len);

/* Frees everything; the arena is empty and usable again. */
void arena_clear(struct arena *a);

#endif
