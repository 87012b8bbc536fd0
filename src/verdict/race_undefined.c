/* race_undefined.c - reads of bytes that nobody wrote. */
#include "verdict/race.h"

/* A kernel may load the padding of a struct along with the rest of it, and never use it. */
enum { PADDING_MAX = 16 };

static bool can_be_undefined(const struct block *b) {
    return !b->found && (b->family == DETAIL_FAMILY_DEVICE || b->family == DETAIL_FAMILY_PITCHED ||
                         b->family == DETAIL_FAMILY_ASYNC);
}

/* May kernels of which too little is known have written the block? */
static bool may_be_written(const struct race *x) {
    const struct space *s = x->t->space;
    return x->block->leaves_mark || s->table_upload > x->block->alloc ||
           (s->unknown_launch != EVENT_NO_SEQ && s->unknown_launch > x->block->alloc);
}

/* The kernel got a second pointer into the block, through which it may write. */
static bool gets_it_twice(const struct race *x) {
    for (unsigned i = 0; i < x->op->count; i++)
        if (x->op->use[i].access != USE_READ &&
            space_at(x->t->space, x->op->use[i].start) == x->block)
            return true;
    return false;
}

/* The finding, without its sentence, that the operation reads bytes that nothing has written. */
static struct found undefined_read(struct race *x, uint64_t address, uint64_t bytes) {
    struct found f = {
        .hypothesis = HYPOTHESIS_UNINITIALISED_READ,
        .culprit = x->op->seq,
        .other = EVENT_NO_SEQ,
        .messenger = EVENT_NO_SEQ,
        .order = x->op->launch != EVENT_NO_SEQ ? x->op->launch : x->op->seq,
        .argument = x->use->argument == EVENT_NO_ARGUMENT ? -1 : x->use->argument,
        .address = address,
        .len = bytes,
    };
    findings_set_block(x->r, &f, x->t->space, x->block, address);
    return f;
}

void race_undefined_vague(struct race *x, const struct vague *mine, uint64_t undefined) {
    struct replay *r = x->r;
    if (!mine->reads || mine->writes || mine->guessed || !can_be_undefined(x->block))
        return;
    if (mine->at_most && undefined)
        findings_undecided(x->r, HYPOTHESIS_UNINITIALISED_READ,
                           sentence_plain(SENTENCE_DOUBT_MATTERS));
    if (mine->at_most)
        return;
    r->checked[HYPOTHESIS_UNINITIALISED_READ]++;
    if (undefined < mine->limit - mine->pointer || may_be_written(x) || gets_it_twice(x) ||
        r->gap > x->block->alloc)
        return;
    struct found f = undefined_read(x, mine->pointer, undefined);
    f.said = SAY(&r->words, UNDEFINED_ARGUMENT, A_SENTENCE(findings_op(r, x->op)), A_BYTES(f.len),
                 A_NUMBER(f.argument < 0 ? 0 : f.argument),
                 A_SENTENCE(findings_event(r, x->block->alloc)));
    findings_add(r, &f);
}

/* Does the operation also write bytes of that range? Then it may have written before it read. */
static bool also_writes(const struct op *op, uint64_t start, uint64_t end) {
    for (unsigned i = 0; i < op->count; i++) {
        const struct use *u = &op->use[i];
        if (u->access & USE_WRITE && u->start < end && start < use_end(u))
            return true;
    }
    return false;
}

/* Is the destination of this copy the host? */
static bool goes_to_host(struct race *x) {
    const struct op *op = x->op;
    return op->what == SHADOW_COPY && op->count == 2 &&
           space_side(space_at(x->t->space, op->use[0].start)) != SPACE_DEVICE;
}

void race_undefined_exact(struct race *x, const struct shadow_answer *a, uint64_t total,
                          bool is_row) {
    struct replay *r = x->r;
    const struct use *u = x->use;
    if (u->access != USE_READ || !can_be_undefined(x->block))
        return;
    r->checked[HYPOTHESIS_UNINITIALISED_READ]++;
    bool seen = u->flags & USE_SEEN;
    if (!a->undefined || (!seen && also_writes(x->op, u->start, use_end(u))))
        return;
    bool whole = a->undefined == total;
    if (may_be_written(x)) {
        findings_undecided(r, HYPOTHESIS_UNINITIALISED_READ,
                           sentence_plain(SENTENCE_DOUBT_WRITTEN));
        return;
    }
    if (r->gap > x->block->alloc || u->flags & USE_BOUND ||
        (!whole && !goes_to_host(x) && !(seen && (is_row || a->longest >= PADDING_MAX)))) {
        findings_undecided(r, HYPOTHESIS_UNINITIALISED_READ,
                           sentence_plain(SENTENCE_DOUBT_MATTERS));
        if (seen)
            launches_on_undefined(r, x->op);
        return;
    }
    struct found f = undefined_read(x, a->undefined_at, a->undefined);
    const struct sentence_value who = A_SENTENCE(findings_op(r, x->op)),
                                made = A_SENTENCE(findings_event(r, x->block->alloc));
    f.said = whole ? SAY(&r->words, UNDEFINED_ALL, who, A_BYTES(total), made)
                   : SAY(&r->words, UNDEFINED_PART, who, A_BYTES(total), A_BYTES(a->undefined),
                         A_NUMBER(a->undefined_at - x->block->base), made);
    if (values_late_keep(r, x->t->space, &f, &x->me, x->clock, NULL))
        return;
    if (values_may_order(r, x->t->space, x->clock, x->op->seq, x->op->seq))
        findings_unclear(r, HYPOTHESIS_UNINITIALISED_READ, sentence_plain(SENTENCE_DOUBT_VALUES));
    else
        findings_add(r, &f);
}
