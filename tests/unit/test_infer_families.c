/* Every family of config_arch.def against the double-precision reference. */
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

static char path[200];

enum { TOKENS = 60, CONTEXT = 256 };

/* All logits of the model in `path`, read in pieces of `chunk` tokens. */
static struct kept run(uint32_t context, uint32_t chunk, bool repack_later) {
    engine *g = NULL;
    struct err e = { 0 };
    int32_t tokens[TOKENS];
    struct engine_options o = { .model = path,
                                .device = "soft",
                                .guard_rail = true,
                                .all_logits = true,
                                .context = context,
                                .chunk = chunk,
                                .repack_first_bytes = repack_later };
    if (engine_open(&g, &o, &e))
        fail_msg("%s", e.msg);
    model_run_fill_tokens(tokens, TOKENS, engine_config(g)->vocab);
    struct kept k = model_run_on(g, tokens, TOKENS, 0);
    assert_int_equal(engine_close(&g, &e), RC_OK);
    assert_int_equal(k.rows, TOKENS);
    return k;
}

/* Distance of the engine from the reference, as a fraction of the logits' standard deviation. */
static double distance(const char *shape, const char *type, uint32_t context, uint32_t chunk) {
    int32_t tokens[TOKENS];
    gguf *g = NULL;
    struct err e = { 0 };
    model_run_write(path, shape, type, 11);
    struct kept k = run(context, chunk, false);
    model_run_fill_tokens(tokens, TOKENS, k.vocab);
    if (gguf_open(&g, path, &e))
        fail_msg("%s", e.msg);
    double *reference = reference_logits(g, tokens, TOKENS, context);
    assert_non_null(reference);
    double d = reference_distance(reference, k.logits, (uint64_t)TOKENS * k.vocab);
    gguf_close(&g);
    free(k.logits);
    free(reference);
    return d;
}

static void assert_close(const char *shape, const char *type, uint32_t context, uint32_t chunk,
                         double limit) {
    double d = distance(shape, type, context, chunk);
    if (!(d < limit))
        fail_msg("%s %s: distance %.3g%%, expected less than %.3g%%", shape, type, 100 * d,
                 100 * limit);
}

/* As in test_infer_engine: floats, floats with a cache of halves, activations of 8 bits, which cost
 * more where there are more layers. */
#define FLOATS 1e-5
#define CACHE  3e-4
#define LEVELS 2e-2

#define SIZES "dim=256,heads=4,kv_heads=2,vocab=300,ctx=256"

/* Windows and periods so small that every kind of layer and position occurs. */
static const char *const families[] = {
    SIZES ",arch=llama,layers=2,hidden=512",
    SIZES ",arch=qwen2,layers=2,hidden=512",
    SIZES ",arch=qwen3,layers=2,hidden=512",
    SIZES ",arch=gemma,layers=2,hidden=512",
    SIZES ",arch=gemma2,layers=4,hidden=512,window=16",
    SIZES ",arch=gemma3,layers=7,hidden=512,window=24",
    SIZES ",arch=phi3,layers=2,hidden=512",
    SIZES ",arch=starcoder2,layers=2,hidden=1024",
};
enum { FAMILIES = sizeof families / sizeof *families };
_Static_assert((int)FAMILIES == (int)CONFIG_ARCH_COUNT, "every row of config_arch.def is tested");

static void every_family_agrees_with_the_reference(void **state) {
    (void)state;
    for (size_t i = 0; i < FAMILIES; i++)
        assert_close(families[i], "F32", CONTEXT, 0, FLOATS);
}

static void every_family_agrees_in_pieces(void **state) {
    (void)state;
    for (size_t i = CONFIG_ARCH_GEMMA; i < FAMILIES; i++)
        assert_close(families[i], "F32", CONTEXT, 13, CACHE);
}

static void every_family_agrees_with_quantised_weights(void **state) {
    static const char *const types[] = { "Q8_0", "Q4_K_M", "Q4_0" };
    (void)state;
    for (size_t i = CONFIG_ARCH_GEMMA; i < FAMILIES; i++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++)
            assert_close(families[i], types[t], CONTEXT, 0, LEVELS);
}

/* A fused tensor is cut into parts: in every type, whose rows have different sizes. */
static void fused_tensors_agree_in_every_type(void **state) {
    (void)state;
    const struct tensor_type_info *t = NULL;
    while ((t = tensor_type_next(t)))
        if (t->use == TENSOR_TYPE_COMPUTE)
            assert_close(families[CONFIG_ARCH_PHI3], t->name, CONTEXT, 0,
                         tensor_type_is_float(t->type) ? FLOATS : LEVELS);
}

/* Within the original context the short factors serve, beyond it the long ones. */
static void longrope_goes_by_the_context_of_the_run(void **state) {
    (void)state;
#define LONGROPE SIZES ",arch=phi3,layers=2,hidden=512,rope_scaling=longrope,rope_ctx=128"
    assert_close(LONGROPE, "F32", 128, 0, FLOATS);
    assert_close(LONGROPE, "F32", 129, 0, FLOATS);
    model_run_write(path, LONGROPE, "F32", 11);
    struct kept within = run(128, 0, false), beyond = run(129, 0, false);
    assert_memory_not_equal(within.logits, beyond.logits,
                            (size_t)within.rows * within.vocab * sizeof(float));
    free(within.logits);
    free(beyond.logits);
}

/* Global layers of Gemma 3 may be stretched; local ones never are. */
static void local_layers_have_a_rope_of_their_own(void **state) {
    (void)state;
    assert_close(SIZES ",arch=gemma3,layers=4,hidden=512,window=24,window_period=2,rope_base=1e6,"
                       "rope_local_base=5000,rope_scaling=linear,rope_factor=8",
                 "F32", CONTEXT, 0, FLOATS);
}

/* Heads that are together wider or narrower than the model, as in Gemma, and 46 layers, by which
 * its largest model is told that scales queries another way. */
static void heads_of_any_width_agree(void **state) {
    (void)state;
    assert_close("dim=128,heads=4,kv_heads=2,head_dim=64,vocab=300,ctx=256,arch=gemma2,layers=2,"
                 "hidden=256",
                 "F32", CONTEXT, 0, FLOATS);
    assert_close("dim=64,heads=2,kv_heads=1,head_dim=16,vocab=300,ctx=256,arch=gemma2,layers=46,"
                 "hidden=64",
                 "F32", CONTEXT, 0, 5 * FLOATS);
    assert_close("dim=192,heads=2,kv_heads=2,head_dim=96,vocab=300,ctx=256,arch=phi3,layers=2,"
                 "hidden=256",
                 "F32", CONTEXT, 0, FLOATS);
}

/* As in Phi-4 mini: three quarters of a head rotate. */
static void heads_that_rotate_in_part_agree(void **state) {
    (void)state;
    assert_close(SIZES ",arch=phi3,layers=2,hidden=512,rope_dims=48", "F32", CONTEXT, 0, FLOATS);
    assert_close(SIZES ",arch=llama,layers=2,hidden=512,rope_dims=32", "F32", CONTEXT, 0, FLOATS);
}

/* Rows of the output projection have 5 * 80 elements, which no block divides: it stays in F16. The
 * buffers are as large as a chunk, so that an access past the end of a row is one past its buffer.
 */
static void a_float_matrix_among_quantised_ones_agrees(void **state) {
    (void)state;
#define FIVE_HEADS "heads=5,kv_heads=5,head_dim=80,vocab=300,ctx=256,arch=llama,layers=2"
    assert_close(FIVE_HEADS ",dim=96,hidden=96", "Q4_0", CONTEXT, 12, LEVELS);
    assert_close(FIVE_HEADS ",dim=256,hidden=256", "Q4_K", CONTEXT, 12, LEVELS);
}

/* Parts of fused tensors are mapped, packed later, and moved over like whole tensors. */
static void fused_tensors_give_the_same_bits_however_they_are_packed(void **state) {
    (void)state;
    model_run_write(path, families[CONFIG_ARCH_PHI3], "Q4_0", 11);
    struct kept first = run(CONTEXT, 13, false), later = run(CONTEXT, 13, true);
    assert_memory_equal(first.logits, later.logits,
                        (size_t)first.rows * first.vocab * sizeof(float));
    free(first.logits);
    free(later.logits);
}

static void pieces_of_a_prompt_give_its_bits_in_every_family(void **state) {
    (void)state;
    for (size_t i = CONFIG_ARCH_GEMMA; i < FAMILIES; i++) {
        model_run_write(path, families[i], "Q8_0", 11);
        struct kept whole = run(CONTEXT, 0, false), pieces = run(CONTEXT, 7, false);
        if (memcmp(whole.logits, pieces.logits, (size_t)TOKENS * whole.vocab * sizeof(float)) != 0)
            fail_msg("%s: pieces differ", families[i]);
        free(whole.logits);
        free(pieces.logits);
    }
}

static int set_up(void **state) {
    int r = folder_make(state);
    snprintf(path, sizeof path, "%s/model.gguf", folder);
    return r;
}

static int tear_down(void **state) {
    (void)state;
    gcore_close();
    return unlink(path) || rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_agrees_with_the_reference),
        cmocka_unit_test(every_family_agrees_in_pieces),
        cmocka_unit_test(every_family_agrees_with_quantised_weights),
        cmocka_unit_test(fused_tensors_agree_in_every_type),
        cmocka_unit_test(longrope_goes_by_the_context_of_the_run),
        cmocka_unit_test(local_layers_have_a_rope_of_their_own),
        cmocka_unit_test(heads_of_any_width_agree),
        cmocka_unit_test(heads_that_rotate_in_part_agree),
        cmocka_unit_test(a_float_matrix_among_quantised_ones_agrees),
        cmocka_unit_test(fused_tensors_give_the_same_bits_however_they_are_packed),
        cmocka_unit_test(pieces_of_a_prompt_give_its_bits_in_every_family),
    };
    struct err e = { 0 };
    if (isa_check(&e) == RC_UNSUPPORTED) {
        printf("ok 1 # SKIP %s\n", e.msg);
        return 0;
    }
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
