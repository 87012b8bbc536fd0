/* event_state.c - HIP events as the replay knows them, and nodes of graphs that record one or wait
 * for one. */
#include <stdlib.h>

#include "verdict/replay.h"

struct event_state *event_state_new(struct replay *r, struct space *s, uint64_t handle) {
    struct event_state *ev = calloc(1, sizeof *ev);
    if (!ev || !table_set(&s->events, handle, ev)) {
        free(ev);
        r->no_memory = true;
        return NULL;
    }
    ev->record = EVENT_NO_SEQ;
    return ev;
}

void event_state_free(struct event_state *ev) {
    if (!ev)
        return;
    vclock_free(&ev->clock);
    free(ev->nodes.at);
    free(ev);
}

bool event_state_on_node(struct replay *r, const struct reader_event *e, bool changed,
                         struct space *s, struct vclock *clock) {
    bool records = e->event.kind == EVENT_EVENT_RECORD;
    if (!records && e->event.kind != EVENT_EVENT_WAIT)
        return false;
    struct event_state *ev = table_find(&s->events, e->event.dst);
    if (!ev && records)
        ev = event_state_new(r, s, e->event.dst);
    if (changed || !ev) {
        r->order_doubt = sentence_plain(SENTENCE_DOUBT_GRAPH_EVENTS);
        return true;
    }
    if (records) {
        ev->record = e->seq;
        ev->capture = NULL;
    }
    if (records ? !vclock_copy(&ev->clock, clock) : !vclock_join(clock, &ev->clock))
        r->no_memory = true;
    return true;
}
