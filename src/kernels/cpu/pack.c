#include "kernels/cpu/pack.h"

#include <string.h>

#include "model/quant/quant_super.h"

enum { TYPES = sizeof pack_sections / sizeof *pack_sections };

bool pack_is_possible(enum tensor_type type) {
    return (unsigned)type < TYPES && pack_sections[type][0].kind != PACK_KIND_NONE;
}

/* ---- bits ----------------------------------------------------------------------------------- */

/* Bits 0, 4, 8, ... of v. */
static uint32_t every_fourth(uint32_t v) {
    v &= 0x11111111u;
    v = (v | v >> 3) & 0x03030303u;
    v = (v | v >> 6) & 0x000f000fu;
    return (v | v >> 12) & 0xffu;
}

static uint32_t to_every_fourth(uint32_t v) {
    v = (v | v << 12) & 0x000f000fu;
    v = (v | v << 6) & 0x03030303u;
    return (v | v << 3) & 0x11111111u;
}

static uint32_t sort_bits(uint32_t v) {
    return every_fourth(v) | every_fourth(v >> 1) << 8 | every_fourth(v >> 2) << 16 |
           every_fourth(v >> 3) << 24;
}

static uint32_t unsort_bits(uint32_t v) {
    return to_every_fourth(v & 255) | to_every_fourth(v >> 8 & 255) << 1 |
           to_every_fourth(v >> 16 & 255) << 2 | to_every_fourth(v >> 24) << 3;
}

/* ---- scales ---------------------------------------------------------------------------------
 *
 * The 12 bytes of Q4_K and Q5_K hold eight 6-bit scales and eight 6-bit minima. Packed: a byte per
 * sub-block with the low 4 bits of the scale and of the minimum, then a byte per two sub-blocks
 * with the high 2 bits (scale, minimum, scale, minimum).
 *
 * The 12 bytes of Q3_K hold sixteen 6-bit scales: low 4 bits in bytes 0 to 7, high 2 bits in bytes
 * 8 to 11. Packed: a byte per two sub-blocks with their low bits, then a byte per four with their
 * high bits.
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

/* Nibbles in `low` bytes: n scales, then their high bits, four per byte. */
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

/* ---- sections of a block --------------------------------------------------------------------- */

/* The element size of a section whose rows lie side by side. */
static unsigned unit_of(uint8_t kind) {
    return kind == PACK_KIND_WORDS || kind == PACK_KIND_BITS ? 4 : kind == PACK_KIND_HALVES ? 2 : 1;
}

enum { REORDERED = 12 }; /* bytes of the longest section whose bits change places */

/* The section of a row's block in the order in which its units are spread. */
static const uint8_t *order_section(uint8_t kind, const uint8_t *file, uint8_t room[REORDERED]) {
    uint32_t bits;
    switch (kind) {
    case PACK_KIND_BITS:
        memcpy(&bits, file, 4);
        bits = sort_bits(bits);
        memcpy(room, &bits, 4);
        return room;
    case PACK_KIND_K4:
        k4_to_bytes(file, room);
        return room;
    case PACK_KIND_K3:
        k3_to_bytes(file, room);
        return room;
    case PACK_KIND_XS:
        xs_to_bytes(file, room);
        return room;
    default:
        return file;
    }
}

static void restore_section(uint8_t kind, const uint8_t *packed, unsigned bytes, uint8_t *file) {
    uint32_t bits;
    switch (kind) {
    case PACK_KIND_BITS:
        memcpy(&bits, packed, 4);
        bits = unsort_bits(bits);
        memcpy(file, &bits, 4);
        break;
    case PACK_KIND_K4:
        k4_from_bytes(packed, file);
        break;
    case PACK_KIND_K3:
        k3_from_bytes(packed, file);
        break;
    case PACK_KIND_XS:
        xs_from_bytes(packed, file);
        break;
    default:
        memcpy(file, packed, bytes);
    }
}

typedef uint32_t words __attribute__((vector_size(16)));

static words load_words(const uint8_t *p) {
    words w;
    memcpy(&w, p, sizeof w);
    return w;
}

/* Four words of four rows to four rows of each word. */
static void turn_words(const uint8_t *src, size_t stride, uint8_t *dst) {
    const words a = load_words(src), b = load_words(src + stride);
    const words c = load_words(src + 2 * stride), d = load_words(src + 3 * stride);
    const words ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const words cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const words ba = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const words dc = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    const words out[4] = { __builtin_shufflevector(ab, cd, 0, 1, 4, 5),
                           __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
                           __builtin_shufflevector(ba, dc, 0, 1, 4, 5),
                           __builtin_shufflevector(ba, dc, 2, 3, 6, 7) };
    for (size_t w = 0; w < 4; w++)
        memcpy(dst + w * 4 * PACK_ROWS, &out[w], sizeof out[w]);
}

/* WORDS of all 16 rows; all types have them by 16 bytes. */
static void spread_words(const uint8_t *src, size_t stride, unsigned bytes, uint8_t *dst) {
    for (size_t i = 0; i < bytes; i += 16)
        for (size_t r = 0; r < PACK_ROWS; r += 4)
            turn_words(src + r * stride + i, stride, dst + i * PACK_ROWS + r * 4);
}

static void spread(struct pack_section s, const uint8_t *src, size_t stride, unsigned rows,
                   uint8_t *dst) {
    const unsigned unit = unit_of(s.kind);
    uint8_t room[REORDERED];
    for (unsigned r = 0; r < rows; r++) {
        const uint8_t *from = order_section(s.kind, src + r * stride, room);
        for (unsigned i = 0; i < s.bytes; i += unit)
            memcpy(dst + (size_t)i * PACK_ROWS + (size_t)r * unit, from + i, unit);
    }
}

void pack_group(enum tensor_type type, const void *src, size_t stride, unsigned rows, size_t blocks,
                void *dst) {
    const struct pack_layout layout = pack_layout(type);
    const size_t block_bytes = tensor_type_find(type)->block_bytes;
    const uint8_t *from = src;
    uint8_t *to = dst;
    if (rows < PACK_ROWS)
        memset(dst, 0, layout.bytes * blocks);
    for (size_t b = 0; b < blocks; b++, from += block_bytes, to += layout.bytes)
        for (int i = 0; i < PACK_SECTIONS && pack_sections[type][i].kind; i++) {
            const struct pack_section s = pack_sections[type][i];
            if (s.kind == PACK_KIND_WORDS && rows == PACK_ROWS)
                spread_words(from + s.at, stride, s.bytes, to + layout.at[i]);
            else
                spread(s, from + s.at, stride, rows, to + layout.at[i]);
        }
}

static void collect(struct pack_section s, const uint8_t *src, unsigned row, uint8_t *dst) {
    const unsigned unit = unit_of(s.kind);
    uint8_t room[UINT8_MAX] = { 0 };
    for (unsigned i = 0; i < s.bytes; i += unit)
        memcpy(room + i, src + (size_t)i * PACK_ROWS + (size_t)row * unit, unit);
    restore_section(s.kind, room, s.bytes, dst);
}

void pack_row(enum tensor_type type, const void *group, unsigned row, size_t blocks, void *dst) {
    const struct pack_layout layout = pack_layout(type);
    const size_t block_bytes = tensor_type_find(type)->block_bytes;
    const uint8_t *from = group;
    uint8_t *to = dst;
    for (size_t b = 0; b < blocks; b++, from += layout.bytes, to += block_bytes)
        for (int i = 0; i < PACK_SECTIONS && pack_sections[type][i].kind; i++)
            collect(pack_sections[type][i], from + layout.at[i], row,
                    to + pack_sections[type][i].at);
}
