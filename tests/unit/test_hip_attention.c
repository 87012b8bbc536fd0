/* Attention on the GPU and the cache that it reads, against native code. */
#include "unit/hip_twins.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/cpu/native.h"

enum { TEXTS = 3 };

/* Texts of these lengths, of which the last `tokens` positions are in the batch, with their blocks
 * scattered over a cache that has a few more. */
struct texts {
    uint32_t count, length[TEXTS], tokens[TEXTS];
};

struct paged {
    struct kern_view pos, seqs, tables;
    uint32_t tokens, width, rows, longest;
};

static struct paged scatter(const struct texts *t) {
    struct paged p = { 0 };
    int32_t pos[512], seqs[512], tables[512];
    uint32_t blocks = 0, next = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        p.longest = t->length[i] > p.longest ? t->length[i] : p.longest;
        blocks += (uint32_t)KERN_BLOCKS(t->length[i]);
    }
    p.width = (uint32_t)KERN_BLOCKS(p.longest) + 1;
    p.rows = (blocks + 2) * KERN_BLOCK;
    memset(tables, 0, sizeof tables);
    for (uint32_t i = 0; i < t->count; i++)
        for (uint32_t b = 0; b < KERN_BLOCKS(t->length[i]); b++)
            tables[i * p.width + b] = (int32_t)(blocks - next++);
    for (uint32_t i = 0; i < t->count; i++)
        for (uint32_t j = 0; j < t->tokens[i]; j++, p.tokens++) {
            assert_true(p.tokens < 512);
            pos[p.tokens] = (int32_t)(t->length[i] - t->tokens[i] + j);
            seqs[p.tokens] = (int32_t)i;
        }
    p.pos = example_ints(&x, pos, p.tokens);
    p.seqs = example_ints(&x, seqs, p.tokens);
    p.tables = example_ints(&x, tables, (uint64_t)t->count * p.width);
    return p;
}

static const struct texts batches[] = {
    { 1, { 1 }, { 1 } },
    { 1, { 33 }, { 33 } },
    { 1, { 300 }, { 1 } },
    { 3, { 70, 5, 129 }, { 1, 1, 1 } },
    { 3, { 40, 64, 90 }, { 7, 1, 30 } },
    { 2, { 300, 40 }, { 1, 1 } }, /* the second sees nothing of the second range */
    { 2, { 5, 7 }, { 2, 2 } },    /* the second goes on at the position where the first ends */
};
enum { BATCHES = sizeof batches / sizeof *batches };

static void kv_store_agrees(void **state) {
    SKIP_WITHOUT_CODE;
    static const enum tensor_type types[] = { TENSOR_TYPE_F16, TENSOR_TYPE_Q8_0 };
    for (int i = 0; i < 2 * BATCHES; i++) {
        const struct texts *t = &batches[i / 2];
        struct paged p = scatter(t);
        uint32_t width = i % 3 ? 64 : 288;
        if (i < 2) /* more blocks than a workgroup has threads */
            width = 32 * 300;
        struct kern_kv_store a = { .tokens = p.tokens, .width = width, .rows = p.rows };
        a.sequences = t->count;
        a.table_width = p.width;
        a.pos = p.pos;
        a.seqs = p.seqs;
        a.tables = p.tables;
        a.keys = example_tensor(&x, types[i % 2], p.rows, width);
        a.values = example_tensor(&x, types[i % 2], p.rows, width);
        a.k = example_tensor(&x, TENSOR_TYPE_F32, p.tokens, width);
        a.v = example_tensor(&x, TENSOR_TYPE_F32, p.tokens, width);
        ((float *)a.k.ptr)[1] = 1e-6f;    /* a subnormal half */
        for (uint32_t j = 0; j < 32; j++) /* and scales that are one */
            ((float *)a.k.ptr)[width - 32 + j] = 1e-6f * (float)(i * 32 + (int)j);
        memset(a.v.ptr, 0, 32 * sizeof(float));
        /* the scale of Q8_0 is 1, or the largest half, which is less than it would take */
        ((float *)a.v.ptr)[40] = i % 4 < 2 ? 127 : -1e9f;
        ((float *)a.v.ptr)[41] = i % 4 < 2 ? -127 : 1e9f;
        assert_twins(KERN_kv_store, &a, 0, "", (uint32_t)i, width, 0);
    }
}

struct heads {
    uint32_t heads, kv_heads, size, window;
    float cap;
};

/* Rows of the cache that no token of the batch sees, because its window begins after them, are not
 * numbers. */
static void spoil_unseen(const struct paged *p, const struct texts *t, uint32_t window,
                         struct kern_view *cache) {
    const uint64_t row_bytes = cache->bytes / p->rows;
    const int32_t *tables = p->tables.ptr;
    for (uint32_t i = 0; window && i < t->count; i++) {
        uint32_t first = t->length[i] - t->tokens[i] + 1; /* what the first token sees ends here */
        for (uint32_t j = 0; j + window < first; j++) {
            int32_t block = tables[i * p->width + j / KERN_BLOCK];
            memset((char *)cache->ptr + row_bytes * ((uint64_t)block * KERN_BLOCK + j % KERN_BLOCK),
                   0xff, row_bytes);
        }
    }
}

/* Makes every query the token's own key, which then has the highest score. */
static void seek_own_keys(struct kern_attention *a) {
    const uint32_t group = a->heads / a->kv_heads;
    for (uint32_t h = 0; h < a->tokens * a->heads; h++)
        memcpy((float *)a->q.ptr + (size_t)h * a->head_size,
               (float *)a->k.ptr + (size_t)(h / group) * a->head_size,
               a->head_size * sizeof(float));
}

static void assert_scaled_attention(const struct texts *t, const struct heads *h,
                                    enum tensor_type type, bool fresh, bool divided, float scale) {
    struct paged p = scatter(t);
    uint64_t Q = (uint64_t)h->heads * h->size, K = (uint64_t)h->kv_heads * h->size;
    uint32_t ranges = divided ? (uint32_t)KERN_RANGES(p.longest) : 1;
    struct kern_attention a = { .tokens = p.tokens, .heads = h->heads, .kv_heads = h->kv_heads };
    a.head_size = h->size;
    a.rows = p.rows;
    a.sequences = t->count;
    a.table_width = p.width;
    a.window = h->window;
    a.ranges = ranges;
    a.fresh = fresh;
    a.cap = h->cap;
    a.scale = scale / sqrtf((float)h->size);
    a.pos = p.pos;
    a.seqs = p.seqs;
    a.tables = p.tables;
    a.out = example_tensor(&x, TENSOR_TYPE_F32, p.tokens, Q);
    a.parts = example_tensor(&x, TENSOR_TYPE_F32, p.tokens * h->heads * ranges, KERN_PART(h->size));
    a.q = example_tensor(&x, TENSOR_TYPE_F32, p.tokens, Q);
    a.k = example_tensor(&x, TENSOR_TYPE_F32, p.tokens, K);
    a.v = example_tensor(&x, TENSOR_TYPE_F32, p.tokens, K);
    a.keys = example_tensor(&x, type, p.rows, K);
    a.values = example_tensor(&x, type, p.rows, K);
    assert_false(x.failed);
    spoil_unseen(&p, t, h->window, &a.keys);
    spoil_unseen(&p, t, h->window, &a.values);
    if (scale > 2)
        seek_own_keys(&a);
    /* what a score is off grows with it */
    assert_twins(KERN_attention, &a, SUMS * scale / 2, divided ? "divided" : "whole", p.tokens,
                 h->size, type);
}

static void assert_attention(const struct texts *t, const struct heads *h, enum tensor_type type,
                             bool fresh, bool divided) {
    assert_scaled_attention(t, h, type, fresh, divided, 2);
}

static void attention_agrees(void **state) {
    SKIP_WITHOUT_CODE;
    static const struct heads shapes[] = {
        { 4, 2, 64, 0, 0 },  { 8, 1, 128, 0, 0 },  { 10, 1, 32, 20, 0 },
        { 2, 2, 256, 0, 5 }, { 3, 3, 96, 100, 0 }, { 1, 1, 32, 1, 0 },
    };
    for (size_t h = 0; h < sizeof shapes / sizeof *shapes; h++)
        for (int b = 0; b < BATCHES; b++) {
            enum tensor_type type = (h + b) % 2 ? TENSOR_TYPE_Q8_0 : TENSOR_TYPE_F16;
            bool fresh = (h + b) % 3 == 0;
            assert_attention(&batches[b], &shapes[h], type, fresh, false);
            if (KERN_RANGES(batches[b].length[0]) > 1)
                assert_attention(&batches[b], &shapes[h], type, fresh, true);
        }
    static const struct heads odd[] = { /* no multiples of 8 */
                                        { 2, 1, 20, 0, 0 },
                                        { 9, 1, 30, 0, 0 },
                                        { 3, 1, 33, 0, 0 }
    };
    for (size_t h = 0; h < sizeof odd / sizeof *odd; h++)
        assert_attention(&batches[3], &odd[h], TENSOR_TYPE_F16, false, false);
    assert_attention(&batches[BATCHES - 1], &shapes[0], TENSOR_TYPE_F16, true, false);
    /* e to the power of these scores would overflow */
    assert_scaled_attention(&batches[3], &shapes[0], TENSOR_TYPE_F16, true, false, 100);
    assert_scaled_attention(&batches[2], &shapes[0], TENSOR_TYPE_F16, false, true, 100);
}

/* Few rows of parts: each is a range of its own in what a launch states to have touched, and those
 * are limited. */
static const struct texts steps[] = {
    { 1, { 1 }, { 1 } },
    { 1, { 600 }, { 1 } },
    { 3, { 70, 5, 129 }, { 1, 1, 1 } },
    { 3, { 256, 257, 33 }, { 1, 1, 1 } }, /* the last position of a range, and the first */
    { 3, { 20, 21, 101 }, { 1, 1, 1 } },  /* what a window just holds, and one position more */
};
enum { STEPS = sizeof steps / sizeof *steps };

/* A key that rounds to its other neighbour in the cache is one in 127 of it off: hence the limit
 * for Q8_0. */
static void assert_step(const struct texts *t, const struct heads *h, enum tensor_type type,
                        uint32_t way, bool divided) {
    struct paged p = scatter(t);
    uint64_t K = (uint64_t)h->kv_heads * h->size;
    uint32_t pieces = h->heads / h->kv_heads * h->size, run = pieces % 32 ? 0 : way % 3 * 16;
    struct kern_attention_step a =
        example_attention_step(&x, p.tokens, h->heads, h->kv_heads, h->size,
                               divided ? (uint32_t)KERN_RANGES(p.longest) : 1, run);
    a.rope_dims = h->size > 64 && way % 2 ? h->size / 2 : h->size;
    a.halves = way / 2 % 2;
    a.normed = way % 2;
    a.fresh = way / 4 % 2;
    a.rows = p.rows;
    a.sequences = t->count;
    a.table_width = p.width;
    a.window = h->window;
    a.cap = h->cap;
    a.scale = 1 / sqrtf((float)h->size);
    a.pos = p.pos;
    a.seqs = p.seqs;
    a.tables = p.tables;
    a.keys = example_tensor(&x, type, p.rows, K);
    a.values = example_tensor(&x, type, p.rows, K);
    assert_false(x.failed);
    spoil_unseen(&p, t, h->window, &a.keys);
    spoil_unseen(&p, t, h->window, &a.values);
    assert_twins(KERN_attention_step, &a, type == TENSOR_TYPE_F16 ? 3e-3 : 2e-2,
                 divided ? "divided" : "whole", p.tokens, h->size, way);
}

static void attention_of_a_step_agrees(void **state) {
    SKIP_WITHOUT_CODE;
    static const struct heads shapes[] = {
        { 4, 2, 64, 0, 0 },  { 8, 1, 128, 0, 0 },  { 10, 1, 32, 20, 0 },
        { 2, 2, 256, 0, 5 }, { 3, 3, 96, 100, 0 }, { 9, 1, 20, 0, 0 },
    };
    uint32_t way = 0;
    for (size_t h = 0; h < sizeof shapes / sizeof *shapes; h++)
        for (int b = 0; b < STEPS; b++, way++) {
            bool whole_blocks = shapes[h].size % 32 == 0;
            enum tensor_type type = way % 2 && whole_blocks ? TENSOR_TYPE_Q8_0 : TENSOR_TYPE_F16;
            assert_step(&steps[b], &shapes[h], type, way + way / 4, false);
            if (b == 1 || (b == 3 && shapes[h].heads <= 8))
                assert_step(&steps[b], &shapes[h], type, way + way / 4, true);
        }
    const struct heads many = { 72, 1, 64, 0, 0 }; /* more to quantise than a group has threads */
    assert_step(&steps[0], &many, TENSOR_TYPE_F16, 1, false);
}

static void turns_agree_up_to_distant_positions(void **state) {
    SKIP_WITHOUT_CODE;
    const int32_t pos[] = { 0, 1, 77, 4095, 131071, 1000003 };
    for (uint32_t dims = 2; dims <= 600; dims = dims * 3 + 2) {
        struct kern_rope_turns a = { .tokens = 6, .rope_dims = dims, .magnitude = 1.1f };
        a.turns = example_room(&x, TENSOR_TYPE_F32, (uint64_t)6 * dims * 4);
        a.pos = example_ints(&x, pos, 6);
        a.freqs = example_tensor(&x, TENSOR_TYPE_F32, 1, dims / 2);
        assert_twins(KERN_rope_turns, &a, FLOATS, "", dims, 0, 0);
    }
}

static void attention_merge_agrees(void **state) {
    SKIP_WITHOUT_CODE;
    static const uint32_t sizes[] = { 20, 33, 74, 128 }; /* 33: one more than whole lanes */
    for (uint32_t ranges = 1; ranges <= 5; ranges++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            const uint32_t size = sizes[s];
            struct kern_attention_merge a = { .tokens = 2, .heads = 3, .head_size = size };
            a.ranges = ranges;
            a.out = example_tensor(&x, TENSOR_TYPE_F32, 6, size);
            a.parts = example_tensor(&x, TENSOR_TYPE_F32, 6 * ranges, KERN_PART(size));
            float *parts = a.parts.ptr;
            for (uint32_t i = 0; i < 6 * ranges; i++) {
                float *last = parts + i * KERN_PART(size) + KERN_PART_SUMS(size);
                bool empty = ranges > 1 && i % ranges == 1; /* nothing was seen there */
                last[0] = empty ? -3.4e38f : last[0] * 20;
                if (!empty && i / ranges % 2) /* far from the first, which is not the highest */
                    last[0] = 5 + 200 * (float)(i % ranges);
                if (i == 0) /* as queries of nothing but zeros have it */
                    last[0] = 0;
                last[1] = empty ? 0 : 1 + fabsf(last[1]);
                for (int j = 2; j < KERN_LANES; j++) /* what nobody reads */
                    last[j] = empty ? 1 : 0;
            }
            assert_twins(KERN_attention_merge, &a, SUMS, "", ranges, size, 0);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(kv_store_agrees),
        TEST(attention_agrees),
        TEST(attention_merge_agrees),
        TEST(turns_agree_up_to_distant_positions),
        TEST(attention_of_a_step_agrees),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
