/* through.h - which pointer argument of a kernel each of its memory instructions goes through.
 *
 * Found without running the code: what registers hold is followed from the kernarg segment along
 * every path, until nothing changes. A pointer stays that argument's when something is added to
 * it, when it is moved, masked, or chosen between itself and a number; whatever else is made of
 * pointers, and what differs from path to path or from lane to lane, belongs to no argument. So an
 * instruction has an argument only if there is no other that its address could come from - unless
 * the program itself adds the distance between two allocations to a pointer, which C++ does not
 * allow.
 *
 * Nothing is known of pointers that come from memory (also a stack, where code that is not
 * optimised keeps its variables), of functions that were not inlined, and of kernels that index
 * registers or jump to computed addresses. */
#ifndef ISA_THROUGH_H
#define ISA_THROUGH_H

#include "isa/isa.h"

struct isa_through_kernel {
    uint64_t entry, end;     /* device addresses of its code; a wave starts at entry + skip */
    uint32_t skip;           /* bytes */
    int kernarg;             /* first of the two SGPRs that point to the segment; -1: none */
    int preload;             /* first SGPR that holds the segment's dwords; -1: none */
    unsigned preload_offset; /* the first such dword */
    unsigned preload_count;
    /* For each dword of the segment, the number of the pointer argument it belongs to, from 1; 0:
     * it belongs to none. */
    const uint8_t *argument;
    unsigned dwords;
};

enum { ISA_THROUGH_ARGUMENTS = 64 }; /* numbers go below this */

/* One byte per dword of the code: the number of the argument that the instruction there goes
 * through, or 0. The caller frees it. NULL: nothing is known, or no memory. */
uint8_t *isa_through_find(struct isa_code *code, const struct isa_through_kernel *k);

#endif
