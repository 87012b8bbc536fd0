/* Fits of a scale (and an offset) to a few numbers: the search behind the encoders.
 *
 * A scale fixes each number's nearest level, and fixed levels give the best scale in closed form:
 * with X = sum(x*q) and Q = sum(q*q) it is X/Q and takes X*X/Q off the squared error. So: try a
 * ladder of scales around the one that maps the largest number to the last level, keep the levels
 * that take off most, and settle with two rounds of levels -> scale -> levels.
 *
 * The sums run four lanes wide, written with vector types: compilers may not reorder float sums. */
#include "model/quant/quant_internal.h"

#include <string.h>

typedef float v4f __attribute__((vector_size(16)));
typedef int32_t v4i __attribute__((vector_size(16)));

static inline v4f load4(const float *x) {
    v4f v;
    memcpy(&v, x, sizeof v);
    return v;
}

static inline float sum4(v4f v) {
    return (v[0] + v[2]) + (v[1] + v[3]);
}

static inline v4f select4(v4i mask, v4f yes, v4f no) {
    return (v4f)((mask & (v4i)yes) | (~mask & (v4i)no));
}

static inline v4f splat4(float x) {
    return (v4f){ x, x, x, x };
}

static inline v4f level4(v4f x, v4f lo, v4f hi) {
    v4f r = (x + 0x1.8p23f) - 0x1.8p23f;
    r = select4(r > lo, r, lo); /* in this order NaN becomes lo */
    return select4(r < hi, r, hi);
}

void quant_set_levels(const float *x, int n, float base, float inverse, int lo, int hi,
                      int8_t *levels) {
    v4f vlo = splat4((float)lo), vhi = splat4((float)hi);
    for (int i = 0; i < n; i += 4) {
        v4i q = __builtin_convertvector(level4((load4(x + i) - base) * inverse, vlo, vhi), v4i);
        for (int k = 0; k < 4; k++)
            levels[i + k] = (int8_t)q[k];
    }
}

/* The least and the greatest of n numbers. */
static void extremes(const float *x, int n, float *least, float *greatest) {
    v4f lo = load4(x), hi = lo;
    for (int i = 4; i < n; i += 4) {
        v4f v = load4(x + i);
        lo = select4(v < lo, v, lo);
        hi = select4(v > hi, v, hi);
    }
    *least = lo[0];
    *greatest = hi[0];
    for (int k = 1; k < 4; k++) {
        *least = lo[k] < *least ? lo[k] : *least;
        *greatest = hi[k] > *greatest ? hi[k] : *greatest;
    }
}

float quant_extreme(const float *x, int n) {
    float lo, hi;
    extremes(x, n, &lo, &hi);
    return -lo > hi ? lo : hi;
}

struct sums {
    float xq, qq;
};

static struct sums sum_levels(const float *x, int n, float inverse, int lo, int hi) {
    v4f xq = { 0 }, qq = { 0 }, vlo = splat4((float)lo), vhi = splat4((float)hi);
    for (int i = 0; i < n; i += 4) {
        v4f v = load4(x + i), q = level4(v * inverse, vlo, vhi);
        xq += v * q;
        qq += q * q;
    }
    return (struct sums){ sum4(xq), sum4(qq) };
}

/* One rung of the ladder: is 1/inverse better than what *gain and *scale hold? */
static void try_symmetric(const float *x, int n, int lo, int hi, float inverse, float *gain,
                          float *scale) {
    struct sums s = sum_levels(x, n, inverse, lo, hi);
    if (s.qq > 0 && s.xq * s.xq > *gain * s.qq) {
        *gain = s.xq * s.xq / s.qq;
        *scale = s.xq / s.qq;
    }
}

enum { LADDER = 4, SETTLE = 2 };

float quant_fit_symmetric(const float *x, int n, int lo, int hi, enum quant_effort effort) {
    float peak = quant_extreme(x, n);
    float inverse = (float)lo / peak;
    if (peak == 0 || inverse == 0 || inverse - inverse != 0) /* all zero, or nearly */
        return 0;
    if (effort == QUANT_FAST)
        return peak / (float)lo;
    float gain = 0, scale = 0;
    for (int k = -LADDER; k <= LADDER; k++) {
        try_symmetric(x, n, lo, hi, ((float)lo + 0.2f * (float)k) / peak, &gain, &scale);
        if (hi < 16) /* coarse levels: the peak may be better off on the short side */
            try_symmetric(x, n, lo, hi, ((float)hi + 0.2f * (float)k) / peak, &gain, &scale);
    }
    for (int k = 0; k < SETTLE && scale != 0; k++)
        try_symmetric(x, n, lo, hi, 1 / scale, &gain, &scale);
    return scale;
}

float quant_error_levels(const float *x, int n, float scale, float offset, int lo, int hi) {
    v4f sum = { 0 }, vlo = splat4((float)lo), vhi = splat4((float)hi);
    float inverse = scale != 0 ? 1 / scale : 0;
    for (int i = 0; i < n; i += 4) {
        v4f v = load4(x + i) - offset, off = v - scale * level4(v * inverse, vlo, vhi);
        sum += off * off;
    }
    return sum4(sum);
}

struct affine {
    float scale, offset, error;
};

/* Least squares for the levels that `inverse` and `base` give, levels 0..top. */
static void try_affine(const float *x, int n, int top, bool below, float base, float inverse,
                       struct affine *best) {
    v4f sx = { 0 }, sq = { 0 }, xx = { 0 }, xq = { 0 }, qq = { 0 };
    v4f lo = { 0 }, hi = splat4((float)top);
    for (int i = 0; i < n; i += 4) {
        v4f v = load4(x + i) - base, q = level4(v * inverse, lo, hi);
        sx += v;
        sq += q;
        xx += v * v;
        xq += v * q;
        qq += q * q;
    }
    float X = sum4(sx), Q = sum4(sq), XQ = sum4(xq), QQ = sum4(qq), N = (float)n;
    float determinant = N * QQ - Q * Q;
    if (!(determinant > 0))
        return;
    /* Sums are taken of x - base, so that large offsets do not cost precision. */
    float scale = (N * XQ - Q * X) / determinant, offset = (X - scale * Q) / N;
    if (below && base + offset > 0) {
        offset = -base;
        scale = QQ > 0 ? (XQ - offset * Q) / QQ : 0;
    }
    float error =
        sum4(xx) + scale * (scale * QQ + 2 * (offset * Q - XQ)) + offset * (N * offset - 2 * X);
    if (scale > 0 && error < best->error)
        *best = (struct affine){ scale, base + offset, error };
}

void quant_fit_affine(const float *x, int n, int top, bool below, enum quant_effort effort,
                      float *scale, float *offset) {
    float lo, hi;
    extremes(x, n, &lo, &hi);
    if (below && lo > 0)
        lo = 0;
    float span = hi - lo, inverse = (float)top / span;
    *scale = 0;
    *offset = lo;
    if (!(span > 0) || inverse - inverse != 0)
        return;
    *scale = span / (float)top;
    if (effort == QUANT_FAST)
        return;
    struct affine best = { *scale, lo, 3.4e38f };
    for (int k = -LADDER; k <= LADDER; k++)
        try_affine(x, n, top, below, lo, ((float)top + 0.2f * (float)k) / span, &best);
    for (int k = 0; k < SETTLE; k++)
        try_affine(x, n, top, below, best.offset, 1 / best.scale, &best);
    *scale = best.scale;
    *offset = best.offset;
}

const int8_t quant_iq4_values[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                      1,    13,   25,  38,  53,  69,  89,  113 };

enum { IQ4_LAST = 15 };

/* Where value k ends and value k + 1 begins. */
static inline float iq4_border(int k) {
    return 0.5f * (float)(quant_iq4_values[k] + quant_iq4_values[k + 1]);
}

void quant_set_iq4_indexes(const float *x, int n, float inverse, int8_t *indexes) {
    for (int i = 0; i < n; i += 4) {
        v4f v = load4(x + i) * inverse;
        v4i index = { 0 };
        for (int k = 0; k < IQ4_LAST; k++)
            index -= v > iq4_border(k); /* a comparison gives -1 where it holds */
        for (int k = 0; k < 4; k++)
            indexes[i + k] = (int8_t)index[k];
    }
}

/* The values nearest to v: start at the first and take every step whose border lies below. */
static inline v4f iq4_value4(v4f v) {
    v4f q = splat4((float)quant_iq4_values[0]);
    for (int k = 0; k < IQ4_LAST; k++) {
        v4f step = splat4((float)(quant_iq4_values[k + 1] - quant_iq4_values[k]));
        q += select4(v > iq4_border(k), step, (v4f){ 0 });
    }
    return q;
}

static void try_iq4(const float *x, int n, float inverse, float *gain, float *scale) {
    v4f xq = { 0 }, qq = { 0 };
    for (int i = 0; i < n; i += 4) {
        v4f v = load4(x + i), q = iq4_value4(v * inverse);
        xq += v * q;
        qq += q * q;
    }
    float X = sum4(xq), Q = sum4(qq); /* Q > 0: no value is 0 */
    if (X * X > *gain * Q) {
        *gain = X * X / Q;
        *scale = X / Q;
    }
}

float quant_error_iq4(const float *x, int n, float scale) {
    v4f sum = { 0 };
    float inverse = scale != 0 ? 1 / scale : 0;
    for (int i = 0; i < n; i += 4) {
        v4f v = load4(x + i), off = v - scale * iq4_value4(v * inverse);
        sum += off * off;
    }
    return sum4(sum);
}

float quant_fit_iq4(const float *x, int n, enum quant_effort effort) {
    float peak = quant_extreme(x, n), first = (float)quant_iq4_values[0];
    float last = (float)quant_iq4_values[IQ4_LAST], inverse = first / peak;
    if (peak == 0 || inverse == 0 || inverse - inverse != 0)
        return 0;
    if (effort == QUANT_FAST)
        return peak / first;
    float gain = 0, scale = 0;
    for (int k = -LADDER; k <= LADDER; k++) {
        try_iq4(x, n, (first + 5 * (float)k) / peak, &gain, &scale);
        try_iq4(x, n, (last + 5 * (float)k) / peak, &gain, &scale);
    }
    for (int k = 0; k < SETTLE && scale != 0; k++)
        try_iq4(x, n, 1 / scale, &gain, &scale);
    return scale;
}
