/* replay.c - reads the events in order and hands each to the file that understands it. */
#include "verdict/replay.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "verdict/effort.h"

/* ---- work ------------------------------------------------------------------------------------ */

static bool is_host_block(const struct block *b) {
    return b && (b->family == DETAIL_FAMILY_PINNED || b->family == DETAIL_FAMILY_REGISTERED);
}

/* Does a call that is not asynchronous wait because it sets managed memory, or copies it and names
 * the host as one side? */
static bool waits_for_managed(const struct op *op) {
    return op->what == SHADOW_SET || op->copy_kind == hipMemcpyHostToHost ||
           op->copy_kind == hipMemcpyHostToDevice || op->copy_kind == hipMemcpyDeviceToHost;
}

/* Has the operation run when its call returns? Copies and sets within device memory only queue,
 * whatever the call, except some of managed memory; asynchronous copies with plain host memory on
 * one side do not. */
static bool call_waits(struct replay *r, const struct op *op, struct space *s) {
    bool host = false, pageable = false;
    if (op->what == SHADOW_LAUNCH)
        return false;
    for (unsigned i = 0; i < op->count; i++) {
        const struct block *b = space_at(s, op->use[i].start);
        host |=
            is_host_block(b) || (b && b->family == DETAIL_FAMILY_MANAGED && waits_for_managed(op));
        pageable |= bounds_is_pageable(r, s, &op->use[i]);
    }
    return op->async ? pageable && op->what == SHADOW_COPY : host || pageable;
}

/* hipMemcpyPeer() comes after all work of both devices that was queued before it, and before all
 * that is queued later: docs/adr/0060-what-orders-devices.md. */
static bool is_between_devices(const struct replay *r, const struct event *e) {
    return event_fn(e) != EVENT_NO_FN && r->fn[event_fn(e)] == HIP_FN_hipMemcpyPeer;
}

static void wait_for_devices(struct replay *r, const struct op *op, struct thread *t,
                             uint64_t end_ns) {
    for (unsigned i = 0; i < op->count; i++) {
        const struct block *b = space_at(t->space, op->use[i].start);
        if (b && !is_host_block(b))
            before_wait_device(r, t, (int)b->device, end_ns);
    }
}

static void run_op(struct replay *r, const struct reader_event *e, const struct op *op,
                   struct thread *t) {
    struct stream *s = before_stream(r, op->stream, t);
    if (!s || (!op->count && op->what != SHADOW_LAUNCH))
        return; /* nothing to copy or to set: HIP does not even look at the stream */
    if (r->lost_count)
        errors_on_op(r, op, t);
    replay_count_host_memory(r, op, t->space);
    bool serial = op->status == hipSuccess && is_between_devices(r, &e->event);
    if (serial)
        wait_for_devices(r, op, t, event_end_ns(&e->event));
    before_enter(r, s, t);
    if (op->what == SHADOW_LAUNCH)
        launches_on_run(r, e, op, t, s);
    handover_on_op(r, op, t);
    peers_check(r, op, t, s);
    races_check(r, op, t, s->lane, before_number(r, s->lane), &s->clock);
    before_done(r, &s->clock, s->lane, op->seq);
    before_changed(r, s);
    if (!serial && !call_waits(r, op, t->space))
        replay_note_host_use(r, op, t->space);
    else if (op->status == hipSuccess)
        before_wait_clock(r, t, &s->clock, event_end_ns(&e->event));
}

static void on_work(struct replay *r, const struct reader_event *e, struct thread *t) {
    struct op *op = r->op;
    if (!op_read(r, e, op))
        return;
    bool ok = op->status == hipSuccess, captured = event_is_captured(&e->event) && ok;
    if (!captured) {
        bounds_check(r, op, t); /* what the program passed, not what the kernel did */
        touched_apply(r, e, op, 0);
    }
    if (!captured || op->what != SHADOW_LAUNCH)
        replay_count_work(r, op); /* a captured launch counts whenever it runs */
    if (captured) {
        graph_add_op(r, op, t);
        return;
    }
    if (ok || op->status == RECORD_PENDING) {
        run_op(r, e, op, t);
        values_on_write(r, e, t);
    } else if (op->what == SHADOW_LAUNCH)
        launches_on_failure(r, op, t);
    else
        errors_lost_write(r, op, t);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static bool is_found_by_asking(enum hip_fn fn) {
    return fn == HIP_FN_hipMemGetAddressRange;
}

/* What others do to memory that is shared with them is in no order with this process's work.
 * opened: another process or API uses it now; before that it may never come to it. */
static void on_shared(struct replay *r, bool opened) {
    static const enum verdict_hypothesis_id about[] = { HYPOTHESIS_STREAM_UNSYNCED,
                                                        HYPOTHESIS_OVERLAPPING_COPIES };
    for (size_t i = 0; i < sizeof about / sizeof *about; i++)
        (opened ? findings_unclear : findings_undecided)(r, about[i],
                                                         sentence_plain(SENTENCE_DOUBT_IMPORTED));
}

static void on_alloc(struct replay *r, const struct reader_event *e, struct thread *t) {
    if (e->event.status != hipSuccess || !e->event.dst || !e->event.len)
        return;
    enum hip_fn fn = r->fn[event_fn(&e->event)];
    struct block b = {
        .base = e->event.dst,
        .bytes = e->event.len,
        .alloc = e->seq,
        .alloc_site = e->event.site,
        .stream = e->event.stream,
        .device = (uint16_t)(e->event.src >> 32),
        .family = (uint8_t)event_detail(&e->event),
        .found = is_found_by_asking(fn) || fn == HIP_FN_COUNT ||
                 event_detail(&e->event) == DETAIL_FAMILY_IMPORTED ||
                 event_detail(&e->event) == DETAIL_FAMILY_GRAPH,
    };
    r->seen.allocations += !b.found;
    struct block *entered = space_add(t->space, &b);
    if (!entered) {
        r->no_memory |= b.base + b.bytes > b.base;
        return;
    }
    if (b.family == DETAIL_FAMILY_IMPORTED)
        on_shared(r, fn != HIP_FN_COUNT && !is_found_by_asking(fn));
    if (b.family == DETAIL_FAMILY_ASYNC && b.stream && !event_is_captured(&e->event))
        races_on_async_memory(r, e, t, entered, false);
}

static void on_free(struct replay *r, const struct reader_event *e, struct thread *t) {
    struct space *s = t->space;
    struct block *b = space_at(s, e->event.dst);
    if (event_is_captured(&e->event)) { /* a launch of the graph frees it, if there is one */
        if (b)
            b->found = true; /* whether it is still alive is unknown */
        return;
    }
    bounds_on_free(r, e, t);
    if (b && event_is_pending(&e->event))
        b->found = true; /* whether it is still alive is unknown */
    if (e->event.status != hipSuccess || !e->event.dst)
        return;
    r->seen.frees++;
    bool async = r->fn[event_fn(&e->event)] == HIP_FN_hipFreeAsync && e->event.stream;
    if (b && b->family == DETAIL_FAMILY_REGISTERED && b->base == e->event.dst)
        race_host_on_access(r, e, t); /* HIP does not promise that unregistering waits */
    if (!async)                       /* it has waited until nothing can use the block any more */
        before_wait_device(r, t, b && !is_host_block(b) ? b->device : -1, event_end_ns(&e->event));
    if (!b || b->base != e->event.dst)
        return;
    if (async)
        races_on_async_memory(r, e, t, b, true);
    if (!space_free(s, b, e->seq, e->event.site, async))
        r->no_memory = true;
}

/* Frees all blocks for which `gone` says so. */
static void free_some(struct replay *r, const struct reader_event *e, struct space *s,
                      bool (*gone)(const struct block *b, uint64_t what), uint64_t what) {
    struct range *at = rangemap_first(&s->live);
    while (at && effort_steps(64)) {
        struct block *b = at->value;
        at = rangemap_next(&s->live, at);
        if (gone(b, what) && !space_free(s, b, e->seq, e->event.site, false))
            r->no_memory = true;
    }
}

static bool is_of_device(const struct block *b, uint64_t device) {
    return b->device == device && b->family != DETAIL_FAMILY_REGISTERED;
}

static bool is_of_module(const struct block *b, uint64_t module) {
    return b->owner == module && module;
}

static void on_reset(struct replay *r, const struct reader_event *e, struct thread *t) {
    if (e->event.status != hipSuccess)
        return;
    before_wait_device(r, t, (int)e->event.dst, event_end_ns(&e->event));
    if (e->event.dst < SPACE_DEVICES)
        t->space->peers[e->event.dst] = 0;
    free_some(r, e, t->space, is_of_device, e->event.dst);
    errors_on_reset(r, t);
}

static void on_memory(struct replay *r, const struct reader_event *e, struct thread *t) {
    switch (e->event.kind) {
    case EVENT_ALLOC:
        on_alloc(r, e, t);
        break;
    case EVENT_FREE:
        on_free(r, e, t);
        break;
    case EVENT_NAME_RANGE:
        if (!space_set_name(t->space, e->event.dst, e->event.len, e->event.name))
            r->no_memory = true;
        break;
    case EVENT_UNNAME_RANGE:
        space_drop_name(t->space, e->event.dst);
        break;
    case EVENT_HOST_FREE:
        graph_on_host_free(r, e, t);
        race_host_on_access(r, e, t);
        break;
    case EVENT_EARLY_HOST_ACCESS:
        race_host_on_access(r, e, t);
        break;
    case EVENT_HOST_FAULT:
        host_fault_on_event(r, e, t);
        break;
    case EVENT_UNWATCHED:
        r->seen.unwatched++;
        r->no_room |= event_detail(&e->event) == DETAIL_UNWATCHED_ROOM;
        break;
    case EVENT_SYMBOL:
        replay_symbol(r, e, t);
        break;
    case EVENT_MODULE_UNLOAD:
        if (e->event.status == hipSuccess)
            free_some(r, e, t->space, is_of_module, e->event.dst);
        break;
    default:
        break;
    }
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void remember_gap(struct replay *r, uint64_t first, uint64_t end) {
    enum { GAPS_MAX = 1 << 16 }; /* more of them are one */
    struct gap *last = r->gap_count ? &r->gaps[r->gap_count - 1] : NULL;
    if (last && (last->end >= first || r->gap_count == GAPS_MAX)) {
        last->end = end;
        return;
    }
    struct gap *gaps = grow_array(r->gaps, &r->gap_room, r->gap_count, sizeof *gaps);
    if (!gaps) {
        r->no_memory = true;
        return;
    }
    r->gaps = gaps;
    r->gaps[r->gap_count++] = (struct gap){ first, end };
}

static void on_lost(struct replay *r, const struct reader_event *e) {
    uint64_t n = e->event.len;
    switch (event_detail(&e->event)) {
    case DETAIL_LOSS_NO_SPACE:
        r->seen.lost += n;
        break;
    case DETAIL_LOSS_OVERWRITTEN:
        r->seen.overwritten += n;
        break;
    case DETAIL_LOSS_TRUNCATED:
        r->seen.cut += n;
        break;
    default:
        r->seen.torn += n;
    }
    /* Something may have been allocated, freed or waited for in the hole. What is missing at the
     * beginning cannot come between two events that are there. */
    r->gap = e->seq + n;
    remember_gap(r, e->seq, r->gap);
}

/* The hole is in the history of every process: its first events may be what is missing. */
static void note_gap(const struct replay *r, struct space *s) {
    if (s->gap < r->gap)
        s->gap = r->gap;
}

/* Functions that the audit records as plain calls, although they change what others depend on. */
static void on_unfollowed(struct replay *r, const struct reader_event *e, struct thread *t,
                          enum hip_fn fn) {
    enum hip_class c = fn == HIP_FN_COUNT ? HIP_CLASS_QUERY : hip_fn_class(fn);
    if (e->event.status != hipSuccess)
        return;
    if (c == HIP_CLASS_COPY || c == HIP_CLASS_SET) {
        r->unfollowed = hip_fn_name(fn);
        t->space->unknown_launch = e->seq;
        r->unknown_beside = true;
    } else if (c == HIP_CLASS_GRAPH && hip_fn_trait(fn) != HIP_TRAIT_INSPECTS &&
               fn != HIP_FN_hipGraphAddDependencies) { /* whose edges are events of their own */
        r->order_doubt = sentence_plain(SENTENCE_DOUBT_GRAPH_CHANGED);
    }
}

static void on_call(struct replay *r, const struct reader_event *e, struct thread *t) {
    enum hip_fn fn = r->fn[event_fn(&e->event)];
    peers_on_call(r, e, t);
    switch (fn) {
    case HIP_FN_hipStreamWaitValue32:
    case HIP_FN_hipStreamWaitValue64:
    case HIP_FN_hipStreamBatchMemOp:
        values_on_wait(r, e, t);
        break;
    case HIP_FN_hipWaitExternalSemaphoresAsync:
    case HIP_FN_hipSignalExternalSemaphoresAsync:
        r->order_doubt = sentence_plain(SENTENCE_DOUBT_SEMAPHORES);
        break;
    case HIP_FN_hipIpcGetMemHandle:
    case HIP_FN_hipMemPoolExportPointer:
        if (e->event.status == hipSuccess)
            on_shared(r, false); /* whoever opens the handle may not be recorded */
        break;
    default:
        on_unfollowed(r, e, t, fn);
    }
}

static void on_host_fn(struct replay *r, const struct reader_event *e, struct thread *t) {
    before_on_host_fn(r, e, t);
    handover_on_host_fn(r, e, t);
    if (e->event.kind == EVENT_HOST_FN && event_is_captured(&e->event) &&
        e->event.status == hipSuccess) {
        r->op->seq = e->seq;
        r->op->stream = e->event.stream;
        graph_add_op(r, r->op, t);
    }
}

static void dispatch(struct replay *r, const struct reader_event *e, struct thread *t) {
    switch (e->event.kind) {
    case EVENT_COPY:
    case EVENT_COPY2D:
    case EVENT_SET:
    case EVENT_LAUNCH:
        on_work(r, e, t);
        break;
    case EVENT_SYNC:
        before_on_sync(r, e, t);
        break;
    case EVENT_EVENT_CREATE:
    case EVENT_EVENT_DESTROY:
    case EVENT_EVENT_RECORD:
    case EVENT_EVENT_WAIT:
    case EVENT_EVENT_SYNC:
        before_on_event(r, e, t);
        break;
    case EVENT_STREAM_CREATE:
        before_on_stream_create(r, e, t);
        break;
    case EVENT_STREAM_DESTROY:
        before_on_stream_destroy(r, e, t);
        break;
    case EVENT_THREAD_START:
    case EVENT_HOST_RELEASE:
    case EVENT_HOST_ACQUIRE:
        before_on_host(r, e, t);
        handover_on_host(r, e, t);
        break;
    case EVENT_HOST_FN:
    case EVENT_HOST_FN_BEGIN:
    case EVENT_HOST_FN_END:
        on_host_fn(r, e, t);
        break;
    case EVENT_CALL:
        on_call(r, e, t);
        break;
    case EVENT_DEVICE:
        if (e->event.status == hipSuccess)
            t->device = (uint32_t)e->event.dst;
        break;
    case EVENT_DEVICE_RESET:
        on_reset(r, e, t);
        break;
    case EVENT_FAULT:
        fault_on_event(r, e, t);
        break;
    case EVENT_CAUGHT:
        caught_on_event(r, e, t);
        break;
    case EVENT_EXECUTED:
        fidelity_on_event(r, e);
        break;
    case EVENT_DROPPED:
        errors_on_dropped(r, e);
        break;
    case EVENT_TOUCHED:   /* it was read with its launch */
    case EVENT_VALUE_MET: /* or with its wait */
        break;
    case EVENT_RAN:
    case EVENT_NOT_RUN:
    case EVENT_SLACK:
        launches_on_event(r, e, t);
        break;
    case EVENT_REFUSED:
        bounds_on_refused(r, e, t);
        break;
    case EVENT_END:
        t->space->ended = true;
        break;
    default:
        if (e->event.kind >= EVENT_CAPTURE_BEGIN && e->event.kind <= EVENT_GRAPH_HANDLE)
            graph_on_event(r, e, t);
        else
            on_memory(r, e, t);
    }
}

static void on_event(struct replay *r, const struct reader_event *e) {
    if (e->event.kind == EVENT_LOST) {
        on_lost(r, e);
        return;
    }
    struct thread *t = replay_thread(r, e->event.thread);
    if (!t)
        return;
    note_gap(r, t->space);
    r->now_ns = e->event.t_ns;
    errors_on_event(r, e, t);
    resources_on_event(r, e, t);
    host_fn_on_call(r, e, t);
    dispatch(r, e, t);
    t->last = e->seq;
    t->last_ns = e->event.t_ns;
    t->last_pending = event_is_pending(&e->event);
    r->seen.events++;
    r->seen.last_event = e->seq;
}

/* ---- starting and ending --------------------------------------------------------------------- */

static bool open_replay(struct replay *r) {
    r->event = malloc(sizeof *r->event);
    r->other = malloc(sizeof *r->other);
    r->said = malloc(sizeof *r->said);
    r->op = malloc(sizeof *r->op);
    r->thread_count = (size_t)reader_count(r->r, DEFINITION_THREAD) + 1;
    r->threads = calloc(r->thread_count, sizeof *r->threads);
    r->stream_count = (size_t)reader_count(r->r, DEFINITION_STREAM) + 1;
    r->streams = calloc(r->stream_count, sizeof *r->streams);
    for (unsigned i = 0; i <= EVENT_FN_MAX; i++)
        r->fn[i] = i == EVENT_NO_FN ? HIP_FN_COUNT : hip_fn_find(reader_function(r->r, i));
    const char *partial = reader_provenance_find(r->r, "audit.partial");
    r->partial = partial && !strcmp(partial, "1");
    r->seen.last_event = EVENT_NO_SEQ;
    r->settle = race_vague_settle;
    r->enter = race_enter;
    return r->event && r->other && r->said && r->op && r->threads && r->streams;
}

/* Following the recording costs more than its size allows: the rest of it counts as missing. */
static void give_up(struct replay *r, uint64_t left) {
    struct reader_event rest = { .seq = r->event->seq,
                                 .event = { .kind = EVENT_LOST,
                                            .dst = r->event->seq,
                                            .len = left,
                                            .aux = event_aux(EVENT_NO_FN, DETAIL_LOSS_TORN) } };
    on_lost(r, &rest);
    r->seen.unread = left;
    r->no_memory = false;
    effort_end(); /* what is left to do is little */
}

void replay_run(struct replay *r) {
    if (!open_replay(r)) {
        r->no_memory = true;
        return;
    }
    enum { RELEASE = 1 << 20 }; /* slots, 64 MiB of them */
    const struct reader_info *info = reader_info(r->r);
    struct reader_cursor c = reader_events(r->r, 0, UINT64_MAX);
    effort_begin(info->data_bytes / sizeof(union event_slot), info->data_bytes);
    for (uint64_t next = RELEASE;
         !r->no_memory && !effort_is_spent() && reader_next(&c, r->event);) {
        arena_clear(&r->words);
        on_event(r, r->event);
        if (r->event->seq >= next) {
            reader_release(r->r, r->event->seq);
            next = r->event->seq + RELEASE;
        }
    }
    if (effort_is_spent())
        give_up(r, info->end_seq - r->event->seq);
    for (size_t i = 0; i < r->space_count; i++) {
        struct space *s = r->spaces[i];
        note_gap(r, s);
        for (struct range *at = rangemap_first(&s->live); at; at = rangemap_next(&s->live, at))
            space_forget_use(s, at->value);
        r->seen.processes_ended += s->ended;
    }
    if (!r->no_memory) {
        values_late_finish(r);
        launches_finish(r);
        errors_finish(r);
    }
    effort_end();
}

static void free_clocks(struct table *t) {
    size_t at = 0;
    const struct table_entry *e;
    while ((e = table_next(t, &at))) {
        vclock_free(e->value);
        free(e->value);
    }
    table_clear(t);
}

static void free_space(struct space **s) {
    size_t at = 0;
    const struct table_entry *e;
    while ((e = table_next(&(*s)->events, &at)))
        event_state_free(e->value);
    table_clear(&(*s)->events);
    free_clocks(&(*s)->tokens);
    free_clocks(&(*s)->submitted);
    host_fn_free_space(*s);
    graph_free_space(*s);
    resources_free_space(*s);
    for (size_t i = 0; i < (*s)->stream_count; i++)
        if ((*s)->streams[i]->id == 0) { /* the others are in the replay's list */
            vclock_free(&(*s)->streams[i]->clock);
            free((*s)->streams[i]->frontier.at);
            free((*s)->streams[i]->chain_lanes);
            free((*s)->streams[i]);
        }
    (*s)->settle = NULL;
    space_close(s);
}

void replay_free(struct replay *r) {
    for (size_t i = 0; i < r->space_count; i++)
        free_space(&r->spaces[i]);
    for (size_t i = 0; r->streams && i < r->stream_count; i++) {
        struct stream *s = r->streams[i];
        if (!s)
            continue;
        vclock_free(&s->clock);
        free(s->frontier.at);
        free(s->chain_lanes);
        free(s);
    }
    for (size_t i = 0; r->threads && i < r->thread_count; i++) {
        vclock_free(&r->threads[i].known);
        vclock_free(&r->threads[i].submitted);
    }
    for (uint32_t i = 0; i < r->lane_count; i++)
        free(r->lanes[i].seqs);
    graph_free(r);
    arena_clear(&r->arena);
    arena_clear(&r->words);
    findings_free(&r->found);
    table_clear(&r->space_of);
    table_clear(&r->touched);
    fidelity_close(r);
    values_close(r);
    free(r->spaces);
    free(r->streams);
    free(r->threads);
    free(r->lanes);
    free(r->idle_lanes);
    free(r->failures);
    free(r->gaps);
    free(r->event);
    free(r->other);
    free(r->said);
    free(r->op);
}
