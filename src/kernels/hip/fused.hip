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
                          const float *x, const i8 *levels, u32 tokens, u32 k, u32 run, u32 base,
                          u32 sides) {
#pragma nounroll
    for (u32 i = 0; i < ACTIVATE_PASSES * sides; i++) {
        forget(&tokens);
        forget(&k);
        const struct input in = { x, find_levels(levels, tokens, k), tokens, k, run };
        const u32 side = i / ACTIVATE_PASSES, pass = i % ACTIVATE_PASSES;
        const u32 at = (pass * (ACTIVATE_THREADS / WAVE) + wave_id()) * GEMV_ROWS;
        struct product one = { 0, side ? p[1].weight : p[0].weight, 0, side ? p[1].type : p[0].type,
                               p[0].n };
        if (base + at >= one.n)
            continue;
        struct sums s = gemv_sums(&one, &in, base + at);
        for (u32 row = 0; row < GEMV_ROWS; row++)
            for (u32 t = 0; t < GEMV_TOKENS; t++)
                if (t < in.tokens) {
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
    const struct product p[2] = { { 0, gate_weight, 0, gate_type, hidden },
                                  { 0, up_weight, 0, up_type, hidden } };
    multiply_both(room, p, x, levels, tokens, dim, run, base, ungated ? 1 : 2);
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

/* ---- attention_step: a token, a key head and a range per group ---------------------------------- */

/* How heads are normalised and turned before they meet. */
struct turning {
    const float *turns; /* cosines, sines */
    u32 pairs, halves, normed;
    float eps;
};

/* A head from memory into LDS, normalised. */
DEVICE void load_head(float *to, const float *x, const float *norm, u32 head_size,
                      const struct turning *turning) {
    float factor = turning->normed ? norm_factor(x, 0, head_size, turning->eps) : 1;
    for (u32 i = thread_id(); i < head_size; i += THREADS)
        to[i] = turning->normed ? x[i] * factor * norm[i] : x[i];
}

/* Heads in LDS, HEAD_MAX apart, turned. */
DEVICE void turn_heads(float *x, u32 heads, const struct turning *turning) {
    const u32 pairs = turning->pairs;
    for (u32 i = thread_id(); i < heads * pairs; i += THREADS) {
        u32 head = i / pairs * HEAD_MAX, at = i % pairs;
        turn_pair(x + head + first_of_pair(at, turning->halves),
                  x + head + second_of_pair(at, pairs, turning->halves), turning->turns[at],
                  turning->turns[pairs + at]);
    }
}

DEVICE void load_turned_queries(struct attention_room *s, const struct context *c, const float *q,
                                const float *norm, u32 heads, float scale,
                                const struct turning *turning) {
    for (u32 h = 0; h < HEADS; h++)
        s->query[h][thread_id()] = 0;
    barrier();
#pragma unroll 1
    for (u32 h = 0; h < heads; h++)
        load_head(s->query[h], q + h * c->head_size, norm, c->head_size, turning);
    barrier();
    turn_heads(s->query[0], heads, turning);
    barrier();
    for (u32 h = 0; h < HEADS; h++)
        s->query[h][thread_id()] *= scale;
}

/* A head into its row of the cache. */
DEVICE void store_head(const struct context *c, int which, u32 p, const float *x) {
    u8 *to = (u8 *)find_row(c, which, p).at;
    if (c->type[which] == TYPE_F16) {
        for (u32 i = thread_id(); i < c->head_size; i += THREADS)
            ((f16 *)to)[i] = (f16)x[i];
        return;
    }
    for (u32 i = thread_id(); i < c->head_size / 32; i += THREADS)
        store_q8_0(to + (u64)i * 34, x + i * 32);
}

/* The token's own key, turned, and value. */
DEVICE void store_step(struct attention_room *s, const struct context *c, float *k, const float *v,
                       const float *norm, u32 p, const struct turning *turning) {
    float *key = s->sums[0];
    load_head(key, k, norm, c->head_size, turning);
    barrier();
    turn_heads(key, 1, turning);
    barrier();
    for (u32 i = thread_id(); i < c->head_size; i += THREADS)
        k[i] = key[i];
    store_head(c, 0, p, key);
    store_head(c, 1, p, v);
}

/* What is left to do when all ranges are done: join them, and quantise the heads that share the key head. */
DEVICE void finish_step(float *out, const float *parts, i8 *levels, const struct context *c, u32 tokens,
                        u32 group, u32 ranges, u32 run) {
    const u32 t = c->fresh_token, part = part_floats(c->head_size);
    const u32 row = c->kv_heads * group * c->head_size, first = c->kv_head * group * c->head_size;
    const u64 head = ((u64)t * c->kv_heads + c->kv_head) * group;
    for (u32 h = 0; ranges > 1 && h < group; h++)
        merge_head(out + (head + h) * c->head_size, parts + (head + h) * ranges * part, c->head_size,
                   ranges, thread_id(), THREADS);
    if (run < RUN)
        return;
    barrier();
    for (u32 i = thread_id(); i < group * c->head_size / RUN; i += THREADS)
        quantize_run(levels, out + head * c->head_size, first / RUN, tokens, row, run, t, first / RUN + i);
}

/* Its arguments alone fill half of the scalar registers, so it keeps little else in them. */
KERNEL(THREADS)
attention_step(float *out, float *parts, i8 *levels, i32 *counts, const float *q, float *k,
               const float *v, const float *q_norm, const float *k_norm, const float *turns, u8 *keys,
               u32 keys_type, u8 *values, u32 values_type, const i32 *pos, const i32 *seqs,
               const i32 *tables, u32 tokens, u32 heads, u32 kv_heads, u32 head_size, u32 rope_dims,
               u32 halves, u32 normed, u32 rows, u32 sequences, u32 table_width, u32 window,
               u32 ranges, u32 fresh, u32 run, float scale, float cap, float eps) {
    SHARED struct attention_room room;
    forget(&kv_heads);
    forget(&head_size);
    forget(&ranges);
    forget(&run);
    const u32 range = group_id() / kv_heads % ranges;
    const u32 t = tokens - 1 - group_id() / kv_heads / ranges, p = (u32)pos[t];
    u32 group = heads / kv_heads;
    struct context c = { { keys, values }, { k, v }, { keys_type, values_type }, kv_heads, head_size,
                         group_id() % kv_heads, tables + (i64)seqs[t] * table_width, ~0u, t };
    struct turning turning = { turns + (u64)t * rope_dims, rope_dims / 2, halves, normed, eps };
    const u64 own = ((u64)t * kv_heads + c.kv_head) * head_size;
    u32 from = window && p + 1 > window ? p + 1 - window : 0, to = p + 1;
    if (ranges > 1) {
        from = most(from, range * RANGE);
        to = least(to, (range + 1) * RANGE);
    }
    if (ranges == 1 || range == p / RANGE)
        store_step(&room, &c, k + own, v + own, k_norm, p, &turning);
    if (fresh)
        c.fresh = p;
    for (u32 first = 0; first < group; first += HEADS) {
        forget_context(&c);
        forget(&turning.pairs);
        forget(&turning.halves);
        forget(&turning.normed);
        forget(&ranges);
        forget(&group);
        forget(&from);
        forget(&to);
        const u32 count = least(HEADS, group - first), part = part_floats(c.head_size);
        const u64 head = ((u64)c.fresh_token * c.kv_heads + c.kv_head) * group + first;
        barrier();
        load_turned_queries(&room, &c, q + head * c.head_size, q_norm, count, scale, &turning);
        attend(&room, &c, out + head * c.head_size,
               ranges > 1 ? parts + (head * ranges + range) * part : 0, ranges * part, count, from, to,
               cap);
    }
    forget(&group);
    const u64 place = (u64)c.fresh_token * c.kv_heads + c.kv_head;
    if (ranges == 1 || is_last_group((u32 *)counts + place, ranges))
        finish_step(out, parts, levels, &c, tokens, group, ranges, run);
}
