#include "report/report_html.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
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
    const char *data; /* JSON */
    char nonce[32];   /* of the content security policy */
};

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
        fputs("unknown", out);
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
    put_text(p->out, p->v->answer);
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
    put_tag(out, "h1", p->v->answer);
    fputs("\n<p class=\"run\">", out);
    put_date(out, from->start_wall_us);
    if (*from->commit) {
        char commit[16];
        snprintf(commit, sizeof commit, "%.12s", from->commit);
        fputs("<span>commit <code>", out);
        put_text(out, commit);
        fprintf(out, "</code>%s</span>", from->dirty ? " with changes" : "");
    }
    if (*from->command)
        put_tag(out, "code", from->command);
    if (*p->v->recording) {
        fputs("<span>recording ", out);
        put_tag(out, "code", p->v->recording);
        fputs("</span>", out);
    }
    fputs("</p>\n", out);
}

/* ---- actors -------------------------------------------------------------------------------- */

static void put_actor_name(FILE *out, const struct verdict_actor *a) {
    if (a->kernel) {
        fputs("kernel ", out);
        put_tag(out, "code", a->kernel);
    } else {
        put_tag(out, "code", *a->api ? a->api : event_kind_text(a->kind));
    }
    if (a->argument) {
        fputs(", argument ", out);
        put_tag(out, "code", a->argument);
    }
}

static void put_actor(const struct page *p, const struct verdict_actor *a, const char *class,
                      const char *role, const char *meaning, const struct verdict_actor *peer,
                      const char *peer_role) {
    FILE *out = p->out;
    char text[128];
    fprintf(
        out,
        "<article class=\"actor %s\" id=\"%s\"><h2>%s <small>%s</small></h2>\n<p class=\"what\">",
        class, class, role, meaning);
    put_actor_name(out, a);
    fputs("</p><table>", out);
    if (a->tensor)
        put_row(out, "tensor", a->tensor);
    if (a->len) {
        snprintf(text, sizeof text, "%s %" PRIu64 " at 0x%" PRIx64, a->writes ? "writes" : "reads",
                 a->len, a->address);
        put_row(out, "bytes", text);
    }
    put_row(out, "result", a->status);
    put_row(out, "called from", a->site);
    snprintf(text, sizeof text, "s%u, thread t%u", a->stream, a->thread);
    put_row(out, "stream", a->stream ? text : text + strcspn(text, "t"));
    if (a->step >= 0 || a->layer >= 0) {
        snprintf(text, sizeof text, "%" PRId64 ", layer %" PRId64, a->step, a->layer);
        put_row(out, "step", text);
    }
    snprintf(text, sizeof text, "%.6f s", (double)a->t_ns / 1e9);
    put_row(out, "time", text);
    fputs("</table><p class=\"links\">", out);
    if (a->event != EVENT_NO_SEQ)
        fprintf(out,
                "<a class=\"button\" href=\"#event-%" PRIu64 "\">event #%" PRIu64
                " in the timeline</a>",
                a->event, a->event);
    if (peer && peer->event != EVENT_NO_SEQ)
        fprintf(out, "<a href=\"#event-%" PRIu64 "\">%s</a>", peer->event, peer_role);
    fputs("</p></article>\n", out);
}

static void put_actors(const struct page *p) {
    const verdict *v = p->v;
    if (v->messenger)
        put_actor(p, v->messenger, "messenger", "Messenger", "the call that reported the error",
                  v->culprit, "to the culprit");
    if (v->culprit)
        put_actor(p, v->culprit, "culprit", "Culprit", "the operation that caused it", v->messenger,
                  "to the messenger");
}

/* ---- findings and hypotheses --------------------------------------------------------------- */

static void put_evidence(FILE *out, const uint64_t *events, size_t count) {
    for (size_t i = 0; i < count && i < 12; i++) {
        putc(' ', out);
        put_event(out, events[i]);
    }
    if (count > 12)
        fprintf(out, " and %zu more", count - 12);
}

static void put_block(FILE *out, const struct verdict_block *b) {
    fprintf(out, "<p>Allocation <code>0x%" PRIx64 "</code>, %" PRIu64 " bytes, made by ", b->base,
            b->bytes);
    put_event(out, b->alloc);
    fputs(" in ", out);
    put_tag(out, "code", b->alloc_site);
    if (b->free != EVENT_NO_SEQ) {
        fputs(", freed by ", out);
        put_event(out, b->free);
        fputs(" in ", out);
        put_tag(out, "code", b->free_site);
    }
    if (b->tensor) {
        fputs("; tensor ", out);
        put_tag(out, "code", b->tensor);
        fprintf(out, " at <code>0x%" PRIx64 "</code>, %" PRIu64 " bytes", b->tensor_at,
                b->tensor_bytes);
    }
    fputs("</p>", out);
}

static void put_finding(FILE *out, const struct verdict_finding *f, bool open) {
    fprintf(out, "<details%s><summary><b>%s</b> ", open ? " open" : "",
            hypothesis_name(f->hypothesis));
    put_text(out, f->text);
    if (f->count > 1)
        fprintf(out, " <span class=\"count\">%" PRIu64 " times</span>", f->count);
    fputs("</summary>\n<p>", out);
    put_text(out, f->advice);
    fputs("</p><p>Culprit: ", out);
    put_actor_name(out, &f->culprit);
    putc(' ', out);
    put_event(out, f->culprit.event);
    if (f->other) {
        fputs("; collides with ", out);
        put_actor_name(out, f->other);
        putc(' ', out);
        put_event(out, f->other->event);
    }
    if (f->messenger) {
        fputs("; reported by ", out);
        put_actor_name(out, f->messenger);
        putc(' ', out);
        put_event(out, f->messenger->event);
    }
    fputs("</p>", out);
    if (f->block)
        put_block(out, f->block);
    if (f->evidence_count) {
        fputs("<p>Evidence:", out);
        put_evidence(out, f->evidence, f->evidence_count);
        fputs("</p>", out);
    }
    fputs("</details>\n", out);
}

static void put_findings(const struct page *p) {
    const verdict *v = p->v;
    enum { SHOWN = 200 };
    size_t shown = v->finding_count < SHOWN ? v->finding_count : SHOWN;
    if (!v->finding_count)
        fputs("<p>None.</p>", p->out);
    for (size_t i = 0; i < shown; i++)
        put_finding(p->out, &v->findings[i], i == 0);
    if (v->finding_count - shown + v->findings_left_out)
        fprintf(p->out, "<p>%" PRIu64 " more are not shown.</p>",
                (uint64_t)(v->finding_count - shown) + v->findings_left_out);
}

static void put_hypotheses(const struct page *p) {
    static const char *const classes[] = { "bad", "good", "unsure", "idle" };
    FILE *out = p->out;
    char counted[160];
    for (int i = 0; i < HYPOTHESIS_COUNT; i++) {
        const struct verdict_hypothesis *h = &p->v->hypothesis[i];
        fprintf(out, "<tr><th scope=row>%s<small>", hypothesis_name(h->id));
        put_text(out, hypothesis_words(LANG_EN, h->id)->question);
        fprintf(out, "</small></th><td><span class=\"state %s\">%s</span></td><td class=counted>",
                classes[h->status & 3], verdict_status_name(h->status));
        put_text(out, sentence_count(hypothesis_words(LANG_EN, h->id)->counted, h->checked, counted,
                                     sizeof counted));
        fputs("</td><td>", out);
        put_text(out, h->text);
        put_evidence(out, h->evidence, h->evidence_count);
        fputs("</td></tr>\n", out);
    }
}

/* ---- coverage and provenance --------------------------------------------------------------- */

static void put_coverage(const struct page *p) {
    const struct verdict_coverage *c = &p->v->coverage;
    FILE *out = p->out;
    put_row(out, "history", c->complete ? "nothing is missing" : *c->gaps ? c->gaps : "incomplete");
    put_row_number(out, "events", c->events);
    put_row_number(out, "events lost", c->lost + c->torn + c->overwritten + c->cut);
    put_row_number(out, "copies", c->copies);
    put_row_number(out, "copies through the checked wrappers", c->copies_safe);
    put_row_number(out, "copies to the host", c->copies_d2h);
    put_row_number(out, "of those, through the checked wrappers", c->copies_d2h_safe);
    put_row_number(out, "copies refused", c->copies_refused);
    put_row_number(out, "kernel launches", c->launches);
    put_row_number(out, "launches whose accesses are known exactly", c->launches_exact);
    put_row_number(out, "launches known by their arguments", c->launches_by_args);
    put_row_number(out, "launches of which nothing is known", c->launches_unknown);
    put_row_number(out, "allocations", c->allocations);
    put_row_number(out, "allocations alive at the end", c->alive);
    put_row_number(out, "bytes alive at the end", c->bytes_alive);
    put_row_number(out, "pairs of accesses examined", c->pairs);
    put_row_number(out, "calls that failed", c->calls_failed);
    put_row(out, "end",
            c->ended            ? "every process ended its recording in good order"
            : c->end && *c->end ? c->end
                                : "a process was stopped: its history ends early");
    for (size_t i = 0; i < c->pending_count; i++) {
        fputs("<tr><th scope=row>never returned</th><td>", out);
        put_actor_name(out, &c->pending[i]);
        putc(' ', out);
        put_event(out, c->pending[i].event);
        fputs("</td></tr>\n", out);
    }
    for (size_t i = 0; i < p->v->remark_count; i++)
        put_row(out, "remark", p->v->remarks[i]);
}

static void put_provenance(const struct page *p) {
    const struct verdict_provenance *from = &p->v->provenance;
    if (from->expected_commit)
        put_row(p->out, "expected commit", from->expected_commit);
    if (from->expected_build_id)
        put_row(p->out, "expected build id", from->expected_build_id);
    if (from->expected_model_hash)
        put_row(p->out, "expected model hash", from->expected_model_hash);
    for (size_t i = 0; i < from->fact_count; i++)
        put_row(p->out, from->facts[i].key, from->facts[i].value);
}

/* ---- the page ------------------------------------------------------------------------------ */

static void put_nonce(const struct page *p) {
    fputs(p->nonce, p->out);
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
    { "css", put_css },
    { "head", put_head },
    { "actors", put_actors },
    { "findings", put_findings },
    { "hypotheses", put_hypotheses },
    { "coverage", put_coverage },
    { "provenance", put_provenance },
    { "data", put_data },
    { "script", put_script },
};

static void put_slot(const struct page *p, const char *name, size_t length) {
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
    struct page p = { .out = out, .v = v, .data = data };
    /* Of the data, so that the same recording gives the same file, and that no string in it can
     * know the nonce. */
    snprintf(p.nonce, sizeof p.nonce, "%016" PRIx64,
             hash_bytes(data, strlen(data), v->provenance.run_id));
    put_page(&p);
    free(data);
    if (ferror(out))
        return err_set(e, RC_IO, "the HTML report could not be written");
    return RC_OK;
}
