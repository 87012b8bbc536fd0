/* race_host.c - accesses of the host, and host memory that is given back, against work that nobody
 * has waited for. */
#include "verdict/race.h"

/* The culprit of an early access is the access; if memory is given back, it is the copy that nobody
 * had waited for. */
static void host_finding(struct replay *r, const struct reader_event *e, struct thread *t,
                         const struct shadow_conflict *c, bool writes) {
    bool frees = e->event.kind != EVENT_EARLY_HOST_ACCESS;
    bool returns =
        e->event.kind == EVENT_HOST_FREE && event_detail(&e->event) == DETAIL_RELEASE_RETURN;
    struct found f = {
        .hypothesis = frees                                    ? HYPOTHESIS_HOST_BUFFER_LIFETIME
                      : writes && c->other.what == SHADOW_COPY ? HYPOTHESIS_STAGING_REUSE
                                                               : HYPOTHESIS_STREAM_UNSYNCED,
        .culprit = frees ? c->other.seq : e->seq,
        .other = frees ? e->seq : c->other.seq,
        .messenger = EVENT_NO_SEQ,
        .order = e->seq,
        .argument = -1,
        .culprit_writes = frees ? c->other_writes : writes,
        .other_writes = frees ? writes : c->other_writes,
        .address = c->start,
        .len = frees ? c->end - c->start : race_host_len(c->start, c->end),
    };
    /* A host that writes where a copy reads or writes is in no order with it, too. */
    f.also = f.hypothesis == HYPOTHESIS_STAGING_REUSE ? 1u << HYPOTHESIS_STREAM_UNSYNCED : 0;
    findings_set_block(r, &f, t->space, space_at(t->space, c->start), c->start);
    const struct sentence_value they = A_SENTENCE(findings_event(r, c->other.seq));
    if (t->host_fn_number && !frees) {
        f.also = f.hypothesis == HYPOTHESIS_STAGING_REUSE ? 1u << HYPOTHESIS_STAGING_REUSE : 0;
        f.hypothesis = HYPOTHESIS_STREAM_UNSYNCED;
        f.said = SAY(&r->words, HOST_FN_UNORDERED, race_host_amount(r, &f), A_NUMBER(writes), they,
                     A_NUMBER(c->other_writes));
    } else if (!frees && !f.len) {
        f.said = SAY(&r->words, HOST_TOUCHES_AT, A_NUMBER(writes), race_host_amount(r, &f), they,
                     A_NUMBER(c->other_writes));
    } else {
        f.said = sentence_make(&r->words,
                               returns  ? SENTENCE_HOST_RETURNS
                               : frees  ? SENTENCE_HOST_RELEASES
                               : writes ? SENTENCE_HOST_OVERWRITES
                                        : SENTENCE_HOST_READS,
                               (const struct sentence_value[]){ A_BYTES(f.len), they }, 2);
    }
    if (!race_cannot_tell(r, t->space, &t->known, &f))
        findings_add(r, &f);
}

static bool is_unordered_with_host(const struct shadow_mark *other, void *user) {
    const struct race *x = user;
    /* Host code with host code is not for us to judge. */
    return other->what != SHADOW_HOST && !host_fn_is_before(x->t, other) &&
           race_is_unordered(other, user);
}

/* Does the byte at address more likely belong to another kernel than v, because that kernel got a
 * pointer between v's and the byte, or because v's stream was only seen to use other bytes? */
static bool is_elsewhere(const struct block_use *u, const struct vague *v, uint64_t address) {
    uint64_t low, high;
    for (unsigned i = 0; i < u->vague_count; i++)
        if (u->vague[i].pointer > v->pointer && u->vague[i].pointer <= address)
            return true;
    return race_vague_hull(u, v->mark.lane, &low, &high) && (address < low || address >= high);
}

static bool is_never_unordered(const struct shadow_mark *other, void *user) {
    (void)other, (void)user;
    return false;
}

/* A host function is an operation of its stream: what it touches is compared with what comes later,
 * too. */
static void keep_access(struct replay *r, const struct thread *t, const struct shadow_access *as) {
    struct shadow_answer answer = { 0 };
    struct shadow_access a = *as;
    a.me.lane = t->host_fn_lane;
    a.me.number = t->host_fn_number;
    a.unordered = is_never_unordered;
    if (!shadow_touch(t->space->shadow, &a, &answer))
        r->no_memory = true;
}

void race_host_on_access(struct replay *r, const struct reader_event *e, struct thread *t) {
    bool frees = e->event.kind == EVENT_HOST_FREE || e->event.kind == EVENT_FREE;
    bool writes = frees || event_detail(&e->event) & DETAIL_ACCESS_WRITE;
    struct shadow_answer answer = { 0 };
    struct op op = { .seq = e->seq, .launch = EVENT_NO_SEQ };
    struct race x = { .r = r, .op = &op, .t = t, .clock = &t->known };
    struct shadow_access a = {
        .start = e->event.dst,
        .end = e->event.dst + e->event.len,
        .me = { .seq = e->seq, .lane = SHADOW_LANES_MAX - 1, .number = 1, .what = SHADOW_HOST },
        .writes = writes,
        .known = &t->known,
        .unordered = is_unordered_with_host,
        .user = &x,
    };
    if (!e->event.len || a.end < a.start)
        return;
    values_on_access(r, t, e->seq);
    shadow_compare(t->space->shadow, &a, &answer);
    r->seen.pairs += answer.pairs;
    for (unsigned i = 0; i < answer.conflicts; i++)
        host_finding(r, e, t, &answer.conflict[i], writes);
    struct block *b = space_at(t->space, e->event.dst);
    if (b && t->host_fn_number && !frees)
        keep_access(r, t, &a);
    for (unsigned i = 0; b && b->use && i < b->use->vague_count; i++) {
        struct vague *v = &b->use->vague[i];
        if (!(writes || v->writes) || a.end <= v->pointer || v->limit <= a.start ||
            vclock_covers(&t->known, v->mark.lane, v->mark.number) ||
            !is_unordered_with_host(&v->mark, &x))
            continue;
        struct shadow_conflict c = { v->mark, v->writes, a.start, a.end };
        if (v->guessed || is_elsewhere(b->use, v, a.start))
            findings_undecided(r, HYPOTHESIS_STREAM_UNSYNCED, sentence_plain(SENTENCE_DOUBT_HOST));
        else
            host_finding(r, e, t, &c, writes);
    }
}
