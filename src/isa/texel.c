#include "isa/texel.h"

#include "isa/floats.h"

#include <math.h>
#include <string.h>

enum { SELECT_BITS = 3, SELECT_ONE = 1, SELECT_CHANNEL = 4 };

/* Data formats of gfx9, by number: bits of x, y, z, w. Names such as 2_10_10_10 begin with the
 * highest bits. */
static const uint8_t layouts[20][4] = {
    [1] = { 8 },
    [2] = { 16 },
    [3] = { 8, 8 },
    [4] = { 32 },
    [5] = { 16, 16 },
    [6] = { 11, 11, 10 },
    [7] = { 10, 11, 11 },
    [8] = { 2, 10, 10, 10 },
    [9] = { 10, 10, 10, 2 },
    [10] = { 8, 8, 8, 8 },
    [11] = { 32, 32 },
    [12] = { 16, 16, 16, 16 },
    [13] = { 32, 32, 32 },
    [14] = { 32, 32, 32, 32 },
    [16] = { 5, 6, 5 },
    [17] = { 5, 5, 5, 1 },
    [18] = { 1, 5, 5, 5 },
    [19] = { 4, 4, 4, 4 },
};

bool isa_texel_of(unsigned data_format, unsigned number_format, unsigned selects,
                  struct isa_texel *out) {
    unsigned sum = 0;
    if (data_format >= sizeof layouts / sizeof *layouts || !layouts[data_format][0])
        return false;
    *out = (struct isa_texel){ .number = (uint8_t)number_format };
    bool is_float = number_format == ISA_FLOAT, known = true;
    for (unsigned i = 0; i < 4; i++) {
        unsigned bits = layouts[data_format][i];
        out->select[i] = selects >> SELECT_BITS * i & 7;
        out->bits[i] = (uint8_t)bits;
        out->channels += bits != 0;
        sum += bits;
        known &= !bits || !is_float || bits >= 10;
        known &= bits < 32 || is_float || number_format >= ISA_UINT;
    }
    /* Floats of 10 bits have no sign and only occur together with those of 11. */
    known &= !is_float || data_format == 6 || data_format == 7 || out->bits[0] >= 16;
    out->bytes = (uint8_t)(sum / 8);
    return known && number_format <= ISA_FLOAT && number_format != 6;
}

static int32_t sign_extend(uint32_t raw, unsigned bits) {
    return (int32_t)(raw << (32 - bits)) >> (32 - bits);
}

static uint32_t decode(const struct isa_texel *t, unsigned bits, uint32_t raw) {
    float top = (float)((UINT64_C(1) << (bits - 1)) - 1);
    switch (t->number) {
    case ISA_UNORM:
        return isa_bits((float)raw / (2.0f * top + 1.0f));
    case ISA_SNORM:
        return isa_bits(fmaxf((float)sign_extend(raw, bits) / fmaxf(top, 1.0f), -1.0f));
    case ISA_USCALED:
        return isa_bits((float)raw);
    case ISA_SSCALED:
        return isa_bits((float)sign_extend(raw, bits));
    case ISA_SINT:
        return (uint32_t)sign_extend(raw, bits);
    case ISA_FLOAT:
        if (bits < 16) /* an f16 without the sign and the last bits */
            raw <<= 15 - bits;
        return bits <= 16 ? isa_bits(isa_from_half(raw)) : raw;
    default:
        return raw;
    }
}

/* Into [low, high]; a NaN becomes 0. */
static float limit(float value, float low, float high) {
    return value >= low ? value <= high ? value : high : value < low ? low : 0.0f;
}

static uint32_t encode(const struct isa_texel *t, unsigned bits, uint32_t from) {
    float top = (float)((UINT64_C(1) << (bits - 1)) - 1), value = isa_float(from);
    uint32_t most = bits == 32 ? UINT32_MAX : (1u << bits) - 1;
    int32_t integer = (int32_t)from, high = (int32_t)(most >> 1);
    switch (t->number) {
    case ISA_UNORM:
        return (uint32_t)rintf(limit(value, 0, 1) * (2.0f * top + 1.0f));
    case ISA_SNORM:
        return (uint32_t)(int32_t)rintf(limit(value, -1, 1) * top);
    case ISA_USCALED:
        return (uint32_t)limit(value, 0, 2.0f * top + 1.0f);
    case ISA_SSCALED:
        return (uint32_t)(int32_t)limit(value, -top - 1.0f, top);
    case ISA_SINT:
        return (uint32_t)(integer > high ? high : integer < -high - 1 ? -high - 1 : integer);
    case ISA_FLOAT:
        return bits == 16 ? isa_to_half(value) : from;
    default:
        return from > most ? most : from;
    }
}

/* Channels of 8, 16 and 32 bits are bytes of their own; all others share 16 or 32 bits. */
static unsigned first_bit(const struct isa_texel *t, unsigned channel) {
    unsigned at = 0;
    for (unsigned c = 0; c < channel; c++)
        at += t->bits[c];
    return at;
}

static uint32_t mask_of(unsigned bits) {
    return bits == 32 ? UINT32_MAX : (1u << bits) - 1;
}

static uint32_t read_channel(const struct isa_texel *t, const void *memory, unsigned channel) {
    unsigned at = first_bit(t, channel), word = at / 32 * 4, bytes = t->bytes - word;
    uint32_t raw = 0;
    memcpy(&raw, (const unsigned char *)memory + word, bytes < 4 ? bytes : 4); /* little-endian */
    return raw >> at % 32 & mask_of(t->bits[channel]);
}

static void write_channel(const struct isa_texel *t, void *memory, unsigned channel, uint32_t raw) {
    unsigned at = first_bit(t, channel), word = at / 32 * 4, bytes = t->bytes - word;
    uint32_t mask = mask_of(t->bits[channel]) << at % 32, there = 0;
    unsigned char *to = (unsigned char *)memory + word;
    memcpy(&there, to, bytes < 4 ? bytes : 4);
    there = (there & ~mask) | (raw << at % 32 & mask);
    memcpy(to, &there, bytes < 4 ? bytes : 4);
}

void isa_texel_load(const struct isa_texel *t, const void *memory, uint32_t result[4]) {
    uint32_t one = isa_texel_is_float(t) ? isa_bits(1.0f) : 1;
    for (unsigned i = 0; i < 4; i++) {
        unsigned select = t->select[i];
        if (select >= SELECT_CHANNEL && select - SELECT_CHANNEL < t->channels)
            result[i] = decode(t, t->bits[select - SELECT_CHANNEL],
                               read_channel(t, memory, select - SELECT_CHANNEL));
        else /* a channel that is not there is 0, the last one 1 */
            result[i] = select == SELECT_ONE || select == SELECT_CHANNEL + 3 ? one : 0;
    }
}

void isa_texel_store(const struct isa_texel *t, const uint32_t value[4], void *memory) {
    for (unsigned i = 0; i < 4; i++) {
        unsigned select = t->select[i];
        if (select < SELECT_CHANNEL || select - SELECT_CHANNEL >= t->channels)
            continue;
        write_channel(t, memory, select - SELECT_CHANNEL,
                      encode(t, t->bits[select - SELECT_CHANNEL], value[i]));
    }
}
