/* The log lines, each written as a whole. Their texts are fixed: docs/d2h.md. */
#include "audit/d2h_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "base/clock.h"
#include "base/line.h"

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

/* ---- START and END: twice for every copy ----------------------------------------------------- */

enum {
    LINE_MAX = 512
}; /* more than the longest of them: the name is the only part without limit */
_Static_assert(LINE_MAX > D2H_NAME_MAX + 300, "a whole line");

void d2h_lines_write(struct d2h_lines *lines) {
    if (lines->used)
        audit_log_lines(lines->text, lines->used);
    lines->used = 0;
}

static void write_line(struct d2h_lines *lines, struct line *l) {
    line_add_bytes(l, "\n", 1);
    /* Not collected if other lines are written at once: the order of all of them matters. */
    if (!lines || audit.config.d2h_debug || audit.config.trace_memcpy) {
        audit_log_lines(l->text, l->used);
        return;
    }
    if (lines->used + l->used > sizeof lines->text)
        d2h_lines_write(lines);
    memcpy(lines->text + lines->used, l->text, l->used);
    lines->used += l->used;
}

/* What both begin with: op_id, the time, the stream. */
static void begin_line(struct line *l, const char *title, const struct d2h_request *q,
                       uint64_t op_id) {
    uint64_t now = clock_wall_us();
    line_add(l, title);
    line_add(l, " op_id=");
    line_add_u64(l, op_id, 1);
    line_add(l, " ts=");
    line_add_u64(l, now / 1000000, 1);
    line_add(l, ".");
    line_add_u64(l, now % 1000000, 6);
    line_add(l, " stream=");
    line_add_hex(l, bits(q->stream));
}

void d2h_log_start(struct d2h_lines *lines, const struct d2h_request *q, uint64_t op_id) {
    if (!audit.config.d2h_audit)
        return;
    char name[D2H_NAME_MAX], text[LINE_MAX];
    struct line l = { .text = text, .size = sizeof text };
    d2h_safe_name(name, q->meta.tensor);
    begin_line(&l, "[D2H_AUDIT_START]", q, op_id);
    line_add(&l, " dev_ptr=");
    line_add_hex(&l, q->device);
    line_add(&l, " host_ptr=");
    line_add_hex(&l, q->other);
    line_add(&l, " bytes=");
    line_add_u64(&l, q->meta.size, 1);
    line_add(&l, " tensor=");
    line_add(&l, name);
    line_add(&l, " step=");
    line_add_i64(&l, q->meta.step);
    line_add(&l, " layer=");
    line_add_i64(&l, q->meta.layer);
    write_line(lines, &l);
}

static void log_audit_end(struct d2h_lines *lines, const struct d2h_request *q, uint64_t op_id,
                          hipError_t result, const char *name) {
    char text[LINE_MAX];
    struct line l = { .text = text, .size = sizeof text };
    begin_line(&l, "[D2H_AUDIT_END]", q, op_id);
    line_add(&l, " result=");
    line_add(&l, hip_error_name(result));
    line_add(&l, " tensor=");
    line_add(&l, name);
    write_line(lines, &l);
}

/* ---- the others ------------------------------------------------------------------------------ */

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

void d2h_log_end(struct d2h_lines *lines, const struct d2h_request *q, uint64_t op_id,
                 hipError_t result) {
    if (!audit.verbose)
        return;
    char name[D2H_NAME_MAX];
    d2h_safe_name(name, q->meta.tensor);
    if (audit.config.d2h_audit)
        log_audit_end(lines, q, op_id, result, name);
    if (audit.config.d2h_debug && result == hipSuccess)
        audit_log("[D2H SAFE] async copy succeeded: %s", hip_error_name(result));
    trace_after(q, name, result);
}
