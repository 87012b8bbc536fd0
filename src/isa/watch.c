/* watch.c - the loop that runs watched waves: instruction by instruction, with a callback before
 * some of them. isa_run() knows nothing of it and pays nothing for it. */
#include "isa/watch.h"

#include "isa/exec.h"

/* Has s_waitcnt waited for all of the wave's memory instructions? vmcnt is in bits 3:0 and 15:14.
 */
static bool waits_for_memory(const struct isa_insn *i) {
    return i->op == ISA_OP_s_waitcnt && (i->imm & 0xc00f) == 0;
}

static bool is_per_lane(const struct isa_insn *i) {
    unsigned encoding = isa_info[i->op].encoding;
    return encoding >= ISA_ENC_VOP2 && i->op != ISA_OP_v_readlane_b32 &&
           i->op != ISA_OP_v_writelane_b32 && i->op != ISA_OP_v_readfirstlane_b32;
}

static bool is_memory(const struct isa_insn *i) {
    unsigned encoding = isa_info[i->op].encoding;
    return encoding == ISA_ENC_SMEM || (encoding >= ISA_ENC_DS && encoding <= ISA_ENC_MIMG);
}

/* Lanes that compilers turn on to save and restore registers, whoever is off. */
static bool is_whole_wave(const struct isa_watch *watch, const struct isa_insn *i) {
    if (i->op == ISA_OP_s_or_saveexec_b64 && i->src[0] == ISA_INT_M1)
        return true;
    bool sets_exec = isa_info[i->op].encoding == ISA_ENC_SOP1 && i->dst == ISA_EXEC;
    return watch->whole_wave && !sets_exec;
}

static enum isa_result step(struct isa_wave *w, const struct isa_insn *i, struct isa_watch *watch) {
    if (!watch->lock || !is_memory(i))
        return isa_run(w, 1);
    spin_lock(watch->lock);
    enum isa_result r = isa_run(w, 1);
    spin_unlock(watch->lock);
    return r;
}

enum isa_result isa_run_watched(struct isa_wave *w, uint64_t budget, struct isa_watch *watch) {
    uint64_t end = w->executed + budget;
    while (w->executed < end) {
        const struct isa_insn *i = w->ip;
        if (i->exec == isa_exec_next_page) { /* no instruction */
            w->executed++;
            enum isa_result jumped = i->exec(w, i);
            if (jumped != ISA_CONTINUE)
                return jumped;
            continue;
        }
        if (ISA_WAVE_EXEC(w) & watch->idle && !watch->whole_wave && is_per_lane(i)) {
            watch->idle = 0;
            watch->woken(watch->context, w);
        }
        if (watch->waited && waits_for_memory(i))
            watch->waited(watch->context, w);
        if (watch->taint)
            isa_taint_before(watch->taint, w, i);
        if (watch->approximate)
            isa_taint_before(watch->approximate, w, i);
        enum isa_result r = step(w, i, watch);
        if (watch->taint)
            isa_taint_after(watch->taint, w, i);
        if (watch->approximate)
            isa_taint_after(watch->approximate, w, i);
        if (watch->executed)
            watch->executed(i);
        watch->whole_wave = is_whole_wave(watch, i);
        if (r != ISA_SLEEP || i->op == ISA_OP_s_sleep)
            return r;
    }
    return ISA_SLEEP;
}
