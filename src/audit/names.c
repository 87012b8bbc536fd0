/* What the program itself tells the ledger: names of tensors, and memory from elsewhere. */
#include <gcore/d2h.h>

#include <errno.h>

#include "audit/attach.h"
#include "audit/audit.h"
#include "audit/call.h"
#include "audit/d2h_internal.h"
#include "audit/found.h"

static uint64_t bits(const void *address) {
    return (uint64_t)(uintptr_t)address;
}

/* One line about a call that cannot be done as asked. */
static enum gcore_d2h_code refuse(enum gcore_d2h_code code, const char *name, const void *address,
                                  size_t bytes, const char *message) {
    char safe[D2H_NAME_MAX];
    d2h_safe_name(safe, name);
    audit_log("[D2H_ERROR] reason=%s tensor=%s ptr=0x%llx size=%zu: %s", gcore_d2h_code_name(code),
              safe, (unsigned long long)bits(address), bytes, message);
    return code;
}

static void record_range(enum event_kind kind, const void *address, uint64_t bytes, uint32_t name,
                         const void *caller) {
    if (!call_is_recorded())
        return;
    struct call c = CALL_INIT((enum hip_fn)EVENT_NO_FN, caller);
    struct event ev = call_event(&c, kind, 0, NULL);
    ev.dst = bits(address);
    ev.len = bytes;
    ev.name = name;
    ev.status = hipSuccess;
    readlock_token t = ledger_read_begin(audit.ledger);
    const struct ledger_entry *entry = ledger_at(audit.ledger, ev.dst);
    ev.src = entry ? entry->made.event : EVENT_NO_SEQ;
    ledger_read_end(t);
    record_event(audit.writer, &ev);
}

/* Why there is no live allocation at address: freed, or never known. */
static enum gcore_d2h_code absent(uint64_t address) {
    readlock_token t = ledger_read_begin(audit.ledger);
    const struct ledger_entry *live = ledger_at(audit.ledger, address);
    bool freed = (live && live->state != LEDGER_LIVE) || ledger_freed_at(audit.ledger, address);
    bool here = live && live->state == LEDGER_LIVE;
    ledger_read_end(t);
    if (here)
        return GCORE_D2H_OUT_OF_ALLOCATION;
    return freed ? GCORE_D2H_FREED : GCORE_D2H_UNKNOWN_POINTER;
}

static bool is_known(uint64_t address) {
    readlock_token t = ledger_read_begin(audit.ledger);
    bool known = ledger_at(audit.ledger, address) || ledger_freed_at(audit.ledger, address);
    ledger_read_end(t);
    return known;
}

static enum gcore_d2h_code name_range(const void *address, size_t bytes, const char *name,
                                      const void *caller) {
    struct err e = { 0 };
    if (audit_ready(&e) != RC_OK)
        return GCORE_D2H_NO_RUNTIME;
    if (!address)
        return refuse(GCORE_D2H_NULL_POINTER, name, address, bytes,
                      "expected the address of a tensor; found null");
    if (!name || !*name || !bytes)
        return refuse(GCORE_D2H_BAD_ARGUMENT, name, address, bytes,
                      "expected a name and at least one byte");
    hipError_t error;
    if (!is_known(bits(address)))
        (void)found_at(bits(address), &error);
    uint32_t tag = record_string(audit.writer, name);
    switch (ledger_set_name(audit.ledger, bits(address), bytes, name, tag, &e)) {
    case RC_OK:
        record_range(EVENT_NAME_RANGE, address, bytes, tag, caller);
        if (audit.soft.name_range)
            audit.soft.name_range(address, bytes);
        return GCORE_D2H_OK;
    case RC_REFUSED:
        return refuse(absent(bits(address)), name, address, bytes, e.msg);
    case RC_RANGE:
        return refuse(GCORE_D2H_OVERFLOW, name, address, bytes, e.msg);
    case RC_MEMORY:
        return refuse(GCORE_D2H_NO_MEMORY, name, address, bytes, e.msg);
    default:
        return refuse(GCORE_D2H_BAD_ARGUMENT, name, address, bytes, e.msg);
    }
}

enum gcore_d2h_code gcore_name_range(const void *address, size_t bytes, const char *name) {
    int saved = errno;
    enum gcore_d2h_code code = name_range(address, bytes, name, __builtin_return_address(0));
    errno = saved;
    return code;
}

enum gcore_d2h_code gcore_unname_range(const void *address) {
    struct err e = { 0 };
    if (audit_ready(&e) != RC_OK)
        return GCORE_D2H_NO_RUNTIME;
    int saved = errno;
    uint32_t tag = 0;
    uint64_t len = 0;
    readlock_token t = ledger_read_begin(audit.ledger);
    const struct ledger_name *name = ledger_name_at(audit.ledger, bits(address));
    if (name) {
        tag = name->tag;
        len = name->len;
    }
    ledger_read_end(t);
    enum gcore_d2h_code code = GCORE_D2H_OK;
    if (ledger_drop_name(audit.ledger, bits(address), &e) == RC_OK) {
        record_range(EVENT_UNNAME_RANGE, address, len, tag, __builtin_return_address(0));
        if (audit.soft.name_range)
            audit.soft.name_range(address, 0);
    } else
        code = refuse(GCORE_D2H_UNKNOWN_POINTER, NULL, address, 0, e.msg);
    errno = saved;
    return code;
}

/* ---- memory from elsewhere ------------------------------------------------------------------- */

static uint64_t record_tracked(enum event_kind kind, const void *address, uint64_t bytes,
                               enum gcore_side side, uint64_t src, const void *caller) {
    if (!call_is_recorded())
        return RECORD_NONE;
    struct call c = CALL_INIT((enum hip_fn)EVENT_NO_FN, caller);
    struct event ev = call_event(
        &c, kind, side == GCORE_SIDE_HOST ? DETAIL_FAMILY_REGISTERED : DETAIL_FAMILY_IMPORTED,
        NULL);
    ev.dst = bits(address);
    ev.src = src;
    ev.len = bytes;
    ev.status = hipSuccess;
    return record_event(audit.writer, &ev);
}

enum gcore_d2h_code gcore_track_alloc(const void *address, size_t bytes, enum gcore_side side,
                                      int device) {
    struct err e = { 0 };
    if (audit_ready(&e) != RC_OK)
        return GCORE_D2H_NO_RUNTIME;
    if (!address)
        return refuse(GCORE_D2H_NULL_POINTER, NULL, address, bytes, "expected an address");
    bool host = side == GCORE_SIDE_HOST;
    if (!bytes || (!host && side != GCORE_SIDE_DEVICE))
        return refuse(GCORE_D2H_BAD_ARGUMENT, NULL, address, bytes,
                      "expected a side and at least one byte");
    int saved = errno;
    const void *caller = __builtin_return_address(0);
    struct ledger_entry what = {
        .addr = bits(address),
        .size = bytes,
        .family = host ? LEDGER_TRACKED_HOST : LEDGER_TRACKED_DEVICE,
        .device = host ? -1 : device,
        .made = { .api = "gcore_track_alloc",
                  .caller = caller,
                  .t_ns = clock_now_ns(),
                  .thread = audit_thread_id() },
    };
    what.made.event = record_tracked(EVENT_ALLOC, address, bytes, side,
                                     (uint64_t)(uint32_t)what.device << 32, caller);
    enum gcore_d2h_code code = GCORE_D2H_OK;
    enum rc rc = ledger_add(audit.ledger, &what, &e);
    if (rc != RC_OK)
        code = refuse(rc == RC_MEMORY ? GCORE_D2H_NO_MEMORY : GCORE_D2H_OVERFLOW, NULL, address,
                      bytes, e.msg);
    errno = saved;
    return code;
}

enum gcore_d2h_code gcore_track_free(const void *address) {
    if (audit_ready(NULL) != RC_OK)
        return GCORE_D2H_NO_RUNTIME;
    int saved = errno;
    const void *caller = __builtin_return_address(0);
    enum gcore_d2h_code code = GCORE_D2H_OK;
    struct ledger_free f = ledger_free_begin(audit.ledger, bits(address));
    bool ours = f.kind == LEDGER_FREE_LIVE &&
                (f.entry.family == LEDGER_TRACKED_DEVICE || f.entry.family == LEDGER_TRACKED_HOST);
    struct ledger_act who = { .api = "gcore_track_free",
                              .caller = caller,
                              .t_ns = clock_now_ns(),
                              .thread = audit_thread_id(),
                              .event = LEDGER_NO_EVENT };
    if (ours)
        who.event = record_tracked(EVENT_FREE, address, f.entry.size,
                                   f.entry.family == LEDGER_TRACKED_HOST ? GCORE_SIDE_HOST
                                                                         : GCORE_SIDE_DEVICE,
                                   f.entry.made.event, caller);
    ledger_free_end(audit.ledger, &f, ours, &who);
    if (f.kind == LEDGER_FREE_DOUBLE)
        code = refuse(GCORE_D2H_FREED, NULL, address, 0,
                      "expected tracked memory; found memory that was freed before");
    else if (f.kind == LEDGER_FREE_UNKNOWN || f.kind == LEDGER_FREE_INTERIOR)
        code = refuse(GCORE_D2H_UNKNOWN_POINTER, NULL, address, 0,
                      "expected the start of tracked memory");
    else if (f.kind == LEDGER_FREE_LIVE && !ours)
        code = refuse(GCORE_D2H_BAD_ARGUMENT, NULL, address, 0,
                      "expected tracked memory; found memory of the runtime; free it with HIP");
    errno = saved;
    return code;
}

void gcore_host_freed(const void *address, size_t bytes) {
    int saved = errno;
    if (audit_ready(NULL) == RC_OK && call_is_recorded() && bytes) {
        struct call c = CALL_INIT((enum hip_fn)EVENT_NO_FN, __builtin_return_address(0));
        struct event ev = call_event(&c, EVENT_HOST_FREE, 0, NULL);
        ev.dst = bits(address);
        ev.src = EVENT_NO_SEQ; /* the verdict finds out whether a copy of it is unfinished */
        ev.len = bytes;
        ev.status = hipSuccess;
        record_event(audit.writer, &ev);
    }
    errno = saved;
}
