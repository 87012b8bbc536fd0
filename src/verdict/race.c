/* race.c - two accesses in no order, as a finding. */
#include "verdict/race.h"

/* ---- words ----------------------------------------------------------------------------------- */

static struct sentence_value verb(bool writes, bool reads) {
    return A_SENTENCE(sentence_plain(writes && reads ? SENTENCE_USES
                                     : writes        ? SENTENCE_WRITES
                                                     : SENTENCE_READS));
}

/* "4 KiB of tensor logits". */
static struct sentence_value amount_of(struct replay *r, const struct found *f) {
    const char *tensor = f->tensor ? reader_string(r->r, f->tensor) : NULL;
    if (!f->len && !tensor)
        return A_SENTENCE(sentence_plain(SENTENCE_MEMORY));
    return A_SENTENCE(!f->len  ? SAY(&r->words, MEMORY_OF_TENSOR, A_NAME(tensor))
                      : tensor ? SAY(&r->words, AMOUNT_OF_TENSOR, A_BYTES(f->len), A_NAME(tensor))
                               : SAY(&r->words, AMOUNT, A_BYTES(f->len)));
}

uint64_t race_host_len(uint64_t start, uint64_t end) {
    return end - start > 1 ? end - start : 0;
}

struct sentence_value race_host_amount(struct replay *r, const struct found *f) {
    if (f->len)
        return amount_of(r, f);
    if (!f->has_block)
        return A_SENTENCE(sentence_plain(SENTENCE_MEMORY_ADDRESS));
    bool named = f->address - f->name.at < f->name.bytes;
    const char *tensor = named ? reader_string(r->r, f->name.text) : NULL;
    uint64_t base = tensor ? f->name.at : f->block.base;
    return A_SENTENCE(
        SAY(&r->words, AMOUNT_AT, A_NUMBER(f->address - base),
            A_SENTENCE(findings_memory(r, tensor, tensor ? f->name.bytes : f->block.bytes))));
}

/* other: what the other one is, enum shadow_what. */
static void describe(const struct race *x, struct found *f, unsigned other) {
    struct replay *r = x->r;
    const struct sentence_value who = A_SENTENCE(findings_op(r, x->op)),
                                they = A_SENTENCE(findings_replayed(r, f->other, f->other_replay)),
                                what = amount_of(r, f),
                                does = verb(f->culprit_writes, x->use && x->use->access & USE_READ);
    if (x->me.what == SHADOW_FREE && other == SHADOW_ALLOC)
        f->said = SAY(&r->words, FREES_ALLOC, who, what, they);
    else if (x->me.what == SHADOW_FREE)
        f->said = SAY(&r->words, FREES_UNORDERED, who, what, they, A_NUMBER(f->other_writes));
    else if (other == SHADOW_FREE)
        f->said = SAY(&r->words, UNORDERED_FREE, who, does, what, they);
    else if (other == SHADOW_ALLOC)
        f->said = SAY(&r->words, UNORDERED_ALLOC, who, does, what, they);
    else
        f->said = SAY(&r->words, UNORDERED, who, does, what, they, A_NUMBER(f->other_writes));
}

/* ---- which hypothesis ------------------------------------------------------------------------ */

bool race_is_host_family(unsigned family) {
    return family == DETAIL_FAMILY_PINNED || family == DETAIL_FAMILY_REGISTERED;
}

static enum verdict_hypothesis_id hypothesis_of(unsigned what, unsigned other, unsigned family,
                                                uint32_t *also) {
    *also = 0;
    if (what == SHADOW_FREE || other == SHADOW_FREE)
        return HYPOTHESIS_USE_AFTER_FREE;
    if (what != SHADOW_COPY || other != SHADOW_COPY)
        return HYPOTHESIS_STREAM_UNSYNCED;
    *also = 1u << HYPOTHESIS_STREAM_UNSYNCED;
    if (race_is_host_family(family)) {
        *also |= 1u << HYPOTHESIS_OVERLAPPING_COPIES;
        return HYPOTHESIS_STAGING_REUSE;
    }
    return HYPOTHESIS_OVERLAPPING_COPIES;
}

/* A host function touched the bytes before: its access is what is wrong, whatever comes after it in
 * no order. */
static void blame_host_fn(struct race *x, struct found *f, uint64_t access) {
    f->other = f->culprit;
    f->culprit = access;
    f->other_replay = f->replay;
    f->replay = 0;
    f->argument = -1;
    bool writes = f->other_writes;
    f->other_writes = f->culprit_writes;
    f->culprit_writes = writes;
    f->len = race_host_len(f->address, f->address + f->len);
    f->hypothesis = HYPOTHESIS_STREAM_UNSYNCED;
    f->also = writes && x->me.what == SHADOW_COPY ? 1u << HYPOTHESIS_STAGING_REUSE : 0;
    f->said = SAY(&x->r->words, HOST_FN_UNORDERED, race_host_amount(x->r, f), A_NUMBER(writes),
                  A_SENTENCE(findings_op(x->r, x->op)), A_NUMBER(f->other_writes));
}

/* The graph launch that ran an operation; 0: no graph did. */
static uint64_t replay_of(struct replay *r, const struct shadow_mark *mark) {
    const struct lane *l = mark->lane < r->lane_count ? &r->lanes[mark->lane] : NULL;
    if (!l || !mark->number || mark->number > l->last || mark->what == SHADOW_HOST)
        return 0;
    uint64_t queued = l->seqs[mark->number - 1];
    bool by_graph = queued != mark->seq && reader_event(r->r, queued, r->other) &&
                    r->other->event.kind == EVENT_GRAPH_LAUNCH;
    return by_graph ? queued : 0;
}

struct found race_found(struct race *x, const struct shadow_mark *other, bool other_writes,
                        uint64_t start, uint64_t end) {
    struct found f = {
        .culprit = x->op->seq,
        .other = other->seq,
        .messenger = EVENT_NO_SEQ,
        .order = x->op->launch != EVENT_NO_SEQ ? x->op->launch : x->op->seq,
        .replay = x->op->launch != EVENT_NO_SEQ ? x->op->launch : 0,
        .other_replay = replay_of(x->r, other),
        .argument = x->use && x->use->argument != EVENT_NO_ARGUMENT ? x->use->argument : -1,
        .culprit_writes = x->use && x->use->access & USE_WRITE,
        .other_writes = other_writes,
        .address = start,
        .len = end > start ? end - start : 0,
    };
    f.hypothesis = hypothesis_of(x->me.what, other->what, x->block->family, &f.also);
    findings_set_block(x->r, &f, x->t->space, x->block, start);
    findings_evidence(&f, x->op->launch);
    if (f.other_replay)
        findings_evidence(&f, f.other_replay);
    if (other->what == SHADOW_HOST)
        blame_host_fn(x, &f, other->seq);
    else
        describe(x, &f, other->what);
    return f;
}

/* An order that greta does not understand may be what orders them. */
bool race_cannot_tell(struct replay *r, const struct space *s, const struct vclock *clock,
                      const struct found *f) {
    uint64_t first = f->culprit < f->other ? f->culprit : f->other;
    uint64_t last = f->culprit < f->other ? f->other : f->culprit;
    const struct sentence *why = r->order_doubt;
    if (!why && values_may_order(r, s, clock, first, last))
        why = sentence_plain(SENTENCE_DOUBT_VALUES);
    if (!why)
        return false;
    findings_undecided(r, f->hypothesis, why);
    if (!r->unclear)
        r->unclear =
            findings_keep(r, SAY(&r->words, UNCLEAR, A_SENTENCE(findings_event(r, f->other)),
                                 A_SENTENCE(findings_event(r, f->culprit)), A_SENTENCE(why)));
    return true;
}

void race_enter(struct replay *r, struct space *s, const struct vclock *clock, struct found *f) {
    if (!race_cannot_tell(r, s, clock, f))
        findings_add(r, f);
}

void race_add(struct race *x, const struct shadow_conflict *c) {
    struct found f = race_found(x, &c->other, c->other_writes, c->start, c->end);
    if (!values_late_keep(x->r, x->t->space, &f, &x->me, x->clock, &c->other))
        race_enter(x->r, x->t->space, x->clock, &f);
}

/* Is it unordered with an access that no clock covers? */
bool race_is_unordered(const struct shadow_mark *other, void *user) {
    struct race *x = user;
    if (other->seq < x->r->gap)
        return false;
    if (before_by_time(x->r, x->t, x->clock, other->lane, other->number)) {
        x->r->seen.pairs_by_time++;
        return false;
    }
    return true;
}
