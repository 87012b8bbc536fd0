/* finish.c - results of vector instructions: omod, clamp, denormals, halves, SDWA; and denormals of
 * sources. */
#include "isa/floats.h"
#include "isa/valu.h"

enum { INPUT_DENORMALS = 0x10, OUTPUT_DENORMALS = 0x20 };

/* Moves and selections keep denormals. */
static bool keeps_bits(const struct isa_valu *v) {
    return v->i->op == ISA_OP_v_mov_b32 || v->i->op == ISA_OP_v_cndmask_b32;
}

static uint32_t flush_32(uint32_t x) {
    return (x & 0x7f800000) == 0 ? x & 0x80000000 : x;
}
static uint32_t flush_16(uint32_t x) {
    uint32_t lo = (x & 0x7c00) == 0 ? x & 0x8000 : x & 0xffff;
    uint32_t hi = (x & 0x7c000000) == 0 ? x & 0x80000000 : x & 0xffff0000;
    return lo | hi;
}

static void flush_rows(uint32_t *d, const uint32_t *s, enum isa_type t) {
    for (int l = 0; l < ISA_LANES; l++) {
        switch (t) {
        case ISA_TYPE_F16:
            d[l] = (flush_16(s[l]) & 0xffff) | (s[l] & 0xffff0000);
            break;
        case ISA_TYPE_V2F16:
            d[l] = flush_16(s[l]);
            break;
        case ISA_TYPE_V2F32:
            d[l] = flush_32(s[l]);
            d[ISA_LANES + l] = flush_32(s[ISA_LANES + l]);
            break;
        case ISA_TYPE_F64: {
            uint32_t hi = s[ISA_LANES + l];
            int zero = (hi & 0x7ff00000) == 0;
            d[l] = zero ? 0 : s[l];
            d[ISA_LANES + l] = zero ? hi & 0x80000000 : hi;
            break;
        }
        default:
            d[l] = flush_32(s[l]);
        }
    }
}

static bool is_float(enum isa_type t) {
    return t == ISA_TYPE_F16 || t == ISA_TYPE_F32 || t == ISA_TYPE_F64 || t == ISA_TYPE_V2F16 ||
           t == ISA_TYPE_V2F32 || t == ISA_TYPE_MIX;
}

void isa_valu_flush(struct isa_valu *v, unsigned s, unsigned mode) {
    enum isa_type t = v->info->type[s + 1];
    if (t == ISA_TYPE_NONE)
        t = v->info->type[0];
    if (mode & INPUT_DENORMALS || !is_float(t) || keeps_bits(v))
        return;
    flush_rows(v->space[s], v->row[s], t);
    v->row[s] = v->space[s];
}

/* ---- omod and clamp ---- */

static float clamp_float(float x, bool nan_is_zero) {
    if (x != x)
        return nan_is_zero ? 0.0f : x;
    return x > 1.0f ? 1.0f : x > 0.0f ? x : 0.0f;
}

static uint32_t clamp_half(uint32_t h, bool nan_is_zero) {
    return isa_to_half(clamp_float(isa_from_half(h & 0xffff), nan_is_zero));
}

static void clamp_rows(uint32_t *d, enum isa_type t, bool nan_is_zero) {
    for (int l = 0; l < ISA_LANES; l++) {
        switch (t) {
        case ISA_TYPE_F16:
            d[l] = clamp_half(d[l], nan_is_zero);
            break;
        case ISA_TYPE_V2F16:
            d[l] = clamp_half(d[l], nan_is_zero) | clamp_half(d[l] >> 16, nan_is_zero) << 16;
            break;
        case ISA_TYPE_F64: {
            double x = isa_double(d[l] | (uint64_t)d[ISA_LANES + l] << 32);
            x = x != x ? (nan_is_zero ? 0.0 : x) : x > 1.0 ? 1.0 : x > 0.0 ? x : 0.0;
            d[l] = (uint32_t)isa_bits64(x);
            d[ISA_LANES + l] = (uint32_t)(isa_bits64(x) >> 32);
            break;
        }
        case ISA_TYPE_V2F32:
            d[ISA_LANES + l] = isa_bits(clamp_float(isa_float(d[ISA_LANES + l]), nan_is_zero));
            d[l] = isa_bits(clamp_float(isa_float(d[l]), nan_is_zero));
            break;
        default:
            d[l] = isa_bits(clamp_float(isa_float(d[l]), nan_is_zero));
        }
    }
}

static void scale_rows(uint32_t *d, enum isa_type t, float factor) {
    for (int l = 0; l < ISA_LANES; l++) {
        if (t == ISA_TYPE_F16) {
            d[l] = isa_to_half(isa_from_half(d[l]) * factor);
        } else if (t == ISA_TYPE_F64) {
            double x = isa_double(d[l] | (uint64_t)d[ISA_LANES + l] << 32) * (double)factor;
            d[l] = (uint32_t)isa_bits64(x);
            d[ISA_LANES + l] = (uint32_t)(isa_bits64(x) >> 32);
        } else {
            d[l] = isa_bits(isa_float(d[l]) * factor);
        }
    }
}

/* v_div_fmas: lanes that v_div_scale flagged in VCC are scaled back. */
static void scale_back(struct isa_valu *v) {
    uint64_t vcc = ISA_WAVE_VCC(v->w);
    uint32_t *d = v->result;
    for (int l = 0; l < ISA_LANES; l++) {
        if (!(vcc >> l & 1))
            continue;
        if (v->i->op == ISA_OP_v_div_fmas_f32) {
            int up = (v->row[2][l] >> 23 & 0xff) > 127;
            d[l] = isa_bits(isa_float(d[l]) * (up ? 0x1p64f : 0x1p-64f));
        } else {
            int up = (v->row[2][ISA_LANES + l] >> 20 & 0x7ff) > 1023;
            double x = isa_double(d[l] | (uint64_t)d[ISA_LANES + l] << 32);
            uint64_t u = isa_bits64(x * (up ? 0x1p128 : 0x1p-128));
            d[l] = (uint32_t)u;
            d[ISA_LANES + l] = (uint32_t)(u >> 32);
        }
    }
}

/* ---- MODE.FP16_OVFL: overflow gives the largest number unless a source is infinite ----------- */

static bool is_infinite(const struct isa_valu *v, unsigned s, int l, unsigned half) {
    uint32_t x = v->row[s][l];
    switch (v->info->type[s + 1]) {
    case ISA_TYPE_F16:
        return (x & 0x7fff) == 0x7c00;
    case ISA_TYPE_V2F16:
        return (x >> 16 * half & 0x7fff) == 0x7c00;
    case ISA_TYPE_NONE: /* the destination, read as well */
        return (x >> 16 * (v->info->type[0] == ISA_TYPE_V2F16 ? half : 0) & 0x7fff) == 0x7c00;
    case ISA_TYPE_F32:
    case ISA_TYPE_MIX:
        return (x & 0x7fffffff) == 0x7f800000;
    default:
        return false;
    }
}

/* Infinity minus 1 is the largest number. */
static void limit_halves(struct isa_valu *v) {
    unsigned halves = v->info->type[0] == ISA_TYPE_V2F16 ? 2 : 1;
    if (v->info->exactness != ISA_EXACT) /* infinities of functions are no overflows */
        return;
    for (int l = 0; l < ISA_LANES; l++)
        for (unsigned h = 0; h < halves; h++) {
            bool infinite = false;
            for (unsigned s = 0; s < v->sources; s++)
                infinite |= is_infinite(v, s, l, h);
            if (!infinite && (v->result[l] >> 16 * h & 0x7fff) == 0x7c00)
                v->result[l] -= 1u << 16 * h;
        }
}

/* fp8 and bf8 have no infinities: a number that overflows has become 0x80. */
static void limit_bytes(struct isa_valu *v) {
    bool two = v->i->op == ISA_OP_v_cvt_pk_fp8_f32 || v->i->op == ISA_OP_v_cvt_pk_bf8_f32;
    for (int l = 0; l < ISA_LANES; l++)
        for (unsigned n = 0; n < (two ? 2u : 1u); n++) {
            uint32_t x = v->row[n][l];
            if ((v->result[l] >> 8 * n & 0xff) != 0x80 || (x & 0x7f800000) == 0x7f800000)
                continue;
            v->result[l] &= ~(0xffu << 8 * n);
            v->result[l] |= (x >> 31 << 7 | 0x7f) << 8 * n;
        }
}

static void limit_overflows(struct isa_valu *v) {
    enum isa_type t = v->info->type[0];
    if (!(v->w->mode & ISA_MODE_FP16_OVFL))
        return;
    switch (v->i->op) {
    case ISA_OP_v_cvt_pk_fp8_f32:
    case ISA_OP_v_cvt_pk_bf8_f32:
    case ISA_OP_v_cvt_sr_fp8_f32:
    case ISA_OP_v_cvt_sr_bf8_f32:
        limit_bytes(v);
        return;
    default:
        if (t == ISA_TYPE_F16 || t == ISA_TYPE_V2F16)
            limit_halves(v);
    }
}

/* ---- halves and bytes ---- */

/* Where the result goes within the destination: shift and mask; what is outside stays. */
static void insert(struct isa_valu *v, const uint32_t *d, unsigned shift, uint32_t mask) {
    for (int l = 0; l < ISA_LANES; l++)
        v->result[l] = (d[l] & ~(mask << shift)) | (v->result[l] & mask) << shift;
}

static void finish_sdwa(struct isa_valu *v, const uint32_t *d) {
    unsigned sel = v->i->ext >> 8 & 7, unused = v->i->ext >> 11 & 3;
    if (sel == 6)
        return;
    unsigned shift = sel < 4 ? 8 * sel : 16 * (sel - 4);
    uint32_t mask = sel < 4 ? 0xff : 0xffff;
    if (unused == 2) {
        insert(v, d, shift, mask);
        return;
    }
    for (int l = 0; l < ISA_LANES; l++) {
        uint32_t part = v->result[l] & mask;
        if (unused == 1)
            part = mask == 0xff ? (uint32_t)(int8_t)part : (uint32_t)(int16_t)part;
        v->result[l] = part << shift;
    }
}

/* Instructions with op_sel, and v_fma_mixlo and mixhi, write one half and keep the other. */
static void finish_half(struct isa_valu *v, const uint32_t *d) {
    unsigned opsel = v->i->modifiers >> ISA_MOD_OPSEL_SHIFT & 15;
    enum isa_type t = v->info->type[0];
    switch (v->i->op) {
    case ISA_OP_v_fma_mixlo_f16:
        insert(v, d, 0, 0xffff);
        return;
    case ISA_OP_v_fma_mixhi_f16:
        insert(v, d, 16, 0xffff);
        return;
    case ISA_OP_v_cvt_pk_fp8_f32:
    case ISA_OP_v_cvt_pk_bf8_f32:
        insert(v, d, opsel >> 3 ? 16 : 0, 0xffff);
        return;
    case ISA_OP_v_cvt_sr_fp8_f32:
    case ISA_OP_v_cvt_sr_bf8_f32: /* op_sel[3:2] is the byte */
        insert(v, d, 8 * (opsel >> 2), 0xff);
        return;
    default:
        break;
    }
    if (v->info->forms & ISA_FORM_OPSEL &&
        (t == ISA_TYPE_F16 || t == ISA_TYPE_I16 || t == ISA_TYPE_U16))
        insert(v, d, opsel >> 3 ? 16 : 0, 0xffff);
}

void isa_valu_finish(struct isa_valu *v, const uint32_t *d) {
    static const float factors[4] = { 1.0f, 2.0f, 4.0f, 0.5f };
    enum isa_type t = v->info->type[0];
    unsigned omod = v->i->modifiers >> ISA_MOD_OMOD_SHIFT & 3;
    if (v->i->op == ISA_OP_v_div_fmas_f32 || v->i->op == ISA_OP_v_div_fmas_f64)
        scale_back(v);
    limit_overflows(v);
    /* Hardware ignores omod where denormals come out, and in IEEE mode. */
    if (omod && is_float(t) && !(v->dst_mode & OUTPUT_DENORMALS) && !(v->w->mode & ISA_MODE_IEEE))
        scale_rows(v->result, t, factors[omod]);
    if (v->i->modifiers & ISA_MOD_CLAMP && is_float(t))
        clamp_rows(v->result, t, (v->w->mode & ISA_MODE_DX10_CLAMP) != 0);
    if (is_float(t) && !(v->dst_mode & OUTPUT_DENORMALS) && !keeps_bits(v))
        flush_rows(v->result, v->result, t);
    if (v->i->form == ISA_AS_SDWA)
        finish_sdwa(v, d);
    else
        finish_half(v, d);
}
