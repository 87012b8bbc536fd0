/* print.c - instructions as llvm-mc and llvm-objdump write them. Operands are in print_operand.c.
 */
#include "isa/print.h"

#include <stdio.h>

/* The separator before the next operand. */
static void comma(struct isa_text *t) {
    isa_text_add(t, t->operands++ ? ", " : " ");
}

static const struct isa_info *info_of(const struct isa_insn *i) {
    return &isa_info[i->op];
}

static int neg_of(const struct isa_insn *i, int s) {
    return i->modifiers >> s & 1;
}
static int abs_of(const struct isa_insn *i, int s) {
    return (int)(i->modifiers / ISA_MOD_ABS) >> s & 1;
}

static void dst(struct isa_text *t, const struct isa_insn *i) {
    comma(t);
    isa_operand_print(t, i, i->dst, info_of(i)->type[0]);
}

static void plain_src(struct isa_text *t, const struct isa_insn *i, int s) {
    comma(t);
    isa_operand_print(t, i, i->src[s], info_of(i)->type[s + 1]);
}

/* Whether neg and abs mean something; for other operands the bits are ignored. */
static int has_float_modifiers(const struct isa_insn *i, int s) {
    enum isa_type type = info_of(i)->type[s + 1];
    return type == ISA_TYPE_F16 || type == ISA_TYPE_F32 || type == ISA_TYPE_F64 ||
           type == ISA_TYPE_V2F16 || i->op == ISA_OP_v_cndmask_b32;
}

static int is_constant(unsigned code) {
    return (code >= ISA_INT_0 && code <= ISA_INT_M16) ||
           (code >= ISA_FLOAT_0_5 && code <= ISA_FLOAT_1_2PI) || code == ISA_LITERAL;
}

/* A source with neg, abs or sext. "-1" would be another constant, hence neg(1). */
static void src(struct isa_text *t, const struct isa_insn *i, int s) {
    int is_float = has_float_modifiers(i, s);
    int neg = is_float && neg_of(i, s), abs = is_float && abs_of(i, s);
    int sext = i->form == ISA_AS_SDWA && (i->modifiers / ISA_MOD_SEXT) >> s & 1;
    if (i->form != ISA_AS_SDWA && !is_float && has_float_modifiers(i, 0) &&
        !(info_of(i)->forms & ISA_FORM_OPSEL) && neg_of(i, s))
        sext = 1; /* the bit that is neg of floats */
    int call = neg && !abs && is_constant(i->src[s]);
    comma(t);
    isa_text_add(t, "%s%s%s", sext ? "sext(" : "", call ? "neg(" : neg ? "-" : "", abs ? "|" : "");
    isa_operand_print(t, i, i->src[s], info_of(i)->type[s + 1]);
    isa_text_add(t, "%s%s%s", abs ? "|" : "", call ? ")" : "", sext ? ")" : "");
}

static int source_count(const struct isa_info *info) {
    int n = 0;
    while (n < 3 && info->type[n + 1] != ISA_TYPE_NONE)
        n++;
    return n;
}

/* ---- scalar ---- */

static void print_waitcnt(struct isa_text *t, const struct isa_insn *i) {
    unsigned k = (unsigned)i->imm;
    unsigned vm = (k & 15) | (k >> 14 & 3) << 4, exp = k >> 4 & 7, lgkm = k >> 8 & 15;
    int all = vm == 63 && exp == 7 && lgkm == 15;
    const char *gap = " ";
    if (vm != 63 || all)
        isa_text_add(t, "%svmcnt(%u)", gap, vm);
    if (exp != 7 || all)
        isa_text_add(t, "%sexpcnt(%u)", gap, exp);
    if (lgkm != 15 || all)
        isa_text_add(t, "%slgkmcnt(%u)", gap, lgkm);
}

static void print_hwreg(struct isa_text *t, unsigned k) {
    static const char *const names[32] = {
        [1] = "HW_REG_MODE",
        [2] = "HW_REG_STATUS",
        [3] = "HW_REG_TRAPSTS",
        [4] = "HW_REG_HW_ID",
        [5] = "HW_REG_GPR_ALLOC",
        [6] = "HW_REG_LDS_ALLOC",
        [7] = "HW_REG_IB_STS",
        [15] = "HW_REG_SH_MEM_BASES",
        [16] = "HW_REG_TBA_LO",
        [17] = "HW_REG_TBA_HI",
        [18] = "HW_REG_TMA_LO",
        [19] = "HW_REG_TMA_HI",
        [20] = "HW_REG_XCC_ID",
        [21] = "HW_REG_SQ_PERF_SNAPSHOT_DATA",
        [22] = "HW_REG_SQ_PERF_SNAPSHOT_DATA1",
        [23] = "HW_REG_SQ_PERF_SNAPSHOT_PC_LO",
        [24] = "HW_REG_SQ_PERF_SNAPSHOT_PC_HI",
    };
    unsigned id = k & 63, offset = k >> 6 & 31, size = (k >> 11 & 31) + 1;
    const char *name = id < 32 ? names[id] : NULL;
    if (id >= 20 && t->gpu == ISA_GFX90A)
        name = NULL;
    isa_text_add(t, "hwreg(");
    if (name)
        isa_text_add(t, "%s", name);
    else
        isa_text_add(t, "%u", id);
    if (offset != 0 || size != 32)
        isa_text_add(t, ", %u, %u", offset, size);
    isa_text_add(t, ")");
}

static void print_sendmsg(struct isa_text *t, unsigned k) {
    static const char *const names[16] = {
        [1] = "MSG_INTERRUPT",       [2] = "MSG_GS",
        [3] = "MSG_GS_DONE",         [4] = "MSG_SAVEWAVE",
        [5] = "MSG_STALL_WAVE_GEN",  [6] = "MSG_HALT_WAVES",
        [7] = "MSG_ORDERED_PS_DONE", [8] = "MSG_EARLY_PRIM_DEALLOC",
        [9] = "MSG_GS_ALLOC_REQ",    [10] = "MSG_GET_DOORBELL",
        [15] = "MSG_SYSMSG"
    };
    static const char *const gs[4] = { "GS_OP_NOP", "GS_OP_CUT", "GS_OP_EMIT", "GS_OP_EMIT_CUT" };
    static const char *const sys[8] = {
        [1] = "SYSMSG_OP_ECC_ERR_INTERRUPT", [2] = "SYSMSG_OP_REG_RD", [4] = "SYSMSG_OP_TTRACE_PC"
    };
    unsigned id = k & 15, op = k >> 4 & 7, stream = k >> 8 & 3;
    if ((id == 2 || id == 3) && op < 4 && (op != 0 || id == 3) && (op != 0 || !stream)) {
        isa_text_add(t, "sendmsg(%s, %s", names[id], gs[op]);
        if (op != 0)
            isa_text_add(t, ", %u", stream);
        isa_text_add(t, ")");
    } else if (id == 15 && sys[op] && !stream)
        isa_text_add(t, "sendmsg(MSG_SYSMSG, %s)", sys[op]);
    else if (names[id] && id != 15 && id != 2 && id != 3 && !op && !stream)
        isa_text_add(t, "sendmsg(%s)", names[id]);
    else if (k & ~0x37fu)
        isa_text_add(t, "%u", k);
    else
        isa_text_add(t, "sendmsg(%u, %u, %u)", id, op, stream);
}

static void print_index_mode(struct isa_text *t, unsigned k) {
    static const char *const names[4] = { "SRC0", "SRC1", "SRC2", "DST" };
    if (k > 15) {
        isa_text_add(t, "0x%x", k);
        return;
    }
    const char *gap = "";
    isa_text_add(t, "gpr_idx(");
    for (int n = 0; n < 4; n++)
        if (k >> n & 1) {
            isa_text_add(t, "%s%s", gap, names[n]);
            gap = ",";
        }
    isa_text_add(t, ")");
}

/* K of 16 bits. */
static void print_k(struct isa_text *t, unsigned k) {
    isa_text_add(t, (int16_t)k >= -16 && (int16_t)k <= 64 ? "%d" : "0x%x",
                 (int16_t)k >= -16 && (int16_t)k <= 64 ? (int16_t)k : (int)k);
}

static void print_sopp(struct isa_text *t, const struct isa_insn *i) {
    unsigned k = (unsigned)i->imm;
    switch (i->op) {
    case ISA_OP_s_waitcnt:
        print_waitcnt(t, i);
        return;
    case ISA_OP_s_endpgm:
        if (k)
            isa_text_add(t, " %u", k);
        return;
    case ISA_OP_s_barrier:
    case ISA_OP_s_icache_inv:
    case ISA_OP_s_ttracedata:
    case ISA_OP_s_endpgm_saved:
    case ISA_OP_s_set_gpr_idx_off:
    case ISA_OP_s_wakeup:
    case ISA_OP_s_endpgm_ordered_ps_done:
        return;
    case ISA_OP_s_sendmsg:
    case ISA_OP_s_sendmsghalt:
        isa_text_add(t, " ");
        print_sendmsg(t, k);
        return;
    case ISA_OP_s_set_gpr_idx_mode:
        isa_text_add(t, " ");
        print_index_mode(t, k);
        return;
    default:
        break;
    }
    isa_text_add(t, " ");
    if (info_of(i)->forms & ISA_FORM_BRANCH)
        isa_text_add(t, "%u", k);
    else
        print_k(t, k);
}

static void print_sopk(struct isa_text *t, const struct isa_insn *i) {
    unsigned k = (unsigned)i->imm;
    switch (i->op) {
    case ISA_OP_s_setreg_b32:
        comma(t);
        print_hwreg(t, k);
        comma(t);
        isa_operand_print(t, i, i->dst, ISA_TYPE_B32);
        return;
    case ISA_OP_s_setreg_imm32_b32:
        comma(t);
        print_hwreg(t, k);
        comma(t);
        isa_operand_print(t, i, ISA_LITERAL, ISA_TYPE_B32);
        return;
    case ISA_OP_s_getreg_b32:
        dst(t, i);
        comma(t);
        print_hwreg(t, k);
        return;
    default:
        dst(t, i);
        comma(t);
        if (i->op == ISA_OP_s_call_b64 || i->op == ISA_OP_s_cbranch_i_fork)
            isa_text_add(t, "%u", k);
        else
            isa_text_add(t, "0x%x", k);
    }
}

static void print_sop(struct isa_text *t, const struct isa_insn *i) {
    if (info_of(i)->type[0] != ISA_TYPE_NONE)
        dst(t, i);
    for (int s = 0; s < source_count(info_of(i)); s++)
        plain_src(t, i, s);
    if (i->op == ISA_OP_s_set_gpr_idx_on) {
        comma(t);
        print_index_mode(t, (unsigned)i->imm);
    }
}

static void print_smem(struct isa_text *t, const struct isa_insn *i) {
    const struct isa_info *info = info_of(i);
    if (info->type[0] != ISA_TYPE_NONE)
        dst(t, i);
    else if (i->op == ISA_OP_s_atc_probe || i->op == ISA_OP_s_atc_probe_buffer) {
        comma(t);
        isa_text_add(t, i->dst <= 64 ? "%u" : "0x%x", i->dst);
    }
    if (info->type[1] == ISA_TYPE_NONE)
        return;
    plain_src(t, i, 0);
    comma(t);
    if (i->src[1] != ISA_OFF)
        isa_operand_print(t, i, i->src[1], ISA_TYPE_B32);
    if (i->src[1] == ISA_OFF)
        isa_text_add(t, i->imm < 0 ? "-0x%x" : "0x%x", i->imm < 0 ? -i->imm : i->imm);
    else if (i->memory & ISA_MEM_IMM)
        isa_text_add(t, i->imm < 0 ? " offset:-0x%x" : " offset:0x%x",
                     i->imm < 0 ? -i->imm : i->imm);
    if (i->memory & ISA_MEM_GLC && info->type[0] != ISA_TYPE_NONE)
        isa_text_add(t, " glc");
    if (i->memory & ISA_MEM_NV)
        isa_text_add(t, " nv");
}

/* ---- vector ---- */

/* " name:[1,0,1]" of n bits. */
static void bit_list(struct isa_text *t, const char *name, unsigned value, int n) {
    isa_text_add(t, " %s:[", name);
    for (int b = 0; b < n; b++)
        isa_text_add(t, "%s%u", b ? "," : "", value >> b & 1);
    isa_text_add(t, "]");
}

static void clamp_and_omod(struct isa_text *t, const struct isa_insn *i) {
    static const char *const omods[4] = { "", " mul:2", " mul:4", " div:2" };
    if (i->modifiers & ISA_MOD_CLAMP)
        isa_text_add(t, " clamp");
    isa_text_add(t, "%s", omods[i->modifiers >> ISA_MOD_OMOD_SHIFT & 3]);
}

static void print_sdwa_controls(struct isa_text *t, const struct isa_insn *i) {
    static const char *const sel[8] = { "BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3",
                                        "WORD_0", "WORD_1", "DWORD",  "7" };
    static const char *const unused[4] = { "UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE", "3" };
    uint32_t x = i->ext;
    const struct isa_info *info = info_of(i);
    clamp_and_omod(t, i);
    int fp8 = i->op == ISA_OP_v_cvt_f32_fp8 || i->op == ISA_OP_v_cvt_f32_bf8 ||
              i->op == ISA_OP_v_cvt_pk_f32_fp8 || i->op == ISA_OP_v_cvt_pk_f32_bf8;
    if (info->encoding != ISA_ENC_VOPC && info->type[0] != ISA_TYPE_NONE && !fp8)
        isa_text_add(t, " dst_sel:%s dst_unused:%s", sel[x >> 8 & 7], unused[x >> 11 & 3]);
    if (info->type[1] != ISA_TYPE_NONE)
        isa_text_add(t, " src0_sel:%s", sel[x >> 16 & 7]);
    if (info->encoding != ISA_ENC_VOP1)
        isa_text_add(t, " src1_sel:%s", sel[x >> 24 & 7]);
}

static void print_dpp_controls(struct isa_text *t, const struct isa_insn *i) {
    unsigned ctrl = i->ext >> 8 & 0x1ff, n = ctrl & 15;
    if (ctrl < 0x100)
        isa_text_add(t, " quad_perm:[%u,%u,%u,%u]", ctrl & 3, ctrl >> 2 & 3, ctrl >> 4 & 3,
                     ctrl >> 6);
    else if (ctrl > 0x100 && ctrl < 0x110)
        isa_text_add(t, " row_shl:%u", n);
    else if (ctrl > 0x110 && ctrl < 0x120)
        isa_text_add(t, " row_shr:%u", n);
    else if (ctrl > 0x120 && ctrl < 0x130)
        isa_text_add(t, " row_ror:%u", n);
    else if (ctrl >= 0x150 && ctrl < 0x160)
        isa_text_add(t, " row_newbcast:%u", n);
    else {
        static const struct {
            unsigned ctrl;
            const char *text;
        } named[] = { { 0x130, "wave_shl:1" },   { 0x134, "wave_rol:1" },
                      { 0x138, "wave_shr:1" },   { 0x13c, "wave_ror:1" },
                      { 0x140, "row_mirror" },   { 0x141, "row_half_mirror" },
                      { 0x142, "row_bcast:15" }, { 0x143, "row_bcast:31" } };
        const char *text = "/* Invalid dpp_ctrl value */";
        for (size_t k = 0; k < sizeof named / sizeof *named; k++)
            if (named[k].ctrl == ctrl)
                text = named[k].text;
        isa_text_add(t, " %s", text);
    }
    isa_text_add(t, " row_mask:0x%x bank_mask:0x%x", i->ext >> 28, i->ext >> 24 & 15);
    if (i->ext >> 19 & 1)
        isa_text_add(t, " bound_ctrl:1");
}

/* op_sel of VOP3: one bit per source and one for the destination. */
static void print_vop3_opsel(struct isa_text *t, const struct isa_insn *i) {
    unsigned opsel = i->modifiers >> ISA_MOD_OPSEL_SHIFT & 15;
    int n = source_count(info_of(i));
    if (i->op == ISA_OP_v_cvt_sr_fp8_f32 || i->op == ISA_OP_v_cvt_sr_bf8_f32)
        n = 3; /* a byte is chosen by two bits */
    if (!opsel || !(info_of(i)->forms & ISA_FORM_OPSEL))
        return;
    unsigned shown = (opsel & ((1u << n) - 1)) | (opsel >> 3) << n;
    bit_list(t, "op_sel", shown, n + 1);
}

static void print_vop_sources(struct isa_text *t, const struct isa_insn *i) {
    const struct isa_info *info = info_of(i);
    for (int s = 0; s < source_count(info); s++) {
        if (info->type[s + 1] == ISA_TYPE_M64)
            plain_src(t, i, s);
        else if (info->forms & ISA_FORM_LIT && s == (info->forms & ISA_FORM_K1 ? 1 : 2)) {
            comma(t);
            isa_text_add(t, "0x%x", i->literal);
        } else if (info->forms & ISA_FORM_LIT && s == 2) {
            comma(t);
            isa_operand_print(t, i, i->src[1], info->type[2]);
        } else
            src(t, i, s);
    }
}

static void print_vop(struct isa_text *t, const struct isa_insn *i) {
    const struct isa_info *info = info_of(i);
    if (info->type[0] != ISA_TYPE_NONE)
        dst(t, i);
    if (info->forms & ISA_FORM_SDST) {
        comma(t);
        isa_operand_print(t, i, i->sdst, ISA_TYPE_M64);
    }
    print_vop_sources(t, i);
    if (i->form == ISA_AS_SDWA)
        print_sdwa_controls(t, i);
    else if (i->form == ISA_AS_DPP)
        print_dpp_controls(t, i);
    else if (i->form == ISA_E64) {
        print_vop3_opsel(t, i);
        clamp_and_omod(t, i);
    }
}

static void print_vop3p(struct isa_text *t, const struct isa_insn *i) {
    const struct isa_info *info = info_of(i);
    int n = source_count(info), mix = info->type[1] == ISA_TYPE_MIX;
    unsigned all = (1u << n) - 1;
    unsigned sel = i->modifiers >> ISA_MOD_OPSEL_SHIFT & all;
    unsigned hi = i->modifiers >> ISA_MOD_OPSEL_HI_SHIFT & all;
    unsigned neg = i->modifiers & all, neg_hi = i->modifiers / ISA_MOD_NEG_HI & all;
    dst(t, i);
    for (int s = 0; s < n; s++) {
        comma(t);
        int minus = mix && neg >> s & 1, bars = mix && neg_hi >> s & 1;
        int call = minus && !bars && is_constant(i->src[s]);
        isa_text_add(t, "%s%s", call ? "neg(" : minus ? "-" : "", bars ? "|" : "");
        isa_operand_print(t, i, i->src[s], info->type[s + 1]);
        isa_text_add(t, "%s%s", bars ? "|" : "", call ? ")" : "");
    }
    if (sel)
        bit_list(t, "op_sel", sel, n);
    if (mix ? hi : hi != all)
        bit_list(t, "op_sel_hi", hi, n);
    if (neg && !mix)
        bit_list(t, "neg_lo", neg, n);
    if (neg_hi && !mix)
        bit_list(t, "neg_hi", neg_hi, n);
    if (i->modifiers & ISA_MOD_CLAMP)
        isa_text_add(t, " clamp");
}

static void print_mai(struct isa_text *t, const struct isa_insn *i) {
    unsigned cbsz = i->ext & 7, abid = i->ext >> 4 & 15, blgp = i->ext >> 8 & 7;
    if (i->op == ISA_OP_v_accvgpr_read_b32 || i->op == ISA_OP_v_accvgpr_write_b32)
        cbsz = abid = blgp = 0;
    dst(t, i);
    for (int s = 0; s < source_count(info_of(i)); s++)
        plain_src(t, i, s);
    if (cbsz)
        isa_text_add(t, " cbsz:%u", cbsz);
    if (abid)
        isa_text_add(t, " abid:%u", abid);
    if (blgp && (i->op == ISA_OP_v_mfma_f64_16x16x4_f64 || i->op == ISA_OP_v_mfma_f64_4x4x4_4b_f64))
        bit_list(t, "neg", blgp, 3);
    else if (blgp)
        isa_text_add(t, " blgp:%u", blgp);
}

/* ---- memory ---- */

static void cache_bits(struct isa_text *t, const struct isa_insn *i) {
    static const char *const names[ISA_GPU_COUNT][3] = { { " glc", " slc", " scc" },
                                                         { " sc0", " nt", " sc1" } };
    for (int b = 0; b < 3; b++)
        if (i->memory >> b & 1)
            isa_text_add(t, "%s", names[t->gpu][b]);
}

static void print_ds(struct isa_text *t, const struct isa_insn *i) {
    const struct isa_info *info = info_of(i);
    unsigned offset = (unsigned)i->imm;
    if (info->type[0] != ISA_TYPE_NONE)
        dst(t, i);
    for (int s = 0; s < 3; s++)
        if (info->type[s + 1] != ISA_TYPE_NONE)
            plain_src(t, i, s);
    if (info->forms & ISA_FORM_PAIR) {
        if (offset & 0xff)
            isa_text_add(t, " offset0:%u", offset & 0xff);
        if (offset >> 8)
            isa_text_add(t, " offset1:%u", offset >> 8);
    } else if (i->op == ISA_OP_ds_swizzle_b32) {
        isa_swizzle_print(t, offset);
    } else if (offset) {
        isa_text_add(t, " offset:%u", offset);
    }
    if (i->memory & ISA_MEM_GDS && info->forms & ISA_FORM_GWS)
        isa_text_add(t, " gds"); /* these GPUs have no GDS otherwise */
}

static void print_address(struct isa_text *t, const struct isa_insn *i) {
    const struct isa_info *info = info_of(i);
    comma(t);
    if (i->src[0] == ISA_OFF)
        isa_text_add(t, "off");
    else /* with an SGPR as base the VGPR is an offset of 32 bits */
        isa_operand_print(t, i, i->src[0], i->src[2] == ISA_OFF ? info->type[1] : ISA_TYPE_B32);
}

static void print_flat(struct isa_text *t, const struct isa_insn *i) {
    const struct isa_info *info = info_of(i);
    int returns =
        info->forms & ISA_FORM_ATOMIC ? i->memory & ISA_MEM_GLC : info->type[0] != ISA_TYPE_NONE;
    if (returns)
        dst(t, i);
    print_address(t, i);
    if (info->type[2] != ISA_TYPE_NONE)
        plain_src(t, i, 1);
    if (info->encoding != ISA_ENC_FLAT) {
        comma(t);
        isa_operand_print(t, i, i->src[2],
                          info->encoding == ISA_ENC_SCRATCH ? ISA_TYPE_B32 : ISA_TYPE_B64);
    }
    if (i->imm)
        isa_text_add(t, " offset:%d", i->imm);
    cache_bits(t, i);
    if (i->memory & ISA_MEM_LDS)
        isa_text_add(t, " lds");
}

static void print_buffer(struct isa_text *t, const struct isa_insn *i) {
    const struct isa_info *info = info_of(i);
    unsigned both = ISA_MEM_IDXEN | ISA_MEM_OFFEN;
    if (info->type[0] == ISA_TYPE_NONE && !(info->forms & ISA_FORM_TOLDS)) {
        if (t->gpu == ISA_GFX942)
            isa_text_add(t, "%s%s", i->memory & ISA_MEM_GLC ? " sc0" : "",
                         i->memory & ISA_MEM_SCC ? " sc1" : "");
        return;
    }
    if (!(info->forms & ISA_FORM_TOLDS)) {
        if (!(i->memory & ISA_MEM_LDS))
            dst(t, i);
        comma(t);
        if (i->memory & both)
            isa_operand_print(t, i, i->src[0],
                              (i->memory & both) == both ? ISA_TYPE_B64 : ISA_TYPE_B32);
        else
            isa_text_add(t, "off");
    }
    comma(t);
    isa_operand_print(t, i, i->src[1], ISA_TYPE_B128);
    comma(t);
    isa_operand_print(t, i, i->src[2], ISA_TYPE_B32);
    if (info->encoding == ISA_ENC_MTBUF)
        isa_format_print(t, i->ext);
    isa_text_add(t, "%s%s", i->memory & ISA_MEM_IDXEN ? " idxen" : "",
                 i->memory & ISA_MEM_OFFEN ? " offen" : "");
    if (i->imm)
        isa_text_add(t, " offset:%d", i->imm);
    cache_bits(t, i);
    if (i->memory & ISA_MEM_LDS)
        isa_text_add(t, " lds");
}

/* Enough to recognise an image instruction: not every operand. */
static void print_mimg(struct isa_text *t, const struct isa_insn *i) {
    comma(t);
    isa_operand_print(t, i, i->dst, ISA_TYPE_B32);
    comma(t);
    isa_operand_print(t, i, i->src[0], ISA_TYPE_B32);
    comma(t);
    isa_operand_print(t, i, i->src[1], ISA_TYPE_B256);
    isa_text_add(t, " dmask:0x%x", i->ext);
}

/* Mnemonics carry the encoding where there are several. */
static const char *suffix(const struct isa_insn *i) {
    const struct isa_info *info = info_of(i);
    if (i->form == ISA_AS_SDWA)
        return "_sdwa";
    if (i->form == ISA_AS_DPP)
        return "_dpp";
    if (info->encoding != ISA_ENC_VOP1 && info->encoding != ISA_ENC_VOP2 &&
        info->encoding != ISA_ENC_VOPC)
        return "";
    if (i->form == ISA_E64)
        return i->op == ISA_OP_v_nop || i->op == ISA_OP_v_clrexcp ? "" : "_e64";
    if (info->type[0] == ISA_TYPE_NONE || !(info->forms & (ISA_FORM_E64 | ISA_FORM_ACC)))
        return "";
    return "_e32";
}

int isa_print(enum isa_gpu gpu, const struct isa_insn *i, char *out, size_t size) {
    struct isa_text text = { .out = out, .size = size, .gpu = gpu }, *t = &text;
    static void (*const printers[ISA_ENC_COUNT])(struct isa_text *, const struct isa_insn *) = {
        [ISA_ENC_SOP2] = print_sop,     [ISA_ENC_SOPK] = print_sopk,
        [ISA_ENC_SOP1] = print_sop,     [ISA_ENC_SOPC] = print_sop,
        [ISA_ENC_SOPP] = print_sopp,    [ISA_ENC_SMEM] = print_smem,
        [ISA_ENC_VOP2] = print_vop,     [ISA_ENC_VOP1] = print_vop,
        [ISA_ENC_VOPC] = print_vop,     [ISA_ENC_VOP3] = print_vop,
        [ISA_ENC_VOP3P] = print_vop3p,  [ISA_ENC_MAI] = print_mai,
        [ISA_ENC_DS] = print_ds,        [ISA_ENC_FLAT] = print_flat,
        [ISA_ENC_GLOBAL] = print_flat,  [ISA_ENC_SCRATCH] = print_flat,
        [ISA_ENC_MUBUF] = print_buffer, [ISA_ENC_MTBUF] = print_buffer,
        [ISA_ENC_MIMG] = print_mimg,
    };
    if (size)
        out[0] = '\0';
    if (i->op == ISA_OP_NONE) {
        isa_text_add(t, ".long 0x%08x", i->raw[0]);
        return t->length;
    }
    isa_text_add(t, "%s%s", info_of(i)->name, suffix(i));
    printers[info_of(i)->encoding](t, i);
    return t->length;
}
