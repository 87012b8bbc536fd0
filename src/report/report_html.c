#include "report/report_html.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/output.h"
#include "report/lang.h"
#include "report/report_html_data.h"

/* The files of html/, as they are. GRETA_HTML: their folder, from the build. */
#define EMBED(name, file)                                                                          \
    __asm__(".section .rodata\n" #name "_begin:\n.incbin \"" GRETA_HTML "/" file "\"\n" #name      \
            "_end:\n.byte 0\n.previous\n");                                                        \
    extern const char name##_begin[] __attribute__((visibility("hidden")));                        \
    extern const char name##_end[] __attribute__((visibility("hidden")))

EMBED(html_page, "page.html");
EMBED(html_css, "page.css");
EMBED(html_data, "data.js");
EMBED(html_timeline, "timeline.js");
EMBED(html_map, "map.js");
EMBED(html_list, "list.js");
EMBED(html_main, "main.js");

#define PUT(out, name) fwrite(name##_begin, 1, (size_t)(name##_end - name##_begin), out)

struct page {
    FILE *out;
    const verdict *v;
    enum lang lang;
    const char *data; /* JSON */
    char nonce[32];   /* of the content security policy */
};

static const char *word(const struct page *p, const char *english) {
    return lang_page(p->lang, english);
}

/* ---- text ---------------------------------------------------------------------------------- */

/* Text of any origin, in elements and in quoted attributes. */
static void put_text(FILE *out, const char *text) {
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        switch (c) {
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        case '\'':
            fputs("&#39;", out);
            break;
        default:
            putc(c < ' ' || c == 127 ? ' ' : c, out);
        }
    }
}

static void put_tag(FILE *out, const char *tag, const char *text) {
    fprintf(out, "<%s>", tag);
    put_text(out, text);
    fprintf(out, "</%.*s>", (int)strcspn(tag, " "), tag);
}

static void put_row(FILE *out, const char *name, const char *value) {
    fputs("<tr>", out);
    put_tag(out, "th scope=row", name);
    put_tag(out, "td", value);
    fputs("</tr>\n", out);
}

static void put_row_number(FILE *out, const char *name, uint64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    put_row(out, name, text);
}

static void put_event(FILE *out, uint64_t event) {
    if (event == EVENT_NO_SEQ)
        putc('?', out);
    else
        fprintf(out, "<a href=\"#event-%" PRIu64 "\">#%" PRIu64 "</a>", event, event);
}

/* ---- head ---------------------------------------------------------------------------------- */

static const char *overall_class(enum verdict_overall overall) {
    switch (overall) {
    case VERDICT_CLEAN:
    case VERDICT_NOT_REPRODUCED:
        return "good";
    case VERDICT_INCONCLUSIVE:
        return "unsure";
    default:
        return "bad";
    }
}

static void put_title(const struct page *p) {
    put_text(p->out, lang_said(p->lang, p->v->answer_said, p->v->answer));
}

static void put_date(FILE *out, uint64_t us) {
    time_t seconds = (time_t)(us / 1000000);
    struct tm tm;
    char day[64];
    if (seconds && gmtime_r(&seconds, &tm) &&
        strftime(day, sizeof day, "%Y-%m-%d %H:%M:%S UTC", &tm))
        put_tag(out, "span", day);
}

static void put_head(const struct page *p) {
    const struct verdict_provenance *from = &p->v->provenance;
    FILE *out = p->out;
    fprintf(out, "<p class=\"badge %s\">%s</p>\n", overall_class(p->v->overall),
            verdict_overall_name(p->v->overall));
    put_tag(out, "h1", lang_said(p->lang, p->v->answer_said, p->v->answer));
    fputs("\n<p class=\"run\">", out);
    put_date(out, from->start_wall_us);
    if (*from->commit) {
        char commit[16];
        snprintf(commit, sizeof commit, "%.12s", from->commit);
        fputs("<span>commit <code>", out);
        put_text(out, commit);
        fprintf(out, "</code> %s</span>", from->dirty ? word(p, "with changes") : "");
    }
    if (*from->command)
        put_tag(out, "code", from->command);
    if (*p->v->recording) {
        fprintf(out, "<span>%s ", word(p, "recording"));
        put_tag(out, "code", p->v->recording);
        fputs("</span>", out);
    }
    fputs("</p>\n", out);
}

/* ---- actors -------------------------------------------------------------------------------- */

static void put_actor_name(const struct page *p, const struct verdict_actor *a) {
    FILE *out = p->out;
    if (a->kernel) {
        fprintf(out, "%s ", lang_text(p->lang, LANG_KERNEL));
        put_tag(out, "code", a->kernel);
    } else {
        put_tag(out, "code", lang_api(p->lang, a));
    }
    if (a->argument) {
        fprintf(out, ", %s ", lang_text(p->lang, LANG_ARGUMENT));
        put_tag(out, "code", a->argument);
    }
}

/* The whole stack, folded; the frame that the site names is marked. */
static void put_stack(const struct page *p, const char *title, const struct verdict_stack *s) {
    FILE *out = p->out;
    char text[32];
    if (!s->count)
        return;
    fprintf(out, "<details class=\"stack\"><summary>%s</summary><ol>", word(p, title));
    for (size_t i = 0; i < s->count; i++) {
        const struct verdict_frame *f = &s->frame[i];
        fputs(i == s->where ? "<li class=\"where\">" : "<li>", out);
        put_tag(out, "code", f->function ? f->function : "?");
        if (f->line) {
            putc(' ', out);
            put_tag(out, "span", f->file);
            fprintf(out, ":%" PRIu32, f->line);
        }
        snprintf(text, sizeof text, "+0x%" PRIx64, f->offset);
        fputs(" <small>", out);
        put_tag(out, "span", f->inlined ? word(p, "inlined") : f->module);
        fprintf(out, "%s</small></li>", f->inlined ? "" : text);
    }
    fputs("</ol></details>", out);
}

/* What it did with which bytes. */
static void put_bytes(const struct page *p, const struct verdict_actor *a) {
    char text[128], bytes[32];
    if (!a->len && !a->address)
        return;
    snprintf(text, sizeof text, "%s %s%s%s 0x%" PRIx64, lang_access(p->lang, a->access),
             a->len ? sentence_bytes(a->len, bytes, sizeof bytes) : "", a->len ? " " : "",
             lang_text(p->lang, LANG_AT), a->address);
    put_row(p->out, word(p, "bytes"), text);
}

static void put_actor_rows(const struct page *p, const struct verdict_actor *a) {
    FILE *out = p->out;
    char text[128];
    struct lang_actor fact;
    for (size_t row = 0; lang_actor_next(p->lang, a, &row, &fact);) {
        if (fact.name)
            put_row(out, fact.label, fact.name);
        else
            put_row_number(out, fact.label, (uint64_t)fact.number);
    }
    put_bytes(p, a);
    const char *result = lang_result(p->lang, a);
    if (*result)
        put_row(out, word(p, "result"), result);
    put_row(out, word(p, "called from"), a->site);
    if (a->stream) {
        snprintf(text, sizeof text, "s%u", a->stream);
        put_row(out, word(p, "stream"), text);
    }
    snprintf(text, sizeof text, "t%u", a->thread);
    put_row(out, word(p, "thread"), text);
    if (a->replay)
        put_row_number(out, lang_text(p->lang, LANG_REPLAYED), a->replay);
    snprintf(text, sizeof text, "%.6f s", (double)a->t_ns / 1e9);
    put_row(out, word(p, "time"), text);
}

/* An operation that takes part, and the one that its card links to (peer; NULL: none). */
struct role {
    const struct verdict_actor *actor;
    const char *class, *name, *meaning;
    const struct verdict_actor *peer;
    const char *to_peer;
};

static void put_actor(const struct page *p, const struct role *r) {
    const struct verdict_actor *a = r->actor;
    FILE *out = p->out;
    fprintf(
        out,
        "<article class=\"actor %s\" id=\"%s\"><h2>%s <small>%s</small></h2>\n<p class=\"what\">",
        r->class, r->class, word(p, r->name), word(p, r->meaning));
    put_actor_name(p, a);
    fputs("</p><table>", out);
    put_actor_rows(p, a);
    fputs("</table>", out);
    put_stack(p, "call stack", &a->stack);
    fputs("<p class=\"links\">", out);
    if (a->event != EVENT_NO_SEQ)
        fprintf(out, "<a class=\"button\" href=\"#event-%" PRIu64 "\">%s #%" PRIu64 "</a>",
                a->event, word(p, "in the timeline: event"), a->event);
    if (r->peer && r->peer->event != EVENT_NO_SEQ)
        fprintf(out, "<a href=\"#event-%" PRIu64 "\">%s</a>", r->peer->event, word(p, r->to_peer));
    fputs("</p></article>\n", out);
}

static const char *messenger_meaning(const struct verdict_actor *m) {
    return m->status_code == RECORD_PENDING ? "the call that never returned"
           : m->status_code                 ? "the call that reported the error"
                                            : "where it surfaced";
}

static void put_actors(const struct page *p) {
    const verdict *v = p->v;
    const struct verdict_actor *other =
        v->finding_count && v->culprit ? v->findings[0].other : NULL;
    if (v->messenger)
        put_actor(p,
                  &(struct role){ v->messenger, "messenger", "Messenger",
                                  messenger_meaning(v->messenger), v->culprit, "to the culprit" });
    if (v->culprit)
        put_actor(p, &(struct role){ v->culprit, "culprit", "Culprit",
                                     v->root ? "the operation that caused it"
                                             : "the operation that is wrong",
                                     v->messenger ? v->messenger : other,
                                     v->messenger ? "to the messenger" : "to the other one" });
    if (other)
        put_actor(p, &(struct role){ other, "collides", "Collides with",
                                     "the operation it has no order with", v->culprit,
                                     "to the culprit" });
}

/* ---- findings and hypotheses --------------------------------------------------------------- */

static void put_evidence(const struct page *p, const uint64_t *events, size_t count) {
    FILE *out = p->out;
    for (size_t i = 0; i < count && i < 12; i++) {
        putc(' ', out);
        put_event(out, events[i]);
    }
    if (count > 12)
        fprintf(out, " … (+%zu)", count - 12);
}

/* An event and its place, where that is known. */
static void put_origin(const struct page *p, uint64_t event, const char *site) {
    put_event(p->out, event);
    if (strcmp(site, "-") != 0) {
        fprintf(p->out, " %s ", lang_text(p->lang, LANG_IN));
        put_tag(p->out, "code", site);
    }
}

static void put_block(const struct page *p, const struct verdict_block *b) {
    FILE *out = p->out;
    char bytes[32];
    fprintf(out, "<p>%s <code>0x%" PRIx64 "</code>, %s, %s ", lang_text(p->lang, LANG_BLOCK),
            b->base, lang_block_size(p->lang, b, bytes, sizeof bytes), lang_block_made(p->lang, b));
    put_origin(p, b->alloc, b->alloc_site);
    if (b->free != EVENT_NO_SEQ) {
        fprintf(out, ", %s ", lang_block_gone(p->lang, b));
        put_origin(p, b->free, b->free_site);
    }
    if (b->tensor) {
        fprintf(out, "; %s ", word(p, "tensor"));
        put_tag(out, "code", b->tensor);
        fprintf(out, " %s <code>0x%" PRIx64 "</code>, %s", lang_text(p->lang, LANG_AT),
                b->tensor_at, sentence_bytes(b->tensor_bytes, bytes, sizeof bytes));
    }
    fputs("</p>", out);
    put_stack(p, "allocated from", &b->alloc_stack);
    put_stack(p, "freed from", &b->free_stack);
}

static void put_part(const struct page *p, const char *role, const struct verdict_actor *a) {
    fprintf(p->out, "%s: ", role);
    put_actor_name(p, a);
    putc(' ', p->out);
    put_event(p->out, a->event);
}

static void put_finding(const struct page *p, const struct verdict_finding *f, bool open) {
    FILE *out = p->out;
    fprintf(out, "<details%s><summary><b>%s</b> ", open ? " open" : "",
            hypothesis_name(f->hypothesis));
    put_text(out, lang_said(p->lang, f->said, f->text));
    if (f->count > 1) {
        fputs(" <span class=\"count\">", out);
        fprintf(out, lang_text(p->lang, LANG_TEXT_TIMES), f->count);
        fputs("</span>", out);
    }
    fputs("</summary>\n<p>", out);
    put_text(out, lang_advice(p->lang, f));
    fputs("</p><p>", out);
    put_part(p, word(p, "Culprit"), &f->culprit);
    if (f->other) {
        fputs("; ", out);
        put_part(p, word(p, "collides with"), f->other);
    }
    if (f->messenger) {
        fputs("; ", out);
        put_part(p, word(p, messenger_meaning(f->messenger)), f->messenger);
    }
    fputs("</p>", out);
    if (f->block)
        put_block(p, f->block);
    if (f->evidence_count) {
        fprintf(out, "<p>%s:", lang_text(p->lang, LANG_EVIDENCE));
        put_evidence(p, f->evidence, f->evidence_count);
        fputs("</p>", out);
    }
    fputs("</details>\n", out);
}

static void put_more(const struct page *p, uint64_t count) {
    fputs("<p>", p->out);
    fprintf(p->out, lang_text(p->lang, LANG_TEXT_NOT_SHOWN), count);
    fputs("</p>", p->out);
}

static void put_findings(const struct page *p) {
    const verdict *v = p->v;
    enum { SHOWN = 200 };
    size_t shown = v->finding_count < SHOWN ? v->finding_count : SHOWN;
    if (!v->finding_count)
        put_tag(p->out, "p", word(p, "None."));
    for (size_t i = 0; i < shown; i++)
        put_finding(p, &v->findings[i], i == 0);
    if (v->finding_count - shown + v->findings_left_out)
        put_more(p, (uint64_t)(v->finding_count - shown) + v->findings_left_out);
}

static void put_hypotheses(const struct page *p) {
    static const char *const classes[] = { "bad", "good", "unsure", "idle" };
    FILE *out = p->out;
    char counted[160];
    for (int i = 0; i < HYPOTHESIS_COUNT; i++) {
        const struct verdict_hypothesis *h = &p->v->hypothesis[i];
        fprintf(out, "<tr><th scope=row>%s<small>", hypothesis_name(h->id));
        put_text(out, hypothesis_words(p->lang, h->id)->question);
        fprintf(out, "</small></th><td><span class=\"state %s\">%s</span></td><td class=counted>",
                classes[h->status & 3], verdict_status_name(h->status));
        put_text(out, sentence_count(hypothesis_words(p->lang, h->id)->counted, h->checked, counted,
                                     sizeof counted));
        fputs("</td><td>", out);
        put_text(out, lang_said(p->lang, h->said, h->text));
        put_evidence(p, h->evidence, h->evidence_count);
        fputs("</td></tr>\n", out);
    }
}

/* ---- fidelity -------------------------------------------------------------------------------- */

static void put_fidelity(const struct page *p) {
    const struct verdict_fidelity *f = &p->v->fidelity;
    fputs("<ul>\n", p->out);
    for (size_t i = 0; i < f->lines; i++) {
        fputs("<li>", p->out);
        put_text(p->out, lang_said(p->lang, f->said[i], f->text[i]));
        fputs("</li>\n", p->out);
    }
    fputs("</ul>\n", p->out);
}

/* ---- coverage and provenance --------------------------------------------------------------- */

static void put_coverage(const struct page *p) {
    const struct verdict_coverage *c = &p->v->coverage;
    FILE *out = p->out;
    put_row(out, word(p, "history"),
            c->complete ? lang_text(p->lang, LANG_COVERAGE_WHOLE)
                        : lang_said(p->lang, c->gaps_said, c->gaps));
    put_row_number(out, word(p, "events lost"), c->lost + c->torn + c->overwritten + c->cut);
    for (size_t i = 0; i < LANG_COVERAGE_COUNT; i++)
        if (lang_coverage[i].where >= LANG_COVERAGE_PAGE)
            put_row_number(out, lang_coverage[i].label[p->lang], lang_coverage_value(c, i));
    put_row(out, word(p, "end"),
            c->ended ? lang_text(p->lang, LANG_COVERAGE_ENDED)
                     : lang_said(p->lang, c->end_said, c->end ? c->end : "?"));
    for (size_t i = 0; i < c->pending_count; i++) {
        fprintf(out, "<tr><th scope=row>%s</th><td>", word(p, "never returned"));
        put_actor_name(p, &c->pending[i]);
        putc(' ', out);
        put_event(out, c->pending[i].event);
        fputs("</td></tr>\n", out);
    }
    for (size_t i = 0; i < p->v->remark_count; i++)
        put_row(out, word(p, "remark"),
                lang_said(p->lang, p->v->remarks_said ? p->v->remarks_said[i] : NULL,
                          p->v->remarks[i]));
}

static void put_provenance(const struct page *p) {
    const struct verdict_provenance *from = &p->v->provenance;
    if (from->expected_commit)
        put_row(p->out, word(p, "expected commit"), from->expected_commit);
    if (from->expected_build_id)
        put_row(p->out, word(p, "expected build id"), from->expected_build_id);
    if (from->expected_model_hash)
        put_row(p->out, word(p, "expected model hash"), from->expected_model_hash);
    for (size_t i = 0; i < from->fact_count; i++)
        put_row(p->out, from->facts[i].key, from->facts[i].value);
}

/* ---- the page ------------------------------------------------------------------------------ */

static void put_nonce(const struct page *p) {
    fputs(p->nonce, p->out);
}

static void put_lang(const struct page *p) {
    fputs(lang_code(p->lang), p->out);
}

static void put_css(const struct page *p) {
    PUT(p->out, html_css);
}

static void put_data(const struct page *p) {
    fputs(p->data, p->out);
}

static void put_script(const struct page *p) {
    fputs("(function () {\n'use strict';\n", p->out);
    PUT(p->out, html_data);
    PUT(p->out, html_timeline);
    PUT(p->out, html_map);
    PUT(p->out, html_list);
    PUT(p->out, html_main);
    fputs("})();\n", p->out);
}

/* What stands for {{name}} in page.html. */
static const struct {
    const char *name;
    void (*put)(const struct page *p);
} slots[] = {
    { "title", put_title },
    { "nonce", put_nonce },
    { "lang", put_lang },
    { "css", put_css },
    { "head", put_head },
    { "actors", put_actors },
    { "findings", put_findings },
    { "hypotheses", put_hypotheses },
    { "fidelity", put_fidelity },
    { "coverage", put_coverage },
    { "provenance", put_provenance },
    { "data", put_data },
    { "script", put_script },
};

static void put_slot(const struct page *p, const char *name, size_t length) {
    char english[256];
    if (*name == '_' && length < sizeof english) { /* a text of the page itself */
        snprintf(english, sizeof english, "%.*s", (int)length - 1, name + 1);
        put_text(p->out, word(p, english));
        return;
    }
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        if (strlen(slots[i].name) == length && !memcmp(slots[i].name, name, length))
            slots[i].put(p);
}

static void put_page(const struct page *p) {
    const char *at = html_page_begin;
    for (const char *open; (open = strstr(at, "{{"));) {
        const char *close = strstr(open, "}}");
        if (!close)
            break;
        fwrite(at, 1, (size_t)(open - at), p->out);
        put_slot(p, open + 2, (size_t)(close - open - 2));
        at = close + 2;
    }
    fputs(at, p->out);
}

enum rc report_html(FILE *out, const verdict *v, const reader *r,
                    const struct report_html_options *o, struct err *e) {
    char *data;
    enum rc rc = report_html_data(&data, v, r, o, e);
    if (rc != RC_OK)
        return rc;
    struct page p = { .out = out, .v = v, .data = data, .lang = o ? o->lang : LANG_EN };
    /* A hash of the data: the same recording gives the same file, and no string in it can contain
     * the nonce. */
    snprintf(p.nonce, sizeof p.nonce, "%016" PRIx64,
             hash_bytes(data, strlen(data), v->provenance.run_id));
    put_page(&p);
    free(data);
    return output_flush(out, "the HTML report", e);
}
