/* leaks.c - memory that was alive when the program had come to its end. */
#include "verdict/judge.h"

#include <inttypes.h>
#include <stdio.h>

static bool can_leak(const struct block *b) {
    switch (b->family) {
    case DETAIL_FAMILY_REGISTERED:
    case DETAIL_FAMILY_IMPORTED:
    case DETAIL_FAMILY_GRAPH:
    case DETAIL_FAMILY_SYMBOL:
    case DETAIL_FAMILY_UNKNOWN:
        return false;
    default:
        return !b->found;
    }
}

/* Only the runtime knows how many bytes an array has. */
static const struct sentence *say(struct replay *r, bool array, uint64_t count, uint64_t first,
                                  uint64_t bytes) {
    const struct sentence_value call = A_SENTENCE(findings_event(r, first));
    if (array)
        return SAY(&r->words, LEAK_ARRAY, A_NUMBER(count), call);
    return count > 1 ? SAY(&r->words, LEAK_MANY, A_NUMBER(count), call, A_BYTES(bytes))
                     : SAY(&r->words, LEAK_ONE, call, A_BYTES(bytes));
}

static void add_leak(struct judge *j, const struct space *s, const struct block *b) {
    struct replay *r = j->r;
    struct found f = {
        .hypothesis = HYPOTHESIS_LEAK,
        .culprit = b->alloc,
        .other = EVENT_NO_SEQ,
        .messenger = EVENT_NO_SEQ,
        .order = UINT64_MAX - 1, /* a leak is known at the end only */
        .argument = -1,
        .address = b->base,
        .len = b->bytes,
    };
    findings_set_block(r, &f, s, b, b->base);
    f.said = say(r, b->family == DETAIL_FAMILY_ARRAY, 1, b->alloc, b->bytes);
    struct found *known = findings_add(r, &f);
    if (known && known->count > 1)
        known->len += b->bytes;
    arena_clear(&r->words);
}

/* What is said of several from one place, when all are counted. */
static void describe_many(struct replay *r) {
    for (size_t i = 0; i < r->found.count; i++) {
        struct found *f = &r->found.at[i];
        if (f->hypothesis == HYPOTHESIS_LEAK && f->count > 1 &&
            !f->kernel) /* not the kernel's own */
            f->said = findings_keep(
                r, say(r, f->block.family == DETAIL_FAMILY_ARRAY, f->count, f->culprit, f->len));
    }
}

void leaks_check(struct judge *j) {
    struct replay *r = j->r;
    uint64_t alive = 0;
    bool stopped = false;
    r->checked[HYPOTHESIS_LEAK] = r->seen.allocations;
    for (size_t i = 0; i < r->space_count; i++) {
        struct space *s = r->spaces[i];
        for (struct range *at = rangemap_first(&s->live); at; at = rangemap_next(&s->live, at)) {
            const struct block *b = at->value;
            r->seen.alive += can_leak(b);
            r->seen.bytes_alive += can_leak(b) ? b->bytes : 0;
            if (!can_leak(b))
                continue;
            alive++;
            stopped |= s->stopped;
            if (s->ended && !s->stopped && !j->failed)
                add_leak(j, s, b);
        }
    }
    if (alive && (stopped || j->failed))
        findings_undecided(r, HYPOTHESIS_LEAK, sentence_plain(SENTENCE_DOUBT_STOPPED));
    describe_many(r);
}
