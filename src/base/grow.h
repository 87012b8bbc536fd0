/* grow.h - arrays that grow as they are filled.
 *
 *     struct item *items = grow_array(list->items, &list->room, list->count, sizeof *items);
 *     if (!items)
 *         return err_set(e, RC_MEMORY, "out of memory");
 *     list->items = items;
 *     list->items[list->count++] = item; */
#ifndef BASE_GROW_H
#define BASE_GROW_H

#include <stddef.h>

/* The array with room for more than `count` elements of `size` bytes, moved if it had to grow; its
 * room at least doubles then. NULL if there is no memory: array and *room are as they were. */
void *grow_array(void *array, size_t *room, size_t count, size_t size);

#endif
