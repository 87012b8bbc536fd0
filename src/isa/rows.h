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

/* What an element of a matrix is. */
enum isa_element {
    ISA_ELEMENT_F32,
    ISA_ELEMENT_XF32,
    ISA_ELEMENT_F16,
    ISA_ELEMENT_BF16,
    ISA_ELEMENT_FP8,
    ISA_ELEMENT_BF8,
    ISA_ELEMENT_I8,
    ISA_ELEMENT_I32,
    ISA_ELEMENT_F64
};

/* A row of the result of a product of matrices: c[n] += a[k] * b[along[k]][n]. */
struct isa_product {
    unsigned n, k; /* n is 4, 16 or 32 */
    const void *a, *b;
    void *c;
    const uint8_t *along;
};
enum isa_multiply { ISA_MULTIPLY_SMALL, ISA_MULTIPLY_F32, ISA_MULTIPLY_I8, ISA_MULTIPLY_F64 };

struct isa_rows {
    isa_row_fn fn[ISA_OP_COUNT];
    isa_row_fn saturating[ISA_OP_COUNT]; /* integers with clamp */
    void (*fill)(uint32_t *d, uint32_t value);
    void (*merge)(uint32_t *d, const uint32_t *s, uint64_t lanes); /* of those lanes only */
    void (*expand)(uint32_t *d, uint64_t mask);                    /* 0 or ~0 per bit */
    uint64_t (*collect)(const uint32_t *s);                        /* the sign bits */
    void (*flip)(uint32_t *d, const uint32_t *s, uint32_t keep, uint32_t change); /* & and ^ */
    /* Bits of each lane: shifted left, then right, with the sign or without. */
    void (*extract)(uint32_t *d, const uint32_t *s, unsigned left, unsigned right, bool sign);
    /* Addresses: of 64 bits in two rows, or 32 bits in one (high is NULL), and a number. */
    void (*addresses)(uint64_t *d, const uint32_t *low, const uint32_t *high, uint64_t add);
    /* The lowest and highest address of those lanes, of which there is one at least; and what lies
     * between a base and each address. */
    void (*bounds)(const uint64_t *address, uint64_t lanes, uint64_t *low, uint64_t *high);
    void (*distances)(uint32_t *d, const uint64_t *address, uint64_t base);
    uint32_t (*highest)(const uint32_t *s, uint64_t lanes);
    void (*sum)(uint32_t *d, const uint32_t *s, uint32_t add);
    /* Where byte s[l] of each lane's scratch is in that of the wave. The lowest two bits of all s,
     * joined, are returned. */
    uint32_t (*swizzle)(uint32_t *d, const uint32_t *s);
    /* Does every address lie `bytes` after the one of the lane before? */
    bool (*is_row)(const uint64_t *address, uint64_t bytes);
    /* One dword of memory per lane, at base + offset[l] (below 2 GiB), in those lanes only. Where
     * several lanes store to one place, the highest wins. */
    void (*load)(uint32_t *d, const uint8_t *base, const uint32_t *offset, uint64_t lanes);
    void (*store)(uint8_t *base, const uint32_t *offset, const uint32_t *s, uint64_t lanes);
    /* Two dwords per lane, in two rows. Each pair is read and written at once: other threads may be
     * at it. */
    void (*load_pairs)(uint32_t *d, const uint8_t *base, const uint32_t *offset, uint64_t lanes);
    void (*store_pairs)(uint8_t *base, const uint32_t *offset, const uint32_t *s, uint64_t lanes);
    /* Elements of all lanes one after the other, from and to 1 to 4 rows. Two dwords are read and
     * written at once. */
    void (*load_row)(uint32_t *d, const uint8_t *base, unsigned dwords);
    void (*store_row)(uint8_t *base, const uint32_t *s, unsigned dwords);
    /* The same of bytes and halves, one row: `bytes` is 1 or 2. */
    void (*load_small)(uint32_t *d, const uint8_t *base, unsigned bytes, bool sign);
    void (*store_small)(uint8_t *base, const uint32_t *s, unsigned bytes);
    /* d[l] = s[from[l]], or 0 for lanes that are not valid; d is not s. */
    void (*gather)(uint32_t *d, const uint32_t *s, const uint32_t *from, uint64_t valid);
    /* The elements of a register in the order of lanes: as floats, those of I8 as int32_t, those of
     * F64 (a pair of registers) as doubles. `flush` is for f16 and bf16 denormals. */
    void (*widen)(void *d, const uint32_t *s, enum isa_element type, bool flush);
    void (*multiply[4])(const struct isa_product *p); /* by enum isa_multiply */
};

/* The second one is for f16 results in another rounding mode than to nearest: slow. */
extern const struct isa_rows isa_rows_base, isa_rows_rounding;
#if defined(__x86_64__)
extern const struct isa_rows isa_rows_avx2, isa_rows_avx512;
#endif

/* The best for this processor, for instructions that were bound: isa_bind() has chosen. */
extern const struct isa_rows *isa_rows_chosen;
void isa_rows_choose(void);

#endif
