/* races.c - accesses to the same bytes in no order, and reads of bytes that nobody wrote.
 *
 * Copies, sets and launches with known footprints go into the shadow (shadow.h) and are compared
 * there, byte for byte. A conflict found there is certain: both sides are known to touch those
 * bytes. Kernels of which only the pointers are known are compared in race_vague.c.
 *
 * Launches of which nothing is known cannot be compared with anything. Whether something was not
 * ordered with them is remembered, because then no proof is possible. */
#include "verdict/effort.h"
#include "verdict/race.h"

enum { ROWS_MAX = 4096 };

/* ---- exact accesses -------------------------------------------------------------------------- */

/* One row. */
static void touch(struct race *x, uint64_t start, uint64_t bytes, struct shadow_answer *answer) {
    struct shadow_access a = {
        .start = start,
        .end = start + bytes,
        .me = x->me,
        .writes = x->use->access != USE_READ,
        .known = x->clock,
        .unordered = race_is_unordered,
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
    if (rows > (u->flags & USE_SEEN ? RACE_SEEN_ROWS_MAX : ROWS_MAX) ||
        rows / u->rows != u->slices) {
        findings_unclear(x->r, HYPOTHESIS_STREAM_UNSYNCED, sentence_plain(SENTENCE_DOUBT_ROWS));
        findings_unclear(x->r, HYPOTHESIS_OVERLAPPING_COPIES, sentence_plain(SENTENCE_DOUBT_ROWS));
        x->block->leaves_mark = true;
        return;
    }
    bool is_row = false; /* nothing has written one of the rows */
    for (uint64_t i = 0; i < rows && !x->r->no_memory; i++) {
        uint64_t before = answer.undefined;
        touch(x, u->start + i / u->rows * u->slice + i % u->rows * u->pitch, u->bytes, &answer);
        is_row |= answer.undefined - before == u->bytes;
    }
    x->r->seen.pairs += answer.pairs;
    x->r->checked[HYPOTHESIS_STREAM_UNSYNCED] += answer.pairs - answer.copy_pairs;
    x->r->checked[HYPOTHESIS_OVERLAPPING_COPIES] += answer.copy_pairs;
    for (unsigned i = 0; i < answer.conflicts; i++)
        race_add(x, &answer.conflict[i]);
    race_undefined_exact(x, &answer, u->bytes * rows, is_row);
    if (x->r->lane_count > 1 && x->op->what != SHADOW_LAUNCH)
        race_vague_widen(x, u->start, end);
    if (x->block->use && x->block->use->vague_count)
        race_vague_compare(x, u->start, end, u->access != USE_READ);
}

/* ---- launches about which nothing is known --------------------------------------------------- */

/* Is operation `number` of lane `other` in no order with one of `lane` that comes after clock? */
static bool is_beside(struct replay *r, struct thread *t, uint32_t lane, struct vclock *clock,
                      uint32_t other, uint32_t number) {
    return other != lane && !vclock_covers(clock, other, number) &&
           !before_by_time(r, t, clock, other, number);
}

static void beside_unknown(struct replay *r, struct thread *t, uint32_t lane,
                           struct vclock *clock) {
    struct space *s = t->space;
    for (unsigned i = 0; i < s->unknown_count && !r->unknown_beside; i++)
        if (is_beside(r, t, lane, clock, s->unknown[i].lane, s->unknown[i].number))
            r->unknown_beside = true;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static void array_unclear(struct replay *r, uint64_t seq, uint32_t lane, uint32_t number) {
    const struct lane *l = &r->lanes[lane];
    if (number && number <= l->last && !r->unclear)
        findings_unclear(r, HYPOTHESIS_STREAM_UNSYNCED,
                         SAY(&r->words, UNCLEAR_ARRAY,
                             A_SENTENCE(findings_event(r, l->seqs[number - 1])),
                             A_SENTENCE(findings_event(r, seq))));
}

static bool uses_array(const struct op *op, struct space *s) {
    for (unsigned i = 0; i < op->count; i++) {
        const struct block *b = space_at(s, op->use[i].start);
        if (b && b->family == DETAIL_FAMILY_ARRAY)
            return true;
    }
    return false;
}

static void keep_array_use(struct space *s, uint32_t lane, uint32_t number) {
    unsigned at = 0;
    while (at < s->array_uses && s->array_use[at].lane != lane)
        at++;
    if (at == SPACE_UNKNOWNS)
        return;
    s->array_use[at].lane = lane;
    s->array_use[at].number = number;
    s->array_uses += at == s->array_uses;
}

/* The address of an array is not recorded, so a kernel that reads it through a texture seems to
 * touch memory that belongs to no block. If a copy of an array is not ordered with it, they may
 * race. */
static void check_arrays(struct race *x) {
    struct replay *r = x->r;
    struct space *s = x->t->space;
    uint32_t lane = x->me.lane;
    for (unsigned i = 0; x->op->strays && i < s->array_uses; i++)
        if (is_beside(r, x->t, lane, x->clock, s->array_use[i].lane, s->array_use[i].number))
            array_unclear(r, x->op->seq, s->array_use[i].lane, s->array_use[i].number);
    if (!uses_array(x->op, s))
        return;
    for (unsigned i = 0; i < s->unknown_count; i++)
        if (is_beside(r, x->t, lane, x->clock, s->unknown[i].lane, s->unknown[i].number))
            array_unclear(r, x->op->seq, s->unknown[i].lane, s->unknown[i].number);
    keep_array_use(s, lane, x->me.number);
}

/* Memory that no call allocated: variables, but also what kernels allocate and print, which the
 * device orders itself. So two launches that meet there are not accused. */
static void check_astray(struct race *x) {
    struct replay *r = x->r;
    for (unsigned i = 0; i < x->op->astray_count; i++) {
        const struct astray *a = &x->op->astray[i];
        const struct use u = { .access = a->writes ? USE_WRITE : USE_READ };
        struct shadow_answer answer = { 0 };
        x->use = &u;
        x->block = NULL;
        touch(x, a->start, a->bytes, &answer);
        r->seen.pairs += answer.pairs;
        r->checked[HYPOTHESIS_STREAM_UNSYNCED] += answer.pairs;
        if (answer.conflicts)
            findings_unclear(r, HYPOTHESIS_STREAM_UNSYNCED,
                             SAY(&r->words, UNCLEAR_VARIABLE,
                                 A_SENTENCE(findings_event(r, answer.conflict[0].other.seq)),
                                 A_SENTENCE(findings_event(r, x->op->seq))));
    }
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
    values_on_access(r, t, op->launch != EVENT_NO_SEQ ? op->launch : op->seq);
    host_fn_note_op(r, t->space, op, &x.me, clock);
    check_arrays(&x);
    if (t->space->unknown_count)
        beside_unknown(r, t, lane, clock);
    note_upload(op, t->space);
    if (op->what == SHADOW_LAUNCH && !op->exact && !op->bounded) {
        if (!op->known)
            t->space->unknown_launch = op->seq;
        note_tables(op, t->space);
        may_go_anywhere(r, t, lane, number, clock);
    } else if (op->wanders) {
        r->strayed = true;
        may_go_anywhere(r, t, lane, number, clock);
    }
    check_astray(&x);
    for (unsigned i = 0; i < op->count; i++) {
        x.use = &op->use[i];
        x.block = space_at(t->space, x.use->start);
        if (!x.block || x.block->family == DETAIL_FAMILY_ARRAY)
            continue;
        if (op->what == SHADOW_COPY && race_is_host_family(x.block->family))
            r->checked[HYPOTHESIS_STAGING_REUSE]++;
        if (x.use->flags & USE_VAGUE)
            race_vague_check(&x);
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
            race_add(x, &answer->conflict[i]);
            used = true;
        }
    if (b->use && b->use->vague_count)
        race_vague_compare(x, b->base, block_end(b), true);
    used |= race_vague_suspects(b, x->op->seq);
    for (unsigned i = 0; !used && i < answer->conflicts; i++)
        race_add(x, &answer->conflict[i]);
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
