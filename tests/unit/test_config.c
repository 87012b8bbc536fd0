/* Configurations from metadata, and the tensors they imply. */
#include <math.h>

#include "model/config.h"
#include "test_gguf_bytes.h"

static struct bytes b;

/* The keys of a small model; the caller adds `more` keys after it. */
static void make_model(const char *arch, uint64_t tensors, uint64_t more) {
    char key[96];
    put_header(&b, tensors, 9 + more);
    put_key(&b, "general.architecture", GGUF_STRING), put_text(&b, arch);
    put_key(&b, "general.name", GGUF_STRING), put_text(&b, "small\x1b[0m");
    static const struct {
        const char *tail;
        uint32_t value;
    } numbers[] = {
        { "embedding_length", 256 },   { "block_count", 3 },       { "feed_forward_length", 512 },
        { "attention.head_count", 8 }, { "context_length", 1024 }, { "vocab_size", 300 },
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        snprintf(key, sizeof key, "%s.%s", arch, numbers[i].tail);
        put_key_u32(&b, key, numbers[i].value);
    }
    bool layer_norm = strcmp(arch, "starcoder2") == 0;
    snprintf(key, sizeof key, "%s.attention.layer_norm_%sepsilon", arch, layer_norm ? "" : "rms_");
    put_key(&b, key, GGUF_F32), put(&b, &(float){ 1e-6f }, 4);
}

static void put_key_text(const char *key, const char *text) {
    put_key(&b, key, GGUF_STRING), put_text(&b, text);
}

static void put_key_f32(const char *key, float value) {
    put_key(&b, key, GGUF_F32), put(&b, &value, 4);
}

static enum rc read_config(struct config *c, struct err *e) {
    gguf *g;
    uint8_t *copy;
    if (open_exact(b.data, b.len, &g, &copy, e))
        fail_msg("%s", e->msg);
    enum rc rc = config_read(g, c, e);
    gguf_close(&g);
    free(copy);
    return rc;
}

static struct config read_good(void) {
    struct config c;
    struct err e = { 0 };
    if (read_config(&c, &e))
        fail_msg("%s", e.msg);
    return c;
}

static void assert_config_refused(enum rc rc, const char *words) {
    struct err e = { 0 };
    struct config c;
    enum rc found = read_config(&c, &e);
    if (found != rc || !strstr(e.msg, words) || !strstr(e.msg, "m.gguf"))
        fail_msg("%s '%s', expected '%s'", rc_name(found), e.msg, words);
}

static void sizes_are_read_and_completed(void **state) {
    (void)state;
    make_model("llama", 0, 0);
    struct config c = read_good();
    assert_int_equal(c.arch, CONFIG_ARCH_LLAMA);
    assert_string_equal(c.name, "small?[0m");
    assert_true(c.dim == 256 && c.layers == 3 && c.heads == 8 && c.hidden == 512);
    assert_true(c.kv_heads == 8 && c.head_size == 32 && c.rope_dims == 32);
    assert_true(c.vocab == 300 && c.context == 1024 && c.tied && c.sliding_window == 0);
    assert_true(c.norm_eps == 1e-6f && c.rope_base == 10000 && c.rope_factor == 1);
    assert_int_equal(c.rope_style, CONFIG_ROPE_PAIRS);
    assert_int_equal(c.rope_scaling, CONFIG_ROPE_NONE);
    assert_true(fabsf(c.attention_scale - 0.17677669f) < 1e-7f);
}

static void optional_keys_are_read(void **state) {
    (void)state;
    make_model("qwen3", 0, 6);
    put_key_u32(&b, "qwen3.attention.head_count_kv", 2);
    put_key_u32(&b, "qwen3.attention.key_length", 64);
    put_key_u32(&b, "qwen3.attention.value_length", 64);
    put_key_u32(&b, "qwen3.attention.sliding_window", 128);
    put_key_f32("qwen3.rope.freq_base", 500000);
    put_key_f32("qwen3.attention.scale", 0.5f);
    struct config c = read_good();
    assert_true(c.kv_heads == 2 && c.head_size == 64 && c.rope_dims == 64);
    assert_true(c.sliding_window == 128 && c.rope_base == 500000 && c.attention_scale == 0.5f);
    assert_int_equal(c.rope_style, CONFIG_ROPE_HALVES);
}

static void rope_scaling_is_understood(void **state) {
    (void)state;
    make_model("llama", 0, 2);
    put_key_text("llama.rope.scaling.type", "linear"), put_key_f32("llama.rope.scaling.factor", 4);
    struct config c = read_good();
    assert_true(c.rope_scaling == CONFIG_ROPE_LINEAR && c.rope_factor == 4);

    make_model("llama", 0, 1);
    put_key_f32("llama.rope.scale_linear", 2);
    c = read_good();
    assert_true(c.rope_scaling == CONFIG_ROPE_LINEAR && c.rope_factor == 2);

    make_model("llama", 0, 2);
    put_key_text("llama.rope.scaling.type", "none"), put_key_f32("llama.rope.scaling.factor", 4);
    c = read_good();
    assert_true(c.rope_scaling == CONFIG_ROPE_NONE && c.rope_factor == 1);

    make_model("llama", 0, 3);
    put_key_text("llama.rope.scaling.type", "yarn"), put_key_f32("llama.rope.scaling.factor", 8);
    put_key_u32(&b, "llama.rope.scaling.original_context_length", 128);
    c = read_good();
    assert_true(c.rope_scaling == CONFIG_ROPE_YARN && c.rope_original_context == 128);
    assert_true(c.yarn_mix == 1 && c.yarn_beta_fast == 32 && c.yarn_beta_slow == 1);
    assert_true(fabs(c.rope_magnitude - (1 + 0.1 * log(8))) < 1e-12);

    make_model("llama", 0, 2);
    put_key_text("llama.rope.scaling.type", "ntk"), put_key_f32("llama.rope.scaling.factor", 4);
    c = read_good();
    double slowest = pow(c.rope_base, -(c.rope_dims - 2.0) / c.rope_dims);
    assert_true(c.rope_scaling == CONFIG_ROPE_NONE && c.rope_factor == 1);
    assert_true(fabs(slowest * 4 - pow(10000, -(c.rope_dims - 2.0) / c.rope_dims)) < 1e-12);

    make_model("llama", 1, 0);
    put_tensor(&b, "rope_freqs.weight", 1, (uint64_t[]){ 16 }, TENSOR_TYPE_F32, 0);
    put_data(&b, 32, 64);
    c = read_good();
    assert_true(c.rope_scaling == CONFIG_ROPE_LLAMA3 && c.rope_freqs);

    make_model("llama", 0, 1);
    put_key_text("llama.rope.scaling.type", "longrope");
    assert_config_refused(RC_UNSUPPORTED, "'longrope'; greta knows none, linear, ntk, yarn");
}

static void families_have_their_own_defaults(void **state) {
    (void)state;
    make_model("gemma2", 0, 0);
    struct config c = read_good();
    assert_true(c.norm == CONFIG_RMS_NORM && c.activation == CONFIG_GELU && c.tied);
    assert_true(c.attention_cap == 50 && c.logit_cap == 30 && c.embedding_scale == 16);
    assert_true(c.sliding_window == 4096 && c.window_period == 2 && c.rope_local_base == 0);
    assert_true(config_is_local(&c, 0) && !config_is_local(&c, 1) && config_is_local(&c, 2));
    make_model("gemma3", 0, 0);
    c = read_good();
    assert_true(c.attention_cap == 0 && c.logit_cap == 0 && c.sliding_window == 0);
    assert_false(config_is_local(&c, 0));
    make_model("starcoder2", 0, 0);
    c = read_good();
    assert_true(c.norm == CONFIG_LAYER_NORM && c.norm_eps == 1e-6f && c.embedding_scale == 0);
    make_model("phi3", 0, 1);
    put_key_u32(&b, "phi3.attention.sliding_window", 100);
    c = read_good();
    assert_true(config_is_local(&c, 0) && config_is_local(&c, 1) && c.activation == CONFIG_SILU);
}

static void files_overrule_the_defaults_of_their_family(void **state) {
    (void)state;
    make_model("gemma3", 0, 6);
    put_key_u32(&b, "gemma3.attention.sliding_window", 64);
    put_key_u32(&b, "gemma3.attention.sliding_window_pattern", 3);
    put_key_f32("gemma3.rope.freq_base", 1e6f);
    put_key_f32("gemma3.rope.freq_base_swa", 20000);
    put_key_f32("gemma3.attn_logit_softcapping", 40);
    put_key_f32("gemma3.final_logit_softcapping", 20);
    struct config c = read_good();
    assert_true(c.window_period == 3 && c.sliding_window == 64 && !config_is_local(&c, 2));
    assert_true(c.rope_base == 1e6 && c.rope_local_base == 20000);
    assert_true(c.attention_cap == 40 && c.logit_cap == 20);
    make_model("gemma2", 0, 1);
    put_key_f32("gemma2.attn_logit_softcapping", NAN);
    assert_config_refused(RC_RANGE, "soft caps nan of attention");
}

/* A flag for every layer instead of a period. */
static void a_pattern_of_windows_may_be_an_array(void **state) {
    (void)state;
    make_model("gemma3", 0, 1);
    put_key(&b, "gemma3.attention.sliding_window_pattern", GGUF_ARRAY);
    put_u32(&b, GGUF_BOOL), put_u64(&b, 6);
    put(&b, (uint8_t[]){ 1, 1, 0, 1, 1, 0 }, 6);
    assert_int_equal(read_good().window_period, 3);
    b.data[b.len - 1] = 1;
    assert_config_refused(RC_UNSUPPORTED, "every Nth layer is global");
    memset(b.data + b.len - 6, 0, 6);
    assert_int_equal(read_good().window_period, 1);
}

/* Gemma's largest models; nothing but their number of layers tells. */
static void the_scale_of_queries_may_depend_on_the_layers(void **state) {
    (void)state;
    struct config c = { .arch = CONFIG_ARCH_GEMMA2, .dim = 4608, .heads = 32, .head_size = 128 };
    for (c.layers = 45; c.layers <= 46; c.layers++) {
        struct config whole = c;
        config_complete(&whole);
        double width = c.layers == 46 ? 144 : 128;
        assert_true(fabs((double)whole.attention_scale - 1 / sqrt(width)) < 1e-8);
    }
}

static void fused_tensors_have_parts(void **state) {
    (void)state;
    struct config c;
    struct err e = { 0 };
    struct config_part p;
    struct config_tensor_spec s;
    assert_int_equal(config_find_shape("phi-3-mini-4k", &c, &e), RC_OK);
    assert_true(config_parameter_count(&c) == 3821079552u);
    assert_true(config_tensor_spec(&c, CONFIG_TENSOR_ATTN_QKV, 7, &s) && s.required);
    assert_true(s.ne[0] == 3072 && s.ne[1] == 9216);
    assert_string_equal(s.name, "blk.7.attn_qkv.weight");
    assert_false(config_tensor_spec(&c, CONFIG_TENSOR_ATTN_Q, 7, &s));
    uint64_t rows = 0;
    static const enum config_tensor ids[] = { CONFIG_TENSOR_ATTN_Q, CONFIG_TENSOR_ATTN_K,
                                              CONFIG_TENSOR_ATTN_V };
    for (unsigned i = 0; config_tensor_part(&c, CONFIG_TENSOR_ATTN_QKV, i, &p); i++) {
        assert_true(i < 3 && p.id == ids[i] && p.first == rows);
        rows += p.rows;
    }
    assert_int_equal(rows, 9216);
    assert_true(config_tensor_part(&c, CONFIG_TENSOR_FFN_GATE_UP, 1, &p));
    assert_true(p.id == CONFIG_TENSOR_FFN_UP && p.first == 8192 && p.rows == 8192);
    assert_false(config_tensor_part(&c, CONFIG_TENSOR_FFN_DOWN, 0, &p));
}

static void per_layer_numbers_must_be_alike(void **state) {
    (void)state;
    make_model("llama", 0, 1);
    put_key(&b, "llama.attention.head_count_kv", GGUF_ARRAY), put_u32(&b, GGUF_I32), put_u64(&b, 3);
    put(&b, (int32_t[]){ 4, 4, 4 }, 12);
    assert_int_equal(read_good().kv_heads, 4);
    b.data[b.len - 4] = 2;
    assert_config_refused(RC_UNSUPPORTED, "layer 0 has 4, layer 2 has 2");
}

static void what_greta_does_not_run_is_refused(void **state) {
    (void)state;
    make_model("mamba", 0, 0);
    assert_config_refused(RC_UNSUPPORTED, "'mamba'; greta runs llama, qwen2, qwen3");
    make_model("llama", 0, 1);
    put_key_u32(&b, "llama.expert_count", 8);
    assert_config_refused(RC_UNSUPPORTED, "a mixture of 8 experts");
    make_model("llama", 0, 2);
    put_key_u32(&b, "llama.attention.key_length", 64);
    put_key_u32(&b, "llama.attention.value_length", 32);
    assert_config_refused(RC_UNSUPPORTED, "keys of 64 and values of 32");
}

static void contradictions_are_refused(void **state) {
    (void)state;
    put_header(&b, 0, 1);
    put_key_text("general.architecture", "llama");
    assert_config_refused(RC_FORMAT, "key 'llama.embedding_length' is missing");
    make_model("llama", 0, 1);
    put_key_u32(&b, "llama.attention.head_count_kv", 3);
    assert_config_refused(RC_RANGE, "8 heads cannot share 3 KV heads evenly");
    make_model("llama", 0, 1);
    put_key_u32(&b, "llama.attention.head_count_kv", 0);
    assert_int_equal(read_good().kv_heads, 8);
    make_model("llama", 0, 1);
    put_key_u32(&b, "llama.rope.dimension_count", 31);
    assert_config_refused(RC_RANGE, "31 elements of a head rotate");
    make_model("llama", 0, 1);
    put_key_f32("llama.rope.freq_base", -1);
    assert_config_refused(RC_RANGE, "rope base -1");
    make_model("llama", 0, 1);
    put_key_text("llama.rope.freq_base", "many");
    assert_config_refused(RC_FORMAT, "key 'llama.rope.freq_base'");
    /* Every size in turn beyond what can be counted. */
    for (int i = 0; i < 6; i++) {
        static const char *const tails[] = { "embedding_length",    "block_count",
                                             "feed_forward_length", "attention.head_count",
                                             "context_length",      "vocab_size" };
        make_model("llama", 0, 0);
        char key[64];
        size_t n = (size_t)snprintf(key, sizeof key, "llama.%s", tails[i]);
        uint8_t *at = memmem(b.data, b.len, key, n);
        assert_non_null(at);
        memset(at + n + 4, 0xff, 4);
        struct err e = { 0 };
        struct config c;
        assert_int_not_equal(read_config(&c, &e), RC_OK);
    }
}

static void tensors_follow_from_the_configuration(void **state) {
    (void)state;
    struct config c;
    struct err e = { 0 };
    struct config_tensor_spec s;
    assert_int_equal(config_find_shape("llama-3-8b", &c, &e), RC_OK);
    assert_true(config_tensor_spec(&c, CONFIG_TENSOR_ATTN_K, 31, &s));
    assert_string_equal(s.name, "blk.31.attn_k.weight");
    assert_true(s.ne[0] == 4096 && s.ne[1] == 1024 && s.n_dims == 2 && s.required);
    assert_true(config_tensor_spec(&c, CONFIG_TENSOR_FFN_DOWN, 0, &s));
    assert_true(s.ne[0] == 14336 && s.ne[1] == 4096);
    assert_true(config_tensor_spec(&c, CONFIG_TENSOR_ATTN_NORM, 0, &s));
    assert_true(s.ne[0] == 4096 && s.n_dims == 1 && s.kind == CONFIG_NORM);
    assert_false(config_tensor_spec(&c, CONFIG_TENSOR_ATTN_Q_NORM, 0, &s));
    uint64_t all = 0, required = 0;
    for (; config_tensor_at(&c, all, &s); all++)
        required += s.required;
    assert_int_equal(required, 3 + 32 * 9);
    assert_string_equal(s.name, "output.weight"); /* the last one */
    assert_int_equal(all, 4 + 32 * 13);
    assert_true(config_parameter_count(&c) == 8030261248u);
    c.tied = true;
    assert_false(config_tensor_spec(&c, CONFIG_TENSOR_OUTPUT, 0, &s));
    c.arch = CONFIG_ARCH_QWEN3;
    assert_true(config_tensor_spec(&c, CONFIG_TENSOR_ATTN_Q_NORM, 0, &s) && s.required);
    assert_int_equal(s.ne[0], 128);
    c.arch = CONFIG_ARCH_QWEN2;
    assert_true(config_tensor_spec(&c, CONFIG_TENSOR_ATTN_K_BIAS, 0, &s) && s.required);
    assert_int_equal(s.ne[0], 1024);
}

static void shapes_have_names(void **state) {
    (void)state;
    struct config c;
    struct err e = { 0 };
    assert_int_equal(config_find_shape("llama-2-7b", &c, &e), RC_OK);
    assert_true(config_parameter_count(&c) == 6738415616u);
    assert_int_equal(config_find_shape("tinyllama-1.1b", &c, &e), RC_OK);
    assert_true(config_parameter_count(&c) == 1100048384u);
    assert_int_equal(config_find_shape("huge", &c, &e), RC_USAGE);
    assert_non_null(strstr(e.msg, "there are llama-2-7b, "));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_read_and_completed),
        cmocka_unit_test(optional_keys_are_read),
        cmocka_unit_test(rope_scaling_is_understood),
        cmocka_unit_test(families_have_their_own_defaults),
        cmocka_unit_test(files_overrule_the_defaults_of_their_family),
        cmocka_unit_test(a_pattern_of_windows_may_be_an_array),
        cmocka_unit_test(the_scale_of_queries_may_depend_on_the_layers),
        cmocka_unit_test(fused_tensors_have_parts),
        cmocka_unit_test(per_layer_numbers_must_be_alike),
        cmocka_unit_test(what_greta_does_not_run_is_refused),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(tensors_follow_from_the_configuration),
        cmocka_unit_test(shapes_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
