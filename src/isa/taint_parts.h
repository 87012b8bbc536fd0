/* taint_parts.h - what taint.c and taint_memory.c share: the registers. */
#ifndef ISA_TAINT_PARTS_H
#define ISA_TAINT_PARTS_H

#include "isa/taint.h"

/* The undefined lanes of vector registers; sets t->origin if there are any. */
static inline uint64_t isa_taint_rows(struct isa_taint *t, unsigned code, unsigned dwords) {
    uint64_t mask = 0;
    for (unsigned d = 0; d < dwords && code - ISA_VGPR0 + d < ISA_VGPRS; d++)
        if (t->vgpr[code - ISA_VGPR0 + d]) {
            mask |= t->vgpr[code - ISA_VGPR0 + d];
            t->origin = t->vgpr_origin[code - ISA_VGPR0 + d];
        }
    return mask;
}

/* The undefined bits of scalar registers (of more than two, both halves over each other); likewise.
 */
static inline uint64_t isa_taint_scalars(struct isa_taint *t, unsigned code, unsigned dwords) {
    uint64_t bits = 0;
    for (unsigned d = 0; d < dwords && code + d < ISA_SGPRS; d++)
        if (t->sgpr[code + d]) {
            bits |= (uint64_t)t->sgpr[code + d] << 32 * (d & 1);
            t->origin = t->sgpr_origin[code + d];
        }
    return bits;
}

/* Reports that t->origin was used. */
static inline void isa_taint_use(struct isa_taint *t, const struct isa_wave *w,
                                 const struct isa_insn *i, enum isa_taint_use how, unsigned lane) {
    t->host->used(t->host->context, w, i, how, t->origin, lane);
}

static inline void isa_taint_write_row(struct isa_taint *t, unsigned code, uint64_t lanes,
                                       uint64_t mask) {
    unsigned r = code - ISA_VGPR0;
    if (r >= ISA_VGPRS)
        return;
    t->vgpr[r] = (t->vgpr[r] & ~lanes) | (mask & lanes);
    if (mask & lanes)
        t->vgpr_origin[r] = t->origin;
}

void isa_taint_memory_before(struct isa_taint *t, struct isa_wave *w, const struct isa_insn *i);
void isa_taint_memory_after(struct isa_taint *t, struct isa_wave *w, const struct isa_insn *i);

#endif
