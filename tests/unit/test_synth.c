/* Synthetic models and their quantised versions. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "model/guard_rail.h"
#include "model/quant/quant.h"
#include "model/quant/quant_scan.h"
#include "model/quant/quantize.h"
#include "model/synth.h"
#include "test.h"
#include "unit/folder.h"

static char path[300], other[300];

static void write_model(const char *to, const char *shape, const char *type, uint64_t seed,
                        int threads) {
    struct err e = { 0 };
    struct synth_options o = { .seed = seed, .threads = threads };
    bool vocab_given;
    if (synth_parse_shape(shape, &o.shape, &vocab_given, &e) || quant_mix_find(type, &o.mix, &e) ||
        synth_write(to, &o, &e))
        fail_msg("%s", e.msg);
}

static gguf *open_model(const char *from) {
    struct err e = { 0 };
    gguf *g = NULL;
    if (gguf_open(&g, from, &e))
        fail_msg("%s", e.msg);
    return g;
}

static uint64_t hash_file(const char *from) {
    FILE *f = fopen(from, "r");
    assert_non_null(f);
    static uint8_t data[1 << 22];
    size_t n = fread(data, 1, sizeof data, f);
    assert_true(n > 0 && n < sizeof data);
    fclose(f);
    return hash_bytes(data, n, 0);
}

static void a_seed_gives_one_file_whatever_the_threads(void **state) {
    (void)state;
    write_model(path, "tiny,layers=1,vocab=2500", "Q4_0", 5, 1);
    uint64_t one = hash_file(path);
    write_model(path, "tiny,layers=1,vocab=2500", "Q4_0", 5, 4);
    assert_true(hash_file(path) == one);
    write_model(path, "tiny,layers=1,vocab=2500", "Q4_0", 6, 2);
    assert_true(hash_file(path) != one);
}

static void every_type_makes_a_sound_model(void **state) {
    (void)state;
    char names[256];
    snprintf(names, sizeof names, "%s", quant_mix_names());
    int count = 0;
    for (char *rest = names, *type; (type = strsep(&rest, " ")) != NULL; count++) {
        struct guard_rail_report r = { 0 };
        struct quant_scan_result results[64];
        struct quant_scan how = { .threads = 2 };
        struct err e = { 0 };
        struct config c;
        write_model(path, "tiny,layers=1", type, 1, 2);
        gguf *g = open_model(path);
        assert_int_equal(config_read(g, &c, &e), RC_OK);
        guard_rail_check_model(g, &c, &guard_rail_default_limits, &r);
        assert_int_equal(r.count, 0);
        assert_int_equal(quant_scan_model(g, &how, results, &e), RC_OK);
        for (uint64_t i = 0; i < gguf_tensor_count(g); i++)
            assert_int_equal(results[i].bad, 0);
        const struct quant_mix *mix;
        assert_int_equal(quant_mix_find(type, &mix, &e), RC_OK);
        assert_int_equal(gguf_find_tensor(g, "blk.0.attn_q.weight")->type, mix->type);
        assert_int_equal(gguf_find_tensor(g, "blk.0.attn_norm.weight")->type, TENSOR_TYPE_F32);
        gguf_close(&g);
        guard_rail_clear(&r);
    }
    assert_int_equal(count, 17);
}

/* Mean and deviation of a tensor's elements. */
static void measure(const gguf *g, const char *name, double *mean, double *deviation) {
    const struct gguf_tensor *t = gguf_find_tensor(g, name);
    assert_non_null(t);
    float *x = malloc(t->elements * sizeof *x);
    struct err e = { 0 };
    assert_int_equal(quant_decode_row(t->type, t->data, x, t->elements, &e), RC_OK);
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < t->elements; i++) {
        sum += x[i];
        squares += (double)x[i] * x[i];
    }
    *mean = sum / (double)t->elements;
    *deviation = sqrt(squares / (double)t->elements - *mean * *mean);
    free(x);
}

static void weights_have_the_scale_of_their_role(void **state) {
    (void)state;
    static const struct {
        const char *name;
        double mean, deviation;
    } wanted[] = {
        { "token_embd.weight", 0, 1 },
        { "output.weight", 0, 2.0 / 16 },
        { "blk.0.attn_q.weight", 0, 1.0 / 16 },
        { "blk.0.attn_output.weight", 0, 1.0 / 32 }, /* two layers: 1/2 of 1/16 */
        { "blk.1.attn_norm.weight", 1, 0.1 },
    };
    write_model(path, "tiny", "F32", 1, 2);
    gguf *g = open_model(path);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        double mean, deviation;
        measure(g, wanted[i].name, &mean, &deviation);
        assert_true(fabs(mean - wanted[i].mean) < 0.1 * wanted[i].deviation + 0.01);
        assert_true(fabs(deviation / wanted[i].deviation - 1) < 0.1);
    }
    gguf_close(&g);
}

static void no_two_rows_are_alike(void **state) {
    (void)state;
    write_model(path, "tiny,layers=2,dim=1024,heads=16,hidden=1024", "F16", 1, 2);
    gguf *g = open_model(path);
    const struct gguf_tensor *q = gguf_find_tensor(g, "blk.0.attn_q.weight");
    const struct gguf_tensor *q1 = gguf_find_tensor(g, "blk.1.attn_q.weight");
    assert_memory_not_equal(q->data, q1->data, 2048);
    assert_true(q->elements > 1 << 18); /* rows on both sides of a piece's edge */
    for (uint64_t row = 1; row < q->ne[1]; row++)
        assert_memory_not_equal((const char *)q->data + row * 2048, q->data, 2048);
    gguf_close(&g);
}

static int compare_strings(const void *a, const void *b) {
    const struct gguf_string *x = a, *y = b;
    uint64_t n = x->len < y->len ? x->len : y->len;
    int order = memcmp(x->data, y->data, n);
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

static void the_vocabulary_has_its_size_and_no_token_twice(void **state) {
    (void)state;
    static const uint32_t sizes[] = { SYNTH_VOCAB_MIN, 512, 5000, 40000 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char shape[64];
        struct err e = { 0 };
        const struct gguf_array *tokens, *types;
        snprintf(shape, sizeof shape, "dim=32,heads=1,layers=1,hidden=32,vocab=%u", sizes[i]);
        write_model(path, shape, "Q8_0", 1, 1);
        gguf *g = open_model(path);
        assert_int_equal(gguf_get_array(g, "tokenizer.ggml.tokens", GGUF_STRING, &tokens, &e),
                         RC_OK);
        assert_int_equal(gguf_get_array(g, "tokenizer.ggml.token_type", GGUF_I32, &types, &e),
                         RC_OK);
        assert_int_equal(tokens->count, sizes[i]);
        assert_true(gguf_string_is(tokens->strings[1], "<s>"));
        assert_true(gguf_string_is(tokens->strings[3 + 0xAB], "<0xAB>"));
        assert_int_equal(gguf_array_i64(types, 3 + 0xAB), 6);
        struct gguf_string *sorted = malloc(tokens->count * sizeof *sorted);
        memcpy(sorted, tokens->strings, tokens->count * sizeof *sorted);
        qsort(sorted, tokens->count, sizeof *sorted, compare_strings);
        for (uint64_t k = 1; k < tokens->count; k++)
            assert_true(compare_strings(&sorted[k - 1], &sorted[k]) != 0);
        free(sorted);
        gguf_close(&g);
    }
}

static void a_vocabulary_can_be_taken_from_a_file(void **state) {
    (void)state;
    struct err e = { 0 };
    struct synth_options o = { .seed = 1, .threads = 1 };
    bool vocab_given;
    write_model(other, "tiny,vocab=700", "Q4_0", 1, 1);
    gguf *vocab = open_model(other);
    assert_int_equal(synth_parse_shape("tiny", &o.shape, &vocab_given, &e), RC_OK);
    assert_false(vocab_given);
    assert_int_equal(quant_mix_find("Q4_0", &o.mix, &e), RC_OK);
    o.vocab = vocab;
    assert_int_equal(synth_write(path, &o, &e), RC_OK);
    gguf *g = open_model(path);
    assert_int_equal(gguf_find_tensor(g, "token_embd.weight")->ne[1], 700);
    assert_int_equal(gguf_find_key(g, "tokenizer.ggml.scores")->value.array.count, 700);
    gguf_close(&g);
    gguf_close(&vocab);
}

static void shapes_are_parsed(void **state) {
    (void)state;
    struct config c;
    struct err e = { 0 };
    bool vocab_given;
    assert_int_equal(synth_parse_shape("dim=512,layers=3,heads=8,kv_heads=2,hidden=1024,vocab=1000,"
                                       "ctx=256,head_dim=96,arch=qwen3,tied=1,window=64",
                                       &c, &vocab_given, &e),
                     RC_OK);
    assert_true(c.dim == 512 && c.layers == 3 && c.heads == 8 && c.kv_heads == 2 && vocab_given);
    assert_true(c.hidden == 1024 && c.vocab == 1000 && c.context == 256 && c.head_size == 96);
    assert_true(c.arch == CONFIG_ARCH_QWEN3 && c.tied && c.sliding_window == 64);
    assert_int_equal(synth_parse_shape("dim=256", &c, &vocab_given, &e), RC_OK);
    assert_true(c.heads == 4 && c.head_size == 64 && c.hidden == 768 && !vocab_given);
    static const struct {
        const char *shape, *words;
    } bad[] = {
        { "medium", "no shape is called 'medium'" },
        { "dim=0", "embedding length is 0" },
        { "dim=x", "'dim' cannot be 'x'" },
        { "dim=-1", "'dim' cannot be '-1'" },
        { "dim=99999999999", "'dim' cannot be" },
        { "width=4", "there is no 'width'; there are dim" },
        { "dim=256,heads", "neither a known shape nor key=value" },
        { "dim=256,arch=gpt2", "'arch' cannot be 'gpt2'" },
        { "dim=256,tied=yes", "'tied' cannot be 'yes'" },
        { "dim=256,heads=3", "cannot be divided among 3 heads" },
        { "dim=256,heads=4,kv_heads=3", "cannot share 3 KV heads" },
        { "dim=256,rope_scaling=wild", "'rope_scaling' cannot be 'wild'" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        enum rc rc = synth_parse_shape(bad[i].shape, &c, &vocab_given, &e);
        if (rc != RC_USAGE || !strstr(e.msg, bad[i].words))
            fail_msg("%s: %s '%s'", bad[i].shape, rc_name(rc), e.msg);
    }
}

static void rope_scaling_is_written(void **state) {
    (void)state;
    static const char *const names[] = { "none", "linear", "yarn", "llama3" };
    for (int i = 0; i < 4; i++) {
        char shape[64];
        struct config c;
        struct err e = { 0 };
        snprintf(shape, sizeof shape, "tiny,layers=1,rope_scaling=%s", names[i]);
        write_model(path, shape, "F16", 1, 1);
        gguf *g = open_model(path);
        assert_int_equal(config_read(g, &c, &e), RC_OK);
        assert_string_equal(config_rope_scaling_name(c.rope_scaling), names[i]);
        if (i == 3) {
            const float *f = gguf_find_tensor(g, "rope_freqs.weight")->data;
            assert_true(f[0] == 1 && f[31] == 8); /* fast waves kept, slow ones stretched */
        }
        gguf_close(&g);
    }
}

/* ---- quantising ---- */

static enum rc quantize(const char *from, const char *to, const char *type, int threads,
                        struct quantize_result *result, struct err *e) {
    struct quantize_options o = { .threads = threads };
    gguf *g = open_model(from);
    enum rc rc = quant_mix_find(type, &o.mix, e);
    if (!rc)
        rc = quantize_model(g, to, &o, result, e);
    gguf_close(&g);
    return rc;
}

static void quantising_changes_types_and_keeps_the_rest(void **state) {
    (void)state;
    struct err e = { 0 };
    struct quantize_result r;
    write_model(path, "tiny", "F32", 1, 2);
    assert_int_equal(quantize(path, other, "Q8_0", 3, &r, &e), RC_OK);
    assert_int_equal(r.changed, 16);
    assert_int_equal(r.kept, 5);
    assert_int_equal(r.fallbacks + r.requantized, 0);
    gguf *a = open_model(path), *q = open_model(other);
    assert_int_equal(gguf_key_count(a), gguf_key_count(q));
    uint32_t file_type = 0;
    assert_int_equal(gguf_get_u32(q, "general.file_type", &file_type, &e), RC_OK);
    assert_int_equal(file_type, 7);
    for (uint64_t i = 0; i < gguf_tensor_count(a); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(a, i), *u = gguf_tensor_at(q, i);
        assert_string_equal(t->name, u->name);
        static float x[1 << 18], y[1 << 18];
        assert_int_equal(quant_decode_row(t->type, t->data, x, t->elements, &e), RC_OK);
        assert_int_equal(quant_decode_row(u->type, u->data, y, t->elements, &e), RC_OK);
        double error = 0, size = 0;
        for (uint64_t k = 0; k < t->elements; k++) {
            error += pow((double)x[k] - y[k], 2);
            size += pow(x[k], 2);
        }
        assert_true(sqrt(error / size) < (t->n_dims == 1 ? 1e-9 : 0.006));
    }
    gguf_close(&a);
    gguf_close(&q);
}

static void threads_do_not_change_the_result(void **state) {
    (void)state;
    struct err e = { 0 };
    write_model(path, "tiny,layers=1,vocab=2500", "F16", 1, 2);
    assert_int_equal(quantize(path, other, "Q4_K_M", 1, NULL, &e), RC_OK);
    uint64_t one = hash_file(other);
    assert_int_equal(quantize(path, other, "Q4_K_M", 3, NULL, &e), RC_OK);
    assert_true(hash_file(other) == one);
}

static void the_mix_gives_more_bits_where_it_should(void **state) {
    (void)state;
    const struct quant_mix *mix;
    struct err e = { 0 };
    struct quant_mix_model m = { .layers = 32, .heads = 32, .kv_heads = 32 };
    assert_int_equal(quant_mix_find("q4_k_m", &mix, &e), RC_OK);
    int more = 0;
    for (unsigned layer = 0; layer < 32; layer++) {
        char name[40];
        snprintf(name, sizeof name, "blk.%u.attn_v.weight", layer);
        enum tensor_type v = quant_mix_choose(mix, &m, name, 4096);
        snprintf(name, sizeof name, "blk.%u.ffn_down.weight", layer);
        assert_int_equal(quant_mix_choose(mix, &m, name, 11008), v);
        /* 0..3 and 28..31 at the ends; 6, 9, ... 27 between. */
        bool expected = layer < 4 || layer >= 28 || layer % 3 == 0;
        assert_int_equal(v, expected ? TENSOR_TYPE_Q6_K : TENSOR_TYPE_Q4_K);
        more += v == TENSOR_TYPE_Q6_K;
    }
    assert_int_equal(more, 16);
    assert_int_equal(quant_mix_choose(mix, &m, "output.weight", 4096), TENSOR_TYPE_Q6_K);
    assert_int_equal(quant_mix_choose(mix, &m, "token_embd.weight", 4096), TENSOR_TYPE_Q4_K);
    assert_int_equal(quant_mix_choose(mix, &m, "blk.0.attn_q.weight", 4096), TENSOR_TYPE_Q4_K);
    assert_int_equal(quant_mix_choose(mix, &m, "blk.0.attn_q.weight", 96), TENSOR_TYPE_Q5_0);
    assert_int_equal(quant_mix_choose(mix, &m, "output.weight", 96), TENSOR_TYPE_Q8_0);
    assert_int_equal(quant_mix_choose(mix, &m, "blk.0.attn_q.weight", 100), TENSOR_TYPE_F16);
    m.tied = true;
    assert_int_equal(quant_mix_choose(mix, &m, "token_embd.weight", 4096), TENSOR_TYPE_Q6_K);
    m = (struct quant_mix_model){ .layers = 80, .heads = 64, .kv_heads = 8 };
    assert_int_equal(quant_mix_choose(mix, &m, "blk.10.attn_v.weight", 4096), TENSOR_TYPE_Q5_K);
    assert_true(quant_mix_applies("blk.0.ffn_up.weight", 2));
    assert_false(quant_mix_applies("blk.0.attn_norm.weight", 2));
    assert_false(quant_mix_applies("blk.0.ffn_up.weight", 1));
    assert_false(quant_mix_applies("blk.0.attn_q.bias", 2));
}

static void the_input_is_never_overwritten(void **state) {
    (void)state;
    struct err e = { 0 };
    write_model(path, "tiny,layers=1", "F16", 1, 1);
    uint64_t before = hash_file(path);
    assert_int_equal(quantize(path, path, "Q8_0", 1, NULL, &e), RC_REFUSED);
    assert_non_null(strstr(e.msg, "is the input itself"));
    unlink(other);
    assert_int_equal(symlink(path, other), 0);
    assert_int_equal(quantize(path, other, "Q8_0", 1, NULL, &e), RC_REFUSED);
    unlink(other);
    assert_true(hash_file(path) == before);
}

/* Puts a value into one element of a tensor of an F32 file. */
static void spoil(const char *file, const char *tensor, uint64_t element, float value) {
    gguf *g = open_model(file);
    uint64_t at = gguf_find_tensor(g, tensor)->offset + 4 * element;
    gguf_close(&g);
    FILE *f = fopen(file, "r+");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)at, SEEK_SET), 0);
    assert_int_equal(fwrite(&value, sizeof value, 1, f), 1);
    fclose(f);
}

static void numbers_that_are_none_are_found_and_not_quantised(void **state) {
    (void)state;
    struct err e = { 0 };
    struct quant_scan_result results[64];
    struct quant_scan how = { .threads = 2 };
    write_model(path, "tiny", "F32", 1, 2);
    spoil(path, "blk.1.ffn_up.weight", 1000, NAN);
    spoil(path, "blk.1.ffn_up.weight", 77777, -INFINITY);
    gguf *g = open_model(path);
    assert_int_equal(quant_scan_model(g, &how, results, &e), RC_OK);
    for (uint64_t i = 0; i < gguf_tensor_count(g); i++) {
        bool spoiled = strcmp(gguf_tensor_at(g, i)->name, "blk.1.ffn_up.weight") == 0;
        assert_int_equal(results[i].bad, spoiled ? 2 : 0);
        if (spoiled)
            assert_int_equal(results[i].first, 1000);
    }
    atomic_bool cancel = true;
    how.cancel = &cancel;
    assert_int_equal(quant_scan_model(g, &how, results, &e), RC_BUSY);
    gguf_close(&g);
    unlink(other);
    assert_int_equal(quantize(path, other, "Q8_0", 2, NULL, &e), RC_FORMAT);
    assert_non_null(
        strstr(e.msg, "tensor 'blk.1.ffn_up.weight': element 1000 is not finite as F32"));
    assert_int_not_equal(access(other, F_OK), 0);
    write_model(path, "tiny,layers=1", "F32", 1, 2);
    spoil(path, "blk.0.ffn_up.weight", 5, 1e6f);
    assert_int_equal(quantize(path, other, "F16", 2, NULL, &e), RC_FORMAT);
    assert_non_null(strstr(e.msg, "element 5 is not finite as F16"));
    assert_int_equal(quantize(path, other, "BF16", 2, NULL, &e), RC_OK);
}

static int make_folder(void **state) {
    int r = folder_make(state);
    snprintf(path, sizeof path, "%s/a.gguf", folder);
    snprintf(other, sizeof other, "%s/b.gguf", folder);
    return r;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(path);
    unlink(other);
    return rmdir(folder); /* fails if anything else was left there */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seed_gives_one_file_whatever_the_threads),
        cmocka_unit_test(every_type_makes_a_sound_model),
        cmocka_unit_test(weights_have_the_scale_of_their_role),
        cmocka_unit_test(no_two_rows_are_alike),
        cmocka_unit_test(the_vocabulary_has_its_size_and_no_token_twice),
        cmocka_unit_test(a_vocabulary_can_be_taken_from_a_file),
        cmocka_unit_test(shapes_are_parsed),
        cmocka_unit_test(rope_scaling_is_written),
        cmocka_unit_test(quantising_changes_types_and_keeps_the_rest),
        cmocka_unit_test(threads_do_not_change_the_result),
        cmocka_unit_test(the_mix_gives_more_bits_where_it_should),
        cmocka_unit_test(the_input_is_never_overwritten),
        cmocka_unit_test(numbers_that_are_none_are_found_and_not_quantised),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
