/* taint_parts.h - between taint.c and taint_memory.c. */
#ifndef ISA_TAINT_PARTS_H
#define ISA_TAINT_PARTS_H

#include "isa/taint.h"

/* The undefined lanes of vector registers, the undefined bits of scalar ones (of more than two,
 * both halves over each other); sets t->origin if there are any. */
uint64_t isa_taint_rows(struct isa_taint *t, unsigned code, unsigned dwords);
uint64_t isa_taint_scalars(struct isa_taint *t, unsigned code, unsigned dwords);
void isa_taint_write_row(struct isa_taint *t, unsigned code, uint64_t lanes, uint64_t mask);

/* Tells that t->origin was used. */
void isa_taint_use(struct isa_taint *t, const struct isa_wave *w, const struct isa_insn *i,
                   enum isa_taint_use how, unsigned lane);

void isa_taint_memory_before(struct isa_taint *t, struct isa_wave *w, const struct isa_insn *i);
void isa_taint_memory_after(struct isa_taint *t, struct isa_wave *w, const struct isa_insn *i);

#endif
