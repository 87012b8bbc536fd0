/* frame.h - which memory instructions of a kernel access a single variable of its stack.
 *
 * The place of a variable in a lane's scratch is a constant in the kernel's code. So an address
 * that is the sum of certain constants and of numbers that are no addresses (products, shifted
 * values, thread ids) belongs to one variable. Which of the constants is its place cannot be known,
 * and need not be. If such an instruction reaches two variables, one of them is a mistake.
 *
 * Found without running the code (paths.h). A constant that differs from path to path or from lane
 * to lane might be the place of another variable, so it proves nothing; unless it is a pointer that
 * a loop moves by at most ISA_FRAME_STEP bytes. Nothing is known about addresses loaded from
 * memory, or about functions that were not inlined. */
#ifndef ISA_FRAME_H
#define ISA_FRAME_H

#include "isa/isa.h"

enum isa_frame_found {
    ISA_FRAME_ANY,     /* nothing is known */
    ISA_FRAME_ONE,     /* for one variable only */
    ISA_FRAME_STEPPED, /* the same of an address that a loop moves: perhaps on to the next variable
                        */
};

/* Variables that begin no further than this from each other cannot be told apart by instructions
 * that are ISA_FRAME_STEPPED. */
enum { ISA_FRAME_STEP = 64 };

struct isa_frame_kernel {
    uint64_t entry, end; /* device addresses of its code; a wave starts at entry + skip */
    uint32_t skip;       /* bytes */
    bool zero_is_null;   /* no variable is at 0: a choice between 0 and a place is that place */
};

/* One byte per dword of the code, enum isa_frame_found: what is known of the instruction there, if
 * it accesses scratch. The caller frees it. NULL: nothing is known, or no memory. */
uint8_t *isa_frame_find(struct isa_code *code, const struct isa_frame_kernel *k);

#endif
