#include "soft/runtime/heap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

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
static struct soft_heap_site *sites; /* number n is sites[n - 1] */
static uint32_t site_count, site_room;

/* All below: under the lock. */

/* One block more, or one less, of a call. */
static void count(uint32_t site, uint64_t bytes, bool more) {
    if (!site)
        return;
    struct soft_heap_site *s = &sites[site - 1];
    s->blocks += more ? 1 : (uint64_t)-1;
    s->bytes += more ? bytes : (uint64_t)-bytes;
}

static void forget(struct chunk *c) {
    kept -= !c->block;
    if (current[c->device] == c)
        current[c->device] = NULL;
    rangemap_remove(&chunks, c->start, NULL);
    free(c->pieces);
    free(c);
}

/* The addresses are in use again: forget what was there before. */
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
    c->block->keep = true; /* hipFree must not free it */
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
static uint64_t cut(struct chunk *c, uint64_t bytes, uint32_t site) {
    if (c->count == c->room) {
        unsigned room = c->room ? 2 * c->room : 16;
        struct soft_heap_piece *more = realloc(c->pieces, room * sizeof *more);
        if (!more)
            return 0;
        c->pieces = more;
        c->room = room;
    }
    struct soft_heap_piece *p = &c->pieces[c->count++];
    *p = (struct soft_heap_piece){ c->start + c->used, bytes, false, site };
    count(site, bytes, true);
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

static uint32_t find_site(uint64_t pc, const char *kernel) {
    for (uint32_t n = site_count; n; n--)
        if (sites[n - 1].pc == pc && !strcmp(sites[n - 1].kernel, kernel))
            return n;
    return 0;
}

uint32_t soft_heap_find_site(uint64_t pc, const char *kernel) {
    pthread_mutex_lock(&lock);
    uint32_t n = find_site(pc, kernel);
    pthread_mutex_unlock(&lock);
    return n;
}

static uint32_t add_site(const struct soft_heap_site *site) {
    if (site_count == site_room) {
        uint32_t room = site_room ? 2 * site_room : 16;
        struct soft_heap_site *more = realloc(sites, room * sizeof *more);
        if (!more)
            return 0;
        sites = more;
        site_room = room;
    }
    char *kernel = strdup(site->kernel), *place = site->place ? strdup(site->place) : NULL;
    if (!kernel || (site->place && !place)) {
        free(kernel);
        free(place);
        return 0;
    }
    struct soft_heap_site *s = &sites[site_count++];
    *s = *site;
    s->kernel = kernel;
    s->place = place;
    s->blocks = s->bytes = 0;
    return site_count;
}

uint32_t soft_heap_add_site(const struct soft_heap_site *site) {
    pthread_mutex_lock(&lock);
    uint32_t n = find_site(site->pc, site->kernel); /* another core may have been here */
    n = n ? n : add_site(site);
    pthread_mutex_unlock(&lock);
    return n;
}

void soft_heap_each_leak(void (*tell)(const struct soft_heap_site *site)) {
    pthread_mutex_lock(&lock);
    for (uint32_t n = 0; n < site_count; n++)
        if (sites[n].blocks)
            tell(&sites[n]);
    pthread_mutex_unlock(&lock);
}

uint64_t soft_heap_alloc(int device, uint64_t bytes, uint32_t site) {
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
        address = cut(c, bytes, site);
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
        if (!p->freed) {
            count(p->site, p->bytes, false);
            c->live--;
        }
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
        for (unsigned i = 0; i < c->count; i++)
            if (!c->pieces[i].freed)
                count(c->pieces[i].site, c->pieces[i].bytes, false);
        if (c->block)
            soft_memory_free(c->block);
        forget(c);
    }
    pthread_mutex_unlock(&lock);
}
