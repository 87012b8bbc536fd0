#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "soft/runtime/handle.h"

/* LeakSanitizer does not look for pointers in mapped memory unless it is told to. */
#if defined(__SANITIZE_ADDRESS__)
#define TELL_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TELL_SANITIZER 1
#endif
#endif
#ifdef TELL_SANITIZER
#include <sanitizer/lsan_interface.h>
#define may_hold_pointers(start, size) __lsan_register_root_region(start, size)
#else
#define may_hold_pointers(start, size) ((void)0)
#endif

/* One mapping of `capacity` objects, committed as they are first used. Freed objects queue up in
 * `freed` (a ring of indices) and are taken again only when no fresh one is left or a good number
 * lies between, so that a stale handle stays recognisable for long. */
struct soft_handles {
    pthread_mutex_t lock;
    unsigned char *base;
    size_t stride, capacity;
    size_t fresh; /* first index never used */
    size_t freed_head, freed_count;
    uint32_t *freed;
};

enum { REUSE_DISTANCE = 1024 };

static _Atomic(struct soft_handles *) pools[SOFT_HANDLES_MAX];
static _Atomic unsigned pool_count;

struct soft_handles *soft_handles_new(size_t object_size, size_t capacity) {
    struct soft_handles *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->stride = (object_size + 63) & ~(size_t)63;
    p->capacity = capacity;
    p->base = mmap(NULL, p->stride * capacity, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    p->freed = mmap(NULL, capacity * sizeof *p->freed, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p->base == MAP_FAILED || p->freed == MAP_FAILED) {
        free(p);
        return NULL;
    }
    pthread_mutex_init(&p->lock, NULL);
    unsigned number = atomic_fetch_add(&pool_count, 1);
    if (number < SOFT_HANDLES_MAX)
        atomic_store(&pools[number], p);
    return p;
}

struct soft_handles *soft_handles_number(unsigned i) {
    return atomic_load(&pools[i]);
}

pthread_mutex_t *soft_handles_lock(struct soft_handles *p) {
    return &p->lock;
}

void *soft_handle_take(struct soft_handles *p) {
    pthread_mutex_lock(&p->lock);
    size_t index = p->capacity;
    if (p->freed_count > REUSE_DISTANCE || (p->fresh == p->capacity && p->freed_count)) {
        index = p->freed[p->freed_head];
        p->freed_head = (p->freed_head + 1) % p->capacity;
        p->freed_count--;
    } else if (p->fresh < p->capacity) {
        index = p->fresh++;
        may_hold_pointers(p->base + index * p->stride, p->stride);
        ((struct soft_handle *)(p->base + index * p->stride))->index = (uint32_t)index;
    }
    pthread_mutex_unlock(&p->lock);
    return index < p->capacity ? p->base + index * p->stride : NULL;
}

void soft_handle_open(void *object) {
    atomic_store(&((struct soft_handle *)object)->live, 1);
}

void *soft_handle_alloc(struct soft_handles *p) {
    struct soft_handle *h = soft_handle_take(p);
    if (!h)
        return NULL;
    memset(h + 1, 0, p->stride - sizeof *h);
    soft_handle_open(h);
    return h;
}

bool soft_handle_close(void *object) {
    return atomic_exchange(&((struct soft_handle *)object)->live, 0);
}

void soft_handle_recycle(struct soft_handles *p, void *object) {
    pthread_mutex_lock(&p->lock);
    p->freed[(p->freed_head + p->freed_count) % p->capacity] =
        ((struct soft_handle *)object)->index;
    p->freed_count++;
    pthread_mutex_unlock(&p->lock);
}

void soft_handle_free(struct soft_handles *p, void *object) {
    if (soft_handle_close(object))
        soft_handle_recycle(p, object);
}

bool soft_handle_valid(const struct soft_handles *p, const void *object) {
    uintptr_t offset = (uintptr_t)object - (uintptr_t)p->base;
    if (offset >= p->stride * p->capacity || offset % p->stride)
        return false;
    return atomic_load_explicit(&((const struct soft_handle *)object)->live, memory_order_acquire);
}

void *soft_handle_at(struct soft_handles *p, size_t index) {
    pthread_mutex_lock(&p->lock);
    bool made = index < p->fresh;
    pthread_mutex_unlock(&p->lock);
    return made ? p->base + index * p->stride : NULL;
}

void soft_handles_each(struct soft_handles *p, void (*visit)(void *object, void *user),
                       void *user) {
    pthread_mutex_lock(&p->lock);
    size_t fresh = p->fresh;
    pthread_mutex_unlock(&p->lock);
    for (size_t i = 0; i < fresh; i++) {
        void *object = p->base + i * p->stride;
        if (soft_handle_valid(p, object))
            visit(object, user);
    }
}
