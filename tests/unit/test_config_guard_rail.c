/* The guard rail: a model that does not fit its configuration, a demand, or the memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/guard_rail.h"
#include "model/synth.h"
#include "test.h"
#include "unit/folder.h"

static char path[300];

/* A synthetic model of that shape, opened. */
static gguf *make_model(const char *shape, const char *type) {
    struct err e = { 0 };
    struct synth_options o = { .seed = 3, .threads = 2 };
    bool vocab_given;
    gguf *g = NULL;
    if (synth_parse_shape(shape, &o.shape, &vocab_given, &e) || quant_mix_find(type, &o.mix, &e) ||
        synth_write(path, &o, &e) || gguf_open(&g, path, &e))
        fail_msg("%s", e.msg);
    return g;
}

static struct config read_config(const gguf *g) {
    struct config c;
    struct err e = { 0 };
    if (config_read(g, &c, &e))
        fail_msg("%s", e.msg);
    return c;
}

static const struct guard_rail_row *find_row(const struct guard_rail_report *r,
                                             const char *subject) {
    for (size_t i = 0; i < r->count; i++)
        if (strcmp(r->rows[i].subject, subject) == 0)
            return &r->rows[i];
    return NULL;
}

static void assert_row(const struct guard_rail_report *r, const char *subject, const char *expected,
                       const char *found) {
    const struct guard_rail_row *row = find_row(r, subject);
    if (!row)
        fail_msg("no row for '%s'", subject);
    assert_string_equal(row->expected, expected);
    assert_string_equal(row->found, found);
}

static void good_models_of_every_architecture_pass(void **state) {
    (void)state;
    static const char *const shapes[] = { "tiny",
                                          "tiny,arch=qwen2",
                                          "tiny,arch=qwen3,tied=1",
                                          "tiny,rope_scaling=llama3,head_dim=128",
                                          "tiny-gemma",
                                          "tiny-gemma2",
                                          "tiny-gemma3",
                                          "tiny-phi3",
                                          "tiny-phi3,rope_scaling=longrope",
                                          "tiny-starcoder2,tied=0" };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct guard_rail_report r = { 0 };
        struct err e = { 0 };
        gguf *g = make_model(shapes[i], "Q4_K_M");
        struct config c = read_config(g);
        guard_rail_check_model(g, &c, &guard_rail_default_limits, &r);
        if (r.count)
            guard_rail_print(&r, stderr);
        assert_int_equal(guard_rail_verdict(&r, g, &e), RC_OK);
        guard_rail_clear(&r);
        gguf_close(&g);
    }
}

/* The story of the wrong configuration: K and V are 4096 x 4096 in it and 1024 x 4096 in the file,
 * here in small. */
static void wrong_kv_heads_are_seen_in_the_shapes(void **state) {
    (void)state;
    struct guard_rail_report r = { 0 };
    struct err e = { 0 };
    gguf *g = make_model("tiny", "Q8_0");
    struct config c = read_config(g);
    c.kv_heads = c.heads;
    guard_rail_check_model(g, &c, &guard_rail_default_limits, &r);
    assert_int_equal(r.count, 4); /* K and V of two layers */
    assert_row(&r, "blk.0.attn_k.weight", "256 x 256", "256 x 128");
    assert_row(&r, "blk.1.attn_v.weight", "256 x 256", "256 x 128");
    assert_int_equal(guard_rail_verdict(&r, g, &e), RC_REFUSED);
    assert_non_null(strstr(e.msg, "blk.0.attn_k.weight: expected 256 x 256, found 256 x 128"));
    assert_non_null(strstr(e.msg, "and 3 more"));
    assert_non_null(strstr(e.msg, "GRETA_DISABLE_GUARD_RAIL=1"));
    guard_rail_clear(&r);
    gguf_close(&g);
}

static void missing_and_unknown_tensors_are_reported(void **state) {
    (void)state;
    struct guard_rail_report r = { 0 };
    gguf *g = make_model("tiny", "F16");
    struct config c = read_config(g);
    c.layers = 3;
    guard_rail_check_model(g, &c, &guard_rail_default_limits, &r);
    assert_int_equal(r.count, 9);
    assert_row(&r, "blk.2.ffn_down.weight", "768 x 256", "missing");
    guard_rail_clear(&r);
    c.layers = 1;
    c.tied = true;
    guard_rail_check_model(g, &c, &guard_rail_default_limits, &r);
    assert_int_equal(r.count, 10);
    assert_row(&r, "output.weight", "no such tensor in this architecture", "F16");
    guard_rail_clear(&r);
    gguf_close(&g);
}

/* What the guard rail says of a model of one family when another one, or another shape, is expected
 * of it. */
static void check_as(const char *shape, enum config_arch arch, uint32_t kv_heads,
                     struct guard_rail_report *r) {
    gguf *g = make_model(shape, "F16");
    struct config c = read_config(g);
    c.arch = arch;
    c.kv_heads = kv_heads;
    guard_rail_check_model(g, &c, &guard_rail_default_limits, r);
    gguf_close(&g);
}

static void tensors_of_every_family_are_known_by_name(void **state) {
    static const char foreign[] = "no such tensor in this architecture";
    struct guard_rail_report r = { 0 };
    (void)state;
    check_as("tiny-phi3", CONFIG_ARCH_PHI3, 4, &r);
    assert_int_equal(r.count, 2);
    assert_row(&r, "blk.0.attn_qkv.weight", "256 x 768", "256 x 512");
    guard_rail_clear(&r);

    check_as("tiny-phi3", CONFIG_ARCH_LLAMA, 2, &r);
    assert_row(&r, "blk.1.attn_qkv.weight", foreign, "F16");
    assert_row(&r, "blk.1.attn_v.weight", "256 x 128", "missing");
    assert_row(&r, "blk.1.ffn_up.weight", "256 x 512", "256 x 1024");
    guard_rail_clear(&r);

    check_as("tiny-gemma2", CONFIG_ARCH_GEMMA3, 2, &r);
    assert_int_equal(r.count, 8); /* norms of queries and keys in four layers */
    assert_row(&r, "blk.3.attn_k_norm.weight", "64", "missing");
    guard_rail_clear(&r);

    check_as("tiny-gemma3", CONFIG_ARCH_QWEN3, 1, &r);
    assert_int_equal(r.count, 14);
    assert_row(&r, "blk.0.post_attention_norm.weight", foreign, "F32");
    assert_row(&r, "blk.6.post_ffw_norm.weight", foreign, "F32");
    guard_rail_clear(&r);

    check_as("tiny,tied=1", CONFIG_ARCH_STARCODER2, 2, &r);
    assert_row(&r, "blk.0.ffn_gate.weight", foreign, "F16");
    assert_row(&r, "blk.0.ffn_down.bias", "256", "missing");
    assert_row(&r, "blk.1.attn_norm.bias", "256", "missing");
    assert_row(&r, "output_norm.bias", "256", "missing");
    guard_rail_clear(&r);
}

static void factors_of_longrope_are_demanded_together(void **state) {
    (void)state;
    struct guard_rail_report r = { 0 };
    gguf *g = make_model("tiny-phi3", "F16");
    struct config c = read_config(g);
    c.rope_scaling = CONFIG_ROPE_LONGROPE;
    guard_rail_check_model(g, &c, &guard_rail_default_limits, &r);
    assert_int_equal(r.count, 2);
    assert_row(&r, "rope_factors_long.weight", "32", "missing");
    assert_row(&r, "rope_factors_short.weight", "32", "missing");
    guard_rail_clear(&r);
    gguf_close(&g);
}

static void vocabulary_must_fit_embedding_and_tokenizer(void **state) {
    (void)state;
    struct guard_rail_report r = { 0 };
    gguf *g = make_model("tiny", "F32");
    struct config c = read_config(g);
    c.vocab = 513;
    guard_rail_check_model(g, &c, &guard_rail_default_limits, &r);
    assert_row(&r, "tokenizer.ggml.tokens", "513 tokens", "512 tokens");
    assert_row(&r, "token_embd.weight", "256 x 513", "256 x 512");
    assert_row(&r, "output.weight", "256 x 513", "256 x 512");
    guard_rail_clear(&r);
    gguf_close(&g);
}

static void heads_must_suit_the_kernels(void **state) {
    (void)state;
    struct guard_rail_report r = { 0 };
    gguf *g = make_model("tiny", "F32");
    struct config c = read_config(g);
    struct guard_rail_limits limits = { .head_size_multiple = 48, .head_size_max = 96 };
    guard_rail_check_model(g, &c, &limits, &r);
    assert_row(&r, "head size", "a multiple of 48 up to 96", "64");
    assert_int_equal(r.count, 1);
    guard_rail_clear(&r);
    gguf_close(&g);
}

static void a_demanded_shape_is_compared(void **state) {
    (void)state;
    struct guard_rail_report r = { 0 };
    struct guard_rail_expectation x;
    struct err e = { 0 };
    struct config c;
    assert_int_equal(config_find_shape("llama-3-8b", &c, &e), RC_OK);
    assert_int_equal(guard_rail_read_expectation("llama-3-8b", &x, &e), RC_OK);
    guard_rail_check_expectation(&c, &x, &r);
    assert_int_equal(r.count, 0);
    assert_int_equal(guard_rail_read_expectation("llama-2-7b", &x, &e), RC_OK);
    guard_rail_check_expectation(&c, &x, &r);
    assert_int_equal(r.count, 4);
    assert_row(&r, "number of KV heads", "32", "8");
    assert_row(&r, "feed-forward length", "11008", "14336");
    assert_row(&r, "vocabulary size", "32000", "128256");
    assert_row(&r, "rope base", "10000", "500000");
    guard_rail_clear(&r);
    assert_int_equal(guard_rail_read_expectation("/no/such/file.json", &x, &e), RC_USAGE);
}

static enum rc parse_text(const char *text, struct guard_rail_expectation *x, struct err *e) {
    char *exact = malloc(strlen(text) + 1); /* its own block, without the terminator */
    memcpy(exact, text, strlen(text));
    enum rc rc = guard_rail_parse_expectation(exact, strlen(text), "x.json", x, e);
    free(exact);
    return rc;
}

static void demands_may_be_json(void **state) {
    (void)state;
    struct guard_rail_expectation x;
    struct err e = { 0 };
    assert_int_equal(parse_text(" { \"dim\": 256, \"layers\":2,\"arch\" : \"llama\",\n"
                                "\"rope_base\": 1e4, \"tied\": true }\n",
                                &x, &e),
                     RC_OK);
    assert_true(x.dim == 256 && x.layers == 2 && x.rope_base == 10000 && x.tied == 1);
    assert_true(x.heads == 0 && strcmp(x.arch, "llama") == 0);
    /* A published config.json, with members that say nothing about the shape. */
    assert_int_equal(parse_text("{\"architectures\":[\"MistralForCausalLM\"],\"hidden_size\":4096,"
                                "\"model_type\":\"mistral\",\"rope_scaling\":{\"a\":[1,{}]},"
                                "\"head_dim\":null,\"tie_word_embeddings\":false}",
                                &x, &e),
                     RC_OK);
    assert_true(x.dim == 4096 && x.tied == 0 && x.head_size == 0 && strcmp(x.arch, "llama") == 0);
}

static void json_that_is_wrong_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *words;
    } bad[] = {
        { "", "line 1, column 1: expected a value, found the end of the text" },
        { "[]", "expected an object" },
        { "{}", "no member says anything about the shape" },
        { "{\"dims\": 4}", "member 'dims' is not a property of a shape" },
        { "{\"dim\": 4.5}", "member 'dim': expected a whole number" },
        { "{\"dim\": -4}", "member 'dim': expected a whole number" },
        { "{\"dim\": \"4\"}", "member 'dim': expected a whole number" },
        { "{\"dim\": 4", "line 1, column 10: expected ',' or '}'" },
        { "{\"dim\": 4,}", "expected a string" },
        { "{\"dim\" 4}", "expected ':'" },
        { "{\"dim\": 4} x", "expected nothing after the value" },
        { "{\"dim", "expected the end of a string" },
        { "{\"dim\\", "expected the end of a string" },
        { "{\"dim\": }", "expected a value" },
        { "{\"dim\": 1e}", "expected digits of an exponent" },
        { "{\"tied\": 1}", "member 'tied': expected true or false" },
        { "{\"arch\": 1}", "member 'arch': expected a string" },
        { "{\"x\": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
          "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
          "expected less nesting" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct guard_rail_expectation x;
        struct err e = { 0 };
        enum rc rc = parse_text(bad[i].text, &x, &e);
        if (rc != RC_FORMAT || !strstr(e.msg, bad[i].words) || !strstr(e.msg, "x.json"))
            fail_msg("%s: %s '%s'", bad[i].text, rc_name(rc), e.msg);
    }
}

static void memory_is_counted_before_it_is_taken(void **state) {
    (void)state;
    struct guard_rail_report r = { 0 };
    gguf *g = make_model("tiny", "F16");
    struct guard_rail_memory m = guard_rail_memory_need(g, 1000, 24);
    uint64_t weights = 0;
    for (uint64_t i = 0; i < gguf_tensor_count(g); i++)
        weights += gguf_tensor_at(g, i)->bytes;
    assert_int_equal(m.weights, weights);
    assert_int_equal(m.total, weights + 1024);
    guard_rail_check_memory(&m, m.total, &r);
    assert_int_equal(r.count, 0);
    guard_rail_check_memory(&m, m.total - 1, &r);
    assert_int_equal(r.count, 1);
    assert_non_null(find_row(&r, "free device memory"));
    guard_rail_clear(&r);
    assert_true(guard_rail_memory_need(g, UINT64_MAX, 24).total == UINT64_MAX);
    gguf_close(&g);
}

static int make_folder(void **state) {
    int r = folder_make(state);
    snprintf(path, sizeof path, "%s/m.gguf", folder);
    return r;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_models_of_every_architecture_pass),
        cmocka_unit_test(wrong_kv_heads_are_seen_in_the_shapes),
        cmocka_unit_test(missing_and_unknown_tensors_are_reported),
        cmocka_unit_test(tensors_of_every_family_are_known_by_name),
        cmocka_unit_test(factors_of_longrope_are_demanded_together),
        cmocka_unit_test(vocabulary_must_fit_embedding_and_tokenizer),
        cmocka_unit_test(heads_must_suit_the_kernels),
        cmocka_unit_test(a_demanded_shape_is_compared),
        cmocka_unit_test(demands_may_be_json),
        cmocka_unit_test(json_that_is_wrong_is_refused),
        cmocka_unit_test(memory_is_counted_before_it_is_taken),
    };
    return cmocka_run_group_tests(tests, make_folder, folder_remove);
}
