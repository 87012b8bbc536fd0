/* matrix.c - MFMA and SMFMAC: a wave multiplies small matrices.
 *
 * Where the elements are. An operand of A or B has E elements per lane (as many as fit into its
 * registers); lane l holds row i = l % M of A (column j = l % N of B). The 64 / M groups of lanes
 * are, in this order, the blocks and within a block the parts of K: group g of block b holds k = E
 * * g to E * g + E - 1. Only f64 in blocks of 4 x 4 differs: there the parts of K are the outer
 * ones.
 *
 *   D, 32 x 32   register v of block b: row 8 * (v / 4) + 4 * (l / 32) + v % 4, column l % 32
 *   D, 16 x 16   row 4 * (l / 16) + v, column l % 16 (f64: row 4 * v + l / 16)
 *   D, 4 x 4     row v, column l % 4, block l / 4 (f64: row l / 16, block l / 4 % 4)
 *
 * Lanes that are off take part: EXEC does not matter here. Sums are made in the order of k; in
 * which order the hardware makes them is not documented, so that floating-point results are
 * approximate in their last bits. gfx90a treats f16 and bf16 denormals, and f32 results that are
 * denormal, as 0 in these instructions; gfx942 does not. */
#include "isa/action.h"

#include <math.h>

enum element { F32, XF32, F16, BF16, FP8, BF8, I8, I32, F64 };

struct shape {
    uint8_t m, n, k, blocks;
    uint8_t a, b, d; /* enum element */
    bool sparse;
};

static const struct shape shapes[ISA_OP_COUNT] = {
#define MATRIX(name, m, n, k, blocks, a, b, d)                                                     \
    [ISA_OP_##name] = { m, n, k, blocks, a, b, d, false },
#define SPARSE(name, m, n, k, a, b, d) [ISA_OP_##name] = { m, n, k, 1, a, b, d, true },
#include "isa/matrix.def"
#undef MATRIX
#undef SPARSE
};

/* ---- elements -------------------------------------------------------------------------------- */

static unsigned element_bytes(enum element e) {
    static const uint8_t bytes[] = { [F32] = 4, [XF32] = 4, [F16] = 2, [BF16] = 2, [FP8] = 1,
                                     [BF8] = 1, [I8] = 1,   [I32] = 4, [F64] = 8 };
    return bytes[e];
}

/* 8 bits without infinities and without a negative zero, which is the only NaN: 4 or 5 bits of
 * exponent. */
static float eight_bits(uint8_t bits, int exponent_bits) {
    int mantissa_bits = 7 - exponent_bits, bias = 1 << (exponent_bits - 1);
    int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
    int mantissa = bits & ((1 << mantissa_bits) - 1);
    if (bits == 0x80)
        return NAN;
    float magnitude =
        exponent ? ldexpf((float)(mantissa | 1 << mantissa_bits), exponent - bias - mantissa_bits)
                 : ldexpf((float)mantissa, 1 - bias - mantissa_bits);
    return bits & 0x80 ? -magnitude : magnitude;
}

static float flushed(float f, bool flush) {
    return flush && fabsf(f) < 0x1p-126f ? copysignf(0, f) : f;
}

/* Rounded to the 10 bits of mantissa that xf32 has. */
static uint32_t round_xf32(uint32_t bits) {
    return (bits & 0x7f800000u) == 0x7f800000u
               ? bits
               : (bits + 0xfff + (bits >> 13 & 1)) & ~UINT32_C(0x1fff);
}

static float element_value(enum element e, const uint8_t *at, bool flush) {
    uint32_t bits;
    uint16_t half;
    float f;
    switch (e) {
    case F16:
        memcpy(&half, at, sizeof half);
        return flush && !(half & 0x7c00) ? copysignf(0, half & 0x8000 ? -1.0f : 1.0f)
                                         : isa_half_to_float(half);
    case BF16:
        memcpy(&half, at, sizeof half);
        return flushed(isa_bfloat_to_float(half), flush);
    case FP8:
        return eight_bits(*at, 4);
    case BF8:
        return eight_bits(*at, 5);
    case I8:
        return (float)(int8_t)*at;
    default:
        memcpy(&bits, at, sizeof bits);
        bits = e == XF32 ? round_xf32(bits) : bits;
        memcpy(&f, &bits, sizeof f);
        return f;
    }
}

/* ---- A and B --------------------------------------------------------------------------------- */

enum { ELEMENTS_MAX = 1024 }; /* 64 lanes with at most 16 */

struct elements {
    union {
        float f[ELEMENTS_MAX];
        int32_t i[ELEMENTS_MAX];
        double d[ELEMENTS_MAX];
    };
};

/* The operands of one instruction: A as [block][row][k], B as [block][k][column]. `along` says
 * which k of B an element of A meets: its own, unless A is sparse. */
struct operands {
    struct elements a, b;
    uint8_t along[ELEMENTS_MAX];
    unsigned a_k; /* elements of a row of A: k, or k / 2 */
};

/* Where a lane's elements are: of which block and side, and from which k on. */
struct part {
    unsigned block, side, k, count;
};

static struct part part_of(const struct shape *s, unsigned lane, unsigned side, unsigned k) {
    unsigned group = lane / side, parts = ISA_LANES / side / s->blocks, count = k / parts;
    bool outer = s->d == F64 && side == 4;
    unsigned block = outer ? group % s->blocks : group / parts;
    unsigned part = outer ? group / s->blocks : group % parts;
    return (struct part){ block, lane % side, part * count, count };
}

static void store_element(struct elements *out, unsigned at, enum element type,
                          const uint8_t *bytes, bool flush) {
    if (type == F64)
        memcpy(&out->d[at], bytes, sizeof out->d[at]);
    else if (type == I8)
        out->i[at] = (int8_t)*bytes;
    else
        out->f[at] = element_value(type, bytes, flush);
}

/* The bytes of a lane's registers, in order. */
static void lane_bytes(struct isa_wave *w, unsigned code, unsigned lane, unsigned bytes,
                       uint8_t out[16]) {
    const uint32_t(*rows)[ISA_LANES] = (const uint32_t(*)[ISA_LANES])isa_rows_at(w, code);
    for (unsigned d = 0; d < (bytes + 3) / 4; d++)
        memcpy(out + 4 * d, &rows[d][lane], 4);
}

/* The block whose A block b gets: cbsz groups them, abid is the one of its group that all get. */
static unsigned broadcast(unsigned b, unsigned ext) {
    unsigned size = 1u << (ext & 7), abid = ext >> 4 & 15;
    return (b & ~(size - 1)) | (abid & (size - 1));
}

/* The lane that gives lane l its values of B. */
static unsigned lane_group(unsigned l, unsigned pattern) {
    switch (pattern) {
    case 1: /* the first or the second 32 lanes, twice */
    case 2:
        return (l & 31) | (pattern - 1) << 5;
    case 3: /* rotated by 16 lanes */
        return (l + 16) & 63;
    case 4: /* one group of 16 lanes, four times */
    case 5:
    case 6:
    case 7:
        return (l & 15) | (pattern - 4) << 4;
    default:
        return l;
    }
}

/* Two bits per element of a sparse A, which of four it is; four or two sets of them share a
 * register.
 */
static uint32_t sparse_index(struct isa_wave *w, const struct isa_insn *i, unsigned lane,
                             unsigned count) {
    unsigned set = i->ext & 7 ? 0 : (i->ext >> 4 & 15) % (16 / count);
    return isa_row(w, i->src[2])[lane] >> (2 * count * set);
}

static void read_a(struct isa_wave *w, const struct isa_insn *i, const struct shape *s, bool flush,
                   struct operands *o) {
    unsigned bytes = element_bytes(s->a);
    uint8_t text[16] = { 0 };
    o->a_k = s->sparse ? s->k / 2u : s->k;
    for (unsigned lane = 0; lane < ISA_LANES; lane++) {
        struct part p = part_of(s, lane, s->m, o->a_k);
        uint32_t index = s->sparse ? sparse_index(w, i, lane, p.count) : 0;
        unsigned from = lane;
        if (s->blocks > 1 && s->d != F64)
            from = lane % s->m + s->m * broadcast(p.block, i->ext);
        lane_bytes(w, i->src[0], from, p.count * bytes, text);
        for (unsigned e = 0; e < p.count; e++) {
            unsigned at = (p.block * s->m + p.side) * o->a_k + p.k + e;
            store_element(&o->a, at, s->a, text + e * bytes, flush);
            o->along[at] = (uint8_t)(p.k + e);
            if (s->sparse)
                o->along[at] = (uint8_t)((p.k + e) / 2 * 4 + (index >> (2 * e) & 3));
        }
    }
}

static void read_b(struct isa_wave *w, const struct isa_insn *i, const struct shape *s, bool flush,
                   struct operands *o) {
    unsigned bytes = element_bytes(s->b), pattern = s->d == F64 ? 0 : i->ext >> 8;
    uint8_t text[16] = { 0 };
    for (unsigned lane = 0; lane < ISA_LANES; lane++) {
        struct part p = part_of(s, lane, s->n, s->k);
        lane_bytes(w, i->src[1], lane_group(lane, pattern), p.count * bytes, text);
        for (unsigned e = 0; e < p.count; e++)
            store_element(&o->b, (p.block * s->k + p.k + e) * s->n + p.side, s->b, text + e * bytes,
                          flush);
    }
}

/* ---- C and D --------------------------------------------------------------------------------- */

static unsigned result_registers(const struct shape *s) {
    return (unsigned)s->m * s->n * s->blocks / ISA_LANES;
}

/* The place of register v (of results, not of dwords) of a lane in [block][row][column]. */
static unsigned result_place(const struct shape *s, unsigned v, unsigned l) {
    unsigned block, row, column = l % s->n;
    if (s->m == 32) {
        block = v / 16;
        row = 8 * (v % 16 / 4) + 4 * (l / 32) + v % 4;
    } else if (s->m == 16) {
        block = v / 4;
        row = s->d == F64 ? 4 * v + l / 16 : 4 * (l / 16) + v % 4;
    } else {
        block = s->d == F64 ? l / 4 % 4 : l / 4;
        row = s->d == F64 ? l / 16 : v;
    }
    return (block * s->m + row) * s->n + column;
}

/* 64 lanes with at most 32 registers */
union results {
    float f[2048];
    uint32_t i[2048];
    double d[1024];
};

static void read_c(struct isa_wave *w, const struct isa_insn *i, const struct shape *s,
                   union results *r) {
    unsigned code = s->sparse ? i->dst : i->src[2], registers = result_registers(s);
    bool wide = s->d == F64, constant = code < ISA_VGPR0;
    uint32_t value = constant ? isa_scalar32(w, i, code) : 0;
    uint64_t pair = constant ? isa_scalar64(w, i, code, ISA_TYPE_F64) : 0;
    for (unsigned v = 0; v < registers; v++)
        for (unsigned l = 0; l < ISA_LANES; l++) {
            unsigned at = result_place(s, v, l);
            if (wide) {
                const uint32_t *low = constant ? NULL : isa_row(w, code + 2 * v);
                uint64_t bits = low ? low[l] | (uint64_t)low[l + ISA_LANES] << 32 : pair;
                memcpy(&r->d[at], &bits, sizeof bits);
            } else {
                r->i[at] = constant ? value : isa_row(w, code + v)[l];
            }
        }
}

static void write_d(struct isa_wave *w, const struct isa_insn *i, const struct shape *s,
                    const union results *r) {
    unsigned registers = result_registers(s);
    for (unsigned v = 0; v < registers; v++)
        for (unsigned l = 0; l < ISA_LANES; l++) {
            unsigned at = result_place(s, v, l);
            if (s->d == F64) {
                uint64_t bits;
                memcpy(&bits, &r->d[at], sizeof bits);
                isa_row(w, i->dst + 2 * v)[l] = (uint32_t)bits;
                isa_row(w, i->dst + 2 * v + 1)[l] = (uint32_t)(bits >> 32);
            } else {
                isa_row(w, i->dst + v)[l] = r->i[at];
            }
        }
}

/* ---- products -------------------------------------------------------------------------------- */

/* R += A * B, row by row; `sum` is what an element of R becomes from itself (c), a and b. Columns
 * are the inner loop, so that compilers make vectors of it. */
#define MULTIPLY(name, member, type, result, sum)                                                  \
    static inline void name##_columns(const struct shape *s, const struct operands *o,             \
                                      union results *r, unsigned n) {                              \
        for (unsigned row = 0; row < (unsigned)s->blocks * s->m; row++)                            \
            for (unsigned e = 0; e < o->a_k; e++) {                                                \
                unsigned at = row * o->a_k + e;                                                    \
                const type *b_row = &o->b.member[(row / s->m * s->k + o->along[at]) * n];          \
                type a = o->a.member[at];                                                          \
                for (unsigned column = 0; column < n; column++) {                                  \
                    type b = b_row[column];                                                        \
                    result *c = &r->member[row * n + column];                                      \
                    *c = sum;                                                                      \
                }                                                                                  \
            }                                                                                      \
    }                                                                                              \
    static void name(const struct shape *s, const struct operands *o, union results *r) {          \
        if (s->n == 32)                                                                            \
            name##_columns(s, o, r, 32);                                                           \
        else if (s->n == 16)                                                                       \
            name##_columns(s, o, r, 16);                                                           \
        else                                                                                       \
            name##_columns(s, o, r, 4);                                                            \
    }
/* A product of two elements of up to 12 bits of mantissa is exact in f32. */
MULTIPLY(multiply_small, f, float, float, *c + a * b)
MULTIPLY(multiply_f32, f, float, float, (float)((double)*c + (double)a * (double)b))
MULTIPLY(multiply_i8, i, int32_t, uint32_t, *c + (uint32_t)(a * b))
MULTIPLY(multiply_f64, d, double, double, fma(a, b, *c))

/* f64 has signs to change where the others have a pattern of lanes. */
static void negate_f64(const struct isa_insn *i, const struct shape *s, struct operands *o,
                       union results *r) {
    unsigned neg = i->ext >> 8;
    for (unsigned at = 0; at < ISA_LANES && neg & 1; at++)
        o->a.d[at] = -o->a.d[at];
    for (unsigned at = 0; at < ISA_LANES && neg & 2; at++)
        o->b.d[at] = -o->b.d[at];
    for (unsigned at = 0; at < result_registers(s) * ISA_LANES && neg & 4; at++)
        r->d[at] = -r->d[at];
}

static void flush_results(union results *r, unsigned count) {
    for (unsigned at = 0; at < count; at++)
        r->f[at] = flushed(r->f[at], true);
}

static enum isa_result multiply(struct isa_wave *w, const struct isa_insn *i) {
    const struct shape *s = &shapes[i->op];
    struct operands o;
    union results r;
    bool flush = isa_code_gpu(w->code) == ISA_GFX90A && (s->a == F16 || s->a == BF16);
    read_a(w, i, s, flush, &o);
    read_b(w, i, s, flush, &o);
    read_c(w, i, s, &r);
    if (s->d == F64) {
        if (i->ext >> 8)
            negate_f64(i, s, &o, &r);
        multiply_f64(s, &o, &r);
    } else if (s->d == I32) {
        multiply_i8(s, &o, &r);
    } else if (s->a == F32) {
        multiply_f32(s, &o, &r);
    } else {
        multiply_small(s, &o, &r);
    }
    if (flush)
        flush_results(&r, result_registers(s) * ISA_LANES);
    write_d(w, i, s, &r);
    return ISA_CONTINUE;
}

/* ---- AGPRs ----------------------------------------------------------------------------------- */

static enum isa_result move(struct isa_wave *w, const struct isa_insn *i) {
    uint64_t exec = ISA_WAVE_EXEC(w);
    uint32_t *dst = isa_row(w, i->dst), values[ISA_LANES];
    if (i->src[0] >= ISA_VGPR0)
        memcpy(values, isa_row(w, i->src[0]), sizeof values);
    else
        for (unsigned l = 0; l < ISA_LANES; l++)
            values[l] = isa_scalar32(w, i, i->src[0]);
    for (ISA_EACH_LANE(l, exec))
        dst[l] = values[l];
    return ISA_CONTINUE;
}

const isa_exec_fn isa_group_matrix[ISA_OP_COUNT] = {
#define MATRIX(name, m, n, k, blocks, a, b, d) [ISA_OP_##name] = multiply,
#define SPARSE(name, m, n, k, a, b, d)         [ISA_OP_##name] = multiply,
#include "isa/matrix.def"
#undef MATRIX
#undef SPARSE
    [ISA_OP_v_accvgpr_read_b32] = move,
    [ISA_OP_v_accvgpr_write_b32] = move,
    [ISA_OP_v_accvgpr_mov_b32] = move,
};
