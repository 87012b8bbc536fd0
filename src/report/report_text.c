/* report_text.c - the verdict for a terminal. The first line is the answer; then who reported the
 * failure and who caused it, the findings, and every hypothesis in a line. */
#include <inttypes.h>
#include <string.h>

#include "report/report.h"

enum colour { PLAIN, BOLD, RED, GREEN, YELLOW, GREY };

struct text {
    FILE *out;
    const verdict *v;
    const struct report_text_options *o;
};

static const char *paint(const struct text *t, enum colour c) {
    static const char *const codes[] = { "\x1b[0m",  "\x1b[1m",  "\x1b[31m",
                                         "\x1b[32m", "\x1b[33m", "\x1b[90m" };
    return t->o->colour ? codes[c] : "";
}

/* Text of a recording is not trusted: control characters would reach the terminal. */
static void put(const struct text *t, const char *text) {
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c < 0x20 || *c == 0x7f)
            fprintf(t->out, "\\x%02x", *c);
        else
            putc(*c, t->out);
}

static enum colour overall_colour(enum verdict_overall overall) {
    static const enum colour colours[] = { GREEN, RED, RED, GREEN, YELLOW };
    return colours[overall];
}

static enum colour status_colour(enum verdict_status status) {
    static const enum colour colours[] = { RED, GREEN, YELLOW, GREY };
    return colours[status];
}

/* ---- who ------------------------------------------------------------------------------------- */

static void put_actor(const struct text *t, const char *role, const struct verdict_actor *a) {
    fprintf(t->out, "  %-10s ", role);
    if (!a) {
        fputs("-\n", t->out);
        return;
    }
    fputs(paint(t, BOLD), t->out);
    put(t, a->kernel ? "kernel " : "");
    put(t, a->kernel ? a->kernel : *a->api ? a->api : event_kind_text(a->kind));
    fputs(paint(t, PLAIN), t->out);
    if (a->argument) {
        fputs(", argument ", t->out);
        put(t, a->argument);
    }
    if (a->tensor) {
        fputs(", tensor ", t->out);
        put(t, a->tensor);
    }
    if (a->step >= 0)
        fprintf(t->out, ", step %" PRId64, a->step);
    if (a->layer >= 0)
        fprintf(t->out, ", layer %" PRId64, a->layer);
    if (a->event != EVENT_NO_SEQ)
        fprintf(t->out, ", event %" PRIu64, a->event);
    if (a->stream)
        fprintf(t->out, ", stream %u", a->stream);
    if (a->status_code) {
        fputs(", ", t->out);
        put(t, a->status);
    }
    if (strcmp(a->site, "-") != 0) {
        fputs(", at ", t->out);
        put(t, a->site);
    }
    putc('\n', t->out);
}

static void put_block(const struct text *t, const struct verdict_block *b) {
    fprintf(t->out, "  %-10s 0x%" PRIx64 ", %" PRIu64 " bytes", "memory", b->base, b->bytes);
    if (b->tensor) {
        fputs(", tensor ", t->out);
        put(t, b->tensor);
    }
    if (b->alloc != EVENT_NO_SEQ) {
        fprintf(t->out, ", allocated by event %" PRIu64 " at ", b->alloc);
        put(t, b->alloc_site);
    }
    if (b->free != EVENT_NO_SEQ) {
        fprintf(t->out, ", freed by event %" PRIu64 " at ", b->free);
        put(t, b->free_site);
    }
    putc('\n', t->out);
}

static void put_events(const struct text *t, const char *label, const uint64_t *seq, size_t count) {
    if (!count)
        return;
    fprintf(t->out, "  %-10s", label);
    for (size_t i = 0; i < count; i++)
        fprintf(t->out, "%s%" PRIu64, i ? ", " : " ", seq[i]);
    putc('\n', t->out);
}

/* ---- findings -------------------------------------------------------------------------------- */

static void put_finding(const struct text *t, const struct verdict_finding *f, size_t number) {
    fprintf(t->out, "\n%zu. %s%s%s", number, paint(t, BOLD), hypothesis_name(f->hypothesis),
            paint(t, PLAIN));
    for (int id = 0; id < HYPOTHESIS_COUNT; id++)
        if (f->also & 1u << id)
            fprintf(t->out, ", %s", hypothesis_name((enum verdict_hypothesis_id)id));
    if (f->count > 1)
        fprintf(t->out, " (%" PRIu64 " times)", f->count);
    fputs("\n  ", t->out);
    put(t, f->text);
    putc('\n', t->out);
    if (f->culprit.event != EVENT_NO_SEQ || f->culprit.kernel)
        put_actor(t, "culprit", &f->culprit);
    if (f->other)
        put_actor(t, "with", f->other);
    if (f->messenger && f->messenger->event != f->culprit.event)
        put_actor(t, "messenger", f->messenger);
    if (f->block)
        put_block(t, f->block);
    put_events(t, "evidence", f->evidence, f->evidence_count);
    fputs("  advice     ", t->out);
    put(t, f->advice);
    putc('\n', t->out);
}

static void put_findings(const struct text *t) {
    enum { SHOWN = 10 };
    const verdict *v = t->v;
    size_t shown = t->o->verbose || v->finding_count <= SHOWN ? v->finding_count : SHOWN;
    for (size_t i = 0; i < shown; i++)
        put_finding(t, &v->findings[i], i + 1);
    if (v->finding_count > shown || v->findings_left_out)
        fprintf(t->out, "\n%" PRIu64 " more findings are not shown%s.\n",
                v->finding_count - shown + v->findings_left_out,
                t->o->verbose ? "" : " (--verbose shows more)");
}

/* ---- hypotheses ------------------------------------------------------------------------------ */

static void put_hypotheses(const struct text *t) {
    fputs("\nHypotheses:\n", t->out);
    for (int i = 0; i < HYPOTHESIS_COUNT; i++) {
        const struct verdict_hypothesis *h = &t->v->hypothesis[i];
        fprintf(t->out, "  %-22s %s%-14s%s ", hypothesis_name(h->id),
                paint(t, status_colour(h->status)), verdict_status_name(h->status),
                paint(t, PLAIN));
        put(t, h->text);
        putc('\n', t->out);
        if (t->o->verbose)
            put_events(t, "", h->evidence, h->evidence_count);
    }
}

/* Where the history ends, a line a thread. */
static void put_ends(const struct text *t) {
    enum { SHOWN = 8 };
    const struct verdict_coverage *c = &t->v->coverage;
    if (c->ended || !c->end || !*c->end)
        return;
    size_t shown = t->o->verbose || c->ends_count <= SHOWN ? c->ends_count : SHOWN;
    fputs("\nEnds: ", t->out);
    put(t, c->end);
    putc('\n', t->out);
    for (size_t i = 0; i < shown; i++) {
        char role[32];
        snprintf(role, sizeof role, "thread %u", c->ends[i].thread);
        put_actor(t, role, &c->ends[i]);
    }
    if (c->ends_count + c->ends_left_out > shown)
        fprintf(t->out, "  and %" PRIu64 " more threads\n",
                c->ends_count - shown + c->ends_left_out);
}

static void put_coverage(const struct text *t) {
    const struct verdict_coverage *c = &t->v->coverage;
    fprintf(t->out,
            "\nSeen: %" PRIu64 " events, %" PRIu64 " copies (%" PRIu64
            " through the safe path), %" PRIu64 " sets, %" PRIu64 " launches (%" PRIu64
            " with known bytes, %" PRIu64 " with known pointers), %" PRIu64 " allocations, %" PRIu64
            " streams, %" PRIu64 " threads; %" PRIu64 " pairs of accesses compared",
            c->events, c->copies, c->copies_safe, c->sets, c->launches, c->launches_exact,
            c->launches_by_args, c->allocations, c->streams, c->threads, c->pairs);
    if (*c->gaps) {
        fputs("\nMissing: ", t->out);
        put(t, c->gaps);
    }
    putc('\n', t->out);
    put_ends(t);
    for (size_t i = 0; i < t->v->remark_count; i++) {
        fputs(i ? "        " : "\nRemark: ", t->out);
        put(t, t->v->remarks[i]);
        putc('\n', t->out);
    }
}

enum rc report_text(FILE *out, const verdict *v, const struct report_text_options *o,
                    struct err *e) {
    static const struct report_text_options plain;
    struct text t = { out, v, o ? o : &plain };
    fputs(paint(&t, overall_colour(v->overall)), out);
    put(&t, v->answer);
    fputs(paint(&t, PLAIN), out);
    putc('\n', out);
    if (v->messenger || v->culprit) {
        putc('\n', out);
        put_actor(&t, "messenger", v->messenger);
        put_actor(&t, "culprit", v->culprit);
    }
    put_findings(&t);
    put_hypotheses(&t);
    put_coverage(&t);
    if (fflush(out) != 0 || ferror(out))
        return err_set(e, RC_IO, "the report cannot be written");
    return RC_OK;
}
