#include "tools/bench/measure.h"

#include <stdlib.h>

#include "infer/rewind.h"
#include "tools/bench/times.h"

/* A context cannot be empty: generating begins with evaluating a token. */
static uint32_t first_tokens(const struct measure_run *r) {
    return r->kind == MEASURE_PROMPT ? r->tokens : r->depth ? r->depth : 1;
}

double measure_spread(const struct measure_run *r) {
    if (!r->count || r->tokens_per_second <= 0)
        return 0;
    return (r->samples[r->count - 1] - r->samples[0]) / r->tokens_per_second;
}

uint32_t measure_positions(const struct measure_run *r) {
    return first_tokens(r) + (r->kind == MEASURE_DECODE ? r->tokens : 0);
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts and returns the median. */
static double median(double *values, uint32_t count) {
    qsort(values, count, sizeof *values, compare);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* gbps: the bandwidth of memory at that time; 0: unknown. */
static void add_sample(struct measure_run *r, double speed, double gbps) {
    r->samples[r->count] = speed;
    r->per_gbps[r->count++] = gbps > 0 ? speed / gbps : 0;
    r->tokens_per_second = median(r->samples, r->count);
    r->tokens_per_gbps = median(r->per_gbps, r->count);
}

/* Tokens from all over the vocabulary, the same in every run: what they mean does not matter, where
 * their rows lie in the embedding could. */
static int32_t *make_tokens(const engine *g, uint32_t count) {
    int32_t *ids = malloc(count * sizeof *ids);
    uint32_t state = 12345;
    for (uint32_t i = 0; ids && i < count; i++) {
        state = state * 1664525u + 1013904223u;
        ids[i] = (int32_t)(((uint64_t)state * engine_config(g)->vocab) >> 32);
    }
    return ids;
}

static enum rc generate(engine *g, const struct engine_request *q, struct engine_result *result,
                        struct err *e) {
    enum rc rc = engine_generate(g, q, result, e);
    token_list_close(&result->tokens);
    return rc ? rc : result->end == ENGINE_INTERRUPTED ? RC_BUSY : RC_OK;
}

/* If one sequence decodes after a context, the context is evaluated once and every sample rewinds
 * to it. */
static bool keeps_context(const struct measure_run *r) {
    return r->kind == MEASURE_DECODE && r->batch == 1 && r->depth > 1;
}

/* *gbps is the bandwidth of memory before the sample; it is measured again after it. */
static enum rc take_sample(struct measure_run *r, engine *g, const struct engine_request *q,
                           machine_reader *memory, double *gbps, struct err *e) {
    struct engine_result result;
    const double before = *gbps;
    if (keeps_context(r))
        engine_rewind(g, r->depth - 1); /* the request gives the last token again */
    times_begin();
    enum rc rc = generate(g, q, &result, e);
    times_end();
    if (!rc && memory)
        rc = machine_reader_take(memory, gbps, e);
    if (rc)
        return rc;
    if (r->kind == MEASURE_PROMPT && result.total_ms > 0)
        add_sample(r, r->tokens * 1e3 / result.total_ms, 0);
    else if (r->kind == MEASURE_DECODE)
        add_sample(r, result.tokens_per_second, (before + *gbps) / 2);
    return RC_OK;
}

enum rc measure_take(struct measure_run *r, engine *g, uint32_t repeat,
                     bool (*interrupted)(void *user), machine_reader *memory, struct err *e) {
    uint32_t count = first_tokens(r);
    double gbps = 0;
    int32_t *ids = make_tokens(g, count);
    if (!ids)
        return err_set(e, RC_MEMORY, "out of memory");
    struct engine_request q = { .prompt = ids,
                                .prompt_count = count,
                                .max_tokens = r->kind == MEASURE_DECODE ? r->tokens + 1 : 0,
                                .ignore_end = true,
                                .unshared = true, /* every sample does all the work */
                                .sampling = sampler_defaults,
                                .interrupted = interrupted };
    q.sampling.temperature = 0;
    enum rc rc = RC_OK;
    if (keeps_context(r)) {
        struct engine_request context = q;
        struct engine_result result;
        context.max_tokens = 0;
        rc = generate(g, &context, &result, e);
        q.prompt = ids + count - 1;
        q.prompt_count = 1;
        q.append = true;
    }
    if (r->kind == MEASURE_PROMPT)
        memory = NULL;
    if (!rc && memory)
        rc = machine_reader_take(memory, &gbps, e);
    for (uint32_t i = 0; !rc && i < repeat; i++)
        rc = take_sample(r, g, &q, memory, &gbps, e);
    free(ids);
    return rc;
}
