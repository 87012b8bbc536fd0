/* The log lines, each written as a whole. Their texts are fixed: docs/d2h.md. */
#include "audit/d2h_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "base/clock.h"

#define X64 "0x%" PRIx64

void d2h_safe_name(char out[D2H_NAME_MAX], const char *name) {
    size_t n = 0;
    for (; name && name[n] && n < D2H_NAME_MAX - 1; n++)
        out[n] = name[n] > ' ' && name[n] < 0x7f ? name[n] : '_';
    out[n] = '\0';
    if (n == 0)
        memcpy(out, "unnamed", sizeof "unnamed");
}

static uint64_t bits(const void *pointer) {
    return (uint64_t)(uintptr_t)pointer;
}

void d2h_log_engaged(const struct d2h_request *q) {
    if (!audit.config.d2h_debug)
        return;
    char name[D2H_NAME_MAX];
    d2h_safe_name(name, q->meta.tensor);
    audit_log("[D2H SAFE] engaged for tensor=%s\n"
              "[D2H_CHECK] tensor=%s step=%" PRId64 " layer=%" PRId32 " src_ptr=" X64
              " dst_ptr=" X64 " offset=%zu size=%zu alloc=%zu",
              name, name, q->meta.step, q->meta.layer, bits(q->from), bits(q->to), q->meta.offset,
              q->meta.size, q->meta.alloc);
}

void d2h_log_start(const struct d2h_request *q, uint64_t op_id) {
    if (!audit.config.d2h_audit)
        return;
    char name[D2H_NAME_MAX];
    d2h_safe_name(name, q->meta.tensor);
    uint64_t now = clock_wall_us();
    audit_log("[D2H_AUDIT_START] op_id=%" PRIu64 " ts=%" PRIu64 ".%06u stream=" X64 " dev_ptr=" X64
              " host_ptr=" X64 " bytes=%zu tensor=%s step=%" PRId64 " layer=%" PRId32,
              op_id, now / 1000000, (unsigned)(now % 1000000), bits(q->stream), q->device, q->other,
              q->meta.size, name, q->meta.step, q->meta.layer);
}

#if GRETA_TRACE_MEMCPY
void d2h_log_trace_before(const struct d2h_request *q) {
    if (!audit.config.trace_memcpy)
        return;
    char name[D2H_NAME_MAX];
    d2h_safe_name(name, q->meta.tensor);
    audit_log("[D2H TRACE] %s:before\n  src_ptr=" X64 "\n  bytes=%zu\n  stream=" X64, name,
              bits(q->src), q->meta.size, bits(q->stream));
}

static void trace_after(const struct d2h_request *q, const char *name, hipError_t result) {
    if (!audit.config.trace_memcpy)
        return;
    if (result == hipSuccess) {
        audit_log("[D2H TRACE] %s:after\n  dst_ptr=" X64 "\n  bytes=%zu", name, bits(q->dst),
                  q->meta.size);
        return;
    }
    audit_log("[D2H FATAL] %s:FAILED\n  src_ptr=" X64 "\n  dst_ptr=" X64
              "\n  bytes=%zu\n  hipError=%s",
              name, bits(q->src), bits(q->dst), q->meta.size, hip_error_string(result));
    abort();
}
#else
void d2h_log_trace_before(const struct d2h_request *q) {
    (void)q;
}
static void trace_after(const struct d2h_request *q, const char *name, hipError_t result) {
    (void)q;
    (void)name;
    (void)result;
}
#endif

/* Range errors have a line of their own; all others are [D2H_ERROR] with a reason. */
static bool is_range_error(enum gcore_d2h_code code) {
    return code == GCORE_D2H_OUT_OF_ALLOCATION || code == GCORE_D2H_OUT_OF_TENSOR ||
           code == GCORE_D2H_HOST_TOO_SMALL || code == GCORE_D2H_OVERFLOW;
}

void d2h_log_refusal(const struct d2h_request *q, const struct d2h_finding *f,
                     const char *message) {
    char name[D2H_NAME_MAX];
    d2h_safe_name(name, q->meta.tensor);
    if (is_range_error(f->code))
        audit_log("[D2H_BOUNDS] tensor=%s offset=%zu size=%zu alloc=%" PRIu64, name, q->meta.offset,
                  q->meta.size, f->alloc);
    else
        audit_log("[D2H_ERROR] reason=%s tensor=%s step=%" PRId64 " layer=%" PRId32 " src_ptr=" X64
                  " dst_ptr=" X64 " offset=%zu size=%zu alloc=%zu: %s",
                  gcore_d2h_code_name(f->code), name, q->meta.step, q->meta.layer, bits(q->from),
                  bits(q->to), q->meta.offset, q->meta.size, q->meta.alloc, message);
}

void d2h_log_end(const struct d2h_request *q, uint64_t op_id, hipError_t result) {
    if (!audit.verbose)
        return;
    char name[D2H_NAME_MAX];
    d2h_safe_name(name, q->meta.tensor);
    if (audit.config.d2h_audit) {
        uint64_t now = clock_wall_us();
        audit_log("[D2H_AUDIT_END] op_id=%" PRIu64 " ts=%" PRIu64 ".%06u stream=" X64
                  " result=%s tensor=%s",
                  op_id, now / 1000000, (unsigned)(now % 1000000), bits(q->stream),
                  hip_error_name(result), name);
    }
    if (audit.config.d2h_debug && result == hipSuccess)
        audit_log("[D2H SAFE] async copy succeeded: %s", hip_error_name(result));
    trace_after(q, name, result);
}
