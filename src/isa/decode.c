/* decode.c - machine code to struct isa_insn.
 *
 * The layouts are those of AMD's "Instruction Set Architecture" documents for CDNA2 and CDNA3,
 * chapter "Microcode formats". Bits are written [high:low] as there. */
#include "isa/insn.h"

#include <stdbool.h>
#include <string.h>

#define OPCODES 1024

/* By GPU, encoding and opcode. The entries of one table come from gfx9.def, each once: a second one
 * for the same place is an error (-Woverride-init, -Winitializer-overrides). */
#define ON_ALL(...)    __VA_ARGS__
#define ON_GFX90A(...) __VA_ARGS__
#define ON_GFX942(...)
#define INSN(name, enc, op, gpus, d, s0, s1, s2, forms, exactness, semantics)                      \
    ON_##gpus([ISA_ENC_##enc][op] = ISA_OP_##name, )
static const uint16_t gfx90a[ISA_ENC_COUNT][OPCODES] = {
#include "isa/gfx9.def"
};
#undef ON_GFX90A
#undef ON_GFX942
#define ON_GFX90A(...)
#define ON_GFX942(...) __VA_ARGS__
static const uint16_t gfx942[ISA_ENC_COUNT][OPCODES] = {
#include "isa/gfx9.def"
};
#undef INSN

static enum isa_op find(enum isa_gpu gpu, enum isa_encoding enc, unsigned op) {
    return gpu == ISA_GFX90A ? gfx90a[enc][op] : gfx942[enc][op];
}

static inline uint32_t bits(uint32_t word, unsigned high, unsigned low) {
    return (word >> low) & (0xffffffffu >> (31 - (high - low)));
}

static inline int32_t sign_extend(uint32_t value, unsigned width) {
    uint32_t sign = 1u << (width - 1);
    return (int32_t)((value ^ sign) - sign);
}

/* An operation was found; takes the literal that follows an operand 255. */
static void set(struct isa_insn *i, enum isa_op op, unsigned words) {
    i->op = op;
    i->words = words;
}

static void take_literal(struct isa_insn *i) {
    for (int s = 0; s < 3; s++) {
        if (i->src[s] == ISA_LITERAL) {
            i->literal = i->raw[1];
            i->words = 2;
        }
    }
}

/* ---- scalar ---- */

static void decode_sop(enum isa_gpu gpu, uint32_t w, struct isa_insn *i) {
    uint32_t top = bits(w, 31, 23);
    i->src[0] = bits(w, 7, 0);
    i->dst = bits(w, 22, 16);
    if (top == 0x17f) { /* SOPP */
        set(i, find(gpu, ISA_ENC_SOPP, bits(w, 22, 16)), 1);
        i->imm = (int32_t)bits(w, 15, 0);
        i->src[0] = i->dst = 0;
    } else if (top == 0x17e) { /* SOPC */
        set(i, find(gpu, ISA_ENC_SOPC, bits(w, 22, 16)), 1);
        i->src[1] = bits(w, 15, 8);
        i->dst = 0;
        if (i->op == ISA_OP_s_set_gpr_idx_on) {
            i->imm = i->src[1];
            i->src[1] = 0;
        }
    } else if (top == 0x17d) { /* SOP1 */
        set(i, find(gpu, ISA_ENC_SOP1, bits(w, 15, 8)), 1);
    } else if (bits(w, 31, 28) == 0xb) { /* SOPK */
        set(i, find(gpu, ISA_ENC_SOPK, bits(w, 27, 23)), 1);
        i->imm = (int32_t)bits(w, 15, 0);
        i->src[0] = 0;
        if (i->op == ISA_OP_s_setreg_imm32_b32) {
            i->literal = i->raw[1];
            i->words = 2;
        }
        return;
    } else { /* SOP2 */
        set(i, find(gpu, ISA_ENC_SOP2, bits(w, 29, 23)), 1);
        i->src[1] = bits(w, 15, 8);
    }
    take_literal(i);
}

static void decode_smem(enum isa_gpu gpu, uint32_t w, struct isa_insn *i) {
    uint32_t w1 = i->raw[1];
    set(i, find(gpu, ISA_ENC_SMEM, bits(w, 25, 18)), 2);
    i->dst = bits(w, 12, 6);
    i->src[0] = bits(w, 5, 0) * 2;
    i->src[1] = ISA_OFF;
    if (bits(w, 16, 16))
        i->memory |= ISA_MEM_GLC;
    if (bits(w, 15, 15))
        i->memory |= ISA_MEM_NV;
    if (bits(w, 17, 17)) {
        i->memory |= ISA_MEM_IMM;
        i->imm = sign_extend(bits(w1, 20, 0), 21);
        if (bits(w, 14, 14))
            i->src[1] = bits(w1, 31, 25);
    } else {
        i->src[1] = bits(w, 14, 14) ? bits(w1, 31, 25) : bits(w1, 6, 0);
    }
}

/* ---- vector ---- */

/* The second dword of SDWA: src0[7:0], dst_sel[10:8], dst_unused[12:11], clamp[13], omod[15:14],
 * src0_sel[18:16], sext0[19], neg0[20], abs0[21], s0[23], src1_sel[26:24], sext1[27], neg1[28],
 * abs1[29], s1[31]. In VOPC [15:8] is the destination: sd[15], sdst[14:8]. */
static void decode_sdwa(struct isa_insn *i, enum isa_encoding enc) {
    uint32_t x = i->raw[1];
    i->form = ISA_AS_SDWA;
    i->words = 2;
    i->ext = x;
    i->src[0] = bits(x, 7, 0) + (bits(x, 23, 23) ? 0 : ISA_VGPR0);
    if (enc != ISA_ENC_VOP1 && bits(x, 31, 31))
        i->src[1] -= ISA_VGPR0;
    i->modifiers |= bits(x, 19, 19) * ISA_MOD_SEXT | bits(x, 27, 27) * (ISA_MOD_SEXT << 1);
    i->modifiers |= bits(x, 20, 20) * ISA_MOD_NEG | bits(x, 28, 28) * (ISA_MOD_NEG << 1);
    i->modifiers |= bits(x, 21, 21) * ISA_MOD_ABS | bits(x, 29, 29) * (ISA_MOD_ABS << 1);
    if (enc == ISA_ENC_VOPC) {
        i->dst = bits(x, 15, 15) ? bits(x, 14, 8) : ISA_VCC;
        return;
    }
    i->modifiers |= bits(x, 13, 13) * ISA_MOD_CLAMP | bits(x, 15, 14) << ISA_MOD_OMOD_SHIFT;
}

/* The second dword of DPP: src0[7:0], dpp_ctrl[16:8], bound_ctrl[19], neg0[20], abs0[21], neg1[22],
 * abs1[23], bank_mask[27:24], row_mask[31:28]. */
static void decode_dpp(struct isa_insn *i) {
    uint32_t x = i->raw[1];
    i->form = ISA_AS_DPP;
    i->words = 2;
    i->ext = x;
    i->src[0] = bits(x, 7, 0) + ISA_VGPR0;
    i->modifiers |= bits(x, 20, 20) * ISA_MOD_NEG | bits(x, 22, 22) * (ISA_MOD_NEG << 1);
    i->modifiers |= bits(x, 21, 21) * ISA_MOD_ABS | bits(x, 23, 23) * (ISA_MOD_ABS << 1);
}

/* VOP1, VOP2 and VOPC with what follows them. */
static void decode_vop12c(enum isa_gpu gpu, uint32_t w, struct isa_insn *i) {
    enum isa_encoding enc = ISA_ENC_VOP2;
    if (bits(w, 31, 25) == 0x3f) {
        enc = ISA_ENC_VOP1;
        set(i, find(gpu, enc, bits(w, 16, 9)), 1);
        i->dst = bits(w, 24, 17) + ISA_VGPR0;
    } else if (bits(w, 31, 25) == 0x3e) {
        enc = ISA_ENC_VOPC;
        set(i, find(gpu, enc, bits(w, 24, 17)), 1);
        i->dst = ISA_VCC;
        i->src[1] = bits(w, 16, 9) + ISA_VGPR0;
    } else {
        set(i, find(gpu, enc, bits(w, 30, 25)), 1);
        i->dst = bits(w, 24, 17) + ISA_VGPR0;
        i->src[1] = bits(w, 16, 9) + ISA_VGPR0;
    }
    const struct isa_info *info = &isa_info[i->op];
    i->src[0] = bits(w, 8, 0);
    if (info->type[3] == ISA_TYPE_M64)
        i->src[2] = ISA_VCC;
    if (info->forms & ISA_FORM_SDST)
        i->sdst = ISA_VCC;
    if (i->src[0] == ISA_SDWA) {
        if (!(info->forms & ISA_FORM_SDWA))
            i->op = ISA_OP_NONE;
        decode_sdwa(i, enc);
    } else if (i->src[0] == ISA_DPP) {
        if (!(info->forms & ISA_FORM_DPP))
            i->op = ISA_OP_NONE;
        decode_dpp(i);
    } else if (info->forms & ISA_FORM_LIT) {
        i->literal = i->raw[1];
        i->words = 2;
    } else {
        take_literal(i);
    }
    if (i->op == ISA_OP_v_readfirstlane_b32)
        i->dst -= ISA_VGPR0;
    if (i->op == ISA_OP_v_accvgpr_mov_b32) {
        i->dst += ISA_AGPR0 - ISA_VGPR0;
        i->src[0] += ISA_AGPR0 - ISA_VGPR0;
    }
}

/* The VOP3 form of VOPC, VOP2 and VOP1 instructions has opcodes of its own. */
static enum isa_op find_vop3(enum isa_gpu gpu, unsigned op) {
    enum isa_op found = find(gpu, ISA_ENC_VOP3, op);
    if (found)
        return found;
    if (op < 0x100)
        found = find(gpu, ISA_ENC_VOPC, op);
    else if (op < 0x140)
        found = find(gpu, ISA_ENC_VOP2, op - 0x100);
    else if (op < 0x1c0)
        found = find(gpu, ISA_ENC_VOP1, op - 0x140);
    return isa_info[found].forms & ISA_FORM_E64 ? found : ISA_OP_NONE;
}

static void decode_vop3(enum isa_gpu gpu, uint32_t w, struct isa_insn *i) {
    uint32_t x = i->raw[1];
    set(i, find_vop3(gpu, bits(w, 25, 16)), 2);
    const struct isa_info *info = &isa_info[i->op];
    i->form = ISA_E64;
    i->dst = bits(w, 7, 0) + ISA_VGPR0;
    if (info->encoding == ISA_ENC_VOPC || i->op == ISA_OP_v_readlane_b32)
        i->dst = bits(w, 7, 0);
    i->src[0] = bits(x, 8, 0);
    i->src[1] = bits(x, 17, 9);
    i->src[2] = bits(x, 26, 18);
    i->modifiers = bits(x, 31, 29) * ISA_MOD_NEG | bits(w, 15, 15) * ISA_MOD_CLAMP |
                   bits(x, 28, 27) << ISA_MOD_OMOD_SHIFT;
    if (info->forms & ISA_FORM_SDST)
        i->sdst = bits(w, 14, 8);
    else
        i->modifiers |= bits(w, 10, 8) * ISA_MOD_ABS | bits(w, 14, 11) << ISA_MOD_OPSEL_SHIFT;
}

/* Packed instructions: clamp[15], op_sel_hi2[14], op_sel[13:11], neg_hi[10:8]; the second dword has
 * neg_lo[31:29] and op_sel_hi[28:27]. */
static void decode_vop3p(enum isa_gpu gpu, uint32_t w, struct isa_insn *i) {
    uint32_t x = i->raw[1];
    enum isa_op mai = find(gpu, ISA_ENC_MAI, bits(w, 22, 16));
    i->form = ISA_E64;
    i->dst = bits(w, 7, 0) + ISA_VGPR0;
    i->src[0] = bits(x, 8, 0);
    i->src[1] = bits(x, 17, 9);
    i->src[2] = bits(x, 26, 18);
    if (!mai) {
        set(i, find(gpu, ISA_ENC_VOP3P, bits(w, 22, 16)), 2);
        i->modifiers = bits(x, 31, 29) * ISA_MOD_NEG | bits(w, 10, 8) * ISA_MOD_NEG_HI |
                       bits(w, 13, 11) << ISA_MOD_OPSEL_SHIFT |
                       (bits(x, 28, 27) | bits(w, 14, 14) << 2) << ISA_MOD_OPSEL_HI_SHIFT |
                       bits(w, 15, 15) * ISA_MOD_CLAMP;
        return;
    }
    /* Matrices: acc_cd[15], abid[14:11], cbsz[10:8]; blgp[31:29], acc[28:27]. */
    set(i, mai, 2);
    i->ext = bits(w, 10, 8) | bits(w, 14, 11) << 4 | bits(x, 31, 29) << 8;
    if (bits(w, 15, 15)) {
        i->dst += ISA_AGPR0 - ISA_VGPR0;
        if (i->src[2] >= ISA_VGPR0 && !(isa_info[mai].forms & ISA_FORM_SPARSE))
            i->src[2] += ISA_AGPR0 - ISA_VGPR0;
    }
    for (int s = 0; s < 2; s++)
        if (bits(x, 27 + s, 27 + s) && i->src[s] >= ISA_VGPR0)
            i->src[s] += ISA_AGPR0 - ISA_VGPR0;
    /* These two say by themselves where the AGPR is. */
    if (mai == ISA_OP_v_accvgpr_write_b32) {
        i->dst = bits(w, 7, 0) + ISA_AGPR0;
        i->src[0] = bits(x, 8, 0);
    }
    if (mai == ISA_OP_v_accvgpr_read_b32 && i->src[0] >= ISA_VGPR0)
        i->src[0] = bits(x, 7, 0) + ISA_AGPR0;
}

/* ---- memory ---- */

static void decode_ds(enum isa_gpu gpu, uint32_t w, struct isa_insn *i) {
    uint32_t x = i->raw[1];
    unsigned base = bits(w, 25, 25) ? ISA_AGPR0 : ISA_VGPR0;
    set(i, find(gpu, ISA_ENC_DS, bits(w, 24, 17)), 2);
    i->imm = (int32_t)bits(w, 15, 0);
    i->src[0] = bits(x, 7, 0) + ISA_VGPR0;
    i->src[1] = bits(x, 15, 8) + base;
    i->src[2] = bits(x, 23, 16) + base;
    i->dst = bits(x, 31, 24) + base;
    i->memory = bits(w, 16, 16) * ISA_MEM_GDS | bits(w, 25, 25) * ISA_MEM_ACC;
}

/* gfx942 says in bit 13 whether a scratch access has a VGPR in its address; on gfx90a, and for FLAT
 * and GLOBAL, it is the LDS bit. */
static void decode_flat(enum isa_gpu gpu, uint32_t w, struct isa_insn *i) {
    static const enum isa_encoding segments[4] = { ISA_ENC_FLAT, ISA_ENC_SCRATCH, ISA_ENC_GLOBAL,
                                                   ISA_ENC_NONE };
    uint32_t x = i->raw[1];
    enum isa_encoding enc = segments[bits(w, 15, 14)];
    unsigned base = bits(x, 23, 23) ? ISA_AGPR0 : ISA_VGPR0;
    set(i, enc ? find(gpu, enc, bits(w, 24, 18)) : ISA_OP_NONE, 2);
    i->imm = enc == ISA_ENC_FLAT ? (int32_t)bits(w, 11, 0) : sign_extend(bits(w, 12, 0), 13);
    i->src[0] = bits(x, 7, 0) + ISA_VGPR0;
    i->src[1] = bits(x, 15, 8) + base;
    i->src[2] = enc == ISA_ENC_FLAT || bits(x, 22, 16) == 0x7f ? ISA_OFF : bits(x, 22, 16);
    i->dst = bits(x, 31, 24) + base;
    i->memory = bits(w, 16, 16) * ISA_MEM_GLC | bits(w, 17, 17) * ISA_MEM_SLC |
                bits(w, 25, 25) * ISA_MEM_SCC | bits(x, 23, 23) * ISA_MEM_ACC;
    if (enc == ISA_ENC_SCRATCH && gpu == ISA_GFX942) {
        if (!bits(w, 13, 13))
            i->src[0] = ISA_OFF;
    } else if (enc == ISA_ENC_SCRATCH && i->src[2] != ISA_OFF) {
        i->src[0] = ISA_OFF; /* gfx90a: either a VGPR or an SGPR */
    }
    if (enc != ISA_ENC_SCRATCH || gpu == ISA_GFX90A)
        i->memory |= bits(w, 13, 13) * ISA_MEM_LDS;
}

static void decode_buffer(enum isa_gpu gpu, uint32_t w, struct isa_insn *i) {
    uint32_t x = i->raw[1];
    bool typed = bits(w, 31, 26) == 0x3a;
    unsigned base = bits(x, 23, 23) ? ISA_AGPR0 : ISA_VGPR0; /* tfe before gfx90a */
    i->memory = bits(w, 14, 14) * ISA_MEM_GLC | bits(w, 13, 13) * ISA_MEM_IDXEN |
                bits(w, 12, 12) * ISA_MEM_OFFEN | bits(x, 23, 23) * ISA_MEM_ACC;
    if (typed) {
        set(i, find(gpu, ISA_ENC_MTBUF, bits(w, 18, 15)), 2);
        i->ext = bits(w, 25, 19); /* nfmt[6:4], dfmt[3:0] */
        i->memory |= bits(x, 22, 22) * ISA_MEM_SLC | bits(x, 21, 21) * ISA_MEM_SCC;
    } else {
        set(i, find(gpu, ISA_ENC_MUBUF, bits(w, 24, 18)), 2);
        i->memory |= bits(w, 17, 17) * ISA_MEM_SLC | bits(w, 16, 16) * ISA_MEM_LDS |
                     bits(w, 15, 15) * ISA_MEM_SCC;
    }
    i->imm = (int32_t)bits(w, 11, 0);
    i->src[0] = bits(x, 7, 0) + ISA_VGPR0;
    i->dst = bits(x, 15, 8) + base;
    i->src[1] = bits(x, 20, 16) * 4;
    i->src[2] = bits(x, 31, 24);
}

static void decode_mimg(enum isa_gpu gpu, uint32_t w, struct isa_insn *i) {
    uint32_t x = i->raw[1];
    set(i, find(gpu, ISA_ENC_MIMG, bits(w, 24, 18)), 2);
    i->src[0] = bits(x, 7, 0) + ISA_VGPR0;
    i->dst = bits(x, 15, 8) + (bits(w, 16, 16) ? ISA_AGPR0 : ISA_VGPR0); /* tfe before gfx90a */
    i->src[1] = bits(x, 20, 16) * 4;
    i->src[2] = bits(x, 25, 21) * 4;
    i->ext = bits(w, 11, 8); /* dmask */
    i->memory = bits(w, 13, 13) * ISA_MEM_GLC | bits(w, 25, 25) * ISA_MEM_SLC;
}

/* Codes that mean nothing on these GPUs. */
static bool is_reserved(unsigned code) {
    return code == 125 || (code > ISA_INT_M16 && code < ISA_SHARED_BASE) || code == 239 ||
           code == ISA_SDWA || code == ISA_DPP || code == ISA_LDS_DIRECT;
}

/* VOP3 has no literals on these GPUs. */
static bool has_reserved_source(const struct isa_insn *i) {
    const struct isa_info *info = &isa_info[i->op];
    if (info->encoding >= ISA_ENC_DS || info->encoding == ISA_ENC_SMEM)
        return false;
    for (int s = 0; s < 3; s++)
        if (info->type[s + 1] != ISA_TYPE_NONE && !(info->forms & ISA_FORM_LIT && s > 0) &&
            (is_reserved(i->src[s]) || (i->src[s] == ISA_LITERAL && i->form == ISA_E64)))
            return true;
    return false;
}

void isa_decode(enum isa_gpu gpu, const uint32_t *words, size_t left, struct isa_insn *out) {
    uint32_t w = words[0];
    memset(out, 0, sizeof *out);
    out->raw[0] = w;
    out->raw[1] = left > 1 ? words[1] : 0;
    switch (bits(w, 31, 26)) {
    case 0x30:
        decode_smem(gpu, w, out);
        break;
    case 0x34:
        (bits(w, 25, 23) == 7 ? decode_vop3p : decode_vop3)(gpu, w, out);
        break;
    case 0x36:
        decode_ds(gpu, w, out);
        break;
    case 0x37:
        decode_flat(gpu, w, out);
        break;
    case 0x38:
    case 0x3a:
        decode_buffer(gpu, w, out);
        break;
    case 0x3c:
        decode_mimg(gpu, w, out);
        break;
    default:
        if (w >> 31 == 0)
            decode_vop12c(gpu, w, out);
        else if (w >> 30 == 2)
            decode_sop(gpu, w, out);
    }
    if (out->op == ISA_OP_NONE || out->words > left || has_reserved_source(out)) {
        out->op = ISA_OP_NONE;
        out->words = 1;
    }
}
