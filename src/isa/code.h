/* code.h - decoded code by pages; for dispatch.c and branches, not for users of the library.
 *
 * There is one slot per dword of a page, because a branch may lead to any of them. The last slot of
 * a page is followed by two that only lead to the next page, so running on needs no check.
 * A page is decoded when a wave first reaches it, and never changes after that. */
#ifndef ISA_CODE_H
#define ISA_CODE_H

#include "isa/isa.h"

#define ISA_PAGE_SLOTS 1024

struct isa_page {
    uint64_t address; /* of insn[0] */
    struct isa_insn insn[ISA_PAGE_SLOTS + 2];
};

/* How decoded instructions get their functions: pages know nothing about groups (exec.h). */
struct isa_code_binding {
    void (*bind)(struct isa_insn *i); /* isa_bind() */
    isa_exec_fn next_page;            /* of the slots that lead on */
};

/* isa_code_open() with that; the binding is kept. */
NODISCARD enum rc isa_code_make(struct isa_code **out, enum isa_gpu gpu, const void *bytes,
                                size_t size, uint64_t address,
                                const struct isa_code_binding *binding, struct err *e);

/* The page that holds a device address, decoded; NULL outside the code. */
struct isa_page *isa_code_page(struct isa_code *c, uint64_t address);

#endif
