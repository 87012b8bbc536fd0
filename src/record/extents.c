#include "record/extents.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/grow.h"

static bool add(struct extents *x, uint64_t from, uint64_t to) {
    if (x->count && x->at[x->count - 1].to == from) {
        x->at[x->count - 1].to = to;
    } else {
        struct extent *at = grow_array(x->at, &x->room, x->count, sizeof *at);
        if (!at)
            return false;
        x->at = at;
        x->at[x->count++] = (struct extent){ from, to };
    }
    x->bytes += to - from;
    return true;
}

bool extents_read(struct extents *x, int fd, uint64_t size) {
    uint64_t at = 0;
    *x = (struct extents){ 0 };
    while (at < size) {
        off_t from = lseek(fd, (off_t)at, SEEK_DATA);
        if (from < 0 && at == 0 && lseek(fd, 0, SEEK_HOLE) < 0)
            return add(x, 0, size); /* the file system does not report holes */
        if (from < 0 || (uint64_t)from >= size)
            return true; /* nothing but a hole */
        off_t to = lseek(fd, from, SEEK_HOLE);
        if (to <= from || (uint64_t)to > size) /* it changes while we look */
            to = (off_t)size;
        if (!add(x, (uint64_t)from, (uint64_t)to))
            return false;
        at = (uint64_t)to;
    }
    return true;
}

void extents_free(struct extents *x) {
    free(x->at);
    *x = (struct extents){ 0 };
}

const struct extent *extents_find(const struct extents *x, uint64_t offset) {
    size_t low = 0, high = x->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (x->at[middle].to > offset)
            high = middle;
        else
            low = middle + 1;
    }
    return low < x->count ? &x->at[low] : NULL;
}
