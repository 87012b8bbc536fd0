/* unwind.h - the call stack of the calling thread.
 *
 * Frames come from the unwind tables (cfi.h); through code that has none, a JIT's for instance, the
 * chain of frame pointers leads on. Besides the frames this says on which words of the stack they
 * depend: where execution is at the same place with the same stack pointer, and these words, read
 * in this order, are the same, the call stack is the same. Each word's place follows from those
 * before it, so that comparing them up to the first difference reads no memory that unwinding would
 * not read.
 *
 * No lock, no allocation, nothing that a signal handler must not do. Memory is asked for from the
 * system before it is read, a page at a time, so that a damaged stack ends the walk and not the
 * program. */
#ifndef RECORD_UNWIND_H
#define RECORD_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

enum { UNWIND_FRAMES = 64, UNWIND_WORDS = 96 };

struct unwind_word {
    uintptr_t address;
    uint64_t value;
};

struct unwind {
    unsigned frames, words;
    /* Return addresses, innermost first; of a frame that a signal interrupted, one byte past the
     * start of the instruction, so that one byte less is always inside the call. */
    uintptr_t frame[UNWIND_FRAMES];
    struct unwind_word word[UNWIND_WORDS];
    bool repeatable; /* the same words mean the same stack; false: the walk guessed and got lost */
};

/* From a function whose frame pointer, __builtin_frame_address(0), is given: the first frame is
 * the one that it returns to. */
void unwind_from(struct unwind *u, const void *frame_address);

#endif
