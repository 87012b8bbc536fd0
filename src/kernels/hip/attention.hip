/* attention.hip - the KV cache: kv_store, attention, attention_merge.
 *
 * A group of attention does a token, a key head, and the token's context or one range of it, for up to
 * HEADS of the query heads that share the key head at a time. It streams over tiles of 64 positions:
 *
 *   scores    four threads per position, each a quarter of the head, for all queries at once
 *   weights   a wave per query: the highest score so far, exp(score - highest), their sum
 *   values    a wave takes every fourth position, a lane every 64th element of the head
 *
 * and the waves' sums of values are added up at the end. */

enum { POSITIONS = 64, HEADS = 8, HEAD_MAX = 256, PART_LANES = 16, RANGE = 256 };
enum { CACHE_BLOCK = 32 }; /* rows of a block of the cache: KERN_BLOCK */
enum { SHARE = THREADS / POSITIONS, EACH = HEAD_MAX / WAVE };
static_assert(HEAD_MAX == THREADS, "a thread has one element of a query");

/* Row of the cache that has position p of the sequence whose blocks the table lists. */
DEVICE i64 cache_row(const i32 *table, u32 p) {
    return (i64)table[p / CACHE_BLOCK] * CACHE_BLOCK + p % CACHE_BLOCK;
}

/* ---- kv_store: a group per token -------------------------------------------------------------- */

DEVICE u16 scale_to_half(float x) {
    f16 h = (f16)(x > 65504 ? 65504 : x);
    u16 bits = __builtin_bit_cast(u16, h);
    return (bits & 0x7c00) == 0 && (float)h < x ? (u16)(bits + 1) : bits;
}

/* 32 elements as a block of Q8_0. */
DEVICE void store_q8_0(u8 *block, const float *x) {
    float peak = 0;
    for (int i = 0; i < 32; i++)
        peak = __builtin_fabsf(x[i]) > peak ? __builtin_fabsf(x[i]) : peak;
    u16 d = scale_to_half(peak / 127);
    float scale = half_of(d), by = scale != 0 ? 1 / scale : 0;
    *(u16_any *)block = d;
    for (int i = 0; i < 32; i += 4) {
        u32 word = 0;
        for (int j = 0; j < 4; j++) {
            float v = x[i + j] * by;
            v = __builtin_fminf(__builtin_fmaxf(v, -127), 127); /* -127 for what is no number */
            word |= ((u32)(i32)__builtin_rintf(v) & 255) << 8 * j;
        }
        *(u32_any *)(block + 2 + i) = word;
    }
}

DEVICE void store_row(u8 *cache, u32 type, const float *x, u32 width, i64 row) {
    u8 *to = cache + row * (i64)row_bytes(type, width);
    if (type == TYPE_F16) {
        for (u32 i = thread_id(); i < width; i += THREADS)
            ((f16 *)to)[i] = (f16)x[i];
        return;
    }
    for (u32 i = thread_id(); i < width / 32; i += THREADS)
        store_q8_0(to + (u64)i * 34, x + i * 32);
}

KERNEL(THREADS)
kv_store(u8 *keys, u32 keys_type, u8 *values, u32 values_type, const float *k, const float *v,
         const i32 *pos, const i32 *seqs, const i32 *tables, u32 tokens, u32 width, u32 rows,
         u32 sequences, u32 table_width) {
    u32 t = group_id();
    i64 row = cache_row(tables + (i64)seqs[t] * table_width, (u32)pos[t]);
    store_row(keys, keys_type, k + (u64)t * width, width, row);
    store_row(values, values_type, v + (u64)t * width, width, row);
}

/* ---- rows of keys and values ------------------------------------------------------------------ */

/* One head of a row: in the cache, or, unrounded, in the batch. */
struct row {
    const u8 *at;
    u32 type;
};

/* Elements 8i to 8i + 7. */
DEVICE void load_eight(struct row r, u32 i, float to[8]) {
    if (r.type != TYPE_Q8_0) {
        if (r.type == TYPE_F16)
            load_floats(TYPE_F16, r.at, i, to);
        else
            load_floats(TYPE_F32, r.at, i, to);
        return;
    }
    const u8 *block = r.at + i / 4 * 34, *q = block + 2 + i % 4 * 8;
    float d = load_half(block);
    u32 low = load_u32(q), high = load_u32(q + 4);
    for (int j = 0; j < 8; j++)
        to[j] = d * (float)(i8)((j < 4 ? low : high) >> j % 4 * 8);
}

DEVICE float load_one(struct row r, u32 i) {
    if (r.type == TYPE_F16)
        return load_half(r.at + i * 2);
    if (r.type == TYPE_F32)
        return float_of(load_u32(r.at + i * 4));
    const u8 *block = r.at + i / 32 * 34;
    return load_half(block) * (float)(i8)block[2 + i % 32];
}

/* ---- attention -------------------------------------------------------------------------------- */

struct context {
    const u8 *cache[2];   /* keys, values */
    const float *batch[2];
    u32 type[2];
    u32 kv_heads, head_size, kv_head;
    const i32 *table;
    u32 fresh;            /* position from which on rows are taken from the batch … */
    u32 fresh_token;      /* … from this token on */
};

DEVICE struct row find_row(const struct context *c, int which, u32 p) {
    struct row r;
    u32 width = c->kv_heads * c->head_size, head = c->kv_head * c->head_size;
    if (p >= c->fresh) {
        r.at = (const u8 *)(c->batch[which] + (u64)(c->fresh_token + p - c->fresh) * width + head);
        r.type = TYPE_F32;
    } else {
        u32 type = c->type[which];
        r.at = c->cache[which] + cache_row(c->table, p) * (i64)row_bytes(type, width) +
               row_bytes(type, head);
        r.type = type;
    }
    return r;
}

/* The compiler computes the addresses of rows again after this. */
DEVICE void forget_context(struct context *c) {
    forget(&c->head_size);
    forget(&c->kv_heads);
    forget(&c->kv_head);
    forget(&c->type[0]);
    forget(&c->type[1]);
    forget(&c->fresh);
    forget(&c->fresh_token);
}

struct attention_room {
    float query[HEADS][HEAD_MAX];
    float weight[HEADS][POSITIONS];
    float highest[HEADS], total[HEADS], shrink[HEADS];
    float sums[WAVES][HEAD_MAX];
};

/* Scores of 64 positions from `tile` on, for `heads` queries. */
DEVICE void score_tile(struct attention_room *s, const struct context *c, u32 tile, u32 from, u32 to,
                       u32 heads, float cap) {
    u32 p = tile + thread_id() / SHARE, part = thread_id() % SHARE;
    bool seen = p >= from && p < to;
    float sum[HEADS];
    for (int h = 0; h < HEADS; h++)
        sum[h] = 0;
    if (seen) {
        struct row row = find_row(c, 0, p);
        for (u32 i = part; i < c->head_size / 8; i += SHARE) {
            float key[8];
            load_eight(row, i, key);
            for (int h = 0; h < HEADS; h++)
                for (int j = 0; j < 8; j++)
                    sum[h] = __builtin_fmaf(s->query[h][i * 8 + j], key[j], sum[h]);
        }
        for (u32 i = c->head_size / 8 * 8 + part; i < c->head_size; i += SHARE)
            for (int h = 0; h < HEADS; h++)
                sum[h] = __builtin_fmaf(s->query[h][i], load_one(row, i), sum[h]);
    }
    for (int h = 0; h < HEADS; h++) {
        float score = sum_lanes(sum[h], SHARE);
        if (cap != 0)
            score = soft_cap_of(score, cap);
        if (part == 0 && (u32)h < heads)
            s->weight[h][p - tile] = seen ? score : -__builtin_inff();
    }
}

/* Scores become weights; a wave has every WAVES-th query. */
DEVICE void soften_tile(struct attention_room *s, u32 heads) {
    for (u32 h = wave_id(); h < heads; h += WAVES) {
        float top = -__builtin_inff(), sum = 0, before = s->highest[h];
        for (u32 i = lane_id(); i < POSITIONS; i += WAVE)
            top = s->weight[h][i] > top ? s->weight[h][i] : top;
        top = max_lanes(top, WAVE);
        top = before > top ? before : top;
        for (u32 i = lane_id(); i < POSITIONS; i += WAVE) {
            float w = exp_of(s->weight[h][i] - top);
            s->weight[h][i] = w;
            sum += w;
        }
        sum = sum_lanes(sum, WAVE);
        if (lane_id() == 0) {
            float shrink = exp_of(before - top);
            s->highest[h] = top;
            s->shrink[h] = shrink;
            s->total[h] = s->total[h] * shrink + sum;
        }
    }
}

/* A wave's positions of the tile, weighed. Those that are not seen are not even loaded. */
DEVICE void weigh_tile(struct attention_room *s, const struct context *c, u32 tile, u32 from, u32 to,
                       float sums[HEADS][EACH]) {
    for (int h = 0; h < HEADS; h++)
        for (int e = 0; e < EACH; e++)
            sums[h][e] *= s->shrink[h];
    for (u32 p = most(tile, from) + wave_id(); p < least(tile + POSITIONS, to); p += WAVES) {
        struct row row = find_row(c, 1, p);
        for (u32 e = 0; e < EACH; e++)
            if (e * WAVE + lane_id() < c->head_size) {
                float value = load_one(row, e * WAVE + lane_id());
                for (int h = 0; h < HEADS; h++)
                    sums[h][e] = __builtin_fmaf(s->weight[h][p - tile], value, sums[h][e]);
            }
    }
}

/* What a range leaves of a query head: sums, padded, and then what the weights were. */
DEVICE u32 part_sums(u32 head_size) {
    return (head_size + PART_LANES - 1) / PART_LANES * PART_LANES;
}

DEVICE u32 part_floats(u32 head_size) {
    return part_sums(head_size) + PART_LANES;
}

/* The sums of all waves for one query: what a range has, or, divided by its weights, the result. */
DEVICE void put_sums(struct attention_room *s, const struct context *c, u32 h,
                     const float sums[EACH], float *out, float *part) {
    barrier();
    for (u32 e = 0; e < EACH; e++)
        if (e * WAVE + lane_id() < c->head_size)
            s->sums[wave_id()][e * WAVE + lane_id()] = sums[e];
    barrier();
    u32 padded = part_sums(c->head_size);
    for (u32 i = thread_id(); i < padded; i += THREADS) {
        float sum = 0;
        for (u32 w = 0; i < c->head_size && w < WAVES; w++)
            sum += s->sums[w][i];
        if (part)
            part[i] = sum;
        else if (i < c->head_size)
            out[i] = sum / s->total[h];
    }
    /* The whole row, although its padding is never read: whole cache lines are written then. */
    u32 i = thread_id();
    if (part && i < PART_LANES)
        part[padded + i] = i == 0 ? s->highest[h] : i == 1 ? s->total[h] : 0;
}

DEVICE void load_queries(struct attention_room *s, const struct context *c, const float *q, u32 heads,
                         float scale) {
    u32 d = thread_id();
    for (u32 h = 0; h < HEADS; h++)
        s->query[h][d] = h < heads && d < c->head_size ? q[h * c->head_size + d] * scale : 0;
}

/* The queries have been loaded. */
DEVICE void attend(struct attention_room *s, struct context *c, float *out, float *parts,
                   u32 part_stride, u32 heads, u32 from, u32 to, float cap) {
    float sums[HEADS][EACH];
    for (int h = 0; h < HEADS; h++)
        for (int e = 0; e < EACH; e++)
            sums[h][e] = 0;
    for (u32 i = 0; i < HEADS * POSITIONS; i += THREADS)
        s->weight[(i + thread_id()) / POSITIONS][thread_id() % POSITIONS] = 0;
    for (u32 h = wave_id(); h < HEADS && lane_id() == 0; h += WAVES) {
        s->highest[h] = -0x1.fffffep127f; /* as long as no position has been seen */
        s->total[h] = 0;
        s->shrink[h] = 1;
    }
    for (u32 tile = from / POSITIONS * POSITIONS; tile < to; tile += POSITIONS) {
        barrier();
        forget_context(c);
        forget(&heads);
        score_tile(s, c, tile, from, to, heads, cap);
        barrier();
        soften_tile(s, heads);
        barrier();
        forget_context(c);
        weigh_tile(s, c, tile, from, to, sums);
    }
    barrier();
    for (u32 h = 0; h < HEADS; h++) {
        forget_context(c);
        forget(&part_stride);
        if (h < heads)
            put_sums(s, c, h, sums[h], out + h * c->head_size,
                     parts ? parts + (u64)h * part_stride : 0);
    }
}

KERNEL(THREADS)
attention(float *out, float *parts, const float *q, const float *k, const float *v, const u8 *keys,
          u32 keys_type, const u8 *values, u32 values_type, const i32 *pos, const i32 *seqs,
          const i32 *tables, u32 tokens, u32 heads, u32 kv_heads, u32 head_size, u32 rows,
          u32 sequences, u32 table_width, u32 window, u32 ranges, u32 fresh, float scale,
          float cap) {
    SHARED struct attention_room room;
    u32 group = heads / kv_heads, range = group_id() / kv_heads % ranges;
    u32 t = tokens - 1 - group_id() / kv_heads / ranges; /* the last have the most to do */
    u32 p = (u32)pos[t];
    struct context c = { { keys, values }, { k, v }, { keys_type, values_type }, kv_heads, head_size,
                         group_id() % kv_heads, tables + (i64)seqs[t] * table_width, ~0u, t };
    if (fresh) {
        c.fresh = p;
        while (c.fresh_token && seqs[c.fresh_token] == seqs[c.fresh_token - 1] &&
               pos[c.fresh_token] == pos[c.fresh_token - 1] + 1) {
            c.fresh_token--;
            c.fresh--;
        }
    }
    u32 from = window && p + 1 > window ? p + 1 - window : 0, to = p + 1;
    if (ranges > 1) {
        from = most(from, range * RANGE);
        to = least(to, (range + 1) * RANGE);
    }
    u32 part = part_floats(head_size);
    for (u32 first = 0; first < group; first += HEADS) {
        u64 head = (u64)t * heads + c.kv_head * group + first;
        barrier();
        load_queries(&room, &c, q + head * head_size, least(HEADS, group - first), scale);
        attend(&room, &c, out + head * head_size,
               ranges > 1 ? parts + (head * ranges + range) * part : 0, ranges * part,
               least(HEADS, group - first), from, to, cap);
    }
}

/* ---- attention_merge: a group per query head --------------------------------------------------- */

/* The ranges of a query head, by `threads` threads of which this is number `thread`. */
DEVICE void merge_head(float *out, const float *in, u32 head_size, u32 ranges, u32 thread,
                       u32 threads) {
    u32 sums = part_sums(head_size), part = part_floats(head_size);
    float top = -__builtin_inff(), total = 0;
    for (u32 r = 0; r < ranges; r++)
        if (in[r * part + sums + 1] != 0)
            top = in[r * part + sums] > top ? in[r * part + sums] : top;
    for (u32 r = 0; r < ranges; r++)
        if (in[r * part + sums + 1] != 0)
            total = __builtin_fmaf(in[r * part + sums + 1], exp_of(in[r * part + sums] - top), total);
    for (u32 i = thread; i < head_size; i += threads) {
        float sum = 0;
        for (u32 r = 0; r < ranges; r++)
            if (in[r * part + sums + 1] != 0)
                sum = __builtin_fmaf(in[r * part + i], exp_of(in[r * part + sums] - top), sum);
        out[i] = sum / total;
    }
}

KERNEL(64)
attention_merge(float *out, const float *parts, u32 tokens, u32 heads, u32 head_size, u32 ranges) {
    merge_head(out + (u64)group_id() * head_size,
               parts + (u64)group_id() * ranges * part_floats(head_size), head_size, ranges, thread_id(), 64);
}
