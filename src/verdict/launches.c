/* launches.c - what the device states about launches: whether they ran, and what was checked.
 *
 * Nothing about a device is inferred. A launch ran if the device counts it as done (RAN), or if the
 * host waited for it with success, and nothing says that it did not (NOT_RUN). Its accesses were
 * checked as its extra CHECKED says; without that extra nothing was. Slack that lost its pattern
 * (SLACK) is a finding: somebody wrote there. */
#include "verdict/effort.h"
#include "verdict/replay.h"

/* ---- every launch ---------------------------------------------------------------------------- */

static void count(struct launch_count *c, uint32_t kernel) {
    if (!c->count++)
        c->kernel = kernel;
}

/* Does the launch use a tensor that is only part of a block? Then no guard follows the tensor. */
static bool is_inside_a_block(const struct op *op, struct space *s) {
    for (unsigned i = 0; i < op->count; i++) {
        const struct space_name *n = space_name_at(s, op->use[i].start);
        const struct block *b = n ? space_at(s, n->at) : NULL;
        if (b && (n->at != b->base || n->bytes != b->bytes))
            return true;
    }
    return false;
}

static bool is_cooperative(const struct reader_event *e) {
    const struct event_extra *x = reader_extra(e, EXTRA_DIMS);
    return x && event_dims_of(x).flags & EVENT_DIMS_COOPERATIVE;
}

void launches_on_run(struct replay *r, const struct reader_event *e, const struct op *op,
                     struct thread *t, struct stream *s) {
    struct launch_facts *l = &r->launches;
    const struct event_extra *x = reader_extra(e, EXTRA_CHECKED);
    struct event_checked checked = x ? event_checked_of(x) : (struct event_checked){ 0 };
    l->total++;
    s->launches++;
    s->last_launch = before_number(r, s->lane);
    if (!op->exact && !op->bounded) /* doubts about bounds are noted one by one */
        count(&l->vague, op->name);
    bool machine =
        checked.how == DETAIL_CHECKED_NOTHING || checked.how == DETAIL_CHECKED_EVERY_ACCESS;
    l->machine += checked.how == DETAIL_CHECKED_EVERY_ACCESS;
    l->follows_init = checked.flags & EVENT_CHECKED_INIT;
    if (checked.flags & EVENT_CHECKED_COULD)
        count(&l->could, op->name);
    if (checked.flags & EVENT_CHECKED_RACES)
        r->checked[HYPOTHESIS_KERNEL_RACE]++;
    else if (machine)
        count(is_cooperative(e) ? &l->unraced_grids : &l->unraced, op->name);
    if (checked.flags & EVENT_CHECKED_BARRIERS)
        r->checked[HYPOTHESIS_BARRIER_DIVERGENCE]++;
    else if (machine)
        count(&l->unbarred, op->name);
    if (checked.how == DETAIL_CHECKED_NOTHING || checked.how > DETAIL_CHECKED_EVERY_ACCESS) {
        count(&l->unchecked, op->name);
        return;
    }
    if (checked.how == DETAIL_CHECKED_EVERY_ACCESS || op->exact)
        return;
    if (checked.before) {
        count(&l->front, op->name);
        l->front_bytes = checked.before > l->front_bytes ? checked.before : l->front_bytes;
    }
    if (checked.after) {
        count(&l->behind, op->name);
        l->behind_bytes = checked.after > l->behind_bytes ? checked.after : l->behind_bytes;
    }
    l->unpatterned |= (checked.before || checked.after) && !(checked.flags & EVENT_CHECKED_PATTERN);
    if (is_inside_a_block(op, t->space))
        count(&l->inside, op->name);
}

void launches_on_undefined(struct replay *r, const struct op *op) {
    if (op->what == SHADOW_LAUNCH && !r->launches.follows_init)
        count(&r->launches.undefined, op->name);
}

void launches_on_unfollowed(struct replay *r, const struct reader_event *e) {
    count(&r->launches.unfollowed, e->event.name);
    if (r->checked[HYPOTHESIS_KERNEL_RACE])
        r->checked[HYPOTHESIS_KERNEL_RACE]--;
}

void launches_on_fault(struct replay *r, uint64_t launch) {
    if (launch != EVENT_NO_SEQ && reader_event(r->r, launch, r->other) &&
        r->other->event.kind == EVENT_LAUNCH)
        count(&r->launches.cut_short, r->other->event.name);
}

void launches_on_harmless(struct replay *r, const struct reader_event *e) {
    count(&r->launches.harmless, e->event.name);
}

void launches_on_failure(struct replay *r, const struct op *op, struct thread *t) {
    r->launches.total++;
    /* What it would have written is missing, so readers of those bytes must not be accused. */
    t->space->unknown_launch = op->seq;
}

/* ---- the device's statements ----------------------------------------------------------------- */

static void on_ran(struct replay *r, const struct reader_event *e, struct thread *t) {
    struct stream *s = before_stream(r, e->event.stream, t);
    if (s && e->event.dst > s->ran)
        s->ran = e->event.dst;
}

static void on_not_run(struct replay *r, const struct reader_event *e) {
    struct launch_facts *l = &r->launches;
    unsigned reason = event_detail(&e->event);
    uint64_t n = e->event.len ? e->event.len : 1;
    if (reason == DETAIL_REASON_REFUSED || reason == DETAIL_REASON_DEVICE_FAILED)
        return; /* a failed call like any other; what follows a fault has done nothing */
    if (!l->not_run.count) {
        l->not_run.kernel = e->event.name;
        l->reason = reason;
    }
    l->not_run.count += n;
}

/* ---- slack ----------------------------------------------------------------------------------- */

struct candidates {
    uint64_t first, count; /* launches that may have done it; the first of them */
    const struct sentence *names;
};

static bool gets_block(const struct op *op, const struct block *b) {
    for (unsigned i = 0; i < op->count; i++)
        if (op->use[i].start - b->base < b->bytes)
            return true;
    return false;
}

/* The launches between the two looks that had the block among their arguments, or all of them if
 * the recording knows of none that had. */
static struct candidates find_candidates(struct replay *r, const struct block *b, uint64_t from,
                                         uint64_t to, bool all) {
    enum { LOOK = 100000, NAMED = 3 };
    struct candidates c = { .first = EVENT_NO_SEQ };
    struct reader_event *e = r->other;
    uint64_t looked = 0;
    for (uint64_t seq = from; seq <= to && looked < LOOK && effort_steps(64); seq++, looked++) {
        if (!reader_event(r->r, seq, e) || event_is_captured(&e->event) || e->event.status ||
            (e->event.kind != EVENT_LAUNCH && e->event.kind != EVENT_GRAPH_LAUNCH))
            continue;
        bool is_graph = e->event.kind == EVENT_GRAPH_LAUNCH;
        if (!is_graph && op_read(r, e, r->op) && !all && b && r->op->known && r->op->count &&
            !gets_block(r->op, b))
            continue;
        if (!c.count++)
            c.first = seq;
        if (c.count > NAMED)
            continue;
        const struct sentence *name = findings_event(r, seq);
        c.names = c.names ? SAY(&r->words, LISTED, A_SENTENCE(c.names), A_SENTENCE(name)) : name;
    }
    return c;
}

static const struct block *block_of(struct space *s, uint64_t address, uint64_t alloc) {
    uint64_t distance;
    const struct block *b = space_near(s, address, &distance);
    return b && b->alloc == alloc ? b : NULL;
}

static void on_slack(struct replay *r, const struct reader_event *e, struct thread *t) {
    const struct event_extra *x = reader_extra(e, EXTRA_LOOKS);
    bool before = event_detail(&e->event) == DETAIL_SIDE_BEFORE;
    const struct block *b = block_of(t->space, e->event.dst, e->event.src);
    uint64_t good = x ? x->word[0] : EVENT_NO_SEQ, bad = x ? x->word[1] : EVENT_NO_SEQ;
    uint64_t from = good != EVENT_NO_SEQ           ? good + 1
                    : e->event.src != EVENT_NO_SEQ ? e->event.src
                                                   : 0;
    uint64_t to = bad != EVENT_NO_SEQ ? bad : e->seq;
    struct candidates c = find_candidates(r, b, from, to, false);
    if (!c.count)
        c = find_candidates(r, b, from, to, true);
    struct found f = {
        .hypothesis = before ? HYPOTHESIS_BAD_OFFSET : HYPOTHESIS_SIZE_MISMATCH,
        .culprit = c.count == 1 ? c.first : EVENT_NO_SEQ,
        .other = EVENT_NO_SEQ,
        .messenger = EVENT_NO_SEQ,
        .order = to,
        .argument = -1,
        .fault = true, /* the device's own word */
        .culprit_writes = true,
        .address = e->event.dst,
        .len = e->event.len,
        .process = t->space->process,
    };
    findings_set_block(r, &f, t->space, b, b ? b->base : e->event.dst);
    findings_evidence(&f, e->seq);
    findings_evidence(&f, c.first);
    const struct sentence_value bytes = A_BYTES(e->event.len), side = A_NUMBER(before),
                                where = A_SENTENCE(findings_memory(
                                    r, f.name.bytes ? reader_string(r->r, f.name.text) : NULL,
                                    b ? b->bytes : 0));
    if (c.count == 1)
        f.said = SAY(&r->words, SLACK_WRITTEN, A_SENTENCE(c.names), bytes, side, where);
    else if (c.count)
        f.said = SAY(&r->words, SLACK_ONE_OF, bytes, side, where, A_NUMBER(c.count),
                     A_SENTENCE(c.names), A_NUMBER(c.count > 3));
    else
        f.said = SAY(&r->words, SLACK_UNKNOWN, bytes, side, where);
    findings_add(r, &f);
}

void launches_on_event(struct replay *r, const struct reader_event *e, struct thread *t) {
    switch (e->event.kind) {
    case EVENT_RAN:
        on_ran(r, e, t);
        break;
    case EVENT_NOT_RUN:
        on_not_run(r, e);
        break;
    default:
        on_slack(r, e, t);
    }
}

/* ---- after the last event -------------------------------------------------------------------- */

/* Has the host waited for the stream's last launch? */
static bool is_waited_for(const struct replay *r, const struct stream *s) {
    uint32_t last =
        r->lanes[s->lane].last; /* of a graph's branches other lanes may have the rest */
    last = s->last_launch < last ? s->last_launch : last;
    if (vclock_covers(&s->space->published, s->lane, last))
        return true;
    for (size_t i = 0; i < r->thread_count && effort_steps(1); i++)
        if (r->threads[i].space == s->space && vclock_covers(&r->threads[i].known, s->lane, last))
            return true;
    return false;
}

/* The name of the first launch of the stream that is not done, as far as it can be told. */
static uint32_t first_unfinished(struct replay *r, const struct stream *s) {
    const struct lane *l = &r->lanes[s->lane];
    for (uint32_t n = s->ran < l->last ? (uint32_t)s->ran : 0; n < l->last && effort_steps(16); n++)
        if (reader_event(r->r, l->seqs[n], r->other) && r->other->event.kind == EVENT_LAUNCH)
            return r->other->event.name;
    return 0;
}

void launches_finish(struct replay *r) {
    struct launch_facts *l = &r->launches;
    for (size_t i = 0; i < r->stream_count; i++) {
        const struct stream *s = r->streams[i];
        bool failed = s && (s->space->fault != EVENT_NO_SEQ || s->space->sticky != EVENT_NO_SEQ);
        if (!s || failed || s->ran >= s->launches || is_waited_for(r, s))
            continue;
        if (!l->unfinished.count)
            l->unfinished.kernel = first_unfinished(r, s);
        l->unfinished.count += s->launches - s->ran;
    }
    if (l->unfinished.count > l->not_run.count) /* those are not done either */
        l->unfinished.count -= l->not_run.count;
    else
        l->unfinished.count = 0;
}
