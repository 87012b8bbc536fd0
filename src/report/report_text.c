/* report_text.c - the verdict for a terminal. The first line is the answer; then who reported the
 * failure and who caused it, the findings, and every hypothesis in a line. */
#include <inttypes.h>
#include <string.h>

#include "base/output.h"
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

static const char *word(const struct text *t, enum lang_id id) {
    return lang_text(t->o->lang, id);
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

/* The whole stack, if it was asked for; what "where" names is marked. */
static void put_stack(const struct text *t, const char *title, const struct verdict_stack *s) {
    if (!t->o->stacks || !s->count)
        return;
    fprintf(t->out, "             %s\n", lang_page(t->o->lang, title));
    for (size_t i = 0; i < s->count; i++) {
        const struct verdict_frame *f = &s->frame[i];
        fprintf(t->out, "           %s ", i == s->where ? ">" : " ");
        put(t, f->function ? f->function : "?");
        if (f->line) {
            fprintf(t->out, " %s ", lang_text(t->o->lang, LANG_AT));
            put(t, f->file);
            fprintf(t->out, ":%" PRIu32, f->line);
        }
        fputs(" (", t->out);
        put(t, f->inlined ? lang_page(t->o->lang, "inlined") : f->module);
        if (!f->inlined)
            fprintf(t->out, "+0x%" PRIx64, f->offset);
        fputs(")\n", t->out);
    }
}

static void put_facts(const struct text *t, const struct verdict_actor *a) {
    struct lang_actor fact;
    for (size_t row = 0; lang_actor_next(t->o->lang, a, &row, &fact);) {
        fprintf(t->out, ", %s ", fact.label);
        if (fact.name)
            put(t, fact.name);
        else
            fprintf(t->out, "%" PRId64, fact.number);
    }
}

static void put_actor(const struct text *t, const char *role, const struct verdict_actor *a) {
    fprintf(t->out, "  %-10s ", role);
    if (!a) {
        fputs("-\n", t->out);
        return;
    }
    fputs(paint(t, BOLD), t->out);
    if (a->kernel)
        fprintf(t->out, "%s ", word(t, LANG_KERNEL));
    put(t, a->kernel ? a->kernel : lang_api(t->o->lang, a));
    fputs(paint(t, PLAIN), t->out);
    if (a->argument) {
        fprintf(t->out, ", %s ", word(t, LANG_ARGUMENT));
        put(t, a->argument);
    }
    put_facts(t, a);
    if (a->event != EVENT_NO_SEQ)
        fprintf(t->out, ", %s %" PRIu64, word(t, LANG_TEXT_EVENT), a->event);
    if (a->replay)
        fprintf(t->out, ", %s %" PRIu64, word(t, LANG_REPLAYED), a->replay);
    if (a->stream)
        fprintf(t->out, ", %s %u", word(t, LANG_TEXT_STREAM), a->stream);
    if (a->status_code) {
        fputs(", ", t->out);
        put(t, lang_result(t->o->lang, a));
    }
    if (strcmp(a->site, "-") != 0) {
        fprintf(t->out, ", %s ", word(t, LANG_AT));
        put(t, a->site);
    }
    putc('\n', t->out);
    put_stack(t, "call stack", &a->stack);
}

/* ", allocated by event 4 at main (a.c:12)"; no place where none is known. */
static void put_origin(const struct text *t, const char *how, uint64_t event, const char *site) {
    fprintf(t->out, ", %s %" PRIu64, how, event);
    if (strcmp(site, "-") != 0) {
        fprintf(t->out, " %s ", word(t, LANG_AT));
        put(t, site);
    }
}

static void put_block(const struct text *t, const struct verdict_block *b) {
    char bytes[32];
    fprintf(t->out, "  %-10s 0x%" PRIx64 ", %s", word(t, LANG_TEXT_MEMORY), b->base,
            lang_block_size(t->o->lang, b, bytes, sizeof bytes));
    if (b->tensor) {
        fprintf(t->out, ", %s ", word(t, LANG_TEXT_TENSOR));
        put(t, b->tensor);
    }
    if (b->alloc != EVENT_NO_SEQ)
        put_origin(t, lang_block_made(t->o->lang, b), b->alloc, b->alloc_site);
    if (b->free != EVENT_NO_SEQ)
        put_origin(t, lang_block_gone(t->o->lang, b), b->free, b->free_site);
    putc('\n', t->out);
    put_stack(t, "allocated from", &b->alloc_stack);
    put_stack(t, "freed from", &b->free_stack);
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
    if (f->count > 1) {
        fputs(" (", t->out);
        fprintf(t->out, word(t, LANG_TEXT_TIMES), f->count);
        putc(')', t->out);
    }
    fputs("\n  ", t->out);
    put(t, lang_said(t->o->lang, f->said, f->text));
    putc('\n', t->out);
    if (f->culprit.event != EVENT_NO_SEQ || f->culprit.kernel)
        put_actor(t, word(t, LANG_TEXT_CULPRIT), &f->culprit);
    if (f->other)
        put_actor(t, word(t, LANG_TEXT_WITH), f->other);
    if (f->messenger && f->messenger->event != f->culprit.event)
        put_actor(t, word(t, LANG_TEXT_MESSENGER), f->messenger);
    if (f->block)
        put_block(t, f->block);
    put_events(t, word(t, LANG_TEXT_EVIDENCE), f->evidence, f->evidence_count);
    fprintf(t->out, "  %-10s ", word(t, LANG_TEXT_ADVICE));
    put(t, lang_advice(t->o->lang, f));
    putc('\n', t->out);
}

static void put_findings(const struct text *t) {
    enum { SHOWN = 10 };
    const verdict *v = t->v;
    size_t shown = t->o->verbose || v->finding_count <= SHOWN ? v->finding_count : SHOWN;
    for (size_t i = 0; i < shown; i++)
        put_finding(t, &v->findings[i], i + 1);
    if (v->finding_count > shown || v->findings_left_out) {
        putc('\n', t->out);
        fprintf(t->out, word(t, LANG_TEXT_NOT_SHOWN),
                v->finding_count - shown + v->findings_left_out);
        fprintf(t->out, "%s\n", t->o->verbose ? "" : word(t, LANG_TEXT_VERBOSE));
    }
}

/* ---- hypotheses ------------------------------------------------------------------------------ */

/* Do two hypotheses end the same way for the same reason? */
static bool is_same_line(const struct text *t, int a, int b) {
    const struct verdict_hypothesis *x = &t->v->hypothesis[a], *y = &t->v->hypothesis[b];
    return x->status == y->status && !strcmp(lang_said(t->o->lang, x->said, x->text),
                                             lang_said(t->o->lang, y->said, y->text));
}

/* The names before the last one of hypotheses that share a line, as many per line as fit. */
static void put_name(const struct text *t, const char *name, int *column) {
    enum { WIDTH = 88 };
    int length = (int)strlen(name) + 2;
    if (*column && *column + length > WIDTH) {
        putc('\n', t->out);
        *column = 0;
    }
    fprintf(t->out, "%s%s,", *column ? " " : "  ", name);
    *column += length + !*column;
}

/* Every hypothesis in a line; those that say the same share one. */
static void put_hypotheses(const struct text *t) {
    bool done[HYPOTHESIS_COUNT] = { 0 };
    fprintf(t->out, "\n%s:\n", word(t, LANG_HYPOTHESES));
    for (int i = 0; i < HYPOTHESIS_COUNT; i++) {
        const struct verdict_hypothesis *h = &t->v->hypothesis[i];
        const char *name = hypothesis_name(h->id);
        int column = 0;
        if (done[i])
            continue;
        for (int k = i + 1; k < HYPOTHESIS_COUNT; k++)
            if (is_same_line(t, i, k)) {
                put_name(t, name, &column);
                name = hypothesis_name((enum verdict_hypothesis_id)k);
                done[k] = true;
            }
        fprintf(t->out, "%s  %-22s %s%-14s%s ", column ? "\n" : "", name,
                paint(t, status_colour(h->status)), verdict_status_name(h->status),
                paint(t, PLAIN));
        put(t, lang_said(t->o->lang, h->said, h->text));
        putc('\n', t->out);
        if (t->o->verbose)
            put_events(t, "", h->evidence, h->evidence_count);
    }
}

/* Where the history ends, one line per thread. */
static void put_ends(const struct text *t) {
    enum { SHOWN = 8 };
    const struct verdict_coverage *c = &t->v->coverage;
    if (c->ended || !c->end || !*c->end)
        return;
    size_t shown = t->o->verbose || c->ends_count <= SHOWN ? c->ends_count : SHOWN;
    fprintf(t->out, "\n%s: ", word(t, LANG_TEXT_ENDS));
    put(t, lang_said(t->o->lang, c->end_said, c->end));
    putc('\n', t->out);
    for (size_t i = 0; i < shown; i++) {
        char role[32];
        snprintf(role, sizeof role, "%s %u", word(t, LANG_TEXT_THREAD), c->ends[i].thread);
        put_actor(t, role, &c->ends[i]);
    }
    if (c->ends_count + c->ends_left_out > shown) {
        fputs("  ", t->out);
        fprintf(t->out, word(t, LANG_TEXT_MORE_THREADS), c->ends_count - shown + c->ends_left_out);
        putc('\n', t->out);
    }
}

static void put_coverage(const struct text *t) {
    const struct verdict_coverage *c = &t->v->coverage;
    putc('\n', t->out);
    LANG_COUNTS(t->out, t->o->lang, SEEN, c->events, c->copies, c->copies_safe, c->sets,
                c->launches, c->launches_exact, c->launches_by_args, c->allocations, c->streams,
                c->threads, c->pairs);
    for (size_t i = 0; i < LANG_COVERAGE_COUNT; i++)
        if (lang_coverage[i].where == LANG_COVERAGE_ALL)
            fprintf(t->out, "\n%s: %" PRIu64, lang_coverage[i].label[t->o->lang],
                    lang_coverage_value(c, i));
    if (*c->gaps) {
        fprintf(t->out, "\n%s: ", word(t, LANG_TEXT_MISSING));
        put(t, lang_said(t->o->lang, c->gaps_said, c->gaps));
    }
    putc('\n', t->out);
    put_ends(t);
    for (size_t i = 0; i < t->v->remark_count; i++) {
        if (i)
            fputs("        ", t->out);
        else
            fprintf(t->out, "\n%s: ", word(t, LANG_TEXT_REMARK));
        put(t, lang_said(t->o->lang, t->v->remarks_said ? t->v->remarks_said[i] : NULL,
                         t->v->remarks[i]));
        putc('\n', t->out);
    }
}

static void put_fidelity(const struct text *t) {
    const struct verdict_fidelity *f = &t->v->fidelity;
    if (f->lines)
        fprintf(t->out, "\n%s:\n", word(t, LANG_FIDELITY));
    for (size_t i = 0; i < f->lines; i++) {
        fputs("  ", t->out);
        put(t, lang_said(t->o->lang, f->said[i], f->text[i]));
        putc('\n', t->out);
    }
}

enum rc report_text(FILE *out, const verdict *v, const struct report_text_options *o,
                    struct err *e) {
    static const struct report_text_options plain;
    struct text t = { out, v, o ? o : &plain };
    fputs(paint(&t, overall_colour(v->overall)), out);
    put(&t, lang_said(t.o->lang, v->answer_said, v->answer));
    fputs(paint(&t, PLAIN), out);
    putc('\n', out);
    if (v->messenger || v->culprit) {
        putc('\n', out);
        put_actor(&t, word(&t, LANG_TEXT_MESSENGER), v->messenger);
        put_actor(&t, word(&t, LANG_TEXT_CULPRIT), v->culprit);
    }
    put_findings(&t);
    put_hypotheses(&t);
    put_coverage(&t);
    put_fidelity(&t);
    return output_flush(out, "the report", e);
}
