/* before_event.c - HIP events and host functions: what they put before what, in streams and
 * captures. */
#include "verdict/replay.h"

static void on_record(struct replay *r, const struct reader_event *e, struct thread *t) {
    struct event_state *ev = table_find(&t->space->events, e->event.dst);
    struct stream *s = before_stream(r, e->event.stream, t);
    if (!ev)
        ev = event_state_new(r, t->space, e->event.dst);
    if (!ev || !s)
        return;
    ev->record = e->seq;
    ev->capture = NULL;
    if (event_is_captured(&e->event) && graph_on_record(r, s, ev))
        return;
    before_enter(r, s, t);
    if (!vclock_copy(&ev->clock, &s->clock))
        r->no_memory = true;
    before_changed(r, s);
}

static void on_wait(struct replay *r, const struct reader_event *e, struct thread *t) {
    struct event_state *ev = table_find(&t->space->events, e->event.dst);
    struct stream *s = before_stream(r, e->event.stream, t);
    if (!s)
        return;
    if (!ev) {
        r->order_doubt = sentence_plain(SENTENCE_DOUBT_EVENT_UNRECORDED);
        return;
    }
    if (ev->capture || s->capture) {
        (void)graph_on_wait(r, s, ev);
        return;
    }
    before_enter(r, s, t);
    if (!vclock_join(&s->clock, &ev->clock))
        r->no_memory = true;
    before_changed(r, s);
}

void before_on_event(struct replay *r, const struct reader_event *e, struct thread *t) {
    struct space *space = t->space;
    if (!before_succeeded(&e->event))
        return;
    if (event_is_captured(&e->event) && !e->event.stream) {
        graph_set_node(t, e->seq); /* it happens when the graph is launched */
        return;
    }
    switch (e->event.kind) {
    case EVENT_EVENT_CREATE:
        event_state_free(table_remove(&space->events, e->event.dst));
        if (event_state_new(r, space, e->event.dst) &&
            r->fn[event_fn(&e->event)] == HIP_FN_hipIpcOpenEventHandle)
            r->order_doubt = sentence_plain(SENTENCE_DOUBT_EVENT_SHARED);
        break;
    case EVENT_EVENT_DESTROY:
        event_state_free(table_remove(&space->events, e->event.dst));
        break;
    case EVENT_EVENT_RECORD:
        on_record(r, e, t);
        break;
    case EVENT_EVENT_WAIT:
        on_wait(r, e, t);
        break;
    case EVENT_EVENT_SYNC: {
        if (event_detail(&e->event) == DETAIL_WAIT_GLANCE)
            break;
        struct event_state *ev = table_find(&space->events, e->event.dst);
        if (ev && !ev->capture)
            before_wait_clock(r, t, &ev->clock, event_end_ns(&e->event));
        else if (!ev)
            r->order_doubt = sentence_plain(SENTENCE_DOUBT_EVENT_HOST);
        break;
    }
    default:
        break;
    }
}

static void on_host_fn_queued(struct replay *r, const struct reader_event *e, struct thread *t) {
    struct stream *s = before_stream(r, e->event.stream, t);
    if (!s)
        return;
    before_enter(r, s, t);
    host_fn_queued(r, t->space, e->seq, s->lane, &s->clock);
    before_done(r, &s->clock, s->lane, e->seq);
    before_changed(r, s);
}

void before_on_host_fn(struct replay *r, const struct reader_event *e, struct thread *t) {
    if (e->event.kind != EVENT_HOST_FN) {
        host_fn_on_event(r, e, t);
        return;
    }
    r->seen.host_functions++;
    if (before_succeeded(&e->event) && !event_is_captured(&e->event))
        on_host_fn_queued(r, e, t);
}
