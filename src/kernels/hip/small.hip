/* small.hip - the kernels that read and write their rows once: embed, norms, quantize, rope, swiglu,
 * soft_cap, take_rows. Arguments are those of kernel.def, in its order. */

/* ---- embed: a group per token ---------------------------------------------------------------- */

DEVICE void embed_run(u32 type, float *out, const u8 *row, u32 index, float by) {
    struct run r;
    decode_run(type, &r, row, index);
    for (int i = 0; i < 32; i++)
        out[index * 32 + i] = run_element(&r, i) * by;
}

KERNEL(THREADS)
embed(float *out, const u8 *table, u32 table_type, const i32 *ids, u32 tokens, u32 dim, u32 vocab,
      u32 packed, float scale) {
    const float by = scale != 0 ? scale : 1;
    u32 t = group_id(), id = (u32)ids[t];
    const u8 *row = table + id * row_bytes(table_type, dim);
    out += (u64)t * dim;
    if (id >= vocab) {
        for (u32 i = thread_id(); i < dim; i += THREADS)
            out[i] = 0;
        return;
    }
    if (is_float_type(table_type)) {
        for (u32 i = thread_id(); i < dim; i += THREADS)
            out[i] = load_float(table_type, row, i) * by;
        return;
    }
    for (u32 i = thread_id(); i < dim / 32; i += THREADS)
        switch (table_type) {
#define QUANTISED(TYPE)                                                                            \
    case TYPE:                                                                                     \
        embed_run(TYPE, out, row, i, by);                                                          \
        break;
#include "kernels/hip/quantised.def"
        }
}

/* ---- quantize: a group per token, 16 elements per thread -------------------------------------- */

enum { SLAB = 256, RUN = 16, SLAB_RUNS = SLAB / RUN };

/* Quantised activations, as levels.h has them: all levels, all scales, all sums, in the order of
 * [slab][token]. */
struct levels {
    const i8 *level;
    const float *scale, *sum;
    u32 tokens;
};

DEVICE u64 slab_count(u32 k) {
    return (k + SLAB - 1) / SLAB;
}

DEVICE struct levels find_levels(const i8 *buffer, u32 tokens, u32 k) {
    u64 all = slab_count(k) * tokens;
    const float *scale = (const float *)(buffer + all * SLAB);
    struct levels l = { buffer, scale, scale + all * SLAB_RUNS, tokens };
    return l;
}

/* The number of a token's slab that has run r of 32 elements. */
DEVICE u64 slab_of(const struct levels *l, u32 r, u32 token) {
    return (u64)(r / 8) * l->tokens + token;
}

DEVICE u32 peak_bits(const float *x) {
    u32 peak = 0;
    for (int i = 0; i < RUN; i++)
        peak = most(bits_of(x[i]) & 0x7fffffff, peak);
    return peak;
}

/* Run i of a token, 16 elements; x has its row from run `first` on, which is even. `run` elements
 * share a scale. */
DEVICE void quantize_run(i8 *levels, const float *x, u32 first, u32 tokens, u32 k, u32 run, u32 t,
                         u32 i) {
    struct levels l = find_levels(levels, tokens, k);
    u64 slab = (u64)(i / SLAB_RUNS) * tokens + t;
    float v[RUN];
    for (int j = 0; j < RUN; j++)
        v[j] = x[(i - first) * RUN + j];
    u32 bits = peak_bits(v);
    if (run == 32) /* as bits, what is not a number is larger than all */
        bits = most(bits, peak_bits(x + ((i - first) ^ 1) * RUN));
    float peak = float_of(bits);
    bool usable = peak > 1e-30f && peak <= 0x1.fffffep127f;
    float by = usable ? 127 / peak : 0;
    float scale = usable || peak <= 1e-30f ? peak / 127 : __builtin_nanf("");
    i32 total = 0;
    u32 word[RUN / 4];
    for (int j = 0; j < RUN; j++) {
        i32 q = usable ? (i32)__builtin_rintf(v[j] * by) : 0;
        total += q;
        word[j / 4] = (j % 4 ? word[j / 4] : 0) | ((u32)q & 255) << j % 4 * 8;
    }
    u32x4 packed = { word[0], word[1], word[2], word[3] };
    *(u32x4 *)(levels + slab * SLAB + i % SLAB_RUNS * RUN) = packed;
    ((float *)l.scale)[slab * SLAB_RUNS + i % SLAB_RUNS] = scale;
    ((float *)l.sum)[slab * SLAB_RUNS + i % SLAB_RUNS] = scale * (float)total;
}

DEVICE void quantize_row(i8 *levels, const float *x, u32 tokens, u32 k, u32 run, u32 t) {
    for (u32 i = thread_id(); i < k / RUN; i += THREADS)
        quantize_run(levels, x, 0, tokens, k, run, t, i);
}

KERNEL(THREADS)
quantize(i8 *levels, const float *x, u32 tokens, u32 k, u32 run) {
    quantize_row(levels, x + (u64)group_id() * k, tokens, k, run, group_id());
}

/* The group's row of a norm, for the projections that follow. */
DEVICE void quantize_norm(i8 *levels, const float *x, u32 rows, u32 dim, u32 run) {
    if (run < RUN) /* as it is, or split, which matrix cores do not need */
        return;
    barrier();
    quantize_row(levels, x, rows, dim, run, group_id());
}

/* ---- rmsnorm, rmsnorm_add, layernorm: a group per row ------------------------------------------ */

/* What elements are multiplied with, once `mean` has been subtracted. */
DEVICE float norm_factor(const float *x, float mean, u32 dim, float eps) {
    float sum = 0;
    for (u32 i = thread_id(); i < dim; i += THREADS)
        sum = __builtin_fmaf(x[i] - mean, x[i] - mean, sum);
    return 1 / __builtin_sqrtf(sum_threads(sum) / (float)dim + eps);
}

KERNEL(THREADS)
rmsnorm(float *out, const float *x, const float *weight, i8 *levels, u32 rows, u32 dim, u32 run,
        float eps) {
    x += (u64)group_id() * dim;
    out += (u64)group_id() * dim;
    float factor = norm_factor(x, 0, dim, eps);
    for (u32 i = thread_id(); i < dim; i += THREADS)
        out[i] = x[i] * factor * weight[i];
    quantize_norm(levels, out, rows, dim, run);
}

/* A thread has the same elements of a row in every loop, so that the second norm needs no barrier. */
KERNEL(THREADS)
rmsnorm_add(float *out, const float *x, const float *weight, float *next, const float *next_weight,
            i8 *levels, u32 rows, u32 dim, u32 normed, u32 run, float eps) {
    x += (u64)group_id() * dim;
    out += (u64)group_id() * dim;
    float factor = norm_factor(x, 0, dim, eps);
    for (u32 i = thread_id(); i < dim; i += THREADS)
        out[i] += x[i] * factor * weight[i];
    if (!normed)
        return;
    next += (u64)group_id() * dim;
    factor = norm_factor(out, 0, dim, eps);
    for (u32 i = thread_id(); i < dim; i += THREADS)
        next[i] = out[i] * factor * next_weight[i];
    quantize_norm(levels, next, rows, dim, run);
}

KERNEL(THREADS)
layernorm(float *out, const float *x, const float *weight, const float *bias, i8 *levels, u32 rows,
          u32 dim, u32 biased, u32 run, float eps) {
    x += (u64)group_id() * dim;
    out += (u64)group_id() * dim;
    float sum = 0;
    for (u32 i = thread_id(); i < dim; i += THREADS)
        sum += x[i];
    float mean = sum_threads(sum) / (float)dim, factor = norm_factor(x, mean, dim, eps);
    for (u32 i = thread_id(); i < dim; i += THREADS)
        out[i] = (x[i] - mean) * factor * weight[i] + (biased ? bias[i] : 0);
    quantize_norm(levels, out, rows, dim, run);
}

/* ---- rope, rope_turns: a group per token ----------------------------------------------------------------- */

/* The elements of a pair, turned. */
DEVICE void turn_pair(float *a, float *b, float cosine, float sine) {
    float xa = *a, xb = *b;
    *a = __builtin_fmaf(xa, cosine, -(xb * sine));
    *b = __builtin_fmaf(xa, sine, xb * cosine);
}

/* The elements of pair `at`. */
DEVICE u32 first_of_pair(u32 at, u32 halves) {
    return halves ? at : 2 * at;
}

DEVICE u32 second_of_pair(u32 at, u32 pairs, u32 halves) {
    return halves ? at + pairs : 2 * at + 1;
}

KERNEL(THREADS)
rope_turns(float *turns, const i32 *pos, const float *freqs, u32 tokens, u32 rope_dims,
           float magnitude) {
    u32 t = group_id(), pairs = rope_dims / 2;
    turns += (u64)t * rope_dims;
    for (u32 i = thread_id(); i < pairs; i += THREADS) {
        float c, s;
        cos_sin((double)pos[t] * (double)freqs[i], &c, &s);
        turns[i] = c * magnitude;
        turns[pairs + i] = s * magnitude;
    }
}

KERNEL(THREADS)
rope(float *q, float *k, const i32 *pos, const float *freqs, u32 tokens, u32 heads, u32 kv_heads,
     u32 head_size, u32 rope_dims, u32 halves, float magnitude) {
    SHARED float cosines[THREADS], sines[THREADS];
    u32 t = group_id(), pairs = rope_dims / 2;
    q += (u64)t * heads * head_size;
    k += (u64)t * kv_heads * head_size;
    for (u32 first = 0; first < pairs; first += THREADS) {
        u32 count = least(pairs - first, THREADS), mine = first + thread_id();
        barrier();
        if (mine < pairs) {
            float c, s;
            cos_sin((double)pos[t] * (double)freqs[mine], &c, &s);
            cosines[thread_id()] = c * magnitude;
            sines[thread_id()] = s * magnitude;
        }
        barrier();
        for (u32 i = thread_id(); i < count * (heads + kv_heads); i += THREADS) {
            u32 pair = i % count, head = i / count, at = first + pair;
            float *x = head < heads ? q + (u64)head * head_size : k + (u64)(head - heads) * head_size;
            turn_pair(x + first_of_pair(at, halves), x + second_of_pair(at, pairs, halves),
                      cosines[pair], sines[pair]);
        }
    }
}

/* ---- swiglu, soft_cap: 1024 elements per group ------------------------------------------------- */

enum { EACH_THREAD = 4 };

DEVICE float activate(float x, u32 gelu) {
    const float linear = 0.7978845608028654f, cubic = 0.044715f; /* sqrt(2 / pi) */
    float u = gelu ? 2 * (x * linear * (1 + cubic * x * x)) : x;
    return x / (1 + exp_of(-u));
}

KERNEL(THREADS)
swiglu(float *out, const float *gate, const float *up, u32 tokens, u32 hidden, u32 gelu,
       u32 ungated) {
    u64 all = (u64)tokens * hidden, from = (u64)group_id() * THREADS * EACH_THREAD + thread_id();
    for (u32 i = 0; i < EACH_THREAD; i++) {
        u64 at = from + i * THREADS;
        if (at < all)
            out[at] = activate(gate[at], gelu) * (ungated ? 1 : up[at]);
    }
}

KERNEL(THREADS)
soft_cap(float *x, u32 rows, u32 dim, float cap) {
    u64 all = (u64)rows * dim, from = (u64)group_id() * THREADS * EACH_THREAD + thread_id();
    for (u32 i = 0; i < EACH_THREAD; i++) {
        u64 at = from + i * THREADS;
        if (at < all)
            x[at] = soft_cap_of(x[at], cap);
    }
}

/* ---- take_rows: a group per row --------------------------------------------------------------- */

KERNEL(THREADS)
take_rows(float *out, const float *x, const i32 *ids, u32 count, u32 tokens, u32 dim) {
    u32 row = group_id();
    x += (u64)(u32)ids[row] * dim;
    out += (u64)row * dim;
    for (u32 i = thread_id(); i < dim; i += THREADS)
        out[i] = x[i];
}
