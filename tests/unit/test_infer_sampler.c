#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "infer/npy.h"
#include "infer/sampler.h"
#include "infer/stopper.h"
#include "kernels/cpu/choose.h"
#include "kernels/cpu/native.h"

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

/* ---- on the device --------------------------------------------------------------------------- */

/* What the kernels make of a row. */
static int32_t draw_by_kernels(const sampler *s, const float *logits, uint32_t vocab) {
    int32_t settings[KERN_SETTINGS], token = INT32_MIN;
    int32_t *lists = malloc(KERN_LISTS(vocab) * KERN_LISTED * sizeof *lists);
    assert_non_null(lists);
    sampler_settings(s, settings);
    struct greta_soft_work work = { .last = KERN_LISTS(vocab), .workers = 1 };
    struct kern_shortlist list = { .rows = 1, .vocab = vocab };
    struct kern_sample sample = { .rows = 1, .vocab = vocab };
    list.lists.ptr = sample.lists.ptr = lists;
    list.logits.ptr = sample.logits.ptr = (void *)(uintptr_t)logits;
    list.settings.ptr = sample.settings.ptr = settings;
    sample.tokens.ptr = &token;
    cpu_shortlist(&work, &list);
    work.last = 1;
    cpu_sample(&work, &sample);
    free(lists);
    return token;
}

static void fill(float *logits, uint32_t vocab, uint32_t seed) {
    for (uint32_t i = 0; i < vocab; i++) {
        seed = seed * 1664525 + 1013904223;
        logits[i] = (float)(seed >> 20) / 500; /* many are equal */
    }
}

static void the_device_draws_what_the_host_draws(void **state) {
    (void)state;
    static const uint32_t vocabs[] = { 1, 100, 4096, 4097, 30000 };
    for (size_t v = 0; v < 5; v++)
        for (uint32_t way = 0; way < 12; way++) {
            struct sampler_options o =
                options_with(way % 3 ? (float)way / 8 : 0, way % 4 ? 40 : 128, way % 2 ? 0.9f : 1);
            float *logits = malloc(vocabs[v] * sizeof *logits);
            sampler *host = NULL, *device = NULL;
            o.min_p = way == 7 ? 0.1f : 0;
            o.seed = way;
            assert_int_equal(sampler_open(&host, &o, vocabs[v], NULL), RC_OK);
            assert_int_equal(sampler_open(&device, &o, vocabs[v], NULL), RC_OK);
            assert_true(sampler_suits_device(device, true));
            for (uint32_t i = 0; i < 20; i++) {
                int32_t a = -1, b = -2;
                fill(logits, vocabs[v], way * 100 + i);
                assert_int_equal(sampler_pick(host, logits, NULL, 0, &a, NULL), RC_OK);
                int32_t drawn = draw_by_kernels(device, logits, vocabs[v]);
                assert_int_equal(sampler_take(device, drawn, &b, NULL), RC_OK);
                assert_int_equal(a, b);
            }
            sampler_close(&host);
            sampler_close(&device);
            free(logits);
        }
}

static void broken_logits_are_an_error_on_the_device_too(void **state) {
    (void)state;
    struct sampler_options o = options_with(1, 40, 1);
    float logits[VOCAB];
    struct err a = { 0 }, b = { 0 };
    int32_t id;
    sampler *s = NULL;
    assert_int_equal(sampler_open(&s, &o, VOCAB, NULL), RC_OK);
    for (int bad = 1; bad <= 2; bad++) {
        rising(logits);
        for (int i = 0; i < VOCAB; i++)
            if (bad == 2 || i % 50 == 7)
                logits[i] = bad == 2 ? -INFINITY : NAN;
        assert_int_equal(sampler_pick(s, logits, NULL, 0, &id, &a), RC_FORMAT);
        assert_int_equal(sampler_take(s, draw_by_kernels(s, logits, VOCAB), &id, &b), RC_FORMAT);
        assert_string_equal(a.msg, b.msg);
    }
    sampler_close(&s);
}

static void what_the_device_cannot_draw_stays_with_the_host(void **state) {
    (void)state;
    const struct {
        uint32_t top_k, vocab;
        float penalty;
        bool suits;
    } cases[] = { { 40, 262144, 1, true },  { 128, 262144, 1, false }, { 128, 131072, 1, true },
                  { 0, 1000, 1, false },    { 0, 100, 1, true },       { 129, 1000, 1, false },
                  { 40, 1000, 1.1f, false } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sampler_options o = options_with(1, cases[i].top_k, 1);
        sampler *s = NULL;
        o.repeat_penalty = cases[i].penalty;
        assert_int_equal(sampler_open(&s, &o, cases[i].vocab, NULL), RC_OK);
        assert_int_equal(sampler_suits_device(s, true), cases[i].suits);
        assert_int_equal(sampler_suits_device(s, false),
                         cases[i].suits && cases[i].vocab <= KERN_CHOICES);
        sampler_close(&s);
    }
}

/* Summed up by the series, it is the library's to the last bits. */
static void weights_are_powers_of_e(void **state) {
    (void)state;
    for (double x = 0; x > -720; x -= 0.137) {
        double expected = exp(x), found = choose_exp(x);
        assert_true(x > -707 ? fabs(found - expected) <= 4e-16 * expected : found == 0);
    }
    assert_true(choose_exp(0) == 1);
    assert_true(choose_exp(-INFINITY) == 0);
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
    assert_int_equal(npy_close(&n, RC_OK, NULL), RC_OK);
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
        cmocka_unit_test(the_device_draws_what_the_host_draws),
        cmocka_unit_test(broken_logits_are_an_error_on_the_device_too),
        cmocka_unit_test(what_the_device_cannot_draw_stays_with_the_host),
        cmocka_unit_test(weights_are_powers_of_e),
        cmocka_unit_test(a_stop_text_is_cut_off_even_when_it_comes_in_pieces),
        cmocka_unit_test(an_npy_file_has_the_header_numpy_wants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
