/* pack.h - rows of a quantised matrix, 16 by 16, in the order in which matmul reads them.
 *
 * Packing only moves bits: 16 packed rows take exactly the bytes of 16 rows of the file, and
 * pack_row() gets a row back bit for bit. Rows after the last whole group of 16 stay as they are
 * in the file. Floating-point types are never packed. All functions are pure. */
#ifndef KERNELS_CPU_PACK_H
#define KERNELS_CPU_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/quant/tensor_type.h"

enum { PACK_ROWS = 16, PACK_SECTIONS = 5 };

/* PACK_Q4_K_SCALES, …: the sections of each type by number. */
#define S(type, name, kind, at, bytes) PACK_##type##_##name,
#define PACK(type, sections)           enum { sections };
#include "kernels/cpu/pack.def"
#undef PACK
#undef S

bool pack_is_possible(enum tensor_type type);

enum pack_kind {
    PACK_KIND_NONE,
    PACK_KIND_WORDS,
    PACK_KIND_HALVES,
    PACK_KIND_BITS,
    PACK_KIND_BYTES,
    PACK_KIND_K4,
    PACK_KIND_K3,
    PACK_KIND_XS,
};

/* A section of pack.def in a block of the file. */
struct pack_section {
    uint8_t kind, at, bytes;
};

static const struct pack_section pack_sections[][PACK_SECTIONS] = {
#define S(type, name, kind, at, bytes) { PACK_KIND_##kind, at, bytes },
#define PACK(type, sections)           [TENSOR_TYPE_##type] = { sections },
#include "kernels/cpu/pack.def"
#undef PACK
#undef S
};

/* Where the sections begin in a block of a packed group. */
struct pack_layout {
    size_t at[PACK_SECTIONS];
    size_t bytes; /* of the block */
};

/* A constant where the type is one. */
static inline __attribute__((always_inline)) struct pack_layout pack_layout(enum tensor_type type) {
    struct pack_layout l = { .bytes = 0 };
    _Pragma("GCC unroll 8") for (int i = 0; i < PACK_SECTIONS; i++) {
        l.at[i] = l.bytes;
        l.bytes += (size_t)pack_sections[type][i].bytes * PACK_ROWS;
    }
    return l;
}

/* Packs `rows` (at most 16) rows that lie `stride` bytes apart; those that are missing become zero
 * bytes. The buffers do not overlap. */
void pack_group(enum tensor_type type, const void *src, size_t stride, unsigned rows, size_t blocks,
                void *dst);

/* Row `row` of a packed group as it was in the file. */
void pack_row(enum tensor_type type, const void *group, unsigned row, size_t blocks, void *dst);

#endif
