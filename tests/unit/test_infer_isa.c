/* Whole models with GPU code on the interpreter, against the double-precision reference: as near to
 * it as native code must be (test_infer_engine.c). The architecture is GRETA_SOFT_ARCH. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gcore/audit.h>

#include "infer/engine_internal.h"
#include "kernels/hip/image.h"
#include "support/model_run.h"
#include "support/reference.h"
#include "unit/folder.h"

#define SMALL  "dim=256,layers=2,heads=4,kv_heads=2,hidden=512,vocab=300,ctx=256"
#define FLOATS 1e-5
#define CACHE  2e-4
#define LEVELS 8e-3

static void assert_close(const char *shape, const char *type, const char *kv_type, uint32_t count,
                         uint32_t chunk, double limit) {
    char path[200];
    int32_t tokens[128];
    gguf *g = NULL;
    struct err e = { 0 };
    snprintf(path, sizeof path, "%s/model.gguf", folder);
    model_run_write(path, shape, type, 5);
    if (gguf_open(&g, path, &e))
        fail_msg("%s", e.msg);
    struct engine_options o = { .model = path,
                                .device = "soft",
                                .exec = "isa",
                                .guard_rail = true,
                                .all_logits = true,
                                .chunk = chunk,
                                .kv_type = kv_type };
    for (uint32_t i = 0; i < count; i++)
        tokens[i] = (int32_t)((i * 7919 + 13) % 300);
    double *reference = reference_logits(g, tokens, count, 0);
    assert_non_null(reference);
    struct kept k = model_run(&o, tokens, count, 0);
    assert_int_equal(k.rows, count);
    double d = reference_distance(reference, k.logits, (uint64_t)count * k.vocab);
    if (!(d < limit))
        fail_msg("%s %s: distance %.3g%%, expected less than %.3g%%", shape, type, 100 * d,
                 100 * limit);
    free(k.logits);
    free(reference);
    gguf_close(&g);
    unlink(path);
}

static bool has_code(void) {
    return strcmp(image_origin(), "none") != 0;
}

#define SKIP_WITHOUT_CODE                                                                          \
    (void)state;                                                                                   \
    if (!has_code())                                                                               \
    skip()

/* Types differ in arithmetic, not in threads: what ThreadSanitizer looks for, the tests below have
 * too. */
static void models_of_every_type_agree_with_the_reference(void **state) {
    SKIP_WITHOUT_CODE;
#if defined(__SANITIZE_THREAD__)
    skip();
#endif
    const struct tensor_type_info *t = NULL;
    while ((t = tensor_type_next(t)))
        if (t->use == TENSOR_TYPE_COMPUTE)
            assert_close(SMALL, t->name, "F16", 12, 0,
                         tensor_type_is_float(t->type) ? FLOATS : LEVELS);
    assert_close(SMALL, "Q4_K_M", "F16", 12, 0, LEVELS);
}

/* A token at a time: the path of few tokens, with keys and values of the cache. */
static void decoding_agrees_with_the_reference(void **state) {
    SKIP_WITHOUT_CODE;
    assert_close(SMALL, "F32", "F16", 10, 1, CACHE);
    assert_close(SMALL, "Q4_K", "F16", 10, 1, LEVELS);
    assert_close(SMALL, "F16", "Q8_0", 40, 3, 0.01);
}

static void other_shapes_agree_with_the_reference(void **state) {
    SKIP_WITHOUT_CODE;
    assert_close(SMALL ",arch=qwen2", "F32", "F16", 12, 0, FLOATS);
    assert_close(SMALL ",arch=qwen3,head_dim=128", "F32", "F16", 12, 0, FLOATS);
    assert_close(SMALL ",rope_scaling=yarn,rope_factor=4,rope_ctx=64", "F32", "F16", 70, 0, FLOATS);
    assert_close(SMALL ",rope_scaling=llama3", "F32", "F16", 20, 0, FLOATS);
    assert_close(SMALL ",rope_scaling=linear,rope_factor=4", "F32", "F16", 20, 0, FLOATS);
    assert_close(SMALL ",arch=phi3,rope_scaling=longrope,rope_ctx=256", "F32", "F16", 20, 0,
                 FLOATS);
    assert_close(SMALL ",window=16", "F32", "F16", 70, 0, FLOATS);
    assert_close("dim=512,layers=2,heads=8,kv_heads=1,hidden=256,vocab=300,tied=1", "BF16", "F16",
                 9, 0, FLOATS);
}

/* GELU, with and without a gate; norms of other kinds and after a block; capped scores. */
static void other_families_agree_with_the_reference(void **state) {
    SKIP_WITHOUT_CODE;
#if defined(__SANITIZE_THREAD__)
    skip();
#endif
    assert_close(SMALL ",arch=gemma2,window=16", "F32", "F16", 20, 0, FLOATS);
    assert_close(SMALL ",arch=gemma3,window=16", "Q8_0", "F16", 6, 1, LEVELS);
    assert_close(SMALL ",arch=starcoder2", "F32", "F16", 9, 0, FLOATS);
    assert_close(SMALL ",arch=starcoder2", "Q4_0", "F16", 6, 1, 2 * LEVELS);
}

/* Fused kernels, and the kernels that they stand for. */
static void fused_kernels_give_the_same_bits(void **state) {
    SKIP_WITHOUT_CODE;
    static const char *const types[] = { "Q4_K_M", "Q8_0", "F16" };
    char path[200];
    snprintf(path, sizeof path, "%s/model.gguf", folder);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const struct engine_options o = { .model = path,
                                          .device = "soft",
                                          .exec = "isa",
                                          .kv_type = i % 2 ? "Q8_0" : "F16",
                                          .guard_rail = true,
                                          .all_logits = true };
        int32_t tokens[7];
        model_run_write(path, SMALL, types[i], 5);
        model_run_fill_tokens(tokens, 7, 300);
        setenv("GRETA_FUSE", "0", 1);
        struct kept a = model_run(&o, tokens, 7, 4);
        setenv("GRETA_FUSE", "1", 1);
        struct kept b = model_run(&o, tokens, 7, 4);
        assert_int_equal(a.rows, b.rows);
        assert_memory_equal(a.logits, b.logits, (size_t)a.rows * a.vocab * sizeof *a.logits);
        free(a.logits);
        free(b.logits);
        unlink(path);
    }
}

/* ---- several sequences ----------------------------------------------------------------------- */

enum { BLOCK = 32, TEXTS = 3, PROMPT = 2 * BLOCK + 6, MORE = 4 };

static void keep_tokens(uint32_t sequence, const struct engine_finished *f, void *user) {
    (void)sequence;
    memcpy(user, f->tokens->ids + f->tokens->count - MORE, MORE * sizeof(int32_t));
}

static void submit(engine *g, const int32_t *prompt, uint32_t count, int32_t *to) {
    struct err e = { 0 };
    uint32_t number;
    struct engine_request r = { .prompt = prompt,
                                .prompt_count = count,
                                .max_tokens = MORE,
                                .sampling = sampler_defaults,
                                .ignore_end = true,
                                .finished = keep_tokens,
                                .user = to };
    r.sampling.temperature = 0;
    if (engine_submit(g, &r, &number, &e))
        fail_msg("%s", e.msg);
}

static bool step(engine *g) {
    struct err e = { 0 };
    bool more;
    if (engine_step(g, &more, &e))
        fail_msg("%s", e.msg);
    return more;
}

static engine *open_with(const char *path, const char *kv_type, uint32_t sequences) {
    struct err e = { 0 };
    engine *g = NULL;
    const struct engine_options o = { .model = path,
                                      .device = "soft",
                                      .exec = "isa",
                                      .kv_type = kv_type,
                                      .guard_rail = true,
                                      .sequences = sequences };
    if (engine_open(&g, &o, &e))
        fail_msg("%s", e.msg);
    return g;
}

/* Texts side by side, of which two begin alike, against each in an engine of its own. */
static void assert_independent(const char *type, const char *kv_type) {
    char path[200];
    int32_t prompts[TEXTS][PROMPT], together[TEXTS][MORE], alone[TEXTS][MORE];
    const uint32_t counts[TEXTS] = { PROMPT, PROMPT, 7 };
    struct err e = { 0 };
    snprintf(path, sizeof path, "%s/model.gguf", folder);
    model_run_write(path, SMALL, type, 5);
    model_run_fill_tokens(prompts[0], TEXTS * PROMPT, 300);
    memcpy(prompts[1], prompts[0], 2 * BLOCK * sizeof(int32_t));
    engine *g = open_with(path, kv_type, TEXTS);
    for (int i = 0; i < TEXTS; i++) {
        submit(g, prompts[i], counts[i], together[i]);
        step(g);
    }
    assert_int_equal(g->pool.count - g->pool.unused,
                     2 + TEXTS); /* two blocks belong to two texts */
    while (step(g))
        ;
    assert_int_equal(engine_close(&g, &e), RC_OK);
    for (int i = 0; i < TEXTS; i++) {
        g = open_with(path, kv_type, 1);
        submit(g, prompts[i], counts[i], alone[i]);
        while (step(g))
            ;
        assert_int_equal(engine_close(&g, &e), RC_OK);
        assert_memory_equal(together[i], alone[i], sizeof alone[i]);
    }
    unlink(path);
}

static void sequences_that_share_blocks_write_what_each_writes_alone(void **state) {
    SKIP_WITHOUT_CODE;
#if !defined(__SANITIZE_THREAD__)
    assert_independent("Q4_K_M", "F16");
#endif
    assert_independent("F16", "Q8_0");
}

static int remove_folder(void **state) {
    (void)state;
    gcore_close();
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_of_every_type_agree_with_the_reference),
        cmocka_unit_test(decoding_agrees_with_the_reference),
        cmocka_unit_test(other_shapes_agree_with_the_reference),
        cmocka_unit_test(other_families_agree_with_the_reference),
        cmocka_unit_test(fused_kernels_give_the_same_bits),
        cmocka_unit_test(sequences_that_share_blocks_write_what_each_writes_alone),
    };
    return cmocka_run_group_tests(tests, folder_make, remove_folder);
}
