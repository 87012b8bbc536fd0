/* Decoding and encoding of the 256-element types, written once over struct quant_super.
 *
 * Encoding fits every sub-block by itself, gives the largest scale (and min) the last integer, and
 * then looks at the neighbouring integers too: rounding a scale to 4 or 6 bits moves it so far that
 * the nearest integer is often not the best one. */
#include <string.h>

#include "model/quant/quant_internal.h"
#include "model/quant/quant_super.h"

struct super_type {
    void (*unpack)(const void *block, struct quant_super *s);
    void (*pack)(const struct quant_super *s, void *block);
    size_t bytes;
    int sub;                /* elements per sub-block */
    int lo, hi;             /* levels; lo == 0: with mins */
    int scale_lo, scale_hi; /* integers of scales and mins */
    bool table;             /* levels are quant_iq4_values */
};

static const struct super_type types[] = {
    { quant_unpack_q2_k, quant_pack_q2_k, sizeof(struct block_q2_k), 16, 0, 3, 0, 15, false },
    { quant_unpack_q3_k, quant_pack_q3_k, sizeof(struct block_q3_k), 16, -4, 3, -32, 31, false },
    { quant_unpack_q4_k, quant_pack_q4_k, sizeof(struct block_q4_k), 32, 0, 15, 0, 63, false },
    { quant_unpack_q5_k, quant_pack_q5_k, sizeof(struct block_q5_k), 32, 0, 31, 0, 63, false },
    { quant_unpack_q6_k, quant_pack_q6_k, sizeof(struct block_q6_k), 16, -32, 31, -128, 127,
      false },
    { quant_unpack_iq4_xs, quant_pack_iq4_xs, sizeof(struct block_iq4_xs), 32, -8, 7, -32, 31,
      true },
};

enum { Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_XS };

static void decode(const struct super_type *t, const void *src, float *dst, size_t n) {
    for (size_t i = 0; i < n; i += QUANT_SUPER, src = (const char *)src + t->bytes) {
        struct quant_super s;
        t->unpack(src, &s);
        float d = quant_half_to_float(s.d), dmin = quant_half_to_float(s.dmin);
        for (int e = 0, j = 0; e < QUANT_SUPER; e += t->sub, j++) {
            float scale = d * (float)s.scale[j], min = dmin * (float)s.min[j];
            for (int k = e; k < e + t->sub; k++)
                dst[i + (size_t)k] = scale * (float)s.level[k] - min;
        }
    }
}

/* A shared scale as it is stored. */
static float store(float x, quant_half *out) {
    *out = quant_scale_to_half(x);
    return quant_half_to_float(*out);
}

static float invert(float d) {
    return d != 0 ? 1 / d : 0;
}

/* ---- types without mins: Q3_K, Q6_K, IQ4_XS ---- */

static float fit_scale(const struct super_type *t, const float *x, enum quant_effort effort) {
    return t->table ? quant_fit_iq4(x, t->sub, effort)
                    : quant_fit_symmetric(x, t->sub, t->lo, t->hi, effort);
}

static float scale_error(const struct super_type *t, const float *x, float scale) {
    return t->table ? quant_error_iq4(x, t->sub, scale)
                    : quant_error_levels(x, t->sub, scale, 0, t->lo, t->hi);
}

/* The integer next to wanted/d, or its better neighbour. */
static int choose_scale(const struct super_type *t, const float *x, float wanted, float d,
                        enum quant_effort effort) {
    int nearest = quant_level(wanted * invert(d), t->scale_lo, t->scale_hi), best = nearest;
    if (effort == QUANT_FAST)
        return best;
    float error = scale_error(t, x, d * (float)nearest);
    for (int c = nearest - 1; c <= nearest + 1; c += 2) {
        if (c < t->scale_lo || c > t->scale_hi)
            continue;
        float other = scale_error(t, x, d * (float)c);
        if (other < error) {
            error = other;
            best = c;
        }
    }
    return best;
}

static void set_levels(const struct super_type *t, const float *x, float scale, int8_t *level) {
    float inverse = invert(scale);
    if (!t->table) {
        quant_set_levels(x, t->sub, 0, inverse, t->lo, t->hi, level);
        return;
    }
    quant_set_iq4_indexes(x, t->sub, inverse, level);
    for (int k = 0; k < t->sub; k++)
        level[k] = quant_iq4_values[level[k]];
}

/* With integers and levels fixed, the best shared scale is known; then the levels once more. */
static void settle(const struct super_type *t, const float *x, struct quant_super *s) {
    float xq = 0, qq = 0;
    for (int e = 0; e < QUANT_SUPER; e++) {
        int j = e / t->sub;
        float q = (float)(s->scale[j] * s->level[e]);
        xq += x[e] * q;
        qq += q * q;
    }
    if (!(qq > 0))
        return;
    float d = store(xq / qq, &s->d);
    for (int e = 0, j = 0; e < QUANT_SUPER; e += t->sub, j++)
        set_levels(t, x + e, d * (float)s->scale[j], s->level + e);
}

static void encode_symmetric(const struct super_type *t, const float *x, void *block,
                             enum quant_effort effort) {
    struct quant_super s;
    float wanted[16] = { 0 }, peak = 0;
    memset(&s, 0, sizeof s);
    for (int e = 0, j = 0; e < QUANT_SUPER; e += t->sub, j++) {
        wanted[j] = fit_scale(t, x + e, effort);
        if ((wanted[j] < 0 ? -wanted[j] : wanted[j]) > (peak < 0 ? -peak : peak))
            peak = wanted[j];
    }
    float d = store(peak / (float)t->scale_lo, &s.d);
    for (int e = 0, j = 0; e < QUANT_SUPER; e += t->sub, j++) {
        s.scale[j] = (int8_t)choose_scale(t, x + e, wanted[j], d, effort);
        set_levels(t, x + e, d * (float)s.scale[j], s.level + e);
    }
    if (effort == QUANT_BEST)
        settle(t, x, &s);
    t->pack(&s, block);
}

/* ---- types with mins: Q2_K, Q4_K, Q5_K ---- */

static void choose_scale_and_min(const struct super_type *t, const float *x, float d, float dmin,
                                 int8_t *scale, uint8_t *min) {
    int s0 = *scale, m0 = *min;
    float error = quant_error_levels(x, t->sub, d * (float)s0, -dmin * (float)m0, 0, t->hi);
    for (int s = s0 - 1; s <= s0 + 1; s++)
        for (int m = m0 - 1; m <= m0 + 1; m++) {
            if (s < 0 || s > t->scale_hi || m < 0 || m > t->scale_hi || (s == s0 && m == m0))
                continue;
            float other = quant_error_levels(x, t->sub, d * (float)s, -dmin * (float)m, 0, t->hi);
            if (other < error) {
                error = other;
                *scale = (int8_t)s;
                *min = (uint8_t)m;
            }
        }
}

static void encode_affine(const struct super_type *t, const float *x, void *block,
                          enum quant_effort effort) {
    struct quant_super s;
    float scale[16] = { 0 }, offset[16] = { 0 }, top_scale = 0, top_min = 0;
    memset(&s, 0, sizeof s);
    for (int e = 0, j = 0; e < QUANT_SUPER; e += t->sub, j++) {
        quant_fit_affine(x + e, t->sub, t->hi, true, effort, &scale[j], &offset[j]);
        top_scale = scale[j] > top_scale ? scale[j] : top_scale;
        top_min = -offset[j] > top_min ? -offset[j] : top_min;
    }
    float d = store(top_scale / (float)t->scale_hi, &s.d);
    float dmin = store(top_min / (float)t->scale_hi, &s.dmin);
    for (int e = 0, j = 0; e < QUANT_SUPER; e += t->sub, j++) {
        s.scale[j] = (int8_t)quant_level(scale[j] * invert(d), 0, t->scale_hi);
        s.min[j] = (uint8_t)quant_level(-offset[j] * invert(dmin), 0, t->scale_hi);
        if (effort == QUANT_BEST)
            choose_scale_and_min(t, x + e, d, dmin, &s.scale[j], &s.min[j]);
        float min = dmin * (float)s.min[j], inverse = invert(d * (float)s.scale[j]);
        quant_set_levels(x + e, t->sub, -min, inverse, 0, t->hi, s.level + e);
    }
    t->pack(&s, block);
}

static void encode(const struct super_type *t, const float *src, void *dst, size_t n,
                   enum quant_effort effort) {
    for (size_t i = 0; i < n; i += QUANT_SUPER, dst = (char *)dst + t->bytes) {
        if (t->lo < 0)
            encode_symmetric(t, src + i, dst, effort);
        else
            encode_affine(t, src + i, dst, effort);
    }
}

#define SUPER_TYPE(name, index)                                                                    \
    void quant_decode_##name(const void *src, float *dst, size_t n) {                              \
        decode(&types[index], src, dst, n);                                                        \
    }                                                                                              \
    void quant_encode_##name(const float *src, void *dst, size_t n, enum quant_effort effort) {    \
        encode(&types[index], src, dst, n, effort);                                                \
    }
SUPER_TYPE(q2_k, Q2_K)
SUPER_TYPE(q3_k, Q3_K)
SUPER_TYPE(q4_k, Q4_K)
SUPER_TYPE(q5_k, Q5_K)
SUPER_TYPE(q6_k, Q6_K)
SUPER_TYPE(iq4_xs, IQ4_XS)
