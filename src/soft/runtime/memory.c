/* memory.c - device memory.
 *
 * Address space. All devices share one reserved range of program addresses, device_span bytes each.
 * Nothing there is accessible to host code. A second range of the same size, at the fixed distance
 * soft_layout.alias, is where kernels and copies reach the same blocks, so that a program that
 * dereferences a device pointer gets a SIGSEGV as it would with a GPU. Both are anonymous
 * reservations; a block's pages in the second range become readable and writable when it is
 * allocated and are dropped when it is freed. Only managed blocks are mapped in both ranges, from
 * one memory file, because there both sides must see the same bytes. (Anonymous memory instead of a
 * file for the rest: it can use huge pages, see docs/adr/0002.)
 *
 * Guards and quarantine. A block lies between unmapped guards at least as large as itself (up to
 * guard_max). Where native kernels are checked it ends at a page's end, so that the first byte
 * past it faults; its address is then aligned to the largest power of two that divides its size,
 * up to ALIGNMENT. In a program with machine code, and with GRETA_SOFT_CHECK=off, it begins at a
 * page. Addresses are handed out upwards by a cursor that starts again from below when it has come
 * to the end of the range, some four million small blocks later; it passes by what is alive. So an
 * allocation takes the same time however many there were before. Of freed blocks the last
 * HISTORY_MAX are remembered, for reports; an access to an older one faults all the same, until the
 * cursor has come round.
 *
 * The table of blocks, those in the history included, is a rangemap under one lock. Pinned and
 * registered host blocks are in it too, at their host addresses. Where somebody watches the host's
 * accesses (settings.watch_host), pinned blocks lie in the devices' range like managed ones, so
 * that their pages can be closed to the host while the device works on them. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "soft/runtime/error.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/memory_table.h"
#include "soft/runtime/settings.h"
#include "soft/runtime/slack.h"
#include "soft/runtime/tensor.h"

enum {
    PAGE = SOFT_MEMORY_PAGE,
    ALIGNMENT = 256,
    HISTORY_MAX = 1 << 16,
};
static const uint64_t huge_page = SOFT_MEMORY_HUGE_PAGE;
static const uint64_t guard_min = 64u << 10, guard_max = 1u << 30;

struct soft_layout soft_layout;

struct spin soft_memory_lock;
struct rangemap soft_memory_table; /* address -> struct soft_block */
static struct {
    struct soft_block *oldest, *newest; /* freed blocks */
    unsigned count;
} history;
static const struct soft_memory_beside *beside;
static uint64_t cursor[SOFT_DEVICES_MAX]; /* where the next block goes, if there is room */
static uint64_t used[SOFT_DEVICES_MAX];   /* bytes in whole pages */
static uint64_t graph_used[SOFT_DEVICES_MAX], graph_high[SOFT_DEVICES_MAX]; /* blocks of graphs */

static uint64_t range_start(int device) {
    return soft_layout.base + (uint64_t)device * soft_layout.device_span + huge_page;
}
static uint64_t range_end(int device) {
    return soft_layout.base + (uint64_t)(device + 1) * soft_layout.device_span;
}

static void *reserve(uint64_t bytes) {
    return mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/* Address space per device: plenty, so that freed addresses stay unused for long; less where the
 * process may not have that much (ulimit -v, ThreadSanitizer's fixed map). */
static uint64_t first_span(uint64_t memory) {
#if defined(__SANITIZE_THREAD__)
    uint64_t span = (uint64_t)1 << 34;
#else
    uint64_t span = (uint64_t)1 << 38;
#endif
    while (span < 4 * memory)
        span *= 2;
    return span;
}

enum rc soft_memory_init(const struct soft_memory_beside *kept, struct err *e) {
    const struct soft_settings *s = soft_settings();
    unsigned devices = s->devices ? s->devices : 1;
    beside = kept;
    for (uint64_t span = first_span(s->memory); span >= s->memory; span /= 2) {
        uint64_t total = span * (devices + 1);
        void *program = reserve(total + huge_page), *alias = reserve(total + huge_page);
        if (program != MAP_FAILED && alias != MAP_FAILED) {
            soft_layout.base = soft_memory_round_up((uint64_t)(uintptr_t)program, huge_page);
            soft_layout.alias =
                soft_memory_round_up((uint64_t)(uintptr_t)alias, huge_page) - soft_layout.base;
            soft_layout.span = total;
            soft_layout.device_span = span;
            for (unsigned i = 0; i < devices; i++)
                cursor[i] = range_start((int)i);
            return RC_OK;
        }
        if (program != MAP_FAILED)
            munmap(program, total + huge_page);
        if (alias != MAP_FAILED)
            munmap(alias, total + huge_page);
    }
    return err_set(e, RC_MEMORY,
                   "cannot reserve addresses for %llu bytes of device memory: lower "
                   "GRETA_SOFT_MEMORY or raise the address space limit (ulimit -v)",
                   (unsigned long long)s->memory);
}

bool soft_memory_is_device_address(uint64_t addr) {
    return addr - soft_layout.base < soft_layout.span;
}

uint64_t soft_program_address(uint64_t reached) {
    uint64_t addr = reached - soft_layout.alias;
    return soft_memory_is_device_address(addr) ? addr : reached;
}

/* ---- making pages accessible and dropping them ---------------------------------------------- */

static bool map_private(uint64_t map, uint64_t size) {
    void *at = soft_reach(map);
    if (mprotect(at, size, PROT_READ | PROT_WRITE))
        return false;
    if (size >= huge_page)
        madvise(at, size, MADV_HUGEPAGE);
    return true;
}

static bool map_shared(uint64_t map, uint64_t size) {
    int file = memfd_create("greta-managed", MFD_CLOEXEC);
    if (file < 0)
        return false;
    int prot = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_FIXED;
    bool ok = !ftruncate(file, (off_t)size) &&
              mmap((void *)(uintptr_t)map, size, prot, flags, file, 0) != MAP_FAILED &&
              mmap(soft_reach(map), size, prot, flags, file, 0) != MAP_FAILED;
    close(file);
    return ok;
}

/* Where the kernel has no mapping left to give, the pages stay, but out of reach. */
static void unmap_at(void *at, uint64_t size) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    if (mmap(at, size, PROT_NONE, flags, -1, 0) == MAP_FAILED)
        (void)mprotect(at, size, PROT_NONE);
}

/* The host reaches it, and not only the device's side. */
static bool is_shared(const struct soft_block *b) {
    return b->kind == SOFT_MANAGED || b->kind == SOFT_PINNED;
}

static bool map_block(const struct soft_block *b) {
    return is_shared(b) ? map_shared(b->map, b->map_size) : map_private(b->map, b->map_size);
}

/* The device's memory that it takes up. */
static uint64_t cost(const struct soft_block *b) {
    bool elsewhere = b->kind == SOFT_PINNED || b->kind == SOFT_VIRTUAL || b->kind == SOFT_IMPORTED;
    return elsewhere ? 0 : b->map_size;
}

/* ---- addresses; all under soft_memory_lock --------------------------------------------------- */

static uint64_t guard_for(uint64_t size) {
    return size < guard_min ? guard_min : size > guard_max ? guard_max : size;
}

/* Drops a freed block from the history; its addresses may be used again. */
void soft_memory_forget(struct soft_block *b) {
    *(b->prev_freed ? &b->prev_freed->next_freed : &history.oldest) = b->next_freed;
    *(b->next_freed ? &b->next_freed->prev_freed : &history.newest) = b->prev_freed;
    history.count--;
    rangemap_remove(&soft_memory_table, b->addr, NULL);
    free(b);
}

void soft_memory_remember(struct soft_block *b) {
    b->next_freed = NULL;
    b->prev_freed = history.newest;
    *(history.newest ? &history.newest->next_freed : &history.oldest) = b;
    history.newest = b;
    b->in_history = true;
    if (++history.count > HISTORY_MAX)
        soft_memory_forget(history.oldest);
}

/* The block whose pages or guard are in the way of [at, at + need), or NULL. at is never inside
 * another block's guard: it is the start of the range, or where a guard ends. */
static struct soft_block *in_the_way(int device, uint64_t at, uint64_t need) {
    struct range *r = rangemap_find_first_at_or_after(&soft_memory_table, at);
    struct soft_block *b = r ? r->value : NULL;
    return b && b->map < range_end(device) && b->map < at + need ? b : NULL;
}

/* Addresses for map_size bytes and the guard after them, from the cursor on and, once, from the
 * start of the range again; 0 if there are none. Freed blocks on the way are forgotten: the cursor
 * comes to them one round after they were handed out. The others are passed by. */
static uint64_t take_addresses(int device, uint64_t map_size) {
    uint64_t align = map_size >= huge_page ? huge_page : PAGE;
    uint64_t need = map_size + guard_for(map_size);
    uint64_t at = cursor[device], end = range_end(device);
    for (int rounds = 0;;) {
        at = soft_memory_round_up(at, align);
        if (at >= end || end - at < need) {
            if (rounds++)
                return 0;
            at = range_start(device);
            continue;
        }
        struct soft_block *b = in_the_way(device, at, need);
        if (!b) {
            cursor[device] = at + need;
            return at;
        }
        if (b->in_history)
            soft_memory_forget(b);
        else
            at = b->map + b->map_size + guard_for(b->map_size);
    }
}

static _Atomic bool has_machine_code, has_native_kernels;

void soft_memory_note_machine_code(void) {
    atomic_store(&has_machine_code, true);
}

void soft_memory_note_native_kernels(void) {
    atomic_store(&has_native_kernels, true);
}

bool soft_memory_is_right_aligned(void) {
    return soft_settings()->checks & SOFT_CHECK_BOUNDS && atomic_load(&has_native_kernels) &&
           !atomic_load(&has_machine_code);
}

static uint64_t block_address(uint64_t map, uint64_t map_size, uint64_t size) {
    if (!soft_memory_is_right_aligned())
        return map;
    uint64_t lowest_bit = size & (~size + 1);
    uint64_t align = lowest_bit < ALIGNMENT ? lowest_bit : ALIGNMENT;
    return (map + map_size - size) / align * align;
}

/* ---- unmapping ------------------------------------------------------------------------------ */

/* True if nothing in [from, to) is accessible, about to be, or handed out next. Under the lock. */
static bool is_deserted(int device, uint64_t from, uint64_t to) {
    if (from < range_start(device) || to > range_end(device) ||
        (cursor[device] >= from && cursor[device] < to))
        return false;
    struct range *r = rangemap_find_first_at_or_after(&soft_memory_table, from);
    for (; r && r->addr < to; r = rangemap_next(&soft_memory_table, r))
        if (((const struct soft_block *)r->value)->state != SOFT_FREED)
            return false;
    return true;
}

/* The system keeps the page table of 2 MiB for as long as any of it stays mapped, and the whole
 * range would cost half a gigabyte of them. So freeing the last block there unmaps all of it, under
 * the lock, so that no new block is placed there meanwhile. */
static bool unmap_surroundings(const struct soft_block *b) {
    uint64_t from = b->map / huge_page * huge_page,
             to = soft_memory_round_up(b->map + b->map_size, huge_page);
    spin_lock(&soft_memory_lock);
    bool alone = is_deserted(b->device, from, to);
    if (alone)
        unmap_at(soft_reach(from), to - from);
    spin_unlock(&soft_memory_lock);
    return alone;
}

static void unmap_block(const struct soft_block *b) {
    if (is_shared(b))
        unmap_at((void *)(uintptr_t)b->map, b->map_size);
    if (is_shared(b) || !unmap_surroundings(b))
        unmap_at(soft_reach(b->map), b->map_size);
}

/* ---- blocks --------------------------------------------------------------------------------- */

struct soft_block *soft_memory_new_block(int device, enum soft_block_kind kind, uint64_t size,
                                         unsigned flags) {
    struct soft_block *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    *b = (struct soft_block){ .size = size,
                              .kind = kind,
                              .device = device,
                              .flags = flags,
                              .state = SOFT_LIVE,
                              .advice = { .preferred = hipInvalidDeviceId,
                                          .accessed_by = hipInvalidDeviceId,
                                          .prefetched = hipInvalidDeviceId },
                              .map_size = soft_memory_round_up(size, PAGE) };
    return b;
}

bool soft_memory_insert(struct soft_block *b) {
    spin_lock(&soft_memory_lock);
    bool ok = rangemap_insert(&soft_memory_table, b->addr, b->size, b, NULL) == RC_OK;
    spin_unlock(&soft_memory_lock);
    return ok;
}

/* Books map_size bytes and an address range for b; false if the device has neither. */
bool soft_memory_place(struct soft_block *b) {
    bool ok = false;
    spin_lock(&soft_memory_lock);
    if (soft_settings()->memory - used[b->device] >= cost(b)) {
        b->map = take_addresses(b->device, b->map_size);
        if (b->map) {
            b->addr = b->kind == SOFT_IMPORTED ? b->map + b->offset
                                               : block_address(b->map, b->map_size, b->size);
            ok = rangemap_insert(&soft_memory_table, b->addr, b->size, b, NULL) == RC_OK;
        }
        if (ok)
            used[b->device] += cost(b);
    }
    spin_unlock(&soft_memory_lock);
    return ok;
}

void soft_memory_displace(struct soft_block *b) {
    spin_lock(&soft_memory_lock);
    rangemap_remove(&soft_memory_table, b->addr, NULL);
    used[b->device] -= cost(b);
    spin_unlock(&soft_memory_lock);
    free(b);
}

static hipError_t alloc_host(struct soft_block *b, struct soft_block **out) {
    uint64_t whole = b->map_size + 2 * PAGE;
    unsigned char *at = reserve(whole);
    if (at == MAP_FAILED || mprotect(at + PAGE, b->map_size, PROT_READ | PROT_WRITE)) {
        if (at != MAP_FAILED)
            munmap(at, whole);
        free(b);
        return hipErrorOutOfMemory;
    }
    b->map = (uint64_t)(uintptr_t)at + PAGE;
    b->addr = block_address(b->map, b->map_size, b->size);
    beside->fill(b);
    if (!soft_memory_insert(b)) {
        munmap(at, whole);
        free(b);
        return hipErrorOutOfMemory;
    }
    *out = b;
    return hipSuccess;
}

hipError_t soft_memory_alloc(int device, enum soft_block_kind kind, uint64_t size, unsigned flags,
                             bool pending, struct soft_block **out) {
    if (size > (uint64_t)1 << 46)
        return hipErrorOutOfMemory;
    struct soft_block *b = soft_memory_new_block(device, kind, size, flags);
    if (!b)
        return hipErrorOutOfMemory;
    if (kind == SOFT_PINNED && !soft_settings()->watch_host)
        return alloc_host(b, out);
    b->state = SOFT_PENDING; /* before others can see it in the table */
    if (!soft_memory_place(b)) {
        free(b);
        return hipErrorOutOfMemory;
    }
    if (!pending && soft_memory_commit(b) != hipSuccess) {
        soft_memory_displace(b);
        return hipErrorOutOfMemory;
    }
    *out = b;
    return hipSuccess;
}

hipError_t soft_memory_commit(struct soft_block *b) {
    if (!map_block(b))
        return hipErrorOutOfMemory;
    spin_lock(&soft_memory_lock); /* the block is in the table: others look at it */
    beside->fill(b);
    b->state = SOFT_LIVE;
    spin_unlock(&soft_memory_lock);
    return hipSuccess;
}

static void free_host(struct soft_block *b) {
    struct soft_slacks found;
    soft_tensor_forget(b->addr, b->size);
    spin_lock(&soft_memory_lock);
    rangemap_remove(&soft_memory_table, b->addr, NULL);
    spin_unlock(&soft_memory_lock);
    beside->look(b, 0, &found);
    beside->tell(&found);
    if (b->kind == SOFT_PINNED)
        munmap((void *)(uintptr_t)(b->map - PAGE), b->map_size + 2 * PAGE);
    free(b);
}

/* False if the block is none of a graph, or waits already. */
static bool withdraw(struct soft_block *b) {
    struct soft_slacks found = { 0 };
    spin_lock(&soft_memory_lock);
    bool is_in_use = b->of_graph && b->state == SOFT_LIVE;
    if (is_in_use) {
        beside->look(b, 0, &found);
        b->state = SOFT_PENDING;
        b->claimed = false;
        graph_used[b->device] -= b->size;
    }
    spin_unlock(&soft_memory_lock);
    if (is_in_use) {
        beside->tell(&found);
        beside->forget(b->addr);
        unmap_block(b);
    }
    return is_in_use;
}

void soft_memory_free(struct soft_block *b) {
    if (!soft_memory_is_device_address(b->addr)) {
        free_host(b);
        return;
    }
    if (withdraw(b))
        return;
    struct soft_slacks found = { 0 };
    spin_lock(&soft_memory_lock);
    bool mine = b->state != SOFT_FREED;
    if (b->state == SOFT_LIVE)
        beside->look(b, 0, &found);
    if (mine) {
        b->state = SOFT_FREED;
        used[b->device] -= cost(b);
    }
    spin_unlock(&soft_memory_lock);
    if (!mine)
        return;
    soft_tensor_forget(b->addr, b->size);
    beside->tell(&found);
    beside->forget(b->addr);
    unmap_block(b);
    spin_lock(&soft_memory_lock); /* only now may its addresses be given away */
    soft_memory_remember(b);
    spin_unlock(&soft_memory_lock);
}

struct soft_block *soft_memory_claim(uint64_t addr, unsigned kinds) {
    spin_lock(&soft_memory_lock);
    struct range *r = rangemap_find(&soft_memory_table, addr);
    struct soft_block *b = r && r->addr == addr ? r->value : NULL;
    if (b && (b->state == SOFT_FREED || b->claimed || b->keep || !(kinds & 1u << b->kind) ||
              (b->of_graph && !b->handed_out)))
        b = NULL;
    if (b) {
        b->claimed = true;
        b->handed_out = false;
    }
    spin_unlock(&soft_memory_lock);
    return b;
}

void soft_memory_unclaim(struct soft_block *b) {
    spin_lock(&soft_memory_lock);
    b->claimed = false;
    b->handed_out = b->of_graph;
    spin_unlock(&soft_memory_lock);
}

/* ---- blocks of graphs ------------------------------------------------------------------------ */

hipError_t soft_memory_alloc_for_graph(int device, uint64_t size, uint64_t *addr) {
    struct soft_block *b;
    hipError_t r = soft_memory_alloc(device, SOFT_DEVICE, size, 0, true, &b);
    if (r != hipSuccess)
        return r;
    spin_lock(&soft_memory_lock);
    b->of_graph = true;
    spin_unlock(&soft_memory_lock);
    *addr = b->addr;
    return hipSuccess;
}

/* The graph's block at addr; NULL if it is no longer one. Under soft_memory_lock. */
static struct soft_block *graph_block(uint64_t addr) {
    struct range *r = rangemap_find(&soft_memory_table, addr);
    struct soft_block *b = r && r->addr == addr ? r->value : NULL;
    return b && b->of_graph && b->state != SOFT_FREED ? b : NULL;
}

static bool set_handed_out(uint64_t addr, bool to) {
    spin_lock(&soft_memory_lock);
    struct soft_block *b = graph_block(addr);
    bool changes = b && b->handed_out != to;
    if (changes)
        b->handed_out = to;
    spin_unlock(&soft_memory_lock);
    return changes;
}

bool soft_memory_hand_out(uint64_t addr) {
    return set_handed_out(addr, true);
}

bool soft_memory_take_back(uint64_t addr) {
    return set_handed_out(addr, false);
}

hipError_t soft_memory_commit_for_graph(uint64_t addr) {
    spin_lock(&soft_memory_lock);
    struct soft_block *b = graph_block(addr);
    spin_unlock(&soft_memory_lock);
    hipError_t r = b ? soft_memory_commit(b) : hipErrorOutOfMemory;
    if (r != hipSuccess)
        return r;
    spin_lock(&soft_memory_lock);
    graph_used[b->device] += b->size;
    if (graph_used[b->device] > graph_high[b->device])
        graph_high[b->device] = graph_used[b->device];
    spin_unlock(&soft_memory_lock);
    return hipSuccess;
}

void soft_memory_withdraw(uint64_t addr) {
    spin_lock(&soft_memory_lock);
    struct soft_block *b = graph_block(addr);
    spin_unlock(&soft_memory_lock);
    if (b)
        withdraw(b);
}

/* From now on it is a block like others. Under soft_memory_lock. */
static void leave_graph(struct soft_block *b) {
    if (b->of_graph && b->state == SOFT_LIVE)
        graph_used[b->device] -= b->size;
    b->of_graph = false;
}

void soft_memory_leave_graph(uint64_t addr) {
    spin_lock(&soft_memory_lock);
    struct soft_block *b = graph_block(addr);
    bool unused = b && !b->handed_out && !b->claimed;
    if (b)
        leave_graph(b);
    spin_unlock(&soft_memory_lock);
    if (unused)
        soft_memory_free(b);
}

void soft_memory_graph_usage(int device, uint64_t *now, uint64_t *high) {
    spin_lock(&soft_memory_lock);
    *now = graph_used[device];
    *high = graph_high[device];
    spin_unlock(&soft_memory_lock);
}

void soft_memory_graph_forget_high(int device) {
    spin_lock(&soft_memory_lock);
    graph_high[device] = graph_used[device];
    spin_unlock(&soft_memory_lock);
}

/* ---- blocks of the program ------------------------------------------------------------------- */

hipError_t soft_memory_register(void *host, uint64_t size, unsigned flags) {
    struct soft_block *b =
        soft_memory_new_block(soft_current_device(), SOFT_REGISTERED, size, flags);
    if (!b)
        return hipErrorOutOfMemory;
    b->addr = b->map = (uint64_t)(uintptr_t)host;
    if (soft_memory_insert(b))
        return hipSuccess;
    free(b);
    return hipErrorHostMemoryAlreadyRegistered;
}

/* The first block of the device at or after *at that is not freed; moves *at past it. */
static struct soft_block *next_live(int device, uint64_t *at) {
    struct soft_block *found = NULL;
    spin_lock(&soft_memory_lock);
    struct range *r = rangemap_find_first_at_or_after(&soft_memory_table, *at);
    for (; r && !found; r = rangemap_next(&soft_memory_table, r)) {
        struct soft_block *b = r->value;
        if (b->device == device && b->state != SOFT_FREED && b->kind != SOFT_GLOBAL && !b->keep)
            found = b;
    }
    spin_unlock(&soft_memory_lock);
    if (found)
        *at = found->addr + found->size;
    return found;
}

void soft_memory_reset(int device) {
    uint64_t at = 0;
    for (struct soft_block *b; (b = next_live(device, &at));) {
        spin_lock(&soft_memory_lock);
        leave_graph(b);
        spin_unlock(&soft_memory_lock);
        soft_memory_free(b);
    }
}

/* ---- questions ------------------------------------------------------------------------------ */

bool soft_memory_find(uint64_t addr, struct soft_block *out) {
    spin_lock(&soft_memory_lock);
    struct range *r = rangemap_find(&soft_memory_table, addr);
    struct soft_block *b = r ? r->value : NULL;
    bool found = b && b->state != SOFT_FREED;
    if (found)
        *out = *b;
    spin_unlock(&soft_memory_lock);
    return found;
}

struct soft_block *soft_memory_at(uint64_t addr) {
    spin_lock(&soft_memory_lock);
    struct range *r = rangemap_find(&soft_memory_table, addr);
    struct soft_block *b = r && r->addr == addr ? r->value : NULL;
    if (b && b->state == SOFT_FREED)
        b = NULL;
    spin_unlock(&soft_memory_lock);
    return b;
}

void soft_memory_advise(uint64_t addr, const struct soft_advice *advice) {
    spin_lock(&soft_memory_lock);
    struct range *r = rangemap_find(&soft_memory_table, addr);
    struct soft_block *b = r ? r->value : NULL;
    if (b && b->state != SOFT_FREED)
        b->advice = *advice;
    spin_unlock(&soft_memory_lock);
}

static uint64_t distance(const struct soft_block *b, uint64_t addr) {
    if (!b)
        return UINT64_MAX;
    if (addr < b->addr)
        return b->addr - addr;
    return addr - b->addr < b->size ? 0 : addr - (b->addr + b->size) + 1;
}

bool soft_memory_nearest(uint64_t addr, struct soft_block *out) {
    spin_lock(&soft_memory_lock);
    struct range *right = rangemap_find_first_at_or_after(&soft_memory_table, addr);
    struct range *left = rangemap_find_last_before(&soft_memory_table, addr);
    struct soft_block *r = right ? right->value : NULL, *l = left ? left->value : NULL;
    struct soft_block *nearest = distance(l, addr) <= distance(r, addr) ? l : r;
    if (nearest)
        *out = *nearest;
    spin_unlock(&soft_memory_lock);
    return nearest != NULL;
}

void soft_memory_info(int device, uint64_t *free_bytes, uint64_t *total) {
    spin_lock(&soft_memory_lock);
    *free_bytes = soft_settings()->memory - used[device];
    spin_unlock(&soft_memory_lock);
    *total = soft_settings()->memory;
}
