/* taint.c - values that nothing has defined: vector and scalar instructions. Memory:
 * taint_memory.c. */
#include "isa/taint.h"

#include "isa/exec.h"
#include "isa/taint_parts.h"
#include "isa/valu.h"

void isa_taint_reset(struct isa_taint *t, const struct isa_taint_host *host, unsigned sgprs) {
    memset(t, 0, sizeof *t);
    t->host = host;
    for (unsigned i = 1; i < ISA_VGPRS; i++) {
        t->vgpr[i] = ~UINT64_C(0);
        t->vgpr_origin[i] = (struct isa_origin){ ISA_TAINT_VGPR, i };
    }
    for (unsigned i = sgprs; i < ISA_FLAT_SCRATCH; i++) {
        t->sgpr[i] = ~0u;
        t->sgpr_origin[i] = (struct isa_origin){ ISA_TAINT_SGPR, i };
    }
}

void isa_taint_reset_approximations(struct isa_taint *t, const struct isa_taint_host *host,
                                    enum isa_gpu gpu) {
    memset(t, 0, sizeof *t);
    t->host = host;
    t->approximations = true;
    t->gpu = gpu;
}

static bool is_origin(const struct isa_taint *t, const struct isa_insn *i) {
    return t->approximations && isa_exactness_on(t->gpu, i->op) == ISA_APPROXIMATE;
}

static void write_scalars(struct isa_taint *t, const struct isa_wave *w, const struct isa_insn *i,
                          unsigned code, unsigned dwords, uint64_t bits) {
    if (code == ISA_EXEC) {
        if (bits)
            isa_taint_use(t, w, i, ISA_TAINT_BRANCH, (unsigned)__builtin_ctzll(bits));
        return;
    }
    for (unsigned d = 0; d < dwords && code + d < ISA_SGPRS; d++) {
        t->sgpr[code + d] = (uint32_t)(bits >> 32 * (d & 1));
        t->sgpr_origin[code + d] = t->origin;
    }
}

/* ---- vector instructions --------------------------------------------------------------------- */

static unsigned source_type(const struct isa_insn *i, unsigned s) {
    const struct isa_info *info = &isa_info[i->op];
    return info->type[s + 1] != ISA_TYPE_NONE ? info->type[s + 1] : info->type[0];
}

/* Lanes in which one of the first `dwords` dwords of source s is undefined. */
static uint64_t source_dwords(struct isa_taint *t, const struct isa_insn *i, unsigned s,
                              unsigned dwords) {
    unsigned type = source_type(i, s), code = i->src[s];
    if (code >= ISA_VGPR0)
        return s == 0 && i->form == ISA_AS_DPP ? 0 : isa_taint_rows(t, code, dwords);
    if (code >= ISA_SGPRS)
        return 0;
    uint64_t bits = isa_taint_scalars(t, code, dwords);
    if (type == ISA_TYPE_M64)
        return bits;
    return bits ? ~UINT64_C(0) : 0;
}

static uint64_t source(struct isa_taint *t, const struct isa_insn *i, unsigned s) {
    return source_dwords(t, i, s, isa_type_dwords(source_type(i, s)));
}

static bool cancels(const struct isa_insn *i) {
    bool same = i->src[0] == i->src[1];
    return same && (i->op == ISA_OP_v_xor_b32 || i->op == ISA_OP_v_sub_u32);
}

static uint64_t select(struct isa_taint *t, struct isa_wave *w, const struct isa_insn *i) {
    uint64_t chosen = i->src[2] < ISA_SGPRS ? isa_scalar64(w, i, i->src[2], ISA_TYPE_M64) : 0;
    uint64_t zero = source(t, i, 0), one = source(t, i, 1), by = source(t, i, 2);
    return (one & chosen) | (zero & ~chosen) | by;
}

static bool is_halved(const struct isa_insn *i) {
    unsigned type = isa_info[i->op].type[1];
    return isa_info[i->op].encoding == ISA_ENC_VOP3P &&
           (type == ISA_TYPE_V2F32 || type == ISA_TYPE_V2B32);
}

/* Lanes in which the dword that source s contributes to a half of the result is undefined. */
static uint64_t half_source(struct isa_taint *t, const struct isa_insn *i, unsigned s,
                            unsigned half) {
    bool by_high = half && isa_info[i->op].type[1] == ISA_TYPE_V2F32;
    unsigned shift = by_high ? ISA_MOD_OPSEL_HI_SHIFT : ISA_MOD_OPSEL_SHIFT;
    unsigned code = i->src[s], dword = i->modifiers >> (shift + s) & 1;
    if (code >= ISA_VGPR0)
        return isa_taint_rows(t, code + dword, 1);
    return code < ISA_SGPRS && isa_taint_scalars(t, code + dword, 1) ? ~UINT64_C(0) : 0;
}

/* Packed dwords: each half of the result is made of one dword of every source; v_pk_mov_b32 takes
 * the first from src0 and the second from src1. */
static void halves_before(struct isa_taint *t, const struct isa_insn *i) {
    bool moves = isa_info[i->op].type[1] == ISA_TYPE_V2B32;
    unsigned sources = (unsigned)isa_valu_sources(i->op);
    for (unsigned s = 0; s < sources && s < 3; s++) {
        if (!moves || s == 0)
            t->mask |= half_source(t, i, s, 0);
        if (!moves || s == 1)
            t->high |= half_source(t, i, s, 1);
    }
}

/* The first dword of a 64-bit result does not depend on the second dwords of the sources. Compilers
 * leave the second dword of an addend undefined if they need 32 bits only. */
static bool carries_up(const struct isa_insn *i) {
    switch (i->op) {
    case ISA_OP_v_mad_u64_u32:
    case ISA_OP_v_mad_i64_i32:
    case ISA_OP_v_lshl_add_u64:
    case ISA_OP_v_lshlrev_b64:
        return true;
    default:
        return false;
    }
}

/* The second dword of the result depends on all dwords. */
static void low_before(struct isa_taint *t, const struct isa_insn *i) {
    unsigned sources = (unsigned)isa_valu_sources(i->op);
    for (unsigned s = 0; s < sources && s < 3; s++) {
        t->mask |= source_dwords(t, i, s, 1);
        t->high |= source(t, i, s);
    }
}

/* Dwords put together of bytes or bits of two sources. */
static bool assembles(const struct isa_insn *i) {
    return i->op == ISA_OP_v_perm_b32 || i->op == ISA_OP_v_bfi_b32 ||
           i->op == ISA_OP_v_pack_b32_f16;
}

enum { FROM_FIRST = 1, FROM_SECOND = 2 };

/* The sources that contribute a part to the dword; v_perm_b32 also makes bytes of neither. */
static unsigned parts_taken(const struct isa_insn *i, uint32_t selector) {
    unsigned parts = 0;
    if (i->op == ISA_OP_v_bfi_b32)
        return (selector ? FROM_FIRST : 0u) | (~selector ? FROM_SECOND : 0u);
    if (i->op == ISA_OP_v_pack_b32_f16)
        return FROM_FIRST | FROM_SECOND;
    for (unsigned b = 0; b < 4; b++) {
        unsigned byte = selector >> 8 * b & 0xff;
        if (byte < 12) /* 8 to 11 are signs */
            parts |= byte < 4 || byte == 8 || byte == 9 ? FROM_SECOND : FROM_FIRST;
    }
    return parts;
}

/* Compilers insert halves into a vector one by one, beginning with an undefined one. A dword with
 * some defined bytes counts as defined, and so does one with a part of a defined source. */
static uint64_t assemble(struct isa_taint *t, struct isa_wave *w, const struct isa_insn *i) {
    bool selected = i->op != ISA_OP_v_pack_b32_f16;
    unsigned selector = i->op == ISA_OP_v_bfi_b32 ? 0 : 2, first = selector ? 0 : 1;
    uint64_t mask = selected ? source(t, i, selector) : 0;
    uint64_t of[2] = { source(t, i, first), source(t, i, first + 1) };
    for (uint64_t left = (of[0] | of[1]) & t->exec; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctzll(left);
        unsigned code = i->src[selector];
        uint32_t by = !selected           ? 0
                      : code >= ISA_VGPR0 ? isa_row(w, code)[l]
                                          : isa_scalar32(w, i, code);
        unsigned parts = parts_taken(i, by);
        unsigned undefined =
            (of[0] >> l & 1 ? FROM_FIRST : 0u) | (of[1] >> l & 1 ? FROM_SECOND : 0u);
        if (parts && !(parts & ~undefined))
            mask |= UINT64_C(1) << l;
    }
    return mask;
}

static void vector_before(struct isa_taint *t, struct isa_wave *w, const struct isa_insn *i) {
    unsigned sources = (unsigned)isa_valu_sources(i->op);
    if (is_halved(i)) {
        halves_before(t, i);
        return;
    }
    if (carries_up(i)) {
        low_before(t, i);
        return;
    }
    if (i->op == ISA_OP_v_cndmask_b32) {
        t->mask = select(t, w, i);
        return;
    }
    if (assembles(i) && !t->approximations) {
        t->mask = assemble(t, w, i);
        return;
    }
    for (unsigned s = 0; s < sources && s < 3 && !cancels(i); s++)
        t->mask |= source(t, i, s);
}

static void vector_after(struct isa_taint *t, struct isa_wave *w, const struct isa_insn *i) {
    const struct isa_info *info = &isa_info[i->op];
    uint64_t mask = t->mask & t->exec;
    if (is_halved(i) || carries_up(i)) {
        isa_taint_write_row(t, i->dst, t->exec, mask);
        isa_taint_write_row(t, i->dst + 1, t->exec, t->high & t->exec);
        if (info->forms & ISA_FORM_SDST)
            write_scalars(t, w, i, i->sdst, 2, t->high & t->exec);
        return;
    }
    if (info->type[0] == ISA_TYPE_M64) {
        write_scalars(t, w, i, i->dst, 2, mask);
        if (isa_valu_is_cmpx(i->op) && mask)
            isa_taint_use(t, w, i, ISA_TAINT_BRANCH, (unsigned)__builtin_ctzll(mask));
        return;
    }
    for (unsigned d = 0; d < isa_type_dwords(info->type[0]) && i->dst >= ISA_VGPR0; d++)
        isa_taint_write_row(t, i->dst + d, t->exec, mask);
    if (info->forms & ISA_FORM_SDST)
        write_scalars(t, w, i, i->sdst, 2, mask);
}

/* Whether a scalar that becomes a lane of a vector register leaves it undefined: only as a whole.
 * Compilers keep masks there, of which only the bits of lanes that are on were ever set. */
static uint64_t into_lane(struct isa_taint *t, const struct isa_insn *i) {
    uint64_t mask = source(t, i, 0);
    unsigned code = i->src[0];
    return code < ISA_SGPRS && !t->approximations && t->sgpr[code] != ~0u ? 0 : mask;
}

/* Between lanes and scalars. */
static bool lanes_before(struct isa_taint *t, struct isa_wave *w, const struct isa_insn *i) {
    unsigned first = t->exec ? (unsigned)__builtin_ctzll(t->exec) : 0;
    unsigned lane =
        i->op == ISA_OP_v_readfirstlane_b32 ? first : isa_scalar32(w, i, i->src[1]) & 63;
    switch (i->op) {
    case ISA_OP_v_readfirstlane_b32:
    case ISA_OP_v_readlane_b32:
        t->bits = source(t, i, 0) >> lane & 1 ? ~UINT64_C(0) : 0;
        return true;
    case ISA_OP_v_writelane_b32:
        t->mask = into_lane(t, i);
        t->exec = UINT64_C(1) << lane;
        return true;
    default:
        return false;
    }
}

/* ---- scalar instructions --------------------------------------------------------------------- */

/* Bits of and, or and their kin are defined where one side decides them. */
static uint64_t decided(const struct isa_insn *i, uint64_t a, uint64_t b, uint64_t ta,
                        uint64_t tb) {
    uint32_t forms = isa_info[i->op].forms;
    if (forms & ISA_FORM_BITWISE)
        return ta | tb;
    if (forms & ISA_FORM_NEGATED)
        b = ~b;
    if (forms & ISA_FORM_AND)
        return (ta & tb) | (ta & b) | (tb & a);
    return (ta & tb) | (ta & ~b) | (tb & ~a);
}

/* Instructions that compute EXEC from a source and EXEC; dst gets what it was, or what it becomes.
 */
static bool is_exec_with_source(const struct isa_info *info) {
    return info->encoding == ISA_ENC_SOP1 && info->forms & ISA_FORM_SETS_EXEC;
}

static uint64_t value_of(const struct isa_wave *w, const struct isa_insn *i, unsigned s) {
    return isa_type_dwords(isa_info[i->op].type[s + 1]) == 2
               ? isa_scalar64(w, i, i->src[s], ISA_TYPE_B64)
               : isa_scalar32(w, i, i->src[s]);
}

static uint64_t taint_of(struct isa_taint *t, const struct isa_insn *i, unsigned s) {
    unsigned dwords = isa_type_dwords(isa_info[i->op].type[s + 1]);
    return dwords && i->src[s] < ISA_SGPRS ? isa_taint_scalars(t, i->src[s], dwords) : 0;
}

static uint64_t taint_of_dst(struct isa_taint *t, const struct isa_insn *i) {
    const struct isa_info *info = &isa_info[i->op];
    return info->forms & ISA_FORM_ACC ? isa_taint_scalars(t, i->dst, isa_type_dwords(info->type[0]))
                                      : 0;
}

static uint64_t scalar_taint(struct isa_taint *t, const struct isa_wave *w,
                             const struct isa_insn *i) {
    const struct isa_info *info = &isa_info[i->op];
    if (info->forms & ISA_FORM_READS_SCC && !(info->forms & ISA_FORM_SETS_SCC)) /* a choice */
        return w->scc                       ? taint_of(t, i, 0)
               : info->forms & ISA_FORM_ACC ? taint_of_dst(t, i)
                                            : taint_of(t, i, 1);
    uint64_t ta = taint_of(t, i, 0), tb = taint_of(t, i, 1);
    if (is_exec_with_source(info))
        return decided(i, value_of(w, i, 0), t->exec, ta, 0);
    if (info->forms & (ISA_FORM_AND | ISA_FORM_OR))
        return decided(i, value_of(w, i, 0), value_of(w, i, 1), ta, tb);
    if (info->forms & ISA_FORM_BITWISE)
        return ta | tb;
    return ta | tb | taint_of_dst(t, i) ? ~UINT64_C(0) : 0;
}

static void scalar_before(struct isa_taint *t, struct isa_wave *w, const struct isa_insn *i) {
    t->bits = scalar_taint(t, w, i);
    if (isa_info[i->op].forms & ISA_FORM_READS_SCC && t->scc) {
        t->origin = t->scc_origin;
        t->bits = ~UINT64_C(0);
    }
    t->any = t->bits != 0;
}

static void scalar_after(struct isa_taint *t, struct isa_wave *w, const struct isa_insn *i) {
    const struct isa_info *info = &isa_info[i->op];
    if (is_exec_with_source(info)) {
        bool keeps = i->op != ISA_OP_s_andn1_wrexec_b64 && i->op != ISA_OP_s_andn2_wrexec_b64;
        write_scalars(t, w, i, ISA_EXEC, 2, t->bits);
        write_scalars(t, w, i, i->dst, 2, keeps ? 0 : t->bits);
    } else if (!(info->forms & ISA_FORM_COMPARE) && info->type[0] != ISA_TYPE_NONE) {
        write_scalars(t, w, i, i->dst, isa_type_dwords(info->type[0]), t->bits);
    }
    if (info->forms & ISA_FORM_SETS_SCC) {
        t->scc = t->any;
        t->scc_origin = t->origin;
    }
}

static void branch(struct isa_taint *t, struct isa_wave *w, const struct isa_insn *i) {
    switch (i->op) {
    case ISA_OP_s_cbranch_scc0:
    case ISA_OP_s_cbranch_scc1:
        if (!t->scc)
            return;
        t->origin = t->scc_origin;
        t->scc = false;
        break;
    case ISA_OP_s_cbranch_vccz:
    case ISA_OP_s_cbranch_vccnz:
        if (!isa_taint_scalars(t, ISA_VCC, 2))
            return;
        t->sgpr[ISA_VCC] = t->sgpr[ISA_VCC + 1] = 0;
        break;
    default:
        return;
    }
    isa_taint_use(t, w, i, ISA_TAINT_BRANCH, t->exec ? (unsigned)__builtin_ctzll(t->exec) : 0);
}

/* ---- around an instruction ------------------------------------------------------------------- */

/* i, or while VGPR indexing is on (s_set_gpr_idx_on) a copy in own with the registers it means. */
static const struct isa_insn *indexed(struct isa_wave *w, const struct isa_insn *i,
                                      struct isa_insn *own) {
    unsigned encoding = isa_info[i->op].encoding;
    uint32_t m0 = ISA_WAVE_M0(w);
    if (!(w->mode & ISA_MODE_GPR_IDX) || encoding < ISA_ENC_VOP2 || encoding > ISA_ENC_VOP3P)
        return i;
    *own = *i;
    for (unsigned s = 0; s < 3; s++)
        if (own->src[s] >= ISA_VGPR0 && m0 >> (12 + s) & 1)
            own->src[s] = (uint16_t)(own->src[s] + (m0 & 0xff));
    if (own->dst >= ISA_VGPR0 && m0 >> 15 & 1)
        own->dst = (uint16_t)(own->dst + (m0 & 0xff));
    return own;
}

void isa_taint_before(struct isa_taint *t, struct isa_wave *w, const struct isa_insn *i) {
    unsigned encoding = isa_info[i->op].encoding;
    struct isa_insn own;
    i = indexed(w, i, &own);
    t->exec = ISA_WAVE_EXEC(w);
    t->mask = t->high = t->bits = 0;
    t->any = false;
    t->accesses = 0;
    if (encoding == ISA_ENC_SOPP)
        branch(t, w, i);
    else if (encoding >= ISA_ENC_SOP2 && encoding <= ISA_ENC_SOPC)
        scalar_before(t, w, i);
    else if (encoding == ISA_ENC_SMEM || encoding >= ISA_ENC_DS)
        isa_taint_memory_before(t, w, i);
    else if (encoding != ISA_ENC_NONE && !lanes_before(t, w, i) &&
             (encoding != ISA_ENC_MAI || isa_info[i->op].type[0] == ISA_TYPE_B32))
        vector_before(t, w, i);
    if (is_origin(t, i))
        t->mask = t->high = ~UINT64_C(0);
}

void isa_taint_after(struct isa_taint *t, struct isa_wave *w, const struct isa_insn *i) {
    const struct isa_info *info = &isa_info[i->op];
    unsigned encoding = info->encoding;
    struct isa_insn own;
    i = indexed(w, i, &own);
    if (encoding == ISA_ENC_SOPP || encoding == ISA_ENC_NONE)
        return;
    if (encoding >= ISA_ENC_SOP2 && encoding <= ISA_ENC_SOPC)
        scalar_after(t, w, i);
    else if (encoding == ISA_ENC_SMEM && is_origin(t, i)) /* a clock */
        write_scalars(t, w, i, i->dst, 2, ~UINT64_C(0));
    else if (encoding == ISA_ENC_SMEM || encoding >= ISA_ENC_DS)
        isa_taint_memory_after(t, w, i);
    else if (i->op == ISA_OP_v_readlane_b32 || i->op == ISA_OP_v_readfirstlane_b32)
        write_scalars(t, w, i, i->dst, 1, t->bits);
    else {
        if (encoding == ISA_ENC_MAI && info->type[0] != ISA_TYPE_B32)
            t->exec = ~UINT64_C(0);
        vector_after(t, w, i);
    }
}
