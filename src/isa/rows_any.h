/* rows_any.h - moving bits between masks and rows on any processor; for rows_base.c. */
#ifndef ISA_ROWS_ANY_H
#define ISA_ROWS_ANY_H

#include "isa/isa.h"

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

#endif
