/* halves.hip - F16 weights times more than a few tokens, where matrix cores multiply small halves and
 * whole numbers of 8 bits at twice the rate (gfx942).
 *
 * An activation has more bits than a half. It is a half (11 bits) and a rest, which is at most 1/2048 of it,
 * so that the rest's product with a weight needs few bits: both become whole numbers of 8 bits, and
 * matrix instructions for those multiply them in half the time. For each stage of 64 elements
 *
 *   sum += power * (halves * weights + rests * numbers * factor)
 *
 * where power belongs to the token: the largest of its 64 activations becomes 2^14 to 2^15, the half's
 * rest at most 8 and the number for it at most 127. factor belongs to the row: the largest of its 64
 * weights becomes 64 to 127. Sums of 64 products of numbers are exact.
 *
 * The rests' error is 1/254 of the largest one, the numbers' about 1/100 of a weight: together about 3e-6 of a
 * result's deviation (ADR 0073). */

#if SMALL_HALVES

typedef i32 i32x16 __attribute__((ext_vector_type(16)));

enum { HALVES = 64 }; /* elements of a stage */

/* A token's part of a stage. Elements come in fours: four e (0 to 15) is the quarter e % 4 of sixteen e / 4.
 * Rows of an odd number of 16 bytes lie in different banks. power is stored once per quarter. */
struct half_token {
    __attribute__((aligned(16))) f16x4 half[4][4]; /* [sixteen][quarter] */
    u32 rest[2][4][2]; /* four numbers each: [pair of sixteens][quarter][which of the pair] */
    float power[4][2];
    u32 unused[4];
};

struct half_tiles {
    struct half_token token[2][TILE_TOKENS];
    struct row_factors factor[WAVES];
};

/* A lane has 32 of the 64 weights of its row, two quarters of each sixteen. number[i]: the same as numbers of
 * 8 bits, for a pair of sixteens (i / 2) one quarter of each. */
struct half_row {
    f16x8 weight[4];
    u32x2 number[4];
};

/* ---- activations ------------------------------------------------------------------------------- */

/* Of one token 4 of every 16 elements, so that four threads ask for 64 bytes that are neighbours. */
struct sixteen {
    f32x4 x[4];
};

DEVICE void take_sixteen(struct sixteen *s, const struct input *in, u32 token, u32 at) {
    const float *row = in->x + (u64)least(token + thread_id() / 4, in->tokens - 1) * in->k;
    const bool whole = at + HALVES <= in->k; /* the same for all threads */
    at += thread_id() % 4 * 4;
    for (u32 i = 0; i < 4; i++, at += 16) {
        s->x[i] = 0;
        if (whole || at + 4 <= in->k)
            s->x[i] = *(const f32x4_any *)(row + at);
        else
            for (u32 j = 0; j < 4; j++)
                s->x[i][j] = at + j < in->k ? row[at + j] : 0;
    }
}

/* The largest magnitude of a, b and most. */
DEVICE float largest(float most, float a, float b) {
    float m;
    __asm__("v_max3_f32 %0, %1, |%2|, |%3|" : "=v"(m) : "v"(most), "v"(a), "v"(b));
    return m;
}

DEVICE u32 largest_of_four_lanes(u32 x) {
    const int neighbour = 0xb1, pair = 0x4e; /* quad_perm of lane ^ 1 and lane ^ 2 */
    x = most(x, (u32)__builtin_amdgcn_mov_dpp((int)x, neighbour, 15, 15, true));
    return most(x, (u32)__builtin_amdgcn_mov_dpp((int)x, pair, 15, 15, true));
}

/* Two halves in a word: a * by and b * by. */
DEVICE u32 pair_of_halves(float a, float b, float by) {
    u32 pair;
    __asm__("v_fma_mixlo_f16 %0, %1, %2, 0" : "=v"(pair) : "v"(a), "v"(by));
    __asm__("v_fma_mixhi_f16 %0, %1, %2, 0" : "+v"(pair) : "v"(b), "v"(by));
    return pair;
}

/* What a * by and b * by lose as these halves, as two halves. */
DEVICE u32 pair_of_rests(float a, float b, float by, u32 halves) {
    u32 pair;
    __asm__("v_fma_mixlo_f16 %0, %1, %2, -%3 op_sel_hi:[0,0,1]"
            : "=v"(pair)
            : "v"(a), "v"(by), "v"(halves));
    __asm__("v_fma_mixhi_f16 %0, %1, %2, -%3 op_sel:[0,0,1] op_sel_hi:[0,0,1]"
            : "+v"(pair)
            : "v"(b), "v"(by), "v"(halves));
    return pair;
}

/* Four numbers: halves times `by`, rounded by adding a base of which they are the last places. */
DEVICE u32 round_four(f16x4 x, f16 by, f16 base) {
#if __has_builtin(__builtin_elementwise_fma)
    u32x2 bits = __builtin_bit_cast(u32x2, __builtin_elementwise_fma(x, (f16x4)by, (f16x4)base));
#else
    u32x2 bits = __builtin_bit_cast(u32x2, x * by + base);
#endif
    return __builtin_amdgcn_perm(bits[1], bits[0], 0x06040200u); /* the low bytes */
}

DEVICE void store_sixteen(struct half_tiles *t, const struct sixteen *s, u32 stage) {
    struct half_token *to = &t->token[stage % 2][thread_id() / 4];
    const u32 quarter = thread_id() % 4;
    float peak = 0;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j += 2)
            peak = largest(peak, s->x[i][j], s->x[i][j + 1]);
    u32 exponent = most(least(largest_of_four_lanes(bits_of(peak)) >> 23, 254), 28);
    const float by = float_of((254 + 14 - exponent) << 23);
    for (u32 i = 0; i < 4; i++) {
        f32x4 x = s->x[i];
        u32x2 half, rest;
        for (int j = 0; j < 2; j++) {
            half[j] = pair_of_halves(x[2 * j], x[2 * j + 1], by);
            rest[j] = pair_of_rests(x[2 * j], x[2 * j + 1], by, half[j]);
        }
        to->half[i][quarter] = __builtin_bit_cast(f16x4, half);
        to->rest[i / 2][quarter][i % 2] =
            round_four(__builtin_bit_cast(f16x4, rest), (f16)(127 / 8.0f), 1536);
    }
    to->power[quarter][0] = float_of((exponent - 14) << 23);
}

/* ---- weights ----------------------------------------------------------------------------------- */

/* 0 beyond the last. */
DEVICE void take_half_row(f16x8 w[4], const u8 *row, u32 at, u32 k) {
    const bool whole = at + HALVES <= k;
    at += lane_half() * 8;
    for (u32 i = 0; i < 4; i++, at += 16) {
        if (whole || at + 8 <= k) {
            w[i] = __builtin_bit_cast(f16x8, load_u32x4(row + (u64)at * 2));
            continue;
        }
        for (u32 j = 0; j < 8; j++)
            w[i][j] = __builtin_bit_cast(f16, (u16)(at + j < k ? load_u16(row + (u64)(at + j) * 2) : 0));
    }
}

/* The largest magnitude of two halves and of the half `most`. */
DEVICE u32 largest_half(u32 most, u32 pair) {
    u32 m;
    __asm__("v_max3_f16 %0, %1, |%2|, |%2| op_sel:[0,0,1,0]" : "=v"(m) : "v"(most), "v"(pair));
    return m;
}

/* The exponent, as floats have it, of the largest magnitude among a row's 64 weights; one more if that
 * would become 127.5 or more. */
DEVICE u32 row_exponent(const f16x8 w[4]) {
    const u32 margin = 1 << 16; /* 1/128 of the fraction */
    u32 most_half = 0;
    for (int i = 0; i < 4; i++) {
        u32x4 bits = __builtin_bit_cast(u32x4, w[i]);
        for (int j = 0; j < 4; j++)
            most_half = largest_half(most_half, bits[j]);
    }
    float peak = half_of((u16)most_half);
    u32 own = bits_of(peak), other = bits_of(from_lane(peak, lane_id() ^ 32));
    return most(least((most(own, other) + margin) >> 23, 127 + 16), 127 - 23);
}

/* Numbers of the weights, and the row's factor where all lanes can read it. With its exponent e the row
 * is multiplied with 2^(-8 - e); 3/32 is the half whose last place is 2^-14. */
DEVICE void number_weights(struct half_tiles *t, struct half_row *r) {
    const u32 exponent = row_exponent(r->weight);
    const f16 by = (f16)float_of((2 * 127 - 8 - exponent) << 23), base = (f16)0.09375f;
    for (int i = 0; i < 4; i++) {
        r->number[i / 2 * 2][i % 2] = round_four(r->weight[i].lo, by, base);
        r->number[i / 2 * 2 + 1][i % 2] = round_four(r->weight[i].hi, by, base);
    }
    sharing_begins();
    t->factor[wave_id()].of[lane_id()] = float_of((exponent - 6) << 23) * (8 / 127.0f);
    sharing_ends();
}

/* ---- products ----------------------------------------------------------------------------------- */

DEVICE i32x16 multiply_numbers(u32x2 w, u32x2 x, i32x16 sum) {
    return __builtin_amdgcn_mfma_i32_32x32x16_i8(__builtin_bit_cast(i64, w), __builtin_bit_cast(i64, x),
                                                 sum, 0, 0, 0);
}

/* 3 * 2^22, as a float. With n more the bits are those of the float 3 * 2^22 + n, for n up to 2^22. */
#define NUMBERS_BASE 0x1.8p23f

DEVICE void multiply_halves(const struct half_tiles *t, const struct half_row *r, u32 buffer,
                            u32 token, i32x16 base, f32x16 factors, f32x16 *sum) {
    const struct half_token *x = &t->token[buffer][token];
    const u32 quarter = lane_half() * 2; /* and the next */
    f32x16 dot = 0;
    i32x16 low = base;
    for (u32 i = 0; i < 4; i++)
        dot = multiply_eight(r->weight[i], *(const f16x8 *)&x->half[i][quarter], dot);
    for (u32 i = 0; i < 2; i++) {
        u32x4 rest = *(const u32x4 *)&x->rest[i][quarter];
        low = multiply_numbers(r->number[2 * i], rest.lo, low);
        low = multiply_numbers(r->number[2 * i + 1], rest.hi, low);
    }
    dot += (__builtin_bit_cast(f32x16, low) - NUMBERS_BASE) * factors;
    *sum += dot * x->power[quarter][0];
    in_order(sum);
}

DEVICE void gemm_halves(struct half_tiles *t, const struct product *p, const struct input *in, u32 row,
                        u32 token, struct tile_sums *sum) {
    const u32 stages = (in->k + HALVES - 1) / HALVES;
    const u8 *mine = p->weight + least(row + wave_id() * 32 + lane_id() % 32, p->n - 1) *
                                     row_bytes(TYPE_F16, in->k);
    struct sixteen x;
    struct half_row w;
    f16x8 next[4];
    i32x16 base = (i32)bits_of(NUMBERS_BASE);
    __asm__ volatile("" : "+v"(base)); /* keeps it in registers */
    take_sixteen(&x, in, token, 0);
    take_half_row(w.weight, mine, 0, in->k);
    number_weights(t, &w);
    store_sixteen(t, &x, 0);
    barrier();
#pragma unroll 1
    for (u32 stage = 0; stage < stages; stage++) {
        bool more = stage + 1 < stages;
        if (more) {
            take_sixteen(&x, in, token, (stage + 1) * HALVES);
            take_half_row(next, mine, (stage + 1) * HALVES, in->k);
        }
        f32x16 factors = factors_of_sums(&t->factor[wave_id()]);
        multiply_halves(t, &w, stage % 2, lane_id() % 32, base, factors, &sum->first);
        multiply_halves(t, &w, stage % 2, 32 + lane_id() % 32, base, factors, &sum->second);
        if (more) {
            for (u32 i = 0; i < 4; i++)
                w.weight[i] = next[i];
            number_weights(t, &w);
            store_sixteen(t, &x, stage + 1);
        }
        barrier();
    }
}

#endif
