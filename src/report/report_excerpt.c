#include "report/report_excerpt.h"

#include <stdlib.h>

#include "record/format.h"

enum {
    BEFORE = 3, /* neighbours shown */
    AFTER = 2,
    LAST = 12, /* where there is no actor */
    MARKS = 24,
    LINES = MARKS * (BEFORE + 1 + AFTER),
    /* Slots to look through for neighbours: events have extras, and may be lost. */
    REACH = 64,
};

struct mark {
    uint64_t seq;
    char sign;
};

struct excerpt {
    const reader *r;
    struct mark marks[MARKS];
    unsigned mark_count;
    uint64_t lines[LINES];
    unsigned line_count;
    struct reader_event event; /* large: not on the stack */
};

static void add_mark(struct excerpt *x, uint64_t seq, char sign) {
    if (seq == EVENT_NO_SEQ || x->mark_count >= MARKS)
        return;
    for (unsigned i = 0; i < x->mark_count; i++)
        if (x->marks[i].seq == seq)
            return; /* the first sign is the stronger one */
    x->marks[x->mark_count++] = (struct mark){ seq, sign };
}

static void add_line(struct excerpt *x, uint64_t seq) {
    for (unsigned i = 0; i < x->line_count; i++)
        if (x->lines[i] == seq)
            return;
    if (x->line_count < LINES)
        x->lines[x->line_count++] = seq;
}

/* The last `wanted` events of [from, to). */
static void add_last(struct excerpt *x, uint64_t from, uint64_t to, unsigned wanted) {
    uint64_t ring[LAST];
    unsigned n = 0;
    struct reader_cursor c = reader_events(x->r, from, to);
    while (reader_next(&c, &x->event))
        if (x->event.event.kind != EVENT_LOST)
            ring[n++ % LAST] = x->event.seq;
    for (unsigned i = n > wanted ? n - wanted : 0; i < n; i++)
        add_line(x, ring[i % LAST]);
}

static void add_around(struct excerpt *x, uint64_t seq) {
    add_last(x, seq > REACH ? seq - REACH : 0, seq, BEFORE);
    struct reader_cursor c = reader_events(x->r, seq, seq + REACH);
    for (unsigned n = 0; n < 1 + AFTER && reader_next(&c, &x->event);)
        if (x->event.event.kind != EVENT_LOST) {
            add_line(x, x->event.seq);
            n++;
        }
}

static int by_number(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void collect(struct excerpt *x, const verdict *v) {
    const struct verdict_finding *f = v->root ? v->root : v->finding_count ? v->findings : NULL;
    if (v->culprit)
        add_mark(x, v->culprit->event, 'C');
    if (v->messenger)
        add_mark(x, v->messenger->event, 'M');
    unsigned actors = x->mark_count;
    if (f && f->other)
        add_mark(x, f->other->event, '*');
    if (f && f->block) {
        add_mark(x, f->block->alloc, '*');
        add_mark(x, f->block->free, '*');
    }
    for (size_t i = 0; f && i < f->evidence_count && i < 8; i++)
        add_mark(x, f->evidence[i], '*');
    for (unsigned i = 0; i < x->mark_count; i++)
        if (i < actors)
            add_around(x, x->marks[i].seq);
        else
            add_line(x, x->marks[i].seq);
    if (!x->line_count) {
        uint64_t end = reader_info(x->r)->end_seq;
        add_last(x, end > 4 * REACH ? end - 4 * REACH : 0, UINT64_MAX, LAST);
    }
    qsort(x->lines, x->line_count, sizeof x->lines[0], by_number);
}

static char sign_of(const struct excerpt *x, uint64_t seq) {
    for (unsigned i = 0; i < x->mark_count; i++)
        if (x->marks[i].seq == seq)
            return x->marks[i].sign;
    return ' ';
}

void report_excerpt(FILE *out, const reader *r, const verdict *v) {
    struct excerpt *x = calloc(1, sizeof *x);
    if (!x)
        return;
    x->r = r;
    collect(x, v);
    uint64_t expected = reader_info(r)->first_seq;
    for (unsigned i = 0; i < x->line_count; i++) {
        if (!reader_event(r, x->lines[i], &x->event))
            continue;
        if (x->event.seq > expected)
            fputs("  ...\n", out);
        expected = x->event.seq + x->event.slots;
        fprintf(out, "%c ", sign_of(x, x->event.seq));
        format_event(out, r, &x->event);
        putc('\n', out);
    }
    free(x);
}
