/* d2h_internal.h - the parts of the checked copies, and what the hooks need of them.
 *
 *   d2h.c          the public functions: check, order, copy, wait
 *   d2h_check.c    may this copy be made?
 *   d2h_explain.c  the message of a refusal
 *   d2h_log.c      the log lines
 *   d2h_pending.c  copies that are queued and not known to be complete
 *   d2h_code.c     the results by name
 */
#ifndef AUDIT_D2H_INTERNAL_H
#define AUDIT_D2H_INTERNAL_H

#include <gcore/d2h.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/order.h"
#include "hip/hip_types.h"

struct call;

/* One copy, as its caller asked for it. */
struct d2h_request {
    void *to;
    const void *from;
    hipMemcpyKind kind; /* hipMemcpyDefault is replaced by what the ledger finds */
    struct gcore_d2h_meta meta;
    hipStream_t stream;
    const void *caller;
    uint32_t tensor; /* meta.tensor in the recording; 0: none */
    /* Filled in by d2h_check(). */
    struct order_stream *order;
    uint64_t base;   /* device pointer that meta.offset counts from */
    uint64_t device; /* base + offset: first byte on the device side */
    uint64_t other;  /* first byte on the other side */
    void *dst;       /* what the runtime gets */
    const void *src;
};

/* What a check found wrong; valid if code is not OK. */
struct d2h_finding {
    enum gcore_d2h_code code;
    uint64_t alloc;     /* bytes there are, counted from base, for the [D2H_BOUNDS] line */
    uint64_t culprit;   /* the address that the finding is about */
    const char *which;  /* "source", "destination" */
    uint64_t at, bytes; /* the allocation, tensor or block that was left */
    int found_device, stream_device;
    bool claimed;     /* the caller's own claim is what was violated */
    hipError_t error; /* the runtime's answer where it was asked and failed */
    char name[128];   /* tensor, if one was left */
};

/* Which pointer is on which side, and what the runtime will get. Part of d2h_check(). */
enum gcore_d2h_code d2h_assign_sides(struct d2h_request *q, struct d2h_finding *f);

enum gcore_d2h_code d2h_check(struct d2h_request *q, struct d2h_finding *f);

/* The message: what was expected, what was found, what to do. */
void d2h_explain(const struct d2h_request *q, const struct d2h_finding *f, char *out, size_t size);

/* ---- log lines ------------------------------------------------------------------------------- */

enum { D2H_NAME_MAX = 96 };

/* A copy of a tensor's name that is one word of printable ASCII; "unnamed" for none. */
void d2h_safe_name(char out[D2H_NAME_MAX], const char *name);

/* Lines that are written together, to save system calls; on the caller's stack. Where a function
 * takes one, NULL writes the line at once. */
struct d2h_lines {
    size_t used;
    char text[4096];
};
void d2h_lines_write(struct d2h_lines *lines);

/* Each writes its line, or nothing if its switch is off. */
void d2h_log_engaged(const struct d2h_request *q);
void d2h_log_start(struct d2h_lines *lines, const struct d2h_request *q, uint64_t op_id);
void d2h_log_trace_before(const struct d2h_request *q);
/* The refusal's line: always written. */
void d2h_log_refusal(const struct d2h_request *q, const struct d2h_finding *f, const char *message);

/* END, the debug line, the trace's second block; or its FATAL block, and then abort(). */
void d2h_log_end(struct d2h_lines *lines, const struct d2h_request *q, uint64_t op_id,
                 hipError_t result);

/* ---- copies under way ------------------------------------------------------------------------ */

/* A copy that was queued. It has up to two holders: the caller, until gcore_d2h_wait(), and the
 * stream's callback; the last to release it returns it to the pool. Whichever sees the end first
 * writes its lines. */
struct d2h_pending;

/* Takes one, held by the caller, with an event if it is to be waited for. NULL without memory, or
 * if the runtime refuses an event: then *error says why. */
struct d2h_pending *d2h_pending_new(const struct d2h_request *q, uint64_t op_id, bool wait,
                                    hipError_t *error);
/* The copy is queued: records the event, and where lines are due asks the stream to report. */
hipError_t d2h_pending_queued(struct d2h_pending *p);
/* The copy ended with result; writes the lines unless somebody has. Returns when they are written.
 */
void d2h_pending_finish(struct d2h_pending *p, hipError_t result);
/* Waits for the event and finishes. */
hipError_t d2h_pending_wait(struct d2h_pending *p);
/* What it is about; valid while held. */
const struct d2h_request *d2h_pending_request(const struct d2h_pending *p);
/* Releases the caller's hold. */
void d2h_pending_drop(struct d2h_pending *p);

/* No copy that is under way will complete: the device failed, was reset, or the process ends. */
void d2h_pending_fail(hipError_t error);
/* The same for hipDeviceReset, which also ends all events. */
void d2h_pending_device_reset(void);
void d2h_pending_fork_prepare(void);
void d2h_pending_fork_done(void);
/* For audit_detach: forgets all, destroys the events. */
void d2h_pending_reset(void);

/* ---- copies the program makes itself --------------------------------------------------------- */

/* A device-to-host copy through the table, for the audit log: its lines, and what a checked copy
 * would have said about it. Nothing is refused. */
struct d2h_pending *d2h_watch_begin(const struct call *c, const void *dst, const void *src,
                                    size_t bytes, struct order_stream *stream, bool async);
void d2h_watch_end(struct d2h_pending *p, hipError_t result);

#endif
