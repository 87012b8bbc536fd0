/* races.c - accesses to the same bytes in no order, and reads of bytes that nobody wrote.
 *
 * Copies, sets and launches with known footprints go into the shadow (shadow.h) and are compared
 * there, byte for byte. What is found is found: both sides are known to touch those bytes.
 *
 * Kernels of which only the pointers are known are compared with everything in the block (or
 * tensor) from the pointer on, and then it depends:
 *
 *   - Both got the same pointer, or the other side's range is exact; one of the two is known to
 * write through it: a race, unless there is a sign that the streams share the block in parts.
 *   - Signs of that: the streams' own copies and sets keep to disjoint parts of the block, or the
 * same kernel runs in both streams with the same pointer and other arguments (an offset, likely).
 *     Streams that divide a buffer among themselves are common and right, so these are doubts.
 *   - Different pointers into one block, or an access that is not known to write: a doubt.
 *
 * Signs can come later than the race, so suspects wait with their block until it goes.
 *
 * Launches of which nothing is known cannot be compared with anything; that there was something
 * beside them is remembered, because then no proof is possible. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verdict/effort.h"
#include "verdict/replay.h"

enum { ROWS_MAX = 4096, SUSPECTS_MAX = 32 };

/* A kernel may load the padding of a struct along with the rest of it, and never use it. */
enum { PADDING_MAX = 16 };

/* A kernel that got a pointer into a block. */
struct vague {
    struct shadow_mark mark;
    uint64_t pointer, limit; /* it may touch [pointer, limit) */
    uint64_t hash;
    uint32_t kernel;
    bool reads, writes; /* known; neither: unknown */
    bool guessed;
    bool at_most; /* which of the bytes it touched is not known */
};

struct suspect {
    struct suspect *next;
    uint32_t lane, other_lane;
    uint64_t start, end, other_start, other_end; /* what each may have touched */
    bool differs; /* the same kernel with the same pointer and other arguments */
    struct found found;
};

struct race {
    struct replay *r;
    const struct op *op;
    struct thread *t;
    struct vclock *clock;
    struct shadow_mark me;
    const struct use *use;
    struct block *block;
};

/* ---- words ----------------------------------------------------------------------------------- */

static struct sentence_value verb(bool writes, bool reads) {
    return A_SENTENCE(sentence_plain(writes && reads ? SENTENCE_USES
                                     : writes        ? SENTENCE_WRITES
                                                     : SENTENCE_READS));
}

/* "4 KiB of tensor logits". */
static struct sentence_value amount(struct replay *r, const struct found *f) {
    const char *tensor = f->tensor ? reader_string(r->r, f->tensor) : NULL;
    if (!f->len && !tensor)
        return A_SENTENCE(sentence_plain(SENTENCE_MEMORY));
    return A_SENTENCE(!f->len  ? SAY(&r->words, MEMORY_OF_TENSOR, A_NAME(tensor))
                      : tensor ? SAY(&r->words, AMOUNT_OF_TENSOR, A_BYTES(f->len), A_NAME(tensor))
                               : SAY(&r->words, AMOUNT, A_BYTES(f->len)));
}

/* other: what the other one is, enum shadow_what. */
static void describe(const struct race *x, struct found *f, unsigned other) {
    struct replay *r = x->r;
    const struct sentence_value who = A_SENTENCE(findings_op(r, x->op)),
                                they = A_SENTENCE(findings_event(r, f->other)), what = amount(r, f),
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

static bool is_host_family(unsigned family) {
    return family == DETAIL_FAMILY_PINNED || family == DETAIL_FAMILY_REGISTERED;
}

static enum verdict_hypothesis_id hypothesis_of(unsigned what, unsigned other, unsigned family,
                                                uint32_t *also) {
    *also = 0;
    if (what == SHADOW_FREE || other == SHADOW_FREE)
        return HYPOTHESIS_USE_AFTER_FREE;
    if (what != SHADOW_COPY || other != SHADOW_COPY)
        return HYPOTHESIS_STREAM_UNSYNCED;
    if (is_host_family(family)) {
        *also = 1u << HYPOTHESIS_OVERLAPPING_COPIES;
        return HYPOTHESIS_STAGING_REUSE;
    }
    *also = 1u << HYPOTHESIS_STREAM_UNSYNCED;
    return HYPOTHESIS_OVERLAPPING_COPIES;
}

/* A host function touched the bytes before: its access is what is wrong, whatever comes after it in
 * no order. */
static void blame_host_fn(struct race *x, struct found *f, uint64_t access) {
    f->other = f->culprit;
    f->culprit = access;
    f->argument = -1;
    bool writes = f->other_writes;
    f->other_writes = f->culprit_writes;
    f->culprit_writes = writes;
    f->hypothesis = HYPOTHESIS_STREAM_UNSYNCED;
    f->also = writes && x->me.what == SHADOW_COPY ? 1u << HYPOTHESIS_STAGING_REUSE : 0;
    f->said = SAY(&x->r->words, HOST_FN_UNORDERED, amount(x->r, f), A_NUMBER(writes),
                  A_SENTENCE(findings_op(x->r, x->op)), A_NUMBER(f->other_writes));
}

static struct found make_found(struct race *x, const struct shadow_mark *other, bool other_writes,
                               uint64_t start, uint64_t end) {
    struct found f = {
        .culprit = x->op->seq,
        .other = other->seq,
        .messenger = EVENT_NO_SEQ,
        .order = x->op->launch != EVENT_NO_SEQ ? x->op->launch : x->op->seq,
        .replay = x->op->launch != EVENT_NO_SEQ ? x->op->launch : 0,
        .argument = x->use && x->use->argument != EVENT_NO_ARGUMENT ? x->use->argument : -1,
        .culprit_writes = x->use && x->use->access & USE_WRITE,
        .other_writes = other_writes,
        .address = start,
        .len = end > start ? end - start : 0,
    };
    f.hypothesis = hypothesis_of(x->me.what, other->what, x->block->family, &f.also);
    findings_set_block(x->r, &f, x->t->space, x->block, start);
    findings_evidence(&f, x->op->launch);
    if (other->what == SHADOW_HOST)
        blame_host_fn(x, &f, other->seq);
    else
        describe(x, &f, other->what);
    return f;
}

/* An order that greta does not understand may be what orders them. */
static bool cannot_tell(struct replay *r, enum verdict_hypothesis_id id) {
    if (r->order_doubt)
        findings_undecided(r, id, r->order_doubt);
    return r->order_doubt != NULL;
}

static void add_race(struct race *x, const struct shadow_conflict *c) {
    struct found f = make_found(x, &c->other, c->other_writes, c->start, c->end);
    if (!cannot_tell(x->r, f.hypothesis))
        findings_add(x->r, &f);
}

/* Is it unordered with an access that no clock covers? */
static bool is_unordered(const struct shadow_mark *other, void *user) {
    struct race *x = user;
    if (other->seq < x->r->gap)
        return false;
    if (before_by_time(x->r, x->t, x->clock, other->lane, other->number)) {
        x->r->seen.pairs_by_time++;
        return false;
    }
    return true;
}

/* ---- how lanes share a block ----------------------------------------------------------------- */

static struct block_use *use_of(struct race *x) {
    if (!x->block->use && !(x->block->use = calloc(1, sizeof *x->block->use)))
        x->r->no_memory = true;
    return x->block->use;
}

static void widen_hull(struct race *x, uint64_t low, uint64_t high) {
    struct block_use *u = use_of(x);
    for (unsigned i = 0; u && i < SPACE_HULLS; i++) {
        if (u->hull[i].high && u->hull[i].lane != x->me.lane)
            continue;
        if (!u->hull[i].high) {
            u->hull[i].lane = x->me.lane;
            u->hull[i].low = low;
            u->hull[i].high = high;
        }
        if (low < u->hull[i].low)
            u->hull[i].low = low;
        if (high > u->hull[i].high)
            u->hull[i].high = high;
        return;
    }
}

static bool find_hull(const struct block_use *u, uint32_t lane, uint64_t *low, uint64_t *high) {
    for (unsigned i = 0; i < SPACE_HULLS; i++)
        if (u->hull[i].high && u->hull[i].lane == lane) {
            *low = u->hull[i].low;
            *high = u->hull[i].high;
            return true;
        }
    return false;
}

/* Do the streams keep to parts of the block that do not meet? A lane's part is what its copies and
 * sets took up, if it had any, else what it may have touched. */
static bool is_divided(const struct block_use *u, const struct suspect *s) {
    uint64_t low = s->start, high = s->end, other_low = s->other_start, other_high = s->other_end;
    bool mine = find_hull(u, s->lane, &low, &high);
    bool theirs = find_hull(u, s->other_lane, &other_low, &other_high);
    return (mine || theirs) && (high <= other_low || other_high <= low);
}

/* Did the operation fault in the same block, for the same reason? */
static bool has_faulted(const struct replay *r, const struct found *f) {
    for (size_t i = 0; i < r->found.count; i++) {
        const struct found *g = &r->found.at[i];
        if (g->fault && g->hypothesis == f->hypothesis && g->culprit == f->culprit &&
            g->has_block && f->has_block && g->block.base == f->block.base)
            return true;
    }
    return false;
}

void races_settle(struct space *space, struct block *b, void *replay) {
    struct replay *r = replay;
    (void)space;
    for (struct suspect *s = b->use->suspects; s; s = s->next) {
        if (has_faulted(r, &s->found))
            continue; /* the device has said it */
        uint64_t first = s->found.other < s->found.culprit ? s->found.other : s->found.culprit;
        if (replay_is_torn(r, first, UINT64_MAX)) {
            /* What the device saw of the two may be what is missing. */
            findings_undecided(r, s->found.hypothesis, sentence_plain(SENTENCE_DOUBT_PARTS));
            continue;
        }
        if (is_divided(b->use, s) || s->differs)
            findings_undecided(r, s->found.hypothesis, sentence_plain(SENTENCE_DOUBT_PARTS));
        else if (!cannot_tell(r, s->found.hypothesis))
            findings_add(r, &s->found);
    }
    b->use->suspects = NULL;
}

static void add_suspect(struct race *x, const struct suspect *what) {
    struct block_use *u = use_of(x);
    if (!u)
        return;
    unsigned count = 0;
    for (const struct suspect *s = u->suspects; s; s = s->next, count++)
        if (s->found.other == what->found.other && s->found.culprit == what->found.culprit)
            return;
    if (count >= SUSPECTS_MAX)
        return;
    struct suspect *s = arena_alloc(&x->r->arena, sizeof *s);
    if (!s) {
        x->r->no_memory = true;
        return;
    }
    *s = *what;
    s->found.said = findings_keep(x->r, what->found.said);
    s->next = u->suspects;
    u->suspects = s;
}

/* ---- kernels with pointers only -------------------------------------------------------------- */

static bool may_conflict(bool writes, const struct vague *v) {
    return writes || v->writes || !(v->reads || v->writes);
}

static bool surely_conflicts(bool writes, const struct vague *v) {
    return !v->at_most && (writes || (v->writes && !v->guessed));
}

/* Compares an exact range with the kernels that got pointers into its block. */
static void compare_with_vague(struct race *x, uint64_t start, uint64_t end, bool writes) {
    struct block_use *u = x->block->use;
    for (unsigned i = 0; i < u->vague_count; i++) {
        struct vague *v = &u->vague[i];
        if (v->mark.lane == x->me.lane || end <= v->pointer || v->limit <= start ||
            !may_conflict(writes, v))
            continue;
        x->r->seen.pairs++;
        x->r->checked[HYPOTHESIS_STREAM_UNSYNCED]++;
        if (vclock_covers(x->clock, v->mark.lane, v->mark.number) || !is_unordered(&v->mark, x))
            continue;
        struct suspect s = {
            .lane = x->me.lane,
            .other_lane = v->mark.lane,
            .start = start,
            .end = end,
            .other_start = v->pointer,
            .other_end = v->limit,
        };
        uint64_t from = start > v->pointer ? start : v->pointer;
        s.found = make_found(x, &v->mark, v->writes, from, end < v->limit ? end : v->limit);
        if (surely_conflicts(writes, v) && !(v->guessed && v->pointer != x->block->base))
            add_suspect(x, &s);
        else
            findings_undecided(x->r, s.found.hypothesis, sentence_plain(SENTENCE_DOUBT_WRITES));
    }
}

static void compare_two_vague(struct race *x, const struct vague *mine) {
    struct block_use *u = x->block->use;
    for (unsigned i = 0; u && i < u->vague_count; i++) {
        struct vague *v = &u->vague[i];
        if (v->mark.lane == mine->mark.lane || mine->limit <= v->pointer ||
            v->limit <= mine->pointer || !may_conflict(mine->writes, v))
            continue;
        if (!mine->writes && mine->reads && !v->writes && v->reads)
            continue;
        x->r->seen.pairs++;
        x->r->checked[HYPOTHESIS_STREAM_UNSYNCED]++;
        if (vclock_covers(x->clock, v->mark.lane, v->mark.number) || !is_unordered(&v->mark, x))
            continue;
        bool sure = (mine->writes && !mine->guessed) || (v->writes && !v->guessed);
        if (!sure || mine->pointer != v->pointer || mine->at_most || v->at_most) {
            findings_undecided(x->r, HYPOTHESIS_STREAM_UNSYNCED,
                               sentence_plain(SENTENCE_DOUBT_EXTENT));
            continue;
        }
        struct suspect s = {
            .lane = mine->mark.lane,
            .other_lane = v->mark.lane,
            .start = mine->pointer,
            .end = mine->limit,
            .other_start = v->pointer,
            .other_end = v->limit,
            .differs = mine->kernel == v->kernel && (mine->hash != v->hash || !mine->hash),
        };
        s.found = make_found(x, &v->mark, v->writes, mine->pointer, mine->pointer);
        add_suspect(x, &s);
    }
}

static void remember_vague(struct race *x, const struct vague *mine) {
    struct block_use *u = use_of(x);
    if (!u)
        return;
    for (unsigned i = 0; i < u->vague_count; i++) {
        struct vague *v = &u->vague[i];
        if (v->mark.lane == mine->mark.lane && v->pointer == mine->pointer &&
            v->writes == mine->writes && v->reads == mine->reads && v->kernel == mine->kernel) {
            *v = *mine; /* what comes after this one comes after that one */
            return;
        }
    }
    enum { VAGUE_MAX = 256 };
    if (u->vague_count == VAGUE_MAX) {
        findings_undecided(x->r, HYPOTHESIS_STREAM_UNSYNCED, sentence_plain(SENTENCE_DOUBT_MANY));
        return;
    }
    if (u->vague_count == u->vague_room) {
        unsigned room = u->vague_room ? 2 * u->vague_room : 4;
        struct vague *v = realloc(u->vague, room * sizeof *v);
        if (!v) {
            x->r->no_memory = true;
            return;
        }
        u->vague = v;
        u->vague_room = room;
    }
    u->vague[u->vague_count++] = *mine;
}

/* Against what exact accesses left in the shadow. Returns how many of the bytes nothing has
 * written. */
static uint64_t compare_vague_with_shadow(struct race *x, const struct vague *mine) {
    struct shadow_answer answer = { 0 };
    bool unknown = !mine->reads && !mine->writes;
    struct shadow_access a = {
        .start = mine->pointer,
        .end = mine->limit,
        .me = mine->mark,
        .writes = mine->writes || unknown,
        .known = x->clock,
        .unordered = is_unordered,
        .user = x,
    };
    shadow_compare(x->t->space->shadow, &a, &answer);
    x->r->seen.pairs += answer.pairs;
    x->r->checked[HYPOTHESIS_STREAM_UNSYNCED] += answer.pairs;
    for (unsigned i = 0; i < answer.conflicts; i++) {
        const struct shadow_conflict *c = &answer.conflict[i];
        struct suspect s = {
            .lane = mine->mark.lane,
            .other_lane = c->other.lane,
            .start = mine->pointer,
            .end = mine->limit,
            .other_start = c->start,
            .other_end = c->end,
        };
        s.found = make_found(x, &c->other, c->other_writes, c->start, c->end);
        if (!mine->at_most && (c->other_writes || (mine->writes && !mine->guessed)))
            add_suspect(x, &s);
        else
            findings_undecided(x->r, s.found.hypothesis, sentence_plain(SENTENCE_DOUBT_WRITES));
    }
    return answer.undefined;
}

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

/* The kernel got the block through another pointer too, by which it may write. */
static bool gets_it_twice(const struct race *x) {
    for (unsigned i = 0; i < x->op->count; i++)
        if (x->op->use[i].access != USE_READ &&
            space_at(x->t->space, x->op->use[i].start) == x->block)
            return true;
    return false;
}

/* A kernel only reads through this pointer, and there is nothing to read. What it reads of a block
 * that is written in part is not known. */
static void check_vague_undefined(struct race *x, const struct vague *mine, uint64_t undefined) {
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
    struct found f = {
        .hypothesis = HYPOTHESIS_UNINITIALISED_READ,
        .culprit = x->op->seq,
        .other = EVENT_NO_SEQ,
        .messenger = EVENT_NO_SEQ,
        .order = x->op->launch != EVENT_NO_SEQ ? x->op->launch : x->op->seq,
        .argument = x->use->argument == EVENT_NO_ARGUMENT ? -1 : x->use->argument,
        .address = mine->pointer,
        .len = undefined,
    };
    findings_set_block(r, &f, x->t->space, x->block, mine->pointer);
    f.said = SAY(&r->words, UNDEFINED_ARGUMENT, A_SENTENCE(findings_op(r, x->op)), A_BYTES(f.len),
                 A_NUMBER(f.argument < 0 ? 0 : f.argument),
                 A_SENTENCE(findings_event(r, x->block->alloc)));
    findings_add(r, &f);
}

static void check_vague(struct race *x) {
    const struct use *u = x->use;
    const struct space_name *n = space_name_at(x->t->space, u->start);
    bool at_most = u->flags & USE_BOUND;
    struct vague mine = {
        .mark = x->me,
        .pointer = u->start,
        .limit = at_most ? use_end(u)
                 : n     ? n->at + n->bytes
                         : block_end(x->block),
        .hash = x->op->hash,
        .kernel = x->op->name,
        .reads = u->access & USE_READ,
        .writes = u->access & USE_WRITE,
        .guessed = u->flags & USE_GUESSED,
        .at_most = at_most,
    };
    if (mine.writes || !mine.reads)
        x->block->leaves_mark = true;
    check_vague_undefined(x, &mine, compare_vague_with_shadow(x, &mine));
    compare_two_vague(x, &mine);
    remember_vague(x, &mine);
}

/* ---- exact accesses -------------------------------------------------------------------------- */

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

static void check_undefined(struct race *x, const struct shadow_answer *a, uint64_t total) {
    struct replay *r = x->r;
    const struct use *u = x->use;
    const struct space *s = x->t->space;
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
        (!whole && !goes_to_host(x) && !(seen && a->longest >= PADDING_MAX))) {
        findings_undecided(r, HYPOTHESIS_UNINITIALISED_READ,
                           sentence_plain(SENTENCE_DOUBT_MATTERS));
        return;
    }
    struct found f = {
        .hypothesis = HYPOTHESIS_UNINITIALISED_READ,
        .culprit = x->op->seq,
        .other = EVENT_NO_SEQ,
        .messenger = EVENT_NO_SEQ,
        .order = x->op->launch != EVENT_NO_SEQ ? x->op->launch : x->op->seq,
        .argument = u->argument == EVENT_NO_ARGUMENT ? -1 : u->argument,
        .address = a->undefined_at,
        .len = a->undefined,
    };
    findings_set_block(r, &f, s, x->block, a->undefined_at);
    const struct sentence_value who = A_SENTENCE(findings_op(r, x->op)),
                                made = A_SENTENCE(findings_event(r, x->block->alloc));
    f.said = whole ? SAY(&r->words, UNDEFINED_ALL, who, A_BYTES(total), made)
                   : SAY(&r->words, UNDEFINED_PART, who, A_BYTES(total), A_BYTES(a->undefined),
                         A_NUMBER(a->undefined_at - x->block->base), made);
    findings_add(r, &f);
}

/* One row. */
static void touch(struct race *x, uint64_t start, uint64_t bytes, struct shadow_answer *answer) {
    struct shadow_access a = {
        .start = start,
        .end = start + bytes,
        .me = x->me,
        .writes = x->use->access != USE_READ,
        .known = x->clock,
        .unordered = is_unordered,
        .user = x,
    };
    if (!shadow_touch(x->t->space->shadow, &a, answer))
        x->r->no_memory = true;
}

static void check_exact(struct race *x) {
    const struct use *u = x->use;
    struct shadow_answer answer = { 0 };
    uint64_t end = use_end(u), rows = u->rows * u->slices;
    if (!end || end > block_end(x->block))
        return; /* it left its block: that is the finding */
    if (rows > ROWS_MAX || rows / u->rows != u->slices) {
        findings_undecided(x->r, HYPOTHESIS_STREAM_UNSYNCED, sentence_plain(SENTENCE_DOUBT_ROWS));
        findings_undecided(x->r, HYPOTHESIS_OVERLAPPING_COPIES,
                           sentence_plain(SENTENCE_DOUBT_ROWS));
        x->block->leaves_mark = true;
        return;
    }
    for (uint64_t i = 0; i < rows && !x->r->no_memory; i++)
        touch(x, u->start + i / u->rows * u->slice + i % u->rows * u->pitch, u->bytes, &answer);
    x->r->seen.pairs += answer.pairs;
    x->r->checked[HYPOTHESIS_STREAM_UNSYNCED] += answer.pairs - answer.copy_pairs;
    x->r->checked[HYPOTHESIS_OVERLAPPING_COPIES] += answer.copy_pairs;
    for (unsigned i = 0; i < answer.conflicts; i++)
        add_race(x, &answer.conflict[i]);
    check_undefined(x, &answer, u->bytes * rows);
    if (x->r->lane_count > 1 && x->op->what != SHADOW_LAUNCH)
        widen_hull(x, u->start, end);
    if (x->block->use && x->block->use->vague_count)
        compare_with_vague(x, u->start, end, u->access != USE_READ);
}

/* ---- launches about which nothing is known --------------------------------------------------- */

static void beside_unknown(struct replay *r, struct thread *t, uint32_t lane,
                           struct vclock *clock) {
    struct space *s = t->space;
    for (unsigned i = 0; i < s->unknown_count && !r->unknown_beside; i++)
        if (s->unknown[i].lane != lane &&
            !vclock_covers(clock, s->unknown[i].lane, s->unknown[i].number) &&
            !before_by_time(r, t, clock, s->unknown[i].lane, s->unknown[i].number))
            r->unknown_beside = true;
}

/* A launch may go anywhere: where it goes is unknown, or it may find pointers in memory. Was there
 * something beside it? */
static void may_go_anywhere(struct replay *r, struct thread *t, uint32_t lane, uint32_t number,
                            const struct vclock *clock) {
    struct space *s = t->space;
    (void)effort_steps(r->unknown_beside ? 0 : s->stream_count);
    for (size_t i = 0; i < s->stream_count && !r->unknown_beside; i++) {
        uint32_t other = s->streams[i]->lane;
        if (other != lane && !vclock_covers(clock, other, r->lanes[other].last))
            r->unknown_beside = true;
    }
    unsigned at = 0;
    while (at < s->unknown_count && s->unknown[at].lane != lane)
        at++;
    if (at == SPACE_UNKNOWNS) {
        r->unknown_beside = true;
        return;
    }
    s->unknown[at].lane = lane;
    s->unknown[at].number = number;
    if (at == s->unknown_count)
        s->unknown_count++;
}

void races_unknown(struct replay *r, uint64_t seq, struct thread *t, uint32_t lane, uint32_t number,
                   const struct vclock *clock) {
    t->space->unknown_launch = seq;
    may_go_anywhere(r, t, lane, number, clock);
}

/* What a launch reaches through pointers that it finds in memory is not known. It can only find
 * pointers that were put there: by uploads into memory it was given, or into variables, and by the
 * host where that reaches the memory itself. */
static void note_tables(const struct op *op, struct space *s) {
    uint64_t latest = s->variable_upload;
    for (unsigned i = 0; i < op->count; i++) {
        const struct block *b = space_at(s, op->use[i].start);
        uint64_t put = !b ? 0 : space_side(b) == SPACE_BOTH ? op->seq : b->upload;
        latest = put > latest ? put : latest;
    }
    if (latest > s->table_upload)
        s->table_upload = latest;
}

/* The copy may bring addresses from the host. */
static void note_upload(const struct op *op, struct space *s) {
    if (op->what != SHADOW_COPY || op->count != 2 || op->use[0].bytes < sizeof(uint64_t) ||
        space_side(space_at(s, op->use[1].start)) == SPACE_DEVICE)
        return;
    struct block *b = space_at(s, op->use[0].start);
    if (b)
        b->upload = op->seq;
    if (!b || b->family == DETAIL_FAMILY_SYMBOL)
        s->variable_upload = op->seq;
}

/* ---- operations ------------------------------------------------------------------------------ */

void races_check(struct replay *r, const struct op *op, struct thread *t, uint32_t lane,
                 uint32_t number, struct vclock *clock) {
    struct race x = {
        .r = r,
        .op = op,
        .t = t,
        .clock = clock,
        .me = { .seq = op->seq, .number = number, .lane = lane, .what = op->what },
    };
    overlap_check(r, op, t);
    host_fn_note_op(r, t->space, op, &x.me, clock);
    if (t->space->unknown_count)
        beside_unknown(r, t, lane, clock);
    note_upload(op, t->space);
    if (op->what == SHADOW_LAUNCH && !op->exact) {
        if (!op->known)
            t->space->unknown_launch = op->seq;
        note_tables(op, t->space);
        may_go_anywhere(r, t, lane, number, clock);
    } else if (op->strays) {
        bool before = r->unknown_beside;
        may_go_anywhere(r, t, lane, number, clock);
        r->strayed |= !before && r->unknown_beside;
    }
    for (unsigned i = 0; i < op->count; i++) {
        x.use = &op->use[i];
        x.block = space_at(t->space, x.use->start);
        if (!x.block || x.block->family == DETAIL_FAMILY_ARRAY)
            continue;
        if (op->what == SHADOW_COPY && is_host_family(x.block->family))
            r->checked[HYPOTHESIS_STAGING_REUSE]++;
        if (x.use->flags & USE_VAGUE)
            check_vague(&x);
        else
            check_exact(&x);
    }
}

/* ---- stream-ordered memory ------------------------------------------------------------------- */

/* A free in no order with the allocation is worth a word only if nothing used the memory. */
static void check_free(struct race *x, const struct shadow_answer *answer) {
    struct block *b = x->block;
    bool used = false;
    for (unsigned i = 0; i < answer->conflicts; i++)
        if (answer->conflict[i].other.what != SHADOW_ALLOC) {
            add_race(x, &answer->conflict[i]);
            used = true;
        }
    if (b->use && b->use->vague_count)
        compare_with_vague(x, b->base, block_end(b), true);
    for (const struct suspect *s = b->use ? b->use->suspects : NULL; s; s = s->next)
        used |= s->found.culprit == x->op->seq;
    for (unsigned i = 0; !used && i < answer->conflicts; i++)
        add_race(x, &answer->conflict[i]);
}

void races_on_async_memory(struct replay *r, const struct reader_event *e, struct thread *t,
                           struct block *b, bool frees) {
    struct stream *s = before_stream(r, e->event.stream, t);
    if (!s)
        return;
    before_enter(r, s, t);
    struct op op = { .seq = e->seq, .launch = EVENT_NO_SEQ, .t_ns = e->event.t_ns };
    struct use whole = { .start = b->base,
                         .bytes = b->bytes,
                         .rows = 1,
                         .slices = 1,
                         .access = USE_WRITE,
                         .argument = EVENT_NO_ARGUMENT };
    struct race x = {
        .r = r,
        .op = &op,
        .t = t,
        .clock = &s->clock,
        .me = { .seq = e->seq,
                .number = before_number(r, s->lane),
                .lane = s->lane,
                .what = frees ? SHADOW_FREE : SHADOW_ALLOC },
        .use = &whole,
        .block = b,
    };
    struct shadow_answer answer = { 0 };
    touch(&x, b->base, b->bytes, &answer);
    if (frees)
        check_free(&x, &answer);
    before_done(r, &s->clock, s->lane, e->seq);
    before_changed(r, s);
}

/* ---- the host -------------------------------------------------------------------------------- */

/* Of an early access the access is the culprit; of memory that is given back, the copy that nobody
 * had waited for. */
static void host_finding(struct replay *r, const struct reader_event *e, struct thread *t,
                         const struct shadow_conflict *c, bool writes) {
    bool frees = e->event.kind != EVENT_EARLY_HOST_ACCESS;
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
        .len = c->end - c->start,
    };
    findings_set_block(r, &f, t->space, space_at(t->space, c->start), c->start);
    const struct sentence_value they = A_SENTENCE(findings_event(r, c->other.seq));
    if (t->host_fn_number && !frees) {
        f.also = f.hypothesis == HYPOTHESIS_STAGING_REUSE ? 1u << HYPOTHESIS_STAGING_REUSE : 0;
        f.hypothesis = HYPOTHESIS_STREAM_UNSYNCED;
        f.said = SAY(&r->words, HOST_FN_UNORDERED, amount(r, &f), A_NUMBER(writes), they,
                     A_NUMBER(c->other_writes));
    } else {
        f.said = sentence_make(&r->words,
                               frees    ? SENTENCE_HOST_RELEASES
                               : writes ? SENTENCE_HOST_OVERWRITES
                                        : SENTENCE_HOST_READS,
                               (const struct sentence_value[]){ A_BYTES(f.len), they }, 2);
    }
    if (!cannot_tell(r, f.hypothesis))
        findings_add(r, &f);
}

static bool is_unordered_with_host(const struct shadow_mark *other, void *user) {
    const struct race *x = user;
    /* Host code with host code is not for us to judge. */
    return other->what != SHADOW_HOST && !host_fn_is_before(x->t, other) &&
           is_unordered(other, user);
}

/* Does the byte at address more likely belong to another kernel than v, because it lies behind a
 * pointer that one got, or beside all that v's stream was seen to use? */
static bool is_elsewhere(const struct block_use *u, const struct vague *v, uint64_t address) {
    uint64_t low, high;
    for (unsigned i = 0; i < u->vague_count; i++)
        if (u->vague[i].pointer > v->pointer && u->vague[i].pointer <= address)
            return true;
    return find_hull(u, v->mark.lane, &low, &high) && (address < low || address >= high);
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

void races_on_host_access(struct replay *r, const struct reader_event *e, struct thread *t) {
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
