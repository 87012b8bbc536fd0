#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "infer/npy.h"
#include "infer/sampler.h"
#include "infer/stopper.h"

enum { VOCAB = 100 };

static struct sampler_options options_with(float temperature, uint32_t top_k, float top_p) {
    struct sampler_options o = sampler_defaults;
    o.temperature = temperature;
    o.top_k = top_k;
    o.top_p = top_p;
    o.seed = 42;
    return o;
}

static int32_t pick(struct sampler_options o, const float *logits, const int32_t *before,
                    size_t count) {
    sampler *s = NULL;
    int32_t id = -1;
    assert_int_equal(sampler_open(&s, &o, VOCAB, NULL), RC_OK);
    assert_int_equal(sampler_pick(s, logits, before, count, &id, NULL), RC_OK);
    sampler_close(&s);
    return id;
}

static void rising(float *logits) {
    for (int i = 0; i < VOCAB; i++)
        logits[i] = (float)i / 10;
}

static void greedy_takes_the_likeliest_and_the_lower_id_of_a_tie(void **state) {
    (void)state;
    float logits[VOCAB];
    rising(logits);
    assert_int_equal(pick(options_with(0, 0, 1), logits, NULL, 0), VOCAB - 1);
    logits[17] = logits[VOCAB - 1];
    assert_int_equal(pick(options_with(0, 0, 1), logits, NULL, 0), 17);
}

static void the_same_seed_gives_the_same_tokens(void **state) {
    (void)state;
    float logits[VOCAB];
    struct sampler_options o = options_with(1, 0, 1);
    sampler *a = NULL, *b = NULL, *c = NULL;
    rising(logits);
    assert_int_equal(sampler_open(&a, &o, VOCAB, NULL), RC_OK);
    assert_int_equal(sampler_open(&b, &o, VOCAB, NULL), RC_OK);
    o.seed++;
    assert_int_equal(sampler_open(&c, &o, VOCAB, NULL), RC_OK);
    int differs = 0;
    for (int i = 0; i < 200; i++) {
        int32_t x, y, z;
        assert_int_equal(sampler_pick(a, logits, NULL, 0, &x, NULL), RC_OK);
        assert_int_equal(sampler_pick(b, logits, NULL, 0, &y, NULL), RC_OK);
        assert_int_equal(sampler_pick(c, logits, NULL, 0, &z, NULL), RC_OK);
        assert_int_equal(x, y);
        differs += x != z;
    }
    assert_true(differs > 50);
    sampler_close(&a);
    sampler_close(&b);
    sampler_close(&c);
}

/* How often each token comes out of n draws. */
static void histogram(struct sampler_options o, const float *logits, int n, int *counts) {
    sampler *s = NULL;
    assert_int_equal(sampler_open(&s, &o, VOCAB, NULL), RC_OK);
    memset(counts, 0, VOCAB * sizeof *counts);
    for (int i = 0; i < n; i++) {
        int32_t id;
        assert_int_equal(sampler_pick(s, logits, NULL, 0, &id, NULL), RC_OK);
        counts[id]++;
    }
    sampler_close(&s);
}

static void draws_follow_the_probabilities(void **state) {
    (void)state;
    float logits[VOCAB];
    int counts[VOCAB];
    for (int i = 0; i < VOCAB; i++)
        logits[i] = i < 2 ? (i ? logf(3) : 0) : -INFINITY;
    histogram(options_with(1, 0, 1), logits, 20000, counts);
    assert_in_range(counts[0], 4600, 5400);
    assert_int_equal(counts[0] + counts[1], 20000);
    histogram(options_with(0.5f, 0, 1), logits, 20000, counts); /* 1 : 9 */
    assert_in_range(counts[0], 1700, 2300);
}

static void top_k_top_p_and_min_p_cut_the_tail(void **state) {
    (void)state;
    float logits[VOCAB];
    int counts[VOCAB];
    rising(logits);
    histogram(options_with(5, 3, 1), logits, 3000, counts);
    for (int i = 0; i < VOCAB; i++)
        assert_int_equal(counts[i] > 0, i >= VOCAB - 3);
    for (int i = 0; i < VOCAB; i++) /* probabilities 1/2, 1/4, 1/8, … */
        logits[i] = (float)-i * logf(2);
    histogram(options_with(1, 0, 0.7f), logits, 3000, counts);
    for (int i = 0; i < VOCAB; i++)
        assert_int_equal(counts[i] > 0, i < 2);
    struct sampler_options o = options_with(1, 0, 1);
    o.min_p = 0.2f; /* 1/2, 1/4 and 1/8 are at least a fifth of the best: 1, 1/2, 1/4 */
    histogram(o, logits, 3000, counts);
    for (int i = 0; i < VOCAB; i++)
        assert_int_equal(counts[i] > 0, i < 3);
}

static void a_repeated_token_loses_to_the_next(void **state) {
    (void)state;
    float logits[VOCAB];
    const int32_t before[] = { VOCAB - 1, 5, VOCAB - 1 };
    rising(logits);
    struct sampler_options o = options_with(0, 0, 1);
    o.repeat_penalty = 1.1f;
    assert_int_equal(pick(o, logits, before, 3), VOCAB - 2);
    o.repeat_last = 0;
    assert_int_equal(pick(o, logits, before, 3), VOCAB - 1);
}

/* A model whose arithmetic is broken must not look as if it worked. */
static void logits_that_are_no_numbers_are_an_error(void **state) {
    (void)state;
    static const float bad[] = { NAN, INFINITY };
    struct err e = { 0 };
    struct sampler_options options[] = { options_with(0, 0, 1), options_with(1, 0, 1) };
    for (int k = 0; k < 4; k++) {
        float logits[VOCAB] = { 0 };
        sampler *s = NULL;
        int32_t id = -1;
        logits[7] = bad[k / 2];
        assert_int_equal(sampler_open(&s, &options[k % 2], VOCAB, NULL), RC_OK);
        assert_int_equal(sampler_pick(s, logits, NULL, 0, &id, &e), RC_FORMAT);
        assert_non_null(strstr(e.msg, "1 of "));
        sampler_close(&s);
    }
}

static void impossible_tokens_are_never_drawn(void **state) {
    (void)state;
    float logits[VOCAB];
    for (int i = 0; i < VOCAB; i++)
        logits[i] = -INFINITY;
    logits[7] = -1;
    assert_int_equal(pick(options_with(1, 0, 1), logits, NULL, 0), 7);
    assert_int_equal(pick(options_with(0, 0, 1), logits, NULL, 0), 7);
    logits[7] = -INFINITY;
    sampler *s = NULL;
    int32_t id;
    struct sampler_options o = options_with(1, 0, 1);
    assert_int_equal(sampler_open(&s, &o, VOCAB, NULL), RC_OK);
    assert_int_equal(sampler_pick(s, logits, NULL, 0, &id, NULL), RC_FORMAT);
    sampler_close(&s);
}

static void options_out_of_range_are_refused_by_name(void **state) {
    (void)state;
    struct err e = { 0 };
    sampler *s = NULL;
    struct sampler_options o = options_with(1, 0, 0);
    assert_int_equal(sampler_open(&s, &o, VOCAB, &e), RC_USAGE);
    assert_non_null(strstr(e.msg, "top-p"));
    o = options_with(-1, 0, 1);
    assert_int_equal(sampler_open(&s, &o, VOCAB, &e), RC_USAGE);
    assert_non_null(strstr(e.msg, "temperature"));
    o = options_with(NAN, 0, 1);
    assert_int_equal(sampler_open(&s, &o, VOCAB, &e), RC_USAGE);
}

/* ---- stop texts ------------------------------------------------------------------------------ */

/* Feeds text byte by byte; returns what is given out, and whether a stop was found. */
static bool feed(const char *const *stops, size_t count, const char *text, char *out) {
    struct stopper s = { stops, count, { 0 } };
    bool found = false;
    size_t len = 0;
    for (; *text && !found; text++) {
        size_t ready;
        assert_int_equal(stopper_push(&s, text, 1, &ready, &found, NULL), RC_OK);
        memcpy(out + len, s.held.data, ready);
        len += ready;
        stopper_drop(&s, ready);
    }
    if (!found) {
        memcpy(out + len, s.held.data, s.held.len);
        len += s.held.len;
    }
    out[len] = 0;
    stopper_close(&s);
    return found;
}

static void a_stop_text_is_cut_off_even_when_it_comes_in_pieces(void **state) {
    (void)state;
    const char *const stops[] = { "\nUser:", "END" };
    char out[100];
    assert_true(feed(stops, 2, "hello\nUser: x", out));
    assert_string_equal(out, "hello");
    assert_true(feed(stops, 2, "EENDx", out));
    assert_string_equal(out, "E");
    assert_false(feed(stops, 2, "hello\nUs EN", out));
    assert_string_equal(out, "hello\nUs EN");
}

/* ---- arrays as files ------------------------------------------------------------------------- */

static void an_npy_file_has_the_header_numpy_wants(void **state) {
    (void)state;
    char path[] = "/tmp/greta-npy-XXXXXX", bytes[200];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    struct npy n;
    const float rows[] = { 1, 2, 3, 4, 5, 6 };
    assert_int_equal(npy_open(&n, path, NPY_F32, 3, NULL), RC_OK);
    assert_int_equal(npy_add(&n, rows, 2, NULL), RC_OK);
    assert_int_equal(npy_close(&n, NULL), RC_OK);
    FILE *f = fopen(path, "rb");
    assert_int_equal(fread(bytes, 1, sizeof bytes, f), 128 + sizeof rows);
    fclose(f);
    unlink(path);
    assert_memory_equal(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
    assert_memory_equal(bytes + 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
                        59);
    assert_int_equal(bytes[127], '\n');
    assert_memory_equal(bytes + 128, rows, sizeof rows);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy_takes_the_likeliest_and_the_lower_id_of_a_tie),
        cmocka_unit_test(the_same_seed_gives_the_same_tokens),
        cmocka_unit_test(draws_follow_the_probabilities),
        cmocka_unit_test(top_k_top_p_and_min_p_cut_the_tail),
        cmocka_unit_test(a_repeated_token_loses_to_the_next),
        cmocka_unit_test(logits_that_are_no_numbers_are_an_error),
        cmocka_unit_test(impossible_tokens_are_never_drawn),
        cmocka_unit_test(options_out_of_range_are_refused_by_name),
        cmocka_unit_test(a_stop_text_is_cut_off_even_when_it_comes_in_pieces),
        cmocka_unit_test(an_npy_file_has_the_header_numpy_wants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
