/* greta_bench - how fast a model runs here, and what part of the machine it gets. The options are
 * in tools/bench/options.def. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gcore/audit.h>

#include "audit/attach.h"
#include "audit/audit.h"
#include "base/cpu.h"
#include "base/env.h"
#include "base/output.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/way.h"
#include "tools/bench/baseline.h"
#include "tools/bench/options.h"
#include "tools/bench/report.h"
#include "tools/bench/times.h"
#include "tools/common/program.h"

struct bench {
    struct options options;
    struct report report;
    json_tree *baseline;
    uint64_t buffer;
    FILE *text;    /* the table for people */
    bool progress; /* a terminal is there to show it on */
};

static bool interrupted(void *user) {
    (void)user;
    return program_interrupted();
}

static bool go_on_loading(uint64_t done, uint64_t total, void *user) {
    (void)done, (void)total, (void)user;
    return !program_interrupted();
}

static void show_report(const char *text, void *user) {
    (void)user;
    fputs(text, stderr);
}

static void show_progress(const struct bench *b, const char *what) {
    if (b->progress)
        fprintf(stderr, "\r\033[K%s%s", what, *what ? " …" : "");
}

/* ---- what to measure ------------------------------------------------------------------------- */

static void add_run(struct report *r, struct measure_run run) {
    for (size_t i = 0; i < r->run_count; i++)
        if (r->runs[i].kind == run.kind && r->runs[i].tokens == run.tokens &&
            r->runs[i].depth == run.depth && r->runs[i].batch == run.batch &&
            r->runs[i].threads == run.threads)
            return;
    r->runs[r->run_count++] = run;
}

static void plan_decode(struct report *r, const struct options *o, uint32_t threads) {
    for (size_t b = 0; b < o->batch_size.count; b++)
        for (size_t d = 0; d < o->depth.count; d++)
            for (size_t n = 0; n < o->decode.count; n++)
                if (o->decode.items[n])
                    add_run(r, (struct measure_run){ .kind = MEASURE_DECODE,
                                                     .tokens = o->decode.items[n],
                                                     .depth = o->depth.items[d],
                                                     .batch = o->batch_size.items[b],
                                                     .threads = threads });
}

static enum rc plan(struct bench *b, struct err *e) {
    const struct options *o = &b->options;
    struct report *r = &b->report;
    size_t decodes = o->decode.count * o->depth.count * o->batch_size.count;
    r->runs = calloc(o->threads.count * (o->prompt.count + decodes), sizeof *r->runs);
    if (!r->runs)
        return err_set(e, RC_MEMORY, "out of memory");
    for (size_t t = 0; t < o->threads.count; t++) {
        for (size_t p = 0; p < o->prompt.count; p++)
            if (o->prompt.items[p])
                add_run(r, (struct measure_run){ .kind = MEASURE_PROMPT,
                                                 .tokens = o->prompt.items[p],
                                                 .batch = 1,
                                                 .threads = o->threads.items[t] });
        plan_decode(r, o, o->threads.items[t]);
    }
    return RC_OK;
}

static enum rc check_context(const struct report *r, struct err *e) {
    uint32_t context = r->work.config.context;
    for (size_t i = 0; i < r->run_count; i++) {
        const struct measure_run *run = &r->runs[i];
        uint32_t positions = measure_positions(run);
        char depth[32] = "";
        if (positions <= context)
            continue;
        if (run->depth)
            snprintf(depth, sizeof depth, "--depth %u ", run->depth);
        return err_set(e, RC_USAGE, "%s--%s %u takes %u positions, and the model's context has %u",
                       depth, run->kind == MEASURE_PROMPT ? "prompt" : "decode", run->tokens,
                       positions, context);
    }
    return RC_OK;
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* Twice, before and after the model: neighbours on the same machine come and go. */
static enum rc measure_machines(struct bench *b, struct err *e) {
    struct report *r = &b->report;
    enum rc rc = RC_OK;
    for (size_t i = 0; !rc && i < b->options.threads.count && !program_interrupted(); i++) {
        show_progress(b, "measuring memory and multiplication");
        rc = machine_measure(&r->machines[i], b->options.threads.items[i], b->buffer,
                             program_interrupted, e);
        if (!rc && r->machine_count <= i)
            r->machine_count = i + 1;
    }
    return rc;
}

static void note_settings(struct bench *b, const engine *g) {
    const struct options *o = &b->options;
    const struct hip_runtime *runtime = gcore_runtime();
    struct report *r = &b->report;
    struct report_settings *s = &r->settings;
    r->host = runtime && runtime->kind == HIP_DEVICE_SOFT;
    snprintf(r->description, sizeof r->description, "%s", engine_description(g));
    snprintf(s->device, sizeof s->device, "%s", r->host ? "soft" : "hip");
    snprintf(s->cpu, sizeof s->cpu, "%s", isa_name(isa_chosen()));
    snprintf(s->matrices, sizeof s->matrices, "%s", o->no_repack ? "as in the file" : "repacked");
    snprintf(s->kv_type, sizeof s->kv_type, "%s", r->work.kv_type);
    snprintf(s->chunk, sizeof s->chunk, "%u",
             o->chunk.value ? (unsigned)o->chunk.value : ENGINE_CHUNK);
    snprintf(s->recording, sizeof s->recording, "%s", audit.writer ? "on" : "off");
}

static enum rc open_engine(struct bench *b, engine **g, const struct measure_run *like,
                           uint32_t context, struct err *e) {
    const struct options *o = &b->options;
    bool off;
    struct engine_options eo = {
        .model = o->model,
        .device = o->device,
        .record = o->record,
        .context = context,
        .sequences = like->batch,
        .chunk = (uint32_t)o->chunk.value,
        .threads = like->threads,
        .kv_type = o->kv_type,
        .no_repack = o->no_repack,
        .repack_first_bytes = UINT64_MAX,
        .progress = go_on_loading,
        .report = show_report,
    };
    enum rc rc = env_read_flag(ENV_GRETA_DISABLE_GUARD_RAIL, &off, e);
    if (rc)
        return rc;
    eo.guard_rail = !off;
    show_progress(b, "loading");
    rc = engine_open(g, &eo, e);
    if (!rc)
        note_settings(b, *g);
    return rc;
}

/* All runs that an engine like that of `first` can do: its batch, its threads. */
static enum rc measure_alike(struct bench *b, size_t first, bool *done, struct err *e) {
    struct report *r = &b->report;
    const struct measure_run like = r->runs[first];
    const struct machine *m = report_find_machine(r, like.threads);
    engine *g = NULL;
    machine_reader *memory = NULL;
    uint32_t context = 1;
    for (size_t i = first; i < r->run_count; i++)
        if (r->runs[i].batch == like.batch && r->runs[i].threads == like.threads)
            context =
                measure_positions(&r->runs[i]) > context ? measure_positions(&r->runs[i]) : context;
    enum rc rc = open_engine(b, &g, &like, context, e);
    if (!rc && m && r->host)
        rc = machine_reader_open(&memory, m, program_interrupted, e);
    for (size_t i = first; !rc && i < r->run_count; i++) {
        char name[64];
        if (r->runs[i].batch != like.batch || r->runs[i].threads != like.threads)
            continue;
        report_name_run(&r->runs[i], name, sizeof name);
        show_progress(b, name);
        rc =
            measure_take(&r->runs[i], g, (uint32_t)b->options.repeat.value, interrupted, memory, e);
        if (!rc && b->options.explain)
            times_print(name, b->text);
        done[i] = true;
    }
    machine_reader_close(&memory);
    enum rc closed = engine_close(&g, rc ? NULL : e);
    return rc ? rc : closed;
}

static enum rc measure_all(struct bench *b, struct err *e) {
    bool *done = calloc(b->report.run_count, sizeof *done);
    enum rc rc = done ? measure_machines(b, e) : err_set(e, RC_MEMORY, "out of memory");
    for (size_t i = 0; !rc && i < b->report.run_count; i++)
        if (!done[i])
            rc = program_interrupted() ? RC_BUSY : measure_alike(b, i, done, e);
    free(done);
    rc = rc ? rc : measure_machines(b, e);
    if (rc == RC_BUSY && program_interrupted())
        rc = RC_OK;
    b->report.interrupted = program_interrupted();
    show_progress(b, "");
    return rc;
}

/* ---- results --------------------------------------------------------------------------------- */

static bool measured_something(const struct report *r) {
    for (size_t i = 0; i < r->run_count; i++)
        if (r->runs[i].count)
            return true;
    return false;
}

static enum rc write_json(const struct bench *b, struct err *e) {
    const char *path = b->options.json;
    if (!strcmp(path, "-"))
        return report_write_json(&b->report, stdout, e);
    struct output out;
    enum rc rc = output_open(&out, path, e);
    return rc ? rc : output_close(&out, report_write_json(&b->report, out.file, e), e);
}

static enum rc compare(const struct bench *b, struct err *e) {
    const struct options *o = &b->options;
    unsigned compared, slower;
    baseline_compare(b->baseline, &b->report, o->tolerance.value, b->text, &compared, &slower);
    if (!compared)
        return err_set(e, RC_FORMAT,
                       "%s: nothing to compare: it has none of the lengths, batch sizes and thread "
                       "counts that were measured",
                       o->baseline);
    if (slower)
        return err_set(e, RC_RANGE, "slower than %s by more than %g%%: %u of %u", o->baseline,
                       o->tolerance.value, slower, compared);
    return RC_OK;
}

/* The ways of a type that were measured while the model ran; whether there are any. */
static bool explain_type(FILE *out, const struct tensor_type_info *t) {
    bool any = false;
    for (unsigned kind = 0; kind < WAY_KINDS; kind++) {
        const bool last = kind + 1 == WAY_KINDS;
        const size_t tokens = way_kind_tokens(kind);
        struct way way;
        const char *name = way_chosen(t->type, tokens, &way);
        if (!name)
            continue;
        fprintf(out, "  %-7s %4zu%s %-15s %s, ", t->name, tokens, last ? "…" : " ", name,
                way_set(&way)->name);
        if (way.stream.rows)
            fprintf(out, "%u row%s at once, %u bytes ahead\n", way.stream.rows,
                    way.stream.rows == 1 ? "" : "s", way.stream.far);
        else if (!way.several)
            fprintf(out, "%u rows side by side, %u and %u bytes ahead\n", way.groups * PACK_ROWS,
                    way.ahead.far, way.ahead.near);
        else if (way.shared)
            fprintf(out, "weights shared as they are read\n");
        else if (!way.turn)
            fprintf(out, "panel by panel\n");
        else
            fprintf(out, "%u panels, %u tokens in turn\n", way.panels, way.turn);
        any = true;
    }
    return any;
}

static void explain(FILE *out) {
    bool any = false;
    fputs(
        "\nWays to go through the weights, for up to so many tokens at once (bytes ahead: into the "
        "L2 cache and into the L1 cache):\n",
        out);
    for (const struct tensor_type_info *t = NULL; (t = tensor_type_next(t));)
        any |= explain_type(out, t);
    if (!any)
        fputs("  not measured, the matrices are too small for memory to matter\n", out);
}

static enum rc show(struct bench *b, struct err *e) {
    if (!measured_something(&b->report))
        return err_set(e, RC_BUSY, "interrupted before anything was measured");
    report_print(&b->report, b->text);
    if (b->options.explain)
        explain(b->text);
    enum rc rc = b->options.json ? write_json(b, e) : RC_OK;
    rc = rc || !b->baseline ? rc : compare(b, e);
    if (fflush(b->text) && !rc)
        rc = err_set(e, RC_IO, "standard output cannot be written: %s", strerror(errno));
    return rc;
}

/* Mistakes are reported before anything takes time. */
static enum rc prepare(struct bench *b, struct err *e) {
    struct options *o = &b->options;
    if (!o->threads.count)
        o->threads = (struct option_counts){ { (uint32_t)cpu_count() }, 1 };
    b->report.model = o->model;
    b->buffer = o->buffer ? o->buffer : machine_default_buffer();
    b->text = o->json && !strcmp(o->json, "-") ? stderr : stdout;
    b->progress = isatty(STDERR_FILENO);
    if (o->explain)
        times_wanted();
    enum rc rc = o->baseline ? baseline_open(&b->baseline, o->baseline, e) : RC_OK;
    rc = rc ? rc : work_read(&b->report.work, o->model, o->kv_type, e);
    rc = rc ? rc : plan(b, e);
    return rc ? rc : check_context(&b->report, e);
}

static int run(struct bench *b) {
    struct err e = { 0 };
    enum rc rc = prepare(b, &e);
    rc = rc ? rc : measure_all(b, &e);
    bool began = measured_something(&b->report);
    rc = rc ? rc : show(b, &e);
    if (rc)
        fprintf(stderr, "greta_bench: %s\n", e.msg);
    gcore_close();
    json_tree_close(&b->baseline);
    free(b->report.runs);
    return program_exit_code(rc, began);
}

int main(int argc, char **argv) {
    struct bench b = { .options = options_default };
    int code = option_begin(&options_table, &b.options, argc, argv, NULL);
    if (code >= 0)
        return code;
    program_catch_interrupts();
    program_survive_file_limit();
    return run(&b);
}
