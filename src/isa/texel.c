#include "isa/texel.h"

#include "isa/floats.h"

#include <math.h>
#include <string.h>

enum { SELECT_BITS = 3, SELECT_ONE = 1, SELECT_CHANNEL = 4 };

/* Data formats of gfx9 that have channels of one size; the others are zeros. */
static const struct {
    uint8_t channels, bits;
} layouts[16] = {
    [1] = { 1, 8 },  [2] = { 1, 16 },  [3] = { 2, 8 },   [4] = { 1, 32 },  [5] = { 2, 16 },
    [10] = { 4, 8 }, [11] = { 2, 32 }, [12] = { 4, 16 }, [13] = { 3, 32 }, [14] = { 4, 32 },
};

bool isa_texel_of(unsigned data_format, unsigned number_format, unsigned selects,
                  struct isa_texel *out) {
    if (data_format >= sizeof layouts / sizeof *layouts || !layouts[data_format].channels)
        return false;
    *out = (struct isa_texel){ .channels = layouts[data_format].channels,
                               .bits = layouts[data_format].bits,
                               .number = (uint8_t)number_format };
    for (unsigned i = 0; i < 4; i++)
        out->select[i] = selects >> SELECT_BITS * i & 7;
    bool is_float = number_format == ISA_FLOAT;
    return number_format <= ISA_FLOAT && number_format != 6 && (!is_float || out->bits > 8) &&
           (out->bits < 32 || is_float || number_format >= ISA_UINT);
}

static int32_t sign_extend(uint32_t raw, unsigned bits) {
    return (int32_t)(raw << (32 - bits)) >> (32 - bits);
}

static uint32_t decode(const struct isa_texel *t, uint32_t raw) {
    float top = (float)((UINT64_C(1) << (t->bits - 1)) - 1);
    switch (t->number) {
    case ISA_UNORM:
        return isa_bits((float)raw / (2.0f * top + 1.0f));
    case ISA_SNORM:
        return isa_bits(fmaxf((float)sign_extend(raw, t->bits) / top, -1.0f));
    case ISA_USCALED:
        return isa_bits((float)raw);
    case ISA_SSCALED:
        return isa_bits((float)sign_extend(raw, t->bits));
    case ISA_SINT:
        return (uint32_t)sign_extend(raw, t->bits);
    case ISA_FLOAT:
        return t->bits == 16 ? isa_bits(isa_from_half(raw)) : raw;
    default:
        return raw;
    }
}

/* Into [low, high]; a NaN becomes 0. */
static float limit(float value, float low, float high) {
    return value >= low ? value <= high ? value : high : value < low ? low : 0.0f;
}

static uint32_t encode(const struct isa_texel *t, uint32_t bits) {
    float top = (float)((UINT64_C(1) << (t->bits - 1)) - 1), value = isa_float(bits);
    uint32_t most = t->bits == 32 ? UINT32_MAX : (1u << t->bits) - 1;
    int32_t integer = (int32_t)bits, high = (int32_t)(most >> 1);
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
        return t->bits == 16 ? isa_to_half(value) : bits;
    default:
        return bits > most ? most : bits;
    }
}

static uint32_t read_channel(const struct isa_texel *t, const void *memory, unsigned channel) {
    const unsigned char *from = (const unsigned char *)memory + channel * t->bits / 8u;
    uint32_t raw = 0;
    memcpy(&raw, from, t->bits / 8u); /* little-endian, as the GPU is */
    return raw;
}

void isa_texel_load(const struct isa_texel *t, const void *memory, uint32_t result[4]) {
    uint32_t one = isa_texel_is_float(t) ? isa_bits(1.0f) : 1;
    for (unsigned i = 0; i < 4; i++) {
        unsigned select = t->select[i];
        if (select >= SELECT_CHANNEL && select - SELECT_CHANNEL < t->channels)
            result[i] = decode(t, read_channel(t, memory, select - SELECT_CHANNEL));
        else /* a channel that is not there is 0, the last one 1 */
            result[i] = select == SELECT_ONE || select == SELECT_CHANNEL + 3 ? one : 0;
    }
}

void isa_texel_store(const struct isa_texel *t, const uint32_t value[4], void *memory) {
    for (unsigned i = 0; i < 4; i++) {
        unsigned select = t->select[i];
        if (select < SELECT_CHANNEL || select - SELECT_CHANNEL >= t->channels)
            continue;
        uint32_t raw = encode(t, value[i]);
        memcpy((unsigned char *)memory + (select - SELECT_CHANNEL) * t->bits / 8u, &raw,
               t->bits / 8u);
    }
}
