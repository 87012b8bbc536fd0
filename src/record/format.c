#include "record/format.h"

#include <inttypes.h>
#include <string.h>

#include "hip/hip_api.h"

const char *format_name(const char *text, char room[static FORMAT_NAME]) {
    if (strnlen(text, FORMAT_NAME) < FORMAT_NAME)
        return text;
    snprintf(room, FORMAT_NAME, "%.*s...", FORMAT_NAME - 8, text);
    return room;
}

void format_text(FILE *out, const char *text) {
    const char *p = text;
    while (*p > ' ' && *p < 127 && !strchr("\"\\=", *p))
        p++;
    if (!*p && p > text) {
        fputs(text, out);
        return;
    }
    putc('"', out);
    for (p = text; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c == '\n')
            fputs("\\n", out);
        else if (c == '\t')
            fputs("\\t", out);
        else if (c < ' ' || c == 127)
            fprintf(out, "\\x%02x", c);
        else
            putc(c, out);
    }
    putc('"', out);
}

static void field_text(FILE *out, const struct event_field *f, uint64_t value) {
    switch (f->format) {
    case EVENT_FORMAT_NONE:
        return;
    case EVENT_FORMAT_ADDRESS:
    case EVENT_FORMAT_HEX:
        fprintf(out, " %s=0x%" PRIx64, f->label, value);
        return;
    case EVENT_FORMAT_SIGNED:
        fprintf(out, " %s=%" PRId64, f->label, (int64_t)value);
        return;
    case EVENT_FORMAT_SEQ:
        if (value == EVENT_NO_SEQ)
            fprintf(out, " %s=?", f->label);
        else
            fprintf(out, " %s=#%" PRIu64, f->label, value);
        return;
    case EVENT_FORMAT_DEFINITION:
        if (value)
            fprintf(out, " %s=%" PRIu64, f->label, value);
        return;
    case EVENT_FORMAT_BYTES:
    case EVENT_FORMAT_NUMBER:
        fprintf(out, " %s=%" PRIu64, f->label, value);
        return;
    }
}

static void field_json(struct json *j, const struct event_field *f, uint64_t value) {
    switch (f->format) {
    case EVENT_FORMAT_NONE:
        return;
    case EVENT_FORMAT_ADDRESS:
    case EVENT_FORMAT_HEX:
        json_format(j, f->label, "0x%" PRIx64, value);
        return;
    case EVENT_FORMAT_SIGNED:
        json_i64(j, f->label, (int64_t)value);
        return;
    case EVENT_FORMAT_SEQ:
        if (value == EVENT_NO_SEQ)
            json_null(j, f->label);
        else
            json_u64(j, f->label, value);
        return;
    case EVENT_FORMAT_DEFINITION:
    case EVENT_FORMAT_BYTES:
    case EVENT_FORMAT_NUMBER:
        json_u64(j, f->label, value);
        return;
    }
}

/* The event's detail in words; a number where event.def has no word; "" where it has no detail. */
static const char *detail_text(const struct event *e, char room[16]) {
    const char *text = event_detail_text(e);
    if (text)
        return text;
    room[0] = 0;
    if (strcmp(event_info(e->kind)->detail_list, "NONE") != 0 || event_detail(e))
        snprintf(room, 16, "detail%u", event_detail(e));
    return room;
}

static const char *status_text(const struct event *e, char room[24]) {
    if (event_is_pending(e))
        return "pending";
    const char *name = hip_error_name((hipError_t)e->status);
    if (strcmp(name, "hipErrorUnknown") != 0)
        return name;
    snprintf(room, 24, "error%u", e->status);
    return room;
}

/* ---- extras -------------------------------------------------------------------------------- */

/* Copies the label at *labels (up to a comma) and steps over it; "word" when there are no more. */
static void next_label(const char **labels, char out[32]) {
    size_t n = strcspn(*labels, ",");
    snprintf(out, 32, "%.*s", n ? (int)n : 4, n ? *labels : "word");
    *labels += n;
    if (**labels == ',')
        ++*labels;
}

static void dims_text(FILE *out, const struct event_extra *x) {
    struct event_dims d = event_dims_of(x);
    fprintf(out, " grid=%u,%u,%u block=%u,%u,%u shared=%" PRIu64, d.grid[0], d.grid[1], d.grid[2],
            d.block[0], d.block[1], d.block[2], d.shared);
    if (d.flags & EVENT_DIMS_COOPERATIVE)
        fputs(" cooperative", out);
    if (d.flags & EVENT_DIMS_REACHES)
        fputs(" reaches", out);
}

static const char *arg_access(unsigned flags) {
    static const char *const text[8] = { "", ":r", ":w", ":rw", ":?", ":r?", ":w?", ":rw?" };
    return text[flags & 7];
}

static const char *access_word(unsigned access) {
    const struct event e = { .kind = EVENT_FAULT, .aux = event_aux(0, access & 15) };
    const char *text = event_detail_text(&e);
    return text ? text : "?";
}

static void accesses_text(FILE *out, const struct event_extra *x) {
    struct event_access a[EVENT_ACCESSES_PER_SLOT];
    unsigned n = event_accesses_of(x, a);
    for (unsigned i = 0; i < n; i++) {
        fprintf(out, " %s=0x%" PRIx64 "+%" PRIu64, access_word(a[i].access), a[i].address,
                a[i].bytes);
        if (a[i].argument != EVENT_NO_ARGUMENT)
            fprintf(out, ":arg%u", a[i].argument);
    }
}

static void pattern_text(FILE *out, const struct event_extra *x) {
    struct event_pattern p = event_pattern_of(x);
    fprintf(out, " %s=0x%" PRIx64 "+%" PRIu64 ":rows=%" PRIu64 ":pitch=%" PRIu64,
            access_word(p.access.access), p.access.address, p.access.bytes, p.rows, p.pitch);
    if (p.slices > 1)
        fprintf(out, ":slices=%" PRIu64 ":slice=%" PRIu64, p.slices, p.slice);
}

static void fault_text(FILE *out, const struct event_extra *x) {
    struct event_fault f = event_fault_of(x);
    if (f.argument == EVENT_NO_ARGUMENT)
        fputs(" argument=?", out);
    else
        fprintf(out, " argument=%" PRIu64 " value=0x%" PRIx64, f.argument, f.value);
    fprintf(out, " range=0x%" PRIx64 "+%" PRIu64, f.alloc_base, f.alloc_bytes);
    field_text(out, &(struct event_field){ EVENT_FORMAT_SEQ, "alloc" }, f.alloc_seq);
    if (f.pc)
        fprintf(out, " pc=0x%" PRIx64, f.pc);
}

static void extra_text(FILE *out, const struct event_extra *x) {
    unsigned type = event_extra_type(x);
    if (type == EXTRA_DIMS) {
        dims_text(out, x);
    } else if (type == EXTRA_ARGS) {
        struct event_arg a[EVENT_ARGS_PER_SLOT];
        unsigned n = event_args_of(x, a);
        for (unsigned i = 0; i < n; i++)
            if (a[i].flags & EVENT_ARG_NUMBER)
                fprintf(out, " arg%u=%" PRIu64, a[i].index, a[i].value);
            else
                fprintf(out, " arg%u=0x%" PRIx64 "%s", a[i].index, a[i].value,
                        arg_access(a[i].flags));
    } else if (type == EXTRA_ACCESS) {
        accesses_text(out, x);
    } else if (type == EXTRA_PATTERN) {
        pattern_text(out, x);
    } else if (type == EXTRA_SAFE) {
        struct event_safe s = event_safe_of(x);
        fprintf(out,
                " op_id=%" PRIu64 " step=%" PRId64 " layer=%" PRId64 " offset=%" PRIu64
                " alloc=%" PRIu64,
                s.op_id, s.step, s.layer, s.offset, s.alloc);
    } else if (type == EXTRA_FAULT) {
        fault_text(out, x);
    } else {
        const char *labels = event_extra_labels(type);
        char label[32];
        for (unsigned i = 0; i < event_extra_words(x); i++) {
            next_label(&labels, label);
            fprintf(out,
                    type == EXTRA_ROWS || type == EXTRA_SLICES ? " %s=%" PRIu64 : " %s=0x%" PRIx64,
                    label, x->word[i]);
        }
    }
}

/* JSON gets the words as they are, so that types that only another build knows lose nothing. */
static void extra_json(struct json *j, const struct event_extra *x) {
    unsigned type = event_extra_type(x);
    json_object_open(j, NULL);
    json_string(j, "type", event_extra_text(type));
    if (type == EXTRA_DIMS) {
        struct event_dims d = event_dims_of(x);
        json_array_open(j, "grid");
        for (int i = 0; i < 3; i++)
            json_u64(j, NULL, d.grid[i]);
        json_array_close(j);
        json_array_open(j, "block");
        for (int i = 0; i < 3; i++)
            json_u64(j, NULL, d.block[i]);
        json_array_close(j);
        json_u64(j, "shared", d.shared);
        json_u64(j, "flags", d.flags);
    } else if (type == EXTRA_SAFE) {
        struct event_safe s = event_safe_of(x);
        json_u64(j, "op_id", s.op_id);
        json_i64(j, "step", s.step);
        json_i64(j, "layer", s.layer);
        json_u64(j, "offset", s.offset);
        json_u64(j, "alloc", s.alloc);
    } else {
        json_array_open(j, "words");
        for (unsigned i = 0; i < event_extra_words(x); i++)
            json_format(j, NULL, "0x%" PRIx64, x->word[i]);
        json_array_close(j);
    }
    json_object_close(j);
}

/* ---- an event ------------------------------------------------------------------------------ */

/* Seconds from the start of the recording, which another process may be a little ahead of. */
static double seconds(const reader *r, const struct event *e) {
    return (double)(int64_t)(e->t_ns - reader_info(r)->start_ns) / 1e9;
}

void format_event(FILE *out, const reader *r, const struct reader_event *full) {
    const struct event *e = &full->event;
    const struct event_info *info = event_info(e->kind);
    char room[24], site[512], name[FORMAT_NAME];
    if (e->kind == EVENT_LOST && !e->t_ns) {
        fprintf(out, "%" PRIu64 " - lost", full->seq);
    } else {
        fprintf(out, "%" PRIu64 " %.9f t%u", full->seq, seconds(r, e), e->thread);
        if (e->stream)
            fprintf(out, " s%u", e->stream);
        fprintf(out, " %s", event_kind_text(e->kind));
        if (!info->text)
            fprintf(out, "%u", e->kind);
    }
    const char *detail = detail_text(e, room);
    if (*detail)
        fprintf(out, " %s", detail);
    if (event_is_captured(e))
        fputs(" captured", out);
    field_text(out, &info->dst, e->dst);
    field_text(out, &info->src, e->src);
    field_text(out, &info->len, e->len);
    for (unsigned i = 0; i < full->extras; i++)
        extra_text(out, &full->extra[i]);
    if (full->extras_lost)
        fputs(" (more was lost)", out);
    if (e->name) {
        fprintf(out, " %s=", *info->name ? info->name : "name");
        format_text(out, format_name(reader_event_name(r, e), name));
    }
    if (event_fn(e) != EVENT_NO_FN) {
        fprintf(out, " call=%s status=%s", reader_function(r, event_fn(e)), status_text(e, room));
        if (!event_is_pending(e))
            fprintf(out, " took=%" PRIu64, event_duration_ns(e));
    } else if (e->status) {
        fprintf(out, " status=%s", status_text(e, room));
    }
    if (e->site) {
        reader_site_text(r, e->site, site, sizeof site);
        fputs(" site=", out);
        format_text(out, site);
    }
}

static void optional_string(struct json *j, const char *key, const char *text) {
    if (*text)
        json_string(j, key, text);
}

static void line_json(struct json *j, const struct reader_line *line) {
    json_string(j, "function", line->function);
    json_string(j, "file", line->file);
    if (line->line)
        json_u64(j, "line", line->line);
    else
        json_null(j, "line");
}

static void site_json(struct json *j, const reader *r, uint32_t site) {
    struct reader_place where;
    if (reader_site_where(r, site, &where))
        line_json(j, &where.line);
}

void format_stack_json(struct json *j, const reader *r, uint32_t site) {
    unsigned frames;
    const struct site_frame *f = reader_site(r, site, &frames, NULL);
    json_array_open(j, NULL);
    for (unsigned i = 0; i < frames; i++) {
        struct reader_line line[READER_LINES_MAX];
        unsigned count = reader_frame_lines(r, &f[i], line, READER_LINES_MAX);
        for (unsigned k = 0; k < count; k++) {
            json_object_open(j, NULL);
            line_json(j, &line[k]);
            json_bool(j, "inlined", line[k].inlined);
            json_string(j, "module", f[i].module ? reader_string(r, f[i].module) : NULL);
            json_format(j, "offset", "0x%" PRIx64, f[i].module ? f[i].offset : f[i].address);
            json_object_close(j);
        }
    }
    json_array_close(j);
}

void format_event_json(struct json *j, const reader *r, const struct reader_event *full) {
    const struct event *e = &full->event;
    const struct event_info *info = event_info(e->kind);
    char room[24], site[512], name[FORMAT_NAME];
    json_object_open(j, NULL);
    json_u64(j, "seq", full->seq);
    if (e->t_ns)
        json_u64(j, "t_ns", e->t_ns);
    json_u64(j, "thread", e->thread);
    json_u64(j, "stream", e->stream);
    if (info->text)
        json_string(j, "kind", info->text);
    else
        json_format(j, "kind", "?%u", e->kind);
    optional_string(j, "detail", detail_text(e, room));
    if (event_is_captured(e))
        json_bool(j, "captured", true);
    field_json(j, &info->dst, e->dst);
    field_json(j, &info->src, e->src);
    field_json(j, &info->len, e->len);
    if (e->name)
        json_string(j, "name", format_name(reader_string(r, e->name), name));
    if (e->name && event_names_kernel(e->kind))
        json_string(j, "kernel", format_name(reader_kernel(r, e->name), name));
    if (event_fn(e) != EVENT_NO_FN)
        json_string(j, "call", reader_function(r, event_fn(e)));
    if (event_fn(e) != EVENT_NO_FN || e->status)
        json_string(j, "status", status_text(e, room));
    if (event_fn(e) != EVENT_NO_FN && !event_is_pending(e))
        json_u64(j, "took_ns", event_duration_ns(e));
    if (e->site) {
        reader_site_text(r, e->site, site, sizeof site);
        json_string(j, "site", site);
        json_u64(j, "site_id", e->site);
        site_json(j, r, e->site);
    }
    if (full->extras) {
        json_array_open(j, "extras");
        for (unsigned i = 0; i < full->extras; i++)
            extra_json(j, &full->extra[i]);
        json_array_close(j);
    }
    json_object_close(j);
}

/* "module+0x1234", or the address of code that is in no file. */
static void format_code(FILE *out, const reader *r, const struct site_frame *f) {
    if (f->module)
        format_text(out, reader_string(r, f->module));
    fprintf(out, f->module ? "+0x%" PRIx64 : "0x%" PRIx64, f->module ? f->offset : f->address);
}

void format_frame(FILE *out, const reader *r, const struct site_frame *f, const char *before) {
    struct reader_line line[READER_LINES_MAX];
    unsigned count = reader_frame_lines(r, f, line, READER_LINES_MAX);
    for (unsigned i = 0; i < count; i++) {
        fputs(before, out);
        if (line[i].function) {
            format_text(out, line[i].function);
            putc(' ', out);
        }
        if (line[i].line) {
            fputs("at ", out);
            format_text(out, line[i].file);
            fprintf(out, ":%" PRIu32 " ", line[i].line);
        }
        if (i + 1 < count)
            fputs("inlined", out);
        else
            format_code(out, r, f);
        putc('\n', out);
    }
}

/* ---- documentation ------------------------------------------------------------------------- */

static const char *field_label(const struct event_field *f) {
    return f->format == EVENT_FORMAT_NONE ? "" : f->label;
}

void format_tables(FILE *out) {
    fputs("| number | kind | dst | src | len | detail | name | what it says |\n"
          "|---|---|---|---|---|---|---|---|\n",
          out);
    for (unsigned kind = 1; kind < EVENT_KIND_LIMIT; kind++) {
        const struct event_info *i = event_info(kind);
        if (i->text)
            fprintf(out, "| %u | `%s` | %s | %s | %s | %s | %s | %s |\n", kind, i->text,
                    field_label(&i->dst), field_label(&i->src), field_label(&i->len),
                    strcmp(i->detail_list, "NONE") ? i->detail_list : "", i->name, i->doc);
    }
    fputs("\n| detail | values |\n|---|---|\n", out);
    for (unsigned kind = 1; kind < EVENT_KIND_LIMIT; kind++) {
        const struct event_info *i = event_info(kind);
        bool seen = !i->text || !strcmp(i->detail_list, "NONE");
        for (unsigned before = 1; before < kind && !seen; before++)
            seen = !strcmp(event_info(before)->detail_list, i->detail_list);
        if (seen)
            continue;
        fprintf(out, "| %s |", i->detail_list);
        for (unsigned v = 0; v < 16; v++)
            if (i->details[v])
                fprintf(out, " %u `%s`", v, i->details[v]);
        fputs(" |\n", out);
    }
    fputs("\n| extra | type | words |\n|---|---|---|\n", out);
    for (unsigned type = 1; type < 256; type++)
        if (*event_extra_labels(type))
            fprintf(out, "| %u | `%s` | %s |\n", type, event_extra_text(type),
                    event_extra_labels(type));
    fputs("\n| definition | kind | what it says |\n|---|---|---|\n", out);
    for (unsigned kind = 1; kind < DEFINITION_KINDS; kind++)
        fprintf(out, "| %u | `%s` | %s |\n", kind, definition_text(kind), definition_doc(kind));
}
