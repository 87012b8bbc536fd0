#include "soft/runtime/heap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/rangemap.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/settings.h"

enum { ALIGN = 16, GAP = 16, CHUNK = 1 << 20, LARGE = CHUNK / 8, KEPT_MAX = 256 };

struct chunk {
    uint64_t start, bytes, used;
    struct soft_block *block; /* NULL: given back, kept for reports */
    int device;
    unsigned live, count, room;
    struct soft_heap_piece *pieces; /* by address */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rangemap chunks;
static struct chunk *current[SOFT_DEVICES_MAX]; /* small blocks come from here */
static unsigned kept;                           /* chunks that were given back */
static _Atomic bool is_used;

/* All below: under the lock. */

static void forget(struct chunk *c) {
    kept -= !c->block;
    if (current[c->device] == c)
        current[c->device] = NULL;
    rangemap_remove(&chunks, c->start, NULL);
    free(c->pieces);
    free(c);
}

/* The addresses are somebody's again: what was there is history. */
static void forget_range(uint64_t start, uint64_t bytes) {
    for (;;) {
        struct range *r = rangemap_find_first_at_or_after(&chunks, start);
        if (!r || (r->addr >= start && r->addr - start >= bytes))
            return;
        forget(r->value);
    }
}

/* A chunk in which nothing is left and nothing will be made. */
static void give_back(struct chunk *c) {
    struct soft_block *block = c->block;
    c->block = NULL;
    soft_memory_free(block);
    if (++kept > KEPT_MAX)
        forget(c);
}

static struct chunk *new_chunk(int device, uint64_t bytes) {
    struct chunk *c = calloc(1, sizeof *c);
    if (!c || soft_memory_alloc(device, SOFT_DEVICE, bytes, 0, false, &c->block) != hipSuccess) {
        free(c);
        return NULL;
    }
    c->block->keep = true; /* hipFree cannot have it */
    c->start = c->block->addr;
    c->bytes = bytes;
    c->device = device;
    forget_range(c->start, bytes);
    if (rangemap_insert(&chunks, c->start, bytes, c, NULL) != RC_OK) {
        soft_memory_free(c->block);
        free(c);
        return NULL;
    }
    atomic_store(&is_used, true);
    return c;
}

/* Cuts a block from a chunk that has room for it. */
static uint64_t cut(struct chunk *c, uint64_t bytes) {
    if (c->count == c->room) {
        unsigned room = c->room ? 2 * c->room : 16;
        struct soft_heap_piece *more = realloc(c->pieces, room * sizeof *more);
        if (!more)
            return 0;
        c->pieces = more;
        c->room = room;
    }
    struct soft_heap_piece *p = &c->pieces[c->count++];
    *p = (struct soft_heap_piece){ c->start + c->used, bytes, false };
    c->used += (bytes + GAP + ALIGN - 1) / ALIGN * ALIGN;
    c->live++;
    return p->start;
}

/* The last piece that starts at or before address; the first if there is none. */
static struct soft_heap_piece *nearest(const struct chunk *c, uint64_t address) {
    unsigned low = 0, high = c->count;
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        if (c->pieces[middle].start <= address)
            low = middle;
        else
            high = middle;
    }
    return c->count ? &c->pieces[low] : NULL;
}

/* One that was given back counts until the address is somebody else's. */
static struct chunk *chunk_at(uint64_t address) {
    const struct range *r = rangemap_find(&chunks, address);
    struct chunk *c = r ? r->value : NULL;
    struct soft_block now;
    return c && (c->block || !soft_memory_find(address, &now)) ? c : NULL;
}

static bool has_room(const struct chunk *c, uint64_t bytes) {
    return c && c->used <= c->bytes && bytes <= c->bytes - c->used;
}

uint64_t soft_heap_alloc(int device, uint64_t bytes) {
    uint64_t address = 0;
    if (!bytes || bytes > soft_layout.device_span)
        return 0;
    pthread_mutex_lock(&lock);
    struct chunk *c = current[device];
    if (bytes >= LARGE) {
        c = new_chunk(device, bytes);
    } else if (!has_room(c, bytes)) {
        current[device] = NULL;
        if (c && !c->live)
            give_back(c);
        c = current[device] = new_chunk(device, CHUNK);
        if (c)
            c->used = GAP; /* what is before the first block is in the chunk, too */
    }
    if (c)
        address = cut(c, bytes);
    pthread_mutex_unlock(&lock);
    return address;
}

enum soft_heap_freed soft_heap_free(uint64_t address) {
    enum soft_heap_freed answer = SOFT_HEAP_UNKNOWN;
    pthread_mutex_lock(&lock);
    struct chunk *c = chunk_at(address);
    struct soft_heap_piece *p = c ? nearest(c, address) : NULL;
    if (p && p->start == address) {
        answer = p->freed ? SOFT_HEAP_FREED_TWICE : SOFT_HEAP_FREED;
        c->live -= !p->freed;
        p->freed = true;
        if (c->block && !c->live && c != current[c->device])
            give_back(c);
    }
    pthread_mutex_unlock(&lock);
    return answer;
}

bool soft_heap_find(uint64_t address, struct soft_heap_piece *out) {
    if (!atomic_load_explicit(&is_used, memory_order_relaxed))
        return false;
    pthread_mutex_lock(&lock);
    const struct chunk *c = chunk_at(address);
    const struct soft_heap_piece *p = c ? nearest(c, address) : NULL;
    if (p)
        *out = *p;
    pthread_mutex_unlock(&lock);
    return p != NULL;
}

void soft_heap_reset(int device) {
    pthread_mutex_lock(&lock);
    for (struct range *r = rangemap_first(&chunks), *next; r; r = next) {
        struct chunk *c = r->value;
        next = rangemap_next(&chunks, r);
        if (c->device != device)
            continue;
        if (c->block)
            soft_memory_free(c->block);
        forget(c);
    }
    pthread_mutex_unlock(&lock);
}
