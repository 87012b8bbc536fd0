/* Hooks of allocation and freeing. */
#include "audit/hooks.h"

static unsigned record_family(enum ledger_family family) {
    static const uint8_t detail[LEDGER_FAMILY_COUNT] = {
        [LEDGER_DEVICE] = DETAIL_FAMILY_DEVICE,
        [LEDGER_PITCHED] = DETAIL_FAMILY_PITCHED,
        [LEDGER_ASYNC] = DETAIL_FAMILY_ASYNC,
        [LEDGER_POOL] = DETAIL_FAMILY_ASYNC,
        [LEDGER_MANAGED] = DETAIL_FAMILY_MANAGED,
        [LEDGER_PINNED] = DETAIL_FAMILY_PINNED,
        [LEDGER_REGISTERED] = DETAIL_FAMILY_REGISTERED,
        [LEDGER_VIRTUAL] = DETAIL_FAMILY_VIRTUAL,
        [LEDGER_IMPORTED] = DETAIL_FAMILY_IMPORTED,
        [LEDGER_GRAPH] = DETAIL_FAMILY_GRAPH,
        [LEDGER_GLOBAL] = DETAIL_FAMILY_SYMBOL,
        [LEDGER_ARRAY] = DETAIL_FAMILY_ARRAY,
        [LEDGER_TRACKED_DEVICE] = DETAIL_FAMILY_IMPORTED,
        [LEDGER_TRACKED_HOST] = DETAIL_FAMILY_REGISTERED,
        [LEDGER_FOUND_DEVICE] = DETAIL_FAMILY_IMPORTED,
        [LEDGER_FOUND_HOST] = DETAIL_FAMILY_PINNED,
        [LEDGER_FOUND_MANAGED] = DETAIL_FAMILY_MANAGED,
    };
    return detail[family];
}

static _Atomic bool managed_seen;

bool hook_has_managed(void) {
    return atomic_load_explicit(&managed_seen, memory_order_relaxed);
}

void hook_enter_memory(struct call *c, hipError_t r, const struct ledger_entry *what,
                       uint64_t flags, bool found) {
    struct order_stream *stream = what->stream ? order_stream((hipStream_t)what->stream) : NULL;
    if (call_is_recorded()) {
        struct event ev = call_event(c, EVENT_ALLOC, record_family(what->family), stream);
        ev.dst = what->addr;
        ev.src = (flags & UINT32_MAX) | (uint64_t)(uint32_t)what->device << 32;
        ev.len = what->size;
        ev.status = (uint16_t)r;
        call_begin(c, &ev);
    }
    if (r != hipSuccess || !what->addr || !what->size)
        return;
    if (what->family == LEDGER_MANAGED)
        atomic_store_explicit(&managed_seen, true, memory_order_relaxed);
    struct ledger_entry entry = *what;
    entry.made = call_act(c);
    /* Without memory the ledger counts it as lost. */
    if (found)
        (void)ledger_add_found(audit.ledger, &entry, NULL);
    else
        (void)ledger_add(audit.ledger, &entry, NULL);
}

void hook_alloc(struct call *c, hipError_t r, enum ledger_family family, const void *ptr,
                size_t bytes, uint64_t flags) {
    struct ledger_entry what = {
        .addr = (uint64_t)(uintptr_t)ptr,
        .size = bytes,
        .family = family,
        .device = audit_current_device(),
    };
    hook_enter_memory(c, r, &what, flags, false);
}

void hook_alloc_async(struct call *c, hipError_t r, enum ledger_family family, const void *ptr,
                      size_t bytes, hipStream_t stream, const void *owner) {
    struct order_stream *s = order_stream(stream);
    struct ledger_entry what = {
        .addr = (uint64_t)(uintptr_t)ptr,
        .size = bytes,
        .family = order_is_capturing(s) ? LEDGER_GRAPH : family,
        .device = s ? s->device : audit_current_device(),
        .stream = (uint64_t)(uintptr_t)stream,
        .owner = (uint64_t)(uintptr_t)owner,
    };
    hook_enter_memory(c, r, &what, 0, false);
    if (r == hipSuccess && !order_is_capturing(s))
        order_submitted(s);
}

void hook_import(struct call *c, hipError_t r, const void *ptr, size_t bytes, const void *owner) {
    hipDeviceptr_t base = (hipDeviceptr_t)(uintptr_t)ptr;
    if (r == hipSuccess && bytes == 0 &&
        audit.raw.hipMemGetAddressRange(&base, &bytes, base) != hipSuccess)
        bytes = 0;
    struct ledger_entry what = {
        .addr = (uint64_t)(uintptr_t)base,
        .size = bytes,
        .family = LEDGER_IMPORTED,
        .device = audit_current_device(),
        .owner = (uint64_t)(uintptr_t)owner,
    };
    hook_enter_memory(c, r, &what, 0, false);
}

void hook_array(struct call *c, hipError_t r, const void *handle) {
    struct ledger_entry what = {
        .addr = (uint64_t)(uintptr_t)handle,
        .size = 1,
        .family = LEDGER_ARRAY,
        .device = audit_current_device(),
    };
    hook_enter_memory(c, r, &what, 0, false);
}

static struct hook_free free_begin(struct call *c, const void *ptr, struct order_stream *stream) {
    struct hook_free f = { ledger_free_begin(audit.ledger, (uint64_t)(uintptr_t)ptr), stream };
    if (call_is_recorded()) {
        bool live = f.what.kind == LEDGER_FREE_LIVE;
        struct event ev =
            call_event(c, EVENT_FREE,
                       live ? record_family(f.what.entry.family) : DETAIL_FAMILY_UNKNOWN, stream);
        ev.dst = (uint64_t)(uintptr_t)ptr;
        ev.src = f.what.entry.serial ? f.what.entry.made.event : EVENT_NO_SEQ;
        ev.len = live ? f.what.entry.size : 0;
        call_begin(c, &ev);
    }
    return f;
}

struct hook_free hook_free(struct call *c, const void *ptr) {
    order_note_wait();
    return free_begin(c, ptr, NULL);
}

/* A graph frees when it is launched, once per launch: the ledger keeps what it has. */
static struct hook_free free_captured(struct call *c, const void *ptr,
                                      struct order_stream *stream) {
    if (call_is_recorded()) {
        struct event ev = call_event(c, EVENT_FREE, DETAIL_FAMILY_UNKNOWN, stream);
        ev.dst = (uint64_t)(uintptr_t)ptr;
        ev.src = EVENT_NO_SEQ;
        call_begin(c, &ev);
    }
    return (struct hook_free){ { .kind = LEDGER_FREE_UNKNOWN }, stream };
}

struct hook_free hook_free_async(struct call *c, const void *ptr, hipStream_t stream) {
    struct order_stream *s = order_stream(stream);
    return order_is_capturing(s) ? free_captured(c, ptr, s) : free_begin(c, ptr, s);
}

void hook_freed(struct call *c, hipError_t r, const struct hook_free *f) {
    struct ledger_act who = call_act(c);
    ledger_free_end(audit.ledger, &f->what, r == hipSuccess, &who);
    if (f->stream && r == hipSuccess && !order_is_capturing(f->stream))
        order_submitted(f->stream);
    call_end(c, (unsigned)r);
}

void hook_free_owner(struct call *c, hipError_t r, const void *owner) {
    struct ledger_act who = call_act(c);
    if (r == hipSuccess)
        ledger_free_owner(audit.ledger, (uint64_t)(uintptr_t)owner, &who);
    call_end(c, (unsigned)r);
}
