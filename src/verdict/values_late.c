/* values_late.c - waits for values in memory whose write is queued later than the wait.
 *
 * The wait is an operation of its stream, so that every clock that comes after it has its number.
 * When the write comes, whoever has that number comes after the write too: all clocks that there
 * are take in the write's. Until then two operations may seem to be in no order, also where the one
 * that was queued later is to come first. Such pairs are kept here, with the clocks of both, which
 * learn with the others; when no write is to come any more, a pair is in order if the clock of one
 * has the other in it. A read of bytes that nobody has written is kept, too: whoever ends the wait
 * may write them first. */
#include <stdlib.h>

#include "verdict/effort.h"
#include "verdict/replay.h"

enum { PAIRS_MAX = 1024 };

struct value_pair {
    struct value_pair *next;
    struct space *space;
    struct found found;
    bool alone; /* a read of bytes that nothing had written: mark[1] is unused */
    struct shadow_mark mark[2];
    struct vclock clock[2]; /* what is before each */
};

/* ---- clocks that learn ----------------------------------------------------------------------- */

struct lesson {
    struct replay *r;
    const struct value_wait *wait;
    const struct vclock *write;
};

static bool learn(const struct lesson *l, struct vclock *c) {
    if (!vclock_covers(c, l->wait->lane, l->wait->number))
        return false;
    if (!vclock_join(c, l->write))
        l->r->no_memory = true;
    return true;
}

static void learn_table(const struct lesson *l, const struct table *t) {
    size_t at = 0;
    for (const struct table_entry *e; (e = table_next(t, &at));)
        (void)learn(l, e->value);
}

static void learn_space(const struct lesson *l, struct space *s) {
    size_t at = 0;
    (void)learn(l, &s->drained);
    (void)learn(l, &s->published);
    for (size_t i = 0; i < s->stream_count; i++)
        if (learn(l, &s->streams[i]->clock))
            before_changed(l->r, s->streams[i]);
    for (const struct table_entry *e; (e = table_next(&s->events, &at));)
        (void)learn(l, &((struct event_state *)e->value)->clock);
    at = 0;
    for (const struct table_entry *e; (e = table_next(&s->host_fns, &at));)
        (void)learn(l, &((struct host_fn *)e->value)->before);
    learn_table(l, &s->tokens);
    learn_table(l, &s->op_clocks);
}

static void teach(struct replay *r, const struct value_wait *w, const struct vclock *write) {
    const struct lesson l = { r, w, write };
    size_t at = 0;
    if (!effort_steps(w->space->stream_count + r->thread_count + w->space->op_clocks.count))
        r->no_memory = true;
    learn_space(&l, w->space);
    for (size_t i = 0; i < r->thread_count; i++)
        if (r->threads[i].space == w->space && learn(&l, &r->threads[i].known))
            r->threads[i].version++;
    for (const struct table_entry *e; (e = table_next(&r->writes, &at));)
        if (e->value != &r->unwritten && e->value != write)
            (void)learn(&l, e->value);
    for (struct value_pair *p = r->value_pairs; p; p = p->next) {
        (void)learn(&l, &p->clock[0]);
        (void)learn(&l, &p->clock[1]);
    }
    /* What an executable graph knows of its last launch does not learn. */
    if (w->space->execs.count)
        r->order_doubt = sentence_plain(SENTENCE_DOUBT_VALUES);
}

/* ---- pairs ----------------------------------------------------------------------------------- */

static void free_pair(struct value_pair *p) {
    vclock_free(&p->clock[0]);
    vclock_free(&p->clock[1]);
    free(p);
}

static bool is_never_unordered(const struct shadow_mark *other, void *user) {
    (void)other, (void)user;
    return false;
}

static bool is_written_now(const struct value_pair *p) {
    struct shadow_answer answer = { 0 };
    const struct shadow_access a = {
        .start = p->found.address,
        .end = p->found.address + p->found.len,
        .me = p->mark[0],
        .known = &p->clock[0],
        .unordered = is_never_unordered,
    };
    shadow_compare(p->space->shadow, &a, &answer);
    return !answer.undefined;
}

static bool is_ordered(const struct value_pair *p) {
    return vclock_covers(&p->clock[0], p->mark[1].lane, p->mark[1].number) ||
           vclock_covers(&p->clock[1], p->mark[0].lane, p->mark[0].number);
}

static void settle(struct replay *r) {
    for (struct value_pair *p = r->value_pairs, *next; p; p = next) {
        next = p->next;
        bool right = p->alone ? is_written_now(p) : is_ordered(p);
        uint64_t first = p->found.culprit < p->found.other ? p->found.culprit : p->found.other;
        const struct block *b = space_at(p->space, p->found.address);
        bool vague = p->alone && (!b || b->leaves_mark);
        if (!right && (vague || replay_is_torn(r, first, UINT64_MAX)))
            findings_unclear(r, p->found.hypothesis, sentence_plain(SENTENCE_DOUBT_VALUES));
        else if (!right)
            r->enter(r, p->space, &p->clock[0], &p->found);
        free_pair(p);
    }
    r->value_pairs = NULL;
}

void values_late_met(struct replay *r, uint64_t write, const struct vclock *clock) {
    if (!r->values_to_come)
        return;
    for (size_t i = 0; i < r->value_wait_count; i++) {
        struct value_wait *w = &r->value_waits[i];
        if (w->write != write + 1 || w->met)
            continue;
        w->met = write;
        teach(r, w, clock);
        r->values_to_come--;
    }
    if (!r->values_to_come)
        settle(r);
}

bool values_late_keep(struct replay *r, struct space *s, const struct found *f,
                      const struct shadow_mark *me, const struct vclock *clock,
                      const struct shadow_mark *other) {
    size_t count = 0;
    for (const struct value_pair *p = r->value_pairs; p; p = p->next)
        count++;
    if (!r->values_to_come || count >= PAIRS_MAX)
        return false;
    struct value_pair *p = calloc(1, sizeof *p);
    const struct vclock *theirs = other ? host_fn_clock_of(s, other) : NULL;
    if (!p || !vclock_copy(&p->clock[0], clock) || (theirs && !vclock_copy(&p->clock[1], theirs))) {
        if (p)
            free_pair(p);
        r->no_memory = true;
        return true;
    }
    p->space = s;
    p->found = *f;
    p->found.said = findings_keep(r, f->said);
    p->mark[0] = *me;
    p->alone = !other;
    if (other)
        p->mark[1] = *other;
    p->next = r->value_pairs;
    r->value_pairs = p;
    return true;
}

void values_late_finish(struct replay *r) {
    settle(r);
}

void values_late_close(struct replay *r) {
    for (struct value_pair *p = r->value_pairs, *next; p; p = next) {
        next = p->next;
        free_pair(p);
    }
    r->value_pairs = NULL;
}
