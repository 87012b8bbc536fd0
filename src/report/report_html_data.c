#include "report/report_html_data.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "hip/hip_api.h"
#include "record/format.h"
#include "record/writer.h"
#include "report/report_memory.h"

enum { EVENTS_USUAL = 200000, BLOCKS_USUAL = 50000, TOUCHED_MAX = 8, RANGES_MAX = 64 };

/* ---- columns ------------------------------------------------------------------------------- */

/* Numbers of one kind, packed as the header says. */
struct column {
    unsigned char *bytes;
    size_t used, room;
    uint64_t last;
    bool failed;
};

static void column_add(struct column *c, uint64_t value) {
    uint64_t difference = value - c->last;
    uint64_t word = difference << 1 ^ (0 - (difference >> 63));
    c->last = value;
    if (c->room - c->used < 10) {
        size_t room = c->room ? 2 * c->room : 4096;
        unsigned char *bytes = realloc(c->bytes, room);
        if (!bytes) {
            c->failed = true;
            return;
        }
        c->bytes = bytes;
        c->room = room;
    }
    for (; word >= 128; word >>= 7)
        c->bytes[c->used++] = (unsigned char)(word | 128);
    c->bytes[c->used++] = (unsigned char)word;
}

/* Base64, as a JSON string without the writer's escaping, which takes its time. */
static void column_write(struct json *j, const char *key, const struct column *c) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = malloc((c->used + 2) / 3 * 4 + 1), *to = text;
    if (!text) {
        json_null(j, key);
        return;
    }
    for (size_t i = 0; i < c->used; i += 3) {
        size_t left = c->used - i;
        uint32_t word = (uint32_t)c->bytes[i] << 16;
        word |= left > 1 ? (uint32_t)c->bytes[i + 1] << 8 : 0;
        word |= left > 2 ? c->bytes[i + 2] : 0;
        *to++ = digits[word >> 18];
        *to++ = digits[word >> 12 & 63];
        *to++ = left > 1 ? digits[word >> 6 & 63] : '=';
        *to++ = left > 2 ? digits[word & 63] : '=';
    }
    json_text(j, key, text, (size_t)(to - text));
    free(text);
}

/* The columns of events: name in the JSON, expression of e (struct event *) and full. */
#define EVENT_COLUMNS(X)                                                                           \
    X(seq, full->seq)                                                                              \
    X(t, e->t_ns > d->start_ns ? e->t_ns - d->start_ns : 0)                                        \
    X(took, event_fn(e) == EVENT_NO_FN || event_is_pending(e) ? 0 : event_duration_ns(e))          \
    X(kind, e->kind)                                                                               \
    X(detail, event_detail(e) | (event_is_captured(e) ? 16u : 0))                                  \
    X(fn, event_fn(e) == EVENT_NO_FN ? 0 : number_of(&d->functions, event_fn(e) + 1))              \
    X(status, e->status)                                                                           \
    X(stream, e->stream)                                                                           \
    X(thread, e->thread)                                                                           \
    X(name, number_of(&d->names, e->name))                                                         \
    X(site, number_of(&d->sites, e->site))                                                         \
    X(dst, e->dst)                                                                                 \
    X(src, e->src)                                                                                 \
    X(len, e->len)                                                                                 \
    X(step, (uint64_t)(where.step + 1))                                                            \
    X(layer, (uint64_t)(where.layer + 1))

/* The columns of blocks; b is struct report_block *. */
#define BLOCK_COLUMNS(X)                                                                           \
    X(base, b->base)                                                                               \
    X(bytes, b->bytes)                                                                             \
    X(begin, b->begin)                                                                             \
    X(end, b->end == EVENT_NO_SEQ ? 0 : b->end + 1)                                                \
    X(from, b->begin_ns > d->start_ns ? b->begin_ns - d->start_ns : 0)                             \
    X(to, b->end_ns > d->start_ns ? b->end_ns - d->start_ns : 0)                                   \
    X(name, number_of(&d->names, b->name))                                                         \
    X(site, number_of(&d->sites, b->site))                                                         \
    X(family, b->family | (b->tensor ? 16u : 0))

/* Numbers of definitions, in the order in which they were first met. */
struct numbers {
    uint32_t *given; /* by id: place + 1; 0: not met */
    uint32_t *ids;   /* by place */
    uint32_t ids_max, count;
};

struct place {
    int64_t step, layer; /* -1: unknown */
};

struct range_of_seq {
    uint64_t from, to;
};

struct data {
    enum lang lang;
    const verdict *v;
    const reader *r;
    uint64_t start_ns;
    struct report_memory memory;
    struct numbers names, sites, functions;
    struct place *places; /* by thread: what its marks said last */
    struct place *safe;   /* and its last safe copy, for the copy that follows */
    uint32_t threads;
    struct range_of_seq ranges[RANGES_MAX]; /* of the events to take; sorted, apart */
    unsigned range_count;
    uint64_t events, taken;
    uint64_t statuses[64]; /* bits: results that occur, below 4096 */
#define COLUMN(name, value) struct column name;
    struct {
        EVENT_COLUMNS(COLUMN)
        struct column touched_count, touched;
    } event;
    struct {
        BLOCK_COLUMNS(COLUMN)
    } block;
#undef COLUMN
    struct reader_event full;
};

static bool numbers_open(struct numbers *n, uint32_t ids_max) {
    n->given = calloc((size_t)ids_max + 1, sizeof *n->given);
    n->ids = calloc((size_t)ids_max + 1, sizeof *n->ids);
    n->ids_max = ids_max;
    return n->given && n->ids;
}

static void numbers_close(struct numbers *n) {
    free(n->given);
    free(n->ids);
}

/* Place + 1 of an id; 0 for 0 and for an id that no definition has. */
static uint64_t number_of(struct numbers *n, uint32_t id) {
    if (!id || id > n->ids_max)
        return 0;
    if (!n->given[id]) {
        n->ids[n->count] = id;
        n->given[id] = ++n->count;
    }
    return n->given[id];
}

/* ---- which events -------------------------------------------------------------------------- */

static void take_range(struct data *d, uint64_t from, uint64_t to) {
    if (d->range_count < RANGES_MAX && from < to)
        d->ranges[d->range_count++] = (struct range_of_seq){ from, to };
}

static void take_around(struct data *d, const struct verdict_actor *a, uint64_t room) {
    if (a && a->event != EVENT_NO_SEQ)
        take_range(d, a->event > room ? a->event - room : 0, a->event + room / 2);
}

static int by_start(const void *a, const void *b) {
    const struct range_of_seq *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* All, or if there are too many: the beginning, the end, and what is around the actors. Ranges are
 * of slots, of which an event takes several. */
static void choose_events(struct data *d, uint64_t most) {
    const struct reader_info *i = reader_info(d->r);
    uint64_t slots = i->end_seq - i->first_seq, events = d->v->coverage.events;
    if (events <= most) {
        take_range(d, 0, UINT64_MAX);
        return;
    }
    uint64_t room = (uint64_t)((double)most * ((double)slots / (double)events));
    room = room < slots ? room : slots;
    take_around(d, d->v->culprit, room / 8);
    take_around(d, d->v->messenger, room / 8);
    if (d->v->root)
        take_around(d, d->v->root->other, room / 16);
    take_range(d, i->first_seq, i->first_seq + room / 8);
    take_range(d, i->end_seq - room / 4, UINT64_MAX);
    for (size_t f = 0; f < d->v->finding_count; f++)
        for (size_t n = 0; n < d->v->findings[f].evidence_count; n++)
            take_range(d, d->v->findings[f].evidence[n], d->v->findings[f].evidence[n] + 1);
    qsort(d->ranges, d->range_count, sizeof d->ranges[0], by_start);
}

static bool is_chosen(const struct data *d, uint64_t seq) {
    for (unsigned i = 0; i < d->range_count && d->ranges[i].from <= seq; i++)
        if (seq < d->ranges[i].to)
            return true;
    return false;
}

/* ---- events -------------------------------------------------------------------------------- */

/* The step and layer that an event belongs to. A mark STEP or LAYER holds for what its thread
 * does next, a safe copy for the copy that follows it. */
static struct place place_of(struct data *d, const struct reader_event *full) {
    const struct event *e = &full->event;
    uint32_t thread = e->thread < d->threads ? e->thread : 0;
    struct place *mark = &d->places[thread], *safe = &d->safe[thread], here = *mark;
    const struct event_extra *said = reader_extra(full, EXTRA_SAFE);
    if (said) {
        struct event_safe s = event_safe_of(said);
        here.step = s.step < 0 ? -1 : s.step & INT32_MAX;
        here.layer = s.layer < 0 ? -1 : s.layer & INT32_MAX;
        *safe = here;
    } else if (e->kind == EVENT_COPY && (safe->step >= 0 || safe->layer >= 0)) {
        here = *safe;
        *safe = (struct place){ -1, -1 };
    } else if (e->kind == EVENT_MARK) {
        if (event_detail(e) == DETAIL_MARK_STEP)
            *mark = (struct place){ (int64_t)(e->dst & INT32_MAX), -1 };
        else if (event_detail(e) == DETAIL_MARK_LAYER)
            mark->layer = (int64_t)(e->dst & INT32_MAX);
        here = *mark;
    }
    return here;
}

static void touch(struct data *d, uint64_t address, size_t *list, unsigned *n) {
    size_t block = report_memory_find(&d->memory, d->r, d->full.event.thread, address);
    if (block == SIZE_MAX || *n >= TOUCHED_MAX)
        return;
    for (unsigned i = 0; i < *n; i++)
        if (list[i] == block)
            return;
    list[(*n)++] = block;
}

/* The tensors and allocations that an operation is about. */
static void add_touched(struct data *d) {
    const struct event *e = &d->full.event;
    size_t list[TOUCHED_MAX];
    unsigned n = 0;
    const struct event_info *info = event_info(e->kind);
    if (info->dst.format == EVENT_FORMAT_ADDRESS && e->kind != EVENT_LAUNCH)
        touch(d, e->dst, list, &n);
    if (info->src.format == EVENT_FORMAT_ADDRESS && e->kind != EVENT_LAUNCH)
        touch(d, e->src, list, &n);
    for (unsigned i = 0; i < d->full.extras; i++) {
        const struct event_extra *x = &d->full.extra[i];
        if (event_extra_type(x) == EXTRA_ARGS) {
            struct event_arg args[EVENT_ARGS_PER_SLOT];
            unsigned count = event_args_of(x, args);
            for (unsigned k = 0; k < count; k++)
                if (!(args[k].flags & EVENT_ARG_NUMBER))
                    touch(d, args[k].value, list, &n);
        } else if (event_extra_type(x) == EXTRA_ACCESS) {
            struct event_access a[EVENT_ACCESSES_PER_SLOT];
            unsigned count = event_accesses_of(x, a);
            for (unsigned k = 0; k < count; k++)
                touch(d, a[k].address, list, &n);
        } else if (event_extra_type(x) == EXTRA_PATTERN) {
            touch(d, event_pattern_of(x).access.address, list, &n);
        }
    }
    column_add(&d->event.touched_count, n);
    for (unsigned i = 0; i < n; i++)
        column_add(&d->event.touched, list[i]);
}

static void add_event(struct data *d, struct place where) {
    const struct reader_event *full = &d->full;
    const struct event *e = &full->event;
#define ADD(name, value) column_add(&d->event.name, value);
    EVENT_COLUMNS(ADD)
#undef ADD
    add_touched(d);
    if (e->status < 64 * 64)
        d->statuses[e->status / 64] |= UINT64_C(1) << e->status % 64;
    d->taken++;
}

static void read_events(struct data *d) {
    struct reader_cursor c = reader_events(d->r, 0, UINT64_MAX);
    while (reader_next(&c, &d->full)) {
        d->events++;
        report_memory_see(&d->memory, d->r, &d->full);
        struct place where = place_of(d, &d->full);
        if (is_chosen(d, d->full.seq))
            add_event(d, where);
    }
    for (size_t i = 0; i < d->memory.count; i++) {
        const struct report_block *b = &d->memory.blocks[i];
#define ADD(name, value) column_add(&d->block.name, value);
        BLOCK_COLUMNS(ADD)
#undef ADD
    }
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void write_columns(struct json *j, const struct data *d) {
    json_object_open(j, "events");
#define WRITE(name, value) column_write(j, #name, &d->event.name);
    EVENT_COLUMNS(WRITE)
#undef WRITE
    column_write(j, "touchedCount", &d->event.touched_count);
    column_write(j, "touched", &d->event.touched);
    json_object_close(j);
    json_object_open(j, "blocks");
#define WRITE(name, value) column_write(j, #name, &d->block.name);
    BLOCK_COLUMNS(WRITE)
#undef WRITE
    json_object_close(j);
}

static void write_texts(struct json *j, const struct data *d) {
    char text[600];
    json_array_open(j, "names");
    for (uint32_t i = 0; i < d->names.count; i++)
        json_string(j, NULL, reader_kernel(d->r, d->names.ids[i])); /* others stay as they are */
    json_array_close(j);
    json_array_open(j, "functions");
    for (uint32_t i = 0; i < d->functions.count; i++)
        json_string(j, NULL, reader_function(d->r, d->functions.ids[i] - 1));
    json_array_close(j);
    json_array_open(j, "sites");
    for (uint32_t i = 0; i < d->sites.count; i++) {
        reader_site_text(d->r, d->sites.ids[i], text, sizeof text);
        json_string(j, NULL, text);
    }
    json_array_close(j);
}

static void write_field(struct json *j, const char *key, const struct event_field *f) {
    static const char *const formats[] = {
        [EVENT_FORMAT_NONE] = "",    [EVENT_FORMAT_ADDRESS] = "x",   [EVENT_FORMAT_BYTES] = "n",
        [EVENT_FORMAT_NUMBER] = "n", [EVENT_FORMAT_SIGNED] = "i",    [EVENT_FORMAT_HEX] = "x",
        [EVENT_FORMAT_SEQ] = "e",    [EVENT_FORMAT_DEFINITION] = "",
    };
    json_array_open(j, key);
    json_string(j, NULL, formats[f->format]);
    json_string(j, NULL, f->label);
    json_array_close(j);
}

/* Kinds and fields have the names that recordings give them. */
static void write_kinds(struct json *j) {
    json_object_open(j, "kinds");
    for (unsigned kind = 1; kind < EVENT_KIND_LIMIT; kind++) {
        const struct event_info *i = event_info(kind);
        char key[8];
        if (!i->text)
            continue;
        snprintf(key, sizeof key, "%u", kind);
        json_object_open(j, key);
        json_string(j, "text", i->text);
        json_string(j, "name", i->name);
        write_field(j, "dst", &i->dst);
        write_field(j, "src", &i->src);
        write_field(j, "len", &i->len);
        json_array_open(j, "details");
        for (unsigned n = 0; n < 16; n++)
            json_string(j, NULL, i->details ? i->details[n] : NULL);
        json_array_close(j);
        json_object_close(j);
    }
    json_object_close(j);
}

static void write_statuses(struct json *j, const struct data *d) {
    json_object_open(j, "statuses");
    for (unsigned i = 0; i < 64 * 64; i++) {
        char key[8];
        if (!(d->statuses[i / 64] >> i % 64 & 1))
            continue;
        snprintf(key, sizeof key, "%u", i);
        json_string(j, key, hip_error_name((hipError_t)i));
    }
    json_object_close(j);
}

static void write_tracks(struct json *j, const struct data *d) {
    json_array_open(j, "streams");
    for (uint32_t id = 1; id <= reader_count(d->r, DEFINITION_STREAM); id++) {
        const struct stream_value *s = reader_stream(d->r, id);
        if (!s)
            continue;
        json_object_open(j, NULL);
        json_u64(j, "id", id);
        json_format(j, "label", "s%u %s", id,
                    lang_page(d->lang, s->flags & RECORD_STREAM_DEFAULT      ? "default stream"
                                       : s->flags & RECORD_STREAM_PER_THREAD ? "per-thread default"
                                       : s->flags & 1 ? "stream, non-blocking"
                                                      : "stream"));
        json_format(j, "title", "%s s%u: handle 0x%" PRIx64 ", %s %u, flags 0x%x",
                    lang_page(d->lang, "stream"), id, s->handle, lang_page(d->lang, "device"),
                    s->device, s->flags);
        json_object_close(j);
    }
    json_array_close(j);
    json_array_open(j, "threads");
    for (uint32_t id = 1; id <= reader_count(d->r, DEFINITION_THREAD); id++) {
        const struct thread_value *t = reader_thread(d->r, id);
        if (!t)
            continue;
        json_object_open(j, NULL);
        json_u64(j, "id", id);
        json_format(j, "label", "t%u %s", id, reader_string(d->r, t->name));
        json_format(j, "title", "%s t%u: pid %u, tid %u", lang_page(d->lang, "thread"), id, t->pid,
                    t->tid);
        json_object_close(j);
    }
    json_array_close(j);
}

static void write_seq(struct json *j, const char *key, uint64_t seq) {
    if (seq == EVENT_NO_SEQ)
        json_null(j, key);
    else
        json_u64(j, key, seq);
}

static void write_line(struct json *j, struct data *d, uint64_t seq) {
    char *text = NULL, key[24];
    size_t size = 0;
    FILE *out;
    if (seq == EVENT_NO_SEQ || !reader_event(d->r, seq, &d->full) ||
        !(out = open_memstream(&text, &size)))
        return;
    format_event(out, d->r, &d->full);
    fclose(out);
    snprintf(key, sizeof key, "%" PRIu64, seq);
    json_string(j, key, text);
    free(text);
}

static void write_actor(struct json *j, const char *key, const struct verdict_actor *a) {
    if (!a) {
        json_null(j, key);
        return;
    }
    json_object_open(j, key);
    write_seq(j, "event", a->event);
    json_format(j, "address", "0x%" PRIx64, a->address);
    json_u64(j, "len", a->len);
    json_object_close(j);
}

/* Culprit, messenger, evidence; and of these events the whole line, extras included. */
static void write_actors(struct json *j, struct data *d) {
    const verdict *v = d->v;
    const struct verdict_finding *f = v->root ? v->root : v->finding_count ? v->findings : NULL;
    write_actor(j, "culprit", v->culprit);
    write_actor(j, "messenger", v->messenger);
    write_actor(j, "other", f ? f->other : NULL);
    write_seq(j, "block", f && f->block ? f->block->alloc : EVENT_NO_SEQ);
    json_array_open(j, "evidence");
    for (size_t i = 0; f && i < f->evidence_count && i < 64; i++)
        json_u64(j, NULL, f->evidence[i]);
    json_array_close(j);
    json_object_open(j, "lines");
    if (v->culprit)
        write_line(j, d, v->culprit->event);
    if (v->messenger)
        write_line(j, d, v->messenger->event);
    if (f && f->other)
        write_line(j, d, f->other->event);
    for (size_t i = 0; f && i < f->evidence_count && i < 64; i++)
        write_line(j, d, f->evidence[i]);
    json_object_close(j);
}

/* Texts of the scripts that differ from English. */
static void write_words(struct json *j, enum lang lang) {
    const char *english, *text;
    json_object_open(j, "words");
    for (unsigned i = 0; lang != LANG_EN && lang_page_row(i, lang, &english, &text); i++)
        if (strcmp(english, text) != 0)
            json_string(j, english, text);
    json_object_close(j);
}

static void write_data(FILE *out, struct data *d) {
    struct json j = json_begin(out, 0);
    json_object_open(&j, NULL);
    json_u64(&j, "count", d->taken);
    json_u64(&j, "omitted", d->events - d->taken);
    json_u64(&j, "blockCount", d->memory.count);
    json_u64(&j, "blocksOmitted", d->memory.omitted);
    write_columns(&j, d);
    write_texts(&j, d);
    write_kinds(&j);
    write_statuses(&j, d);
    write_tracks(&j, d);
    write_actors(&j, d);
    write_words(&j, d->lang);
    json_object_close(&j);
}

/* A script element ends at "</script", and "<!--" changes how it is read; '<' occurs in strings
 * only, where it can be written otherwise. */
static char *escape_tags(const char *text, size_t size) {
    size_t tags = 0;
    for (const char *p = text; (p = strchr(p, '<')); p++)
        tags++;
    char *out = malloc(size + 5 * tags + 1), *to = out;
    for (const char *p = text; out && *p; p++) {
        if (*p == '<') {
            memcpy(to, "\\u003c", 6);
            to += 6;
        } else {
            *to++ = *p;
        }
    }
    if (out)
        *to = '\0';
    return out;
}

/* ---- all ----------------------------------------------------------------------------------- */

static bool data_failed(const struct data *d) {
    bool failed = d->memory.out_of_memory;
#define FAILED(name, value) failed |= d->event.name.failed;
    EVENT_COLUMNS(FAILED)
#undef FAILED
#define FAILED(name, value) failed |= d->block.name.failed;
    BLOCK_COLUMNS(FAILED)
#undef FAILED
    return failed || d->event.touched.failed || d->event.touched_count.failed;
}

static void data_free(struct data *d) {
    if (!d)
        return;
#define FREE(name, value) free(d->event.name.bytes);
    EVENT_COLUMNS(FREE)
#undef FREE
#define FREE(name, value) free(d->block.name.bytes);
    BLOCK_COLUMNS(FREE)
#undef FREE
    free(d->event.touched.bytes);
    free(d->event.touched_count.bytes);
    numbers_close(&d->names);
    numbers_close(&d->sites);
    numbers_close(&d->functions);
    report_memory_clear(&d->memory);
    free(d->places);
    free(d->safe);
    free(d);
}

static struct data *data_make(const verdict *v, const reader *r,
                              const struct report_html_options *o) {
    struct data *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->lang = o ? o->lang : LANG_EN;
    d->v = v;
    d->r = r;
    d->start_ns = reader_info(r)->start_ns;
    d->memory.limit = o && o->blocks_max ? o->blocks_max : BLOCKS_USUAL;
    d->threads = reader_count(r, DEFINITION_THREAD) + 1;
    d->places = calloc(d->threads, sizeof *d->places);
    d->safe = calloc(d->threads, sizeof *d->safe);
    if (!d->places || !d->safe || !numbers_open(&d->names, reader_count(r, DEFINITION_STRING)) ||
        !numbers_open(&d->sites, reader_count(r, DEFINITION_SITE)) ||
        !numbers_open(&d->functions, EVENT_NO_FN)) {
        data_free(d);
        return NULL;
    }
    for (uint32_t i = 0; i < d->threads; i++)
        d->places[i] = d->safe[i] = (struct place){ -1, -1 };
    choose_events(d, o && o->events_max ? o->events_max : EVENTS_USUAL);
    read_events(d);
    return d;
}

enum rc report_html_data(char **text, const verdict *v, const reader *r,
                         const struct report_html_options *o, struct err *e) {
    struct data *d = data_make(v, r, o);
    char *plain = NULL, *escaped = NULL;
    size_t size = 0;
    FILE *out = d && !data_failed(d) ? open_memstream(&plain, &size) : NULL;
    if (out) {
        write_data(out, d);
        if (fclose(out) == 0)
            escaped = escape_tags(plain, size);
    }
    free(plain);
    data_free(d);
    if (!escaped)
        return err_set(e, RC_MEMORY, "no memory for the data of the HTML report");
    *text = escaped;
    return RC_OK;
}
