/* Decode steps as graphs: the same bits as kernel by kernel under every schedule, the same proofs,
 * and faults that name kernel, layer and step. */
#include "unit/test.h"

#include <stdlib.h>

#include <gcore/audit.h>

#include "infer/engine_internal.h"
#include "support/recorded.h"

enum { GENERATE = 12, FREED_LAYER = 1 };

/* What a child leaves. */
static struct told {
    struct recorded run;
    int64_t step; /* the first after a buffer was freed */
} * told;

static void submit(engine *g, uint32_t tokens) {
    static const int32_t prompt[] = { 1, 300, 411, 522, 633, 744, 855 };
    struct err e = { 0 };
    uint32_t number;
    struct engine_request r = { .prompt = prompt,
                                .prompt_count = sizeof prompt / sizeof *prompt,
                                .max_tokens = tokens,
                                .sampling = sampler_defaults,
                                .ignore_end = true,
                                .logits = recorded_add_logits,
                                .finished = recorded_keep_tokens,
                                .user = g };
    r.sampling.temperature = 0;
    if (engine_submit(g, &r, &number, &e))
        abort();
}

/* A second sequence joins after four steps and leaves before the first. */
static void run_steps(engine *g, bool frees, struct err *e) {
    bool more = true;
    submit(g, GENERATE);
    for (int i = 0; !told->run.rc && more; i++) {
        if (i == 4 && !frees)
            submit(g, 3);
        if (i == 6 && frees) {
            struct kern_view *keys = &g->stages.at[0].cache.layers[FREED_LAYER].keys;
            told->step = g->step;
            (void)g->stages.at[0].device.hip->hipFree(keys->ptr);
            keys->ptr = NULL; /* the engine does not free it again */
        }
        told->run.rc = engine_step(g, &more, e);
    }
}

struct way {
    const char *schedule, *graphs;
    bool frees;
};

static void child(const void *argument) {
    const struct way *w = argument;
    engine *g = NULL;
    struct err e = { 0 };
    struct engine_options o = {
        .device = "soft", .guard_rail = true, .threads = 2, .sequences = 2
    };
    setenv("GRETA_SOFT_SCHEDULE", w->schedule, 1);
    setenv("GRETA_HIP_GRAPH", w->graphs, 1);
    told->run.rc = engine_open(&g, &o, &e);
    if (!told->run.rc)
        run_steps(g, w->frees, &e);
    snprintf(told->run.message, sizeof told->run.message, "%s", e.msg);
    enum rc closed = engine_close(&g, NULL);
    told->run.rc = told->run.rc ? told->run.rc : closed;
    gcore_close();
}

static struct told run(const char *schedule, const char *graphs, bool frees) {
    const struct way w = { schedule, graphs, frees };
    recorded_run(schedule, child, &w);
    return *told;
}

static const char *const schedules[] = { "fast", "eager", "lazy", "random:3" };
enum { SCHEDULES = 4 };

static void graphs_give_the_same_bits_and_proofs(void **state) {
    (void)state;
    for (int i = 0; i < SCHEDULES; i++) {
        struct recorded plain = run(schedules[i], "0", false).run;
        verdict *a = recorded_judge();
        struct recorded graph = run(schedules[i], "1", false).run;
        verdict *b = recorded_judge();
        if (plain.rc || graph.rc)
            fail_msg("%s: %s%s", schedules[i], plain.message, graph.message);
        assert_int_equal(graph.count, plain.count);
        assert_memory_equal(graph.tokens, plain.tokens, plain.count * sizeof *plain.tokens);
        assert_true(graph.logits == plain.logits);
        assert_int_equal(a->overall, VERDICT_CLEAN);
        assert_int_equal(b->overall, VERDICT_CLEAN);
        assert_int_equal(a->coverage.graph_launches, 0);
        assert_int_equal(b->coverage.launches, a->coverage.launches);
        assert_true(b->coverage.graph_launches >= GENERATE - 6);
        for (int h = 0; h < HYPOTHESIS_COUNT; h++)
            if (h != HYPOTHESIS_RESOURCE_LEAK && h != HYPOTHESIS_UPSTREAM_KERNEL_FAULT &&
                h != HYPOTHESIS_UNCHECKED_ERROR)
                assert_int_equal(b->hypothesis[h].checked, a->hypothesis[h].checked);
        verdict_close(&a);
        verdict_close(&b);
    }
}

static void a_fault_names_kernel_layer_and_step(void **state) {
    (void)state;
    for (int i = 0; i < SCHEDULES; i++) {
        struct told t = run(schedules[i], "1", true);
        assert_int_equal(t.run.rc, RC_DEVICE);
        verdict *v = recorded_judge();
        assert_int_equal(v->overall, VERDICT_ROOT_CAUSE);
        assert_true(v->finding_count > 0);
        const struct verdict_finding *f = &v->findings[0];
        assert_int_equal(f->hypothesis, HYPOTHESIS_USE_AFTER_FREE);
        assert_string_equal(f->culprit.kernel, "attention_step");
        assert_true(f->culprit.replay != 0);
        assert_int_equal(f->culprit.layer, FREED_LAYER);
        assert_int_equal(f->culprit.step, t.step);
        verdict_close(&v);
    }
}

static int prepare(void **state) {
    (void)state;
    told = recorded_open(sizeof *told);
    return told ? 0 : -1;
}

static int clean_up(void **state) {
    (void)state;
    recorded_close();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_give_the_same_bits_and_proofs),
        cmocka_unit_test(a_fault_names_kernel_layer_and_step),
    };
    return cmocka_run_group_tests(tests, prepare, clean_up);
}
