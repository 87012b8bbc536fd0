/* What lint found, as text and as JSON. */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "lint/lint.h"

/* A line of source for a terminal: its control characters could move the cursor. */
static void print_plain(FILE *out, const char *text) {
    for (; *text; text++)
        putc((unsigned char)*text < ' ' || *text == 127 ? ' ' : *text, out);
}

static void print_hit(FILE *out, const struct lint_file *f, const struct lint_hit *h) {
    print_plain(out, f->path);
    fprintf(out, ":%u:%u: %s: direct HIP copy", h->line, h->column, h->name);
    if (h->reason) {
        fputs(", allowed: ", out);
        print_plain(out, h->reason);
    } else if (*h->instead) {
        fprintf(out, "; use %s", h->instead);
    } else {
        fputs("; no wrapper takes it: allow it with a reason, or copy in rows", out);
    }
    fputs("\n    ", out);
    print_plain(out, h->snippet);
    putc('\n', out);
}

static const char *plural(uint64_t n) {
    return n == 1 ? "y" : "ies";
}

void lint_text(FILE *out, const lint *l, bool all) {
    struct lint_totals t = lint_totals(l);
    for (const struct lint_file *f = lint_files(l); f; f = f->next)
        for (const struct lint_hit *h = f->hits; h; h = h->next)
            if (all || !h->reason)
                print_hit(out, f, h);
    for (const struct lint_file *f = lint_files(l); f; f = f->next) {
        unsigned open = f->found - f->allowed;
        if (!open && !(all && f->allowed) && !f->reasonless)
            continue;
        print_plain(out, f->path);
        fprintf(out, ": %u direct cop%s", open, plural(open));
        if (f->allowed)
            fprintf(out, ", %u allowed", f->allowed);
        if (f->reasonless)
            fprintf(out, ", %u `gcore-lint: allow` without a reason, which allows nothing",
                    f->reasonless);
        putc('\n', out);
    }
    uint64_t open = t.found - t.allowed;
    fprintf(out, "total: %" PRIu64 " direct cop%s in %" PRIu64 " of %" PRIu64 " files", open,
            plural(open), t.files_with_hits, t.files);
    if (t.allowed)
        fprintf(out, ", %" PRIu64 " allowed", t.allowed);
    if (t.unreadable)
        fprintf(out, ", %" PRIu64 " could not be read", t.unreadable);
    putc('\n', out);
}

static void hit_json(struct json *j, const struct lint_hit *h) {
    json_object_open(j, NULL);
    json_u64(j, "line", h->line);
    json_u64(j, "column", h->column);
    json_string(j, "name", h->name);
    json_string(j, "snippet", h->snippet);
    json_string(j, "instead", *h->instead ? h->instead : NULL);
    json_bool(j, "allowed", h->reason != NULL);
    json_string(j, "reason", h->reason);
    json_object_close(j);
}

enum rc lint_json(FILE *out, const lint *l, struct err *e) {
    struct lint_totals t = lint_totals(l);
    struct json j = json_begin(out, 2);
    json_object_open(&j, NULL);
    json_array_open(&j, "files");
    for (const struct lint_file *f = lint_files(l); f; f = f->next) {
        if (!f->found && !f->reasonless)
            continue;
        json_object_open(&j, NULL);
        json_string(&j, "path", f->path);
        json_u64(&j, "direct_copies", f->found - f->allowed);
        json_u64(&j, "allowed", f->allowed);
        json_u64(&j, "allowed_without_reason", f->reasonless);
        json_array_open(&j, "copies");
        for (const struct lint_hit *h = f->hits; h; h = h->next)
            hit_json(&j, h);
        json_array_close(&j);
        json_object_close(&j);
    }
    json_array_close(&j);
    json_u64(&j, "files_read", t.files);
    json_u64(&j, "files_with_direct_copies", t.files_with_hits);
    json_u64(&j, "direct_copies", t.found - t.allowed);
    json_u64(&j, "allowed", t.allowed);
    json_u64(&j, "unreadable", t.unreadable);
    json_object_close(&j);
    return json_end(&j, e);
}
