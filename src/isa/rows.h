/* rows.h - vector instructions as functions over rows of 64 lanes; for valu.c.
 *
 * A row function reads rows a, b, c and writes d; values of 64 bits are two rows, one after the
 * other. It knows nothing of EXEC, modifiers or scalars. Rows may be the same, because lane l of d
 * depends on lane l of the sources only; operands of 16 bits are in the lower half. With SDST the
 * row after d's is 0 or ~0 per lane; so is d itself for compares. There is one set of functions for
 * each instruction set of the host processor. */
#ifndef ISA_ROWS_H
#define ISA_ROWS_H

#include "isa/isa.h"

typedef void (*isa_row_fn)(uint32_t *d, const uint32_t *a, const uint32_t *b, const uint32_t *c);

struct isa_rows {
    isa_row_fn fn[ISA_OP_COUNT];
    isa_row_fn saturating[ISA_OP_COUNT]; /* integers with clamp */
    void (*fill)(uint32_t *d, uint32_t value);
    void (*merge)(uint32_t *d, const uint32_t *s, uint64_t lanes); /* of those lanes only */
    void (*expand)(uint32_t *d, uint64_t mask);                    /* 0 or ~0 per bit */
    uint64_t (*collect)(const uint32_t *s);                        /* the sign bits */
};

extern const struct isa_rows isa_rows_base;
#if defined(__x86_64__)
extern const struct isa_rows isa_rows_avx2, isa_rows_avx512;
#endif

/* The best for this processor; GRETA_CPU does not change it. */
const struct isa_rows *isa_rows_select(void);

#endif
