/* host.c - the newest unfinished copies, and the functions that take memory away.
 *
 * free() is called far more often than copies are made, and most programs have none pending. So
 * three numbers are checked first: how many copies are kept, and the lowest and highest address
 * among them. Only an address in between is searched for. */
#include "preload/host.h"

#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "audit/order.h"
#include "base/env.h"
#include "base/spin.h"
#include "preload/next.h"
#include "preload/preload.h"
#include "preload/signals.h"
#include "preload/stack.h"
#include "preload/threads.h"
#include "preload/watch.h"

enum { KEPT = 4096 }; /* a power of two; older copies are dropped, which forget() records */

static struct spin *lock;
static struct audit_host_use kept[KEPT]; /* bytes 0: none */
static uint32_t stack_of[KEPT];          /* the thread on whose stack it is; 0: elsewhere */
static unsigned next_kept;
static _Atomic unsigned count;
static _Atomic uint64_t lowest = UINT64_MAX, highest;

bool host_is_pending(const struct audit_host_use *use) {
    if (!use->stream)
        return true; /* captured: whenever its graph is launched */
    return atomic_load_explicit(&use->stream->done, memory_order_acquire) < use->mark;
}

static void lower(_Atomic uint64_t *bound, uint64_t to) {
    if (atomic_load_explicit(bound, memory_order_relaxed) > to)
        atomic_store_explicit(bound, to, memory_order_relaxed);
}

static void raise_to(_Atomic uint64_t *bound, uint64_t to) {
    if (atomic_load_explicit(bound, memory_order_relaxed) < to)
        atomic_store_explicit(bound, to, memory_order_relaxed);
}

/* Records, for the first such copy, that an early release of its memory would go unnoticed. */
static void forget(const struct audit_host_use *use) {
    static bool said;
    if (said || !use->stream || !host_is_pending(use))
        return;
    said = true;
    struct event ev = {
        .kind = EVENT_UNWATCHED,
        .dst = use->address,
        .src = use->event,
        .len = use->bytes,
        .aux = event_aux(EVENT_NO_FN, DETAIL_UNWATCHED_ROOM),
    };
    record_event(audit.writer, &ev);
}

/* The calling thread, if the memory is on its stack; 0 if not. */
static uint32_t note_stack(const struct audit_host_use *use) {
    if (!stack_is_mine(use->address))
        return 0;
    struct audit_thread *me = audit_me();
    if (!me->stack_use || use->address < me->stack_use)
        me->stack_use = use->address;
    return audit_thread_id();
}

static void keep(const struct audit_host_use *use) {
    uint32_t thread = note_stack(use);
    if (!preload_enter(lock))
        return;
    struct audit_host_use *last = &kept[(next_kept - 1) % KEPT];
    if (last->address == use->address && last->bytes == use->bytes && last->stream == use->stream &&
        use->stream) {
        *last = *use; /* the buffer of a loop */
    } else {
        struct audit_host_use *slot = &kept[next_kept++ % KEPT];
        unsigned more = slot->bytes == 0;
        if (!more)
            forget(slot);
        *slot = *use;
        stack_of[slot - kept] = thread;
        lower(&lowest, use->address);
        raise_to(&highest, use->address + use->bytes);
        atomic_store_explicit(&count, atomic_load_explicit(&count, memory_order_relaxed) + more,
                              memory_order_release);
    }
    preload_leave(lock);
}

static void queued(const struct audit_host_use *use) {
    if (!use->stream)
        return;
    keep(use);
    watch_add(use);
}

static void captured(const struct audit_host_use *use) {
    struct audit_host_use kept_use = *use;
    kept_use.stream = NULL;
    keep(&kept_use);
}

static void host_fn(bool begins) {
    preload_me.host_fn = begins;
}

/* Forgets finished copies and finds the bounds anew. */
static void forget_finished(void) {
    uint64_t low = UINT64_MAX, high = 0;
    unsigned left = 0;
    for (size_t i = 0; i < KEPT; i++) {
        if (!kept[i].bytes)
            continue;
        if (!host_is_pending(&kept[i])) {
            kept[i].bytes = 0;
            continue;
        }
        left++;
        low = kept[i].address < low ? kept[i].address : low;
        uint64_t end = kept[i].address + kept[i].bytes;
        high = end > high ? end : high;
    }
    atomic_store_explicit(&lowest, low, memory_order_relaxed);
    atomic_store_explicit(&highest, high, memory_order_relaxed);
    atomic_store_explicit(&count, left, memory_order_release);
}

/* How memory is released, and from where. */
struct going {
    unsigned how; /* DETAIL_RELEASE_* */
    const void *caller;
};

static void record_free(const struct audit_host_use *use, uint64_t at, uint64_t bytes,
                        struct going by) {
    struct event ev = {
        .kind = EVENT_HOST_FREE,
        .dst = at,
        .src = use->event,
        .len = bytes,
        .aux = event_aux(EVENT_NO_FN, by.how),
        .site = by.caller ? record_site(audit.writer, by.caller) : 0,
    };
    record_event(audit.writer, &ev);
}

static void going_slow(uint64_t at, uint64_t bytes, struct going by) {
    int saved = errno;
    /* The runtime gives its own memory back where its rules allow it. */
    bool programs = !preload_is_internal(by.caller);
    if (preload_enter(lock)) {
        forget_finished();
        for (size_t i = 0; i < KEPT; i++) {
            struct audit_host_use *use = &kept[i];
            if (!use->bytes || use->address >= at + bytes || at >= use->address + use->bytes)
                continue;
            if (programs)
                record_free(use, at, bytes, by);
            use->bytes = 0;
        }
        preload_leave(lock);
    }
    errno = saved;
}

/* Copies whose memory is on this thread's stack below stack_end have lost it. */
static void stack_ends(uint64_t stack_end, const void *caller) {
    if (!preload_enter(lock))
        return;
    int saved = errno;
    uint32_t me = audit_thread_id();
    uint64_t lowest_left = 0;
    struct going by = { DETAIL_RELEASE_RETURN, caller };
    for (size_t i = 0; i < KEPT; i++) {
        struct audit_host_use *use = &kept[i];
        if (!use->bytes || stack_of[i] != me || !host_is_pending(use))
            continue;
        if (use->address >= stack_end) {
            if (!lowest_left || use->address < lowest_left)
                lowest_left = use->address;
            continue;
        }
        uint64_t gone = stack_end - use->address;
        record_free(use, use->address, gone < use->bytes ? gone : use->bytes, by);
        use->bytes = 0;
    }
    audit_me()->stack_use = lowest_left;
    preload_leave(lock);
    errno = saved;
}

/* A call from a signal stack, or from a stack that the program made itself, says nothing about the
 * thread's own. */
static void returned(uint64_t stack_end, const void *caller) {
    if (stack_is_mine(stack_end) && !preload_is_internal(caller))
        stack_ends(stack_end, caller);
}

void host_thread_ends(void) {
    if (audit_thread.stack_use && preload_is_recording())
        stack_ends(UINT64_MAX, NULL);
}

/* The thread that held the lock does not exist here, and the parent's copies do not matter here. */
void host_forked(void) {
    if (!next_kept)
        return;
    spin_unlock(lock);
    memset(kept, 0, sizeof kept);
    atomic_store_explicit(&count, 0, memory_order_relaxed);
    atomic_store_explicit(&lowest, UINT64_MAX, memory_order_relaxed);
    atomic_store_explicit(&highest, 0, memory_order_relaxed);
}

/* [at, at + bytes) is about to go away. */
static inline void going(const void *memory, size_t bytes, struct going by) {
    uint64_t at = (uint64_t)(uintptr_t)memory;
    if (atomic_load_explicit(&count, memory_order_acquire) &&
        at < atomic_load_explicit(&highest, memory_order_relaxed) &&
        at + bytes > atomic_load_explicit(&lowest, memory_order_relaxed))
        going_slow(at, bytes, by);
    watch_drop(at, bytes);
}

/* The same for a block of malloc(), whose size is only looked up if it can matter. */
PRELOAD_PLAIN static inline void going_block(void *memory, struct going by) {
    if (memory && preload_is_ready() &&
        (uint64_t)(uintptr_t)memory < atomic_load_explicit(&highest, memory_order_relaxed))
        going(memory, malloc_usable_size(memory), by);
}

/* ---- what the program calls ------------------------------------------------------------------ */

#define GOING(how) ((struct going){ DETAIL_RELEASE_##how, __builtin_return_address(0) })

PRELOAD_EXPORT void free(void *memory) {
    static __thread bool looking __attribute__((tls_model("initial-exec")));
    static _Atomic(void *) slot;
    void *found = atomic_load_explicit(&slot, memory_order_relaxed);
    if (__builtin_expect(!found, 0)) {
        if (looking) /* dlsym() itself frees something, before free() is known: leak it */
            return;
        looking = true;
        found = next_find("free");
        looking = false;
        atomic_store_explicit(&slot, found, memory_order_relaxed);
    }
    going_block(memory, GOING(FREE));
    void (*next)(void *);
    memcpy(&next, &found, sizeof next);
    next(memory);
}

PRELOAD_EXPORT void *realloc(void *memory, size_t size) {
    /* Counts as going even if the block stays where it is: the program cannot know. */
    going_block(memory, GOING(REALLOC));
    return NEXT(realloc)(memory, size);
}

PRELOAD_EXPORT int munmap(void *memory, size_t size) {
    going(memory, size, GOING(MUNMAP));
    return NEXT(munmap)(memory, size);
}

/* Memory that may move goes away; of memory that stays, only the end that is cut off. */
PRELOAD_EXPORT void *mremap(void *memory, size_t size, size_t new_size, int flags, ...) {
    va_list ap;
    va_start(ap, flags);
    void *target = flags & MREMAP_FIXED ? va_arg(ap, void *) : NULL;
    va_end(ap);
    size_t stays = flags & MREMAP_FIXED || (flags & MREMAP_MAYMOVE && new_size > size) ? 0
                   : new_size < size                                                   ? new_size
                                                                                       : size;
    if (stays < size)
        going((char *)memory + stays, size - stays, GOING(MREMAP));
    return flags & MREMAP_FIXED ? NEXT(mremap)(memory, size, new_size, flags, target)
                                : NEXT(mremap)(memory, size, new_size, flags);
}

/* ---- starting -------------------------------------------------------------------------------- */

void host_start(void) {
    static const struct audit_host_observer plain = {
        .queued = queued,
        .captured = captured,
        .lingers = threads_linger,
        .host_fn = host_fn,
        .withholds = threads_withhold,
        .returned = returned,
    };
    static const struct audit_host_observer watching = {
        .queued = queued,
        .captured = captured,
        .waited = watch_release_finished,
        .waits = watch_waits,
        .lingers = threads_linger,
        .withholds = threads_withhold,
        .host_fn = watch_host_fn,
        .returned = returned,
    };
    bool watch = env_flag(ENV_GCORE_WATCH_HOST);
    lock = preload_new_lock();
    signals_start(watch);
    audit.host = watch && watch_start() ? &watching : &plain;
}
