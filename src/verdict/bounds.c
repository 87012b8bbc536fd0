/* bounds.c - do the ranges of an operation lie where they may?
 *
 * Every range is looked up in the memory of its process at the time of the call: it must start in a
 * live block, end in it, stay in its tensor, and be on the side the call says. A range that does
 * not is a finding if the recording proves it; an address that the recording merely does not know
 * is a gap, because memory may have been allocated before the recording or without the audit. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "verdict/replay.h"

enum { PAGE_BITS = 12, NEAR_LEAST = 64 << 10 };
#define NEAR_MOST   (UINT64_C(1) << 30)
#define NULL_REGION UINT64_C(65536) /* what no program can have mapped */

/* ---- words ----------------------------------------------------------------------------------- */

/* "reads"; "was to read" of a call that was refused. */
static struct sentence_value verb(const struct use *u, bool refused) {
    if (u->access == USE_READ)
        return A_SENTENCE(sentence_plain(refused ? SENTENCE_WAS_TO_READ : SENTENCE_READS));
    if (u->access == USE_WRITE)
        return A_SENTENCE(sentence_plain(refused ? SENTENCE_WAS_TO_WRITE : SENTENCE_WRITES));
    return A_SENTENCE(sentence_plain(refused ? SENTENCE_WAS_TO_USE : SENTENCE_USES));
}

/* The tensor that an address lies in, or its block. */
static struct sentence_value target(struct replay *r, const struct space *s, const struct block *b,
                                    uint64_t address) {
    const struct space_name *n = space_name_at(s, address);
    if (n)
        return A_SENTENCE(findings_memory(r, reader_string(r->r, n->text), n->bytes));
    return A_SENTENCE(findings_block(r, b));
}

/* ---- entering -------------------------------------------------------------------------------- */

struct check {
    struct replay *r;
    const struct op *op;
    const struct use *use;
    struct thread *t;
    bool failed; /* the call itself failed */
    bool found;  /* one finding per range is enough */
    struct sentence_value who;
};

static bool is_own_failure(const struct op *op) {
    return op->status != hipSuccess && op->status != RECORD_PENDING &&
           !hip_error_is_sticky((hipError_t)op->status);
}

/* Also fills in c->who, which the caller's text needs. */
static struct found start_finding(struct check *c, enum verdict_hypothesis_id id) {
    c->who = A_SENTENCE(findings_op(c->r, c->op));
    return (struct found){
        .hypothesis = id,
        .culprit = c->op->seq,
        .other = EVENT_NO_SEQ,
        .messenger = c->failed ? c->op->seq : EVENT_NO_SEQ,
        .order = c->op->launch != EVENT_NO_SEQ ? c->op->launch : c->op->seq,
        .replay = c->op->launch != EVENT_NO_SEQ ? c->op->launch : 0,
        .argument = c->use->argument == EVENT_NO_ARGUMENT ? -1 : c->use->argument,
        .failed = c->failed,
        .culprit_writes = c->use->access & USE_WRITE,
        .address = c->use->start,
        .len = use_end(c->use) ? use_end(c->use) - c->use->start : 0,
        .process = c->t->space->process,
    };
}

static void enter_finding(struct check *c, struct found *f) {
    c->found = true;
    findings_evidence(f, c->op->launch);
    findings_add(c->r, f);
    struct failure *failure = c->failed ? replay_failure(c->r, c->op->seq) : NULL;
    if (failure)
        failure->explained = true;
}

/* ---- a range that starts in a live block ----------------------------------------------------- */

static void leaves_block(struct check *c, const struct block *b, uint64_t end) {
    struct arena *a = &c->r->words;
    const struct use *u = c->use;
    bool shaped = u->flags & USE_SHAPED;
    struct found f =
        start_finding(c, shaped ? HYPOTHESIS_SHAPE_MISMATCH : HYPOTHESIS_SIZE_MISMATCH);
    if (!shaped && (u->rows > 1 || u->slices > 1)) /* rows of a width, multiplied out */
        f.also |= 1u << HYPOTHESIS_SHAPE_MISMATCH;
    findings_set_block(c->r, &f, c->t->space, b, u->start);
    f.said =
        SAY(a, PAST_END, c->who, verb(u, c->failed),
            end ? A_BYTES(end - u->start) : A_SENTENCE(sentence_plain(SENTENCE_TOO_MANY_BYTES)),
            A_NUMBER(u->start - b->base), target(c->r, c->t->space, b, u->start),
            end ? A_BYTES(end - block_end(b)) : A_SENTENCE(sentence_plain(SENTENCE_FAR)));
    enter_finding(c, &f);
}

static void leaves_tensor(struct check *c, const struct block *b, const struct space_name *n,
                          uint64_t end) {
    const struct use *u = c->use;
    bool shaped = u->flags & USE_SHAPED;
    struct found f =
        start_finding(c, shaped ? HYPOTHESIS_SHAPE_MISMATCH : HYPOTHESIS_SIZE_MISMATCH);
    findings_set_block(c->r, &f, c->t->space, b, u->start);
    f.said = SAY(&c->r->words, PAST_TENSOR, c->who, verb(u, c->failed), A_BYTES(end - u->start),
                 A_NUMBER(u->start - n->at), A_NAME(reader_string(c->r->r, n->text)),
                 A_BYTES(end - n->at - n->bytes));
    enter_finding(c, &f);
}

/* Copies and sets may take several tensors at once; kernels name the one they mean. */
static bool means_one_tensor(const struct check *c, const struct block *b,
                             const struct space_name *n, uint64_t end) {
    if (c->op->what == SHADOW_LAUNCH)
        return c->use->start == n->at || !space_is_boundary(c->t->space, b, end);
    return !space_is_boundary(c->t->space, b, end);
}

static void check_extent(struct check *c, const struct block *b) {
    uint64_t end = use_end(c->use);
    if (b->family == DETAIL_FAMILY_ARRAY || c->use->flags & USE_VAGUE)
        return;
    c->r->checked[HYPOTHESIS_SIZE_MISMATCH]++;
    c->r->checked[HYPOTHESIS_SHAPE_MISMATCH] += (c->use->flags & USE_SHAPED) != 0;
    if (!end || end > block_end(b)) {
        /* Past registered memory there may be more memory of the host's. */
        if (b->family != DETAIL_FAMILY_REGISTERED || c->failed)
            leaves_block(c, b, end);
        return;
    }
    const struct space_name *n = space_name_at(c->t->space, c->use->start);
    if (n && end > n->at + n->bytes && means_one_tensor(c, b, n, end))
        leaves_tensor(c, b, n, end);
}

/* ---- directions ------------------------------------------------------------------------------ */

static const char *const kind_names[] = { "hipMemcpyHostToHost", "hipMemcpyHostToDevice",
                                          "hipMemcpyDeviceToHost", "hipMemcpyDeviceToDevice",
                                          "hipMemcpyDefault" };

static void kind_mismatch(struct check *c, const struct block *b, bool is_device) {
    struct found f = start_finding(c, HYPOTHESIS_KIND_MISMATCH);
    if (b)
        findings_set_block(c->r, &f, c->t->space, b, c->use->start);
    f.said = SAY(&c->r->words, WRONG_DIRECTION, c->who, A_NAME(kind_names[c->op->copy_kind]),
                 A_NUMBER(c->use->access == USE_WRITE), A_BYTES(f.len), A_NUMBER(is_device));
    enter_finding(c, &f);
}

/* A copy that says "host to host" and is between device blocks on both sides is one of kind
 * hipMemcpyDeviceToDeviceNoCU, whose number the recording does not keep. */
static bool is_no_cu(struct check *c) {
    const struct op *op = c->op;
    if (op->copy_kind != hipMemcpyHostToHost || op->count != 2)
        return false;
    return space_side(space_at(c->t->space, op->use[0].start)) == SPACE_DEVICE &&
           space_side(space_at(c->t->space, op->use[1].start)) == SPACE_DEVICE;
}

static void check_kind(struct check *c, const struct block *b) {
    if (c->op->what == SHADOW_COPY && c->use->flags & USE_HOST && space_side(b) == SPACE_DEVICE &&
        !is_no_cu(c))
        kind_mismatch(c, b, true);
}

/* ---- a range that starts in no live block ---------------------------------------------------- */

static void use_after_free(struct check *c, const struct block *b) {
    const struct use *u = c->use;
    struct found f = start_finding(c, HYPOTHESIS_USE_AFTER_FREE);
    findings_set_block(c->r, &f, c->t->space, b, u->start);
    findings_evidence(&f, b->free);
    /* A captured operation came first and runs later; else what comes later frees under it. */
    bool under = b->free != EVENT_NO_SEQ && b->free > f.order;
    const struct sentence_value offset = A_NUMBER(u->start - b->base),
                                memory = target(c->r, c->t->space, b, u->start),
                                freed = A_SENTENCE(findings_event(c->r, b->free)),
                                bytes = f.len ? A_BYTES(f.len)
                                              : A_SENTENCE(sentence_plain(SENTENCE_TOO_MANY_BYTES));
    struct arena *a = &c->r->words;
    if (u->flags & USE_VAGUE) {
        f.said = SAY(a, FREED_POINTER, c->who, offset, memory, freed);
        f.len = 0;
    } else {
        f.said =
            under ? SAY(a, FREED_UNDER, c->who, verb(u, c->failed), bytes, offset, memory, freed)
                  : SAY(a, FREED_BEFORE, c->who, verb(u, c->failed), bytes, offset, memory, freed);
    }
    enter_finding(c, &f);
}

/* The side of a symbol, where nobody knows its address, or how many bytes it has (else the runtime
 * would have refused the call). */
static bool is_unknown_symbol(const struct op *op, const struct use *u) {
    return hip_fn_trait(op->fn) == HIP_TRAIT_SYMBOL && !(u->flags & USE_HOST) &&
           (u->start < NULL_REGION || op->status == hipSuccess);
}

static bool is_near(const struct block *b, uint64_t distance) {
    uint64_t near = b->bytes < NEAR_MOST / 16 ? 16 * b->bytes : NEAR_MOST;
    return distance <= (near < NEAR_LEAST ? NEAR_LEAST : near);
}

static void bad_pointer(struct check *c, enum sentence_id what) {
    struct found f = start_finding(c, HYPOTHESIS_INVALID_POINTER);
    const struct sentence_value values[] = {
        c->who,
        A_NUMBER(c->use->access == USE_WRITE),
        AN_ADDRESS(c->use->start),
    };
    f.said = sentence_make(&c->r->words, what, values, sizeof values / sizeof *values);
    f.len = 0;
    enter_finding(c, &f);
}

static void bad_offset(struct check *c, const struct block *b, uint64_t distance) {
    bool before = c->use->start < b->base;
    struct found f = start_finding(c, HYPOTHESIS_BAD_OFFSET);
    findings_set_block(c->r, &f, c->t->space, b, before ? b->base : block_end(b) - 1);
    const struct sentence_value bytes = f.len ? A_BYTES(f.len)
                                              : A_SENTENCE(sentence_plain(SENTENCE_TOO_MANY_BYTES)),
                                memory = target(c->r, c->t->space, b, b->base);
    const struct sentence_value values[] = { c->who, verb(c->use, c->failed), bytes,
                                             A_BYTES(distance), memory };
    f.said =
        !before && !distance
            ? SAY(&c->r->words, STARTS_AT_END, c->who, verb(c->use, c->failed), bytes, memory)
            : sentence_make(&c->r->words, before ? SENTENCE_STARTS_BEFORE : SENTENCE_STARTS_PAST,
                            values, sizeof values / sizeof *values);
    enter_finding(c, &f);
}

/* Is the address like those of plain host memory that the program copies from and to? */
static bool looks_like_host(struct check *c, uint64_t address) {
    if (table_find(&c->t->space->host_pages, address >> PAGE_BITS))
        return true;
    for (unsigned i = 0; i < c->op->count; i++) {
        const struct use *u = &c->op->use[i];
        uint64_t far = u->start > address ? u->start - address : address - u->start;
        if (u != c->use && u->flags & USE_HOST && far < NEAR_MOST &&
            !space_at(c->t->space, u->start))
            return true;
    }
    return false;
}

/* Is the recording complete? Then an address that it does not know is not HIP's. */
static bool knows_all(const struct replay *r, const struct space *s) {
    return !r->partial && !s->gap && !r->gap_count;
}

static void check_unknown(struct check *c) {
    const struct op *op = c->op;
    uint64_t start = c->use->start, distance;
    struct space *s = c->t->space;
    if (c->use->flags & (USE_VAGUE | USE_HOST) && start >= NULL_REGION)
        return; /* plain host memory, or an argument that may not be a pointer */
    if (c->use->flags & USE_VAGUE || is_unknown_symbol(op, c->use))
        return;
    if (start < NULL_REGION) {
        if (op->status != hipSuccess)
            bad_pointer(c, start ? SENTENCE_NEAR_NULL : SENTENCE_NULL_POINTER);
        return;
    }
    if (!(c->use->flags & USE_DEVICE) && op->what != SHADOW_LAUNCH)
        return; /* hipMemcpyDefault: host memory as far as anybody can know */
    if (!knows_all(c->r, s)) {
        c->r->foreign += op->status == hipSuccess; /* a call that failed has used nothing */
        return;
    }
    struct block *b = space_near(s, start, &distance);
    if (op->status == hipSuccess) {
        if (op->what == SHADOW_COPY)
            kind_mismatch(c, NULL, false);
        else
            c->r->foreign++;
    } else if (op->what == SHADOW_COPY && looks_like_host(c, start)) {
        kind_mismatch(c, NULL, false);
    } else if (b && is_near(b, distance)) {
        bad_offset(c, b, distance);
    } else {
        bad_pointer(c, SENTENCE_NEVER_ALLOCATED);
    }
}

/* ---- an operation ---------------------------------------------------------------------------- */

bool bounds_is_pageable(struct replay *r, struct space *s, const struct use *u) {
    (void)r;
    return !space_at(s, u->start) && !space_freed_at(s, u->start);
}

static void remember_host_page(struct replay *r, struct space *s, const struct use *u) {
    enum { PAGES_MAX = 4096 };
    static char mark;
    if (s->host_pages.count < PAGES_MAX && !space_at(s, u->start) &&
        !table_set(&s->host_pages, u->start >> PAGE_BITS, &mark))
        r->no_memory = true;
}

static void check_use(struct check *c) {
    struct replay *r = c->r;
    struct space *s = c->t->space;
    const struct use *u = c->use;
    const struct block *b = space_at(s, u->start), *freed = NULL;
    r->checked[HYPOTHESIS_INVALID_POINTER]++;
    r->checked[HYPOTHESIS_BAD_OFFSET]++;
    r->checked[HYPOTHESIS_USE_AFTER_FREE]++;
    if (b) {
        check_kind(c, b);
        if (!c->found)
            check_extent(c, b);
        return;
    }
    freed = space_freed_at(s, u->start);
    if (!freed) {
        check_unknown(c);
        return;
    }
    if (freed->free < s->gap)
        findings_undecided(r, HYPOTHESIS_USE_AFTER_FREE, sentence_plain(SENTENCE_FREED_IN_GAP));
    else if (u->flags & USE_GUESSED)
        findings_undecided(r, HYPOTHESIS_USE_AFTER_FREE, sentence_plain(SENTENCE_GUESSED_FREED));
    else if (freed->family == DETAIL_FAMILY_REGISTERED && c->op->what == SHADOW_COPY)
        return; /* no longer registered, and still the host's */
    else
        use_after_free(c, freed);
}

void bounds_check(struct replay *r, const struct op *op, struct thread *t) {
    if (op->status != RECORD_PENDING && hip_error_is_sticky((hipError_t)op->status))
        return; /* it was never looked at: the device had failed before */
    struct check c = { .r = r, .op = op, .t = t, .failed = is_own_failure(op) };
    if (op->what == SHADOW_COPY && op->copy_kind != hipMemcpyDefault && op->count)
        r->checked[HYPOTHESIS_KIND_MISMATCH]++;
    for (unsigned i = 0; i < op->count; i++) {
        c.use = &op->use[i];
        c.found = false;
        check_use(&c);
        if (op->status == hipSuccess && c.use->flags & USE_HOST && !c.found)
            remember_host_page(r, t->space, c.use);
        if (c.found && op->what != SHADOW_LAUNCH)
            return; /* one wrong side is enough */
    }
}

/* The side of a copy that is an array, whose sizes only the runtime knows. */
static bool use_of_array(struct check *c) {
    for (unsigned i = 0; i < c->op->count; i++) {
        const struct block *b = space_at(c->t->space, c->op->use[i].start);
        if (!b)
            b = space_freed_at(c->t->space, c->op->use[i].start); /* by now */
        if (b && b->family == DETAIL_FAMILY_ARRAY) {
            c->use = &c->op->use[i];
            return true;
        }
    }
    return false;
}

/* What the runtime says of a call whose ranges are in order. */
void bounds_on_refusal(struct replay *r, const struct op *op, struct thread *t) {
    struct check c = { .r = r, .op = op, .t = t, .failed = is_own_failure(op) };
    if (!op->count || op->what == SHADOW_LAUNCH)
        return;
    c.use = &op->use[op->count > 1 && op->use[1].pitch < op->use[0].pitch];
    if (op->status == hipErrorInvalidMemcpyDirection) {
        struct found f = start_finding(&c, HYPOTHESIS_KIND_MISMATCH);
        f.said = SAY(&r->words, NO_SUCH_DIRECTION, c.who);
        enter_finding(&c, &f);
    } else if (op->status == hipErrorInvalidPitchValue) {
        struct found f = start_finding(&c, HYPOTHESIS_SHAPE_MISMATCH);
        f.said =
            SAY(&r->words, PITCH_TOO_SMALL, c.who, A_BYTES(c.use->bytes), A_BYTES(c.use->pitch));
        f.len = c.use->bytes;
        enter_finding(&c, &f);
    } else if (op->status == hipErrorInvalidValue && use_of_array(&c)) {
        struct found f = start_finding(&c, HYPOTHESIS_SIZE_MISMATCH);
        f.said = SAY(&r->words, NOT_IN_ARRAY, c.who, A_NUMBER(c.use->access == USE_WRITE));
        f.len = 0;
        enter_finding(&c, &f);
    }
}

/* ---- frees ----------------------------------------------------------------------------------- */

static void free_finding(struct replay *r, const struct reader_event *e, struct thread *t,
                         enum verdict_hypothesis_id id, const struct block *b,
                         const struct sentence *said, const struct sentence *advised) {
    struct found f = findings_of_call(e, id, e->event.dst);
    f.said = said;
    f.advised = advised;
    findings_set_block(r, &f, t->space, b, e->event.dst);
    if (b)
        findings_evidence(&f, b->free);
    findings_add(r, &f);
    struct failure *failure = replay_failure(r, e->seq);
    if (failure)
        failure->explained = true;
}

/* Libraries try to unregister what they do not know; only a second time is a mistake. */
static bool may_fail(const struct replay *r, const struct reader_event *e, const struct space *s) {
    const struct block *freed = space_freed_at(s, e->event.dst);
    return r->fn[event_fn(&e->event)] == HIP_FN_hipHostUnregister &&
           !(freed && freed->base == e->event.dst && freed->family == DETAIL_FAMILY_REGISTERED);
}

/* A free that failed: why? */
static void failed_free(struct replay *r, const struct reader_event *e, struct thread *t) {
    struct space *s = t->space;
    uint64_t at = e->event.dst;
    struct arena *a = &r->words;
    const struct block *live = space_at(s, at), *freed = live ? NULL : space_freed_at(s, at);
    const struct sentence_value who = A_SENTENCE(findings_event(r, e->seq));
    if (freed && freed->base == at) {
        free_finding(r, e, t, HYPOTHESIS_DOUBLE_FREE, freed,
                     SAY(a, FREED_TWICE, who, A_SENTENCE(findings_event(r, freed->free))), NULL);
    } else if (live && live->base != at) {
        free_finding(r, e, t, HYPOTHESIS_BAD_OFFSET, live,
                     SAY(a, FREES_INSIDE, who, A_BYTES(at - live->base), A_BYTES(live->bytes)),
                     sentence_plain(SENTENCE_ADVICE_FREE_INSIDE));
    } else if (live) {
        free_finding(r, e, t, HYPOTHESIS_INVALID_POINTER, live,
                     SAY(a, FREES_OTHER_KIND, who, A_SENTENCE(findings_event(r, live->alloc))),
                     sentence_plain(SENTENCE_ADVICE_FREE_KIND));
    } else if (freed) {
        free_finding(r, e, t, HYPOTHESIS_DOUBLE_FREE, freed, SAY(a, FREES_INSIDE_FREED, who), NULL);
    } else if (knows_all(r, s)) {
        free_finding(r, e, t, HYPOTHESIS_INVALID_POINTER, NULL,
                     SAY(a, FREES_NEVER_ALLOCATED, who, AN_ADDRESS(at)), NULL);
    }
}

void bounds_on_free(struct replay *r, const struct reader_event *e, struct thread *t) {
    unsigned status = e->event.status;
    if (!e->event.dst)
        return;
    r->checked[HYPOTHESIS_DOUBLE_FREE]++;
    if (status == RECORD_PENDING || hip_error_is_sticky((hipError_t)status))
        return;
    const struct failure *f = status == hipSuccess ? NULL : replay_failure(r, e->seq);
    if (f && f->explained)
        return; /* resources.c has: its stream is gone */
    if (status != hipSuccess && !may_fail(r, e, t->space))
        failed_free(r, e, t);
    else if (status == hipSuccess && !space_at(t->space, e->event.dst))
        r->foreign++;
}

/* ---- safe copies that were refused ----------------------------------------------------------- */

static enum verdict_hypothesis_id hypothesis_of(unsigned decision, bool starts_outside) {
    switch (decision) {
    case DETAIL_DECISION_FREED:
        return HYPOTHESIS_USE_AFTER_FREE;
    case DETAIL_DECISION_KIND_MISMATCH:
    case DETAIL_DECISION_WRONG_SIDE:
        return HYPOTHESIS_KIND_MISMATCH;
    case DETAIL_DECISION_WRAPS:
        return HYPOTHESIS_BAD_OFFSET;
    case DETAIL_DECISION_PAST_ALLOCATION:
    case DETAIL_DECISION_PAST_TENSOR:
    case DETAIL_DECISION_HOST_TOO_SMALL:
    case DETAIL_DECISION_FALSE_CLAIM:
        return starts_outside ? HYPOTHESIS_BAD_OFFSET : HYPOTHESIS_SIZE_MISMATCH;
    default:
        return HYPOTHESIS_INVALID_POINTER;
    }
}

void bounds_on_refused(struct replay *r, const struct reader_event *e, struct thread *t) {
    unsigned decision = event_detail(&e->event);
    const struct event_extra *x = reader_extra(e, EXTRA_SAFE);
    struct event_safe safe = x ? event_safe_of(x) : (struct event_safe){ .step = -1, .layer = -1 };
    struct space *s = t->space;
    r->seen.copies_refused++;
    if (decision == DETAIL_DECISION_DEVICE_FAILED || decision == DETAIL_DECISION_PASSED)
        return; /* errors.c */
    const struct block *b = space_at(s, e->event.src);
    if (!b || space_side(b) != SPACE_DEVICE) {
        const struct block *other = space_at(s, e->event.dst);
        b = other && (!b || space_side(other) == SPACE_DEVICE) ? other : b;
    }
    if (!b)
        b = space_freed_at(s, e->event.src) ? space_freed_at(s, e->event.src)
                                            : space_freed_at(s, e->event.dst);
    const struct space_name *n =
        b ? space_name_at(s, b->base == e->event.src ? e->event.src : e->event.dst) : NULL;
    uint64_t room = n ? n->bytes : b ? b->bytes : safe.alloc;
    struct found f =
        findings_of_call(e, hypothesis_of(decision, room && safe.offset >= room), e->event.src);
    f.tensor = e->event.name;
    f.len = e->event.len;
    findings_set_block(r, &f, s, b, e->event.src);
    f.said = SAY(&r->words, COPY_REFUSED,
                 e->event.name ? A_NAME(reader_string(r->r, e->event.name))
                               : A_SENTENCE(sentence_plain(SENTENCE_UNNAMED_TENSOR)),
                 A_NUMBER(safe.offset), A_BYTES(e->event.len),
                 A_NAME(event_detail_text(&e->event) ? event_detail_text(&e->event) : "?"));
    findings_add(r, &f);
}
