/* cfi.h - how to get from one frame of a call stack to the next, from .eh_frame of the loaded
 * files.
 *
 * For a program counter this says where the caller's stack begins (the canonical frame address),
 * where the return address is, and where the frame pointer was saved. The tables are found with
 * _dl_find_object(), which takes no lock: a forked child, or a signal handler that interrupted the
 * dynamic linker, may ask. No memory is allocated. Only the stack pointer and the frame pointer are
 * followed; code whose frame is based on another register is not described. x86-64. */
#ifndef RECORD_CFI_H
#define RECORD_CFI_H

#include <stdbool.h>
#include <stdint.h>

enum cfi_kind {
    CFI_SAME, /* the caller's value is the current one */
    CFI_AT,   /* it is in memory, at the canonical frame address + offset */
    CFI_AT_EXPRESSION,
    CFI_UNDEFINED, /* there is none; of the return address: the stack ends here */
    CFI_OTHER,     /* by rules that are not followed */
};

struct cfi_rule {
    enum cfi_kind kind;
    int64_t offset;
    const unsigned char *expression; /* its length, then the operations */
};

enum cfi_base { CFI_BASE_STACK, CFI_BASE_FRAME, CFI_BASE_EXPRESSION, CFI_BASE_OTHER };

struct cfi_row {
    enum cfi_base base; /* the canonical frame address is that register + offset */
    int64_t offset;
    const unsigned char *expression;
    struct cfi_rule frame, return_address;
    bool signal; /* the frame of a signal handler's return: the registers are in its context */
};

/* The row for the instruction at pc (of a return address: pass it minus one). False if there is no
 * description that can be used. */
bool cfi_find(uintptr_t pc, struct cfi_row *out);

/* What an expression needs: registers, and memory. */
struct cfi_machine {
    uint64_t stack, frame, pc;
    bool (*load)(void *user, uint64_t address, uint64_t *out);
    void *user;
};

/* Runs the operations of an expression on a stack that holds `first`. False if an operation is not
 * known or a word cannot be read. */
bool cfi_evaluate(const unsigned char *expression, uint64_t first, const struct cfi_machine *m,
                  uint64_t *out);

#endif
