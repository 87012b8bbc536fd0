/* call.h - one HIP call on its way through a hook, and its event in the recording.
 *
 * An event is written when the call begins, pending, and finished when it returns. Everything here
 * does nothing where there is no recording. A struct call lives on the hook's stack. */
#ifndef AUDIT_CALL_H
#define AUDIT_CALL_H

#include "audit/audit.h"
#include "audit/order.h"
#include "base/tick.h"

struct call {
    enum hip_fn fn;
    const void *caller; /* return address in the program */
    uint64_t seq;       /* of its event, or RECORD_NONE */
    uint64_t t0;        /* when it began */
};

#define CALL_INIT(function, address)                                                               \
    { .fn = (function), .caller = (address), .seq = RECORD_NONE }

static inline bool call_is_recorded(void) {
    return audit.writer != NULL;
}

/* The parts that all events of a call share. stream may be NULL. Inlined always: an event that is
 * copied from one place on the stack to another is read in other widths than it was written in, and
 * the processor waits for that longer than for all the rest. */
__attribute__((always_inline)) static inline struct event call_event(const struct call *c,
                                                                     enum event_kind kind,
                                                                     unsigned detail,
                                                                     struct order_stream *stream) {
    uint32_t site = record_site(audit.writer, c->caller);
    uint32_t id = stream ? order_record_id(stream) : 0;
    bool captured = order_is_capturing(stream);
    return (struct event){
        .kind = (uint16_t)kind,
        .status = RECORD_PENDING,
        .aux = event_aux((unsigned)c->fn, detail | (captured ? EVENT_CAPTURED : 0)),
        .stream = id,
        .site = site,
    };
}

/* What is pending is completed by call_end(), on this thread. */
static inline void call_begin(struct call *c, struct event *ev) {
    c->seq = event_is_pending(ev) ? record_begin(audit.writer, ev) : record_event(audit.writer, ev);
    c->t0 = ev->t_ns;
}

/* An event with extra slots; slots[0] holds the event. */
static inline void call_begin_slots(struct call *c, union event_slot *slots, unsigned count) {
    c->seq = event_is_pending(&slots[0].event) ? record_begin_slots(audit.writer, slots, count)
                                               : record_events(audit.writer, slots, count);
    c->t0 = slots[0].event.t_ns;
}

static inline uint64_t call_duration(const struct call *c) {
    uint64_t now = tick_now_ns();
    return now > c->t0 ? now - c->t0 : 0;
}

static inline void call_end(const struct call *c, unsigned status) {
    if (c->seq != RECORD_NONE)
        record_finish(audit.writer, c->seq, status, call_duration(c));
}

static inline void call_end_dst(const struct call *c, unsigned status, uint64_t dst) {
    if (c->seq != RECORD_NONE)
        record_finish_dst(audit.writer, c->seq, status, call_duration(c), dst);
}

/* What the ledger records about this call if it allocates or frees. */
static inline struct ledger_act call_act(const struct call *c) {
    return (struct ledger_act){
        .api = hip_fn_name(c->fn),
        .caller = c->caller,
        .t_ns = tick_now_ns(),
        .event = c->seq,
        .thread = audit_thread_id(),
    };
}

#endif
