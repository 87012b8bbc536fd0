/* The messages of refusals: expected, found, what to do. */
#include "audit/d2h_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "audit/audit.h"

#define X64 "0x%" PRIx64
#define U64 "%" PRIu64

static const char *kind_text(hipMemcpyKind kind) {
    switch (kind) {
    case hipMemcpyHostToDevice:
        return "host to device";
    case hipMemcpyDeviceToHost:
        return "device to host";
    case hipMemcpyDeviceToDevice:
        return "device to device";
    case hipMemcpyHostToHost:
        return "host to host";
    default:
        return "no direction that HIP knows";
    }
}

/* "hipFree in a.out+0x1234 (main), thread 17, event 42" */
static void describe_act(const struct ledger_act *act, char *out, size_t size) {
    char place[200], event[64] = "";
    audit_describe_caller(act->caller, place, sizeof place);
    if (act->event != LEDGER_NO_EVENT)
        snprintf(event, sizeof event, ", event " U64 " of the recording", act->event);
    snprintf(out, size, "%s in %s, thread %" PRIu32 "%s", act->api, place, act->thread, event);
}

static void explain_freed(const struct d2h_finding *f, char *out, size_t size) {
    struct ledger_entry old = { 0 };
    readlock_token t = ledger_read_begin(audit.ledger);
    const struct ledger_entry *entry = ledger_freed_at(audit.ledger, f->culprit);
    if (!entry)
        entry = ledger_at(audit.ledger, f->culprit); /* being freed */
    if (entry)
        old = *entry;
    ledger_read_end(t);
    char who[320];
    if (old.state == LEDGER_FREED && old.freed.api) {
        describe_act(&old.freed, who, sizeof who);
        snprintf(out, size,
                 "expected live memory at the %s " X64 "; found an allocation of " U64
                 " bytes at " X64 " that was freed by %s; copy before freeing, or do not use the "
                 "pointer afterwards",
                 f->which, f->culprit, old.size, old.addr, who);
    } else if (old.state == LEDGER_FREEING) {
        snprintf(out, size,
                 "expected live memory at the %s " X64 "; found an allocation of " U64
                 " bytes that another thread is freeing right now; let that thread wait for the "
                 "copy",
                 f->which, f->culprit, old.size);
    } else {
        snprintf(out, size,
                 "expected live memory at the %s " X64 "; found memory that was freed by a call "
                 "outside the audit; do not use the pointer after freeing it",
                 f->which, f->culprit);
    }
}

static void explain_unknown(const struct d2h_finding *f, char *out, size_t size) {
    char near[160] = "nothing is allocated below it";
    readlock_token t = ledger_read_begin(audit.ledger);
    const struct ledger_entry *entry = ledger_before(audit.ledger, f->culprit);
    if (entry)
        snprintf(near, sizeof near,
                 "the nearest allocation below ends " U64 " bytes before it (" U64 " bytes at " X64
                 ", %s)",
                 f->culprit - entry->addr - entry->size, entry->size, entry->addr,
                 ledger_family_text(entry->family));
    ledger_read_end(t);
    snprintf(out, size,
             "expected device memory at the %s " X64
             "; found an address that neither the ledger nor "
             "the runtime knows: %s; check the pointer, or report memory from elsewhere with "
             "gcore_track_alloc",
             f->which, f->culprit, near);
}

static void explain_kind(const struct d2h_request *q, const struct d2h_finding *f, char *out,
                         size_t size) {
    if (q->kind != hipMemcpyDeviceToHost && q->kind != hipMemcpyHostToDevice)
        snprintf(out, size,
                 "expected a direction with a device on one side; found %s (kind %d, source %p, "
                 "destination %p); use memcpy between host buffers",
                 kind_text(q->kind), (int)q->kind, q->from, q->to);
    else
        snprintf(out, size,
                 "expected %s; found the %s " X64 " on the host and the other pointer on the "
                 "device; swap the pointers or the direction",
                 kind_text(q->kind), f->which, f->culprit);
}

static void explain_side(const struct d2h_request *q, const struct d2h_finding *f, char *out,
                         size_t size) {
    enum ledger_family family = LEDGER_FAMILY_COUNT;
    readlock_token t = ledger_read_begin(audit.ledger);
    const struct ledger_entry *entry = ledger_at(audit.ledger, f->culprit);
    if (entry)
        family = entry->family;
    ledger_read_end(t);
    snprintf(out, size,
             "expected the %s of a %s copy on the %s; found %s at " X64
             "; pass the right pointer or call the function for this direction",
             f->which, kind_text(q->kind),
             q->kind == hipMemcpyDeviceToDevice || f->culprit == q->base ? "device" : "host",
             ledger_family_text(family), f->culprit);
}

static void explain_range(const struct d2h_request *q, const struct d2h_finding *f,
                          const char *what, char *out, size_t size) {
    snprintf(out, size,
             "expected at most " U64 " bytes at offset %zu of the %s; found a copy of %zu bytes "
             "that leaves %s (" U64 " bytes at " X64 "); correct offset and size",
             f->alloc > q->meta.offset ? f->alloc - q->meta.offset : 0, q->meta.offset, f->which,
             q->meta.size, what, f->bytes, f->at);
}

static void explain_host(const struct d2h_request *q, const struct d2h_finding *f, char *out,
                         size_t size) {
    snprintf(out, size,
             "expected room for %zu bytes at the %s " X64 "; found " U64
             " bytes to the end of the host block at " X64 "; allocate a bigger block or copy less",
             q->meta.size, f->which, f->culprit, f->alloc, f->at);
}

static void explain_device_error(const struct d2h_finding *f, char *out, size_t size) {
    int first = atomic_load(&audit.sticky_error);
    char place[200] = "", reporter[300] = "";
    if (first) {
        audit_describe_caller(atomic_load(&audit.sticky_caller), place, sizeof place);
        snprintf(reporter, sizeof reporter, ", first reported by %s in %s",
                 hip_fn_name((enum hip_fn)atomic_load(&audit.sticky_fn)), place);
    }
    const char *file = audit.writer ? record_path(audit.writer) : "FILE";
    snprintf(
        out, size,
        "expected hipSuccess; found %s (%s)%s; this call only reports what an earlier "
        "operation on the device did: %sgreta_audit report %s names it, hipDeviceReset makes the "
        "device usable again",
        hip_error_name(f->error), hip_error_string(f->error), reporter,
        audit.writer ? "" : "record the run with GCORE_RECORD=FILE, ", file);
}

static void explain_plain_error(const struct d2h_finding *f, char *out, size_t size) {
    snprintf(out, size, "expected hipSuccess; found %s (%s) from the runtime; nothing is retried",
             hip_error_name(f->error), hip_error_string(f->error));
}

static void explain_stream(const struct d2h_finding *f, char *out, size_t size) {
    if (strcmp(f->which, "captured") == 0)
        snprintf(out, size,
                 "expected a stream that runs; found " X64 " being captured into a graph, which "
                 "would run later, when these checks no longer hold; copy after the capture, or "
                 "capture hipMemcpyAsync",
                 f->culprit);
    else
        snprintf(out, size,
                 "expected a live stream; found " X64
                 ", which was destroyed; keep the stream until "
                 "its last copy",
                 f->culprit);
}

void d2h_explain(const struct d2h_request *q, const struct d2h_finding *f, char *out, size_t size) {
    char what[LEDGER_NAME_MAX + 20];
    switch (f->code) {
    case GCORE_D2H_NULL_POINTER:
        snprintf(out, size,
                 "expected two addresses; found a null %s for %zu bytes; check that its allocation "
                 "succeeded",
                 f->which, q->meta.size);
        break;
    case GCORE_D2H_OVERFLOW:
        snprintf(out, size,
                 "expected a %s inside the address space; found " X64 " + offset %zu + size %zu, "
                 "which wraps around; correct offset and size",
                 f->which, f->culprit, q->meta.offset, q->meta.size);
        break;
    case GCORE_D2H_UNKNOWN_POINTER:
        explain_unknown(f, out, size);
        break;
    case GCORE_D2H_FREED:
        explain_freed(f, out, size);
        break;
    case GCORE_D2H_KIND_MISMATCH:
        explain_kind(q, f, out, size);
        break;
    case GCORE_D2H_WRONG_SIDE:
        explain_side(q, f, out, size);
        break;
    case GCORE_D2H_WRONG_DEVICE:
        snprintf(out, size,
                 "expected memory of device %d, whose stream makes the copy; found the %s " X64
                 " on device %d; use a stream of that device, or hipSetDevice(%d) first",
                 f->stream_device, f->which, f->culprit, f->found_device, f->found_device);
        break;
    case GCORE_D2H_OUT_OF_ALLOCATION:
        explain_range(q, f, f->claimed ? "the size its caller claims" : "the allocation", out,
                      size);
        break;
    case GCORE_D2H_OUT_OF_TENSOR:
        snprintf(what, sizeof what, "the tensor '%s'", f->name);
        explain_range(q, f, what, out, size);
        break;
    case GCORE_D2H_HOST_TOO_SMALL:
        explain_host(q, f, out, size);
        break;
    case GCORE_D2H_BAD_STREAM:
        explain_stream(f, out, size);
        break;
    case GCORE_D2H_DEVICE_ERROR:
        if (hip_error_is_sticky(f->error))
            explain_device_error(f, out, size);
        else
            explain_plain_error(f, out, size);
        break;
    default:
        snprintf(out, size, "%s", gcore_d2h_code_text(f->code));
        break;
    }
}
