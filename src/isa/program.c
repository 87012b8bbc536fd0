/* program.c - branches, messages, barriers and hardware registers. */
#include "isa/code.h"
#include "isa/exec.h"

#define EXEC_FN(name) static enum isa_result name(struct isa_wave *w, const struct isa_insn *i)

/* w->ip is at the next instruction already. */
static inline enum isa_result branch(struct isa_wave *w, const struct isa_insn *i) {
    ptrdiff_t slot = w->ip - w->page->insn + (int16_t)i->imm;
    if (slot >= 0 && slot < ISA_PAGE_SLOTS) {
        w->ip = &w->page->insn[slot];
        return ISA_CONTINUE;
    }
    return isa_wave_jump(w, isa_wave_pc(w) + (uint64_t)((int64_t)(int16_t)i->imm * 4));
}

#define BRANCH_IF(name, condition)                                                                 \
    EXEC_FN(name) {                                                                                \
        return (condition) ? branch(w, i) : ISA_CONTINUE;                                          \
    }
BRANCH_IF(s_branch, 1)
BRANCH_IF(s_cbranch_scc0, !w->scc)
BRANCH_IF(s_cbranch_scc1, w->scc)
BRANCH_IF(s_cbranch_vccz, ISA_WAVE_VCC(w) == 0)
BRANCH_IF(s_cbranch_vccnz, ISA_WAVE_VCC(w) != 0)
BRANCH_IF(s_cbranch_execz, ISA_WAVE_EXEC(w) == 0)
BRANCH_IF(s_cbranch_execnz, ISA_WAVE_EXEC(w) != 0)

EXEC_FN(nothing) {
    (void)w, (void)i;
    return ISA_CONTINUE;
}

EXEC_FN(s_endpgm) {
    (void)w, (void)i;
    return ISA_END;
}

EXEC_FN(s_barrier) {
    (void)w, (void)i;
    return ISA_BARRIER;
}

EXEC_FN(s_sleep) {
    (void)w, (void)i;
    return ISA_SLEEP;
}

EXEC_FN(s_trap) {
    w->stop = (struct isa_stop){ .code = (uint32_t)i->imm & 0xff };
    return ISA_TRAP;
}

EXEC_FN(s_sethalt) {
    if (!(i->imm & 1))
        return ISA_CONTINUE;
    w->stop = (struct isa_stop){ .code = 0 };
    return ISA_TRAP;
}

EXEC_FN(s_sendmsg) {
    if (!w->host || !w->host->message)
        return ISA_CONTINUE;
    return w->host->message(w->host->context, w, (uint32_t)i->imm, ISA_WAVE_M0(w));
}

EXEC_FN(s_sendmsghalt) {
    enum isa_result r = s_sendmsg(w, i);
    if (r != ISA_CONTINUE)
        return r;
    w->stop = (struct isa_stop){ .code = 0 };
    return ISA_TRAP;
}

/* ---- jumps ---- */

EXEC_FN(s_getpc_b64) {
    isa_write64(w, i->dst, isa_wave_pc(w));
    return ISA_CONTINUE;
}

EXEC_FN(s_setpc_b64) {
    return isa_wave_jump(w, isa_scalar64(w, i, i->src[0], ISA_TYPE_B64));
}

EXEC_FN(s_swappc_b64) {
    uint64_t to = isa_scalar64(w, i, i->src[0], ISA_TYPE_B64);
    isa_write64(w, i->dst, isa_wave_pc(w));
    return isa_wave_jump(w, to);
}

EXEC_FN(s_call_b64) {
    isa_write64(w, i->dst, isa_wave_pc(w));
    return branch(w, i);
}

/* ---- the stack of branches: MODE[31:29] entries of four SGPRs from s0 on: lanes, address ----- */

enum { CSP_SHIFT = 29, CSP_MOST = 7, ENTRY_SGPRS = 4 };

static void set_csp(struct isa_wave *w, uint32_t csp) {
    w->mode = (w->mode & ~(7u << CSP_SHIFT)) | csp << CSP_SHIFT;
}

/* Lanes in `pass` go to target, the others on. If there are both, the fewer go first. */
static enum isa_result fork_lanes(struct isa_wave *w, const struct isa_insn *i, uint64_t pass,
                                  uint64_t target) {
    uint64_t exec = ISA_WAVE_EXEC(w), fail = exec & ~pass, next = isa_wave_pc(w);
    uint32_t csp = w->mode >> CSP_SHIFT;
    pass &= exec;
    if (!fail || !pass)
        return fail ? ISA_CONTINUE : isa_wave_jump(w, target);
    if (csp == CSP_MOST)
        return isa_stop_unsupported(w, i, "the stack of branches is full");
    bool fail_first = __builtin_popcountll(fail) < __builtin_popcountll(pass);
    isa_write64(w, ENTRY_SGPRS * csp, fail_first ? pass : fail);
    isa_write64(w, ENTRY_SGPRS * csp + 2, fail_first ? target : next);
    set_csp(w, csp + 1);
    ISA_WAVE_EXEC(w) = fail_first ? fail : pass;
    return fail_first ? ISA_CONTINUE : isa_wave_jump(w, target);
}

EXEC_FN(s_cbranch_g_fork) {
    return fork_lanes(w, i, isa_scalar64(w, i, i->src[0], ISA_TYPE_B64),
                      isa_scalar64(w, i, i->src[1], ISA_TYPE_B64));
}

EXEC_FN(s_cbranch_i_fork) {
    return fork_lanes(w, i, isa_scalar64(w, i, i->dst, ISA_TYPE_B64),
                      isa_wave_pc(w) + (uint64_t)((int64_t)(int16_t)i->imm * 4));
}

/* The other lanes, until the stack is as it was. */
EXEC_FN(s_cbranch_join) {
    uint32_t csp = w->mode >> CSP_SHIFT;
    if (csp == (isa_scalar32(w, i, i->src[0]) & 7))
        return ISA_CONTINUE;
    if (!csp)
        return isa_stop_unsupported(w, i, "the stack of branches is empty");
    set_csp(w, --csp);
    ISA_WAVE_EXEC(w) = isa_scalar64(w, i, ENTRY_SGPRS * csp, ISA_TYPE_B64);
    return isa_wave_jump(w, isa_scalar64(w, i, ENTRY_SGPRS * csp + 2, ISA_TYPE_B64));
}

EXEC_FN(s_rfe_b64) {
    return isa_stop_unsupported(w, i, "privileged: only a trap handler may execute it");
}

/* isa_run() looks at VSKIP when it is called. */
static enum isa_result skip_or_not(const struct isa_wave *w) {
    return w->mode & ISA_MODE_VSKIP ? ISA_SLEEP : ISA_CONTINUE;
}

EXEC_FN(s_setvskip) {
    uint32_t bit = isa_scalar32(w, i, i->src[0]) >> (isa_scalar32(w, i, i->src[1]) & 31) & 1;
    w->mode = (w->mode & ~(uint32_t)ISA_MODE_VSKIP) | bit * ISA_MODE_VSKIP;
    return skip_or_not(w);
}

/* ---- hardware registers: K is id[5:0], offset[10:6], size - 1 [15:11] ---- */

enum {
    REG_MODE = 1,
    REG_STATUS = 2,
    REG_TRAPSTS = 3,
    REG_HW_ID = 4,
    REG_GPR_ALLOC = 5,
    REG_LDS_ALLOC = 6,
    REG_IB_STS = 7,
    REG_SH_MEM_BASES = 15,
    REG_XCC_ID = 20
};

static uint32_t status(const struct isa_wave *w) {
    return w->scc | (uint32_t)(ISA_WAVE_EXEC(w) == 0) << 9 |
           (uint32_t)(ISA_WAVE_VCC(w) == 0) << 10 | 1u << 16 /* valid */;
}

/* The value of a hardware register; false if there is none like that. */
static bool read_register(const struct isa_wave *w, unsigned id, uint32_t *value) {
    switch (id) {
    case REG_MODE:
        *value = w->mode;
        return true;
    case REG_STATUS:
        *value = status(w);
        return true;
    case REG_TRAPSTS:
        *value = w->trapsts;
        return true;
    case REG_HW_ID:
        *value = w->hw_id;
        return true;
    case REG_GPR_ALLOC:
    case REG_IB_STS:
    case REG_XCC_ID:
        *value = 0;
        return true;
    case REG_LDS_ALLOC: /* size in units of 128 dwords from bit 12 on */
        *value = (w->group->lds_bytes + 511) / 512 << 12;
        return true;
    case REG_SH_MEM_BASES: /* bits 63:48 of the private and of the shared aperture */
        *value = (uint32_t)(w->private_base >> 48) | (uint32_t)(w->shared_base >> 48) << 16;
        return true;
    default:
        return false;
    }
}

static uint32_t field_mask(const struct isa_insn *i) {
    unsigned size = (unsigned)i->imm >> 11 & 31;
    return 0xffffffffu >> (31 - size);
}

EXEC_FN(s_getreg_b32) {
    uint32_t value;
    if (!read_register(w, i->imm & 63, &value))
        return isa_stop_unsupported(w, i, "no such hardware register here");
    isa_write32(w, i->dst, value >> (i->imm >> 6 & 31) & field_mask(i));
    return ISA_CONTINUE;
}

static enum isa_result set_register(struct isa_wave *w, const struct isa_insn *i, uint32_t value) {
    unsigned offset = i->imm >> 6 & 31;
    uint32_t mask = field_mask(i) << offset;
    uint32_t *reg;
    switch (i->imm & 63) {
    case REG_MODE:
        reg = &w->mode;
        break;
    case REG_TRAPSTS:
        reg = &w->trapsts;
        break;
    default:
        return isa_stop_unsupported(w, i, "this hardware register cannot be written here");
    }
    *reg = (*reg & ~mask) | (value << offset & mask);
    return skip_or_not(w);
}

EXEC_FN(s_setreg_b32) {
    return set_register(w, i, isa_scalar32(w, i, i->dst));
}

EXEC_FN(s_setreg_imm32_b32) {
    return set_register(w, i, i->literal);
}

/* ---- VGPR indexing: M0[7:0] is added to the numbers of the operands that M0[15:12] names ---- */

static void set_index(struct isa_wave *w, uint32_t index, uint32_t operands) {
    ISA_WAVE_M0(w) = (ISA_WAVE_M0(w) & 0xffff0f00) | (index & 0xff) | (operands & 15) << 12;
}

EXEC_FN(s_set_gpr_idx_on) {
    set_index(w, isa_scalar32(w, i, i->src[0]), (uint32_t)i->imm);
    w->mode |= ISA_MODE_GPR_IDX;
    return ISA_CONTINUE;
}

EXEC_FN(s_set_gpr_idx_off) {
    (void)i;
    w->mode &= ~(uint32_t)ISA_MODE_GPR_IDX;
    return ISA_CONTINUE;
}

EXEC_FN(s_set_gpr_idx_idx) {
    set_index(w, isa_scalar32(w, i, i->src[0]), ISA_WAVE_M0(w) >> 12);
    return ISA_CONTINUE;
}

EXEC_FN(s_set_gpr_idx_mode) {
    set_index(w, ISA_WAVE_M0(w), (uint32_t)i->imm);
    return ISA_CONTINUE;
}

const isa_exec_fn isa_group_program[ISA_OP_COUNT] = {
#define PROGRAM(name) [ISA_OP_##name] = name
#define NOTHING(name) [ISA_OP_##name] = nothing
    PROGRAM(s_branch),
    PROGRAM(s_cbranch_scc0),
    PROGRAM(s_cbranch_scc1),
    PROGRAM(s_cbranch_vccz),
    PROGRAM(s_cbranch_vccnz),
    PROGRAM(s_cbranch_execz),
    PROGRAM(s_cbranch_execnz),
    NOTHING(s_cbranch_cdbgsys),
    NOTHING(s_cbranch_cdbguser),
    NOTHING(s_cbranch_cdbgsys_or_user),
    NOTHING(s_cbranch_cdbgsys_and_user),
    NOTHING(s_nop),
    NOTHING(s_setkill),
    NOTHING(s_waitcnt),
    NOTHING(s_setprio),
    NOTHING(s_icache_inv),
    NOTHING(s_incperflevel),
    NOTHING(s_decperflevel),
    NOTHING(s_ttracedata),
    NOTHING(s_wakeup),
    PROGRAM(s_endpgm),
    [ISA_OP_s_endpgm_saved] = s_endpgm,
    [ISA_OP_s_endpgm_ordered_ps_done] = s_endpgm,
    PROGRAM(s_barrier),
    PROGRAM(s_sleep),
    PROGRAM(s_trap),
    PROGRAM(s_sethalt),
    PROGRAM(s_sendmsg),
    PROGRAM(s_sendmsghalt),
    PROGRAM(s_getpc_b64),
    PROGRAM(s_setpc_b64),
    PROGRAM(s_swappc_b64),
    PROGRAM(s_call_b64),
    PROGRAM(s_cbranch_g_fork),
    PROGRAM(s_cbranch_i_fork),
    PROGRAM(s_cbranch_join),
    PROGRAM(s_rfe_b64),
    [ISA_OP_s_rfe_restore_b64] = s_rfe_b64,
    PROGRAM(s_setvskip),
    PROGRAM(s_getreg_b32),
    PROGRAM(s_setreg_b32),
    PROGRAM(s_setreg_imm32_b32),
    PROGRAM(s_set_gpr_idx_on),
    PROGRAM(s_set_gpr_idx_off),
    PROGRAM(s_set_gpr_idx_idx),
    PROGRAM(s_set_gpr_idx_mode),
    NOTHING(v_nop),
    NOTHING(v_clrexcp),
#undef PROGRAM
#undef NOTHING
};
