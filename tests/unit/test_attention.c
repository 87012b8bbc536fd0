/* Attention as a function of its arguments, against its definition in double: head sizes, groups,
 * windows, caches, several texts in a batch, ranges; and what it must not look at. */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/native.h"
#include "model/quant/quant.h"

struct shape {
    uint32_t heads, kv_heads, head_size, window;
    enum tensor_type cache;
    uint32_t texts, past, tokens; /* each text: positions before the batch, and in it */
    bool divided;                 /* into ranges that attention_merge joins */
    bool fresh;                   /* what is in the batch is not taken from the cache */
};

/* All buffers of one launch, on the host. */
struct launch {
    struct kern_attention a;
    float *q, *k, *v, *out, *parts;
    float *keys, *values; /* what the caches decode to */
    void *key_cache, *value_cache;
    int32_t *pos, *seqs, *tables;
    uint32_t table_width;
};

static uint32_t seed = 3;

static float *make_noise(size_t n, float size) {
    float *x = malloc(n * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = size * (float)(int32_t)seed / 2147483648.0f;
    }
    return x;
}

static void *make_cache(const struct shape *s, float *decoded, size_t rows, size_t width) {
    size_t bytes = tensor_type_row_bytes(s->cache, width);
    char *cache = malloc(rows * bytes);
    assert_non_null(cache);
    for (size_t r = 0; r < rows; r++) {
        quant_encoder(s->cache)(decoded + r * width, cache + r * bytes, width, QUANT_FAST);
        quant_decoder(s->cache)(cache + r * bytes, decoded + r * width, width);
    }
    return cache;
}

/* Most blocks go somewhere else; some stay neighbours. */
static void mix_blocks(struct launch *l, uint32_t blocks) {
    for (uint32_t b = blocks; b > 1; b--) {
        seed = seed * 1664525u + 1013904223u;
        uint32_t other = (seed >> 8) % b;
        int32_t was = l->tables[b - 1];
        if (seed >> 30) {
            l->tables[b - 1] = l->tables[other];
            l->tables[other] = was;
        }
    }
}

static void open_launch(struct launch *l, const struct shape *s) {
    uint32_t width_blocks = (uint32_t)KERN_BLOCKS(s->past + s->tokens);
    uint32_t blocks = s->texts * width_blocks, rows = blocks * KERN_BLOCK;
    uint32_t T = s->texts * s->tokens;
    size_t width = (size_t)s->kv_heads * s->head_size, Q = (size_t)s->heads * s->head_size;
    uint32_t ranges = s->divided ? (uint32_t)KERN_RANGES(s->past + s->tokens) : 1;
    size_t parts = (size_t)T * s->heads * ranges * KERN_PART(s->head_size);
    l->q = make_noise(T * Q, 3);
    l->k = make_noise(T * width, 2);
    l->v = make_noise(T * width, 1);
    l->keys = make_noise(rows * width, 2);
    l->values = make_noise(rows * width, 1);
    l->key_cache = make_cache(s, l->keys, rows, width);
    l->value_cache = make_cache(s, l->values, rows, width);
    l->out = make_noise(T * Q, 1);
    l->parts = make_noise(parts, 1);
    l->pos = malloc(T * sizeof *l->pos);
    l->seqs = malloc(T * sizeof *l->seqs);
    l->tables = malloc(blocks * sizeof *l->tables);
    l->table_width = width_blocks;
    assert_true(l->pos && l->seqs && l->tables);
    for (uint32_t t = 0; t < T; t++) {
        l->pos[t] = (int32_t)(s->past + t % s->tokens);
        l->seqs[t] = (int32_t)(t / s->tokens);
    }
    for (uint32_t b = 0; b < blocks; b++)
        l->tables[b] = (int32_t)b;
    mix_blocks(l, blocks);
    l->a = (struct kern_attention){ .out.ptr = l->out,
                                    .parts.ptr = l->parts,
                                    .q.ptr = l->q,
                                    .k.ptr = l->k,
                                    .v.ptr = l->v,
                                    .keys = { l->key_cache, 0, s->cache, "keys" },
                                    .values = { l->value_cache, 0, s->cache, "values" },
                                    .pos.ptr = l->pos,
                                    .seqs.ptr = l->seqs,
                                    .tables.ptr = l->tables,
                                    .sequences = s->texts,
                                    .table_width = width_blocks,
                                    .tokens = T,
                                    .heads = s->heads,
                                    .kv_heads = s->kv_heads,
                                    .head_size = s->head_size,
                                    .rows = rows,
                                    .window = s->window,
                                    .ranges = ranges,
                                    .fresh = s->fresh,
                                    .scale = 1 / sqrtf((float)s->head_size) };
}

static void close_launch(struct launch *l) {
    free(l->q);
    free(l->k);
    free(l->v);
    free(l->out);
    free(l->parts);
    free(l->keys);
    free(l->values);
    free(l->key_cache);
    free(l->value_cache);
    free(l->pos);
    free(l->seqs);
    free(l->tables);
}

/* In pieces of `step` blocks, as the cores get them. */
static void run(const struct launch *l, uint64_t step) {
    const struct kern_attention *a = &l->a;
    uint64_t blocks = KERN_TOKEN_BLOCKS(a->tokens) * a->kv_heads * a->ranges;
    for (uint64_t b = 0; b < blocks; b += step) {
        struct greta_soft_work w = { .first = b, .last = b + step < blocks ? b + step : blocks };
        cpu_attention(&w, a);
    }
    if (a->ranges == 1)
        return;
    struct kern_attention_merge m = { .out = a->out,
                                      .parts = a->parts,
                                      .tokens = a->tokens,
                                      .heads = a->heads,
                                      .head_size = a->head_size,
                                      .ranges = a->ranges };
    struct greta_soft_work w = { .first = 0, .last = a->tokens };
    cpu_attention_merge(&w, &m);
}

/* The row of the cache that has a position of token t's sequence. */
static size_t row_of(const struct launch *l, uint32_t t, uint32_t position) {
    uint32_t entry = (uint32_t)l->seqs[t] * l->table_width + position / KERN_BLOCK;
    return (size_t)l->tables[entry] * KERN_BLOCK + position % KERN_BLOCK;
}

/* The key or value of `position` for token t. */
static const float *find(const struct launch *l, const struct shape *s, uint32_t t,
                         uint32_t position, const float *cache, const float *batch) {
    size_t width = (size_t)s->kv_heads * s->head_size;
    if (s->fresh && position >= s->past)
        return batch + (t / s->tokens * s->tokens + position - s->past) * width;
    return cache + row_of(l, t, position) * width;
}

static void define(const struct launch *l, const struct shape *s, uint32_t t, uint32_t head,
                   double *out) {
    uint32_t seen = (uint32_t)l->pos[t] + 1, size = s->head_size;
    uint32_t from = s->window && seen > s->window ? seen - s->window : 0;
    size_t at = (size_t)(head / (s->heads / s->kv_heads)) * size;
    const float *q = l->q + ((size_t)t * s->heads + head) * size;
    double total = 0;
    memset(out, 0, size * sizeof *out);
    for (uint32_t p = from; p < seen; p++) {
        const float *k = find(l, s, t, p, l->keys, l->k) + at;
        const float *v = find(l, s, t, p, l->values, l->v) + at;
        double score = 0;
        for (uint32_t i = 0; i < size; i++)
            score += (double)q[i] * k[i];
        double weight = exp(score * (double)l->a.scale);
        total += weight;
        for (uint32_t i = 0; i < size; i++)
            out[i] += weight * v[i];
    }
    for (uint32_t i = 0; i < size; i++)
        out[i] /= total;
}

static void assert_as_defined(const struct launch *l, const struct shape *s) {
    double expected[256];
    for (uint32_t t = 0; t < l->a.tokens; t++)
        for (uint32_t h = 0; h < s->heads; h++) {
            define(l, s, t, h, expected);
            const float *out = l->out + ((size_t)t * s->heads + h) * s->head_size;
            for (uint32_t i = 0; i < s->head_size; i++)
                if (!(fabs((double)out[i] - expected[i]) < 2e-6))
                    fail_msg("%u heads of %u, %u keys', window %u, %u + %u tokens of %u texts, %u "
                             "ranges: token %u head %u [%u] is %g, expected %g",
                             s->heads, s->head_size, s->kv_heads, s->window, s->past, s->tokens,
                             s->texts, l->a.ranges, t, h, i, (double)out[i], expected[i]);
        }
}

static void check(const struct shape *s) {
    struct launch l;
    open_launch(&l, s);
    run(&l, 3);
    assert_as_defined(&l, s);
    close_launch(&l);
}

static void every_head_size_is_as_defined(void **state) {
    (void)state;
    for (uint32_t size = 2; size <= 256; size += size < 70 ? 2 : 31 * 2) {
        check(&(struct shape){ 2, 1, size, 0, TENSOR_TYPE_F16, 1, 70, 1, false, false });
        check(&(struct shape){ 2, 2, size, 0, TENSOR_TYPE_F16, 1, 20, 9, false, false });
    }
}

static void every_grouping_is_as_defined(void **state) {
    (void)state;
    for (uint32_t group = 1; group <= 9; group++)
        for (uint32_t kv_heads = 1; kv_heads <= 3; kv_heads++) {
            check(&(struct shape){ group * kv_heads, kv_heads, 64, 0, TENSOR_TYPE_F16, 1, 130, 1,
                                   false, false });
            check(&(struct shape){ group * kv_heads, kv_heads, 32, 0, TENSOR_TYPE_F16, 1, 5, 70,
                                   false, false });
        }
    check(&(struct shape){ 40, 1, 16, 0, TENSOR_TYPE_F16, 1, 20, 3, false,
                           false }); /* more than fit at once */
}

static void windows_are_as_defined(void **state) {
    (void)state;
    for (uint32_t window = 1; window < 150; window += window < 5 ? 1 : 29) {
        check(&(struct shape){ 4, 2, 32, window, TENSOR_TYPE_F16, 1, 0, 140, false, false });
        check(&(struct shape){ 4, 2, 32, window, TENSOR_TYPE_F16, 2, 70, 10, false, false });
        check(&(struct shape){ 8, 1, 32, window, TENSOR_TYPE_F16, 1, 600, 1, true, false });
    }
}

static void a_q8_0_cache_is_as_defined(void **state) {
    (void)state;
    check(&(struct shape){ 8, 2, 64, 0, TENSOR_TYPE_Q8_0, 1, 100, 30, false, false });
    check(&(struct shape){ 2, 2, 128, 0, TENSOR_TYPE_Q8_0, 3, 400, 1, true, false });
}

static void texts_in_one_batch_do_not_see_each_other(void **state) {
    (void)state;
    check(&(struct shape){ 4, 2, 64, 0, TENSOR_TYPE_F16, 9, 65, 1, false, false });
    check(&(struct shape){ 4, 2, 64, 0, TENSOR_TYPE_F16, 5, 3, 20, false, false });
    check(&(struct shape){ 4, 2, 64, 0, TENSOR_TYPE_F16, 3, 300, 5, true, false });
}

static void fresh_keys_and_values_are_used(void **state) {
    (void)state;
    for (uint32_t past = 0; past < 300; past += 37) {
        check(&(struct shape){ 8, 2, 64, 0, TENSOR_TYPE_F16, 1, past, 90, false, true });
        check(&(struct shape){ 2, 2, 64, 50, TENSOR_TYPE_Q8_0, 2, past, 70, false, true });
        check(&(struct shape){ 4, 1, 64, 0, TENSOR_TYPE_F16, 3, past, 1, true, true });
    }
}

static void ranges_are_as_defined(void **state) {
    (void)state;
    for (uint32_t past = 200; past < 1500; past += 311) {
        check(&(struct shape){ 8, 1, 64, 0, TENSOR_TYPE_F16, 1, past, 1, true, false });
        check(&(struct shape){ 2, 2, 48, 0, TENSOR_TYPE_F16, 2, past, 13, true, false });
        check(&(struct shape){ 2, 2, 48, 40, TENSOR_TYPE_F16, 1, past, 13, true, false });
        check(&(struct shape){ 2, 2, 48, 300, TENSOR_TYPE_F16, 1, past, 13, false, false });
    }
}

static size_t out_bytes(const struct launch *l) {
    return (size_t)l->a.tokens * l->a.heads * l->a.head_size * sizeof(float);
}

static float *keep(const struct launch *l) {
    float *kept = malloc(out_bytes(l));
    assert_non_null(kept);
    memcpy(kept, l->out, out_bytes(l));
    memset(l->out, 0, out_bytes(l));
    return kept;
}

static void the_division_of_blocks_does_not_change_a_bit(void **state) {
    (void)state;
    struct shape s = { 8, 2, 64, 0, TENSOR_TYPE_F16, 1, 500, 40, true, false };
    struct launch l;
    open_launch(&l, &s);
    run(&l, 1);
    float *kept = keep(&l);
    run(&l, 1000);
    assert_memory_equal(kept, l.out, out_bytes(&l));
    free(kept);
    close_launch(&l);
}

/* Tokens [from, from + count) of a launch as a batch of their own. */
static void run_some(const struct launch *all, uint32_t from, uint32_t count, bool divided) {
    struct launch l = *all;
    size_t row = (size_t)l.a.heads * l.a.head_size;
    uint32_t ranges = (uint32_t)KERN_RANGES(l.pos[from + count - 1] + 1);
    l.a.q.ptr = l.q + from * row;
    l.a.out.ptr = l.out + from * row;
    l.a.pos.ptr = l.pos + from;
    l.a.seqs.ptr = l.seqs + from;
    l.a.tokens = count;
    l.a.ranges = divided ? ranges : 1;
    run(&l, 2);
}

static void the_rest_of_the_batch_does_not_change_a_bit(void **state) {
    (void)state;
    const struct shape shapes[] = {
        { 8, 1, 64, 0, TENSOR_TYPE_F16, 1, 480, 70, true, false },
        { 7, 1, 64, 100, TENSOR_TYPE_F16, 1, 200, 90, true, false },
        { 2, 2, 128, 0, TENSOR_TYPE_Q8_0, 1, 0, 300, true, false },
        { 40, 1, 32, 300, TENSOR_TYPE_Q8_0, 1, 250, 40, true, false },
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct launch l;
        open_launch(&l, &shapes[i]);
        l.a.ranges = 1;
        run(&l, 3);
        float *kept = keep(&l);
        for (uint32_t t = 0; t < l.a.tokens; t++)
            run_some(&l, t, 1, t % 2);
        assert_memory_equal(kept, l.out, out_bytes(&l));
        memset(l.out, 0, out_bytes(&l));
        for (uint32_t t = 0, n; t < l.a.tokens; t += n) {
            n = l.a.tokens - t < 11 ? l.a.tokens - t : 11;
            run_some(&l, t, n, true);
        }
        assert_memory_equal(kept, l.out, out_bytes(&l));
        free(kept);
        close_launch(&l);
    }
}

/* NaN in a token's key and value: the tokens before it do not notice. */
static void a_nan_does_not_travel_back(void **state) {
    (void)state;
    for (uint32_t heads = 2; heads <= 16; heads += 14) {
        struct shape s = { heads, 2, 64, 0, TENSOR_TYPE_F16, 1, 10, 40, false, false };
        struct launch l;
        open_launch(&l, &s);
        size_t width = (size_t)s.kv_heads * s.head_size, row = (size_t)s.heads * s.head_size;
        uint16_t *keys = l.key_cache, *values = l.value_cache;
        size_t row_30 = row_of(&l, 0, 30) * width; /* the batch begins at 10 */
        for (size_t i = row_30; i < row_30 + width; i++)
            keys[i] = values[i] = 0x7e00;
        run(&l, 1);
        for (size_t i = 0; i < 20 * row; i++)
            assert_false(isnan(l.out[i]));
        for (size_t i = 20 * row; i < 40 * row; i++)
            assert_true(isnan(l.out[i]));
        close_launch(&l);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_head_size_is_as_defined),
        cmocka_unit_test(every_grouping_is_as_defined),
        cmocka_unit_test(windows_are_as_defined),
        cmocka_unit_test(a_q8_0_cache_is_as_defined),
        cmocka_unit_test(texts_in_one_batch_do_not_see_each_other),
        cmocka_unit_test(fresh_keys_and_values_are_used),
        cmocka_unit_test(ranges_are_as_defined),
        cmocka_unit_test(the_division_of_blocks_does_not_change_a_bit),
        cmocka_unit_test(the_rest_of_the_batch_does_not_change_a_bit),
        cmocka_unit_test(a_nan_does_not_travel_back),
    };
    struct err e = { 0 };
    if (isa_check(&e) == RC_UNSUPPORTED) {
        printf("ok 1 # SKIP %s\n", e.msg);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
