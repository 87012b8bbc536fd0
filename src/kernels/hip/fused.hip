/* fused.hip - kernels that do what several others do one after another, for a step that continues
 * every sequence by one token. */

/* ---- matmul_activate: 32 rows of both weights per group ---------------------------------------- */

enum {
    ACTIVATE_THREADS = 512,
    ACTIVATE_ROWS = 32, /* elements of out that may share a scale */
    ACTIVATE_PASSES = ACTIVATE_ROWS / (ACTIVATE_THREADS / WAVE * GEMV_ROWS),
};

/* The products of the rows from `base` on with both weights. */
DEVICE void multiply_both(float room[2][GEMV_TOKENS][ACTIVATE_ROWS], const struct product p[2],
                          const struct input *in, u32 base, u32 sides) {
#pragma nounroll
    for (u32 i = 0; i < ACTIVATE_PASSES * sides; i++) {
        const u32 side = i / ACTIVATE_PASSES, pass = i % ACTIVATE_PASSES;
        const u32 at = (pass * (ACTIVATE_THREADS / WAVE) + wave_id()) * GEMV_ROWS;
        struct product one = { 0, side ? p[1].weight : p[0].weight, 0, side ? p[1].type : p[0].type,
                               p[0].n };
        if (base + at >= one.n)
            continue;
        struct sums s = gemv_sums(&one, in, base + at);
        for (u32 row = 0; row < GEMV_ROWS; row++)
            for (u32 t = 0; t < GEMV_TOKENS; t++)
                if (t < in->tokens) {
                    float sum = sum_lanes(s.of[row][t], WAVE);
                    if (lane_id() == 0)
                        room[side][t][at + row] = sum;
                }
    }
}

KERNEL(ACTIVATE_THREADS)
matmul_activate(float *out, i8 *out_levels, const u8 *gate_weight, u32 gate_type,
                const u8 *up_weight, u32 up_type, const float *x, const i8 *levels,
                const float *bias, u32 tokens, u32 hidden, u32 dim, u32 biased, u32 gelu,
                u32 ungated, u32 run, u32 out_run, u32 packed) {
    SHARED float room[2][GEMV_TOKENS][ACTIVATE_ROWS];
    const u32 base = group_id() * ACTIVATE_ROWS;
    const struct input in = { x, find_levels(levels, tokens, dim), tokens, dim };
    const struct product p[2] = { { 0, gate_weight, 0, gate_type, hidden },
                                  { 0, up_weight, 0, up_type, hidden } };
    multiply_both(room, p, &in, base, ungated ? 1 : 2);
    barrier();
    const u32 t = thread_id() / ACTIVATE_ROWS, r = thread_id() % ACTIVATE_ROWS;
    if (t < tokens && base + r < hidden) {
        float gate = room[0][t][r] + (biased ? bias[base + r] : 0);
        float value = activate(gate, gelu) * (ungated ? 1 : room[1][t][r]);
        room[0][t][r] = value;
        out[(u64)t * hidden + base + r] = value;
    }
    if (out_run < RUN)
        return;
    barrier();
    const u32 first = base / RUN, of = thread_id() / (ACTIVATE_ROWS / RUN);
    if (of < tokens)
        quantize_run(out_levels, room[0][of], first, tokens, hidden, out_run, of,
                     first + thread_id() % (ACTIVATE_ROWS / RUN));
}
