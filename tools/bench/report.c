#include "tools/bench/report.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "greta_build.h"

/* ---- figures -------------------------------------------------------------------------------- */

const struct machine *report_find_machine(const struct report *r, uint32_t threads) {
    for (size_t i = 0; i < r->machine_count; i++)
        if (r->machines[i].threads == threads)
            return &r->machines[i];
    return NULL;
}

static double best_gops(const struct machine *m, unsigned bits) {
    const struct machine_peak *p = m ? machine_best(m, bits) : NULL;
    return p ? p->gops : NAN;
}

/* 1e9 operations per second that a prompt needs, a multiplication and its addition being two. */
static double prompt_gops(const struct report *r, const struct measure_run *run) {
    return 2 * work_prompt_macs(&r->work, run->tokens) * run->tokens_per_second / 1e9;
}

/* 1e9 bytes that a token of a decoding run reads. */
static double decode_gb(const struct report *r, const struct measure_run *run) {
    uint32_t depth = run->depth ? run->depth : 1;
    return work_decode_bytes(&r->work, depth, run->tokens, run->batch) / 1e9;
}

/* The bandwidth of memory, in GB/s, while a decoding run was measured; NAN if unknown. */
static double decode_bandwidth(const struct measure_run *run) {
    return run->tokens_per_gbps > 0 ? run->tokens_per_second / run->tokens_per_gbps : NAN;
}

/* Bits of the factors in the products of a prompt. */
static unsigned peak_bits(const struct report *r) {
    return r->work.is_float ? 32 : 8;
}

/* The fraction of the bandwidth at that time (decode), or of the multiplication peak (prompt:
 * 8-bit, or float for a model of floats), for that many threads; NAN if there is nothing to compare
 * with. */
static double fraction_of(const struct report *r, const struct measure_run *run) {
    const struct machine *m = report_find_machine(r, run->threads);
    if (!r->host || !m || !run->count)
        return NAN;
    double part = run->kind == MEASURE_PROMPT ? prompt_gops(r, run) / best_gops(m, peak_bits(r))
                                              : decode_gb(r, run) * run->tokens_per_gbps;
    return isfinite(part) && part > 0 ? part : NAN;
}

/* The first run of a kind that was measured: the result is named after it. */
static const struct measure_run *first_run(const struct report *r, enum measure_kind kind) {
    for (size_t i = 0; i < r->run_count; i++)
        if (r->runs[i].kind == kind && r->runs[i].count)
            return &r->runs[i];
    return NULL;
}

void report_name_run(const struct measure_run *run, char *text, size_t size) {
    if (run->kind == MEASURE_PROMPT)
        snprintf(text, size, "prompt %u", run->tokens);
    else if (run->depth)
        snprintf(text, size, "decode %u after %u", run->tokens, run->depth);
    else
        snprintf(text, size, "decode %u", run->tokens);
}

/* ---- text ----------------------------------------------------------------------------------- */

static void print_machine(const struct machine *m, FILE *out) {
    const struct machine_peak *peak = machine_best(m, 8);
    fprintf(out, "%u thread%s: reads %.1f GB/s", m->threads, m->threads == 1 ? "" : "s",
            m->read_gbps);
    if (peak)
        fprintf(out, "; 8-bit multiply-add %.0f Gop/s (%s)", peak->gops, peak->set);
    if (machine_best(m, 16))
        fprintf(out, ", 16-bit %.0f", best_gops(m, 16));
    if (machine_best(m, 32))
        fprintf(out, ", float %.0f", best_gops(m, 32));
    fputc('\n', out);
}

static void print_run(const struct report *r, const struct measure_run *run, FILE *out) {
    char name[64], part[64] = "";
    double fraction = fraction_of(r, run);
    report_name_run(run, name, sizeof name);
    if (!isnan(fraction) && run->kind == MEASURE_DECODE)
        snprintf(part, sizeof part, "%5.1f%% of the bandwidth then, %.1f GB/s", fraction * 100,
                 decode_bandwidth(run));
    else if (!isnan(fraction))
        snprintf(part, sizeof part, "%5.1f%% of the %s peak", fraction * 100,
                 peak_bits(r) == 8 ? "8-bit" : "float");
    fprintf(out, "%-24s %7u %6u %10.2f %8.1f%%   %s\n", name, run->threads, run->batch,
            run->tokens_per_second, measure_spread(run) * 100, part);
}

void report_print(const struct report *r, FILE *out) {
    const struct work *w = &r->work;
    if (r->description[0])
        fprintf(out, "%s\n", r->description);
    fprintf(out, "%s: a token reads %.1f MB of weights and %.1f KB of cache per position,", w->type,
            (double)w->weight_bytes / 1e6, (double)w->kv_bytes / 1e3);
    fprintf(out, " and takes %.4g million multiplications\n",
            (double)(w->layer_macs + w->output_macs) / 1e6);
    for (size_t i = 0; i < r->machine_count; i++)
        print_machine(&r->machines[i], out);
    bool any = false;
    for (size_t i = 0; i < r->run_count; i++) {
        if (!r->runs[i].count)
            continue;
        if (!any)
            fprintf(out, "\n%-24s %7s %6s %10s %9s   %s\n", "", "threads", "batch", "tokens/s",
                    "spread", "part of what the machine can do");
        any = true;
        print_run(r, &r->runs[i], out);
    }
    if (r->interrupted)
        fputs("Interrupted: what was not measured by then is missing.\n", out);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void write_model(const struct report *r, struct json *j) {
    const struct work *w = &r->work;
    json_object_open(j, "model");
    json_string(j, "path", r->model);
    json_string(j, "name", w->config.name);
    json_string(j, "type", w->type);
    json_u64(j, "parameters", w->parameters);
    json_u64(j, "bytes", w->file_bytes);
    json_u64(j, "weight_bytes_per_step", w->weight_bytes);
    json_u64(j, "cache_bytes_per_position", w->kv_bytes);
    json_u64(j, "layer_macs_per_token", w->layer_macs);
    json_u64(j, "output_macs_per_token", w->output_macs);
    json_u64(j, "attention_macs_per_position", w->attention_macs);
    json_object_close(j);
}

static void write_settings(const struct report_settings *s, struct json *j) {
    json_object_open(j, "settings");
#define SETTING(name, what) json_string(j, #name, s->name);
#include "tools/bench/settings.def"
    json_object_close(j);
}

static void write_machine(const struct machine *m, struct json *j, const char *key) {
    json_object_open(j, key);
    json_u64(j, "threads", m->threads);
    json_double(j, "read_gbps", m->read_gbps);
    json_u64(j, "read_bytes", m->buffer);
    json_double(j, "int8_gops", best_gops(m, 8));
    json_double(j, "int16_gops", best_gops(m, 16));
    json_double(j, "float_gops", best_gops(m, 32));
    json_array_open(j, "peaks");
    for (size_t i = 0; i < m->peak_count; i++) {
        const struct machine_peak *p = &m->peaks[i];
        json_object_open(j, NULL);
        json_string(j, "set", p->set);
        json_string(j, "instruction", p->instruction);
        json_u64(j, "bits", p->bits);
        json_double(j, "gops", p->gops);
        json_object_close(j);
    }
    json_array_close(j);
    json_object_close(j);
}

static void write_run(const struct report *r, const struct measure_run *run, struct json *j,
                      const char *key) {
    bool prompt = run->kind == MEASURE_PROMPT;
    json_object_open(j, key);
    json_string(j, "kind", prompt ? "prompt" : "decode");
    json_u64(j, "tokens", run->tokens);
    json_u64(j, "depth", run->depth);
    json_u64(j, "batch", run->batch);
    json_u64(j, "threads", run->threads);
    json_double(j, "tokens_per_second", run->tokens_per_second);
    json_double(j, "spread", measure_spread(run));
    if (prompt) {
        const struct machine *m = report_find_machine(r, run->threads);
        json_double(j, "gops", prompt_gops(r, run));
        json_double(j, "peak_fraction", fraction_of(r, run));
        json_double(j, "float_peak_fraction",
                    r->host ? prompt_gops(r, run) / best_gops(m, 32) : NAN);
    } else {
        json_double(j, "read_gbps", decode_gb(r, run) * run->tokens_per_second);
        json_double(j, "bandwidth_gbps", decode_bandwidth(run));
        json_double(j, "read_fraction", fraction_of(r, run));
    }
    json_array_open(j, "samples");
    for (uint32_t i = 0; i < run->count; i++)
        json_double(j, NULL, run->samples[i]);
    json_array_close(j);
    json_object_close(j);
}

static void write_first(const struct report *r, enum measure_kind kind, struct json *j,
                        const char *key) {
    const struct measure_run *run = first_run(r, kind);
    if (run)
        write_run(r, run, j, key);
    else
        json_null(j, key);
}

enum rc report_write_json(const struct report *r, FILE *out, struct err *e) {
    struct json j = json_begin(out, 2);
    json_object_open(&j, NULL);
    json_string(&j, "greta", GRETA_VERSION);
    json_string(&j, "commit", GRETA_BUILD_COMMIT);
    json_bool(&j, "changed", GRETA_BUILD_DIRTY);
    json_string(&j, "description", r->description);
    write_model(r, &j);
    write_settings(&r->settings, &j);
    if (r->machine_count)
        write_machine(&r->machines[0], &j, "machine");
    else
        json_null(&j, "machine");
    write_first(r, MEASURE_PROMPT, &j, "prompt");
    write_first(r, MEASURE_DECODE, &j, "decode");
    json_array_open(&j, "runs");
    for (size_t i = 0; i < r->run_count; i++)
        if (r->runs[i].count)
            write_run(r, &r->runs[i], &j, NULL);
    json_array_close(&j);
    json_array_open(&j, "machines");
    for (size_t i = 0; i < r->machine_count; i++)
        write_machine(&r->machines[i], &j, NULL);
    json_array_close(&j);
    json_bool(&j, "interrupted", r->interrupted);
    json_object_close(&j);
    return json_end(&j, e);
}
