/* taint.h - values that nothing has defined, followed through a wave's registers.
 *
 * A vector register has one bit per lane: its value there is undefined. A scalar register has one
 * bit per bit, because masks of lanes are kept in them. What is computed from an undefined value is
 * undefined, with these exceptions, each of which may miss a use but never reports one wrongly: a
 * dword of which some bytes are defined counts as defined, even if v_perm_b32 or the like put it
 * together; results of matrix instructions, and of lanes that read other lanes by DPP or swizzles,
 * count as defined.
 *
 * Undefined values may be copied and stored to LDS and scratch. They are reported when they become
 * an address, decide a branch (or which lanes go on), or are stored to global memory; then they
 * count as defined, so that one mistake is reported once.
 *
 * The caller knows which memory is defined. A taint belongs to one wave and its thread. */
#ifndef ISA_TAINT_H
#define ISA_TAINT_H

#include "isa/isa.h"

enum isa_taint_space {
    ISA_TAINT_NONE,
    ISA_TAINT_GLOBAL,
    ISA_TAINT_LDS,
    ISA_TAINT_SCRATCH,
    ISA_TAINT_VGPR,
    ISA_TAINT_SGPR
};
enum isa_taint_use { ISA_TAINT_ADDRESS, ISA_TAINT_BRANCH, ISA_TAINT_STORE };

/* Where an undefined value came from. */
struct isa_origin {
    uint8_t space; /* enum isa_taint_space */
    uint64_t at;   /* address, offset, or number of the register */
};

struct isa_taint_host {
    void *context;
    /* Are all of these bytes undefined? Spaces GLOBAL, LDS, SCRATCH (address as isa_memory gets
     * it). */
    bool (*is_undefined)(void *context, const struct isa_wave *w, unsigned space, uint64_t address,
                         uint32_t bytes);
    void (*define)(void *context, const struct isa_wave *w, unsigned space, uint64_t address,
                   uint32_t bytes, bool undefined);
    void (*used)(void *context, const struct isa_wave *w, const struct isa_insn *i,
                 enum isa_taint_use how, struct isa_origin origin, unsigned lane);
};

/* An access of the instruction that is being executed, as isa_memory was asked for it. */
struct isa_taint_access {
    uint8_t space, kind;
    int8_t row; /* where its data begin among the instruction's registers; -1: after those before */
    uint32_t bytes;
    uint64_t lanes;
    uint64_t address[ISA_LANES];
};
enum { ISA_TAINT_ACCESSES = 32 };

struct isa_taint {
    const struct isa_taint_host *host;
    bool approximations; /* follows results that gfx9.def calls APPROXIMATE, instead of undefined
                            ones */
    enum isa_gpu gpu;    /* for approximations: what they are depends on it */
    uint64_t vgpr[ISA_VGPRS]; /* one bit per lane */
    uint32_t sgpr[ISA_SGPRS]; /* one bit per bit */
    bool scc;
    struct isa_origin vgpr_origin[ISA_VGPRS], sgpr_origin[ISA_SGPRS], scc_origin;
    /* of the instruction that is being executed */
    uint64_t exec, mask; /* lanes; those whose result is undefined */
    uint64_t high;       /* of results in two halves: the lanes whose second dword is */
    uint64_t bits;       /* of a scalar result */
    bool any;
    struct isa_origin origin;
    unsigned accesses;
    struct isa_taint_access access[ISA_TAINT_ACCESSES];
};

/* A wave begins: SGPRs below `sgprs`, the special ones, and v0 are defined. */
void isa_taint_reset(struct isa_taint *t, const struct isa_taint_host *host, unsigned sgprs);

/* The same for a taint that follows approximate values instead: all registers begin clean, and what
 * memory holds counts as clean, so that values are followed through registers only. */
void isa_taint_reset_approximations(struct isa_taint *t, const struct isa_taint_host *host,
                                    enum isa_gpu gpu);

/* Around every instruction. */
void isa_taint_before(struct isa_taint *t, struct isa_wave *w, const struct isa_insn *i);
void isa_taint_after(struct isa_taint *t, struct isa_wave *w, const struct isa_insn *i);

/* From the callbacks of isa_memory: the instruction accesses this. row: -1, or the first of its
 * registers, where the caller tells one access in pieces. */
void isa_taint_note(struct isa_taint *t, const struct isa_access *a, int row,
                    const uint64_t address[ISA_LANES]);

#endif
