/* Faults injected into the engine, recorded, and judged: every kind of inject.def under every
 * schedule. The hypothesis, the culprit and the messenger are the same whenever the fault struck;
 * what does not fail leaves the text as it is. */
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gcore/audit.h>

#include "infer/engine.h"
#include "infer/inject.h"
#include "support/recorded.h"

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
enum { WITH_TSAN = 1 };
/* Else each of the many children would sleep a second before it ends. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
    return "atexit_sleep_ms=0";
}
#else
enum { WITH_TSAN = 0 };
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = WITH_TSAN };
#endif

enum { GENERATE = 4, SEQUENCES_MAX = 2 };

/* ---- what is expected ------------------------------------------------------------------------ */

enum ending {
    FAULTS, /* the device fails; a later call says so */
    FAILS,  /* a call fails, and is the messenger itself */
    NEXT,   /* a call fails, and the next one is the messenger */
    GOES_ON /* nothing fails: findings */
};

static const struct expected {
    const char *spec;
    enum ending ending;
    const char *culprit;  /* API or kernel; a * at the end stands for anything */
    const char *argument; /* of the kernel, its last letters; NULL: any */
    const char *tensor;   /* NULL: any */
    int64_t layer, step;
    bool unchecked; /* launches go unchecked: only the logits' copy can be the messenger */
} table[] = {
    { "pos_size", FAULTS, "rope", "pos", "pos", 0, 0, false },
    { "pos_size@2.1", FAULTS, "rope", "pos", "pos", 2, 1, false },
    { "kv_heads", FAULTS, "matmul*", "weight", "blk.0.attn_k.weight", 0, 0, true },
    { "kv_heads@1.1", FAULTS, "matmul*", "weight", "blk.1.attn_k.weight", 1, 1, true },
    { "size_mismatch", FAILS, "hipMemcpyAsync", NULL, "x", 0, 0, false },
    { "size_mismatch:logits@3.1", FAILS, "hipMemcpyAsync", NULL, "logits", 3, 1, false },
    { "size_refused", FAILS, "gcore_d2h_copy", NULL, "x", 0, 0, false },
    { "bad_offset", FAILS, "hipMemcpyAsync", NULL, "k_cache", 0, 0, false },
    { "wild_block@1", FAULTS, "kv_store", "keys", "k_cache", 1, 0, false },
    { "invalid_pointer", FAULTS, "rmsnorm", "out", NULL, 0, 0, false },
    { "use_after_free", FAULTS, "rmsnorm", "out", "norm", 0, 0, false },
    { "use_after_free:ffn_down.weight@2.2", FAULTS, "matmul*", "weight", "blk.2.ffn_down.weight", 2,
      2, false },
    { "use_after_free:v_cache@1", FAULTS, "kv_store", "values", "v_cache", 1, 0, false },
    { "double_free", FAILS, "hipFree", NULL, "x", 0, 0, false },
    { "stream_unsynced", GOES_ON, "hipMemcpyAsync", NULL, "x", 0, 0, false },
    { "stream_unsynced@3.2", GOES_ON, "hipMemcpyAsync", NULL, "x", 3, 2, false },
    { "overlapping_copies", GOES_ON, "hipMemcpyAsync", NULL, "x", 0, 0, false },
    { "overlapping_copies:attn_q.weight@1", GOES_ON, "hipMemcpyAsync", NULL, "blk.1.attn_q.weight",
      1, 0, false },
    { "staging_reuse", GOES_ON, "hipMemcpyAsync", NULL, "x", 0, 0, false },
    { "staging_reuse:logits@0.1", GOES_ON, "hipMemcpyAsync", NULL, "logits", 0, 1, false },
    { "host_buffer_lifetime", GOES_ON, "hipMemcpyAsync", NULL, "x", 0, 0, false },
    { "kernel_trap", FAULTS, "inject_trap", NULL, NULL, 0, 0, true },
    { "kind_mismatch", GOES_ON, "hipMemcpyAsync", NULL, "x", 0, 0, false },
    { "kind_mismatch:pos@2.1", GOES_ON, "hipMemcpyAsync", NULL, "pos", 2, 1, false },
    { "uninitialised_read", GOES_ON, "rmsnorm", "x", "x", 0, 0, false },
    { "uninitialised_read:ffn_norm.weight@1", GOES_ON, "rmsnorm", "weight", "blk.1.ffn_norm.weight",
      1, 0, false },
    { "leak", GOES_ON, "hipMalloc", NULL, "x", 0, 0, false },
    { "unchecked_error", NEXT, "hipMalloc", NULL, NULL, 0, 0, false },
};

static enum verdict_hypothesis_id find_hypothesis(const char *name) {
    for (int id = 0; id < HYPOTHESIS_COUNT; id++)
        if (!strcmp(hypothesis_name((enum verdict_hypothesis_id)id), name))
            return (enum verdict_hypothesis_id)id;
    fail_msg("inject.def: %s is no hypothesis", name);
    return HYPOTHESIS_COUNT;
}

static const char *const kinds[] = {
#define INJECT(kind, hypothesis, when, tensors, tensor, text) #kind,
#include "infer/inject.def"
#undef INJECT
};
static const char *const named_as[] = {
#define INJECT(kind, hypothesis, when, tensors, tensor, text) #hypothesis,
#include "infer/inject.def"
#undef INJECT
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static int kind_of(const char *spec) {
    for (int i = 0; i < KINDS; i++)
        if (strlen(kinds[i]) == strcspn(spec, ":@") && !strncmp(kinds[i], spec, strlen(kinds[i])))
            return i;
    return -1;
}

/* ---- a run, in a child ----------------------------------------------------------------------- */

struct setting {
    const char *schedule;
    uint32_t sequences;
    const char *trace;
};

static struct recorded *told;

static void generate(engine *g) {
    static const int32_t prompt[] = { 1, 300, 411, 522, 633, 744, 855 };
    struct err e = { 0 };
    struct engine_result result = { 0 };
    struct engine_request r = { .prompt = prompt,
                                .prompt_count = sizeof prompt / sizeof *prompt,
                                .max_tokens = GENERATE,
                                .sampling = sampler_defaults,
                                .ignore_end = true };
    r.sampling.temperature = 0;
    told->rc = engine_check_injections(g, &r, &e);
    told->rc = told->rc ? told->rc : engine_generate(g, &r, &result, &e);
    for (size_t i = 0; i < result.tokens.count && i < 64; i++)
        told->tokens[told->count++] = result.tokens.ids[i];
    token_list_close(&result.tokens);
    enum rc closed = engine_close(&g, told->rc ? NULL : &e);
    told->rc = told->rc ? told->rc : closed;
    snprintf(told->message, sizeof told->message, "%s", e.msg);
}

struct way {
    const char *spec;
    const struct setting *setting;
};

static void child(const void *argument) {
    const struct way *w = argument;
    const struct setting *s = w->setting;
    engine *g = NULL;
    struct err e = { 0 };
    struct engine_options o = { .device = "soft",
                                .guard_rail = true,
                                .threads = 2,
                                .sequences = s->sequences,
                                .trace = s->trace,
                                .trace_file = "/dev/null",
                                .inject = &w->spec,
                                .inject_count = w->spec != NULL };
    setenv("GRETA_SOFT_SCHEDULE", s->schedule, 1);
    setenv("GCORE_D2H_AUDIT_LOG", "/dev/null", 1);
    told->rc = engine_open(&g, &o, &e);
    snprintf(told->message, sizeof told->message, "%s", e.msg);
    if (!told->rc)
        generate(g);
    gcore_close();
}

static void run(const char *spec, const struct setting *s) {
    const struct way w = { spec, s };
    char name[120];
    snprintf(name, sizeof name, "%s (%s)", spec ? spec : "no injection", s->schedule);
    recorded_run(name, child, &w);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static bool matches(const char *pattern, const char *text) {
    size_t n = strlen(pattern);
    if (!text)
        return false;
    return pattern[n - 1] == '*' ? !strncmp(pattern, text, n - 1) : !strcmp(pattern, text);
}

static bool ends_with(const char *text, const char *end) {
    if (!text)
        return false;
    size_t a = strlen(text), b = strlen(end);
    return a >= b && !strcmp(text + a - b, end);
}

static const char *name_of(const struct verdict_actor *a) {
    return !a ? "nothing" : a->kernel ? a->kernel : a->api;
}

/* What a trace looks at first, it reads first. */
static bool is_the_traces(const struct expected *x, const struct setting *s,
                          const struct verdict_actor *a) {
    return s->trace && x->ending == GOES_ON && !strcmp(name_of(a), "hipMemcpyAsync");
}

static bool right_culprit(const struct expected *x, const struct setting *s,
                          const struct verdict_actor *a) {
    return a &&
           (is_the_traces(x, s, a) || (matches(x->culprit, name_of(a)) &&
                                       (!x->argument || ends_with(a->argument, x->argument)))) &&
           (!x->tensor || (a->tensor && !strcmp(a->tensor, x->tensor))) && a->layer == x->layer &&
           a->step == x->step;
}

/* A traced run has copies on the way that report; one that checks its launches may stop at one. */
static bool right_messenger(const struct expected *x, const struct setting *s, const verdict *v) {
    const struct verdict_actor *m = v->messenger;
    bool logits = m && !m->kernel && m->tensor && !strcmp(m->tensor, "logits");
    switch (x->ending) {
    case FAULTS:
        if (!m || m->event == v->culprit->event || !m->status_code)
            return false;
        return s->trace || logits || (!x->unchecked && strcmp(s->schedule, "lazy") != 0);
    case FAILS:
        return m && m->event == v->culprit->event;
    case NEXT:
        return m && m->event > v->culprit->event && !strcmp(m->api, "hipMemcpyAsync");
    default:
        return !m;
    }
}

static bool right_first_line(const struct expected *x, const verdict *v) {
    char place[60];
    snprintf(place, sizeof place, "step %d, layer %d)", (int)x->step, (int)x->layer);
    return strstr(v->answer, named_as[kind_of(x->spec)]) && strstr(v->answer, place);
}

static void expect(const struct expected *x, const struct setting *s) {
    run(x->spec, s);
    verdict *v = recorded_judge();
    enum verdict_hypothesis_id id = find_hypothesis(named_as[kind_of(x->spec)]);
    bool failed = x->ending != GOES_ON;
    enum verdict_overall overall = failed ? VERDICT_ROOT_CAUSE : VERDICT_FINDINGS;
    bool right = v->overall == overall && v->finding_count && v->findings[0].hypothesis == id &&
                 right_culprit(x, s, v->culprit) && right_messenger(x, s, v) &&
                 right_first_line(x, v) && (told->rc != RC_OK) == failed;
    if (x->ending == FAULTS)
        right = right &&
                v->hypothesis[HYPOTHESIS_UPSTREAM_KERNEL_FAULT].status == VERDICT_STATUS_CONFIRMED;
    if (!right)
        fail_msg("%s (%s, %u sequences, trace %s): rc %d (%s); %s; culprit %s argument %s tensor "
                 "%s step %d layer %d; messenger %s",
                 x->spec, s->schedule, s->sequences, s->trace ? s->trace : "none", told->rc,
                 told->message, v->answer, name_of(v->culprit),
                 v->culprit && v->culprit->argument ? v->culprit->argument : "-",
                 v->culprit && v->culprit->tensor ? v->culprit->tensor : "-",
                 v->culprit ? (int)v->culprit->step : -9, v->culprit ? (int)v->culprit->layer : -9,
                 name_of(v->messenger));
    verdict_close(&v);
}

static void expect_clean(const struct setting *s) {
    run(NULL, s);
    verdict *v = recorded_judge();
    if (told->rc || v->overall != VERDICT_CLEAN)
        fail_msg("%s: rc %d (%s); %s", s->schedule, told->rc, told->message, v->answer);
    verdict_close(&v);
}

static bool is_in(const char *spec, const char *const *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!strncmp(spec, list[i], strlen(list[i])))
            return true;
    return false;
}

static bool can_run(const struct expected *x) {
    /* What kernels then do, UBSan stops before the device can: arithmetic with an offset below
     * zero, a null pointer, a position that is not aligned. */
    static const char *const stopped[] = { "wild_block", "invalid_pointer", "pos_size@2.1" };
    /* These are races, which TSan reports too. */
    static const char *const races[] = { "stream_unsynced", "overlapping_copies", "staging_reuse" };
    return !(SANITIZED && is_in(x->spec, stopped, sizeof stopped / sizeof *stopped)) &&
           !(WITH_TSAN && is_in(x->spec, races, sizeof races / sizeof *races));
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void every_kind_is_tried(void **state) {
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        bool tried = !strcmp(kinds[i], "stale_binary");
        for (size_t k = 0; k < sizeof table / sizeof *table; k++)
            tried |= kind_of(table[k].spec) == i;
        if (!tried)
            fail_msg("%s is not in the table", kinds[i]);
        find_hypothesis(named_as[i]);
    }
}

static void try_all(const char *schedule) {
    struct setting s = { schedule, 1, NULL };
    expect_clean(&s);
    for (size_t k = 0; k < sizeof table / sizeof *table; k++)
        if (can_run(&table[k]))
            expect(&table[k], &s);
}

static void fast(void **state) {
    (void)state;
    try_all("fast");
}
static void eager(void **state) {
    (void)state;
    try_all("eager");
}
static void lazy(void **state) {
    (void)state;
    try_all("lazy");
}
static void random_order(void **state) {
    (void)state;
    try_all("random:1");
    if (!SANITIZED) { /* where everything takes ten times as long */
        try_all("random:2");
        try_all("random:3");
    }
}

static void two_sequences_and_a_trace(void **state) {
    static const struct setting settings[] = { { "fast", 2, NULL },
                                               { "lazy", 2, "all" },
                                               { "random:4", 1, "q,logits" } };
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        expect_clean(&settings[i]);
        for (size_t k = 0; k < sizeof table / sizeof *table; k++)
            if (can_run(&table[k]))
                expect(&table[k], &settings[i]);
    }
}

static void what_does_not_fail_changes_no_token(void **state) {
    struct setting s = { "fast", 1, NULL };
    struct recorded clean;
    (void)state;
    run(NULL, &s);
    clean = *told;
    assert_int_equal(clean.rc, RC_OK);
    for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
        if (table[k].ending != GOES_ON || !strncmp(table[k].spec, "uninitialised", 13) ||
            !can_run(&table[k]))
            continue;
        run(table[k].spec, &s);
        assert_int_equal(told->rc, RC_OK);
        assert_int_equal(told->count, clean.count);
        assert_memory_equal(told->tokens, clean.tokens, clean.count * sizeof *clean.tokens);
    }
}

static void a_claimed_commit_is_not_judged(void **state) {
    struct setting s = { "fast", 1, NULL };
    struct err e = { 0 };
    struct verdict_options o = { .expect_commit = "0123456789abcdef" };
    reader *r = NULL;
    verdict *v = NULL;
    (void)state;
    run("stale_binary:fedcba9876543210", &s);
    assert_int_equal(told->rc, RC_OK);
    assert_int_equal(reader_open(&r, recorded_path(), &e), RC_OK);
    assert_int_equal(verdict_open(&v, r, &o, &e), RC_OK);
    assert_int_equal(v->hypothesis[HYPOTHESIS_STALE_BINARY].status, VERDICT_STATUS_CONFIRMED);
    assert_int_equal(verdict_exit_code(v), 3);
    assert_int_equal(strncmp(v->answer, "STALE_BINARY: ", 14), 0);
    assert_non_null(strstr(v->answer, "fedcba9876543210"));
    verdict_close(&v);
    o.expect_commit = "fedcba9876";
    assert_int_equal(verdict_open(&v, r, &o, &e), RC_OK);
    assert_int_equal(v->overall, VERDICT_CLEAN);
    verdict_close(&v);
    reader_close(&r);
}

static void what_cannot_be_is_said(void **state) {
    static const struct {
        const char *spec, *says;
    } wrong[] = {
        { "fly", "there are pos_size, kv_heads" },
        { "use_after_free:", "expected KIND" },
        { "use_after_free@", "expected KIND" },
        { "use_after_free@0.", "expected KIND" },
        { "use_after_free@-1", "expected KIND" },
        { "use_after_free@0.0.0", "expected KIND" },
        { "use_after_free@99999999999999999999", "expected KIND" },
        { "use_after_free@4", "layers 0 to 3" },
        { "use_after_free:blk.7.attn_q.weight", "layers 0 to 3" },
        { "use_after_free:wings", "there is no tensor wings; it can be done to ids, pos" },
        { "stream_unsynced:ids", "not with tensor ids" },
        { "kind_mismatch:logits", "not with tensor logits; it can be done to ids, pos" },
        { "pos_size:q", "not with tensor q; it can be done to pos" },
        { "uninitialised_read:norm", "it can be done to x, blk.0.attn_norm.weight" },
        { "stale_binary@0", "takes neither a layer nor a step" },
        { "leak@0.9", "steps 0 to 3" },
    };
    struct setting s = { "fast", 1, NULL };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        run(wrong[i].spec, &s);
        if (told->rc != RC_USAGE || !strstr(told->message, wrong[i].says))
            fail_msg("%s: rc %d, %s", wrong[i].spec, told->rc, told->message);
    }
}

static int open_all(void **state) {
    (void)state;
    told = recorded_open(sizeof *told);
    return told ? 0 : -1;
}

static int close_all(void **state) {
    (void)state;
    recorded_close();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_is_tried),
        cmocka_unit_test(what_cannot_be_is_said),
        cmocka_unit_test(fast),
        cmocka_unit_test(eager),
        cmocka_unit_test(lazy),
        cmocka_unit_test(random_order),
        cmocka_unit_test(two_sequences_and_a_trace),
        cmocka_unit_test(what_does_not_fail_changes_no_token),
        cmocka_unit_test(a_claimed_commit_is_not_judged),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
