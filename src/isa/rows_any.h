/* rows_any.h - moving bits between masks and rows on any processor; for rows_base.c. */
#ifndef ISA_ROWS_ANY_H
#define ISA_ROWS_ANY_H

#include "isa/floats.h"
#include "isa/isa.h"

#include <string.h>

static void fill(uint32_t *d, uint32_t value) {
    for (int l = 0; l < ISA_LANES; l++)
        d[l] = value;
}

static void expand(uint32_t *d, uint64_t mask) {
    for (int l = 0; l < ISA_LANES; l++)
        d[l] = -(uint32_t)(mask >> l & 1);
}

static void merge(uint32_t *d, const uint32_t *s, uint64_t lanes) {
    for (int l = 0; l < ISA_LANES; l++)
        d[l] = lanes >> l & 1 ? s[l] : d[l];
}

static uint64_t collect(const uint32_t *s) {
    uint64_t mask = 0;
    for (int l = 0; l < ISA_LANES; l++)
        mask |= (uint64_t)(s[l] >> 31) << l;
    return mask;
}

static void load(uint32_t *d, const uint8_t *base, const uint32_t *offset, uint64_t lanes) {
    for (int l = 0; l < ISA_LANES; l++)
        if (lanes >> l & 1)
            memcpy(&d[l], base + offset[l], sizeof d[l]);
}

static void load_pairs(uint32_t *d, const uint8_t *base, const uint32_t *offset, uint64_t lanes) {
    for (int l = 0; l < ISA_LANES; l++)
        if (lanes >> l & 1) {
            uint64_t pair;
            memcpy(&pair, base + offset[l], sizeof pair);
            d[l] = (uint32_t)pair;
            d[ISA_LANES + l] = (uint32_t)(pair >> 32);
        }
}

static void store(uint8_t *base, const uint32_t *offset, const uint32_t *s, uint64_t lanes) {
    for (int l = 0; l < ISA_LANES; l++)
        if (lanes >> l & 1)
            memcpy(base + offset[l], &s[l], sizeof s[l]);
}

static void store_pairs(uint8_t *base, const uint32_t *offset, const uint32_t *s, uint64_t lanes) {
    for (int l = 0; l < ISA_LANES; l++)
        if (lanes >> l & 1) {
            uint64_t pair = s[l] | (uint64_t)s[ISA_LANES + l] << 32;
            memcpy(base + offset[l], &pair, sizeof pair);
        }
}

/* d[l] = s[from[l]]; d is not s. */
static void permute(uint32_t *d, const uint32_t *s, const uint32_t *from) {
    for (int l = 0; l < ISA_LANES; l++)
        d[l] = s[from[l]];
}

/* f16 in a row, 128 of them: as many at a time as `halves` holds. */
typedef float halves;
enum { HALVES = 1 };

static inline halves get_halves(const uint32_t *row, int at) {
    return isa_from_half(row[at / 2] >> at % 2 * 16);
}
static inline void put_halves(uint32_t *row, int at, halves value) {
    uint32_t shift = (uint32_t)at % 2 * 16;
    row[at / 2] = (row[at / 2] & ~(0xffffu << shift)) | isa_to_half(value) << shift;
}
static inline halves odd_fma(halves a, halves b, halves c) {
    return isa_odd_fma(a, b, c);
}

#endif
