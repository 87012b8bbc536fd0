#include "kernels/cpu/pack.h"

#include <string.h>

#include "model/quant_super.h"

enum kind { NONE, WORDS, HALVES, BITS, BYTES, K4, K3, XS };

struct section {
    uint8_t kind;
    uint8_t at, bytes; /* in a block of the file */
};

static const struct section sections[][PACK_SECTIONS] = {
#define S(kind, at, bytes)    { kind, at, bytes },
#define PACK(type, sections_) [TENSOR_TYPE_##type] = { sections_ },
#include "kernels/cpu/pack.def"
};
#undef PACK
#undef S

enum { TYPES = sizeof sections / sizeof *sections };

bool pack_is_possible(enum tensor_type type) {
    return (unsigned)type < TYPES && sections[type][0].kind != NONE;
}

struct pack_layout pack_layout(enum tensor_type type, size_t blocks) {
    struct pack_layout l = { .bytes = 0 };
    for (int i = 0; i < PACK_SECTIONS; i++) {
        l.at[i] = l.bytes;
        l.bytes += sections[type][i].bytes * blocks * PACK_ROWS;
    }
    return l;
}

/* ---- bits ----------------------------------------------------------------------------------- */

/* Bits 0, 1, 4, 5, 8, 9, ... to the low half, the others to the high half. */
static uint32_t sort_bits(uint32_t v) {
    uint32_t t = (v ^ v >> 2) & 0x0c0c0c0cu;
    v ^= t ^ t << 2;
    t = (v ^ v >> 4) & 0x00f000f0u;
    v ^= t ^ t << 4;
    t = (v ^ v >> 8) & 0x0000ff00u;
    return v ^ t ^ t << 8;
}

static uint32_t unsort_bits(uint32_t v) {
    uint32_t t = (v ^ v >> 8) & 0x0000ff00u;
    v ^= t ^ t << 8;
    t = (v ^ v >> 4) & 0x00f000f0u;
    v ^= t ^ t << 4;
    t = (v ^ v >> 2) & 0x0c0c0c0cu;
    return v ^ t ^ t << 2;
}

/* ---- scales ---------------------------------------------------------------------------------
 *
 * The 12 bytes of Q4_K and Q5_K hold eight 6-bit scales and eight 6-bit minima. Packed: a byte a
 * sub-block with the low 4 bits of the scale and of the minimum, then a byte every two sub-blocks
 * with the high 2 bits (scale, minimum, scale, minimum).
 *
 * The 12 bytes of Q3_K hold sixteen 6-bit scales: low 4 bits in bytes 0 to 7, high 2 bits in bytes
 * 8 to 11. Packed: a byte every two sub-blocks with their low bits, then a byte every four with
 * their high bits.
 *
 * The 6 bytes of IQ4_XS hold eight 6-bit scales: high 2 bits of all in bytes 0 and 1, low 4 bits
 * in bytes 2 to 5. Packed like Q3_K. */

static void k4_to_bytes(const uint8_t *p, uint8_t out[12]) {
    struct quant_super s;
    quant_unpack_scales(p, &s);
    for (int i = 0; i < 8; i++)
        out[i] = (uint8_t)((s.scale[i] & 15) | (s.min[i] & 15) << 4);
    for (int i = 0; i < 4; i++)
        out[8 + i] = (uint8_t)(s.scale[2 * i] >> 4 | (s.min[2 * i] >> 4) << 2 |
                               (s.scale[2 * i + 1] >> 4) << 4 | (s.min[2 * i + 1] >> 4) << 6);
}

static void k4_from_bytes(const uint8_t in[12], uint8_t *p) {
    struct quant_super s;
    for (int i = 0; i < 8; i++) {
        int high = in[8 + i / 2] >> (i % 2 * 4);
        s.scale[i] = (int8_t)((in[i] & 15) | (high & 3) << 4);
        s.min[i] = (uint8_t)(in[i] >> 4 | (high >> 2 & 3) << 4);
    }
    quant_pack_scales(&s, p);
}

/* Nibbles in `low` bytes: n scales, then their high bits, four a byte. */
static void six_to_bytes(const uint8_t *scale, int n, uint8_t *out) {
    for (int i = 0; i < n / 2; i++)
        out[i] = (uint8_t)((scale[2 * i] & 15) | (scale[2 * i + 1] & 15) << 4);
    for (int i = 0; i < n / 4; i++)
        out[n / 2 + i] = (uint8_t)(scale[4 * i] >> 4 | (scale[4 * i + 1] >> 4) << 2 |
                                   (scale[4 * i + 2] >> 4) << 4 | (scale[4 * i + 3] >> 4) << 6);
}

static void six_from_bytes(const uint8_t *in, int n, uint8_t *scale) {
    for (int i = 0; i < n; i++)
        scale[i] = (uint8_t)((in[i / 2] >> (i % 2 * 4) & 15) |
                             (in[n / 2 + i / 4] >> (i % 4 * 2) & 3) << 4);
}

static void k3_to_bytes(const uint8_t *p, uint8_t out[12]) {
    uint8_t scale[16];
    for (int i = 0; i < 16; i++)
        scale[i] =
            (uint8_t)((p[i % 8] >> (i / 8 * 4) & 15) | (p[8 + i % 4] >> (i / 4 * 2) & 3) << 4);
    six_to_bytes(scale, 16, out);
}

static void k3_from_bytes(const uint8_t in[12], uint8_t *p) {
    uint8_t scale[16];
    six_from_bytes(in, 16, scale);
    memset(p, 0, 12);
    for (int i = 0; i < 16; i++) {
        p[i % 8] = (uint8_t)(p[i % 8] | (scale[i] & 15) << (i / 8 * 4));
        p[8 + i % 4] = (uint8_t)(p[8 + i % 4] | (scale[i] >> 4) << (i / 4 * 2));
    }
}

static void xs_to_bytes(const uint8_t *p, uint8_t out[6]) {
    uint8_t scale[8];
    unsigned high = p[0] | (unsigned)p[1] << 8;
    for (int i = 0; i < 8; i++)
        scale[i] = (uint8_t)((p[2 + i / 2] >> (i % 2 * 4) & 15) | (high >> (2 * i) & 3) << 4);
    six_to_bytes(scale, 8, out);
}

static void xs_from_bytes(const uint8_t in[6], uint8_t *p) {
    uint8_t scale[8];
    six_from_bytes(in, 8, scale);
    memset(p, 0, 6);
    for (int i = 0; i < 8; i++) {
        p[i / 4] = (uint8_t)(p[i / 4] | (scale[i] >> 4) << (i % 4 * 2));
        p[2 + i / 2] = (uint8_t)(p[2 + i / 2] | (scale[i] & 15) << (i % 2 * 4));
    }
}

/* ---- one section of one row's block ---------------------------------------------------------- */

/* What the element size of a section is when rows lie side by side. */
static unsigned unit_of(uint8_t kind) {
    return kind == WORDS || kind == BITS ? 4 : kind == HALVES ? 2 : 1;
}

/* A block's section, in its packed order, to the places of a row: `dst` is the section of this
 * block in the group. */
static void scatter(uint8_t *dst, const uint8_t *from, unsigned bytes, unsigned unit,
                    unsigned row) {
    dst += row * unit;
    if (unit == 4)
        for (unsigned i = 0; i < bytes; i += 4)
            memcpy(dst + (size_t)i * PACK_ROWS, from + i, 4);
    else if (unit == 2)
        memcpy(dst, from, 2);
    else
        for (unsigned i = 0; i < bytes; i++)
            dst[(size_t)i * PACK_ROWS] = from[i];
}

static void gather(uint8_t *to, const uint8_t *src, unsigned bytes, unsigned unit, unsigned row) {
    src += row * unit;
    for (unsigned i = 0; i < bytes; i += unit)
        memcpy(to + i, src + (size_t)i * PACK_ROWS, unit);
}

static const uint8_t *order_section(uint8_t kind, const uint8_t *file, uint8_t room[12]) {
    uint32_t bits;
    switch (kind) {
    case BITS:
        memcpy(&bits, file, 4);
        bits = sort_bits(bits);
        memcpy(room, &bits, 4);
        return room;
    case K4:
        k4_to_bytes(file, room);
        return room;
    case K3:
        k3_to_bytes(file, room);
        return room;
    case XS:
        xs_to_bytes(file, room);
        return room;
    default:
        return file;
    }
}

static void restore_section(uint8_t kind, const uint8_t *packed, unsigned bytes, uint8_t *file) {
    uint32_t bits;
    switch (kind) {
    case BITS:
        memcpy(&bits, packed, 4);
        bits = unsort_bits(bits);
        memcpy(file, &bits, 4);
        break;
    case K4:
        k4_from_bytes(packed, file);
        break;
    case K3:
        k3_from_bytes(packed, file);
        break;
    case XS:
        xs_from_bytes(packed, file);
        break;
    default:
        memcpy(file, packed, bytes);
    }
}

void pack_group(enum tensor_type type, const void *src, size_t stride, unsigned rows, size_t blocks,
                void *dst) {
    const struct pack_layout layout = pack_layout(type, blocks);
    const size_t block_bytes = tensor_type_find(type)->block_bytes;
    uint8_t room[12];
    if (rows < PACK_ROWS)
        memset(dst, 0, layout.bytes);
    for (int i = 0; i < PACK_SECTIONS && sections[type][i].kind; i++) {
        const struct section s = sections[type][i];
        const unsigned unit = unit_of(s.kind);
        uint8_t *to = (uint8_t *)dst + layout.at[i];
        for (size_t b = 0; b < blocks; b++, to += (size_t)s.bytes * PACK_ROWS) {
            const uint8_t *from = (const uint8_t *)src + b * block_bytes + s.at;
            for (unsigned r = 0; r < rows; r++)
                scatter(to, order_section(s.kind, from + r * stride, room), s.bytes, unit, r);
        }
    }
}

void pack_row(enum tensor_type type, const void *group, unsigned row, size_t blocks, void *dst) {
    const struct pack_layout layout = pack_layout(type, blocks);
    const size_t block_bytes = tensor_type_find(type)->block_bytes;
    uint8_t room[128] = { 0 };
    for (int i = 0; i < PACK_SECTIONS && sections[type][i].kind; i++) {
        const struct section s = sections[type][i];
        const uint8_t *from = (const uint8_t *)group + layout.at[i];
        uint8_t *to = (uint8_t *)dst + s.at;
        for (size_t b = 0; b < blocks; b++) {
            gather(room, from + b * s.bytes * PACK_ROWS, s.bytes, unit_of(s.kind), row);
            restore_section(s.kind, room, s.bytes, to + b * block_bytes);
        }
    }
}
