/* matrix.c - MFMA and SMFMAC: a wave multiplies small matrices.
 *
 * Where the elements are. An operand of A or B has E elements per lane (as many as fit into its
 * registers); lane l holds row i = l % M of A (column j = l % N of B). The 64 / M groups of lanes
 * are, in this order, the blocks and within a block the parts of K: group g of block b holds the k
 * from E * g to E * g + E - 1. Only f64 in blocks of 4 x 4 differs: there the parts of K are the
 * outer ones.
 *
 *   D, 32 x 32   register v of block b: row 8 * (v / 4) + 4 * (l / 32) + v % 4, column l % 32
 *   D, 16 x 16   row 4 * (l / 16) + v, column l % 16 (f64: row 4 * v + l / 16)
 *   D, 4 x 4     row v, column l % 4, block l / 4 (f64: row l / 16, block l / 4 % 4)
 *
 * Lanes that are off take part: EXEC does not matter here. Sums are made in the order of k; in
 * which order the hardware makes them is not documented, so that floating-point results are
 * approximate in their last bits. gfx90a treats f16 and bf16 denormals, and f32 results that are
 * denormal, as 0 in these instructions; gfx942 does not. */
#include "isa/exec.h"
#include "isa/floats.h"
#include "isa/rows.h"

enum element {
    F32 = ISA_ELEMENT_F32,
    XF32 = ISA_ELEMENT_XF32,
    F16 = ISA_ELEMENT_F16,
    BF16 = ISA_ELEMENT_BF16,
    FP8 = ISA_ELEMENT_FP8,
    BF8 = ISA_ELEMENT_BF8,
    I8 = ISA_ELEMENT_I8,
    I32 = ISA_ELEMENT_I32,
    F64 = ISA_ELEMENT_F64
};

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

unsigned isa_matrix_products(enum isa_op op, unsigned *bytes) {
    const struct shape *s = &shapes[op];
    *bytes = s->m ? element_bytes((enum element)s->a) : 0;
    return (unsigned)s->m * s->n * s->k * s->blocks;
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
 * which k of B an element of a sparse A meets. */
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

/* The elements of an operand as its registers hold them: [register][lane][element]. */
struct widened {
    unsigned bytes;   /* of an element in a register */
    unsigned dwords;  /* of a lane */
    unsigned per_row; /* elements of a lane in one register; 1 for f64, whose registers are pairs */
    union {
        float f[4][4 * ISA_LANES];
        int32_t i[4][4 * ISA_LANES];
        double d[2][ISA_LANES];
    };
};

static void widen(struct isa_wave *w, unsigned code, enum element type, unsigned count, bool flush,
                  struct widened *out) {
    out->bytes = element_bytes(type);
    out->per_row = type == F64 ? 1 : 4 / out->bytes;
    out->dwords = (count + out->per_row - 1) / out->per_row;
    unsigned d = 0;
    do {
        const uint32_t *low = isa_row(w, code + (type == F64 ? 2 * d : d));
        isa_rows_chosen->widen(type == F64 ? (void *)out->d[d] : (void *)out->f[d], low,
                               (enum isa_element)type, flush);
    } while (++d < out->dwords);
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
    unsigned sets = count == 8 ? 2 : 4, set = i->ext & 7 ? 0 : (i->ext >> 4 & 15) % sets;
    return isa_row(w, i->src[2])[lane] >> (2 * count * set);
}

static void read_a(struct isa_wave *w, const struct isa_insn *i, const struct shape *s, bool flush,
                   struct operands *o) {
    struct widened in;
    o->a_k = s->sparse ? s->k / 2u : s->k;
    widen(w, i->src[0], s->a, part_of(s, 0, s->m, o->a_k).count, flush, &in);
    for (unsigned lane = 0; lane < ISA_LANES; lane++) {
        struct part p = part_of(s, lane, s->m, o->a_k);
        unsigned from = lane, at = (p.block * s->m + p.side) * o->a_k + p.k;
        if (s->blocks > 1 && s->d != F64)
            from = lane % s->m + s->m * broadcast(p.block, i->ext);
        for (unsigned e = 0; e < p.count; e++) {
            if (s->a == F64)
                o->a.d[at + e] = in.d[e][from];
            else
                o->a.i[at + e] = in.i[e / in.per_row][from * in.per_row + e % in.per_row];
        }
        if (!s->sparse)
            continue;
        uint32_t index = sparse_index(w, i, lane, p.count);
        for (unsigned e = 0; e < p.count; e++)
            o->along[at + e] = (uint8_t)((p.k + e) / 2 * 4 + (index >> (2 * e) & 3));
    }
}

static void read_b(struct isa_wave *w, const struct isa_insn *i, const struct shape *s, bool flush,
                   struct operands *o) {
    unsigned pattern = s->d == F64 ? 0 : i->ext >> 8;
    struct widened in;
    widen(w, i->src[1], s->b, part_of(s, 0, s->n, s->k).count, flush, &in);
    for (unsigned lane = 0; lane < ISA_LANES; lane++) {
        struct part p = part_of(s, lane, s->n, s->k);
        unsigned from = lane_group(lane, pattern), at = (p.block * s->k + p.k) * s->n + p.side;
        for (unsigned e = 0; e < p.count; e++, at += s->n) {
            if (s->b == F64)
                o->b.d[at] = in.d[e][from];
            else
                o->b.i[at] = in.i[e / in.per_row][from * in.per_row + e % in.per_row];
        }
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

/* Lanes l to l + n - 1 of a register are a row of n columns. */
static void read_c(struct isa_wave *w, const struct isa_insn *i, const struct shape *s,
                   union results *r) {
    unsigned code = s->sparse ? i->dst : i->src[2], registers = result_registers(s);
    bool constant = code < ISA_VGPR0;
    uint32_t value = constant ? isa_scalar32(w, i, code) : 0;
    uint64_t pair = constant ? isa_scalar64(w, i, code, ISA_TYPE_F64) : 0;
    uint64_t sign = (uint64_t)(i->ext >> 10 & 1) << 63; /* f64: neg of C, as in negate_f64() */
    for (unsigned v = 0; v < registers; v++)
        for (unsigned l = 0; l < ISA_LANES; l += s->n) {
            unsigned at = result_place(s, v, l);
            if (s->d == F64) {
                const uint32_t *low = constant ? NULL : isa_row(w, code + 2 * v) + l;
                for (unsigned j = 0; j < s->n; j++)
                    r->d[at + j] = isa_double(
                        (low ? low[j] | (uint64_t)low[j + ISA_LANES] << 32 : pair) ^ sign);
            } else if (constant) {
                for (unsigned j = 0; j < s->n; j++)
                    r->i[at + j] = value;
            } else {
                memcpy(&r->i[at], isa_row(w, code + v) + l, s->n * sizeof r->i[0]);
            }
        }
}

static void write_d(struct isa_wave *w, const struct isa_insn *i, const struct shape *s,
                    const union results *r) {
    unsigned registers = result_registers(s);
    for (unsigned v = 0; v < registers; v++)
        for (unsigned l = 0; l < ISA_LANES; l += s->n) {
            unsigned at = result_place(s, v, l);
            uint32_t *to = isa_row(w, i->dst + (s->d == F64 ? 2 * v : v)) + l;
            if (s->d != F64) {
                memcpy(to, &r->i[at], s->n * sizeof r->i[0]);
                continue;
            }
            for (unsigned j = 0; j < s->n; j++) {
                to[j] = (uint32_t)isa_bits64(r->d[at + j]);
                to[j + ISA_LANES] = (uint32_t)(isa_bits64(r->d[at + j]) >> 32);
            }
        }
}

/* ---- products -------------------------------------------------------------------------------- */

static enum isa_multiply multiply_of(const struct shape *s) {
    if (s->d == F64)
        return ISA_MULTIPLY_F64;
    if (s->d == I32)
        return ISA_MULTIPLY_I8;
    return s->a == F32 ? ISA_MULTIPLY_F32 : ISA_MULTIPLY_SMALL;
}

/* R += A * B, row by row. */
static void multiply_rows(const struct shape *s, const struct operands *o, union results *r) {
    static const uint8_t in_order[64] = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,
                                          13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
                                          26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38,
                                          39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51,
                                          52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63 };
    size_t size = s->d == F64 ? 8 : 4;
    void (*multiply)(const struct isa_product *p) = isa_rows_chosen->multiply[multiply_of(s)];
    for (unsigned row = 0; row < (unsigned)s->blocks * s->m; row++) {
        struct isa_product p = {
            .n = s->n,
            .k = o->a_k,
            .a = (const uint8_t *)&o->a + row * o->a_k * size,
            .b = (const uint8_t *)&o->b + (size_t)(row / s->m) * s->k * s->n * size,
            .c = (uint8_t *)r + (size_t)row * s->n * size,
            .along = s->sparse ? o->along + (size_t)row * o->a_k : in_order,
        };
        multiply(&p);
    }
}

/* f64 has signs of A, B and C to change where the others have a pattern of lanes. */
static void negate_f64(const struct isa_insn *i, struct operands *o) {
    unsigned neg = i->ext >> 8;
    for (unsigned at = 0; at < ISA_LANES && neg & 1; at++)
        o->a.d[at] = -o->a.d[at];
    for (unsigned at = 0; at < ISA_LANES && neg & 2; at++)
        o->b.d[at] = -o->b.d[at];
}

static void flush_results(union results *r, unsigned count) {
    for (unsigned at = 0; at < count; at++)
        r->i[at] = (r->i[at] & 0x7f800000) == 0 ? r->i[at] & 0x80000000 : r->i[at];
}

static enum isa_result multiply(struct isa_wave *w, const struct isa_insn *i) {
    const struct shape *s = &shapes[i->op];
    struct operands o;
    union results r;
    bool flush = isa_code_gpu(w->code) == ISA_GFX90A && (s->a == F16 || s->a == BF16);
    if (s->blocks > 1 && s->d != F64 && 1u << (i->ext & 7) > s->blocks)
        return isa_stop_unsupported(w, i, "cbsz is for more blocks than there are");
    read_a(w, i, s, flush, &o);
    read_b(w, i, s, flush, &o);
    read_c(w, i, s, &r);
    if (s->d == F64 && i->ext >> 8)
        negate_f64(i, &o);
    multiply_rows(s, &o, &r);
    if (flush)
        flush_results(&r, result_registers(s) * ISA_LANES);
    write_d(w, i, s, &r);
    return ISA_CONTINUE;
}

/* ---- AGPRs ----------------------------------------------------------------------------------- */

/* Compilers spill registers to AGPRs, so that these are as common as other moves. */
static enum isa_result move(struct isa_wave *w, const struct isa_insn *i) {
    _Alignas(64) uint32_t spread[ISA_LANES];
    const uint32_t *from = spread;
    if (i->src[0] >= ISA_VGPR0)
        from = isa_row(w, i->src[0]);
    else
        isa_rows_chosen->fill(spread, isa_scalar32(w, i, i->src[0]));
    isa_rows_chosen->merge(isa_row(w, i->dst), from, ISA_WAVE_EXEC(w));
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
