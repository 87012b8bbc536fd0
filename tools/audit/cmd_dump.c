/* greta_audit dump - prints a recording: what the header says, one line per event, and what is
 * missing. Works on the recording of a program that is still running, or that was killed. */
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "record/format.h"
#include "symbol/lines.h"
#include "tools/audit/cmd.h"
#include "tools/audit/graph_log.h"
#include "verdict/verdict.h"

typedef unsigned option_event_kind_type; /* 0: all */

static enum rc read_kind(void *to, const char *text, void *all, struct err *e) {
    unsigned *kind = to;
    (void)all;
    *kind = event_kind_parse(text);
    return *kind ? RC_OK : err_set(e, RC_USAGE, "a kind of event (--kinds lists them)");
}

static const struct option_kind option_event_kind = { .read = read_kind };

struct options {
#define OPTION OPTION_FIELD
#include "tools/audit/dump.def"
};

static const struct option_row rows[] = {
#define OPTION OPTION_ROW
#include "tools/audit/dump.def"
};

const struct option_table cmd_dump_options = {
    .name = "greta_audit dump",
    .rows = rows,
    .count = OPTION_COUNT_OF(rows),
    .command = true,
    .before = "Usage: greta_audit dump [options] RECORDING\n"
              "\n"
              "Prints a recording: its header, one line per event, and what is missing.\n"
              "RECORDING is a file, or the folder in which `greta_audit run` put it.\n"
              "\n",
};

/* ---- header -------------------------------------------------------------------------------- */

static void wall_text(uint64_t us, char out[64]) {
    time_t seconds = (time_t)(us / 1000000);
    struct tm tm;
    char day[32];
    if (!gmtime_r(&seconds, &tm) || !strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm))
        snprintf(day, sizeof day, "?");
    snprintf(out, 64, "%s.%06uZ", day, (unsigned)(us % 1000000));
}

static const char *how_text(uint32_t how) {
    return how == PROCESS_CREATED  ? "created the recording"
           : how == PROCESS_JOINED ? "joined it"
           : how == PROCESS_FORKED ? "forked"
                                   : "?";
}

static void print_processes(const reader *r) {
    for (uint32_t id = 1; id <= reader_count(r, DEFINITION_PROCESS); id++) {
        const struct process_value *p = reader_process(r, id);
        if (!p)
            continue;
        printf("# process %u: pid %u, parent %u, %s, program ", id, p->pid, p->parent,
               how_text(p->how));
        format_text(stdout, reader_string(r, p->program));
        putchar('\n');
    }
    for (uint32_t id = 1; id <= reader_count(r, DEFINITION_THREAD); id++) {
        const struct thread_value *t = reader_thread(r, id);
        if (!t)
            continue;
        printf("# thread t%u: pid %u, tid %u, name ", id, t->pid, t->tid);
        format_text(stdout, reader_string(r, t->name));
        putchar('\n');
    }
}

static void print_header(const reader *r) {
    const struct reader_info *i = reader_info(r);
    char wall[64];
    wall_text(i->start_wall_us, wall);
    printf("# greta recording, version %u, run %016" PRIx64 ", started %s by pid %u\n", i->version,
           i->run_id, wall, i->pid);
    printf("# %" PRIu64 " bytes, ring of %" PRIu64 " slots, %" PRIu64 " claimed\n", i->file_bytes,
           i->capacity, i->end_seq);
    for (uint32_t id = 1; id <= reader_count(r, DEFINITION_PROVENANCE); id++) {
        const struct provenance_value *p = reader_provenance(r, id);
        if (!p)
            continue;
        fputs("# provenance ", stdout);
        format_text(stdout, reader_string(r, p->key));
        putchar('=');
        format_text(stdout, reader_string(r, p->value));
        putchar('\n');
    }
    print_processes(r);
    for (uint32_t id = 1; id <= reader_count(r, DEFINITION_STREAM); id++) {
        const struct stream_value *s = reader_stream(r, id);
        if (s)
            printf("# stream s%u: handle 0x%" PRIx64 ", device %u, flags 0x%x, priority %d\n", id,
                   s->handle, s->device, s->flags, s->priority);
    }
}

static void print_end(const reader *r, const struct reader_counts *c, uint64_t shown) {
    const struct reader_info *i = reader_info(r);
    printf("# %" PRIu64 " events (%" PRIu64 " shown), %" PRIu64 " extra slots, %" PRIu64
           " lost, %" PRIu64 " overwritten, %" PRIu64 " torn, %" PRIu64 " cut off, %" PRIu64
           " definitions lost\n",
           c->whole, shown, c->extras, i->lost, c->overwritten, c->torn, c->truncated,
           i->lost_definitions);
    if (i->clean)
        printf(i->attached == 1 ? "# closed cleanly: the process ended its recording\n"
                                : "# closed cleanly: all %u processes ended their recording\n",
               i->attached);
    else
        printf("# not closed: %u of %u processes ended their recording\n", i->ended, i->attached);
}

/* ---- text ---------------------------------------------------------------------------------- */

static void print_stack(const reader *r, uint32_t site) {
    unsigned count;
    bool whole = false;
    const struct site_frame *f = reader_site(r, site, &count, &whole);
    for (unsigned n = 0; n < count; n++) {
        format_frame(stdout, r, &f[n], "    ");
        if (!n && !whole && count > 1)
            puts("    called, the first time, from");
    }
}

/* Text with control characters as \\xNN. */
static void print_plain(const char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            printf("\\x%02x", (unsigned)(unsigned char)*text);
        else
            putchar(*text);
}

static void print_unused(const reader *r) {
    struct arena words = { 0 };
    const struct sentence *said;
    for (size_t i = 0; (said = verdict_unused_file(&words, r, i)); i++) {
        fputs("# ", stdout);
        print_plain(sentence_text(LANG_EN, said));
        putchar('\n');
    }
    arena_clear(&words);
}

/* What a graph launch runs, one per line. Limited, because a malicious recording could make this
 * very long. */
static void print_graph(const reader *r, const struct graph_log *log,
                        const struct reader_event *launch, uint64_t *lines) {
    enum { LINES_MAX = 1 << 20 };
    struct graph_log_walk w = graph_log_launch(log, launch);
    for (const struct graph_log_node *n; (n = graph_log_next(&w)) && *lines < LINES_MAX; ++*lines) {
        printf("    %s ", event_kind_text(n->kind));
        format_text(stdout, n->kind == EVENT_LAUNCH ? reader_kernel(r, n->name)
                                                    : reader_function(r, n->fn));
        if (n->layer >= 0)
            printf(" layer=%" PRId64, n->layer);
        if (w.step >= 0)
            printf(" step=%" PRId64, w.step);
        printf(" captured=#%" PRIu64 "\n", n->event);
    }
}

/* The events before those that are shown may have captured what these launch. */
static void note_before(const reader *r, uint64_t from, struct graph_log *log,
                        struct reader_event *e) {
    struct reader_cursor c = reader_events(r, 0, from ? from - 1 : 0);
    while (from && reader_next(&c, e))
        graph_log_note(log, e);
}

static void dump_text(const reader *r, const struct options *o) {
    struct reader_cursor c = reader_events(r, o->from, o->to);
    struct reader_event *e = malloc(sizeof *e);
    struct graph_log *log = graph_log_open();
    uint64_t shown = 0, lines = 0;
    print_header(r);
    if (e && log)
        note_before(r, o->from, log, e);
    while (e && log && reader_next(&c, e)) {
        graph_log_note(log, e);
        if (o->kind && e->event.kind != o->kind)
            continue;
        shown++;
        format_event(stdout, r, e);
        putchar('\n');
        if (o->stacks)
            print_stack(r, e->event.site);
        if (e->event.kind == EVENT_GRAPH_LAUNCH)
            print_graph(r, log, e, &lines);
    }
    print_unused(r);
    print_end(r, &c.counts, shown);
    graph_log_close(&log);
    free(e);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void header_json(struct json *j, const reader *r) {
    const struct reader_info *i = reader_info(r);
    json_object_open(j, NULL);
    json_u64(j, "version", i->version);
    json_format(j, "run", "%016" PRIx64, i->run_id);
    json_u64(j, "pid", i->pid);
    json_u64(j, "start_ns", i->start_ns);
    json_u64(j, "start_wall_us", i->start_wall_us);
    json_u64(j, "capacity", i->capacity);
    json_array_open(j, "provenance"); /* a key may be there several times */
    for (uint32_t id = 1; id <= reader_count(r, DEFINITION_PROVENANCE); id++) {
        const struct provenance_value *p = reader_provenance(r, id);
        if (!p)
            continue;
        json_object_open(j, NULL);
        json_string(j, "key", reader_string(r, p->key));
        json_string(j, "value", reader_string(r, p->value));
        json_object_close(j);
    }
    json_array_close(j);
    json_array_open(j, "threads");
    for (uint32_t id = 1; id <= reader_count(r, DEFINITION_THREAD); id++) {
        const struct thread_value *t = reader_thread(r, id);
        if (!t)
            continue;
        json_object_open(j, NULL);
        json_u64(j, "thread", id);
        json_u64(j, "process", t->process);
        json_u64(j, "pid", t->pid);
        json_u64(j, "tid", t->tid);
        json_string(j, "name", reader_string(r, t->name));
        json_object_close(j);
    }
    json_array_close(j);
    json_object_close(j);
}

static void end_json(struct json *j, const reader *r, const struct reader_counts *c,
                     uint64_t shown) {
    const struct reader_info *i = reader_info(r);
    json_object_open(j, NULL);
    json_u64(j, "events", c->whole);
    json_u64(j, "shown", shown);
    json_u64(j, "extra_slots", c->extras);
    json_u64(j, "lost", i->lost);
    json_u64(j, "overwritten", c->overwritten);
    json_u64(j, "torn", c->torn);
    json_u64(j, "cut_off", c->truncated);
    json_u64(j, "definitions_lost", i->lost_definitions);
    json_u64(j, "processes", i->attached);
    json_u64(j, "processes_ended", i->ended);
    json_bool(j, "closed", i->clean);
    json_object_close(j);
}

/* The call stacks by site_id - 1. */
static void stacks_json(const reader *r) {
    fputs("\n],\n\"stacks\":[", stdout);
    for (uint32_t id = 1; id <= reader_count(r, DEFINITION_SITE); id++) {
        fputs(id > 1 ? ",\n" : "\n", stdout);
        struct json j = json_begin(stdout, 0);
        format_stack_json(&j, r, id);
    }
}

static void dump_json(const reader *r, const struct options *o) {
    struct reader_cursor c = reader_events(r, o->from, o->to);
    struct reader_event *e = malloc(sizeof *e);
    uint64_t shown = 0;
    fputs("{\"recording\":", stdout);
    struct json j = json_begin(stdout, 0);
    header_json(&j, r);
    fputs(",\n\"events\":[", stdout);
    while (e && reader_next(&c, e)) {
        if (o->kind && e->event.kind != o->kind)
            continue;
        fputs(shown++ ? ",\n" : "\n", stdout);
        j = json_begin(stdout, 0);
        format_event_json(&j, r, e);
    }
    if (o->stacks)
        stacks_json(r);
    fputs("\n],\n\"summary\":", stdout);
    j = json_begin(stdout, 0);
    end_json(&j, r, &c.counts, shown);
    fputs("}\n", stdout);
    free(e);
}

static int dump(const char *path, const struct options *o) {
    struct err e;
    reader *r;
    if (reader_open(&r, path, &e) != RC_OK) {
        option_say(&cmd_dump_options, "%s", e.msg);
        return EXIT_FOUND;
    }
    lines_attach(r);
    (o->json ? dump_json : dump_text)(r, o);
    reader_close(&r);
    return option_flush(&cmd_dump_options) ? EXIT_CLEAN : EXIT_FOUND;
}

int cmd_dump(int argc, char **argv) {
    static const struct option_table *const t = &cmd_dump_options;
    struct options o = { .to = UINT64_MAX };
    struct option_operands files;
    int code = option_begin(t, &o, argc, argv, &files);
    if (code >= 0)
        return code;
    if (o.kinds) {
        format_tables(stdout);
        return EXIT_CLEAN;
    }
    if (files.count != 1)
        return option_wrong(t,
                            files.count ? "expected one recording, found also" : "name a recording",
                            files.count ? files.words[1] : NULL);
    return dump(files.words[0], &o);
}
