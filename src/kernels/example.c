#include "kernels/example.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/choose.h"
#include "kernels/cpu/native.h"
#include "kernels/spec.h"
#include "model/quant/quant.h"

void example_close(struct example *x) {
    for (unsigned i = 0; i < x->count; i++)
        free(x->memory[i]);
    *x = (struct example){ .seed = x->seed };
}

static void *take(struct example *x, uint64_t bytes) {
    void *p = x->count < EXAMPLE_VIEWS ? calloc(1, bytes + 1) : NULL;
    if (p)
        x->memory[x->count++] = p;
    else
        x->failed = true;
    return p;
}

/* A sum of four uniform numbers: near enough to a bell curve of deviation 1. */
static float draw(struct example *x) {
    float sum = 0;
    for (int i = 0; i < 4; i++) {
        x->seed = x->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        sum += (float)(x->seed >> 40) / (float)(1 << 24) - 0.5f;
    }
    return sum * 1.7f;
}

struct kern_view example_room(struct example *x, enum tensor_type type, uint64_t bytes) {
    enum { JUNK = 0x5b }; /* not 0: what a kernel leaves out must show */
    void *p = take(x, bytes);
    if (p)
        memset(p, JUNK, bytes);
    return (struct kern_view){ p, p ? bytes : 0, type, "example" };
}

struct kern_view example_tensor(struct example *x, enum tensor_type type, uint64_t rows,
                                uint64_t width) {
    uint64_t n = rows * width, bytes = rows * tensor_type_row_bytes(type, width);
    struct kern_view v = example_room(x, type, bytes);
    float *floats = malloc((n + 1) * sizeof *floats);
    x->failed |= !floats;
    for (uint64_t i = 0; floats && i < n; i++)
        floats[i] = draw(x);
    if (floats && v.ptr)
        quant_encoder(type)(floats, v.ptr, n, QUANT_FAST);
    free(floats);
    return v;
}

struct kern_view example_ints(struct example *x, const int32_t *values, uint64_t n) {
    struct kern_view v = example_room(x, TENSOR_TYPE_I32, n * sizeof *values);
    if (v.ptr)
        memcpy(v.ptr, values, n * sizeof *values);
    return v;
}

struct kern_view example_levels_room(struct example *x, uint32_t tokens, uint32_t k, uint32_t run) {
    struct kern_quantize a = { .tokens = tokens, .k = k, .run = run };
    return example_room(x, TENSOR_TYPE_I8, run ? spec_table[KERN_quantize].views[0].bytes(&a) : 0);
}

struct kern_view example_levels(struct example *x, const struct kern_view *numbers, uint32_t tokens,
                                uint32_t k, uint32_t run) {
    struct kern_quantize a = { .x = *numbers, .tokens = tokens, .k = k, .run = run };
    a.levels = example_levels_room(x, tokens, k, run);
    struct greta_soft_work work = { .last = tokens, .workers = 1 };
    if (run && a.levels.ptr && numbers->ptr)
        cpu_quantize(&work, &a);
    return a.levels;
}

/* How many activations share a scale, as the engine chooses it. */
static uint32_t run_for(const enum tensor_type *types, size_t count) {
    uint32_t run = 0;
    for (size_t i = 0; i < count; i++)
        if (!tensor_type_is_float(types[i])) {
            uint32_t own = tensor_type_find(types[i])->block_elements < 256 ? 16 : 32;
            run = run && run < own ? run : own;
        }
    return run;
}

struct kern_matmul example_matmul(struct example *x, enum tensor_type type, uint32_t tokens,
                                  uint32_t n, uint32_t k, bool biased, bool added) {
    struct kern_matmul a = { .tokens = tokens, .n = n, .k = k, .biased = biased, .added = added };
    a.run = run_for(&type, 1);
    a.out = example_tensor(x, TENSOR_TYPE_F32, tokens, n);
    a.weight = example_tensor(x, type, n, k);
    a.x = example_tensor(x, TENSOR_TYPE_F32, tokens, k);
    a.levels = example_levels(x, &a.x, tokens, k, a.run);
    a.bias = example_tensor(x, TENSOR_TYPE_F32, 1, n);
    return a;
}

struct kern_matmul_qkv example_matmul_qkv(struct example *x, const enum tensor_type types[3],
                                          uint32_t tokens, uint32_t q_n, uint32_t kv_n,
                                          uint32_t dim, bool biased) {
    struct kern_matmul_qkv a = { .tokens = tokens, .q_n = q_n, .kv_n = kv_n, .dim = dim };
    a.q_biased = a.k_biased = a.v_biased = biased;
    a.run = run_for(types, 3);
    a.q = example_tensor(x, TENSOR_TYPE_F32, tokens, q_n);
    a.k = example_tensor(x, TENSOR_TYPE_F32, tokens, kv_n);
    a.v = example_tensor(x, TENSOR_TYPE_F32, tokens, kv_n);
    a.q_weight = example_tensor(x, types[0], q_n, dim);
    a.k_weight = example_tensor(x, types[1], kv_n, dim);
    a.v_weight = example_tensor(x, types[2], kv_n, dim);
    a.x = example_tensor(x, TENSOR_TYPE_F32, tokens, dim);
    a.levels = example_levels(x, &a.x, tokens, dim, a.run);
    a.q_bias = example_tensor(x, TENSOR_TYPE_F32, 1, q_n);
    a.k_bias = example_tensor(x, TENSOR_TYPE_F32, 1, kv_n);
    a.v_bias = example_tensor(x, TENSOR_TYPE_F32, 1, kv_n);
    return a;
}

struct kern_matmul_gate_up example_matmul_gate_up(struct example *x,
                                                  const enum tensor_type types[2], uint32_t tokens,
                                                  uint32_t hidden, uint32_t dim) {
    struct kern_matmul_gate_up a = { .tokens = tokens, .hidden = hidden, .dim = dim };
    a.run = run_for(types, 2);
    a.gate = example_tensor(x, TENSOR_TYPE_F32, tokens, hidden);
    a.up = example_tensor(x, TENSOR_TYPE_F32, tokens, hidden);
    a.gate_weight = example_tensor(x, types[0], hidden, dim);
    a.up_weight = example_tensor(x, types[1], hidden, dim);
    a.x = example_tensor(x, TENSOR_TYPE_F32, tokens, dim);
    a.levels = example_levels(x, &a.x, tokens, dim, a.run);
    return a;
}

struct kern_matmul_gate_up example_activated_gate_up(struct example *x,
                                                     const enum tensor_type types[2],
                                                     uint32_t tokens, uint32_t hidden, uint32_t dim,
                                                     uint32_t out_run, bool ungated) {
    struct kern_matmul_gate_up a = example_matmul_gate_up(x, types, tokens, hidden, dim);
    a.activated = true;
    a.biased = a.ungated = ungated;
    a.out_run = out_run;
    a.out_levels = example_levels_room(x, tokens, hidden, out_run);
    a.counts = example_room(x, TENSOR_TYPE_I32, KERN_TILES(tokens, hidden) * sizeof(int32_t));
    if (a.counts.ptr)
        memset(a.counts.ptr, 0, a.counts.bytes);
    a.bias = example_tensor(x, TENSOR_TYPE_F32, 1, hidden);
    return a;
}

struct kern_matmul_activate example_matmul_activate(struct example *x,
                                                    const enum tensor_type types[2],
                                                    uint32_t tokens, uint32_t hidden, uint32_t dim,
                                                    uint32_t out_run, bool ungated) {
    struct kern_matmul_activate a = { .tokens = tokens, .hidden = hidden, .dim = dim };
    a.biased = a.ungated = ungated;
    a.out_run = out_run;
    a.run = run_for(types, ungated ? 1 : 2);
    a.out = example_room(x, TENSOR_TYPE_F32, (uint64_t)tokens * hidden * sizeof(float));
    a.out_levels = example_levels_room(x, tokens, hidden, out_run);
    a.gate_weight = example_tensor(x, types[0], hidden, dim);
    a.up_weight = ungated ? a.gate_weight : example_tensor(x, types[1], hidden, dim);
    a.x = example_tensor(x, TENSOR_TYPE_F32, tokens, dim);
    a.levels = example_levels(x, &a.x, tokens, dim, a.run);
    a.bias = example_tensor(x, TENSOR_TYPE_F32, 1, hidden);
    return a;
}

struct kern_attention_step example_attention_step(struct example *x, uint32_t tokens,
                                                  uint32_t heads, uint32_t kv_heads,
                                                  uint32_t head_size, uint32_t ranges,
                                                  uint32_t run) {
    struct kern_attention_step a = { .tokens = tokens, .heads = heads, .kv_heads = kv_heads };
    uint64_t Q = (uint64_t)heads * head_size, K = (uint64_t)kv_heads * head_size;
    a.head_size = a.rope_dims = head_size;
    a.ranges = ranges;
    a.run = run;
    a.eps = 1e-5f;
    a.out = example_tensor(x, TENSOR_TYPE_F32, tokens, Q);
    a.parts =
        example_tensor(x, TENSOR_TYPE_F32, (uint64_t)tokens * heads * ranges, KERN_PART(head_size));
    a.levels = example_levels_room(x, tokens, (uint32_t)Q, run);
    a.counts = example_room(x, TENSOR_TYPE_I32, (uint64_t)tokens * kv_heads * sizeof(int32_t));
    if (a.counts.ptr)
        memset(a.counts.ptr, 0, a.counts.bytes);
    a.q = example_tensor(x, TENSOR_TYPE_F32, tokens, Q);
    a.k = example_tensor(x, TENSOR_TYPE_F32, tokens, K);
    a.v = example_tensor(x, TENSOR_TYPE_F32, tokens, K);
    a.q_norm = example_tensor(x, TENSOR_TYPE_F32, 1, head_size);
    a.k_norm = example_tensor(x, TENSOR_TYPE_F32, 1, head_size);
    a.turns = example_tensor(x, TENSOR_TYPE_F32, tokens, head_size);
    return a;
}

struct kern_shortlist example_shortlist(struct example *x, uint32_t rows, uint32_t vocab,
                                        const uint32_t keep[4]) {
    struct kern_shortlist a = { .rows = rows, .vocab = vocab };
    uint64_t lists = rows * KERN_LISTS(vocab);
    a.logits = example_tensor(x, TENSOR_TYPE_F32, rows, vocab);
    a.settings = example_room(x, TENSOR_TYPE_I32, (uint64_t)rows * KERN_SETTINGS * sizeof(int32_t));
    a.lists = example_room(x, TENSOR_TYPE_I32, lists * KERN_LISTED * sizeof(int32_t));
    float *logits = a.logits.ptr;
    for (uint64_t i = 0; logits && i < (uint64_t)rows * vocab; i++)
        logits[i] = i / vocab % 3 == 2 ? rintf(logits[i]) : 3 * logits[i];
    for (uint32_t i = 0; a.settings.ptr && i < rows; i++) {
        struct choose_rule r = { keep[i % 4], i % 2 ? 0.95f : 1, i % 5 ? 0 : 0.05f, 1.25, 0 };
        r.draw = 0.5 + (double)draw(x) / 8;
        choose_write(&r, (int32_t *)a.settings.ptr + (size_t)i * KERN_SETTINGS);
    }
    return a;
}

struct kern_sample example_sample(struct example *x, uint32_t rows, uint32_t vocab,
                                  const uint32_t keep[4]) {
    struct kern_shortlist list = example_shortlist(x, rows, vocab, keep);
    struct greta_soft_work work = { .last = rows * KERN_LISTS(vocab), .workers = 1 };
    if (!x->failed)
        cpu_shortlist(&work, &list);
    struct kern_sample a = { .tokens = example_room(x, TENSOR_TYPE_I32, rows * sizeof(int32_t)),
                             .logits = list.logits,
                             .lists = list.lists,
                             .settings = list.settings,
                             .ids = example_room(x, TENSOR_TYPE_I32, rows * sizeof(int32_t)),
                             .pos = example_room(x, TENSOR_TYPE_I32, rows * sizeof(int32_t)),
                             .rows = rows,
                             .vocab = vocab,
                             .advance = true };
    for (uint32_t i = 0; a.pos.ptr && i < rows; i++)
        ((int32_t *)a.pos.ptr)[i] =
            (int32_t)(i * 255); /* where a carry goes into the second byte */
    return a;
}
