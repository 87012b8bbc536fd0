/* texel.h - elements of images and formatted buffers: memory to four 32-bit channels and back.
 *
 * A descriptor names a data format (how many channels of how many bits) and a number format (how
 * they are read), and for every channel of the result where it comes from. Pure functions. */
#ifndef ISA_TEXEL_H
#define ISA_TEXEL_H

#include <stdbool.h>
#include <stdint.h>

enum isa_number {
    ISA_UNORM = 0,
    ISA_SNORM = 1,
    ISA_USCALED = 2,
    ISA_SSCALED = 3,
    ISA_UINT = 4,
    ISA_SINT = 5,
    ISA_FLOAT = 7,
};

struct isa_texel {
    uint8_t channels;  /* 1 to 4 */
    uint8_t bytes;     /* of all */
    uint8_t bits[4];   /* of each channel: 1 to 16, or 32; x is in the lowest ones */
    uint8_t number;    /* enum isa_number */
    uint8_t select[4]; /* of each result: 0, 1, or 4 + channel */
};

/* False if the formats are reserved, or are compressed. */
bool isa_texel_of(unsigned data_format, unsigned number_format, unsigned selects,
                  struct isa_texel *out);

static inline unsigned isa_texel_bytes(const struct isa_texel *t) {
    return t->bytes;
}

/* Floats of 10 and 11 bits can be loaded; how hardware rounds to them is not documented. */
static inline bool isa_texel_can_store(const struct isa_texel *t) {
    return t->number != ISA_FLOAT || t->bits[0] >= 16;
}

/* Whether results are floats: those of UINT and SINT are integers. */
static inline bool isa_texel_is_float(const struct isa_texel *t) {
    return t->number != ISA_UINT && t->number != ISA_SINT;
}

/* Results as bits of floats or integers, in the order of `select`. */
void isa_texel_load(const struct isa_texel *t, const void *memory, uint32_t result[4]);
/* Channels x, y, z, w to where `select` takes them from. */
void isa_texel_store(const struct isa_texel *t, const uint32_t value[4], void *memory);

#endif
