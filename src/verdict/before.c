/* before.c - what is before what.
 *
 * HIP's rules, as far as the recording shows what they apply to:
 *
 *   - Operations of a stream run in the order in which they were given to it.
 *   - An operation comes after everything that its thread had waited for when it made the call.
 *   - An operation in a device's legacy default stream comes after all that blocking streams of the
 *     device were given before, and one in a blocking stream (per-thread default streams are
 *     blocking) after all that the legacy default stream was given before. Streams created with
 *     hipStreamNonBlocking take no part in this.
 *   - hipStreamWaitEvent: what the stream is given later comes after what the event stood for at
 *     the time of the call.
 *   - hipStreamSynchronize, hipEventSynchronize, hipDeviceSynchronize, and queries that said that
 *     all is done: the thread has waited. Which copies and frees wait is in replay.c.
 *   - Host threads: what a thread knows passes to another by HOST_RELEASE and HOST_ACQUIRE of the
 *     same token, and to a new thread by THREAD_START.
 *
 * Programs also synchronise threads in ways that nobody records (atomics, pipes). So an operation
 * that was over, by wall-clock time, before another was even submitted is never called unordered
 * with it; before_by_time() finds such pairs, and they are counted, because the next run may order
 * them differently.
 *
 * Lanes: the clocks have one component per lane, so that programs which make and destroy streams
 * all the time must use lanes again. A lane may go to a new stream if the thread that creates it
 * has waited for everything in that lane: then whatever comes after the new stream's work comes
 * after the old one's too, as the clocks will say. */
#include <stdlib.h>
#include <string.h>

#include "record/writer.h"
#include "verdict/effort.h"
#include "verdict/replay.h"

/* ---- lanes ----------------------------------------------------------------------------------- */

bool before_new_lane(struct replay *r, const struct thread *t, uint32_t *lane) {
    enum { LOOK = 64 };
    for (uint32_t n = 0; n < LOOK && n < r->idle_count; n++) {
        uint32_t i = r->idle_count - 1 - n, candidate = r->idle_lanes[i];
        if (vclock_covers(&t->known, candidate, r->lanes[candidate].last)) {
            r->idle_lanes[i] = r->idle_lanes[--r->idle_count];
            *lane = candidate;
            return true;
        }
    }
    if (r->lane_count == SHADOW_LANES_MAX - 1)
        return replay_no_memory(r);
    if (r->lane_count == r->lane_room) {
        uint32_t room = r->lane_room ? 2 * r->lane_room : 64;
        struct lane *lanes = realloc(r->lanes, (size_t)room * sizeof *lanes);
        if (!lanes)
            return replay_no_memory(r);
        r->lanes = lanes;
        r->lane_room = room;
    }
    r->lanes[r->lane_count] = (struct lane){ 0 };
    *lane = r->lane_count++;
    return true;
}

static void retire_lane(struct replay *r, uint32_t lane) {
    if (r->idle_count == r->idle_room) {
        uint32_t room = r->idle_room ? 2 * r->idle_room : 64;
        uint32_t *lanes = realloc(r->idle_lanes, (size_t)room * sizeof *lanes);
        if (!lanes)
            return; /* it is merely not used again */
        r->idle_lanes = lanes;
        r->idle_room = room;
    }
    r->idle_lanes[r->idle_count++] = lane;
}

uint32_t before_number(struct replay *r, uint32_t lane) {
    return r->lanes[lane].last + 1;
}

void before_done(struct replay *r, struct vclock *clock, uint32_t lane, uint64_t seq) {
    struct lane *l = &r->lanes[lane];
    if (l->last == l->seqs_room) {
        uint32_t room = l->seqs_room ? 2 * l->seqs_room : 64;
        uint64_t *seqs = realloc(l->seqs, (size_t)room * sizeof *seqs);
        if (!seqs) {
            r->no_memory = true;
            return;
        }
        l->seqs = seqs;
        l->seqs_room = room;
    }
    l->seqs[l->last++] = seq;
    if (!vclock_raise(clock, lane, l->last))
        r->no_memory = true;
}

/* ---- streams --------------------------------------------------------------------------------- */

static struct stream *find_null(const struct space *s, uint32_t device) {
    return device < SPACE_NULLS ? s->null[device] : NULL;
}

static bool grow(void *array, size_t *room, size_t count, size_t size) {
    void **at = array;
    if (count < *room)
        return true;
    size_t more = *room ? 2 * *room : 16;
    void *p = realloc(*at, more * size);
    if (!p)
        return false;
    *at = p;
    *room = more;
    return true;
}

static struct stream *new_stream(struct replay *r, uint32_t id, struct thread *t) {
    struct space *space = t->space;
    struct stream *s = calloc(1, sizeof *s);
    if (!s || !grow(&space->streams, &space->stream_room, space->stream_count, sizeof s) ||
        !before_new_lane(r, t, &s->lane) ||
        !vclock_raise(&s->clock, s->lane, r->lanes[s->lane].last)) {
        free(s);
        r->no_memory = true;
        return NULL;
    }
    const struct stream_value *v = id ? reader_stream(r->r, id) : NULL;
    s->id = id;
    s->space = space;
    s->device = v ? v->device : 0;
    /* An unknown stream waits for everything: that may hide races, but invents none. */
    s->is_null = !v || v->flags & RECORD_STREAM_DEFAULT;
    s->is_blocking = !s->is_null && !(v->flags & hipStreamNonBlocking);
    s->seen_thread = UINT32_MAX;
    space->streams[space->stream_count++] = s;
    if (s->is_null && s->device < SPACE_NULLS && !space->null[s->device])
        space->null[s->device] = s;
    r->seen.streams++;
    return s;
}

struct stream *before_stream(struct replay *r, uint32_t id, struct thread *t) {
    if (id == 0 || id >= r->stream_count) {
        (void)effort_steps(t->space->stream_count);
        for (size_t i = 0; i < t->space->stream_count; i++)
            if (t->space->streams[i]->id == 0)
                return t->space->streams[i];
        return new_stream(r, 0, t);
    }
    if (!r->streams[id])
        r->streams[id] = new_stream(r, id, t);
    return r->streams[id];
}

void before_changed(struct replay *r, struct stream *s) {
    struct space *space = s->space;
    s->version++;
    if (!s->is_blocking || s->dirty)
        return;
    if (!grow(&space->dirty, &space->dirty_room, space->dirty_count, sizeof s)) {
        r->no_memory = true;
        return;
    }
    space->dirty[space->dirty_count++] = s;
    s->dirty = true;
}

/* The default stream takes in what blocking streams of its device have been given. */
static bool take_in_blocking(struct stream *null) {
    struct space *space = null->space;
    size_t kept = 0;
    bool ok = true;
    for (size_t i = 0; i < space->dirty_count; i++) {
        struct stream *s = space->dirty[i];
        if (s->device != null->device) {
            space->dirty[kept++] = s;
            continue;
        }
        ok = vclock_join(&null->clock, &s->clock) && ok;
        s->dirty = false;
    }
    space->dirty_count = kept;
    return ok;
}

void before_enter(struct replay *r, struct stream *s, struct thread *t) {
    bool ok = true;
    if (s->seen_thread != t->id || s->seen_thread_version != t->version) {
        ok = vclock_join(&s->clock, &t->known);
        s->seen_thread = t->id;
        s->seen_thread_version = t->version;
    }
    if (s->is_null && s->space->dirty_count)
        ok = take_in_blocking(s) && ok;
    if (s->is_blocking) {
        struct stream *null = find_null(s->space, s->device);
        if (null && s->seen_null != null->version) {
            ok = vclock_join(&s->clock, &null->clock) && ok;
            s->seen_null = null->version;
        }
    }
    if (!ok)
        r->no_memory = true;
}

/* ---- waiting --------------------------------------------------------------------------------- */

void before_wait_clock(struct replay *r, struct thread *t, const struct vclock *clock,
                       uint64_t end_ns) {
    /* The calls that taught it what it knows so far are over: this one has begun. */
    bool ok = t->space->threads <= 1 || vclock_join(&t->space->published, &t->known);
    if (!vclock_includes(&t->known, clock)) {
        ok = vclock_join(&t->known, clock) && ok;
        t->version++;
        t->known_ns = end_ns;
    }
    if (!ok)
        r->no_memory = true;
}

static void wait_stream(struct replay *r, struct thread *t, struct stream *s, uint64_t end_ns) {
    if (s->is_null)
        before_enter(r, s, t); /* it is done when the blocking streams are */
    before_wait_clock(r, t, &s->clock, end_ns);
}

void before_wait_device(struct replay *r, struct thread *t, int device, uint64_t end_ns) {
    struct space *space = t->space;
    before_wait_clock(r, t, &space->drained, end_ns);
    (void)effort_steps(space->stream_count);
    for (size_t i = 0; i < space->stream_count; i++)
        if (device < 0 || space->streams[i]->device == (uint32_t)device)
            before_wait_clock(r, t, &space->streams[i]->clock, end_ns);
}

bool before_by_time(struct replay *r, struct thread *t, struct vclock *clock, uint32_t lane,
                    uint32_t number) {
    struct space *space = t->space;
    const struct vclock *known = NULL;
    if (space->threads <= 1)
        return false;
    if (vclock_covers(&space->published, lane, number))
        known = &space->published;
    if (!effort_steps(r->thread_count))
        return replay_no_memory(r);
    for (size_t i = 0; i < r->thread_count && !known; i++) {
        const struct thread *u = &r->threads[i];
        if (u != t && u->space == space && u->known_ns <= r->now_ns &&
            vclock_covers(&u->known, lane, number))
            known = &u->known;
    }
    if (!known)
        return false;
    if (!vclock_join(clock, known) || !vclock_join(&t->known, known))
        r->no_memory = true;
    t->version++;
    return true;
}

/* ---- events of the recording ----------------------------------------------------------------- */

bool before_succeeded(const struct event *e) {
    return e->status == hipSuccess || event_is_pending(e);
}

void before_on_stream_create(struct replay *r, const struct reader_event *e, struct thread *t) {
    if (before_succeeded(&e->event))
        (void)before_stream(r, e->event.stream, t);
}

void before_on_stream_destroy(struct replay *r, const struct reader_event *e, struct thread *t) {
    if (!before_succeeded(&e->event) || !e->event.stream)
        return;
    struct stream *s = before_stream(r, e->event.stream, t);
    if (!s || s->destroyed || s->is_null)
        return;
    s->destroyed = true;
    retire_lane(r, s->lane);
    for (uint32_t i = 0; i < s->chain_count; i++)
        retire_lane(r, s->chain_lanes[i]);
    /* Its work goes on: waiting for the device includes it. */
    struct space *space = s->space;
    if (!vclock_join(&space->drained, &s->clock) || !effort_steps(space->stream_count))
        r->no_memory = true;
    for (size_t i = 0; i < space->stream_count; i++)
        if (space->streams[i] == s) {
            space->streams[i] = space->streams[--space->stream_count];
            break;
        }
}

void before_on_sync(struct replay *r, const struct reader_event *e, struct thread *t) {
    if (!before_succeeded(&e->event) || event_detail(&e->event) == DETAIL_SCOPE_STREAM_GLANCE)
        return;
    if (event_detail(&e->event) == DETAIL_SCOPE_DEVICE || !e->event.stream) {
        before_wait_device(r, t, (int)e->event.dst, event_end_ns(&e->event));
        return;
    }
    struct stream *s = before_stream(r, e->event.stream, t);
    if (s)
        wait_stream(r, t, s, event_end_ns(&e->event));
}

/* ---- the host -------------------------------------------------------------------------------- */

void before_on_host(struct replay *r, const struct reader_event *e, struct thread *t) {
    struct space *space = t->space;
    struct vclock *token = table_find(&space->tokens, e->event.dst);
    r->host_syncs++;
    if (e->event.kind != EVENT_HOST_RELEASE) {
        if (token)
            before_wait_clock(r, t, token, e->event.t_ns);
        return;
    }
    if (!token) {
        token = calloc(1, sizeof *token);
        if (!token || !table_set(&space->tokens, e->event.dst, token)) {
            free(token);
            r->no_memory = true;
            return;
        }
    }
    if (!vclock_join(token, &t->known))
        r->no_memory = true;
}
