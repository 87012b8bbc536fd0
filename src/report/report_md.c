#include "report/report_md.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/output.h"
#include "record/format.h"
#include "report/md.h"
#include "report/report_excerpt.h"

struct page {
    FILE *out;
    const verdict *v;
    const reader *r; /* may be NULL */
    const struct report_md_options *o;
    enum lang lang;
};

static const char *text(const struct page *p, enum lang_id id) {
    return lang_text(p->lang, id);
}

static void heading(const struct page *p, const char *level, enum lang_id id) {
    fprintf(p->out, "\n%s %s\n\n", level, text(p, id));
}

static void section(const struct page *p, enum lang_id id) {
    fputs("\n---\n", p->out);
    heading(p, "##", id);
}

/* ---- actors -------------------------------------------------------------------------------- */

/* "kernel `gemm_k` argument `w`" or "`hipMemcpy`". */
static void actor_name(const struct page *p, const struct verdict_actor *a) {
    if (a->kernel) {
        fprintf(p->out, "%s ", text(p, LANG_KERNEL));
        md_code_cell(p->out, a->kernel);
    } else {
        md_code_cell(p->out, lang_api(p->lang, a));
    }
    if (a->argument) {
        fprintf(p->out, ", %s ", text(p, LANG_ARGUMENT));
        md_code_cell(p->out, a->argument);
    }
}

static void event_number(const struct page *p, uint64_t event) {
    if (event == EVENT_NO_SEQ)
        putc('?', p->out);
    else
        fprintf(p->out, "\\#%" PRIu64, event);
}

typedef void actor_cell(const struct page *p, const struct verdict_actor *a);

static void cell_what(const struct page *p, const struct verdict_actor *a) {
    actor_name(p, a);
}

static void cell_event(const struct page *p, const struct verdict_actor *a) {
    event_number(p, a->event);
    fprintf(p->out, " (%.6f s)", (double)a->t_ns / 1e9);
    if (a->replay)
        fprintf(p->out, ", %s \\#%" PRIu64, text(p, LANG_REPLAYED), a->replay);
}

static void cell_bytes(const struct page *p, const struct verdict_actor *a) {
    char bytes[32];
    if (a->len)
        fprintf(p->out, "%s %s %s `0x%" PRIx64 "`", lang_access(p->lang, a->access),
                sentence_bytes(a->len, bytes, sizeof bytes), text(p, LANG_AT), a->address);
    else if (a->address)
        fprintf(p->out, "%s %s `0x%" PRIx64 "`", lang_access(p->lang, a->access), text(p, LANG_AT),
                a->address);
    else
        putc('-', p->out);
}

static void cell_status(const struct page *p, const struct verdict_actor *a) {
    const char *result = lang_result(p->lang, a);
    if (*result)
        md_code_cell(p->out, result);
    else
        putc('-', p->out);
}

static void cell_site(const struct page *p, const struct verdict_actor *a) {
    md_code_cell(p->out, a->site);
}

static void cell_stream(const struct page *p, const struct verdict_actor *a) {
    fprintf(p->out, a->stream ? "s%u" : "-", a->stream);
    fprintf(p->out, a->thread ? ", t%u" : ", -", a->thread);
}

static void actor_row(const struct page *p, enum lang_id id, enum lang_id second, actor_cell *cell,
                      const struct verdict_actor *const *actors, size_t count) {
    fprintf(p->out, "| %s", text(p, id));
    if (second != id)
        fprintf(p->out, ", %s", text(p, second));
    for (size_t i = 0; i < count; i++) {
        fputs(" | ", p->out);
        cell(p, actors[i]);
    }
    fputs(" |\n", p->out);
}

/* A row of actor.def, if one of the operations has that fact. */
static void fact_row(const struct page *p, size_t row, const struct verdict_actor *const *actors,
                     size_t count) {
    struct lang_actor fact;
    bool any = false;
    for (size_t i = 0; i < count; i++)
        any |= lang_actor(p->lang, actors[i], row, &fact);
    if (!any)
        return;
    fprintf(p->out, "| %c%s", toupper((unsigned char)*fact.label), fact.label + 1);
    for (size_t i = 0; i < count; i++) {
        fputs(" | ", p->out);
        if (!lang_actor(p->lang, actors[i], row, &fact))
            putc('-', p->out);
        else if (fact.name)
            md_code_cell(p->out, fact.name);
        else
            fprintf(p->out, "%" PRId64, fact.number);
    }
    fputs(" |\n", p->out);
}

/* One column per operation; NULL ones are left out. */
static void actor_table(const struct page *p, const struct verdict_actor *messenger,
                        const struct verdict_actor *culprit, const struct verdict_actor *other) {
    const struct verdict_actor *all[3] = { messenger, culprit, other }, *a[3];
    const enum lang_id names[3] = { LANG_MESSENGER, LANG_CULPRIT, LANG_COLLIDES };
    size_t n = 0;
    fputs("\n| ", p->out);
    for (size_t i = 0; i < 3; i++)
        if (all[i]) {
            fprintf(p->out, "| %s ", text(p, names[i]));
            a[n++] = all[i];
        }
    fputs("|\n|---", p->out);
    for (size_t i = 0; i < n; i++)
        fputs("|---", p->out);
    fputs("|\n", p->out);
    actor_row(p, LANG_WHAT, LANG_WHAT, cell_what, a, n);
    for (size_t row = 0; row < LANG_ACTOR_COUNT; row++)
        fact_row(p, row, a, n);
    actor_row(p, LANG_BYTES, LANG_BYTES, cell_bytes, a, n);
    actor_row(p, LANG_RESULT, LANG_RESULT, cell_status, a, n);
    actor_row(p, LANG_SITE, LANG_SITE, cell_site, a, n);
    actor_row(p, LANG_EVENT, LANG_EVENT, cell_event, a, n);
    actor_row(p, LANG_STREAM, LANG_THREAD, cell_stream, a, n);
}

/* ---- sentences ----------------------------------------------------------------------------- */

static const struct verdict_finding *main_finding(const verdict *v) {
    return v->root ? v->root : v->finding_count ? v->findings : NULL;
}

/* The first line. */
static void answer(const struct page *p) {
    md_text(p->out, lang_said(p->lang, p->v->answer_said, p->v->answer));
}

/* ---- head ---------------------------------------------------------------------------------- */

static void head_line(const struct page *p, enum lang_id id, const char *value) {
    if (!*value)
        return;
    fprintf(p->out, "**%s:** ", text(p, id));
    md_code(p->out, value);
    fputs("  \n", p->out);
}

static void head_date(const struct page *p) {
    time_t seconds = (time_t)(p->v->provenance.start_wall_us / 1000000);
    struct tm tm;
    char day[64];
    if (seconds && gmtime_r(&seconds, &tm) &&
        strftime(day, sizeof day, "%Y-%m-%d %H:%M:%S UTC", &tm))
        fprintf(p->out, "**%s:** %s  \n", text(p, LANG_DATE), day);
}

static const char *fact(const verdict *v, const char *key) {
    for (size_t i = 0; i < v->provenance.fact_count; i++)
        if (!strcmp(v->provenance.facts[i].key, key))
            return v->provenance.facts[i].value;
    return "";
}

static void head(const struct page *p) {
    const struct verdict_provenance *from = &p->v->provenance;
    fputs("# ", p->out);
    if (p->o->title)
        md_text(p->out, p->o->title);
    else
        answer(p);
    fputs("\n\n", p->out);
    fprintf(p->out, "**%s:** %s (%s)  \n", text(p, LANG_STATUS),
            verdict_overall_name(p->v->overall), lang_overall(p->lang, p->v->overall));
    head_date(p);
    if (*from->commit) {
        fprintf(p->out, "**%s:** ", text(p, LANG_COMMIT));
        md_code(p->out, from->commit);
        fprintf(p->out, "%s%s%s  \n", from->dirty ? " (" : "",
                from->dirty ? text(p, LANG_CHANGED) : "", from->dirty ? ")" : "");
    }
    head_line(p, LANG_MODEL,
              *fact(p->v, "model.path") ? fact(p->v, "model.path") : from->model_hash);
    head_line(p, LANG_COMMAND, from->command);
    head_line(p, LANG_RECORDING, p->v->recording);
}

/* ---- summary ------------------------------------------------------------------------------- */

static void summary(const struct page *p) {
    const verdict *v = p->v;
    const struct verdict_finding *f = main_finding(v);
    section(p, LANG_SUMMARY);
    fputs("**", p->out);
    answer(p);
    fputs("**\n", p->out);
    if (v->messenger)
        fprintf(p->out, "\n- **%s** (%s): ", text(p, LANG_MESSENGER), text(p, LANG_MESSENGER_IS));
    if (v->messenger)
        actor_name(p, v->messenger);
    if (v->culprit)
        fprintf(p->out, "\n- **%s** (%s): ", text(p, LANG_CULPRIT), text(p, LANG_CULPRIT_IS));
    if (v->culprit)
        actor_name(p, v->culprit);
    if (v->messenger || v->culprit) {
        putc('\n', p->out);
        actor_table(p, v->messenger, v->culprit, f ? f->other : NULL);
    }
}

/* ---- setup --------------------------------------------------------------------------------- */

static bool begins_with(const char *word, const char *prefix) {
    return !strncmp(word, prefix, strlen(prefix));
}

static enum lang_id setup_part(const char *key) {
    static const char *const hardware[] = { "device.", "driver.", "system.machine", "system.host",
                                            "cpu." };
    static const char *const software[] = { "greta.",  "program.", "runtime.",
                                            "system.", "model.",   "run." };
    if (begins_with(key, "env."))
        return LANG_ENVIRONMENT;
    for (size_t i = 0; i < sizeof hardware / sizeof *hardware; i++)
        if (begins_with(key, hardware[i]))
            return LANG_HARDWARE;
    for (size_t i = 0; i < sizeof software / sizeof *software; i++)
        if (begins_with(key, software[i]))
            return LANG_SOFTWARE;
    return LANG_OTHER;
}

static void setup_table(const struct page *p, enum lang_id part) {
    const struct verdict_provenance *from = &p->v->provenance;
    bool any = false;
    for (size_t i = 0; i < from->fact_count; i++) {
        if (setup_part(from->facts[i].key) != part)
            continue;
        if (!any) {
            heading(p, "###", part);
            fprintf(p->out, "| %s | %s |\n|---|---|\n", text(p, LANG_FACT), text(p, LANG_VALUE));
        }
        any = true;
        fputs("| ", p->out);
        md_text(p->out, from->facts[i].key);
        fputs(" | ", p->out);
        md_code_cell(p->out, from->facts[i].value);
        fputs(" |\n", p->out);
    }
}

static const struct lang_variable *known_variable(const char *name) {
    const struct lang_variable *v = NULL;
    for (unsigned i = 0; (v = lang_variable(i)) && strcmp(v->name, name) != 0; i++)
        ;
    return v;
}

static void variable_row(const struct page *p, const char *name, const char *value,
                         const struct lang_variable *known) {
    fputs("| ", p->out);
    md_code_cell(p->out, name);
    fputs(" | ", p->out);
    if (value)
        md_code_cell(p->out, value);
    else if (known && *known->fallback)
        fprintf(p->out, "%s (%s)", text(p, LANG_NOT_SET), known->fallback);
    else
        fputs(text(p, LANG_NOT_SET), p->out);
    fprintf(p->out, " | %s |\n", known ? known->meaning[p->lang] : "");
}

static void environment(const struct page *p) {
    const struct verdict_provenance *from = &p->v->provenance;
    const struct lang_variable *known;
    heading(p, "###", LANG_ENVIRONMENT);
    fprintf(p->out, "| %s | %s | %s |\n|---|---|---|\n", text(p, LANG_VARIABLE),
            text(p, LANG_VALUE), text(p, LANG_MEANING));
    for (unsigned i = 0; (known = lang_variable(i)) != NULL; i++) {
        char key[128];
        const char *value = NULL;
        snprintf(key, sizeof key, "env.%s", known->name);
        for (size_t n = 0; n < from->fact_count && !value; n++)
            if (!strcmp(from->facts[n].key, key))
                value = from->facts[n].value;
        variable_row(p, known->name, value, known);
    }
    for (size_t i = 0; i < from->fact_count; i++) {
        const char *key = from->facts[i].key;
        if (begins_with(key, "env.") && !known_variable(key + 4))
            variable_row(p, key + 4, from->facts[i].value, NULL);
    }
}

static void setup(const struct page *p) {
    section(p, LANG_SETUP);
    fprintf(p->out, "%s: %016" PRIx64 ", %s: %.6f s\n", text(p, LANG_RUN), p->v->provenance.run_id,
            text(p, LANG_DURATION), (double)p->v->provenance.duration_ns / 1e9);
    setup_table(p, LANG_HARDWARE);
    setup_table(p, LANG_SOFTWARE);
    setup_table(p, LANG_OTHER);
    environment(p);
}

/* ---- matrix -------------------------------------------------------------------------------- */

static void matrix(const struct page *p) {
    uint64_t iterations = 0, errors = 0;
    if (!p->o->matrix)
        return;
    section(p, LANG_MATRIX);
    fprintf(p->out, "| %s | %s | %s | %s | %s | %s |\n|---|---|---|---|---|---|\n",
            text(p, LANG_TEST), text(p, LANG_MODE), text(p, LANG_SETTINGS),
            text(p, LANG_ITERATIONS), text(p, LANG_ERRORS), text(p, LANG_RESULT));
    for (size_t i = 0; i < p->o->matrix_rows; i++) {
        const struct report_matrix_row *row = &p->o->matrix[i];
        fputs("| ", p->out);
        md_text(p->out, row->test);
        fputs(" | ", p->out);
        md_text(p->out, row->mode);
        fputs(" | ", p->out);
        md_code_cell(p->out, row->settings);
        fprintf(p->out, " | %" PRIu64 " | %" PRIu64 " | ", row->iterations, row->errors);
        md_text(p->out, row->result);
        fputs(" |\n", p->out);
        iterations += row->iterations;
        errors += row->errors;
    }
    fprintf(p->out, "| **%s** | - | - | **%" PRIu64 "** | **%" PRIu64 "** | **%s** |\n",
            text(p, LANG_TOTAL), iterations, errors, verdict_overall_name(p->v->overall));
    if (p->o->after_matrix)
        p->o->after_matrix(p->out, p->o->user);
}

/* ---- evidence ------------------------------------------------------------------------------ */

static void fidelity(const struct page *p) {
    const struct verdict_fidelity *f = &p->v->fidelity;
    heading(p, "###", LANG_FIDELITY);
    for (size_t i = 0; i < f->lines; i++) {
        fputs("- ", p->out);
        md_text(p->out, lang_said(p->lang, f->said[i], f->text[i]));
        putc('\n', p->out);
    }
}

static void coverage(const struct page *p) {
    const struct verdict_coverage *c = &p->v->coverage;
    FILE *out = p->out;
    heading(p, "###", LANG_COVERAGE);
    fputs("- ", out);
    LANG_COUNTS(out, p->lang, SHOWS_EVENTS, c->events, c->copies, c->sets, c->launches,
                c->allocations, c->frees, c->streams, c->threads, c->processes);
    fputs("\n- ", out);
    LANG_COUNTS(out, p->lang, SHOWS_SAFE, c->copies_safe, c->copies, c->copies_d2h_safe,
                c->copies_d2h, c->copies_refused);
    if (c->launches) {
        fputs("\n- ", out);
        fprintf(out, text(p, LANG_COVERAGE_LAUNCHES), c->launches_exact, c->launches_by_args,
                c->launches_unknown);
    }
    fputs("\n- ", out);
    LANG_COUNTS(out, p->lang, SHOWS_PAIRS, c->pairs);
    fputs("\n- ", out);
    LANG_COUNTS(out, p->lang, SHOWS_FAILED, c->calls_failed);
    for (size_t i = 0; i < LANG_COVERAGE_COUNT; i++)
        if (lang_coverage[i].where == LANG_COVERAGE_ALL)
            fprintf(out, "\n- %s: %" PRIu64, lang_coverage[i].label[p->lang],
                    lang_coverage_value(c, i));
    fputs("\n- ", out);
    if (c->ended)
        fputs(text(p, LANG_COVERAGE_ENDED), out);
    else
        md_text(out, lang_said(p->lang, c->end_said, c->end ? c->end : "?"));
    for (size_t i = 0; i < c->pending_count; i++) {
        fprintf(out, "\n- %s ", text(p, LANG_COVERAGE_PENDING));
        actor_name(p, &c->pending[i]);
        putc(' ', out);
        event_number(p, c->pending[i].event);
    }
    fputs("\n- ", out);
    if (c->complete) {
        fputs(text(p, LANG_COVERAGE_WHOLE), out);
    } else {
        md_text(out, lang_said(p->lang, c->gaps_said, c->gaps));
    }
    putc('\n', out);
}

/* An event and its place, where that is known. */
static void origin(const struct page *p, uint64_t event, const char *site) {
    event_number(p, event);
    if (strcmp(site, "-") != 0) {
        fprintf(p->out, " %s ", text(p, LANG_IN));
        md_code(p->out, site);
    }
}

static void block_line(const struct page *p, const struct verdict_block *b) {
    FILE *out = p->out;
    char bytes[32];
    fprintf(out, "\n%s `0x%" PRIx64 "`, %s, %s ", text(p, LANG_BLOCK), b->base,
            lang_block_size(p->lang, b, bytes, sizeof bytes), lang_block_made(p->lang, b));
    origin(p, b->alloc, b->alloc_site);
    if (b->free != EVENT_NO_SEQ) {
        fprintf(out, ", %s ", lang_block_gone(p->lang, b));
        origin(p, b->free, b->free_site);
    }
    if (b->tensor) {
        fprintf(out, "; %s ", text(p, LANG_TENSOR));
        md_code(out, b->tensor);
        fprintf(out, " `0x%" PRIx64 "`, %s", b->tensor_at,
                sentence_bytes(b->tensor_bytes, bytes, sizeof bytes));
    }
    putc('\n', out);
}

/* The whole stack, folded; the frame that the site names is in bold. */
static void stack(const struct page *p, const char *title, const char *whose,
                  const struct verdict_stack *s) {
    FILE *out = p->out;
    if (!s->count)
        return;
    fprintf(out, "\n<details><summary>%s%s%s</summary>\n\n", lang_page(p->lang, title),
            *whose ? ": " : "", whose);
    for (size_t i = 0; i < s->count; i++) {
        const struct verdict_frame *f = &s->frame[i];
        const char *bold = i == s->where ? "**" : "";
        char place[32];
        fprintf(out, "1. %s", bold);
        md_code(out, f->function ? f->function : "?");
        fputs(bold, out);
        if (f->line) {
            putc(' ', out);
            md_text(out, f->file);
            fprintf(out, ":%" PRIu32, f->line);
        }
        snprintf(place, sizeof place, "+0x%" PRIx64, f->offset);
        fputs(", ", out);
        md_text(out, f->inlined ? lang_page(p->lang, "inlined") : f->module);
        md_text(out, f->inlined ? "" : place);
        putc('\n', out);
    }
    fputs("\n</details>\n", out);
}

static void finding_stacks(const struct page *p, const struct verdict_finding *f) {
    stack(p, "call stack", text(p, LANG_CULPRIT), &f->culprit.stack);
    if (f->other)
        stack(p, "call stack", text(p, LANG_COLLIDES), &f->other->stack);
    if (f->messenger)
        stack(p, "call stack", text(p, LANG_MESSENGER), &f->messenger->stack);
    if (f->block) {
        stack(p, "allocated from", "", &f->block->alloc_stack);
        stack(p, "freed from", "", &f->block->free_stack);
    }
}

static void evidence_numbers(const struct page *p, const uint64_t *events, size_t n) {
    for (size_t i = 0; i < n; i++)
        fprintf(p->out, "%s\\#%" PRIu64, i ? " " : "", events[i]);
}

static void finding(const struct page *p, const struct verdict_finding *f, size_t number) {
    FILE *out = p->out;
    fprintf(out, "\n#### %s %zu: %s\n\n", text(p, LANG_FINDING), number,
            hypothesis_name(f->hypothesis));
    md_text(out, lang_said(p->lang, f->said, f->text));
    putc('\n', out);
    if (f->count > 1) {
        putc('\n', out);
        fprintf(out, text(p, LANG_TIMES), f->count);
        fputs(".\n", out);
    }
    if (f->also) {
        fprintf(out, "\n%s:", text(p, LANG_ALSO));
        for (int id = 0; id < HYPOTHESIS_COUNT; id++)
            if (f->also >> id & 1)
                fprintf(out, " %s", hypothesis_name((enum verdict_hypothesis_id)id));
        putc('\n', out);
    }
    actor_table(p, f->messenger, &f->culprit, f->other);
    if (f->block)
        block_line(p, f->block);
    finding_stacks(p, f);
    if (f->evidence_count) {
        fprintf(out, "\n%s: ", text(p, LANG_EVIDENCE));
        evidence_numbers(p, f->evidence, f->evidence_count < 16 ? f->evidence_count : 16);
        putc('\n', out);
    }
}

enum { FINDINGS_SHOWN = 20 };

static void evidence(const struct page *p) {
    const verdict *v = p->v;
    section(p, LANG_EVIDENCE);
    if (p->r && v->coverage.events) {
        heading(p, "###", v->culprit || v->messenger ? LANG_EXCERPT : LANG_EXCERPT_PLAIN);
        fputs("```\n", p->out);
        report_excerpt(p->out, p->r, v);
        fprintf(p->out, "```\n\n%s\n", text(p, LANG_EXCERPT_KEY));
    }
    if (v->finding_count)
        heading(p, "###", LANG_FINDINGS);
    size_t shown = v->finding_count < FINDINGS_SHOWN ? v->finding_count : FINDINGS_SHOWN;
    for (size_t i = 0; i < shown; i++)
        finding(p, &v->findings[i], i + 1);
    if (v->finding_count - shown + v->findings_left_out) {
        putc('\n', p->out);
        LANG_COUNTS(p->out, p->lang, LEFT_OUT, v->finding_count - shown + v->findings_left_out);
        putc('\n', p->out);
    }
    coverage(p);
    fidelity(p);
    if (v->remark_count)
        heading(p, "###", LANG_REMARKS);
    for (size_t i = 0; i < v->remark_count; i++) {
        fputs("- ", p->out);
        md_text(p->out,
                lang_said(p->lang, v->remarks_said ? v->remarks_said[i] : NULL, v->remarks[i]));
        putc('\n', p->out);
    }
}

/* ---- hypotheses ---------------------------------------------------------------------------- */

static void hypotheses(const struct page *p) {
    section(p, LANG_HYPOTHESES);
    fprintf(p->out, "| %s | %s | %s | %s |\n|---|---|---|---|\n", text(p, LANG_HYPOTHESIS),
            text(p, LANG_STATUS), text(p, LANG_CHECKED), text(p, LANG_PROOF));
    for (int i = 0; i < HYPOTHESIS_COUNT; i++) {
        const struct verdict_hypothesis *h = &p->v->hypothesis[i];
        fprintf(p->out, "| %s<br>%s | **%s** | %" PRIu64 " | ", hypothesis_name(h->id),
                hypothesis_words(p->lang, h->id)->question, verdict_status_name(h->status),
                h->checked);
        md_text(p->out, lang_said(p->lang, h->said, h->text));
        if (h->evidence_count) {
            fputs(" (", p->out);
            evidence_numbers(p, h->evidence, h->evidence_count < 8 ? h->evidence_count : 8);
            putc(')', p->out);
        }
        fputs(" |\n", p->out);
    }
}

/* ---- verdict and next steps ---------------------------------------------------------------- */

static void conclusion(const struct page *p) {
    unsigned by_status[4] = { 0 };
    for (int i = 0; i < HYPOTHESIS_COUNT; i++)
        by_status[p->v->hypothesis[i].status & 3]++;
    section(p, LANG_VERDICT);
    fprintf(p->out, "### %s: %s\n\n", text(p, LANG_STATUS), verdict_overall_name(p->v->overall));
    answer(p);
    fputs("\n\n", p->out);
    LANG_COUNTS(p->out, p->lang, SHOWS_STATUSES, HYPOTHESIS_COUNT,
                by_status[VERDICT_STATUS_CONFIRMED], by_status[VERDICT_STATUS_RULED_OUT],
                by_status[VERDICT_STATUS_INCONCLUSIVE], by_status[VERDICT_STATUS_NOT_APPLICABLE]);
    putc('\n', p->out);
}

static void step(const struct page *p, unsigned *number, const char *words, bool plain) {
    fprintf(p->out, "%u. ", ++*number);
    if (plain)
        md_text(p->out, words);
    else
        fputs(words, p->out);
    putc('\n', p->out);
}

/* The advice of each finding, once. */
static void advice_steps(const struct page *p, unsigned *number) {
    const verdict *v = p->v;
    size_t n = v->finding_count < FINDINGS_SHOWN ? v->finding_count : FINDINGS_SHOWN;
    for (size_t i = 0; i < n; i++) {
        const struct verdict_finding *f = &v->findings[i];
        const char *advice = lang_advice(p->lang, f);
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++)
            seen = !strcmp(lang_advice(p->lang, &v->findings[k]), advice);
        if (!seen)
            step(p, number, advice, true);
    }
}

static void next_steps(const struct page *p) {
    const verdict *v = p->v;
    const struct verdict_coverage *c = &v->coverage;
    unsigned n = 0;
    section(p, LANG_NEXT_STEPS);
    advice_steps(p, &n);
    if (v->finding_count)
        step(p, &n, text(p, LANG_NEXT_REPEAT), false);
    if (v->overall == VERDICT_NOT_REPRODUCED)
        step(p, &n, text(p, LANG_NEXT_MATRIX), false);
    if (c->overwritten)
        step(p, &n, text(p, LANG_NEXT_RING), false);
    if (c->lost)
        step(p, &n, text(p, LANG_NEXT_ROOM), false);
    if (c->launches_unknown)
        step(p, &n, text(p, LANG_NEXT_SOFT), false);
    if (!c->ended)
        step(p, &n, text(p, LANG_NEXT_END), false);
    if (c->copies_d2h > c->copies_d2h_safe) {
        fprintf(p->out, "%u. ", ++n);
        LANG_COUNTS(p->out, p->lang, STEP_SAFE, c->copies_d2h - c->copies_d2h_safe);
        putc('\n', p->out);
    }
    if (!n)
        step(p, &n, text(p, LANG_NEXT_NOTHING), false);
}

enum rc report_md(FILE *out, const verdict *v, const reader *r, const struct report_md_options *o,
                  struct err *e) {
    static const struct report_md_options usual;
    struct page p = { out, v, r, o ? o : &usual, o ? o->lang : LANG_EN };
    head(&p);
    summary(&p);
    setup(&p);
    matrix(&p);
    evidence(&p);
    hypotheses(&p);
    conclusion(&p);
    next_steps(&p);
    return output_flush(out, "the Markdown report", e);
}
