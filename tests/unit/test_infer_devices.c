/* Models that several devices share by layers: the same bits as on one, the same proofs, memory
 * divided, and lists that cannot be. */
#include "unit/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gcore/audit.h>

#include "infer/engine_internal.h"
#include "kernels/hip/image.h"
#include "support/model_run.h"
#include "support/recorded.h"

enum { GENERATE = 8, DEVICES = 3 };

static char model[] = "/tmp/greta-devices-model-XXXXXX";

/* What a child leaves. */
static struct told {
    struct recorded run;
    uint64_t weights[DEVICES], cache[DEVICES]; /* bytes that each device has of them */
    uint32_t stages;
} * told;

static void submit(engine *g, uint32_t tokens, float temperature, bool logits) {
    int32_t prompt[40];
    struct err e = { 0 };
    uint32_t number;
    model_run_fill_tokens(prompt, 40, g->config.vocab);
    struct engine_request r = { .prompt = prompt,
                                .prompt_count = 40,
                                .max_tokens = tokens,
                                .sampling = sampler_defaults,
                                .ignore_end = true,
                                .logits = logits ? recorded_add_logits : NULL,
                                .finished = recorded_keep_tokens,
                                .user = g };
    r.sampling.temperature = temperature;
    r.sampling.seed = 7;
    if (engine_submit(g, &r, &number, &e))
        abort();
}

/* Two sequences with the same beginning, one of which leaves first; then one whose tokens the
 * device draws. */
static void run_steps(engine *g, struct err *e) {
    bool more = true;
    submit(g, GENERATE, 0, true);
    submit(g, GENERATE / 2, 0, true);
    while (!told->run.rc && more)
        told->run.rc = engine_step(g, &more, e);
    submit(g, GENERATE, 0.8f, false);
    more = true;
    while (!told->run.rc && more)
        told->run.rc = engine_step(g, &more, e);
}

static uint64_t bytes_of(const struct kern_view *views, int count) {
    uint64_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += views[i].bytes;
    return bytes;
}

static void count_memory(const engine *g) {
    told->stages = g->stages.count;
    for (uint32_t s = 0; s < g->stages.count; s++) {
        const struct stage *stage = &g->stages.at[s];
        told->weights[s] = bytes_of(stage->weights.tensor, CONFIG_TENSOR_COUNT);
        for (uint32_t l = 0; l < g->config.layers; l++) {
            told->weights[s] += bytes_of(stage->weights.layers[l].tensor, CONFIG_TENSOR_COUNT);
            told->cache[s] +=
                stage->cache.layers[l].keys.bytes + stage->cache.layers[l].values.bytes;
        }
    }
}

struct way {
    const char *devices, *exec, *schedule, *graphs, *fuse;
};

static void child(const void *argument) {
    const struct way *w = argument;
    engine *g = NULL;
    struct err e = { 0 };
    struct engine_options o = { .model = model,
                                .device = "soft",
                                .exec = w->exec,
                                .devices = w->devices,
                                .guard_rail = true,
                                .chunk = 16,
                                .context = 256,
                                .threads = 2,
                                .sequences = 2 };
    setenv("GRETA_SOFT_DEVICES", "3", 1);
    setenv("GRETA_SOFT_SCHEDULE", w->schedule, 1);
    setenv("GRETA_HIP_GRAPH", w->graphs, 1);
    setenv("GRETA_FUSE", w->fuse, 1);
    told->run.rc = engine_open(&g, &o, &e);
    if (!told->run.rc) {
        count_memory(g);
        run_steps(g, &e);
    }
    snprintf(told->run.message, sizeof told->run.message, "%s", e.msg);
    enum rc closed = engine_close(&g, NULL);
    told->run.rc = told->run.rc ? told->run.rc : closed;
    gcore_close();
}

static struct told run(const struct way *w) {
    recorded_run(w->devices ? w->devices : "one device", child, w);
    return *told;
}

static void assert_clean(const struct way *w) {
    verdict *v = recorded_judge();
    if (v->overall != VERDICT_CLEAN)
        fail_msg("devices %s, schedule %s: verdict %d", w->devices, w->schedule, v->overall);
    verdict_close(&v);
}

static void assert_same(const struct way *one, const struct way *several) {
    struct recorded a = run(one).run, b = run(several).run;
    assert_clean(several);
    if (a.rc || b.rc)
        fail_msg("devices %s: %s%s", several->devices, a.message, b.message);
    assert_true(a.count > 0);
    assert_int_equal(a.count, b.count);
    assert_memory_equal(a.tokens, b.tokens, a.count * sizeof *a.tokens);
    if (a.logits != b.logits)
        fail_msg("devices %s, schedule %s: other logits", several->devices, several->schedule);
}

static void several_devices_give_the_same_bits_and_proofs(void **state) {
    (void)state;
    static const char *const schedules[] = { "fast", "eager", "lazy", "random:3" };
    static const char *const lists[] = { "0,1", "2,0", "1", "0,2,1" };
    for (int i = 0; i < 4; i++) {
        const char *graphs = i % 2 ? "0" : "1", *fuse = i == 2 ? "0" : "1";
        const struct way one = { NULL, NULL, schedules[i], graphs, fuse };
        for (int l = 0; l < 4; l++)
            if (i == 0 || l == i) {
                const struct way more = { lists[l], NULL, schedules[i], graphs, fuse };
                assert_same(&one, &more);
            }
    }
}

static void gpu_code_gives_the_same_bits_on_two_devices(void **state) {
    (void)state;
    if (!strcmp(image_origin(), "none"))
        skip();
#if defined(__SANITIZE_THREAD__)
    skip(); /* the devices' threads are those of native code; the interpreter takes minutes */
#endif
    const struct way one = { NULL, "isa", "fast", "1", "1" },
                     two = { "0,1", "isa", "lazy", "1", "1" };
    assert_same(&one, &two);
}

/* Embedding and output are of one size here, layers too. */
static void memory_is_divided(void **state) {
    (void)state;
    const struct way one = { NULL, NULL, "fast", "1", "1" },
                     two = { "0,1", NULL, "fast", "1", "1" };
    struct told a = run(&one), b = run(&two);
    assert_int_equal(a.stages, 1);
    assert_int_equal(b.stages, 2);
    assert_int_equal(b.weights[0] + b.weights[1], a.weights[0]);
    assert_in_range(b.weights[0], a.weights[0] / 4, a.weights[0] / 2);
    assert_int_equal(b.cache[0] + b.cache[1], a.cache[0]);
    assert_int_equal(b.cache[0] * 3, a.cache[0]); /* one layer of three */
}

static void lists_that_cannot_be_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *list;
        enum rc rc;
        const char *says;
    } cases[] = { { "", RC_USAGE, "separated by commas" },
                  { "0,", RC_USAGE, "separated by commas" },
                  { "a", RC_USAGE, "found 'a'" },
                  { "0;1", RC_USAGE, "separated by commas" },
                  { "-1", RC_USAGE, "separated by commas" },
                  { "99999999999999999999", RC_USAGE, "separated by commas" },
                  { "0,1,0", RC_USAGE, "device 0 is given twice" },
                  { "0,3", RC_REFUSED, "no device 3: the HIP runtime shows 3" },
                  { "0,1,2,3", RC_USAGE, "4 devices for a model of 3 layers" } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct way w = { cases[i].list, NULL, "fast", "1", "1" };
        struct recorded t = run(&w).run;
        assert_int_equal(t.rc, cases[i].rc);
        if (!strstr(t.message, cases[i].says))
            fail_msg("'%s': %s", cases[i].list, t.message);
    }
}

static int set_up(void **state) {
    (void)state;
    int fd = mkstemp(model);
    if (fd < 0)
        return -1;
    close(fd);
    told = recorded_open(sizeof *told);
    model_run_write(model, "dim=128,layers=3,heads=4,kv_heads=2,hidden=256,vocab=512", "Q8_0", 5);
    return told ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    recorded_close();
    return unlink(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_devices_give_the_same_bits_and_proofs),
        cmocka_unit_test(gpu_code_gives_the_same_bits_on_two_devices),
        cmocka_unit_test(memory_is_divided),
        cmocka_unit_test(lists_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
