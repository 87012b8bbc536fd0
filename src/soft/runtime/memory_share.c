/* memory_share.c - device memory whose pages are not memory.c's own: ranges that hipMemMap fills,
 * and blocks that several processes use. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "soft/runtime/memory.h"
#include "soft/runtime/memory_table.h"

/* Where the next range for hipMemMap goes; 0: none has been asked for. These ranges lie past those
 * of the devices. */
static uint64_t virtual_cursor;

uint64_t soft_memory_reserve(uint64_t size, uint64_t align) {
    uint64_t end = soft_layout.base + soft_layout.span, at = 0;
    align = align > SOFT_MEMORY_HUGE_PAGE ? align : SOFT_MEMORY_HUGE_PAGE;
    spin_lock(&soft_memory_lock);
    if (!virtual_cursor)
        virtual_cursor = end - soft_layout.device_span;
    uint64_t from = soft_memory_round_up(virtual_cursor, align);
    if (from < end && size < end - from - SOFT_MEMORY_HUGE_PAGE) {
        at = from;
        virtual_cursor = soft_memory_round_up(from + size, SOFT_MEMORY_HUGE_PAGE) +
                         SOFT_MEMORY_HUGE_PAGE; /* a guard after it */
    }
    spin_unlock(&soft_memory_lock);
    return at;
}

/* Freed blocks of the history that are in the way go. Under soft_memory_lock. */
static void forget_freed(uint64_t addr, uint64_t size) {
    for (struct range *r; (r = rangemap_find_first_at_or_after(&soft_memory_table, addr));) {
        struct soft_block *b = r->value;
        if (b->addr >= addr + size || !b->in_history)
            return;
        soft_memory_forget(b);
    }
}

struct soft_block *soft_memory_adopt(int device, uint64_t addr, uint64_t size) {
    struct soft_block *b = soft_memory_new_block(device, SOFT_VIRTUAL, size, 0);
    if (!b)
        return NULL;
    b->addr = b->map = addr;
    b->claimed = true; /* hipFree must not free it */
    spin_lock(&soft_memory_lock);
    forget_freed(addr, size);
    spin_unlock(&soft_memory_lock);
    if (soft_memory_insert(b))
        return b;
    free(b);
    return NULL;
}

void soft_memory_disown(struct soft_block *b) {
    spin_lock(&soft_memory_lock);
    b->state = SOFT_FREED;
    soft_memory_remember(b);
    spin_unlock(&soft_memory_lock);
}

static bool copy_to_file(int file, const void *from, uint64_t bytes) {
    for (uint64_t done = 0; done < bytes;) {
        ssize_t n = pwrite(file, (const char *)from + done, bytes - done, (off_t)done);
        if (n <= 0)
            return false;
        done += (uint64_t)n;
    }
    return true;
}

hipError_t soft_memory_share(struct soft_block *b, int *file, uint64_t *offset) {
    void *at = soft_reach(b->map);
    int fd = memfd_create("greta-shared", MFD_CLOEXEC);
    bool ok =
        fd >= 0 && !ftruncate(fd, (off_t)b->map_size) && copy_to_file(fd, at, b->map_size) &&
        mmap(at, b->map_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
    if (!ok) {
        if (fd >= 0)
            close(fd);
        return hipErrorOutOfMemory;
    }
    b->shared = true;
    *file = fd;
    *offset = b->addr - b->map;
    return hipSuccess;
}

hipError_t soft_memory_import(int device, int file, uint64_t offset, uint64_t size,
                              struct soft_block **out) {
    if (offset >= SOFT_MEMORY_PAGE || size > (uint64_t)1 << 46)
        return hipErrorInvalidValue;
    struct soft_block *b = soft_memory_new_block(device, SOFT_IMPORTED, size, 0);
    if (!b)
        return hipErrorOutOfMemory;
    b->map_size = soft_memory_round_up(offset + size, SOFT_MEMORY_PAGE);
    b->offset = offset;
    b->state = SOFT_PENDING;
    if (!soft_memory_place(b)) {
        free(b);
        return hipErrorOutOfMemory;
    }
    if (mmap(soft_reach(b->map), b->map_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
             0) == MAP_FAILED) {
        soft_memory_displace(b);
        return hipErrorOutOfMemory;
    }
    spin_lock(&soft_memory_lock);
    b->state = SOFT_LIVE;
    spin_unlock(&soft_memory_lock);
    *out = b;
    return hipSuccess;
}
