/* rows_matrix.h - elements of matrices, and products of a row of A with B; for rows_body.h. */
#ifndef ISA_ROWS_MATRIX_H
#define ISA_ROWS_MATRIX_H

#include "isa/floats.h"
#include "isa/rows.h"

/* ---- elements ---- */

static inline float flush_element(float f) {
    uint32_t u = isa_bits(f);
    return isa_float((u & 0x7f800000) == 0 ? u & 0x80000000 : u);
}

/* Rounded to the 10 bits of mantissa that xf32 has. */
static inline uint32_t round_xf32(uint32_t u) {
    uint32_t rounded = (u + 0xfff + (u >> 13 & 1)) & ~UINT32_C(0x1fff);
    return (u & 0x7f800000) == 0x7f800000 ? u : rounded;
}

static void widen_halves(float *d, const uint32_t *s, bool flush) {
    for (int at = 0; at < 2 * ISA_LANES; at += HALVES) {
        halves some = get_halves(s, at);
        memcpy(d + at, &some, sizeof some);
    }
    if (flush) /* denormal as f16: less than 2^-14 */
        for (int at = 0; at < 2 * ISA_LANES; at++) {
            uint32_t u = isa_bits(d[at]);
            d[at] = isa_float((u & 0x7fffffff) < 0x38800000 ? u & 0x80000000 : u);
        }
}

static void widen_bfloats(float *d, const uint32_t *s, bool flush) {
    for (int l = 0; l < ISA_LANES; l++) {
        float low = isa_from_bf16(s[l] & 0xffff), high = isa_from_bf16(s[l] >> 16);
        d[2 * l] = flush ? flush_element(low) : low;
        d[2 * l + 1] = flush ? flush_element(high) : high;
    }
}

static void widen(void *to, const uint32_t *s, enum isa_element type, bool flush) {
    const uint8_t *bytes = (const uint8_t *)s;
    float *d = to;
    int32_t *integers = to;
    double *doubles = to;
    switch (type) {
    case ISA_ELEMENT_F16:
        widen_halves(d, s, flush);
        break;
    case ISA_ELEMENT_BF16:
        widen_bfloats(d, s, flush);
        break;
    case ISA_ELEMENT_FP8:
        for (int at = 0; at < 4 * ISA_LANES; at++)
            d[at] = isa_from_fp8(bytes[at]);
        break;
    case ISA_ELEMENT_BF8:
        for (int at = 0; at < 4 * ISA_LANES; at++)
            d[at] = isa_from_bf8(bytes[at]);
        break;
    case ISA_ELEMENT_I8:
        for (int at = 0; at < 4 * ISA_LANES; at++)
            integers[at] = (int8_t)bytes[at];
        break;
    case ISA_ELEMENT_XF32:
        for (int l = 0; l < ISA_LANES; l++)
            d[l] = isa_float(round_xf32(s[l]));
        break;
    case ISA_ELEMENT_F64:
        for (int l = 0; l < ISA_LANES; l++)
            doubles[l] = isa_double(s[l] | (uint64_t)s[ISA_LANES + l] << 32);
        break;
    default:
        memcpy(d, s, ISA_LANES * sizeof *s);
    }
}

/* ---- products ---- */

/* `sum` is what an element of C becomes from itself (c), a and b. The columns are a constant number
 * and stay in registers. */
#define MULTIPLY(name, type, result, sum)                                                          \
    static inline void name##_columns(const struct isa_product *p, const unsigned n) {             \
        const type *as = p->a, *bs = p->b;                                                         \
        result *to = p->c, cs[32];                                                                 \
        memcpy(cs, to, n * sizeof *cs);                                                            \
        for (unsigned e = 0; e < p->k; e++) {                                                      \
            const type a = as[e], *row = bs + (size_t)p->along[e] * n;                             \
            for (unsigned j = 0; j < n; j++) {                                                     \
                const type b = row[j];                                                             \
                const result c = cs[j];                                                            \
                cs[j] = sum;                                                                       \
            }                                                                                      \
        }                                                                                          \
        memcpy(to, cs, n * sizeof *cs);                                                            \
    }                                                                                              \
    static void name(const struct isa_product *p) {                                                \
        if (p->n == 32)                                                                            \
            name##_columns(p, 32);                                                                 \
        else if (p->n == 16)                                                                       \
            name##_columns(p, 16);                                                                 \
        else                                                                                       \
            name##_columns(p, 4);                                                                  \
    }
/* A product of two elements of up to 12 bits of mantissa is exact in f32. */
MULTIPLY(multiply_small, float, float, c + a * b)
MULTIPLY(multiply_f32, float, float, __builtin_fmaf(a, b, c))
MULTIPLY(multiply_i8, int32_t, uint32_t, c + (uint32_t)(a * b))
MULTIPLY(multiply_f64, double, double, __builtin_fma(a, b, c))
#undef MULTIPLY

#endif
