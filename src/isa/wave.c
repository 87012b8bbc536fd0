/* wave.c - where a wave is, and how it begins. */
#include "isa/code.h"
#include "isa/exec.h"

enum isa_result isa_exec_next_page(struct isa_wave *w, const struct isa_insn *i) {
    w->executed--; /* the slot was not an instruction */
    return isa_wave_jump(w, w->page->address + 4 * (uint64_t)(i - w->page->insn));
}

enum isa_result isa_wave_jump(struct isa_wave *w, uint64_t address) {
    struct isa_page *p = address % 4 ? NULL : isa_code_page(w->code, address);
    if (!p) {
        w->stop = (struct isa_stop){ .pc = address, .address = address };
        w->ip = NULL;
        return ISA_BAD_PC;
    }
    w->page = p;
    w->ip = &p->insn[(address - p->address) / 4];
    return ISA_CONTINUE;
}

static uint64_t address_of(const struct isa_wave *w, const struct isa_insn *i) {
    return w->page->address + 4 * (uint64_t)(i - w->page->insn);
}

uint64_t isa_wave_pc(const struct isa_wave *w) {
    return w->ip ? address_of(w, w->ip) : w->stop.pc;
}

void isa_wave_restart(struct isa_wave *w, struct isa_code *code, struct isa_group *group,
                      const struct isa_memory *memory, const struct isa_host *host, unsigned vgprs,
                      unsigned agprs) {
    enum { EACH = ISA_VGPRS / 2 };
    memset(w, 0, offsetof(struct isa_wave, vgpr));
    memset(w->vgpr[0], 0, (vgprs < EACH ? vgprs : EACH) * sizeof w->vgpr[0]);
    memset(w->vgpr[EACH], 0, (agprs < EACH ? agprs : EACH) * sizeof w->vgpr[0]);
    w->code = code;
    w->group = group;
    w->memory = memory;
    w->host = host;
    w->mode = ISA_MODE_DEFAULT;
    ISA_WAVE_EXEC(w) = ~UINT64_C(0);
}

void isa_wave_reset(struct isa_wave *w, struct isa_code *code, struct isa_group *group,
                    const struct isa_memory *memory, const struct isa_host *host) {
    isa_wave_restart(w, code, group, memory, host, ISA_VGPRS / 2, ISA_VGPRS / 2);
}
