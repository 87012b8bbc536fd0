#include "kernels/selftest.h"

#include <math.h>

#include "kernels/example.h"
#include "kernels/spec.h"
#include "kernels/twin.h"

/* Float arithmetic in another order; sums of many products; weights rounded to halves (Q6_K).
 * twin.h says of what. */
#define FLOATS  2e-6
#define SUMS    2e-5
#define ROUNDED 1e-3

enum { TOKENS = 5, DIM = 512, HEADS = 4, KV_HEADS = 2, HEAD = 64, ROWS = 3 * KERN_BLOCK };

struct selftest {
    kern_device *d;
    const struct hip_api *hip;
    struct example x;
    struct selftest_line line;
    struct err why;
};

/* One case; frees its arguments. */
static void compare(struct selftest *s, enum kern_id id, const void *arguments, double limit) {
    double distance = 0;
    if (s->line.why)
        return;
    enum rc rc = s->x.failed ? err_set(&s->why, RC_MEMORY, "out of memory")
                             : twin_compare(s->d, s->hip, id, arguments, &distance, &s->why);
    if (rc)
        s->line.why = s->why.msg;
    distance = limit > 0 ? distance / limit : distance > 0 ? INFINITY : 0;
    s->line.distance = distance > s->line.distance ? distance : s->line.distance;
    s->line.cases++;
    example_close(&s->x);
}

static struct kern_view floats(struct selftest *s, uint64_t rows, uint64_t width) {
    return example_tensor(&s->x, TENSOR_TYPE_F32, rows, width);
}

static const struct tensor_type_info *next_type(const struct tensor_type_info *t) {
    do
        t = tensor_type_next(t);
    while (t && t->use != TENSOR_TYPE_COMPUTE);
    return t;
}

/* ---- a function for each kernel -------------------------------------------------------------- */

static void test_embed(struct selftest *s) {
    const int32_t ids[TOKENS] = { 0, 6, 3, 7, -1 };
    for (const struct tensor_type_info *t = next_type(NULL); t; t = next_type(t)) {
        struct kern_embed a = { .tokens = TOKENS, .dim = DIM, .vocab = 7 };
        a.out = floats(s, TOKENS, DIM);
        a.table = example_tensor(&s->x, t->type, 7, DIM);
        a.ids = example_ints(&s->x, ids, TOKENS);
        compare(s, KERN_embed, &a, FLOATS);
    }
}

static void test_rmsnorm(struct selftest *s) {
    for (uint32_t run = 0; run <= 32; run += 16) {
        struct kern_rmsnorm a = { .rows = TOKENS, .dim = DIM, .run = run, .eps = 1e-5f };
        a.out = floats(s, TOKENS, DIM);
        a.x = floats(s, TOKENS, DIM);
        a.weight = floats(s, 1, DIM);
        a.levels = example_levels_room(&s->x, TOKENS, DIM, run);
        compare(s, KERN_rmsnorm, &a, FLOATS);
    }
}

static void test_rmsnorm_add(struct selftest *s) {
    for (uint32_t normed = 0; normed <= 1; normed++) {
        struct kern_rmsnorm_add a = { .rows = TOKENS, .dim = DIM, .normed = normed, .eps = 1e-5f };
        a.run = normed * 32;
        a.out = floats(s, TOKENS, DIM);
        a.x = floats(s, TOKENS, DIM);
        a.weight = floats(s, 1, DIM);
        a.next = floats(s, TOKENS, DIM);
        a.next_weight = floats(s, 1, DIM);
        a.levels = example_levels_room(&s->x, TOKENS, DIM, a.run);
        compare(s, KERN_rmsnorm_add, &a, FLOATS);
    }
}

static void test_layernorm(struct selftest *s) {
    for (uint32_t run = 0; run <= 32; run += 16) {
        struct kern_layernorm a = { .rows = TOKENS, .dim = DIM, .biased = 1, .eps = 1e-5f };
        a.run = run;
        a.out = floats(s, TOKENS, DIM);
        a.x = floats(s, TOKENS, DIM);
        a.weight = floats(s, 1, DIM);
        a.bias = floats(s, 1, DIM);
        a.levels = example_levels_room(&s->x, TOKENS, DIM, run);
        compare(s, KERN_layernorm, &a, FLOATS);
    }
}

/* A GPU multiplies weights as they are in the file; the order of native code is its own. */
static void test_repack(struct selftest *s) {
    struct kern_repack a = { .n = 16, .k = DIM };
    a.weight = example_tensor(&s->x, TENSOR_TYPE_F16, a.n, DIM);
    compare(s, KERN_repack, &a, 0);
}

static void test_quantize(struct selftest *s) {
    for (uint32_t run = 16; run <= 32; run += 16) {
        struct kern_quantize a = { .tokens = TOKENS, .k = DIM, .run = run };
        a.x = floats(s, TOKENS, DIM);
        a.levels =
            example_room(&s->x, TENSOR_TYPE_I8, spec_table[KERN_quantize].views[0].bytes(&a));
        compare(s, KERN_quantize, &a, 0);
    }
}

static void test_matmul(struct selftest *s) {
    for (const struct tensor_type_info *t = next_type(NULL); t; t = next_type(t))
        for (uint32_t tokens = 1; tokens <= 80; tokens += 79) {
            bool exact = tokens <= KERN_FEW || t->type != TENSOR_TYPE_Q6_K;
            struct kern_matmul a =
                example_matmul(&s->x, t->type, tokens, 70, DIM, true, tokens == 1);
            compare(s, KERN_matmul, &a, exact ? SUMS : ROUNDED);
        }
}

static void test_matmul_qkv(struct selftest *s) {
    static const enum tensor_type types[] = { TENSOR_TYPE_Q4_K, TENSOR_TYPE_Q5_0,
                                              TENSOR_TYPE_Q6_K };
    for (uint32_t tokens = 1; tokens <= 17; tokens += 16) {
        struct kern_matmul_qkv a = example_matmul_qkv(&s->x, types, tokens, 72, 40, DIM, true);
        compare(s, KERN_matmul_qkv, &a, ROUNDED);
    }
}

static void test_matmul_gate_up(struct selftest *s) {
    static const enum tensor_type types[] = { TENSOR_TYPE_Q4_K, TENSOR_TYPE_F16 };
    for (uint32_t tokens = 1; tokens <= 17; tokens += 16) {
        struct kern_matmul_gate_up a = example_matmul_gate_up(&s->x, types, tokens, 72, DIM);
        compare(s, KERN_matmul_gate_up, &a, ROUNDED);
    }
    for (uint32_t run = 0; run <= 32; run += 16) {
        struct kern_matmul_gate_up a =
            example_activated_gate_up(&s->x, types, 66, run ? 160 : 130, DIM, run, run == 16);
        a.gelu = run == 32;
        compare(s, KERN_matmul_gate_up, &a, ROUNDED);
    }
}

static void test_matmul_activate(struct selftest *s) {
    static const enum tensor_type types[] = { TENSOR_TYPE_Q4_K, TENSOR_TYPE_Q6_K };
    for (uint32_t tokens = 1; tokens <= KERN_FEW; tokens += 3)
        for (uint32_t run = 0; run <= 32; run += 16) {
            struct kern_matmul_activate a =
                example_matmul_activate(&s->x, types, tokens, run ? 96 : 72, DIM, run, run == 16);
            a.gelu = tokens == 1;
            compare(s, KERN_matmul_activate, &a, SUMS);
        }
}

static void test_rope(struct selftest *s) {
    const int32_t pos[TOKENS] = { 0, 1, 77, 4095, 131071 };
    for (uint32_t halves = 0; halves < 2; halves++) {
        struct kern_rope a = { .tokens = TOKENS, .heads = HEADS, .kv_heads = KV_HEADS };
        a.head_size = a.rope_dims = HEAD;
        a.halves = halves;
        a.magnitude = 1;
        a.q = floats(s, TOKENS, (uint64_t)HEADS * HEAD);
        a.k = floats(s, TOKENS, (uint64_t)KV_HEADS * HEAD);
        a.pos = example_ints(&s->x, pos, TOKENS);
        a.freqs = floats(s, 1, HEAD / 2);
        compare(s, KERN_rope, &a, FLOATS);
    }
}

static void test_rope_turns(struct selftest *s) {
    const int32_t pos[TOKENS] = { 0, 1, 77, 4095, 131071 };
    struct kern_rope_turns a = { .tokens = TOKENS, .rope_dims = HEAD, .magnitude = 1.1f };
    a.turns = floats(s, TOKENS, HEAD);
    a.pos = example_ints(&s->x, pos, TOKENS);
    a.freqs = floats(s, 1, HEAD / 2);
    compare(s, KERN_rope_turns, &a, FLOATS);
}

/* One sequence at positions 60 to 64, in blocks 2, 0 and 1 of the cache. */
static const int32_t positions[TOKENS] = { 60, 61, 62, 63, 64 }, first_sequence[TOKENS] = { 0 };
static const int32_t blocks[3] = { 2, 0, 1 };

static void test_kv_store(struct selftest *s) {
    static const enum tensor_type types[] = { TENSOR_TYPE_F16, TENSOR_TYPE_Q8_0 };
    for (int i = 0; i < 2; i++) {
        struct kern_kv_store a = { .tokens = TOKENS, .width = KV_HEADS * HEAD, .rows = ROWS };
        a.sequences = 1;
        a.table_width = 3;
        a.keys = example_tensor(&s->x, types[i], ROWS, a.width);
        a.values = example_tensor(&s->x, types[i], ROWS, a.width);
        a.k = floats(s, TOKENS, a.width);
        a.v = floats(s, TOKENS, a.width);
        a.pos = example_ints(&s->x, positions, TOKENS);
        a.seqs = example_ints(&s->x, first_sequence, TOKENS);
        a.tables = example_ints(&s->x, blocks, 3);
        compare(s, KERN_kv_store, &a, 0);
    }
}

static void test_attention(struct selftest *s) {
    static const enum tensor_type types[] = { TENSOR_TYPE_F16, TENSOR_TYPE_Q8_0 };
    for (int i = 0; i < 2; i++) {
        struct kern_attention a = { .tokens = TOKENS, .heads = HEADS, .kv_heads = KV_HEADS };
        a.head_size = HEAD;
        a.rows = ROWS;
        a.sequences = 1;
        a.table_width = 3;
        a.ranges = 1;
        a.fresh = (uint32_t)i;
        a.scale = 0.125f;
        a.out = floats(s, TOKENS, (uint64_t)HEADS * HEAD);
        a.q = floats(s, TOKENS, (uint64_t)HEADS * HEAD);
        a.k = floats(s, TOKENS, (uint64_t)KV_HEADS * HEAD);
        a.v = floats(s, TOKENS, (uint64_t)KV_HEADS * HEAD);
        a.keys = example_tensor(&s->x, types[i], ROWS, (uint64_t)KV_HEADS * HEAD);
        a.values = example_tensor(&s->x, types[i], ROWS, (uint64_t)KV_HEADS * HEAD);
        a.pos = example_ints(&s->x, positions, TOKENS);
        a.seqs = example_ints(&s->x, first_sequence, TOKENS);
        a.tables = example_ints(&s->x, blocks, 3);
        compare(s, KERN_attention, &a, SUMS);
    }
}

static void test_attention_merge(struct selftest *s) {
    enum { RANGES = 3 };
    struct kern_attention_merge a = { .tokens = TOKENS, .heads = HEADS, .head_size = HEAD };
    a.ranges = RANGES;
    a.out = floats(s, TOKENS, (uint64_t)HEADS * HEAD);
    a.parts = floats(s, (uint64_t)TOKENS * HEADS * RANGES, KERN_PART(HEAD));
    float *parts = a.parts.ptr;
    for (uint64_t i = 0; parts && i < (uint64_t)TOKENS * HEADS * RANGES; i++) {
        float *total = parts + i * KERN_PART(HEAD) + KERN_PART_SUMS(HEAD) + 1;
        *total = 1 + fabsf(*total);
        total[1] = 0; /* not read */
    }
    compare(s, KERN_attention_merge, &a, SUMS);
}

/* Two sequences, in blocks 2, 0 and 1, and in blocks 4, 3 and so on, of which one has two ranges.
 */
static void test_attention_step(struct selftest *s) {
    enum { SEQUENCES = 2, BLOCKS = 12, WIDTH = KV_HEADS * HEAD };
    static const enum tensor_type types[] = { TENSOR_TYPE_F16, TENSOR_TYPE_Q8_0 };
    static const int32_t pos[SEQUENCES] = { 64, 270 }, seqs[SEQUENCES] = { 0, 1 };
    static const int32_t tables[SEQUENCES][9] = { { 2, 0, 1 }, { 4, 3, 6, 5, 7, 8, 9, 11, 10 } };
    for (uint32_t i = 0; i < 4; i++) {
        struct kern_attention_step a = example_attention_step(&s->x, SEQUENCES, HEADS, KV_HEADS,
                                                              HEAD, 1 + i / 2, i % 2 ? 16 : 32);
        a.rows = BLOCKS * KERN_BLOCK;
        a.sequences = SEQUENCES;
        a.table_width = 9;
        a.normed = a.halves = i % 2;
        a.scale = 0.125f;
        a.keys = example_tensor(&s->x, types[i % 2], a.rows, WIDTH);
        a.values = example_tensor(&s->x, types[i % 2], a.rows, WIDTH);
        a.pos = example_ints(&s->x, pos, SEQUENCES);
        a.seqs = example_ints(&s->x, seqs, SEQUENCES);
        a.tables = example_ints(&s->x, tables[0], (uint64_t)SEQUENCES * 9);
        compare(s, KERN_attention_step, &a, i % 2 ? ROUNDED : SUMS);
    }
}

static void test_swiglu(struct selftest *s) {
    for (uint32_t gelu = 0; gelu < 2; gelu++) {
        struct kern_swiglu a = { .tokens = TOKENS, .hidden = DIM, .gelu = gelu };
        a.out = floats(s, TOKENS, DIM);
        a.gate = floats(s, TOKENS, DIM);
        a.up = floats(s, TOKENS, DIM);
        compare(s, KERN_swiglu, &a, FLOATS);
    }
}

static void test_soft_cap(struct selftest *s) {
    struct kern_soft_cap a = { .rows = TOKENS, .dim = DIM, .cap = 1.5f };
    a.x = floats(s, TOKENS, DIM);
    compare(s, KERN_soft_cap, &a, FLOATS);
}

static void test_take_rows(struct selftest *s) {
    const int32_t ids[] = { 4, 0 };
    struct kern_take_rows a = { .count = 2, .tokens = TOKENS, .dim = DIM };
    a.out = floats(s, 2, DIM);
    a.x = floats(s, TOKENS, DIM);
    a.ids = example_ints(&s->x, ids, 2);
    compare(s, KERN_take_rows, &a, 0);
}

static const uint32_t kept[4] = { 1, 40, 7, 20 };

static void test_shortlist(struct selftest *s) {
    struct kern_shortlist a = example_shortlist(&s->x, TOKENS, 2 * KERN_CHOICES + 5, kept);
    compare(s, KERN_shortlist, &a, 0);
}

static void test_sample(struct selftest *s) {
    for (uint32_t vocab = 300; vocab < 3 * KERN_CHOICES; vocab *= 6) {
        struct kern_sample a = example_sample(&s->x, TOKENS, vocab, kept);
        compare(s, KERN_sample, &a, 0);
    }
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void (*const tests[KERN_COUNT])(struct selftest *s) = {
#define KERN_BEGIN(k) [KERN_##k] = test_##k,
#include "kernels/kernel.def"
};

enum rc selftest_run(kern_device *d, const struct hip_api *hip,
                     void (*report)(const struct selftest_line *line, void *user), void *user,
                     struct err *e) {
    struct selftest s = { .d = d, .hip = hip, .x = { .seed = 1 } };
    unsigned failures = 0;
    for (int i = 0; i < KERN_COUNT; i++) {
        s.line = (struct selftest_line){ .kernel = kern_name((enum kern_id)i) };
        tests[i](&s);
        failures += s.line.why || !(s.line.distance <= 1);
        report(&s.line, user);
    }
    if (failures)
        return err_set(e, RC_DEVICE, "%u of %d kernels do not agree with the CPU", failures,
                       KERN_COUNT);
    return RC_OK;
}
