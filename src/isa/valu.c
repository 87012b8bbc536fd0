/* valu.c - vector instructions: sources to rows, the row function, its result to registers.
 *
 * Most instructions are plain: no modifiers, the default MODE. They take plain() or
 * plain_compare(), which only fetch, call and merge. All others take general(), which prepares
 * copies of the sources (prepare.c), and treats the result (finish.c) before it is merged. What
 * neither understands stops the wave. */
#include "isa/valu.h"

#include "base/cpu.h"

#include <fenv.h>
#include <pthread.h>

const struct isa_rows *isa_rows_select(void) {
#if defined(__x86_64__)
    unsigned cpu = cpu_features();
    if (cpu & CPU_AVX512)
        return &isa_rows_avx512;
    if (cpu & CPU_AVX2)
        return &isa_rows_avx2;
#endif
    return &isa_rows_base;
}

const struct isa_rows *isa_rows_chosen;

static void select_rows(void) {
    isa_rows_chosen = isa_rows_select();
}

void isa_rows_choose(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, select_rows);
}

/* ---- plain ---- */

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
static enum isa_result plain_flag(struct isa_wave *w, const struct isa_insn *i) {
    _Alignas(64) uint32_t space[3][2 * ISA_LANES], result[3 * ISA_LANES];
    uint64_t exec = ISA_WAVE_EXEC(w);
    unsigned dwords = isa_type_dwords(isa_info[i->op].type[0]);
    if (__builtin_expect(w->mode != ISA_MODE_DEFAULT, 0))
        return isa_valu_general(w, i);
    const uint32_t *a = fetch(w, i, 0, space[0]), *b = fetch(w, i, 1, space[1]), *c = b;
    if (i->ext > 2)
        c = fetch(w, i, 2, space[2]);
    ((isa_row_fn)i->kernel)(result, a, b, c);
    uint32_t *d = isa_row(w, i->dst);
    for (unsigned n = 0; n < dwords; n++)
        isa_rows_chosen->merge(d + (size_t)n * ISA_LANES, result + (size_t)n * ISA_LANES, exec);
    isa_write64(w, i->sdst, isa_rows_chosen->collect(result + (size_t)dwords * ISA_LANES) & exec);
    return ISA_CONTINUE;
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

/* v_div_fmas is a plain v_fma unless v_div_scale has flagged a lane, which is rare. */
static enum isa_result plain_div_fmas(struct isa_wave *w, const struct isa_insn *i) {
    return ISA_WAVE_VCC(w) & ISA_WAVE_EXEC(w) ? isa_valu_general(w, i) : plain(w, i);
}

/* ---- general ---- */

/* The part of MODE that is about a type: rounding in bits 0 and 1, denormals in bits 4 and 5. */
static unsigned float_mode(const struct isa_wave *w, enum isa_type t) {
    switch (t) {
    case ISA_TYPE_F32:
    case ISA_TYPE_V2F32:
    case ISA_TYPE_MIX:
        return w->mode & 0x33;
    case ISA_TYPE_F64:
    case ISA_TYPE_F16:
    case ISA_TYPE_V2F16:
        return w->mode >> 2 & 0x33;
    default:
        return 0x30;
    }
}

/* Calls the row function in the rounding mode of its result. */
static void call(struct isa_valu *v) {
    static const int modes[4] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
    unsigned round = v->dst_mode & 3;
    if (round)
        fesetround(modes[round]);
    v->fn(v->result, v->row[0], v->row[1], v->row[2]);
    if (round)
        fesetround(FE_TONEAREST);
}

static enum isa_result write_mask(struct isa_valu *v) {
    uint64_t mask = isa_rows_chosen->collect(v->result);
    mask = (mask & v->lanes) & ISA_WAVE_EXEC(v->w);
    isa_write64(v->w, v->i->dst, mask);
    if (isa_valu_is_cmpx(v->i->op))
        ISA_WAVE_EXEC(v->w) = mask;
    return ISA_CONTINUE;
}

static enum isa_result write_rows(struct isa_valu *v) {
    const struct isa_insn *i = v->i;
    unsigned dwords = isa_type_dwords(v->info->type[0]);
    if (i->dst < ISA_VGPR0 || i->dst + v->index[3] - ISA_VGPR0 + dwords > ISA_VGPRS)
        return isa_stop_unsupported(v->w, i, "no such destination");
    uint32_t *d = isa_row(v->w, i->dst + v->index[3]);
    isa_valu_finish(v, d);
    for (unsigned n = 0; n < dwords; n++)
        isa_rows_chosen->merge(d + (size_t)n * ISA_LANES, v->result + (size_t)n * ISA_LANES,
                               v->lanes);
    if (v->info->forms & ISA_FORM_SDST) {
        uint64_t flags =
            isa_rows_chosen->collect(v->result + (size_t)dwords * ISA_LANES) & v->lanes;
        isa_write64(v->w, i->sdst, flags);
    }
    return ISA_CONTINUE;
}

enum isa_result isa_valu_general(struct isa_wave *w, const struct isa_insn *i) {
    struct isa_valu v; /* the rows in it are written before they are read */
    const char *why = NULL;
    v.w = w;
    v.i = i;
    v.info = &isa_info[i->op];
    v.rows = isa_rows_chosen;
    memset(v.index, 0, sizeof v.index);
    v.lanes = ISA_WAVE_EXEC(w);
    v.fn = (isa_row_fn)i->kernel;
    v.dst_mode = float_mode(w, v.info->type[0]);
    if (v.info->type[0] == ISA_TYPE_M64)
        v.dst_mode = 0x30;
    v.sources = (unsigned)isa_valu_sources(i->op);
    v.row[0] = v.row[1] = v.row[2] = v.space[0];
    if (!isa_valu_prepare(&v, &why))
        return isa_stop_unsupported(w, i, why);
    for (unsigned s = 0; s < v.sources; s++)
        isa_valu_flush(&v, s, float_mode(w, v.info->type[s + 1]));
    if (v.info->type[0] == ISA_TYPE_M64) {
        call(&v);
        return write_mask(&v);
    }
    call(&v);
    return write_rows(&v);
}

/* ---- which instruction takes which way ---- */

int isa_valu_sources(enum isa_op op) {
    const struct isa_info *info = &isa_info[op];
    int n = 0;
    while (n < 3 && info->type[n + 1] != ISA_TYPE_NONE)
        n++;
    return info->forms & ISA_FORM_ACC ? n + 1 : n;
}

int isa_valu_is_cmpx(enum isa_op op) {
    return isa_info[op].encoding == ISA_ENC_VOPC && isa_info[op].name[5] == 'x';
}

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

/* Of v_madmk and its like: which source is K; 0 if this is none of them. */
static uint32_t constant_of(const struct isa_info *info) {
    if (!(info->forms & ISA_FORM_LIT) || info->type[0] != ISA_TYPE_F32)
        return 0;
    return strstr(info->name, "mk") ? 1 : 2;
}

int isa_valu_has(enum isa_op op) {
    return isa_rows_base.fn[op] != NULL;
}

int isa_valu_bind(struct isa_insn *i) {
    const struct isa_info *info = &isa_info[i->op];
    if (!isa_valu_has(i->op))
        return 0;
    i->kernel = (isa_any_fn)isa_rows_chosen->fn[i->op];
    i->exec = isa_valu_general;
    if (info->forms & ISA_FORM_ACC) /* the destination is the last source */
        i->src[isa_valu_sources(i->op) - 1] = i->dst;
    if (i->src[0] >= ISA_AGPR0)
        return 1;
    if (constant_of(info)) {
        i->ext = constant_of(info);
        i->exec = plain_constant;
        return 1;
    }
    bool compares = info->type[0] == ISA_TYPE_M64;
    uint32_t sources = (uint32_t)isa_valu_sources(i->op);
    if (is_plain(i, info)) {
        i->exec = compares                      ? plain_compare
                  : info->forms & ISA_FORM_SDST ? plain_flag
                  : is_div_fmas(i)              ? plain_div_fmas
                                                : plain;
    } else if (has_only_signs(i, info)) {
        i->exec = compares ? signed_compare : plain_signed;
    } else {
        return 1;
    }
    if (!compares)
        i->ext = sources; /* free in these forms */
    return 1;
}
