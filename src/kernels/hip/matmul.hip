/* matmul.hip - weights times activations: matmul, matmul_qkv, matmul_gate_up. gemv.hip does few tokens,
 * gemm.hip more. */

/* Tiles take many registers; two waves must still fit on a SIMD, which few tokens need. */
#if MATRIX_CORES
#define TWO_WAVES __attribute__((amdgpu_waves_per_eu(2)))
#else
#define TWO_WAVES
#endif

DEVICE void multiply(const struct product *p, const struct input *in, u32 block, u32 added) {
    if (in->tokens <= GEMV_TOKENS)
        gemv(p, in, block, added);
    else
        gemm(p, in, block, added);
}

/* Groups that a product takes: KERN_TILES of kern.h. */
DEVICE u32 product_groups(u32 n, u32 tokens) {
    return tokens <= GEMV_TOKENS ? (n + GEMV_GROUP - 1) / GEMV_GROUP
                                 : (n + TILE_ROWS - 1) / TILE_ROWS * ((tokens + TILE_TOKENS - 1) / TILE_TOKENS);
}

/* ---- kernels --------------------------------------------------------------------------------- */

KERNEL(THREADS)
TWO_WAVES
matmul(float *out, const u8 *weight, u32 weight_type, const float *x, const i8 *levels,
       const float *bias, u32 tokens, u32 n, u32 k, u32 biased, u32 added, u32 run, u32 packed) {
    struct product p = { out, weight, biased ? bias : 0, weight_type, n };
    struct input in = { x, find_levels(levels, tokens, k), tokens, k, run };
    multiply(&p, &in, group_id(), added);
}

KERNEL(THREADS)
TWO_WAVES
matmul_qkv(float *q, float *k, float *v, const u8 *q_weight, u32 q_type, const u8 *k_weight,
           u32 k_type, const u8 *v_weight, u32 v_type, const float *x, const i8 *levels,
           const float *q_bias, const float *k_bias, const float *v_bias, u32 tokens, u32 q_n,
           u32 kv_n, u32 dim, u32 q_biased, u32 k_biased, u32 v_biased, u32 run, u32 packed) {
    struct input in = { x, find_levels(levels, tokens, dim), tokens, dim, run };
    struct product p = { q, q_weight, q_biased ? q_bias : 0, q_type, q_n };
    u32 block = group_id(), of_q = product_groups(q_n, tokens), of_k = product_groups(kv_n, tokens);
    if (block >= of_q + of_k) {
        struct product other = { v, v_weight, v_biased ? v_bias : 0, v_type, kv_n };
        p = other;
        block -= of_q + of_k;
    } else if (block >= of_q) {
        struct product other = { k, k_weight, k_biased ? k_bias : 0, k_type, kv_n };
        p = other;
        block -= of_q;
    }
    multiply(&p, &in, block, 0);
}

/* The activations of a tile, whose products are there, and their levels. */
DEVICE void activate_tile(float *gate, const float *up, i8 *levels, u32 tokens, u32 hidden, u32 gelu,
                          u32 ungated, u32 run, u32 block) {
    const u32 across = (hidden + TILE_ROWS - 1) / TILE_ROWS;
    const u32 row = block % across * TILE_ROWS, token = block / across * TILE_TOKENS;
    for (u32 i = thread_id(); i < TILE_ROWS * TILE_TOKENS; i += THREADS) {
        const u32 r = row + i % TILE_ROWS, t = token + i / TILE_ROWS;
        const u64 at = (u64)t * hidden + r;
        if (r < hidden && t < tokens)
            gate[at] = activate(gate[at], gelu) * (ungated ? 1 : up[at]);
    }
    if (run < RUN)
        return;
    barrier();
    for (u32 i = thread_id(); i < TILE_ROWS / RUN * TILE_TOKENS; i += THREADS) {
        const u32 r = row / RUN + i % (TILE_ROWS / RUN), t = token + i / (TILE_ROWS / RUN);
        if (r < hidden / RUN && t < tokens)
            quantize_run(levels, gate + (u64)t * hidden, 0, tokens, hidden, run, t, r);
    }
}

KERNEL(THREADS)
TWO_WAVES
matmul_gate_up(float *gate, float *up, i8 *out_levels, i32 *counts, const u8 *gate_weight,
               u32 gate_type, const u8 *up_weight, u32 up_type, const float *x, const i8 *levels,
               const float *bias, u32 tokens, u32 hidden, u32 dim, u32 activated, u32 biased,
               u32 gelu, u32 ungated, u32 run, u32 out_run, u32 packed) {
    struct input in = { x, find_levels(levels, tokens, dim), tokens, dim, run };
    struct product p = { gate, gate_weight, biased ? bias : 0, gate_type, hidden };
    u32 block = group_id(), of_gate = product_groups(hidden, tokens);
    if (block >= of_gate) {
        struct product other = { up, up_weight, 0, up_type, hidden };
        p = other;
        block -= of_gate;
    }
    multiply(&p, &in, block, 0);
    if (!activated)
        return;
    if (ungated)
        barrier();
    else if (!is_last_group((u32 *)counts + block, 2))
        return;
    activate_tile(gate, up, out_levels, tokens, hidden, gelu, ungated, out_run, block);
}
