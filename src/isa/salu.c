/* salu.c - scalar arithmetic: SOP1, SOP2, SOPC, SOPK. Branches are in program.c. */
#include "isa/exec.h"

#define EXEC_FN(name) static enum isa_result name(struct isa_wave *w, const struct isa_insn *i)

static inline uint32_t src32(const struct isa_wave *w, const struct isa_insn *i, int s) {
    return isa_scalar32(w, i, i->src[s]);
}
static inline uint64_t src64(const struct isa_wave *w, const struct isa_insn *i, int s) {
    return isa_scalar64(w, i, i->src[s], isa_info[i->op].type[s + 1]);
}

/* D = an expression of a and b (the sources). */
#define OP32(name, expression)                                                                     \
    EXEC_FN(name) {                                                                                \
        uint32_t a = src32(w, i, 0), b = src32(w, i, 1);                                           \
        (void)a, (void)b;                                                                          \
        isa_write32(w, i->dst, (expression));                                                      \
        return ISA_CONTINUE;                                                                       \
    }
/* The same, and SCC = D is not zero. */
#define OP32Z(name, expression)                                                                    \
    EXEC_FN(name) {                                                                                \
        uint32_t a = src32(w, i, 0), b = src32(w, i, 1);                                           \
        (void)a, (void)b;                                                                          \
        uint32_t d = (expression);                                                                 \
        isa_write32(w, i->dst, d);                                                                 \
        w->scc = d != 0;                                                                           \
        return ISA_CONTINUE;                                                                       \
    }
/* The same of 64 bits. */
#define OP64Z(name, expression)                                                                    \
    EXEC_FN(name) {                                                                                \
        uint64_t a = src64(w, i, 0), b = src64(w, i, 1);                                           \
        uint64_t d = (expression);                                                                 \
        isa_write64(w, i->dst, d);                                                                 \
        w->scc = d != 0;                                                                           \
        return ISA_CONTINUE;                                                                       \
    }
/* 64 bits by a count of 32 bits. */
#define SHIFT64Z(name, expression)                                                                 \
    EXEC_FN(name) {                                                                                \
        uint64_t a = src64(w, i, 0);                                                               \
        uint32_t b = src32(w, i, 1);                                                               \
        uint64_t d = (expression);                                                                 \
        isa_write64(w, i->dst, d);                                                                 \
        w->scc = d != 0;                                                                           \
        return ISA_CONTINUE;                                                                       \
    }
/* D and SCC are set by a statement. */
#define OP32S(name, statement)                                                                     \
    EXEC_FN(name) {                                                                                \
        uint32_t a = src32(w, i, 0), b = src32(w, i, 1), d, scc;                                   \
        statement;                                                                                 \
        isa_write32(w, i->dst, d);                                                                 \
        w->scc = scc;                                                                              \
        return ISA_CONTINUE;                                                                       \
    }

/* ---- SOP2 ---- */

static inline int overflows_add(uint32_t a, uint32_t b, uint32_t d) {
    return (int)((~(a ^ b) & (a ^ d)) >> 31);
}
static inline int overflows_sub(uint32_t a, uint32_t b, uint32_t d) {
    return (int)(((a ^ b) & (a ^ d)) >> 31);
}

OP32S(s_add_u32, d = a + b; scc = d < a)
OP32S(s_sub_u32, d = a - b; scc = a < b)
OP32S(s_add_i32, d = a + b; scc = (uint32_t)overflows_add(a, b, d))
OP32S(s_sub_i32, d = a - b; scc = (uint32_t)overflows_sub(a, b, d))
OP32S(s_addc_u32, uint64_t sum = (uint64_t)a + b + w->scc; d = (uint32_t)sum;
      scc = (uint32_t)(sum >> 32))
OP32S(s_subb_u32, uint64_t sum = (uint64_t)a - b - w->scc; d = (uint32_t)sum;
      scc = (uint32_t)(sum >> 32) & 1)
OP32S(s_min_i32, scc = (int32_t)a < (int32_t)b; d = scc ? a : b)
OP32S(s_min_u32, scc = a < b; d = scc ? a : b)
OP32S(s_max_i32, scc = (int32_t)a > (int32_t)b; d = scc ? a : b)
OP32S(s_max_u32, scc = a > b; d = scc ? a : b)
OP32(s_cselect_b32, w->scc ? a : b)
OP32Z(s_and_b32, a &b)
OP64Z(s_and_b64, a &b)
OP32Z(s_or_b32, a | b)
OP64Z(s_or_b64, a | b)
OP32Z(s_xor_b32, a ^ b)
OP64Z(s_xor_b64, a ^ b)
OP32Z(s_andn2_b32, a & ~b)
OP64Z(s_andn2_b64, a & ~b)
OP32Z(s_orn2_b32, a | ~b)
OP64Z(s_orn2_b64, a | ~b)
OP32Z(s_nand_b32, ~(a &b))
OP64Z(s_nand_b64, ~(a &b))
OP32Z(s_nor_b32, ~(a | b))
OP64Z(s_nor_b64, ~(a | b))
OP32Z(s_xnor_b32, ~(a ^ b))
OP64Z(s_xnor_b64, ~(a ^ b))
OP32Z(s_lshl_b32, a << (b & 31))
SHIFT64Z(s_lshl_b64, a << (b & 63))
OP32Z(s_lshr_b32, a >> (b & 31))
SHIFT64Z(s_lshr_b64, a >> (b & 63))
OP32Z(s_ashr_i32, (uint32_t)((int32_t)a >> (b & 31)))
SHIFT64Z(s_ashr_i64, (uint64_t)((int64_t)a >> (b & 63)))
OP32(s_bfm_b32, ((1u << (a & 31)) - 1) << (b & 31))
OP32(s_mul_i32, a *b)
OP32(s_mul_hi_u32, (uint32_t)((uint64_t)a *b >> 32))
OP32(s_mul_hi_i32, (uint32_t)((int64_t)(int32_t)a *(int32_t)b >> 32))
OP32(s_pack_ll_b32_b16, (a & 0xffff) | b << 16)
OP32(s_pack_lh_b32_b16, (a & 0xffff) | (b & 0xffff0000))
OP32(s_pack_hh_b32_b16, a >> 16 | (b & 0xffff0000))
OP32Z(s_absdiff_i32, (int32_t)(a - b) < 0 ? b - a : a - b)

EXEC_FN(s_cselect_b64) {
    uint64_t d = w->scc ? src64(w, i, 0) : src64(w, i, 1);
    isa_write64(w, i->dst, d);
    return ISA_CONTINUE;
}

EXEC_FN(s_bfm_b64) {
    uint64_t ones = (UINT64_C(1) << (src32(w, i, 0) & 63)) - 1;
    isa_write64(w, i->dst, ones << (src32(w, i, 1) & 63));
    return ISA_CONTINUE;
}

/* Bits of a field of `width` bits at `offset`, zero- or sign-extended; bits past the top are those
 * that a shift brings in. */
static uint64_t bitfield(uint64_t value, unsigned bits, unsigned offset, unsigned width, int sign) {
    if (width == 0)
        return 0;
    uint64_t shifted = sign ? (uint64_t)((int64_t)(value << (64 - bits)) >> (64 - bits) >> offset)
                            : value >> offset;
    if (width >= bits)
        return shifted;
    uint64_t field = shifted & ((UINT64_C(1) << width) - 1);
    if (sign && field >> (width - 1) & 1)
        field |= ~UINT64_C(0) << width;
    return field;
}

OP32Z(s_bfe_u32, (uint32_t)bitfield(a, 32, b & 31, b >> 16 & 0x7f, 0))
OP32Z(s_bfe_i32, (uint32_t)bitfield(a, 32, b & 31, b >> 16 & 0x7f, 1))
SHIFT64Z(s_bfe_u64, bitfield(a, 64, b & 63, b >> 16 & 0x7f, 0))
SHIFT64Z(s_bfe_i64, bitfield(a, 64, b & 63, b >> 16 & 0x7f, 1))

#define LSHL_ADD(n)                                                                                \
    OP32S(s_lshl##n##_add_u32, uint64_t sum = ((uint64_t)a << (n)) + b; d = (uint32_t)sum;         \
          scc = sum >> 32 != 0)
LSHL_ADD(1)
LSHL_ADD(2)
LSHL_ADD(3)
LSHL_ADD(4)

/* ---- SOPK: register and K ---- */

EXEC_FN(s_movk_i32) {
    isa_write32(w, i->dst, (uint32_t)(int16_t)i->imm);
    return ISA_CONTINUE;
}

EXEC_FN(s_cmovk_i32) {
    if (w->scc)
        isa_write32(w, i->dst, (uint32_t)(int16_t)i->imm);
    return ISA_CONTINUE;
}

#define CMPK(name, type, k, operator)                                                              \
    EXEC_FN(name) {                                                                                \
        w->scc = (type)w->sgpr[i->dst] operator(type)(k) i->imm;                                   \
        return ISA_CONTINUE;                                                                       \
    }
CMPK(s_cmpk_eq_i32, int32_t, int16_t, ==)
CMPK(s_cmpk_lg_i32, int32_t, int16_t, !=)
CMPK(s_cmpk_gt_i32, int32_t, int16_t, >)
CMPK(s_cmpk_ge_i32, int32_t, int16_t, >=)
CMPK(s_cmpk_lt_i32, int32_t, int16_t, <)
CMPK(s_cmpk_le_i32, int32_t, int16_t, <=)
CMPK(s_cmpk_eq_u32, uint32_t, uint16_t, ==)
CMPK(s_cmpk_lg_u32, uint32_t, uint16_t, !=)
CMPK(s_cmpk_gt_u32, uint32_t, uint16_t, >)
CMPK(s_cmpk_ge_u32, uint32_t, uint16_t, >=)
CMPK(s_cmpk_lt_u32, uint32_t, uint16_t, <)
CMPK(s_cmpk_le_u32, uint32_t, uint16_t, <=)

EXEC_FN(s_addk_i32) {
    uint32_t a = w->sgpr[i->dst], b = (uint32_t)(int16_t)i->imm, d = a + b;
    isa_write32(w, i->dst, d);
    w->scc = (uint32_t)overflows_add(a, b, d);
    return ISA_CONTINUE;
}

EXEC_FN(s_mulk_i32) {
    isa_write32(w, i->dst, w->sgpr[i->dst] * (uint32_t)(int16_t)i->imm);
    return ISA_CONTINUE;
}

/* ---- SOP1 ---- */

#define UNARY32(name, expression)                                                                  \
    EXEC_FN(name) {                                                                                \
        uint32_t a = src32(w, i, 0);                                                               \
        isa_write32(w, i->dst, (expression));                                                      \
        return ISA_CONTINUE;                                                                       \
    }
#define UNARY32Z(name, expression)                                                                 \
    EXEC_FN(name) {                                                                                \
        uint32_t a = src32(w, i, 0), d = (expression);                                             \
        isa_write32(w, i->dst, d);                                                                 \
        w->scc = d != 0;                                                                           \
        return ISA_CONTINUE;                                                                       \
    }
#define UNARY64(name, expression)                                                                  \
    EXEC_FN(name) {                                                                                \
        uint64_t a = src64(w, i, 0);                                                               \
        isa_write64(w, i->dst, (expression));                                                      \
        return ISA_CONTINUE;                                                                       \
    }
#define UNARY64Z(name, expression)                                                                 \
    EXEC_FN(name) {                                                                                \
        uint64_t a = src64(w, i, 0), d = (expression);                                             \
        isa_write64(w, i->dst, d);                                                                 \
        w->scc = d != 0;                                                                           \
        return ISA_CONTINUE;                                                                       \
    }
/* 64 bits to a number of 32 bits. */
#define COUNT64(name, expression)                                                                  \
    EXEC_FN(name) {                                                                                \
        uint64_t a = src64(w, i, 0);                                                               \
        isa_write32(w, i->dst, (uint32_t)(expression));                                            \
        return ISA_CONTINUE;                                                                       \
    }
#define COUNT64Z(name, expression)                                                                 \
    EXEC_FN(name) {                                                                                \
        uint64_t a = src64(w, i, 0);                                                               \
        uint32_t d = (uint32_t)(expression);                                                       \
        isa_write32(w, i->dst, d);                                                                 \
        w->scc = d != 0;                                                                           \
        return ISA_CONTINUE;                                                                       \
    }

static uint64_t reverse(uint64_t a, unsigned bits) {
    uint64_t d = 0;
    for (unsigned n = 0; n < bits; n++)
        d |= (a >> n & 1) << (bits - 1 - n);
    return d;
}

static uint64_t whole_quads(uint64_t a) {
    uint64_t any = (a | a >> 1 | a >> 2 | a >> 3) & UINT64_C(0x1111111111111111);
    return any * 15;
}

static uint64_t quad_mask(uint64_t a) {
    uint64_t d = 0;
    for (unsigned n = 0; n < 16; n++)
        d |= (uint64_t)((a >> 4 * n & 15) != 0) << n;
    return d;
}

static uint64_t every_bit_twice(uint32_t a) {
    uint64_t d = 0;
    for (unsigned n = 0; n < 32; n++)
        d |= (uint64_t)(a >> n & 1) * 3 << 2 * n;
    return d;
}

/* The number of zeros above the highest 1; -1 if all bits are 0. */
static int32_t leading32(uint32_t a) {
    return a ? __builtin_clz(a) : -1;
}
static int32_t leading64(uint64_t a) {
    return a ? __builtin_clzll(a) : -1;
}

UNARY32(s_mov_b32, a)
UNARY64(s_mov_b64, a)
UNARY32Z(s_not_b32, ~a)
UNARY64Z(s_not_b64, ~a)
UNARY32Z(s_wqm_b32, (uint32_t)whole_quads(a))
UNARY64Z(s_wqm_b64, whole_quads(a))
UNARY32(s_brev_b32, (uint32_t)reverse(a, 32))
UNARY64(s_brev_b64, reverse(a, 64))
UNARY32Z(s_bcnt0_i32_b32, (uint32_t)__builtin_popcount(~a))
COUNT64Z(s_bcnt0_i32_b64, __builtin_popcountll(~a))
UNARY32Z(s_bcnt1_i32_b32, (uint32_t)__builtin_popcount(a))
COUNT64Z(s_bcnt1_i32_b64, __builtin_popcountll(a))
UNARY32(s_ff0_i32_b32, ~a ? (uint32_t)__builtin_ctz(~a) : ~0u)
COUNT64(s_ff0_i32_b64, ~a ? __builtin_ctzll(~a) : -1)
UNARY32(s_ff1_i32_b32, a ? (uint32_t)__builtin_ctz(a) : ~0u)
COUNT64(s_ff1_i32_b64, a ? __builtin_ctzll(a) : -1)
UNARY32(s_flbit_i32_b32, (uint32_t)leading32(a))
COUNT64(s_flbit_i32_b64, leading64(a))
UNARY32(s_flbit_i32, (uint32_t)leading32(a ^ (uint32_t)((int32_t)a >> 31)))
COUNT64(s_flbit_i32_i64, leading64(a ^ (uint64_t)((int64_t)a >> 63)))
UNARY32(s_sext_i32_i8, (uint32_t)(int8_t)a)
UNARY32(s_sext_i32_i16, (uint32_t)(int16_t)a)
UNARY32(s_bitset0_b32, w->sgpr[i->dst] & ~(1u << (a & 31)))
UNARY32(s_bitset1_b32, w->sgpr[i->dst] | 1u << (a & 31))
UNARY32Z(s_quadmask_b32, (uint32_t)quad_mask(a))
UNARY64Z(s_quadmask_b64, quad_mask(a))
UNARY32Z(s_abs_i32, (int32_t)a < 0 ? 0 - a : a)

EXEC_FN(s_bitreplicate_b64_b32) {
    isa_write64(w, i->dst, every_bit_twice(src32(w, i, 0)));
    return ISA_CONTINUE;
}

EXEC_FN(s_cmov_b32) {
    if (w->scc)
        isa_write32(w, i->dst, src32(w, i, 0));
    return ISA_CONTINUE;
}

EXEC_FN(s_cmov_b64) {
    if (w->scc)
        isa_write64(w, i->dst, src64(w, i, 0));
    return ISA_CONTINUE;
}

static enum isa_result bitset64(struct isa_wave *w, const struct isa_insn *i, int value) {
    uint64_t bit = UINT64_C(1) << (src32(w, i, 0) & 63);
    uint64_t d = isa_scalar64(w, i, i->dst, ISA_TYPE_B64);
    isa_write64(w, i->dst, value ? d | bit : d & ~bit);
    return ISA_CONTINUE;
}

EXEC_FN(s_bitset0_b64) {
    return bitset64(w, i, 0);
}
EXEC_FN(s_bitset1_b64) {
    return bitset64(w, i, 1);
}

/* D = EXEC as it was, EXEC = an expression of S0 (a) and EXEC (e). */
#define SAVEEXEC(name, expression)                                                                 \
    EXEC_FN(name) {                                                                                \
        uint64_t a = src64(w, i, 0), e = ISA_WAVE_EXEC(w);                                         \
        ISA_WAVE_EXEC(w) = (expression);                                                           \
        w->scc = ISA_WAVE_EXEC(w) != 0;                                                            \
        isa_write64(w, i->dst, e);                                                                 \
        return ISA_CONTINUE;                                                                       \
    }
SAVEEXEC(s_and_saveexec_b64, a &e)
SAVEEXEC(s_or_saveexec_b64, a | e)
SAVEEXEC(s_xor_saveexec_b64, a ^ e)
SAVEEXEC(s_andn2_saveexec_b64, a & ~e)
SAVEEXEC(s_orn2_saveexec_b64, a | ~e)
SAVEEXEC(s_nand_saveexec_b64, ~(a &e))
SAVEEXEC(s_nor_saveexec_b64, ~(a | e))
SAVEEXEC(s_xnor_saveexec_b64, ~(a ^ e))
SAVEEXEC(s_andn1_saveexec_b64, ~a &e)
SAVEEXEC(s_orn1_saveexec_b64, ~a | e)

/* D = the new EXEC. */
#define WREXEC(name, expression)                                                                   \
    EXEC_FN(name) {                                                                                \
        uint64_t a = src64(w, i, 0), e = ISA_WAVE_EXEC(w), d = (expression);                       \
        ISA_WAVE_EXEC(w) = d;                                                                      \
        isa_write64(w, i->dst, d);                                                                 \
        w->scc = d != 0;                                                                           \
        return ISA_CONTINUE;                                                                       \
    }
WREXEC(s_andn1_wrexec_b64, ~a &e)
WREXEC(s_andn2_wrexec_b64, a & ~e)

/* Register numbers relative to M0; one that leaves the SGPRs stops the wave. */
static enum isa_result movrel(struct isa_wave *w, const struct isa_insn *i, int is_source,
                              unsigned dwords) {
    unsigned from = i->src[0], to = i->dst;
    unsigned *moved = is_source ? &from : &to;
    *moved += ISA_WAVE_M0(w);
    if (*moved + dwords > ISA_FLAT_SCRATCH)
        return isa_stop_unsupported(w, i, "M0 leads past the last SGPR");
    if (dwords == 1)
        isa_write32(w, to, isa_scalar32(w, i, from));
    else
        isa_write64(w, to, isa_scalar64(w, i, from, ISA_TYPE_B64));
    return ISA_CONTINUE;
}

EXEC_FN(s_movrels_b32) {
    return movrel(w, i, 1, 1);
}
EXEC_FN(s_movrels_b64) {
    return movrel(w, i, 1, 2);
}
EXEC_FN(s_movreld_b32) {
    return movrel(w, i, 0, 1);
}
EXEC_FN(s_movreld_b64) {
    return movrel(w, i, 0, 2);
}

/* ---- SOPC ---- */

#define CMP32(name, type, operator)                                                                \
    EXEC_FN(name) {                                                                                \
        w->scc = (type)src32(w, i, 0) operator(type) src32(w, i, 1);                               \
        return ISA_CONTINUE;                                                                       \
    }
CMP32(s_cmp_eq_i32, int32_t, ==)
CMP32(s_cmp_lg_i32, int32_t, !=)
CMP32(s_cmp_gt_i32, int32_t, >)
CMP32(s_cmp_ge_i32, int32_t, >=)
CMP32(s_cmp_lt_i32, int32_t, <)
CMP32(s_cmp_le_i32, int32_t, <=)
CMP32(s_cmp_eq_u32, uint32_t, ==)
CMP32(s_cmp_lg_u32, uint32_t, !=)
CMP32(s_cmp_gt_u32, uint32_t, >)
CMP32(s_cmp_ge_u32, uint32_t, >=)
CMP32(s_cmp_lt_u32, uint32_t, <)
CMP32(s_cmp_le_u32, uint32_t, <=)

EXEC_FN(s_cmp_eq_u64) {
    w->scc = src64(w, i, 0) == src64(w, i, 1);
    return ISA_CONTINUE;
}
EXEC_FN(s_cmp_lg_u64) {
    w->scc = src64(w, i, 0) != src64(w, i, 1);
    return ISA_CONTINUE;
}
EXEC_FN(s_bitcmp0_b32) {
    w->scc = !(src32(w, i, 0) >> (src32(w, i, 1) & 31) & 1);
    return ISA_CONTINUE;
}
EXEC_FN(s_bitcmp1_b32) {
    w->scc = src32(w, i, 0) >> (src32(w, i, 1) & 31) & 1;
    return ISA_CONTINUE;
}
EXEC_FN(s_bitcmp0_b64) {
    w->scc = !(src64(w, i, 0) >> (src32(w, i, 1) & 63) & 1);
    return ISA_CONTINUE;
}
EXEC_FN(s_bitcmp1_b64) {
    w->scc = src64(w, i, 0) >> (src32(w, i, 1) & 63) & 1;
    return ISA_CONTINUE;
}

const isa_exec_fn isa_group_salu[ISA_OP_COUNT] = {
#define SALU(name) [ISA_OP_##name] = name
    SALU(s_add_u32),
    SALU(s_sub_u32),
    SALU(s_add_i32),
    SALU(s_sub_i32),
    SALU(s_addc_u32),
    SALU(s_subb_u32),
    SALU(s_min_i32),
    SALU(s_min_u32),
    SALU(s_max_i32),
    SALU(s_max_u32),
    SALU(s_cselect_b32),
    SALU(s_and_b32),
    SALU(s_and_b64),
    SALU(s_or_b32),
    SALU(s_or_b64),
    SALU(s_xor_b32),
    SALU(s_xor_b64),
    SALU(s_andn2_b32),
    SALU(s_andn2_b64),
    SALU(s_orn2_b32),
    SALU(s_orn2_b64),
    SALU(s_nand_b32),
    SALU(s_nand_b64),
    SALU(s_nor_b32),
    SALU(s_nor_b64),
    SALU(s_xnor_b32),
    SALU(s_xnor_b64),
    SALU(s_lshl_b32),
    SALU(s_lshl_b64),
    SALU(s_lshr_b32),
    SALU(s_lshr_b64),
    SALU(s_ashr_i32),
    SALU(s_ashr_i64),
    SALU(s_bfm_b32),
    SALU(s_mul_i32),
    SALU(s_mul_hi_u32),
    SALU(s_mul_hi_i32),
    SALU(s_pack_ll_b32_b16),
    SALU(s_pack_lh_b32_b16),
    SALU(s_pack_hh_b32_b16),
    SALU(s_absdiff_i32),
    SALU(s_cselect_b64),
    SALU(s_bfm_b64),
    SALU(s_bfe_u32),
    SALU(s_bfe_i32),
    SALU(s_bfe_u64),
    SALU(s_bfe_i64),
    SALU(s_movk_i32),
    SALU(s_cmovk_i32),
    SALU(s_cmpk_eq_i32),
    SALU(s_cmpk_lg_i32),
    SALU(s_cmpk_gt_i32),
    SALU(s_cmpk_ge_i32),
    SALU(s_cmpk_lt_i32),
    SALU(s_cmpk_le_i32),
    SALU(s_cmpk_eq_u32),
    SALU(s_cmpk_lg_u32),
    SALU(s_cmpk_gt_u32),
    SALU(s_cmpk_ge_u32),
    SALU(s_cmpk_lt_u32),
    SALU(s_cmpk_le_u32),
    SALU(s_addk_i32),
    SALU(s_mulk_i32),
    SALU(s_mov_b32),
    SALU(s_mov_b64),
    SALU(s_not_b32),
    SALU(s_not_b64),
    SALU(s_wqm_b32),
    SALU(s_wqm_b64),
    SALU(s_brev_b32),
    SALU(s_brev_b64),
    SALU(s_bcnt0_i32_b32),
    SALU(s_bcnt0_i32_b64),
    SALU(s_bcnt1_i32_b32),
    SALU(s_bcnt1_i32_b64),
    SALU(s_ff0_i32_b32),
    SALU(s_ff0_i32_b64),
    SALU(s_ff1_i32_b32),
    SALU(s_ff1_i32_b64),
    SALU(s_flbit_i32_b32),
    SALU(s_flbit_i32_b64),
    SALU(s_flbit_i32),
    SALU(s_flbit_i32_i64),
    SALU(s_sext_i32_i8),
    SALU(s_sext_i32_i16),
    SALU(s_bitset0_b32),
    SALU(s_bitset1_b32),
    SALU(s_quadmask_b32),
    SALU(s_quadmask_b64),
    SALU(s_abs_i32),
    SALU(s_bitreplicate_b64_b32),
    SALU(s_cmov_b32),
    SALU(s_cmov_b64),
    SALU(s_bitset0_b64),
    SALU(s_bitset1_b64),
    SALU(s_and_saveexec_b64),
    SALU(s_or_saveexec_b64),
    SALU(s_xor_saveexec_b64),
    SALU(s_andn2_saveexec_b64),
    SALU(s_orn2_saveexec_b64),
    SALU(s_nand_saveexec_b64),
    SALU(s_nor_saveexec_b64),
    SALU(s_xnor_saveexec_b64),
    SALU(s_andn1_saveexec_b64),
    SALU(s_orn1_saveexec_b64),
    SALU(s_andn1_wrexec_b64),
    SALU(s_andn2_wrexec_b64),
    SALU(s_movrels_b32),
    SALU(s_movrels_b64),
    SALU(s_movreld_b32),
    SALU(s_movreld_b64),
    SALU(s_cmp_eq_i32),
    SALU(s_cmp_lg_i32),
    SALU(s_cmp_gt_i32),
    SALU(s_cmp_ge_i32),
    SALU(s_cmp_lt_i32),
    SALU(s_cmp_le_i32),
    SALU(s_cmp_eq_u32),
    SALU(s_cmp_lg_u32),
    SALU(s_cmp_gt_u32),
    SALU(s_cmp_ge_u32),
    SALU(s_cmp_lt_u32),
    SALU(s_cmp_le_u32),
    SALU(s_cmp_eq_u64),
    SALU(s_cmp_lg_u64),
    SALU(s_bitcmp0_b32),
    SALU(s_bitcmp1_b32),
    SALU(s_bitcmp0_b64),
    SALU(s_bitcmp1_b64),
    SALU(s_lshl1_add_u32),
    SALU(s_lshl2_add_u32),
    SALU(s_lshl3_add_u32),
    SALU(s_lshl4_add_u32),
#undef SALU
};
