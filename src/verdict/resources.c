/* resources.c - streams, events, graphs, modules, pools, textures, surfaces and registrations that
 * are never released.
 *
 * Leaked memory is a matter of leaks.c; this file is about objects that hold no memory of the
 * program. Nothing is reported if the process ended on an error, because it may not have reached
 * its clean-up, or if the object was made before a hole in the recording, in which it may have been
 * released. hipDeviceReset() releases everything on its device. The device of events, graphs and
 * modules is not recorded, so any reset releases them. */
#include <stdlib.h>

#include "verdict/effort.h"
#include "verdict/replay.h"

struct resource {
    uint64_t made, gone; /* events; EVENT_NO_SEQ: not yet */
    uint32_t stream;
};

/* What a finding says of one, and of several made at one place. */
static const enum sentence_id words[SPACE_RESOURCES] = {
    [SPACE_RESOURCE_STREAM] = SENTENCE_RESOURCE_STREAM,
    [SPACE_RESOURCE_EVENT] = SENTENCE_RESOURCE_EVENT,
    [SPACE_RESOURCE_GRAPH] = SENTENCE_RESOURCE_GRAPH,
    [SPACE_RESOURCE_EXEC] = SENTENCE_RESOURCE_EXEC,
    [SPACE_RESOURCE_MODULE] = SENTENCE_RESOURCE_MODULE,
    [SPACE_RESOURCE_POOL] = SENTENCE_RESOURCE_POOL,
    [SPACE_RESOURCE_TEXTURE] = SENTENCE_RESOURCE_TEXTURE,
    [SPACE_RESOURCE_SURFACE] = SENTENCE_RESOURCE_SURFACE,
};

/* Calls without a kind of event of their own; dst is the handle. */
static const struct {
    enum hip_fn make, release;
    enum space_resource kind;
} by_call[] = {
    { HIP_FN_hipMemPoolCreate, HIP_FN_hipMemPoolDestroy, SPACE_RESOURCE_POOL },
    { HIP_FN_hipCreateTextureObject, HIP_FN_hipDestroyTextureObject, SPACE_RESOURCE_TEXTURE },
    { HIP_FN_hipTexObjectCreate, HIP_FN_hipTexObjectDestroy, SPACE_RESOURCE_TEXTURE },
    { HIP_FN_hipCreateSurfaceObject, HIP_FN_hipDestroySurfaceObject, SPACE_RESOURCE_SURFACE },
};

/* What a handle of that kind is called, where its use after its end is recognised. */
static const enum sentence_id names[SPACE_RESOURCES] = {
    [SPACE_RESOURCE_STREAM] = SENTENCE_A_STREAM, [SPACE_RESOURCE_EVENT] = SENTENCE_AN_EVENT,
    [SPACE_RESOURCE_GRAPH] = SENTENCE_A_GRAPH,   [SPACE_RESOURCE_EXEC] = SENTENCE_AN_EXEC,
    [SPACE_RESOURCE_MODULE] = SENTENCE_A_MODULE,
};

/* ---- making and releasing -------------------------------------------------------------------- */

static void make(struct replay *r, const struct reader_event *e, struct space *s,
                 enum space_resource kind, uint64_t handle) {
    if (e->event.status != hipSuccess || !handle)
        return;
    struct resource *x = malloc(sizeof *x);
    if (!x) {
        r->no_memory = true;
        return;
    }
    *x = (struct resource){
        .made = e->seq,
        .gone = EVENT_NO_SEQ,
        .stream = kind == SPACE_RESOURCE_STREAM ? e->event.stream : 0,
    };
    struct resource *old = table_remove(&s->resources[kind], handle);
    s->resources_gone[kind] -= old && old->gone != EVENT_NO_SEQ;
    free(old);
    if (!table_set(&s->resources[kind], handle, x)) {
        free(x);
        r->no_memory = true;
    }
    r->checked[HYPOTHESIS_RESOURCE_LEAK]++;
}

/* Takes out those of which `keep` says no. */
static void sieve(struct replay *r, struct space *s, enum space_resource kind,
                  bool (*keep)(const struct replay *, const struct resource *, uint64_t),
                  uint64_t what) {
    struct table kept = { 0 };
    size_t at = 0, gone = 0;
    (void)effort_steps(UINT64_C(16) * s->resources[kind].room);
    for (const struct table_entry *e; (e = table_next(&s->resources[kind], &at));) {
        struct resource *x = e->value;
        if (keep(r, x, what) && table_set(&kept, e->key, x))
            gone += x->gone != EVENT_NO_SEQ;
        else
            free(x);
    }
    table_clear(&s->resources[kind]);
    s->resources[kind] = kept;
    s->resources_gone[kind] = gone;
}

static bool is_newer(const struct replay *r, const struct resource *x, uint64_t seq) {
    (void)r;
    return x->gone == EVENT_NO_SEQ || x->gone > seq;
}

/* The newest released objects are remembered, until their handles are used again. */
static void release(struct replay *r, const struct reader_event *e, struct space *s,
                    enum space_resource kind, uint64_t handle) {
    enum { GONE_MAX = 1 << 16 };
    struct resource *x = table_find(&s->resources[kind], handle);
    if (x && x->gone == EVENT_NO_SEQ &&
        (e->event.status == hipSuccess || event_is_pending(&e->event)))
        x->gone = e->seq;
    else
        return;
    if (++s->resources_gone[kind] > GONE_MAX)
        sieve(r, s, kind, is_newer, e->seq - GONE_MAX);
}

/* Is the object a stream of a device that is known to be another one? */
static bool is_elsewhere(const struct replay *r, const struct resource *x, uint64_t device) {
    const struct stream_value *v = x->stream ? reader_stream(r->r, x->stream) : NULL;
    return v && v->device != device;
}

static void release_all(struct replay *r, struct space *s, uint64_t device) {
    for (int kind = 0; kind < SPACE_RESOURCES; kind++)
        sieve(r, s, (enum space_resource)kind, is_elsewhere, device);
}

/* ---- handles that are gone ------------------------------------------------------------------- */

/* The handle that an event is about besides its stream's. */
static bool handle_of(const struct event *e, enum space_resource *kind, uint64_t *handle) {
    switch (e->kind) {
    case EVENT_STREAM_DESTROY:
        *kind = SPACE_RESOURCE_STREAM;
        *handle = e->dst;
        return true;
    case EVENT_EVENT_DESTROY:
    case EVENT_EVENT_RECORD:
    case EVENT_EVENT_WAIT:
    case EVENT_EVENT_SYNC:
        *kind = SPACE_RESOURCE_EVENT;
        *handle = e->dst;
        return true;
    case EVENT_GRAPH_INSTANTIATE:
        *kind = SPACE_RESOURCE_GRAPH;
        *handle = e->src;
        return true;
    case EVENT_GRAPH_LAUNCH:
    case EVENT_GRAPH_UPDATE:
        *kind = SPACE_RESOURCE_EXEC;
        *handle = e->dst;
        return true;
    case EVENT_GRAPH_DESTROY:
        *kind = e->dst ? SPACE_RESOURCE_GRAPH : SPACE_RESOURCE_EXEC;
        *handle = e->dst ? e->dst : e->src;
        return true;
    case EVENT_MODULE_UNLOAD:
        *kind = SPACE_RESOURCE_MODULE;
        *handle = e->dst;
        return true;
    case EVENT_FUNCTION:
        *kind = SPACE_RESOURCE_MODULE;
        *handle = e->src;
        return true;
    default:
        return false;
    }
}

static bool releases(unsigned kind) {
    return kind == EVENT_STREAM_DESTROY || kind == EVENT_EVENT_DESTROY ||
           kind == EVENT_GRAPH_DESTROY || kind == EVENT_MODULE_UNLOAD;
}

static const struct resource *find_gone(const struct space *s, enum space_resource kind,
                                        uint64_t handle) {
    const struct resource *x = table_find(&s->resources[kind], handle);
    return x && x->gone != EVENT_NO_SEQ ? x : NULL;
}

/* The failing call was given something that no longer exists; its kind, and who destroyed it. */
static const struct resource *used_after(const struct replay *r, const struct event *e,
                                         const struct space *s, enum space_resource *kind) {
    uint64_t handle = 0;
    const struct resource *x =
        handle_of(e, kind, &handle) && handle ? find_gone(s, *kind, handle) : NULL;
    const struct stream_value *v = !x && e->stream ? reader_stream(r->r, e->stream) : NULL;
    if (v && v->handle) {
        *kind = SPACE_RESOURCE_STREAM;
        x = find_gone(s, SPACE_RESOURCE_STREAM, v->handle);
    }
    return x;
}

static bool is_about_handles(unsigned status) {
    return status == hipErrorInvalidHandle || status == hipErrorContextIsDestroyed ||
           status == hipErrorInvalidValue || status == hipErrorInvalidContext;
}

/* A failing call was given a handle that had been destroyed: enters that. */
static void explain(struct replay *r, const struct reader_event *e, struct thread *t) {
    enum space_resource kind;
    const struct resource *x =
        is_about_handles(e->event.status) ? used_after(r, &e->event, t->space, &kind) : NULL;
    struct failure *failure = x ? replay_failure(r, e->seq) : NULL;
    if (!x || x->gone < r->gap)
        return;
    struct found f = {
        .hypothesis = releases(e->event.kind) ? HYPOTHESIS_DOUBLE_FREE : HYPOTHESIS_USE_AFTER_FREE,
        .culprit = e->seq,
        .other = x->gone,
        .messenger = e->seq,
        .order = e->seq,
        .argument = -1,
        .failed = true,
        .process = t->space->process,
        .advised = sentence_plain(releases(e->event.kind) ? SENTENCE_ADVICE_HANDLE_TWICE
                                                          : SENTENCE_ADVICE_HANDLE_GONE),
    };
    f.said = SAY(&r->words, HANDLE_GONE, A_SENTENCE(findings_event(r, e->seq)),
                 A_SENTENCE(sentence_plain(names[kind])), A_SENTENCE(findings_event(r, x->gone)),
                 A_NUMBER(releases(e->event.kind)));
    findings_evidence(&f, x->made);
    findings_add(r, &f);
    if (failure)
        failure->explained = true;
}

/* ---- one event after the other --------------------------------------------------------------- */

static void on_call(struct replay *r, const struct reader_event *e, struct space *s) {
    enum hip_fn fn = r->fn[event_fn(&e->event)];
    for (size_t i = 0; i < sizeof by_call / sizeof *by_call; i++)
        if (fn == by_call[i].make)
            make(r, e, s, by_call[i].kind, e->event.dst);
        else if (fn == by_call[i].release)
            release(r, e, s, by_call[i].kind, e->event.dst);
}

void resources_on_event(struct replay *r, const struct reader_event *e, struct thread *t) {
    struct space *s = t->space;
    explain(r, e, t);
    switch (e->event.kind) {
    case EVENT_STREAM_CREATE:
        make(r, e, s, SPACE_RESOURCE_STREAM, e->event.dst);
        break;
    case EVENT_STREAM_DESTROY:
        release(r, e, s, SPACE_RESOURCE_STREAM, e->event.dst);
        break;
    case EVENT_EVENT_CREATE:
        make(r, e, s, SPACE_RESOURCE_EVENT, e->event.dst);
        break;
    case EVENT_EVENT_DESTROY:
        release(r, e, s, SPACE_RESOURCE_EVENT, e->event.dst);
        break;
    case EVENT_CAPTURE_END:
    case EVENT_GRAPH_CREATE:
        make(r, e, s, SPACE_RESOURCE_GRAPH, e->event.dst);
        break;
    case EVENT_GRAPH_INSTANTIATE:
        make(r, e, s, SPACE_RESOURCE_EXEC, e->event.dst);
        break;
    case EVENT_GRAPH_DESTROY:
        release(r, e, s, SPACE_RESOURCE_GRAPH, e->event.dst);
        release(r, e, s, SPACE_RESOURCE_EXEC, e->event.src);
        break;
    case EVENT_MODULE_LOAD:
        make(r, e, s, SPACE_RESOURCE_MODULE, e->event.dst);
        break;
    case EVENT_MODULE_UNLOAD:
        release(r, e, s, SPACE_RESOURCE_MODULE, e->event.dst);
        break;
    case EVENT_CALL:
        on_call(r, e, s);
        break;
    case EVENT_ALLOC:
        r->checked[HYPOTHESIS_RESOURCE_LEAK] +=
            event_detail(&e->event) == DETAIL_FAMILY_REGISTERED && e->event.status == hipSuccess;
        break;
    case EVENT_HOST_FREE: {
        struct block *b = space_at(s, e->event.dst);
        if (b)
            b->given_back = true; /* that is the finding */
        break;
    }
    case EVENT_DEVICE_RESET:
        if (e->event.status == hipSuccess)
            release_all(r, s, e->event.dst);
        break;
    default:
        break;
    }
}

/* ---- after the last event -------------------------------------------------------------------- */

static const struct sentence *say_leak(struct replay *r, enum sentence_id what, uint64_t count,
                                       uint64_t first) {
    const struct sentence_value values[] = { A_NUMBER(count),
                                             A_SENTENCE(findings_event(r, first)) };
    return sentence_make(&r->words, what, values, 2);
}

static void add_leak(struct replay *r, const struct space *s, uint64_t made, uint64_t handle,
                     enum sentence_id what) {
    struct found f = {
        .hypothesis = HYPOTHESIS_RESOURCE_LEAK,
        .culprit = made,
        .other = EVENT_NO_SEQ,
        .messenger = EVENT_NO_SEQ,
        .order = UINT64_MAX - 1, /* known at the end only */
        .argument = -1,
        .address = handle,
        .process = s->process,
    };
    f.said = say_leak(r, what, 1, made);
    struct found *known = findings_add(r, &f);
    if (known && made < known->culprit) /* handles come in no order */
        known->culprit = known->evidence[0] = made;
    arena_clear(&r->words);
}

/* What is said of several from one place, when all are counted. */
static void describe_many(struct replay *r) {
    for (size_t i = 0; i < r->found.count; i++) {
        struct found *f = &r->found.at[i];
        if (f->hypothesis == HYPOTHESIS_RESOURCE_LEAK && f->count > 1)
            f->said = findings_keep(r, say_leak(r, f->said->id, f->count, f->culprit));
    }
}

/* Returns how many there are. */
static uint64_t check_handles(struct replay *r, const struct space *s, bool accuse) {
    uint64_t alive = 0;
    for (int kind = 0; kind < SPACE_RESOURCES; kind++) {
        size_t at = 0;
        for (const struct table_entry *e; (e = table_next(&s->resources[kind], &at));) {
            const struct resource *x = e->value;
            if (x->gone != EVENT_NO_SEQ)
                continue;
            alive++;
            if (accuse && x->made > r->gap)
                add_leak(r, s, x->made, e->key, words[kind]);
        }
    }
    return alive;
}

static uint64_t check_registrations(struct replay *r, const struct space *s, bool accuse) {
    uint64_t alive = 0;
    for (struct range *at = rangemap_first(&s->live); at; at = rangemap_next(&s->live, at)) {
        const struct block *b = at->value;
        if (b->family != DETAIL_FAMILY_REGISTERED || b->found || b->given_back)
            continue;
        alive++;
        if (accuse && b->alloc > r->gap)
            add_leak(r, s, b->alloc, b->base, SENTENCE_RESOURCE_REGISTRATION);
    }
    return alive;
}

/* The end of a scope is not seen, only the return of its function: memory on a stack that was never
 * unregistered may have been gone before the work that used it was waited for. The recording does
 * not say which memory is a stack. */
static void check_scopes(struct replay *r, const struct space *s) {
    for (struct range *at = rangemap_first(&s->live); at; at = rangemap_next(&s->live, at)) {
        const struct block *b = at->value;
        if (b->family != DETAIL_FAMILY_REGISTERED || b->found || b->given_back || !b->outlasts)
            continue;
        findings_undecided(r, HYPOTHESIS_HOST_BUFFER_LIFETIME,
                           SAY(&r->words, DOUBT_SCOPE, A_SENTENCE(findings_event(r, b->alloc))));
        arena_clear(&r->words);
    }
}

void resources_finish(struct replay *r, bool failed) {
    bool unsure = false;
    for (size_t i = 0; i < r->space_count; i++) {
        const struct space *s = r->spaces[i];
        bool accuse = s->ended && !s->stopped && !failed;
        uint64_t alive = check_handles(r, s, accuse) + check_registrations(r, s, accuse);
        unsure |= alive && !accuse;
        check_scopes(r, s);
    }
    if (unsure)
        findings_undecided(r, HYPOTHESIS_RESOURCE_LEAK, sentence_plain(SENTENCE_DOUBT_STOPPED));
    describe_many(r);
}

void resources_free_space(struct space *s) {
    for (int kind = 0; kind < SPACE_RESOURCES; kind++) {
        size_t at = 0;
        for (const struct table_entry *e; (e = table_next(&s->resources[kind], &at));)
            free(e->value);
        table_clear(&s->resources[kind]);
    }
}
