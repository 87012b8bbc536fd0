/* Fused kernels: the same bits as the kernels that they stand for, in every family. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gcore/audit.h>

#include "infer/engine.h"
#include "support/model_run.h"
#include "unit/folder.h"

#define SMALL "dim=256,layers=2,heads=4,kv_heads=2,hidden=512,vocab=300,ctx=1024"

enum { PROMPT = 9, LONG = 300, GENERATE = 12 };

static struct kept run(const struct engine_options *o, const char *fuse, uint32_t count) {
    int32_t tokens[LONG];
    setenv("GRETA_FUSE", fuse, 1);
    model_run_fill_tokens(tokens, count, 300);
    return model_run(o, tokens, count, GENERATE);
}

static void assert_same(const char *shape, const char *type, const char *kv_type, uint32_t count) {
    char path[200];
    snprintf(path, sizeof path, "%s/model.gguf", folder);
    model_run_write(path, shape, type, 5);
    struct engine_options o = { .model = path,
                                .device = "soft",
                                .kv_type = kv_type,
                                .threads = 2,
                                .guard_rail = true,
                                .all_logits = true };
    struct kept a = run(&o, "0", count), b = run(&o, "1", count);
    assert_true(a.rows >= count + GENERATE - 1);
    assert_int_equal(a.rows, b.rows);
    if (memcmp(a.logits, b.logits, (size_t)a.rows * a.vocab * sizeof *a.logits))
        fail_msg("%s %s %s %u: not the same logits", shape, type, kv_type, count);
    assert_string_equal(a.text, b.text);
    free(a.logits);
    free(b.logits);
    unlink(path);
}

static void every_family_computes_the_same_bits(void **state) {
    (void)state;
    static const char *const shapes[] = { SMALL,
                                          SMALL ",arch=qwen2",
                                          SMALL ",arch=qwen3,head_dim=128",
                                          SMALL ",window=16",
                                          SMALL ",rope_scaling=llama3",
                                          SMALL ",arch=gemma",
                                          SMALL ",arch=gemma2,window=16",
                                          SMALL ",arch=gemma3,layers=7,window=16",
                                          SMALL ",arch=phi3",
                                          SMALL ",arch=starcoder2" };
    static const char *const types[] = { "Q4_K_M", "Q8_0", "F16" };
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++)
            assert_same(shapes[s], types[t], (s + t) % 2 ? "Q8_0" : "F16", PROMPT);
}

/* Contexts that attention divides into ranges, prompts of many tokens. */
static void long_contexts_compute_the_same_bits(void **state) {
    (void)state;
    assert_same(SMALL, "Q4_0", "F16", LONG);
    assert_same(SMALL, "F32", "Q8_0", LONG);
    assert_same(SMALL ",window=40", "Q6_K", "F16", LONG);
}

static int remove_folder(void **state) {
    (void)state;
    gcore_close();
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_computes_the_same_bits),
        cmocka_unit_test(long_contexts_compute_the_same_bits),
    };
    return cmocka_run_group_tests(tests, folder_make, remove_folder);
}
