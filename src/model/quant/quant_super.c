/* The bits of the 256-element types; quant_block.h draws them. */
#include "model/quant/quant_super.h"

#include <string.h>

#include "model/quant/quant_internal.h"

_Static_assert(sizeof(struct block_q2_k) == 84 && sizeof(struct block_q3_k) == 110 &&
                   sizeof(struct block_q4_k) == 144 && sizeof(struct block_q5_k) == 176 &&
                   sizeof(struct block_q6_k) == 210 && sizeof(struct block_iq4_xs) == 136,
               "block sizes are those of tensor_type.def");

/* Loops over the 256 elements as half h (128), quarter k (32 within a half), l (within a quarter):
 * the order in which all these types store them. */
#define EACH_ELEMENT(h, k, l)                                                                      \
    for (int h = 0; h < 2; h++)                                                                    \
        for (int k = 0; k < 4; k++)                                                                \
            for (int l = 0; l < 32; l++)
#define ELEMENT(h, k, l) (128 * (h) + 32 * (k) + (l))

void quant_unpack_q2_k(const void *block, struct quant_super *s) {
    const struct block_q2_k *b = block;
    s->d = b->d;
    s->dmin = b->dmin;
    for (int j = 0; j < 16; j++) {
        s->scale[j] = (int8_t)(b->scales[j] & 15);
        s->min[j] = b->scales[j] >> 4;
    }
    EACH_ELEMENT(h, k, l)
    s->level[ELEMENT(h, k, l)] = (int8_t)(b->qs[32 * h + l] >> 2 * k & 3);
}

void quant_pack_q2_k(const struct quant_super *s, void *block) {
    struct block_q2_k *b = block;
    memset(b, 0, sizeof *b);
    b->d = s->d;
    b->dmin = s->dmin;
    for (int j = 0; j < 16; j++)
        b->scales[j] = (uint8_t)(s->scale[j] | s->min[j] << 4);
    EACH_ELEMENT(h, k, l)
    b->qs[32 * h + l] |= (uint8_t)(s->level[ELEMENT(h, k, l)] << 2 * k);
}

void quant_unpack_q3_k(const void *block, struct quant_super *s) {
    const struct block_q3_k *b = block;
    s->d = b->d;
    s->dmin = 0;
    memset(s->min, 0, sizeof s->min);
    for (int j = 0; j < 16; j++) {
        int low = b->scales[j % 8] >> 4 * (j / 8) & 15, high = b->scales[8 + j % 4] >> 2 * (j / 4);
        s->scale[j] = (int8_t)((low | (high & 3) << 4) - 32);
    }
    EACH_ELEMENT(h, k, l) {
        int low = b->qs[32 * h + l] >> 2 * k & 3, high = b->hmask[l] >> (4 * h + k) & 1;
        s->level[ELEMENT(h, k, l)] = (int8_t)((low | high << 2) - 4);
    }
}

void quant_pack_q3_k(const struct quant_super *s, void *block) {
    struct block_q3_k *b = block;
    memset(b, 0, sizeof *b);
    b->d = s->d;
    for (int j = 0; j < 16; j++) {
        unsigned v = (unsigned)(s->scale[j] + 32);
        b->scales[j % 8] |= (uint8_t)((v & 15) << 4 * (j / 8));
        b->scales[8 + j % 4] |= (uint8_t)((v >> 4) << 2 * (j / 4));
    }
    EACH_ELEMENT(h, k, l) {
        unsigned v = (unsigned)(s->level[ELEMENT(h, k, l)] + 4);
        b->qs[32 * h + l] |= (uint8_t)((v & 3) << 2 * k);
        b->hmask[l] |= (uint8_t)((v >> 2) << (4 * h + k));
    }
}

void quant_unpack_scales(const uint8_t *bytes, struct quant_super *s) {
    for (int j = 0; j < 4; j++) {
        s->scale[j] = (int8_t)(bytes[j] & 63);
        s->min[j] = bytes[j + 4] & 63;
        s->scale[j + 4] = (int8_t)((bytes[j + 8] & 15) | bytes[j] >> 6 << 4);
        s->min[j + 4] = (uint8_t)(bytes[j + 8] >> 4 | bytes[j + 4] >> 6 << 4);
    }
}

void quant_pack_scales(const struct quant_super *s, uint8_t *bytes) {
    for (int j = 0; j < 4; j++) {
        unsigned scale = (uint8_t)s->scale[j + 4], min = s->min[j + 4];
        bytes[j] = (uint8_t)((uint8_t)s->scale[j] | scale >> 4 << 6);
        bytes[j + 4] = (uint8_t)(s->min[j] | min >> 4 << 6);
        bytes[j + 8] = (uint8_t)((scale & 15) | (min & 15) << 4);
    }
}

void quant_unpack_q4_k(const void *block, struct quant_super *s) {
    const struct block_q4_k *b = block;
    s->d = b->d;
    s->dmin = b->dmin;
    quant_unpack_scales(b->scales, s);
    EACH_ELEMENT(h, k, l)
    s->level[ELEMENT(h, k, l)] = (int8_t)(b->qs[64 * h + 32 * (k / 2) + l] >> 4 * (k % 2) & 15);
}

void quant_pack_q4_k(const struct quant_super *s, void *block) {
    struct block_q4_k *b = block;
    memset(b, 0, sizeof *b);
    b->d = s->d;
    b->dmin = s->dmin;
    quant_pack_scales(s, b->scales);
    EACH_ELEMENT(h, k, l)
    b->qs[64 * h + 32 * (k / 2) + l] |= (uint8_t)(s->level[ELEMENT(h, k, l)] << 4 * (k % 2));
}

void quant_unpack_q5_k(const void *block, struct quant_super *s) {
    const struct block_q5_k *b = block;
    s->d = b->d;
    s->dmin = b->dmin;
    quant_unpack_scales(b->scales, s);
    EACH_ELEMENT(h, k, l) {
        int low = b->qs[64 * h + 32 * (k / 2) + l] >> 4 * (k % 2) & 15;
        int high = b->qh[l] >> (4 * h + k) & 1;
        s->level[ELEMENT(h, k, l)] = (int8_t)(low | high << 4);
    }
}

void quant_pack_q5_k(const struct quant_super *s, void *block) {
    struct block_q5_k *b = block;
    memset(b, 0, sizeof *b);
    b->d = s->d;
    b->dmin = s->dmin;
    quant_pack_scales(s, b->scales);
    EACH_ELEMENT(h, k, l) {
        unsigned v = (uint8_t)s->level[ELEMENT(h, k, l)];
        b->qs[64 * h + 32 * (k / 2) + l] |= (uint8_t)((v & 15) << 4 * (k % 2));
        b->qh[l] |= (uint8_t)((v >> 4) << (4 * h + k));
    }
}

void quant_unpack_q6_k(const void *block, struct quant_super *s) {
    const struct block_q6_k *b = block;
    s->d = b->d;
    s->dmin = 0;
    memset(s->min, 0, sizeof s->min);
    memcpy(s->scale, b->scales, sizeof s->scale);
    EACH_ELEMENT(h, k, l) {
        int low = b->ql[64 * h + 32 * (k % 2) + l] >> 4 * (k / 2) & 15;
        int high = b->qh[32 * h + l] >> 2 * k & 3;
        s->level[ELEMENT(h, k, l)] = (int8_t)((low | high << 4) - 32);
    }
}

void quant_pack_q6_k(const struct quant_super *s, void *block) {
    struct block_q6_k *b = block;
    memset(b, 0, sizeof *b);
    b->d = s->d;
    memcpy(b->scales, s->scale, sizeof b->scales);
    EACH_ELEMENT(h, k, l) {
        unsigned v = (unsigned)(s->level[ELEMENT(h, k, l)] + 32);
        b->ql[64 * h + 32 * (k % 2) + l] |= (uint8_t)((v & 15) << 4 * (k / 2));
        b->qh[32 * h + l] |= (uint8_t)((v >> 4) << 2 * k);
    }
}

void quant_unpack_iq4_xs(const void *block, struct quant_super *s) {
    const struct block_iq4_xs *b = block;
    s->d = b->d;
    s->dmin = 0;
    memset(s->min, 0, sizeof s->min);
    for (int j = 0; j < 8; j++) {
        int low = b->scales_l[j / 2] >> 4 * (j % 2) & 15, high = b->scales_h >> 2 * j & 3;
        s->scale[j] = (int8_t)((low | high << 4) - 32);
        for (int l = 0; l < 32; l++)
            s->level[32 * j + l] = quant_iq4_values[b->qs[16 * j + l % 16] >> 4 * (l / 16) & 15];
    }
}

/* The index of a value in quant_iq4_values: dividing by 8 tells all of them apart. */
static unsigned iq4_index(int8_t value) {
    static const uint8_t index[32] = {
        [0] = 0,  [3] = 1,  [5] = 2,   [7] = 3,   [9] = 4,   [11] = 5,  [13] = 6,  [14] = 7,
        [16] = 8, [17] = 9, [19] = 10, [20] = 11, [22] = 12, [24] = 13, [27] = 14, [30] = 15,
    };
    return index[(value + 128) >> 3];
}

void quant_pack_iq4_xs(const struct quant_super *s, void *block) {
    struct block_iq4_xs *b = block;
    memset(b, 0, sizeof *b);
    b->d = s->d;
    unsigned high = 0;
    for (int j = 0; j < 8; j++) {
        unsigned v = (unsigned)(s->scale[j] + 32);
        b->scales_l[j / 2] |= (uint8_t)((v & 15) << 4 * (j % 2));
        high |= (v >> 4) << 2 * j;
        for (int l = 0; l < 32; l++) {
            unsigned index = iq4_index(s->level[32 * j + l]);
            b->qs[16 * j + l % 16] |= (uint8_t)(index << 4 * (l / 16));
        }
    }
    b->scales_h = (uint16_t)high;
}
