/* plain.c - vector instructions without modifiers, or with signs only, in the default MODE.
 *
 * They fetch their sources, call the row function and merge its result. How a source is fetched
 * depends on its kind, which is known when the instruction is bound: the commonest combinations of
 * kinds have a function each, which decides nothing while it runs. */
#include "isa/valu.h"

#include <pthread.h>

/* The row of a source; scalars are spread into `space`, two rows. */
static inline const uint32_t *fetch(struct isa_wave *w, const struct isa_insn *i, int s,
                                    uint32_t *space) {
    unsigned code = i->src[s];
    if (code >= ISA_VGPR0)
        return isa_row(w, code);
    return isa_valu_spread(w, i, s, isa_rows_chosen, space);
}

/* The row function on those rows, its result into the destination's lanes that are on. */
static inline enum isa_result call_plain(struct isa_wave *w, const struct isa_insn *i,
                                         const uint32_t *a, const uint32_t *b, const uint32_t *c) {
    _Alignas(64) uint32_t result[2 * ISA_LANES];
    uint64_t exec = ISA_WAVE_EXEC(w);
    uint32_t *d = isa_row(w, i->dst);
    isa_row_fn fn = (isa_row_fn)i->kernel;
    if (exec == ~UINT64_C(0)) {
        fn(d, a, b, c);
        return ISA_CONTINUE;
    }
    fn(result, a, b, c);
    isa_rows_chosen->merge(d, result, exec);
    if (isa_type_dwords(isa_info[i->op].type[0]) == 2)
        isa_rows_chosen->merge(d + ISA_LANES, result + ISA_LANES, exec);
    return ISA_CONTINUE;
}

static enum isa_result plain(struct isa_wave *w, const struct isa_insn *i) {
    _Alignas(64) uint32_t space[3][2 * ISA_LANES];
    if (__builtin_expect(w->mode != ISA_MODE_DEFAULT, 0))
        return isa_valu_general(w, i);
    if (!ISA_WAVE_EXEC(w))
        return ISA_CONTINUE;
    const uint32_t *a = fetch(w, i, 0, space[0]), *b = a, *c = a;
    if (i->ext > 1)
        b = fetch(w, i, 1, space[1]);
    if (i->ext > 2)
        c = fetch(w, i, 2, space[2]);
    return call_plain(w, i, a, b, c);
}

/* v_madmk and v_fmamk: K is src1 and the other VGPR src2; v_madak and v_fmaak: K is src2. */
static enum isa_result plain_constant(struct isa_wave *w, const struct isa_insn *i) {
    _Alignas(64) uint32_t space[2 * ISA_LANES], constant[ISA_LANES];
    if (__builtin_expect(w->mode != ISA_MODE_DEFAULT, 0))
        return isa_valu_general(w, i);
    if (!ISA_WAVE_EXEC(w))
        return ISA_CONTINUE;
    const uint32_t *a = fetch(w, i, 0, space), *other = isa_row(w, i->src[1]);
    isa_rows_chosen->fill(constant, i->literal);
    return i->ext == 1 ? call_plain(w, i, a, constant, other)
                       : call_plain(w, i, a, other, constant);
}

/* A source of one or two rows with neg and abs. */
static inline const uint32_t *fetch_signed(struct isa_wave *w, const struct isa_insn *i, int s,
                                           uint32_t *space) {
    const uint32_t *row = fetch(w, i, s, space), sign = UINT32_C(1) << 31;
    bool neg = i->modifiers >> s & 1, abs = i->modifiers / ISA_MOD_ABS >> s & 1;
    bool two = isa_info[i->op].type[s + 1] == ISA_TYPE_F64;
    size_t high = two ? ISA_LANES : 0;
    if (!neg && !abs)
        return row;
    if (two && row != space)
        memcpy(space, row, ISA_LANES * sizeof *space);
    isa_rows_chosen->flip(space + high, row + high, abs ? ~sign : ~0u, neg ? sign : 0);
    return space;
}

static enum isa_result plain_signed(struct isa_wave *w, const struct isa_insn *i) {
    _Alignas(64) uint32_t space[3][2 * ISA_LANES];
    if (__builtin_expect(w->mode != ISA_MODE_DEFAULT, 0))
        return isa_valu_general(w, i);
    if (!ISA_WAVE_EXEC(w))
        return ISA_CONTINUE;
    const uint32_t *a = fetch_signed(w, i, 0, space[0]), *b = a, *c = a;
    if (i->ext > 1)
        b = fetch_signed(w, i, 1, space[1]);
    if (i->ext > 2)
        c = fetch_signed(w, i, 2, space[2]);
    return call_plain(w, i, a, b, c);
}

/* Additions that carry, and others that write one bit per lane beside their result. */
static inline enum isa_result call_flag(struct isa_wave *w, const struct isa_insn *i,
                                        const uint32_t *a, const uint32_t *b, const uint32_t *c) {
    _Alignas(64) uint32_t result[3 * ISA_LANES];
    uint64_t exec = ISA_WAVE_EXEC(w);
    unsigned dwords = isa_type_dwords(isa_info[i->op].type[0]);
    ((isa_row_fn)i->kernel)(result, a, b, c);
    uint32_t *d = isa_row(w, i->dst);
    for (unsigned n = 0; n < dwords; n++)
        isa_rows_chosen->merge(d + (size_t)n * ISA_LANES, result + (size_t)n * ISA_LANES, exec);
    isa_write64(w, i->sdst, isa_rows_chosen->collect(result + (size_t)dwords * ISA_LANES) & exec);
    return ISA_CONTINUE;
}

static enum isa_result plain_flag(struct isa_wave *w, const struct isa_insn *i) {
    _Alignas(64) uint32_t space[3][2 * ISA_LANES];
    if (__builtin_expect(w->mode != ISA_MODE_DEFAULT, 0))
        return isa_valu_general(w, i);
    const uint32_t *a = fetch(w, i, 0, space[0]), *b = fetch(w, i, 1, space[1]), *c = b;
    if (i->ext > 2)
        c = fetch(w, i, 2, space[2]);
    return call_flag(w, i, a, b, c);
}

static inline enum isa_result call_compare(struct isa_wave *w, const struct isa_insn *i,
                                           const uint32_t *a, const uint32_t *b) {
    _Alignas(64) uint32_t result[ISA_LANES];
    ((isa_row_fn)i->kernel)(result, a, b, b);
    uint64_t mask = isa_rows_chosen->collect(result) & ISA_WAVE_EXEC(w);
    isa_write64(w, i->dst, mask);
    if (isa_valu_is_cmpx(i->op))
        ISA_WAVE_EXEC(w) = mask;
    return ISA_CONTINUE;
}

static enum isa_result plain_compare(struct isa_wave *w, const struct isa_insn *i) {
    _Alignas(64) uint32_t space[2][2 * ISA_LANES];
    if (__builtin_expect(w->mode != ISA_MODE_DEFAULT, 0))
        return isa_valu_general(w, i);
    return call_compare(w, i, fetch(w, i, 0, space[0]), fetch(w, i, 1, space[1]));
}

static enum isa_result signed_compare(struct isa_wave *w, const struct isa_insn *i) {
    _Alignas(64) uint32_t space[2][2 * ISA_LANES];
    if (__builtin_expect(w->mode != ISA_MODE_DEFAULT, 0))
        return isa_valu_general(w, i);
    return call_compare(w, i, fetch_signed(w, i, 0, space[0]), fetch_signed(w, i, 1, space[1]));
}

/* A source of packed floats: each half from the register that op_sel and op_sel_hi name, with neg
 * and neg_hi. `space` has four rows. */
static const uint32_t *fetch_packed(struct isa_wave *w, const struct isa_insn *i, int s,
                                    uint32_t *space) {
    const uint32_t *row = fetch(w, i, s, space);
    uint32_t m = i->modifiers, *to = space + (size_t)2 * ISA_LANES;
    size_t lo = m >> (ISA_MOD_OPSEL_SHIFT + s) & 1, hi = m >> (ISA_MOD_OPSEL_HI_SHIFT + s) & 1;
    uint32_t neg = m >> s & 1, neg_hi = m / ISA_MOD_NEG_HI >> s & 1;
    if (lo == 0 && hi == 1 && !neg && !neg_hi)
        return row;
    isa_rows_chosen->flip(to, row + lo * ISA_LANES, ~0u, neg << 31);
    isa_rows_chosen->flip(to + ISA_LANES, row + hi * ISA_LANES, ~0u, neg_hi << 31);
    return to;
}

static enum isa_result plain_packed(struct isa_wave *w, const struct isa_insn *i) {
    _Alignas(64) uint32_t space[3][4 * ISA_LANES];
    if (__builtin_expect(w->mode != ISA_MODE_DEFAULT, 0))
        return isa_valu_general(w, i);
    if (!ISA_WAVE_EXEC(w))
        return ISA_CONTINUE;
    const uint32_t *a = fetch_packed(w, i, 0, space[0]), *b = fetch_packed(w, i, 1, space[1]);
    return call_plain(w, i, a, b, i->ext > 2 ? fetch_packed(w, i, 2, space[2]) : b);
}

/* v_pk_mov_b32: two registers, of those that op_sel names. */
static enum isa_result plain_pk_mov(struct isa_wave *w, const struct isa_insn *i) {
    _Alignas(64) uint32_t space[2][2 * ISA_LANES], copy[ISA_LANES];
    if (__builtin_expect(w->mode != ISA_MODE_DEFAULT, 0))
        return isa_valu_general(w, i);
    const uint32_t *a = fetch(w, i, 0, space[0]), *b = fetch(w, i, 1, space[1]);
    uint32_t *d = isa_row(w, i->dst);
    a += (i->modifiers >> ISA_MOD_OPSEL_SHIFT & 1) * ISA_LANES;
    b += (i->modifiers >> (ISA_MOD_OPSEL_SHIFT + 1) & 1) * ISA_LANES;
    if (b == d) {
        memcpy(copy, b, sizeof copy);
        b = copy;
    }
    isa_rows_chosen->merge(d, a, ISA_WAVE_EXEC(w));
    isa_rows_chosen->merge(d + ISA_LANES, b, ISA_WAVE_EXEC(w));
    return ISA_CONTINUE;
}

/* v_div_fmas is a plain v_fma unless v_div_scale has flagged a lane, which is rare. */
static enum isa_result plain_div_fmas(struct isa_wave *w, const struct isa_insn *i) {
    return ISA_WAVE_VCC(w) & ISA_WAVE_EXEC(w) ? isa_valu_general(w, i) : plain(w, i);
}

/* ---- by the kinds of sources ---- */

/* What a source of 32 bits is: V a vector register, C an inline constant, S a scalar register or a
 * literal; and M a mask of 64 bits in scalar registers, one for each lane. KINDS: none of these. */
enum kind { V, C, S, M, KINDS };

/* Constants in all lanes, by operand code. */
static _Alignas(64) uint32_t constants[ISA_FLOAT_1_2PI + 1 - ISA_INT_0][ISA_LANES];

static void fill_constants(void) {
    for (unsigned code = ISA_INT_0; code <= ISA_FLOAT_1_2PI; code++)
        if (code <= ISA_INT_M16 || code >= ISA_FLOAT_0_5)
            isa_rows_chosen->fill(constants[code - ISA_INT_0], isa_constant32(NULL, NULL, code));
}

static inline const uint32_t *source(struct isa_wave *w, const struct isa_insn *i, int s,
                                     enum kind kind, uint32_t *space) {
    unsigned code = i->src[s];
    if (kind == V)
        return isa_row(w, code);
    if (kind == C)
        return constants[code - ISA_INT_0];
    if (kind == M)
        isa_rows_chosen->expand(space, isa_scalar64(w, i, code, ISA_TYPE_M64));
    else
        isa_rows_chosen->fill(space, code < ISA_SGPRS ? w->sgpr[code] : i->literal);
    return space;
}

static inline __attribute__((always_inline)) enum isa_result
run_kinds(struct isa_wave *w, const struct isa_insn *i, int sources, const enum kind kind[3]) {
    _Alignas(64) uint32_t space[3][ISA_LANES];
    if (__builtin_expect(w->mode != ISA_MODE_DEFAULT, 0))
        return isa_valu_general(w, i);
    if (!ISA_WAVE_EXEC(w))
        return ISA_CONTINUE;
    const uint32_t *a = source(w, i, 0, kind[0], space[0]), *b = a, *c = a;
    if (sources > 1)
        b = source(w, i, 1, kind[1], space[1]);
    if (sources > 2)
        c = source(w, i, 2, kind[2], space[2]);
    return call_plain(w, i, a, b, c);
}

static inline __attribute__((always_inline)) enum isa_result
flag_kinds(struct isa_wave *w, const struct isa_insn *i, int sources, const enum kind kind[3]) {
    _Alignas(64) uint32_t space[3][ISA_LANES];
    if (__builtin_expect(w->mode != ISA_MODE_DEFAULT, 0))
        return isa_valu_general(w, i);
    const uint32_t *a = source(w, i, 0, kind[0], space[0]);
    const uint32_t *b = source(w, i, 1, kind[1], space[1]), *c = b;
    if (sources > 2)
        c = source(w, i, 2, kind[2], space[2]);
    return call_flag(w, i, a, b, c);
}

static inline __attribute__((always_inline)) enum isa_result
compare_kinds(struct isa_wave *w, const struct isa_insn *i, const enum kind kind[3]) {
    _Alignas(64) uint32_t space[2][ISA_LANES];
    if (__builtin_expect(w->mode != ISA_MODE_DEFAULT, 0))
        return isa_valu_general(w, i);
    return call_compare(w, i, source(w, i, 0, kind[0], space[0]),
                        source(w, i, 1, kind[1], space[1]));
}

/* clang-format off */
#define KINDS_1(F) F(V) F(C) F(S)
#define KINDS_2(F) F(V, V) F(V, C) F(V, S) F(C, V) F(C, C) F(C, S) F(S, V) F(S, C) F(S, S)
#define KINDS_3(F)                                                                                 \
    F(V, V, V) F(V, V, C) F(V, V, S) F(V, V, M) F(V, C, V) F(V, C, C) F(V, C, S) F(V, C, M)        \
    F(V, S, V) F(V, S, C) F(V, S, S) F(V, S, M) F(C, V, V) F(C, V, C) F(C, V, S) F(C, V, M)        \
    F(C, C, V) F(C, C, C) F(C, C, S) F(C, C, M) F(C, S, V) F(C, S, C) F(C, S, S) F(C, S, M)        \
    F(S, V, V) F(S, V, C) F(S, V, S) F(S, V, M) F(S, C, V) F(S, C, C) F(S, C, S) F(S, C, M)        \
    F(S, S, V) F(S, S, C) F(S, S, S) F(S, S, M)
/* Carries come in by a mask. */
#define KINDS_CARRY(F)                                                                             \
    F(V, V, M) F(V, C, M) F(V, S, M) F(C, V, M) F(C, C, M) F(C, S, M) F(S, V, M) F(S, C, M)        \
    F(S, S, M)
/* clang-format on */

#define EXEC_FN(name) static enum isa_result name(struct isa_wave *w, const struct isa_insn *i)
#define FN_1(a)                                                                                    \
    EXEC_FN(plain_##a) {                                                                           \
        return run_kinds(w, i, 1, (const enum kind[3]){ a });                                      \
    }
#define FN_2(a, b)                                                                                 \
    EXEC_FN(plain_##a##b) {                                                                        \
        return run_kinds(w, i, 2, (const enum kind[3]){ a, b });                                   \
    }                                                                                              \
    EXEC_FN(flag_##a##b) {                                                                         \
        return flag_kinds(w, i, 2, (const enum kind[3]){ a, b });                                  \
    }                                                                                              \
    EXEC_FN(compare_##a##b) {                                                                      \
        return compare_kinds(w, i, (const enum kind[3]){ a, b });                                  \
    }
#define FN_3(a, b, c)                                                                              \
    EXEC_FN(plain_##a##b##c) {                                                                     \
        return run_kinds(w, i, 3, (const enum kind[3]){ a, b, c });                                \
    }
#define FN_CARRY(a, b, c)                                                                          \
    EXEC_FN(flag_##a##b##c) {                                                                      \
        return flag_kinds(w, i, 3, (const enum kind[3]){ a, b, c });                               \
    }
KINDS_1(FN_1)
KINDS_2(FN_2)
KINDS_3(FN_3)
KINDS_CARRY(FN_CARRY)

#define PLAIN_1(a)       [a] = plain_##a,
#define PLAIN_2(a, b)    [a][b] = plain_##a##b,
#define PLAIN_3(a, b, c) [a][b][c] = plain_##a##b##c,
#define FLAG_2(a, b)     [a][b] = flag_##a##b,
#define CARRY(a, b, c)   [a][b][c] = flag_##a##b##c,
#define COMPARE(a, b)    [a][b] = compare_##a##b,
static const isa_exec_fn plain_1[KINDS] = { KINDS_1(PLAIN_1) };
static const isa_exec_fn plain_2[KINDS][KINDS] = { KINDS_2(PLAIN_2) };
static const isa_exec_fn plain_3[KINDS][KINDS][KINDS] = { KINDS_3(PLAIN_3) };
static const isa_exec_fn flag_2[KINDS][KINDS] = { KINDS_2(FLAG_2) };
static const isa_exec_fn flag_3[KINDS][KINDS][KINDS] = { KINDS_CARRY(CARRY) };
static const isa_exec_fn compare_2[KINDS][KINDS] = { KINDS_2(COMPARE) };

static enum kind kind_of(const struct isa_insn *i, int s) {
    const struct isa_info *info = &isa_info[i->op];
    unsigned code = i->src[s];
    enum isa_type type = info->type[s + 1];
    if (code >= ISA_VGPR0)
        return V;
    if (type == ISA_TYPE_M64)
        return code < ISA_SGPRS - 1 ? M : KINDS;
    if (type != ISA_TYPE_B32 && type != ISA_TYPE_I32 && type != ISA_TYPE_U32 &&
        type != ISA_TYPE_F32)
        return KINDS;
    if (code < ISA_SGPRS || code == ISA_LITERAL)
        return S;
    return code <= ISA_INT_M16 || (code >= ISA_FLOAT_0_5 && code <= ISA_FLOAT_1_2PI) ? C : KINDS;
}

/* The function for the kinds of an instruction's sources; NULL if there is none. */
static isa_exec_fn find_kinds(const struct isa_insn *i, const struct isa_info *info, int sources) {
    enum kind k[3] = { V, V, V };
    for (int s = 0; s < sources; s++)
        if ((k[s] = kind_of(i, s)) == KINDS)
            return NULL;
    if (info->type[0] == ISA_TYPE_M64)
        return sources == 2 && !isa_valu_is_cmpx(i->op) ? compare_2[k[0]][k[1]] : NULL;
    if (info->forms & ISA_FORM_SDST)
        return sources == 2 ? flag_2[k[0]][k[1]] : sources == 3 ? flag_3[k[0]][k[1]][k[2]] : NULL;
    return sources == 1   ? plain_1[k[0]]
           : sources == 2 ? plain_2[k[0]][k[1]]
           : sources == 3 ? plain_3[k[0]][k[1]][k[2]]
                          : NULL;
}

/* ---- which instruction takes which way ---- */

/* Modifiers of a packed instruction that mean nothing: each half from its own half. */
static int has_default_halves(const struct isa_insn *i, int sources) {
    uint32_t all = (1u << sources) - 1;
    uint32_t hi = i->modifiers >> ISA_MOD_OPSEL_HI_SHIFT & all;
    return hi == all && !(i->modifiers & ~(7u << ISA_MOD_OPSEL_HI_SHIFT));
}

static int is_plain(const struct isa_insn *i, const struct isa_info *info) {
    if (i->form == ISA_AS_SDWA || i->form == ISA_AS_DPP)
        return 0;
    if (info->forms & (ISA_FORM_OPSEL | ISA_FORM_LIT))
        return 0;
    if (info->encoding == ISA_ENC_VOP3P)
        return info->type[1] != ISA_TYPE_MIX && i->op != ISA_OP_v_pk_mov_b32 &&
               has_default_halves(i, isa_valu_sources(i->op));
    return i->modifiers == 0;
}

static int is_div_fmas(const struct isa_insn *i) {
    return i->op == ISA_OP_v_div_fmas_f32 || i->op == ISA_OP_v_div_fmas_f64;
}

/* Nothing but neg and abs, of floats of 32 and 64 bits. */
static int has_only_signs(const struct isa_insn *i, const struct isa_info *info) {
    uint32_t signs = 7u | 7u * ISA_MOD_ABS;
    if (i->form == ISA_AS_SDWA || i->form == ISA_AS_DPP || info->encoding == ISA_ENC_VOP3P ||
        info->forms & (ISA_FORM_OPSEL | ISA_FORM_LIT | ISA_FORM_SDST) || i->modifiers & ~signs ||
        is_div_fmas(i))
        return 0;
    for (int s = 0; s < isa_valu_sources(i->op); s++)
        if ((i->modifiers >> s | i->modifiers / ISA_MOD_ABS >> s) & 1 &&
            info->type[s + 1] != ISA_TYPE_F32 && info->type[s + 1] != ISA_TYPE_F64)
            return 0;
    return 1;
}

/* Packed floats, or moves of pairs, without clamp. */
static int is_packed(const struct isa_insn *i, const struct isa_info *info) {
    uint32_t known = 7u | 7u * ISA_MOD_NEG_HI | 7u * ISA_MOD_OPSEL | 7u * ISA_MOD_OPSEL_HI;
    return info->encoding == ISA_ENC_VOP3P && !(i->modifiers & ~known) &&
           (info->type[1] == ISA_TYPE_V2F32 || i->op == ISA_OP_v_pk_mov_b32);
}

/* Which source is K, for v_madmk and the like; 0 for other instructions. */
static uint32_t constant_of(const struct isa_info *info) {
    if (!(info->forms & ISA_FORM_LIT) || info->type[0] != ISA_TYPE_F32)
        return 0;
    return info->forms & ISA_FORM_K1 ? 1 : 2;
}

void isa_plain_bind(struct isa_insn *i) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const struct isa_info *info = &isa_info[i->op];
    bool compares = info->type[0] == ISA_TYPE_M64;
    uint32_t sources = (uint32_t)isa_valu_sources(i->op);
    pthread_once(&once, fill_constants);
    if (i->src[0] >= ISA_AGPR0)
        return;
    if (constant_of(info)) {
        i->ext = constant_of(info);
        i->exec = plain_constant;
        return;
    }
    if (is_plain(i, info)) {
        isa_exec_fn fn = is_div_fmas(i) ? plain_div_fmas : find_kinds(i, info, (int)sources);
        i->exec = fn                            ? fn
                  : compares                    ? plain_compare
                  : info->forms & ISA_FORM_SDST ? plain_flag
                                                : plain;
    } else if (is_packed(i, info)) {
        i->exec = i->op == ISA_OP_v_pk_mov_b32 ? plain_pk_mov : plain_packed;
    } else if (has_only_signs(i, info)) {
        i->exec = compares ? signed_compare : plain_signed;
    } else {
        return;
    }
    if (!compares)
        i->ext = sources; /* free in these forms */
}
