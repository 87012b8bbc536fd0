#include "report/report_perfetto.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/json.h"
#include "base/output.h"
#include "hip/hip_api.h"
#include "record/format.h"
#include "record/writer.h"
#include "report/report_memory.h"

enum {
    DEVICE_PID = 1000000000, /* plus the device's number: no process has it */
    NESTING_MAX = 16,
    WANTED_MAX = 256,
    FAMILIES = 16,
};

/* A row of the picture. Slices of a track must nest or follow each other. */
struct track {
    uint64_t pid, tid;
    uint64_t ends[NESTING_MAX]; /* of the slices that are open, the innermost last */
    unsigned depth;
    bool nests; /* calls do; operations of a stream follow each other */
};

/* Where a slice that arrows may touch was drawn. */
struct placed {
    uint64_t seq, start, pid, tid;
};

struct trace {
    FILE *out;
    const verdict *v;
    const reader *r;
    uint64_t start_ns;
    bool any; /* an entry was written */
    struct track *threads, *streams;
    uint32_t thread_count, stream_count;
    struct placed *placed; /* in order of seq */
    size_t placed_count, placed_room;
    uint64_t wanted[WANTED_MAX]; /* events that arrows may touch, besides records */
    unsigned wanted_count;
    uint64_t arrows;
    struct report_memory memory;
    uint64_t alive[FAMILIES]; /* as last written */
    bool out_of_memory;
    struct reader_event full;
};

/* ---- entries ------------------------------------------------------------------------------- */

/* An entry of the list, up to its time. */
static struct json entry_open(struct trace *t, const char *phase, const char *name, uint64_t pid,
                              uint64_t tid) {
    fputs(t->any ? ",\n" : "\n", t->out);
    t->any = true;
    struct json j = json_begin(t->out, 0);
    json_object_open(&j, NULL);
    json_string(&j, "ph", phase);
    json_string(&j, "name", name);
    json_u64(&j, "pid", pid);
    json_u64(&j, "tid", tid);
    return j;
}

/* Nanoseconds as the format's microseconds, exactly. Written by hand, because the JSON writer takes
 * a double, which might be rounded. */
static void entry_time(struct json *j, const char *key, uint64_t ns) {
    fprintf(j->out, ", \"%s\": %" PRIu64 ".%03u", key, ns / 1000, (unsigned)(ns % 1000));
}

static void name_entry(struct trace *t, const char *what, uint64_t pid, uint64_t tid,
                       const char *name) {
    struct json j = entry_open(t, "M", what, pid, tid);
    json_object_open(&j, "args");
    json_string(&j, "name", name);
    json_object_close(&j);
    json_object_close(&j);
}

static void sort_entry(struct trace *t, const char *what, uint64_t pid, uint64_t tid, int64_t at) {
    struct json j = entry_open(t, "M", what, pid, tid);
    json_object_open(&j, "args");
    json_i64(&j, "sort_index", at);
    json_object_close(&j);
    json_object_close(&j);
}

static void arrow_end(struct trace *t, const char *phase, const char *name, uint64_t id,
                      const struct placed *p) {
    struct json j = entry_open(t, phase, name, p->pid, p->tid);
    json_string(&j, "cat", "greta");
    json_u64(&j, "id", id);
    if (*phase == 'f')
        json_string(&j, "bp", "e");
    entry_time(&j, "ts", p->start);
    json_object_close(&j);
}

static void arrow(struct trace *t, const char *name, const struct placed *from,
                  const struct placed *to) {
    if (!from || !to)
        return;
    arrow_end(t, "s", name, ++t->arrows, from);
    arrow_end(t, "f", name, t->arrows, to);
}

/* ---- tracks -------------------------------------------------------------------------------- */

static void open_threads(struct trace *t) {
    char name[256];
    for (uint32_t id = 1; id <= reader_count(t->r, DEFINITION_PROCESS); id++) {
        const struct process_value *p = reader_process(t->r, id);
        if (!p)
            continue;
        snprintf(name, sizeof name, "%s", reader_string(t->r, p->program));
        name_entry(t, "process_name", p->pid, 0, name);
    }
    for (uint32_t id = 1; id < t->thread_count; id++) {
        const struct thread_value *d = reader_thread(t->r, id);
        t->threads[id] =
            (struct track){ .pid = d ? d->pid : 0, .tid = d ? d->tid : id, .nests = true };
        if (!d)
            continue;
        snprintf(name, sizeof name, "t%u %s", id, reader_string(t->r, d->name));
        name_entry(t, "thread_name", d->pid, d->tid, name);
    }
}

static void open_streams(struct trace *t) {
    char name[128];
    for (uint32_t id = 1; id < t->stream_count; id++) {
        const struct stream_value *s = reader_stream(t->r, id);
        uint64_t device = s ? s->device & 0xffffu : 0;
        t->streams[id] = (struct track){ .pid = DEVICE_PID + device, .tid = id };
        if (!s)
            continue;
        snprintf(name, sizeof name, "device %u: streams, where operations were queued", s->device);
        name_entry(t, "process_name", DEVICE_PID + device, 0, name);
        sort_entry(t, "process_sort_index", DEVICE_PID + device, 0, -1);
        snprintf(name, sizeof name, "s%u%s 0x%" PRIx64, id,
                 s->flags & RECORD_STREAM_DEFAULT ? " default stream" : "", s->handle);
        name_entry(t, "thread_name", DEVICE_PID + device, id, name);
    }
}

/* Fits a slice into its track. */
static void fit(struct track *k, uint64_t *start, uint64_t *end) {
    if (*end <= *start)
        *end = *start + 1;
    if (!k->nests) {
        uint64_t length = *end - *start;
        if (k->depth && *start < k->ends[0])
            *start = k->ends[0];
        *end = *start + length;
        k->ends[0] = *end;
        k->depth = 1;
        return;
    }
    while (k->depth && k->ends[k->depth - 1] <= *start)
        k->depth--;
    if (k->depth && *end > k->ends[k->depth - 1])
        *end = k->ends[k->depth - 1];
    if (k->depth < NESTING_MAX)
        k->ends[k->depth++] = *end;
}

/* ---- slices -------------------------------------------------------------------------------- */

static void slice_value(struct json *j, const struct event_field *f, uint64_t value) {
    if (f->format == EVENT_FORMAT_ADDRESS || f->format == EVENT_FORMAT_HEX)
        json_format(j, f->label, "0x%" PRIx64, value);
    else if (f->format == EVENT_FORMAT_SEQ && value == EVENT_NO_SEQ)
        json_null(j, f->label);
    else if (f->format == EVENT_FORMAT_SIGNED)
        json_i64(j, f->label, (int64_t)value);
    else if (f->format != EVENT_FORMAT_NONE)
        json_u64(j, f->label, value);
}

static void slice_args(struct trace *t, struct json *j) {
    const struct event *e = &t->full.event;
    const struct event_info *info = event_info(e->kind);
    char site[512], room[FORMAT_NAME];
    json_object_open(j, "args");
    json_u64(j, "event", t->full.seq);
    if (event_detail_text(e))
        json_string(j, "detail", event_detail_text(e));
    slice_value(j, &info->dst, e->dst);
    slice_value(j, &info->src, e->src);
    slice_value(j, &info->len, e->len);
    if (e->name)
        json_string(j, "named", format_name(reader_event_name(t->r, e), room));
    if (event_fn(e) != EVENT_NO_FN)
        json_string(j, "call", reader_function(t->r, event_fn(e)));
    if (event_is_pending(e))
        json_string(j, "result", "pending");
    else if (e->status || event_fn(e) != EVENT_NO_FN)
        json_string(j, "result", hip_error_name((hipError_t)e->status));
    if (e->site) {
        reader_site_text(t->r, e->site, site, sizeof site);
        json_string(j, "site", site);
    }
    json_object_close(j);
}

static void slice(struct trace *t, struct track *k, const char *name, struct placed *where) {
    const struct event *e = &t->full.event;
    uint64_t start = e->t_ns > t->start_ns ? e->t_ns - t->start_ns : 0;
    bool pending = event_is_pending(e) && k->nests;
    uint64_t end = start + (event_is_pending(e) ? 1 : event_duration_ns(e));
    fit(k, &start, &end);
    /* A call that never returned is a slice without an end. */
    struct json j = entry_open(t, pending ? "B" : "X", name, k->pid, k->tid);
    json_string(&j, "cat", event_kind_text(e->kind));
    entry_time(&j, "ts", start);
    if (!pending)
        entry_time(&j, "dur", end - start);
    if (e->status && !event_is_pending(e))
        json_string(&j, "cname", "terrible");
    slice_args(t, &j);
    json_object_close(&j);
    *where = (struct placed){ t->full.seq, start, k->pid, k->tid };
}

/* "gemm_k", "copy D2H logits", "event_record". */
static void operation_name(const struct trace *t, char *out, size_t room) {
    const struct event *e = &t->full.event;
    const char *name = reader_event_name(t->r, e), *detail = event_detail_text(e);
    if (e->kind == EVENT_LAUNCH && *name)
        snprintf(out, room, "%s", name);
    else
        snprintf(out, room, "%s%s%s%s%s", event_kind_text(e->kind), detail ? " " : "",
                 detail ? detail : "", *name ? " " : "", name);
}

static const char *call_name(const struct trace *t, const char *operation) {
    const struct event *e = &t->full.event;
    return event_fn(e) == EVENT_NO_FN ? operation : reader_function(t->r, event_fn(e));
}

/* ---- arrows -------------------------------------------------------------------------------- */

static void want(struct trace *t, uint64_t seq) {
    if (seq != EVENT_NO_SEQ && t->wanted_count < WANTED_MAX)
        t->wanted[t->wanted_count++] = seq;
}

static bool is_wanted(const struct trace *t) {
    if (t->full.event.kind == EVENT_EVENT_RECORD)
        return true;
    for (unsigned i = 0; i < t->wanted_count; i++)
        if (t->wanted[i] == t->full.seq)
            return true;
    return false;
}

static void remember(struct trace *t, const struct placed *p) {
    struct placed *all = grow_array(t->placed, &t->placed_room, t->placed_count, sizeof *all);
    if (!all) {
        t->out_of_memory = true;
        return;
    }
    t->placed = all;
    t->placed[t->placed_count++] = *p;
}

static const struct placed *find_placed(const struct trace *t, uint64_t seq) {
    size_t a = 0, b = t->placed_count;
    while (a < b) {
        size_t m = a + (b - a) / 2;
        if (t->placed[m].seq < seq)
            a = m + 1;
        else
            b = m;
    }
    return a < t->placed_count && t->placed[a].seq == seq ? &t->placed[a] : NULL;
}

static void event_arrows(struct trace *t, const struct placed *here) {
    const struct event *e = &t->full.event;
    if (e->kind == EVENT_EVENT_WAIT || e->kind == EVENT_EVENT_SYNC)
        arrow(t, "event", find_placed(t, e->src), here);
    else if (e->kind == EVENT_FAULT)
        arrow(t, "fault", find_placed(t, e->src), here);
}

/* ---- memory -------------------------------------------------------------------------------- */

static const char *family_text(unsigned family) {
    const struct event e = { .kind = EVENT_ALLOC, .aux = event_aux(0, family) };
    const char *text = event_detail_text(&e);
    return text ? text : "other";
}

static void count_memory(struct trace *t) {
    const struct event *e = &t->full.event;
    report_memory_see(&t->memory, t->r, &t->full);
    if (e->kind != EVENT_ALLOC && e->kind != EVENT_FREE && e->kind != EVENT_DEVICE_RESET)
        return;
    for (unsigned family = 0; family < FAMILIES; family++) {
        uint64_t now = report_memory_alive(&t->memory, family);
        char name[64];
        if (now == t->alive[family])
            continue;
        t->alive[family] = now;
        snprintf(name, sizeof name, "%s memory", family_text(family));
        struct json j = entry_open(t, "C", name, DEVICE_PID, 0);
        entry_time(&j, "ts", e->t_ns > t->start_ns ? e->t_ns - t->start_ns : 0);
        json_object_open(&j, "args");
        json_u64(&j, "bytes", now);
        json_object_close(&j);
        json_object_close(&j);
    }
}

/* ---- all ----------------------------------------------------------------------------------- */

static void see_event(struct trace *t) {
    const struct event *e = &t->full.event;
    struct placed on_thread = { 0 }, on_stream = { 0 };
    char name[256];
    operation_name(t, name, sizeof name);
    bool has_thread = e->thread && e->thread < t->thread_count;
    bool has_stream = e->stream && e->stream < t->stream_count;
    if (has_thread)
        slice(t, &t->threads[e->thread], call_name(t, name), &on_thread);
    if (has_stream)
        slice(t, &t->streams[e->stream], name, &on_stream);
    const struct placed *here = has_stream ? &on_stream : has_thread ? &on_thread : NULL;
    if (here && is_wanted(t))
        remember(t, here);
    if (here)
        event_arrows(t, here);
    count_memory(t);
}

static void write_about(struct trace *t) {
    struct json j = json_begin(t->out, 0);
    json_object_open(&j, NULL);
    json_string(&j, "verdict", verdict_overall_name(t->v->overall));
    json_string(&j, "answer", t->v->answer);
    json_string(&j, "command", t->v->provenance.command);
    json_string(&j, "commit", t->v->provenance.commit);
    json_string(&j, "recording", t->v->recording);
    json_object_close(&j);
}

static bool open_tracks(struct trace *t) {
    t->thread_count = reader_count(t->r, DEFINITION_THREAD) + 1;
    t->stream_count = reader_count(t->r, DEFINITION_STREAM) + 1;
    t->threads = calloc(t->thread_count, sizeof *t->threads);
    t->streams = calloc(t->stream_count, sizeof *t->streams);
    return t->threads && t->streams;
}

static void write_trace(struct trace *t) {
    const verdict *v = t->v;
    struct reader_cursor c = reader_events(t->r, 0, UINT64_MAX);
    fputs("{\"displayTimeUnit\": \"ns\", \"traceEvents\": [", t->out);
    open_threads(t);
    open_streams(t);
    if (v->culprit)
        want(t, v->culprit->event);
    if (v->messenger)
        want(t, v->messenger->event);
    for (size_t i = 0; i < v->finding_count; i++) {
        want(t, v->findings[i].culprit.event);
        if (v->findings[i].other)
            want(t, v->findings[i].other->event);
    }
    while (reader_next(&c, &t->full))
        see_event(t);
    if (v->culprit && v->messenger)
        arrow(t, "culprit to messenger", find_placed(t, v->culprit->event),
              find_placed(t, v->messenger->event));
    for (size_t i = 0; i < v->finding_count; i++)
        if (v->findings[i].other)
            arrow(t, hypothesis_name(v->findings[i].hypothesis),
                  find_placed(t, v->findings[i].other->event),
                  find_placed(t, v->findings[i].culprit.event));
    fputs("\n], \"otherData\": ", t->out);
    write_about(t);
    fputs("}\n", t->out);
}

enum rc report_perfetto(FILE *out, const verdict *v, const reader *r, struct err *e) {
    struct trace *t = calloc(1, sizeof *t);
    enum rc rc = RC_OK;
    if (t)
        *t = (struct trace){ .out = out, .v = v, .r = r, .start_ns = reader_info(r)->start_ns };
    if (!t || !open_tracks(t))
        rc = err_set(e, RC_MEMORY, "no memory for the trace");
    if (rc == RC_OK) {
        write_trace(t);
        if (t->out_of_memory || t->memory.out_of_memory)
            rc = err_set(e, RC_MEMORY, "no memory for the trace");
        else
            rc = output_flush(out, "the trace", e);
    }
    if (t) {
        free(t->threads);
        free(t->streams);
        free(t->placed);
        report_memory_clear(&t->memory);
    }
    free(t);
    return rc;
}
