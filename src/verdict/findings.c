/* findings.c - collects what was found, once for every place in the program. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "verdict/replay.h"

enum { REMARKS_MAX = 40 };

void findings_evidence(struct found *f, uint64_t seq) {
    if (seq == EVENT_NO_SEQ || f->evidence_count == EVIDENCE_MAX)
        return;
    unsigned at = 0;
    while (at < f->evidence_count && f->evidence[at] < seq)
        at++;
    if (at < f->evidence_count && f->evidence[at] == seq)
        return;
    memmove(&f->evidence[at + 1], &f->evidence[at], (f->evidence_count - at) * sizeof(uint64_t));
    f->evidence[at] = seq;
    f->evidence_count++;
}

struct found findings_of_call(const struct reader_event *e, enum verdict_hypothesis_id hypothesis,
                              uint64_t address) {
    return (struct found){
        .hypothesis = hypothesis,
        .culprit = e->seq,
        .other = EVENT_NO_SEQ,
        .messenger = e->seq,
        .order = e->seq,
        .argument = -1,
        .failed = true,
        .address = address,
    };
}

void findings_set_block(struct replay *r, struct found *f, const struct space *s,
                        const struct block *b, uint64_t address) {
    (void)r;
    f->process = s->process;
    if (!b)
        return;
    f->has_block = true;
    f->block = *b;
    f->block.use = NULL;
    f->block.handed = NULL;
    f->block.older = f->block.newer = NULL;
    const struct space_name *n = space_name_at(s, address);
    if (!n && b->bytes)
        n = space_name_at(s, b->base);
    struct space_name last = { b->base, b->bytes, b->name };
    if (!n && b->name)
        n = &last;
    if (n) {
        f->name = *n;
        if (!f->tensor)
            f->tensor = n->text;
    }
    findings_evidence(f, b->alloc);
}

/* Where in the program an event comes from, for telling findings apart. */
static void place(const struct replay *r, uint64_t seq, uint64_t out[2]) {
    struct reader_event *e = r->other;
    out[0] = out[1] = 0;
    if (seq == EVENT_NO_SEQ || !reader_event(r->r, seq, e))
        return;
    unsigned frames;
    const struct site_frame *f = reader_site(r->r, e->event.site, &frames, NULL);
    if (frames) { /* the call, from wherever the function that makes it was called */
        const uint64_t words[2] = { f->module, f->module ? f->offset : f->address };
        out[0] = hash_bytes(words, sizeof words, 0);
    }
    out[1] = e->event.kind == EVENT_LAUNCH ? e->event.name : 0;
}

static uint64_t key_of(const struct replay *r, const struct found *f) {
    uint64_t words[8] = { (uint64_t)f->hypothesis, f->process, (uint64_t)f->argument };
    place(r, f->culprit, &words[3]);
    place(r, f->other, &words[5]);
    if (!words[3]) /* the place is unknown: then memory tells findings apart */
        words[7] = f->has_block ? f->block.alloc : f->address;
    uint64_t key = hash_bytes(words, sizeof words, 0);
    return key ? key : 1;
}

/* Are events missing between the first event that the finding rests on and the last? They may show
 * that nothing was wrong: memory that was freed and allocated again, a wait, a look at an error.
 * What the device itself said is true in any case. */
static bool rests_on_a_gap(const struct replay *r, const struct found *f) {
    uint64_t last = f->evidence_count ? f->evidence[f->evidence_count - 1] : f->order;
    return !f->fault && f->evidence_count &&
           replay_is_torn(r, f->evidence[0], f->order > last ? f->order : last);
}

/* Found by its ranges before, and now reported by the device too: one case, not two. */
static bool is_counted(const struct found *old, const struct found *f) {
    return old->last[0] == f->culprit && old->last[1] == f->other && old->last_order == f->order &&
           f->culprit != EVENT_NO_SEQ && f->fault;
}

static void count_case(struct found *old, const struct found *f) {
    old->count += !is_counted(old, f);
    old->last[0] = f->culprit;
    old->last[1] = f->other;
    old->last_order = f->order;
}

struct found *findings_add(struct replay *r, struct found *f) {
    struct findings *all = &r->found;
    f->key = key_of(r, f);
    f->count = 0;
    count_case(f, f);
    findings_evidence(f, f->culprit);
    findings_evidence(f, f->other);
    findings_evidence(f, f->messenger);
    if (rests_on_a_gap(r, f)) {
        findings_undecided(r, f->hypothesis, sentence_plain(SENTENCE_DOUBT_EVENTS_MISSING));
        return NULL;
    }
    size_t known = (size_t)(uintptr_t)table_find(&all->by_key, f->key);
    if (known) {
        struct found *old = &all->at[known - 1];
        count_case(old, f);
        old->failed |= f->failed;
        old->also |= f->also;
        return old;
    }
    if (all->count == all->max) {
        all->left_out++;
        return NULL;
    }
    struct found *at = grow_array(all->at, &all->room, all->count, sizeof *at);
    if (!at) {
        r->no_memory = true;
        return NULL;
    }
    all->at = at;
    if (!table_set(&all->by_key, f->key, (void *)(uintptr_t)(all->count + 1))) {
        r->no_memory = true;
        return NULL;
    }
    all->at[all->count] = *f;
    all->at[all->count].said = findings_keep(r, f->said);
    return &all->at[all->count++];
}

const struct sentence *findings_keep(struct replay *r, const struct sentence *said) {
    const struct sentence *kept = sentence_keep(&r->arena, said);
    r->no_memory |= !kept; /* also where memory ran out when it was said */
    return kept;
}

void findings_note(struct replay *r, const struct sentence *said) {
    struct findings *all = &r->found;
    for (size_t i = 0; i < all->remark_count; i++)
        if (sentence_same(all->remarks[i], said))
            return;
    if (all->remark_count == REMARKS_MAX)
        return;
    if (!all->remarks && !(all->remarks = calloc(REMARKS_MAX, sizeof *all->remarks))) {
        r->no_memory = true;
        return;
    }
    if ((all->remarks[all->remark_count] = findings_keep(r, said)))
        all->remark_count++;
}

void findings_undecided(struct replay *r, enum verdict_hypothesis_id id,
                        const struct sentence *why) {
    if (r->doubts[id]++)
        return;
    r->undecided[id] = findings_keep(r, why);
}

void findings_unclear(struct replay *r, enum verdict_hypothesis_id id, const struct sentence *why) {
    findings_undecided(r, id, why);
    if (!r->unclear)
        r->unclear = findings_keep(r, why);
}

void findings_free(struct findings *f) {
    free(f->remarks);
    free(f->at);
    table_clear(&f->by_key);
}

/* ---- words ----------------------------------------------------------------------------------- */

/* A launch whose kernel has no name is named by its function. */
static bool is_kernel(const struct replay *r, const struct reader_event *e) {
    return e->event.kind == EVENT_LAUNCH && e->event.name && *reader_kernel(r->r, e->event.name);
}

static const char *name_of(const struct replay *r, const struct reader_event *e) {
    if (is_kernel(r, e))
        return reader_kernel(r->r, e->event.name);
    return event_fn(&e->event) == EVENT_NO_FN ? event_kind_text(e->event.kind)
                                              : reader_function(r->r, event_fn(&e->event));
}

const struct sentence *findings_replayed(struct replay *r, uint64_t seq, uint64_t replay) {
    struct reader_event *e = r->other;
    const struct sentence *said;
    if (seq == EVENT_NO_SEQ)
        return sentence_plain(SENTENCE_CALL_UNKNOWN);
    if (!reader_event(r->r, seq, e))
        said = SAY(&r->words, CALL_LOST, A_NUMBER(seq));
    else if (replay)
        said = is_kernel(r, e) ? SAY(&r->words, CALL_KERNEL_REPLAYED, A_NAME(name_of(r, e)),
                                     A_NUMBER(seq), A_NUMBER(replay))
                               : SAY(&r->words, CALL_REPLAYED, A_NAME(name_of(r, e)), A_NUMBER(seq),
                                     A_NUMBER(replay));
    else
        said = is_kernel(r, e) ? SAY(&r->words, CALL_KERNEL, A_NAME(name_of(r, e)), A_NUMBER(seq))
                               : SAY(&r->words, CALL, A_NAME(name_of(r, e)), A_NUMBER(seq));
    r->no_memory |= !said;
    return said;
}

const struct sentence *findings_event(struct replay *r, uint64_t seq) {
    return findings_replayed(r, seq, 0);
}

const struct sentence *findings_op(struct replay *r, const struct op *op) {
    return findings_replayed(r, op->seq, op->launch == EVENT_NO_SEQ ? 0 : op->launch);
}

const struct sentence *findings_memory(struct replay *r, const char *name, uint64_t bytes) {
    const struct sentence *said = name ? SAY(&r->words, MEMORY_TENSOR, A_NAME(name), A_BYTES(bytes))
                                       : SAY(&r->words, MEMORY_BLOCK, A_BYTES(bytes));
    r->no_memory |= !said;
    return said;
}

const struct sentence *findings_block(struct replay *r, const struct block *b) {
    if (b->family == DETAIL_FAMILY_SYMBOL)
        return SAY(&r->words, MEMORY_VARIABLE, A_BYTES(b->bytes));
    return findings_memory(r, b->name ? reader_string(r->r, b->name) : NULL, b->bytes);
}
