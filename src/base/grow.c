#include "base/grow.h"

#include <stdlib.h>

void *grow_array(void *array, size_t *room, size_t count, size_t size) {
    enum { FIRST = 16 };
    size_t more = *room ? 2 * *room : FIRST;
    if (count < *room)
        return array;
    while (more <= count && more < 2 * more)
        more *= 2;
    void *moved = more > count ? reallocarray(array, more, size) : NULL;
    if (moved)
        *room = more;
    return moved;
}
