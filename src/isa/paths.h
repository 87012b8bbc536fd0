/* paths.h - an abstract interpretation of a kernel: what its registers hold is followed along every
 * path, until nothing changes. What a state is, and what instructions do to it, is the caller's.
 *
 * Kernels that index registers or jump to computed addresses are not followed. */
#ifndef ISA_PATHS_H
#define ISA_PATHS_H

#include "isa/isa.h"

struct isa_paths {
    struct isa_code *code;
    uint64_t entry, end; /* device addresses of the kernel's code; a wave starts at entry + skip */
    uint32_t skip;       /* bytes */
    size_t state_bytes;
    void *context;
    /* Two paths meet before the instruction at dword `word` of the code: into becomes what holds on
     * both. Whether that changed it. back: `from` comes by a jump backwards, or to itself. */
    bool (*join)(void *context, void *into, const void *from, size_t word, bool back);
    /* Executes the instruction at dword `word` of the code. The last call for a word has the state
     * that holds on all paths. */
    void (*follow)(void *context, void *state, const struct isa_insn *i, size_t word);
};

/* False: the kernel cannot be followed, or there is no memory; nothing is known then. */
bool isa_paths_follow(const struct isa_paths *p, const void *first);

/* Registers are numbered: SGPRs by code, then vector registers. -1: the operand is none. */
enum { ISA_PATHS_REGISTERS = ISA_SGPRS + ISA_VGPRS };
static inline int isa_paths_register(unsigned code) {
    if (code < ISA_SGPRS)
        return (int)code;
    if (code >= ISA_VGPR0 && code < ISA_VGPR0 + ISA_VGPRS)
        return (int)(ISA_SGPRS + code - ISA_VGPR0);
    return -1;
}

/* What an instruction does to EXEC. A vector register written while some lanes are off has its new
 * value in all active lanes only until other lanes are turned on. */
enum isa_paths_exec { ISA_PATHS_SAME, ISA_PATHS_NARROWS, ISA_PATHS_WIDENS };
enum isa_paths_exec isa_paths_exec_of(const struct isa_insn *i);

/* Part of a state: which lanes registers were written in. */
struct isa_paths_lanes {
    bool in_part[ISA_VGPRS]; /* written while lanes may have been off */
    bool is_partial;         /* lanes may be off */
};
/* As isa_paths.join. */
bool isa_paths_join_lanes(struct isa_paths_lanes *into, const struct isa_paths_lanes *from);

#endif
