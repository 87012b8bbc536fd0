/* prepare.c - sources of vector instructions: scalars, VGPR indexing, SDWA, DPP, op_sel, abs, neg.
 */
#include "isa/floats.h"
#include "isa/valu.h"

#include <pthread.h>

/* A value of two registers in all lanes. */
static void fill_pair(const struct isa_rows *rows, uint32_t *space, uint64_t value) {
    rows->fill(space, (uint32_t)value);
    rows->fill(space + ISA_LANES, (uint32_t)(value >> 32));
}

const uint32_t *isa_valu_spread(struct isa_wave *w, const struct isa_insn *i, int s,
                                const struct isa_rows *rows, uint32_t *space) {
    enum isa_type type = isa_info[i->op].type[s + 1];
    unsigned code = i->src[s];
    if (type == ISA_TYPE_NONE) /* the destination of an accumulating instruction */
        type = isa_info[i->op].type[0];
    switch (type) {
    case ISA_TYPE_M64:
        rows->expand(space, isa_scalar64(w, i, code, type));
        break;
    case ISA_TYPE_V2F32:
    case ISA_TYPE_V2B32: /* a constant is in both halves */
        fill_pair(rows, space,
                  code >= ISA_SGPRS ? isa_scalar32(w, i, code) * UINT64_C(0x100000001)
                                    : isa_scalar64(w, i, code, ISA_TYPE_B64));
        break;
    case ISA_TYPE_B64:
    case ISA_TYPE_I64:
    case ISA_TYPE_U64:
    case ISA_TYPE_F64:
        fill_pair(rows, space, isa_scalar64(w, i, code, type));
        break;
    case ISA_TYPE_F16:
    case ISA_TYPE_V2F16:
    case ISA_TYPE_I16:
    case ISA_TYPE_U16:
    case ISA_TYPE_B16:
        rows->fill(space, isa_scalar16(w, i, code));
        break;
    default:
        rows->fill(space, code < ISA_SGPRS ? w->sgpr[code] : isa_scalar32(w, i, code));
    }
    return space;
}

/* ---- DPP ---- */

/* The lane that a lane reads, or -1. */
static int dpp_lane(unsigned ctrl, int l) {
    int row = l & ~15, at = l & 15, n = (int)(ctrl & 15);
    if (ctrl < 0x100)
        return (l & ~3) | (int)(ctrl >> 2 * (l & 3) & 3);
    if (ctrl < 0x110)
        return at + n < 16 ? l + n : -1;
    if (ctrl < 0x120)
        return at >= n ? l - n : -1;
    if (ctrl < 0x130)
        return row | ((at - n) & 15);
    if (ctrl >= 0x150)
        return row | n;
    switch (ctrl) {
    case 0x130:
        return l < 63 ? l + 1 : -1;
    case 0x134:
        return (l + 1) & 63;
    case 0x138:
        return l - 1;
    case 0x13c:
        return (l - 1) & 63;
    case 0x140:
        return row | (15 - at);
    case 0x141:
        return (l & ~7) | (7 - (l & 7));
    case 0x142:
        return row - 1;
    default: /* 0x143 */
        return l >= 32 ? 31 : -1;
    }
}

static bool is_dpp_control(unsigned ctrl) {
    return ctrl < 0x100 || (ctrl < 0x130 && ctrl & 15) || ctrl == 0x130 || ctrl == 0x134 ||
           ctrl == 0x138 || ctrl == 0x13c || (ctrl >= 0x140 && ctrl <= 0x143) ||
           (ctrl >= 0x150 && ctrl < 0x160);
}

/* Per control word, which lane each lane reads (itself if none), and which lanes read one. */
static struct pattern {
    uint32_t from[ISA_LANES];
    uint64_t inside;
} patterns[0x160];

static void fill_patterns(void) {
    for (unsigned ctrl = 0; ctrl < 0x160; ctrl++)
        for (int l = 0; l < ISA_LANES && is_dpp_control(ctrl); l++) {
            int from = dpp_lane(ctrl, l);
            patterns[ctrl].from[l] = (uint32_t)(from >= 0 ? from : l);
            patterns[ctrl].inside |= (uint64_t)(from >= 0) << l;
        }
}

/* The lanes that row_mask and bank_mask leave on. */
static uint64_t masked_lanes(uint32_t x) {
    uint64_t banks = 0, lanes = 0;
    for (unsigned n = 0; n < 4; n++)
        banks |= x >> (24 + n) & 1 ? UINT64_C(15) << 4 * n : 0;
    for (unsigned n = 0; n < 4; n++)
        lanes |= x >> (28 + n) & 1 ? banks << 16 * n : 0;
    return lanes;
}

/* Moves lanes of src0. A lane that would read outside, or from a lane that is off, reads 0 with
 * bound_ctrl; without bound_ctrl it is not written. */
static bool apply_dpp(struct isa_valu *v, const char **why) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    uint32_t x = v->i->ext;
    unsigned ctrl = x >> 8 & 0x1ff, dwords = isa_type_dwords(v->info->type[1]);
    uint64_t exec = ISA_WAVE_EXEC(v->w);
    if (!is_dpp_control(ctrl)) {
        *why = "reserved dpp_ctrl";
        return false;
    }
    pthread_once(&once, fill_patterns);
    const struct pattern *p = &patterns[ctrl];
    uint64_t valid = p->inside;
    if (exec != ~UINT64_C(0))
        for (int l = 0; l < ISA_LANES; l++)
            valid &= ~((uint64_t) !(exec >> p->from[l] & 1) << l);
    v->lanes &= masked_lanes(x) & (x >> 19 & 1 ? ~UINT64_C(0) : valid);
    uint32_t *to = v->space[0] + (size_t)2 * ISA_LANES; /* a scalar is in the first half */
    for (unsigned n = 0; n < dwords; n++)
        v->rows->gather(to + (size_t)n * ISA_LANES, v->row[0] + (size_t)n * ISA_LANES, p->from,
                        valid);
    v->row[0] = to;
    return true;
}

/* ---- SDWA ---- */

/* A byte or a half of each lane, extended: shifted to the top and back. */
static void select_parts(struct isa_valu *v, unsigned s, unsigned sel, int sign) {
    unsigned bits = sel < 4 ? 8 : 16, at = sel < 4 ? 8 * sel : 16 * (sel - 4);
    v->rows->extract(v->space[s], v->row[s], 32 - bits - at, 32 - bits, sign);
    v->row[s] = v->space[s];
}

static bool apply_sdwa(struct isa_valu *v, const char **why) {
    unsigned count = v->info->encoding == ISA_ENC_VOP1 ? 1 : 2;
    for (unsigned s = 0; s < count && s < v->sources; s++) {
        unsigned sel = v->i->ext >> (16 + 8 * s) & 7;
        int sign = (int)(v->i->modifiers / ISA_MOD_SEXT) >> s & 1;
        if (sel == 7) {
            *why = "reserved selection of SDWA";
            return false;
        }
        if (sel == 6)
            continue;
        select_parts(v, s, sel, sign);
    }
    if (v->info->encoding != ISA_ENC_VOPC && (v->i->ext >> 8 & 7) == 7) {
        *why = "reserved destination selection of SDWA";
        return false;
    }
    return true;
}

/* ---- halves ---- */

/* op_sel of 16-bit operands: the upper half is moved down. */
static void apply_op_sel(struct isa_valu *v) {
    for (unsigned s = 0; s < v->sources; s++) {
        if (!(v->i->modifiers >> (ISA_MOD_OPSEL_SHIFT + s) & 1))
            continue;
        enum isa_type t = v->info->type[s + 1];
        if (t != ISA_TYPE_F16 && t != ISA_TYPE_I16 && t != ISA_TYPE_U16 && t != ISA_TYPE_B16)
            continue;
        for (int l = 0; l < ISA_LANES; l++)
            v->space[s][l] = v->row[s][l] >> 16;
        v->row[s] = v->space[s];
    }
}

/* Packed halves of 16 bits: each from the half that op_sel and op_sel_hi name, floats with neg. */
static void pack_16(struct isa_valu *v, unsigned s, unsigned lo, unsigned hi, uint32_t flip) {
    for (int l = 0; l < ISA_LANES; l++) {
        uint32_t x = v->row[s][l];
        v->space[s][l] = ((x >> 16 * lo & 0xffff) | (x >> 16 * hi) << 16) ^ flip;
    }
    v->row[s] = v->space[s];
}

/* Into the second half of the space: a scalar is in the first. */
static void pack_32(struct isa_valu *v, unsigned s, unsigned lo, unsigned hi, uint32_t neg,
                    uint32_t neg_hi) {
    uint32_t *to = v->space[s] + (size_t)2 * ISA_LANES;
    if (lo == 0 && hi == 1 && !neg && !neg_hi)
        return;
    v->rows->flip(to, v->row[s] + (size_t)lo * ISA_LANES, ~0u, neg << 31);
    v->rows->flip(to + ISA_LANES, v->row[s] + (size_t)hi * ISA_LANES, ~0u, neg_hi << 31);
    v->row[s] = to;
}

/* v_fma_mix: a float, or a half of an f16 pair; neg_hi is abs here. */
static void mix(struct isa_valu *v, unsigned s, unsigned lo, unsigned hi, uint32_t neg,
                uint32_t abs) {
    for (int l = 0; l < ISA_LANES; l++) {
        uint32_t x = v->row[s][l];
        if (hi)
            x = isa_bits(isa_from_half(x >> 16 * lo & 0xffff));
        x = abs ? x & 0x7fffffff : x;
        v->space[s][l] = x ^ neg << 31;
    }
    v->row[s] = v->space[s];
}

static void apply_packed(struct isa_valu *v) {
    uint32_t m = v->i->modifiers;
    for (unsigned s = 0; s < v->sources; s++) {
        unsigned lo = m >> (ISA_MOD_OPSEL_SHIFT + s) & 1,
                 hi = m >> (ISA_MOD_OPSEL_HI_SHIFT + s) & 1;
        uint32_t neg = m >> s & 1, neg_hi = m / ISA_MOD_NEG_HI >> s & 1;
        switch (v->info->type[s + 1]) {
        case ISA_TYPE_MIX:
            mix(v, s, lo, hi, neg, neg_hi);
            break;
        case ISA_TYPE_V2F16:
            pack_16(v, s, lo, hi, neg << 15 | neg_hi << 31);
            break;
        case ISA_TYPE_V2I16:
        case ISA_TYPE_V2U16:
            pack_16(v, s, lo, hi, 0);
            break;
        case ISA_TYPE_V2F32:
            pack_32(v, s, lo, hi, neg, neg_hi);
            break;
        case ISA_TYPE_V2B32: /* v_pk_mov_b32: op_sel of src0 is for the low half, of src1 the high
                              */
            pack_32(v, s, lo, lo, 0, 0);
            break;
        default: /* whole operands, such as the sum of a dot product */
            if (neg && v->info->type[s + 1] == ISA_TYPE_F32)
                mix(v, s, 0, 0, neg, 0);
        }
    }
}

/* ---- abs and neg ---- */

static void flip_signs(struct isa_valu *v, unsigned s, unsigned row, uint32_t sign, int abs,
                       int neg) {
    const uint32_t *from = v->row[s] + (size_t)row * ISA_LANES;
    uint32_t *to = v->space[s] + (size_t)row * ISA_LANES;
    v->rows->flip(to, from, abs ? ~sign : ~0u, neg ? sign : 0);
}

static void apply_signs(struct isa_valu *v) {
    for (unsigned s = 0; s < v->sources && s < 3; s++) {
        int neg = v->i->modifiers >> s & 1, abs = v->i->modifiers / ISA_MOD_ABS >> s & 1;
        enum isa_type t = v->info->type[s + 1];
        if (!neg && !abs)
            continue;
        if (t == ISA_TYPE_F16 || t == ISA_TYPE_V2F16) {
            flip_signs(v, s, 0, t == ISA_TYPE_F16 ? 0x8000 : 0x80008000, abs, neg);
        } else if (t == ISA_TYPE_F32 || (v->i->op == ISA_OP_v_cndmask_b32 && s < 2)) {
            flip_signs(v, s, 0, 0x80000000, abs, neg);
        } else if (t == ISA_TYPE_F64) {
            if (v->row[s] != v->space[s])
                memcpy(v->space[s], v->row[s], ISA_LANES * sizeof(uint32_t));
            flip_signs(v, s, 1, 0x80000000, abs, neg);
        } else {
            continue; /* ignored */
        }
        v->row[s] = v->space[s];
    }
}

/* ---- all of it ---- */

/* What VGPR indexing (s_set_gpr_idx_on) adds to the operands. */
static bool find_indices(struct isa_valu *v, const char **why) {
    uint32_t m0 = ISA_WAVE_M0(v->w);
    if (!(v->w->mode & ISA_MODE_GPR_IDX))
        return true;
    for (int k = 0; k < 4; k++)
        v->index[k] = m0 >> (12 + k) & 1 ? m0 & 0xff : 0;
    for (unsigned s = 0; s < v->sources; s++) {
        unsigned code = v->i->src[s];
        if (code >= ISA_VGPR0 && code + v->index[s] + isa_type_dwords(v->info->type[s + 1]) > 512) {
            *why = "M0 leads past the last VGPR";
            return false;
        }
    }
    if (v->i->dst >= ISA_VGPR0 && v->i->dst + v->index[3] > 511) {
        *why = "M0 leads past the last VGPR";
        return false;
    }
    return true;
}

/* K of v_madmk and v_fmamk is src1, of v_madak and v_fmaak src2; the other VGPR follows it. */
static void take_constant(struct isa_valu *v) {
    unsigned k = v->info->forms & ISA_FORM_K1 ? 1 : 2;
    uint32_t value = v->i->literal;
    const uint32_t *other = isa_row(v->w, v->i->src[1] + v->index[1]);
    v->rows->fill(v->space[k], value);
    v->row[k] = v->space[k];
    v->row[3 - k] = other;
}

bool isa_valu_prepare(struct isa_valu *v, const char **why) {
    const struct isa_insn *i = v->i;
    if (!find_indices(v, why))
        return false;
    for (unsigned s = 0; s < v->sources; s++) {
        if (i->src[s] >= ISA_VGPR0)
            v->row[s] = isa_row(v->w, i->src[s] + v->index[s]);
        else
            v->row[s] = isa_valu_spread(v->w, i, (int)s, v->rows, v->space[s]);
    }
    if (v->info->forms & ISA_FORM_LIT)
        take_constant(v);
    if (i->form == ISA_AS_SDWA && !apply_sdwa(v, why))
        return false;
    if (i->form == ISA_AS_DPP && !apply_dpp(v, why))
        return false;
    if (v->info->forms & ISA_FORM_OPSEL)
        apply_op_sel(v);
    if (v->info->encoding == ISA_ENC_VOP3P)
        apply_packed(v);
    else
        apply_signs(v);
    enum isa_type t = v->info->type[0];
    bool is_float = t == ISA_TYPE_F16 || t == ISA_TYPE_F32 || t == ISA_TYPE_F64 ||
                    t == ISA_TYPE_V2F16 || t == ISA_TYPE_V2F32;
    if (i->modifiers & ISA_MOD_CLAMP && !is_float && t != ISA_TYPE_M64) {
        v->fn = v->rows->saturating[i->op];
        *why = "clamp of this instruction";
        if (!v->fn)
            return false;
    }
    if (v->dst_mode & 3 && (t == ISA_TYPE_F16 || t == ISA_TYPE_V2F16))
        v->fn = isa_rows_rounding.fn[i->op];
    return true;
}
