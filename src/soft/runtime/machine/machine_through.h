/* machine_through.h - accesses through an argument of a kernel that leave the memory it points to
 * and come into other live memory. */
#ifndef SOFT_RUNTIME_MACHINE_THROUGH_H
#define SOFT_RUNTIME_MACHINE_THROUGH_H

#include "soft/runtime/machine/machine.h"

/* Pointer argument `number` of a kernel, and its place among all that the program passes; NULL. */
const struct codeobj_argument *machine_through_argument(const struct codeobj_kernel *k,
                                                        unsigned number, uint32_t *index);

/* Sets l->own from the arguments of the launch; without memory nothing is checked. */
void machine_through_begin(struct machine_launch *l);
void machine_through_end(struct machine_launch *l);

/* The memory that the instruction of an access should stay in; NULL: that is not known. */
static inline const struct machine_own *machine_through_own(const struct machine_launch *l,
                                                            const struct isa_access *a) {
    if (!l->own)
        return NULL;
    /* The wave's program counter is at the next instruction already. */
    uint64_t word = (isa_wave_pc(a->wave) - l->machine->entry) / 4 - a->insn->words;
    return word < l->machine->through_words ? &l->own[l->machine->through[word]] : NULL;
}

/* Reports the access of a lane that is outside. */
void machine_through_tell(struct machine_worker *w, const struct isa_access *a, unsigned lane,
                          uint64_t address);

#endif
