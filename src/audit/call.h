/* call.h - one HIP call on its way through a hook, and its event in the recording.
 *
 * An event is written when the call begins, pending, and finished when it returns. Everything here
 * does nothing where there is no recording. A struct call lives on the hook's stack. */
#ifndef AUDIT_CALL_H
#define AUDIT_CALL_H

#include "audit/audit.h"
#include "audit/order.h"
#include "base/clock.h"

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

/* The parts that all events of a call share. stream may be NULL. */
static inline struct event call_event(const struct call *c, enum event_kind kind, unsigned detail,
                                      struct order_stream *stream) {
    return (struct event){
        .kind = (uint16_t)kind,
        .status = RECORD_PENDING,
        .aux =
            event_aux((unsigned)c->fn, detail | (order_is_capturing(stream) ? EVENT_CAPTURED : 0)),
        .stream = stream ? order_record_id(stream) : 0,
        .site = record_site(audit.writer, c->caller),
    };
}

static inline void call_begin(struct call *c, struct event ev) {
    c->seq = record_event(audit.writer, &ev);
    c->t0 = ev.t_ns;
}

/* An event with extra slots; slots[0] holds the event. */
static inline void call_begin_slots(struct call *c, union event_slot *slots, unsigned count) {
    c->seq = record_events(audit.writer, slots, count);
    c->t0 = slots[0].event.t_ns;
}

static inline void call_end(const struct call *c, unsigned status) {
    if (c->seq != RECORD_NONE)
        record_finish(audit.writer, c->seq, status, clock_now_ns() - c->t0);
}

static inline void call_end_dst(const struct call *c, unsigned status, uint64_t dst) {
    if (c->seq != RECORD_NONE)
        record_finish_dst(audit.writer, c->seq, status, clock_now_ns() - c->t0, dst);
}

/* Who, for the ledger. */
static inline struct ledger_act call_act(const struct call *c) {
    return (struct ledger_act){
        .api = hip_fn_name(c->fn),
        .caller = c->caller,
        .t_ns = clock_now_ns(),
        .event = c->seq,
        .thread = audit_thread_id(),
    };
}

#endif
