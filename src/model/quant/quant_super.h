/* quant_super.h - a super-block of 256 elements, taken apart.
 *
 * Every 256-element type stores the same values in a different layout:
 *
 *   x[e] = d * scale[j] * level[e] - dmin * min[j],  j = e / (elements per sub-block)
 *
 * so each type has one function that takes a block apart and one that packs it, and decoding and
 * encoding are written once. Levels and scales carry their sign here; types without mins have
 * zeros. Thread-safe. */
#ifndef MODEL_QUANT_SUPER_H
#define MODEL_QUANT_SUPER_H

#include "model/quant/quant_block.h"

struct quant_super {
    quant_half d, dmin;
    int8_t scale[16];
    uint8_t min[16];
    int8_t level[QUANT_SUPER]; /* IQ4_XS: the table's values */
};

#define QUANT_SUPER_DECLARE(name)                                                                  \
    void quant_unpack_##name(const void *block, struct quant_super *s);                            \
    void quant_pack_##name(const struct quant_super *s, void *block);
QUANT_SUPER_DECLARE(q2_k)
QUANT_SUPER_DECLARE(q3_k)
QUANT_SUPER_DECLARE(q4_k)
QUANT_SUPER_DECLARE(q5_k)
QUANT_SUPER_DECLARE(q6_k)
QUANT_SUPER_DECLARE(iq4_xs)
#undef QUANT_SUPER_DECLARE

/* The 12 bytes of Q4_K and Q5_K: eight scales and eight minima of 6 bits. Nothing else of *s is
 * touched. */
void quant_unpack_scales(const uint8_t *bytes, struct quant_super *s);
void quant_pack_scales(const struct quant_super *s, uint8_t *bytes);

#endif
