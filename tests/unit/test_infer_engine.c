/* The engine against the double-precision reference, on models of every type and many shapes. */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gcore/audit.h>

#include "infer/engine_internal.h"
#include "kernels/cpu/isa.h"
#include "model/synth.h"
#include "support/model_run.h"
#include "support/reference.h"
#include "unit/folder.h"

static void path_of(char *out, size_t size, const char *name) {
    snprintf(out, size, "%s/%s", folder, name);
}

/* Distance of the engine from the reference, as a fraction of the logits' standard deviation. */
static double distance_with(const char *kv_type, const char *shape, const char *type,
                            uint32_t count, uint32_t chunk) {
    char path[200];
    int32_t tokens[256];
    gguf *g = NULL;
    struct err e = { 0 };
    path_of(path, sizeof path, "model.gguf");
    model_run_write(path, shape, type, 11);
    if (gguf_open(&g, path, &e))
        fail_msg("%s", e.msg);
    struct engine_options o = { .model = path,
                                .device = "soft",
                                .guard_rail = true,
                                .all_logits = true,
                                .chunk = chunk,
                                .kv_type = kv_type };
    struct config c;
    assert_int_equal(config_read(g, &c, &e), RC_OK);
    model_run_fill_tokens(tokens, count, c.vocab);
    double *reference = reference_logits(g, tokens, count, 0);
    assert_non_null(reference);
    struct kept k = model_run(&o, tokens, count, 0);
    assert_int_equal(k.rows, count);
    double d = reference_distance(reference, k.logits, (uint64_t)count * c.vocab);
    free(k.logits);
    free(reference);
    gguf_close(&g);
    unlink(path);
    return d;
}

static void assert_close(const char *shape, const char *type, uint32_t count, uint32_t chunk,
                         double limit) {
    double d = distance_with("F16", shape, type, count, chunk);
    if (!(d < limit))
        fail_msg("%s %s: distance %.3g%%, expected less than %.3g%%", shape, type, 100 * d,
                 100 * limit);
}

#define SMALL "dim=256,layers=2,heads=4,kv_heads=2,hidden=512,vocab=300,ctx=256"
/* Float arithmetic, and what it costs to round keys and values of earlier batches to F16. */
#define FLOATS 1e-5
#define CACHE  2e-4
/* What activations of 8 bits cost such a small model; test_mm checks that nothing else is rounded.
 */
#define LEVELS 8e-3

static void every_type_agrees_with_the_reference(void **state) {
    (void)state;
    const struct tensor_type_info *t = NULL;
    while ((t = tensor_type_next(t)))
        if (t->use == TENSOR_TYPE_COMPUTE)
            assert_close(SMALL, t->name, 24, 0, tensor_type_is_float(t->type) ? FLOATS : LEVELS);
    assert_close(SMALL, "Q4_K_M", 24, 0, LEVELS);
}

/* Those are multiplied in parts, where the processor is fast at that. */
static void many_rows_of_floats_agree_with_the_reference(void **state) {
    (void)state;
    assert_close(SMALL, "F32", 45, 0, FLOATS);
    assert_close(SMALL, "F16", 45, 0, FLOATS);
    assert_close(SMALL, "BF16", 77, 0, FLOATS);
}

static void every_head_grouping_agrees_with_the_reference(void **state) {
    (void)state;
    assert_close("dim=256,layers=1,heads=4,kv_heads=4,hidden=256,vocab=300", "F32", 20, 0, FLOATS);
    assert_close("dim=512,layers=3,heads=8,kv_heads=2,hidden=256,vocab=300", "F32", 20, 0, FLOATS);
    assert_close("dim=512,layers=2,heads=8,kv_heads=1,hidden=256,vocab=300", "F32", 20, 0, FLOATS);
    assert_close("dim=512,layers=5,heads=4,kv_heads=2,hidden=256,vocab=300,tied=1", "F32", 20, 0,
                 FLOATS);
}

static void every_architecture_agrees_with_the_reference(void **state) {
    (void)state;
    assert_close(SMALL ",arch=qwen2", "F32", 24, 0, FLOATS);
    assert_close(SMALL ",arch=qwen3", "F32", 24, 0, FLOATS);
    assert_close(SMALL ",arch=qwen3,head_dim=128", "F32", 24, 0, FLOATS);
}

static void every_rope_scaling_agrees_with_the_reference(void **state) {
    (void)state;
    assert_close(SMALL ",rope_scaling=linear,rope_factor=4", "F32", 100, 0, FLOATS);
    assert_close(SMALL ",rope_scaling=yarn,rope_factor=4,rope_ctx=64", "F32", 100, 0, FLOATS);
    assert_close(SMALL ",rope_scaling=llama3", "F32", 100, 0, FLOATS);
    assert_close(SMALL ",window=16", "F32", 100, 0, FLOATS);
}

static void chunks_agree_with_the_reference(void **state) {
    (void)state;
    assert_close(SMALL, "F32", 100, 16, CACHE);
    assert_close(SMALL ",window=16", "F32", 100, 7, CACHE);
    assert_close(SMALL, "F32", 40, 1, CACHE);
    assert_close(SMALL, "Q4_K", 40, 1, LEVELS);
}

static uint64_t free_bytes(const engine *g) {
    uint64_t bytes = 0;
    struct err e = { 0 };
    assert_int_equal(device_free_bytes(&g->stages.at[0].device, &bytes, &e), RC_OK);
    return bytes;
}

/* Up to the pages that allocations are rounded to. */
static void buffers_take_the_memory_that_the_guard_rail_counts(void **state) {
    (void)state;
    char path[200];
    struct err e = { 0 };
    engine *first = NULL, *second = NULL;
    path_of(path, sizeof path, "model.gguf");
    model_run_write(path, SMALL, "Q8_0", 11);
    struct engine_options o = { .model = path, .device = "soft", .guard_rail = true };
    assert_int_equal(engine_open(&first, &o, &e), RC_OK);
    uint64_t before = free_bytes(first), weights = 0, rounded = 0;
    assert_int_equal(engine_open(&second, &o, &e), RC_OK);
    uint64_t taken = before - free_bytes(second);
    for (uint32_t l = 0; l < 2; l++)
        for (int i = 0; i < CONFIG_TENSOR_COUNT; i++)
            weights += second->stages.at[0].weights.layers[l].tensor[i].bytes;
    for (int i = 0; i < CONFIG_TENSOR_COUNT; i++)
        weights += second->stages.at[0].weights.tensor[i].bytes;
    uint64_t counted = weights + second->stages.at[0].weights.rope_freqs.bytes +
                       forward_bytes(&second->shape) +
                       kvcache_bytes(&second->config, 2, 256 / KERN_BLOCK, TENSOR_TYPE_F16);
    rounded = 4096 * (FORWARD_BUFFERS + 2 * 2 + 3 * (uint64_t)CONFIG_TENSOR_COUNT);
    assert_in_range(taken, counted, counted + rounded);
    assert_int_equal(engine_close(&second, &e), RC_OK);
    assert_int_equal(engine_close(&first, &e), RC_OK);
    unlink(path);
}

/* All logits of a prompt that is read in pieces of `chunk` tokens. */
static struct kept read_in_pieces(const char *path, uint32_t count, uint32_t chunk) {
    int32_t tokens[256];
    struct engine_options o = {
        .model = path, .device = "soft", .guard_rail = true, .all_logits = true, .chunk = chunk
    };
    model_run_fill_tokens(tokens, count, 300);
    struct kept k = model_run(&o, tokens, count, 0);
    assert_int_equal(k.rows, count);
    return k;
}

/* The smallest difference would move activations to other levels, and grow. */
static void pieces_of_a_prompt_give_its_bits(void **state) {
    (void)state;
    const char *const models[][2] = { { SMALL, "Q4_0" },
                                      { SMALL ",window=16", "Q8_0" },
                                      { SMALL ",window=50", "Q4_1" },
                                      { SMALL ",arch=qwen3,head_dim=128", "Q4_K_M" },
                                      { SMALL, "Q3_K" } };
    const uint32_t chunks[] = { 1, 7, 64 };
    char path[200];
    path_of(path, sizeof path, "model.gguf");
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        model_run_write(path, models[m][0], models[m][1], 11);
        struct kept whole = read_in_pieces(path, 200, 0);
        for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++) {
            struct kept pieces = read_in_pieces(path, 200, chunks[c]);
            if (memcmp(whole.logits, pieces.logits, 200 * sizeof(float) * whole.vocab) != 0)
                fail_msg("%s %s: pieces of %u differ", models[m][0], models[m][1], chunks[c]);
            free(pieces.logits);
        }
        free(whole.logits);
    }
    unlink(path);
}

/* A Q8_0 cache costs accuracy, but not more than Q8_0 weights would. */
static void a_q8_0_cache_agrees_to_its_own_rounding(void **state) {
    (void)state;
    double f16 = distance_with("F16", SMALL, "F32", 100, 1);
    double q8_0 = distance_with("Q8_0", SMALL, "F32", 100, 1);
    if (!(q8_0 > f16 && q8_0 < 0.01))
        fail_msg("distance %.3g%% with Q8_0, %.3g%% with F16", 100 * q8_0, 100 * f16);
}

/* ---- things that must not matter ------------------------------------------------------------- */

static struct kept demo(const struct engine_options *given, uint32_t generate) {
    struct engine_options o = *given;
    const int32_t tokens[] = { 1, 300, 310, 305 };
    o.device = "soft";
    o.guard_rail = true;
    return model_run(&o, tokens, 4, generate);
}

static void assert_same(const struct kept *a, const struct kept *b) {
    assert_int_equal(a->rows, b->rows);
    assert_memory_equal(a->logits, b->logits, (size_t)a->rows * a->vocab * sizeof *a->logits);
    assert_int_equal(a->text_len, b->text_len);
    assert_memory_equal(a->text, b->text, a->text_len);
}

static void thread_count_does_not_change_a_bit(void **state) {
    (void)state;
    struct kept one = demo(&(struct engine_options){ .threads = 1 }, 40);
    struct kept three = demo(&(struct engine_options){ .threads = 3 }, 40);
    assert_true(one.text_len > 20);
    assert_same(&one, &three);
    free(one.logits);
    free(three.logits);
}

#define NINE_LAYERS "dim=256,layers=9,heads=4,kv_heads=2,hidden=512,vocab=300,ctx=256"

/* Each run in a prompt of two chunks and then tokens, so that more is packed before each pass. */
static void repacking_between_passes_does_not_change_a_bit(void **state) {
    static const char *const types[] = { "Q4_0", "Q4_K_M", "F16" };
    int32_t tokens[20];
    char path[200];
    (void)state;
    model_run_fill_tokens(tokens, 20, 300);
    path_of(path, sizeof path, "model.gguf");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct engine_options o = {
            .model = path, .device = "soft", .guard_rail = true, .chunk = 12
        };
        model_run_write(path, NINE_LAYERS, types[i], 11);
        struct kept first = model_run(&o, tokens, 20, 8);
        o.repack_first_bytes = 1;
        struct kept between = model_run(&o, tokens, 20, 8);
        o.no_repack = true;
        struct kept never = model_run(&o, tokens, 20, 8);
        assert_same(&first, &between);
        assert_same(&first, &never);
        free(first.logits);
        free(between.logits);
        free(never.logits);
        unlink(path);
    }
}

static void layers_are_packed_from_the_second_pass_on(void **state) {
    const int32_t token = 5;
    char path[200];
    engine *g = NULL;
    struct err e = { 0 };
    struct engine_result result;
    (void)state;
    path_of(path, sizeof path, "model.gguf");
    model_run_write(path, NINE_LAYERS, "Q8_0", 11);
    struct engine_options o = {
        .model = path, .device = "soft", .guard_rail = true, .repack_first_bytes = 1
    };
    struct engine_request r = { .prompt = &token, .prompt_count = 1, .max_tokens = 1 };
    r.sampling = sampler_defaults;
    assert_int_equal(engine_open(&g, &o, &e), RC_OK);
    uint64_t room = free_bytes(g);
    for (uint32_t pass = 0; pass < 6; pass++) {
        assert_int_equal(engine_generate(g, &r, &result, &e), RC_OK);
        token_list_close(&result.tokens);
        assert_int_equal(g->stages.at[0].weights.packed, pass > 0);
        for (uint32_t l = 0; l < 9; l++)
            assert_int_equal(g->stages.at[0].weights.layers[l].packed, l + 1 < 3 * pass);
    }
    assert_int_equal(free_bytes(g), room); /* the places were kept for it */
    assert_int_equal(engine_close(&g, &e), RC_OK);
    o.repack_first_bytes = 0; /* so small a model is packed first */
    assert_int_equal(engine_open(&g, &o, &e), RC_OK);
    assert_true(g->stages.at[0].weights.packed && g->stages.at[0].weights.layers[8].packed);
    assert_int_equal(engine_close(&g, &e), RC_OK);
    unlink(path);
}

static bool after_a_while(void *user) {
    int *left = user;
    return (*left)-- <= 0;
}

/* Interrupts a request of one pass when it has asked that often: once before the pass, then before
 * every matrix. */
static enum engine_end interrupt_behind(engine *g, const int32_t *tokens, int questions) {
    struct err e = { 0 };
    struct engine_result result;
    struct engine_request r = { .prompt = tokens,
                                .prompt_count = 20,
                                .max_tokens = 1,
                                .ignore_end = true,
                                .sampling = sampler_defaults,
                                .interrupted = after_a_while,
                                .user = &questions };
    assert_int_equal(engine_generate(g, &r, &result, &e), RC_OK);
    token_list_close(&result.tokens);
    return result.end;
}

/* A layer has 7 matrices, two are in none, and an interruption lets 3 through: none is packed
 * twice, and a pass in between finds every layer either packed or not. */
static void packing_goes_on_where_it_was_interrupted(void **state) {
    enum { MATRICES = 2 + 9 * 7, EACH = 3 };
    int32_t tokens[20];
    char path[200];
    engine *g = NULL;
    struct err e = { 0 };
    (void)state;
    model_run_fill_tokens(tokens, 20, 300);
    path_of(path, sizeof path, "model.gguf");
    model_run_write(path, NINE_LAYERS, "Q4_0", 11);
    struct engine_options o = { .model = path, .device = "soft", .guard_rail = true };
    struct kept packed = model_run(&o, tokens, 20, 1);
    o.repack_first_bytes = 1;
    assert_int_equal(engine_open(&g, &o, &e), RC_OK);
    assert_int_equal(interrupt_behind(g, tokens, 1 + EACH), ENGINE_LENGTH); /* packs nothing yet */
    for (unsigned i = 0; i < MATRICES / EACH; i++) {
        assert_false(g->stages.at[0].weights.layers[8].packed);
        assert_int_equal(interrupt_behind(g, tokens, 1 + EACH), ENGINE_INTERRUPTED);
        assert_int_equal(g->stages.at[0].weights.unpacked, ((int)(i + 1) * EACH - 2) / 7);
    }
    assert_int_equal(interrupt_behind(g, tokens, 1 + EACH), ENGINE_LENGTH);
    assert_true(g->stages.at[0].weights.layers[8].packed);
    struct kept k = model_run_on(g, tokens, 20, 1);
    assert_same(&packed, &k);
    free(k.logits);
    assert_int_equal(engine_close(&g, &e), RC_OK);

    for (int left = 1; left < 12; left++) {
        assert_int_equal(engine_open(&g, &o, &e), RC_OK);
        assert_int_equal(interrupt_behind(g, tokens, 1), ENGINE_LENGTH);
        assert_int_equal(interrupt_behind(g, tokens, left), ENGINE_INTERRUPTED);
        k = model_run_on(g, tokens, 20, 1);
        assert_same(&packed, &k);
        free(k.logits);
        assert_int_equal(engine_close(&g, &e), RC_OK);
    }
    free(packed.logits);
    unlink(path);
}

static void tracing_does_not_change_a_bit(void **state) {
    (void)state;
    char lines[200], dump[200], line[4096];
    path_of(lines, sizeof lines, "trace.jsonl");
    path_of(dump, sizeof dump, "dump");
    struct kept plain = demo(&(struct engine_options){ 0 }, 8);
    struct engine_options o = { .trace = "all", .trace_file = lines, .trace_dump = dump };
    struct kept traced = demo(&o, 8);
    assert_same(&plain, &traced);
    FILE *f = fopen(lines, "r");
    assert_non_null(f);
    unsigned count = 0, logits = 0;
    while (fgets(line, sizeof line, f)) {
        count++;
        assert_non_null(strstr(line, "\"xxh64\""));
        assert_non_null(strstr(line, "\"nan\": 0"));
        logits += strstr(line, "\"tensor\": \"logits\"") != NULL;
    }
    fclose(f);
    assert_int_equal(logits, 8);
    assert_true(count > 100);
    free(plain.logits);
    free(traced.logits);
}

static void a_context_that_is_full_is_an_error_that_says_so(void **state) {
    (void)state;
    engine *g = NULL;
    struct err e = { 0 };
    struct engine_result result;
    struct engine_options o = { .device = "soft", .guard_rail = true, .context = 8 };
    const int32_t tokens[] = { 1, 300, 310, 305 };
    struct engine_request r = { .prompt = tokens,
                                .prompt_count = 4,
                                .max_tokens = 100,
                                .sampling = sampler_defaults,
                                .ignore_end = true };
    if (engine_open(&g, &o, &e))
        fail_msg("%s", e.msg);
    assert_int_equal(engine_generate(g, &r, &result, &e), RC_RANGE);
    assert_non_null(strstr(e.msg, "context is full: 8 positions"));
    assert_int_equal(result.generated, 5);
    token_list_close(&result.tokens);
    assert_int_equal(engine_close(&g, &e), RC_OK);
}

/* Between layers of the prompt, too: what is evaluated then is nothing, and the next run is whole.
 */
static void an_interrupt_ends_the_reading_of_a_prompt(void **state) {
    (void)state;
    engine *g = NULL;
    struct err e = { 0 };
    struct engine_result result;
    struct engine_options o = { .device = "soft", .guard_rail = true };
    int32_t tokens[100];
    int left = 3;
    if (engine_open(&g, &o, &e))
        fail_msg("%s", e.msg);
    model_run_fill_tokens(tokens, 100, engine_config(g)->vocab);
    struct engine_request r = { .prompt = tokens,
                                .prompt_count = 100,
                                .max_tokens = 5,
                                .sampling = sampler_defaults,
                                .ignore_end = true,
                                .interrupted = after_a_while,
                                .user = &left };
    assert_int_equal(engine_generate(g, &r, &result, &e), RC_OK);
    assert_int_equal(result.end, ENGINE_INTERRUPTED);
    assert_int_equal(result.generated, 0);
    assert_int_equal(left, -1); /* it was asked four times: before the chunk, and after 3 layers */
    token_list_close(&result.tokens);
    r.interrupted = NULL;
    assert_int_equal(engine_generate(g, &r, &result, &e), RC_OK);
    assert_int_equal(result.generated, 5);
    token_list_close(&result.tokens);
    assert_int_equal(engine_close(&g, &e), RC_OK);
}

static void a_cache_that_cannot_hold_heads_is_refused(void **state) {
    (void)state;
    char path[200];
    engine *g = NULL;
    struct err e = { 0 };
    path_of(path, sizeof path, "model.gguf");
    model_run_write(path, "dim=96,layers=1,heads=2,kv_heads=2,hidden=64,vocab=300", "F32", 11);
    struct engine_options o = {
        .model = path, .device = "soft", .guard_rail = true, .kv_type = "Q8_0"
    };
    assert_int_equal(engine_open(&g, &o, &e), RC_UNSUPPORTED);
    assert_non_null(strstr(e.msg, "this model's have 48"));
    o.kv_type = "F16";
    o.context = 1 << 24;
    o.sequences = 256;
    assert_int_equal(engine_open(&g, &o, &e), RC_USAGE);
    unlink(path);
}

static int tear_down(void **state) {
    gcore_close();
    return folder_remove(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_agrees_with_the_reference),
        cmocka_unit_test(many_rows_of_floats_agree_with_the_reference),
        cmocka_unit_test(every_head_grouping_agrees_with_the_reference),
        cmocka_unit_test(every_architecture_agrees_with_the_reference),
        cmocka_unit_test(every_rope_scaling_agrees_with_the_reference),
        cmocka_unit_test(chunks_agree_with_the_reference),
        cmocka_unit_test(buffers_take_the_memory_that_the_guard_rail_counts),
        cmocka_unit_test(pieces_of_a_prompt_give_its_bits),
        cmocka_unit_test(a_q8_0_cache_agrees_to_its_own_rounding),
        cmocka_unit_test(thread_count_does_not_change_a_bit),
        cmocka_unit_test(repacking_between_passes_does_not_change_a_bit),
        cmocka_unit_test(packing_goes_on_where_it_was_interrupted),
        cmocka_unit_test(layers_are_packed_from_the_second_pass_on),
        cmocka_unit_test(tracing_does_not_change_a_bit),
        cmocka_unit_test(a_context_that_is_full_is_an_error_that_says_so),
        cmocka_unit_test(an_interrupt_ends_the_reading_of_a_prompt),
        cmocka_unit_test(a_cache_that_cannot_hold_heads_is_refused),
    };
    struct err e = { 0 };
    if (isa_check(&e) == RC_UNSUPPORTED) {
        printf("ok 1 # SKIP %s\n", e.msg);
        return 0;
    }
    return cmocka_run_group_tests(tests, folder_make, tear_down);
}
