/* quant_block.h - how the quantised tensor types lie in memory, bit for bit.
 *
 * Types come in two sizes: blocks of 32 elements with their own scale, and super-blocks of 256
 * whose sub-blocks share one or two half-precision scales. quant_half is an IEEE binary16 as bits.
 * In all 32-blocks element i of the first half of the block is the low nibble of byte i and element
 * i + 16 its high nibble. Blocks are packed: a file may align tensors to a single byte. */
#ifndef MODEL_QUANT_BLOCK_H
#define MODEL_QUANT_BLOCK_H

#include <stdint.h>

#include "model/quant/tensor_type.h"

typedef uint16_t quant_half;

enum { QUANT_BLOCK = 32, QUANT_SUPER = 256 };

#define QUANT_PACKED __attribute__((packed))

/* x = d * (q - 8) */
struct QUANT_PACKED block_q4_0 {
    quant_half d;
    uint8_t qs[16];
};

/* x = d * q + m */
struct QUANT_PACKED block_q4_1 {
    quant_half d, m;
    uint8_t qs[16];
};

/* x = d * (q - 16); bit i of qh (little-endian) is bit 4 of element i */
struct QUANT_PACKED block_q5_0 {
    quant_half d;
    uint8_t qh[4];
    uint8_t qs[16];
};

/* x = d * q + m */
struct QUANT_PACKED block_q5_1 {
    quant_half d, m;
    uint8_t qh[4];
    uint8_t qs[16];
};

/* x = d * q */
struct QUANT_PACKED block_q8_0 {
    quant_half d;
    int8_t qs[32];
};

/* x = d * table[q], the table being quant_iq4_values */
struct QUANT_PACKED block_iq4_nl {
    quant_half d;
    uint8_t qs[16];
};

/* 16 sub-blocks of 16. x = d * (scales & 15) * q - dmin * (scales >> 4).
 * Element e: bits 2*(e%128/32) of qs[e/128*32 + e%32]. */
struct QUANT_PACKED block_q2_k {
    uint8_t scales[16];
    uint8_t qs[64];
    quant_half d, dmin;
};

/* 16 sub-blocks of 16. x = d * (scale - 32) * (q - 4), q of 3 bits: low two as in Q2_K, the third
 * is bit e/32 of hmask[e%32]. Scale j of 6 bits: low nibbles of bytes 0..7 for j < 8, high nibbles
 * for the rest; bits 4 and 5 are bits 2*(j/4) of byte 8 + j%4. */
struct QUANT_PACKED block_q3_k {
    uint8_t hmask[32];
    uint8_t qs[64];
    uint8_t scales[12];
    quant_half d;
};

/* 8 sub-blocks of 32. x = d * scale * q - dmin * min; scale and min of 6 bits:
 *
 *   byte j   (j < 4): scale[j]   | bits 4,5 of scale[j + 4] << 6
 *   byte j+4 (j < 4): min[j]     | bits 4,5 of min[j + 4] << 6
 *   byte j+8 (j < 4): scale[j+4] & 15 | min[j + 4] << 4
 *
 * Element e: nibble e%64/32 of qs[e/64*32 + e%32]. */
struct QUANT_PACKED block_q4_k {
    quant_half d, dmin;
    uint8_t scales[12];
    uint8_t qs[128];
};

/* As Q4_K with a fifth bit: bit e/32 of qh[e%32]. */
struct QUANT_PACKED block_q5_k {
    quant_half d, dmin;
    uint8_t scales[12];
    uint8_t qh[32];
    uint8_t qs[128];
};

/* 16 sub-blocks of 16. x = d * scale * (q - 32), q of 6 bits. With k = e%128/32: low nibble is
 * nibble k/2 of ql[e/128*64 + k%2*32 + e%32]; high two are bits 2*k of qh[e/128*32 + e%32]. */
struct QUANT_PACKED block_q6_k {
    uint8_t ql[128];
    uint8_t qh[64];
    int8_t scales[16];
    quant_half d;
};

/* 8 sub-blocks of 32, each packed like IQ4_NL. x = d * (scale - 32) * table[q]; scale j of 6 bits:
 * nibble j%2 of scales_l[j/2] and bits 2*j of scales_h. */
struct QUANT_PACKED block_iq4_xs {
    quant_half d;
    uint16_t scales_h;
    uint8_t scales_l[4];
    uint8_t qs[128];
};

/* The values of IQ4_NL and IQ4_XS, ascending. */
extern const int8_t quant_iq4_values[16];

#endif
