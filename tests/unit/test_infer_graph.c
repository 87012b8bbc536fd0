/* Decode steps as graphs: the same bits as kernel by kernel under every schedule, the same proofs,
 * and faults that name kernel, layer and step. */
#include "unit/test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gcore/audit.h>

#include "infer/engine_internal.h"
#include "verdict/verdict.h"

enum { GENERATE = 12, FREED_LAYER = 1 };

static char path[] = "/tmp/greta-graph-XXXXXX";

/* What the child leaves. */
static struct told {
    enum rc rc;
    char message[512];
    uint64_t logits; /* a hash of all */
    int32_t tokens[64];
    size_t count;
    int64_t step; /* the first after a buffer was freed */
} * told;

static enum rc add_logits(uint32_t position, int32_t token, const float *logits, void *user,
                          struct err *e) {
    const engine *g = user;
    (void)position;
    (void)token;
    (void)e;
    for (uint32_t i = 0; i < g->config.vocab; i++) {
        uint32_t bits;
        memcpy(&bits, &logits[i], sizeof bits);
        told->logits = (told->logits ^ bits) * 0x100000001b3u;
    }
    return RC_OK;
}

static void keep_tokens(uint32_t sequence, const struct engine_finished *f, void *user) {
    (void)sequence;
    (void)user;
    for (size_t i = 0; i < f->tokens->count && told->count < 64; i++)
        told->tokens[told->count++] = f->tokens->ids[i];
}

static void submit(engine *g, uint32_t tokens) {
    static const int32_t prompt[] = { 1, 300, 411, 522, 633, 744, 855 };
    struct err e = { 0 };
    uint32_t number;
    struct engine_request r = { .prompt = prompt,
                                .prompt_count = sizeof prompt / sizeof *prompt,
                                .max_tokens = tokens,
                                .sampling = sampler_defaults,
                                .ignore_end = true,
                                .logits = add_logits,
                                .finished = keep_tokens,
                                .user = g };
    r.sampling.temperature = 0;
    if (engine_submit(g, &r, &number, &e))
        abort();
}

/* A second sequence joins after four steps and leaves before the first. */
static void run_steps(engine *g, bool frees, struct err *e) {
    bool more = true;
    submit(g, GENERATE);
    for (int i = 0; !told->rc && more; i++) {
        if (i == 4 && !frees)
            submit(g, 3);
        if (i == 6 && frees) {
            struct kern_view *keys = &g->stages.at[0].cache.layers[FREED_LAYER].keys;
            told->step = g->step;
            (void)g->stages.at[0].device.hip->hipFree(keys->ptr);
            keys->ptr = NULL; /* the engine does not free it again */
        }
        told->rc = engine_step(g, &more, e);
    }
}

static void child(const char *schedule, const char *graphs, bool frees) {
    engine *g = NULL;
    struct err e = { 0 };
    struct engine_options o = {
        .device = "soft", .guard_rail = true, .threads = 2, .sequences = 2
    };
    unlink(path);
    setenv("GCORE_RECORD", path, 1);
    setenv("GRETA_SOFT_SCHEDULE", schedule, 1);
    setenv("GRETA_HIP_GRAPH", graphs, 1);
    told->rc = engine_open(&g, &o, &e);
    if (!told->rc)
        run_steps(g, frees, &e);
    snprintf(told->message, sizeof told->message, "%s", e.msg);
    enum rc closed = engine_close(&g, NULL);
    told->rc = told->rc ? told->rc : closed;
    gcore_close();
}

static struct told run(const char *schedule, const char *graphs, bool frees) {
    memset(told, 0, sizeof *told);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        child(schedule, graphs, frees);
        exit(0);
    }
    int status;
    waitpid(pid, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        fail_msg("%s: ended with status %d", schedule, status);
    return *told;
}

static verdict *judge(void) {
    struct err e = { 0 };
    reader *r = NULL;
    verdict *v = NULL;
    if (reader_open(&r, path, &e) || verdict_open(&v, r, NULL, &e))
        fail_msg("%s", e.msg);
    reader_close(&r);
    return v;
}

static const char *const schedules[] = { "fast", "eager", "lazy", "random:3" };
enum { SCHEDULES = 4 };

static void graphs_give_the_same_bits_and_proofs(void **state) {
    (void)state;
    for (int i = 0; i < SCHEDULES; i++) {
        struct told plain = run(schedules[i], "0", false);
        verdict *a = judge();
        struct told graph = run(schedules[i], "1", false);
        verdict *b = judge();
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
        assert_int_equal(t.rc, RC_DEVICE);
        verdict *v = judge();
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
    int fd = mkstemp(path);
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return fd < 0 || close(fd) || told == MAP_FAILED ? -1 : 0;
}

static int clean_up(void **state) {
    (void)state;
    munmap(told, sizeof *told);
    return unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_give_the_same_bits_and_proofs),
        cmocka_unit_test(a_fault_names_kernel_layer_and_step),
    };
    return cmocka_run_group_tests(tests, prepare, clean_up);
}
