/* weights.hip - weights as the file has them, decoded 32 elements at a time.
 *
 * Every quantised type comes down to a run: 32 levels of 8 bits, and for each half of them a scale and
 * a minimum: w = scale * level - minimum. What a level's zero is goes into the minimum. The layouts are
 * those of quant_block.h. */

enum {
#define TENSOR_TYPE(name, number, elements, bytes, use) TYPE_##name = number,
#include "model/quant/tensor_type.def"
#undef TENSOR_TYPE
};

/* The types that greta computes with, by the elements of their blocks. A switch over one of these has no default, so
 * that a type that is missing in it does not compile. */
#pragma clang diagnostic error "-Wswitch"
enum float_type { /* 1 */
#define COMPUTED_1(name) FLOAT_##name = TYPE_##name,
#define COMPUTED_32(name)
#define COMPUTED_256(name)
#include "kernels/hip/computed.def"
};
enum small_type { /* 32 */
#define COMPUTED_1(name)
#define COMPUTED_32(name) SMALL_##name = TYPE_##name,
#define COMPUTED_256(name)
#include "kernels/hip/computed.def"
};
enum large_type { /* 256 */
#define COMPUTED_1(name)
#define COMPUTED_32(name)
#define COMPUTED_256(name) LARGE_##name = TYPE_##name,
#include "kernels/hip/computed.def"
};
enum quantised_type { /* 32 or 256 */
#define COMPUTED_1(name)
#define COMPUTED_32(name)  QUANTISED_##name = TYPE_##name,
#define COMPUTED_256(name) QUANTISED_##name = TYPE_##name,
#include "kernels/hip/computed.def"
};
enum computed_type { /* all */
#define COMPUTED_1(name)   COMPUTED_##name = TYPE_##name,
#define COMPUTED_32(name)  COMPUTED_##name = TYPE_##name,
#define COMPUTED_256(name) COMPUTED_##name = TYPE_##name,
#include "kernels/hip/computed.def"
};

struct run {
    u32 level[8]; /* 4 elements each */
    float scale[2], min[2];
};

DEVICE u32 block_elements(u32 type) {
    switch (type) {
#define TENSOR_TYPE(name, number, elements, bytes, use)                                            \
    case TYPE_##name:                                                                              \
        return elements;
#include "model/quant/tensor_type.def"
#undef TENSOR_TYPE
    }
    return 1;
}

DEVICE u32 block_bytes(u32 type) {
    switch (type) {
#define TENSOR_TYPE(name, number, elements, bytes, use)                                            \
    case TYPE_##name:                                                                              \
        return bytes;
#include "model/quant/tensor_type.def"
#undef TENSOR_TYPE
    }
    return 1;
}

DEVICE bool is_float_type(u32 type) {
    return block_elements(type) == 1;
}

/* Bytes of n elements, as far as they are whole blocks. */
DEVICE u64 row_bytes(u32 type, u32 n) {
    return (u64)(n / block_elements(type)) * block_bytes(type);
}

/* Elements of a row that are whole blocks. */
DEVICE u32 whole_blocks(u32 type, u32 n) {
    return n - n % block_elements(type);
}

DEVICE float load_float(u32 type, const u8 *row, u32 i) {
    switch ((enum float_type)type) {
    case TYPE_F32:
        return float_of(load_u32(row + (u64)i * 4));
    case TYPE_F16:
        return load_half(row + (u64)i * 2);
    case TYPE_BF16:
        return float_of((u32)load_u16(row + (u64)i * 2) << 16);
    }
    return 0;
}

/* ---- levels --------------------------------------------------------------------------------- */

/* 16 bytes whose low nibbles are the first half of a run and whose high nibbles are the second. */
DEVICE void take_nibbles(struct run *r, const u8 *qs) {
    u32x4 q = load_u32x4(qs);
    for (int i = 0; i < 4; i++) {
        r->level[i] = q[i] & 0x0f0f0f0f;
        r->level[i + 4] = q[i] >> 4 & 0x0f0f0f0f;
    }
}

/* `mask` in every byte of 32, from bit `shift` on. */
DEVICE void take_bits(struct run *r, const u8 *qs, u32 shift, u32 mask) {
    u32x4 a = load_u32x4(qs), b = load_u32x4(qs + 16);
    for (int i = 0; i < 4; i++) {
        r->level[i] = a[i] >> shift & mask * 0x01010101u;
        r->level[i + 4] = b[i] >> shift & mask * 0x01010101u;
    }
}

/* Adds bits of 32 bytes from bit `shift` on, at bit `to`. */
DEVICE void add_bits(struct run *r, const u8 *qs, u32 shift, u32 mask, u32 to) {
    u32x4 a = load_u32x4(qs), b = load_u32x4(qs + 16);
    for (int i = 0; i < 4; i++) {
        r->level[i] |= (a[i] >> shift & mask * 0x01010101u) << to;
        r->level[i + 4] |= (b[i] >> shift & mask * 0x01010101u) << to;
    }
}

/* Bit i of the word is bit 4 of level i. */
DEVICE void add_fifth_bits(struct run *r, u32 bits) {
    for (int i = 0; i < 8; i++)
        r->level[i] |= ((bits >> 4 * i & 15) * 0x00204081u & 0x01010101u) << 4;
}

/* Four levels of 4 bits by what the table of IQ4_NL has for them. */
DEVICE u32 look_up_word(u32 level) {
    const u32 table[4] = { 0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u };
    u32 low_bits = level & 0x07070707;
    u32 low = __builtin_amdgcn_perm(table[1], table[0], low_bits);
    u32 high = __builtin_amdgcn_perm(table[3], table[2], low_bits);
    u32 mask = (level >> 3 & 0x01010101) * 255;
    return (high & mask) | (low & ~mask);
}

DEVICE void look_up(struct run *r) {
    for (int i = 0; i < 8; i++)
        r->level[i] = look_up_word(r->level[i]);
}

DEVICE void set_scale(struct run *r, int half, float scale, float min) {
    r->scale[half] = scale;
    r->min[half] = min;
}

DEVICE void set_scales(struct run *r, float scale, float min) {
    set_scale(r, 0, scale, min);
    set_scale(r, 1, scale, min);
}

/* ---- types ---------------------------------------------------------------------------------- */

/* Six-bit scale and minimum j of the 16 bytes that a block of Q4_K or Q5_K begins with: two halves,
 * and 12 bytes for eight of each. One load for all of it. */
DEVICE void set_packed_scales(struct run *r, const u8 *block, u32 j) {
    u32x4 head = load_u32x4(block);
    float d = half_of((u16)head[0]), dmin = half_of((u16)(head[0] >> 16));
    u32 shift = 8 * (j & 3), a = head[1] >> shift, b = head[2] >> shift, c = head[3] >> shift;
    u32 scale = j < 4 ? a & 63 : (c & 15) | (a >> 6 & 3) << 4;
    u32 min = j < 4 ? b & 63 : (c >> 4 & 15) | (b >> 6 & 3) << 4;
    set_scales(r, d * (float)scale, dmin * (float)min);
}

DEVICE void decode_q2_k(struct run *r, const u8 *block, u32 j) {
    float d = load_half(block + 80), dmin = load_half(block + 82);
    take_bits(r, block + 16 + j / 4 * 32, 2 * (j % 4), 3);
    for (int half = 0; half < 2; half++) {
        u32 s = block[2 * j + half];
        set_scale(r, half, d * (float)(s & 15), dmin * (float)(s >> 4));
    }
}

DEVICE void decode_q3_k(struct run *r, const u8 *block, u32 j) {
    float d = load_half(block + 108);
    take_bits(r, block + 32 + j / 4 * 32, 2 * (j % 4), 3);
    add_bits(r, block, j, 1, 2);
    for (int half = 0; half < 2; half++) {
        u32 i = 2 * j + half;
        u32 low = block[96 + i % 8] >> 4 * (i / 8) & 15, high = block[104 + i % 4] >> 2 * (i / 4);
        float scale = d * (float)((i32)(low | (high & 3) << 4) - 32);
        set_scale(r, half, scale, scale * 4);
    }
}

DEVICE void decode_q4_k(struct run *r, const u8 *block, u32 j) {
    take_bits(r, block + 16 + j / 2 * 32, 4 * (j % 2), 15);
    set_packed_scales(r, block, j);
}

DEVICE void decode_q5_k(struct run *r, const u8 *block, u32 j) {
    take_bits(r, block + 48 + j / 2 * 32, 4 * (j % 2), 15);
    add_bits(r, block + 16, j, 1, 4);
    set_packed_scales(r, block, j);
}

DEVICE void decode_q6_k(struct run *r, const u8 *block, u32 j) {
    u32 h = j / 4, k = j % 4;
    float d = load_half(block + 208);
    take_bits(r, block + 64 * h + 32 * (k % 2), 4 * (k / 2), 15);
    add_bits(r, block + 128 + 32 * h, 2 * k, 3, 4);
    for (int half = 0; half < 2; half++) {
        float scale = d * (float)(i8)block[192 + 2 * j + half];
        set_scale(r, half, scale, scale * 32);
    }
}

DEVICE void decode_iq4_xs(struct run *r, const u8 *block, u32 j) {
    u32 low = block[4 + j / 2] >> 4 * (j % 2) & 15, high = load_u16(block + 2) >> 2 * j & 3;
    take_nibbles(r, block + 8 + 16 * j);
    look_up(r);
    set_scales(r, load_half(block) * (float)((i32)(low | high << 4) - 32), 0);
}

/* Types of 32 elements per block: a block is a run. */
DEVICE void decode_small(u32 type, struct run *r, const u8 *block) {
    float d = load_half(block);
    switch ((enum small_type)type) {
    case TYPE_Q4_0:
        take_nibbles(r, block + 2);
        set_scales(r, d, d * 8);
        break;
    case TYPE_Q4_1:
        take_nibbles(r, block + 4);
        set_scales(r, d, -load_half(block + 2));
        break;
    case TYPE_Q5_0:
        take_nibbles(r, block + 6);
        add_fifth_bits(r, load_u32(block + 2));
        set_scales(r, d, d * 16);
        break;
    case TYPE_Q5_1:
        take_nibbles(r, block + 8);
        add_fifth_bits(r, load_u32(block + 4));
        set_scales(r, d, -load_half(block + 2));
        break;
    case TYPE_IQ4_NL:
        take_nibbles(r, block + 2);
        look_up(r);
        set_scales(r, d, 0);
        break;
    case TYPE_Q8_0:
        take_bits(r, block + 2, 0, 255);
        set_scales(r, d, 0);
        break;
    }
}

/* Elements 32 * index to 32 * index + 31 of a row of quantised weights. */
DEVICE void decode_run(u32 type, struct run *r, const u8 *row, u32 index) {
    if (block_elements(type) == 32) {
        decode_small(type, r, row + (u64)index * block_bytes(type));
        return;
    }
    const u8 *block = row + (u64)(index / 8) * block_bytes(type);
    u32 j = index % 8;
    switch ((enum large_type)type) {
    case TYPE_Q2_K:
        decode_q2_k(r, block, j);
        break;
    case TYPE_Q3_K:
        decode_q3_k(r, block, j);
        break;
    case TYPE_Q4_K:
        decode_q4_k(r, block, j);
        break;
    case TYPE_Q5_K:
        decode_q5_k(r, block, j);
        break;
    case TYPE_Q6_K:
        decode_q6_k(r, block, j);
        break;
    case TYPE_IQ4_XS:
        decode_iq4_xs(r, block, j);
        break;
    }
}

/* Element i of a run; i is a compile-time constant. */
DEVICE float run_element(const struct run *r, int i) {
    float level = (float)(i8)(r->level[i / 4] >> i % 4 * 8);
    return __builtin_fmaf(r->scale[i / 16], level, -r->min[i / 16]);
}

/* ---- shares: quantised weights as the matrix cores take them ------------------------------------
 *
 * A wave has 32 rows, and two lanes share a row. A lane's part of a run of 32 elements is a share: 16 of
 * them as halves. With activations that have a scale per 32 elements any 16 will do: the lane takes 16
 * neighbours, one load where the layout has them side by side ("wide"). Otherwise it takes 8 of the
 * first 16 and 8 of the others, so that each 16 can be summed separately.
 *
 * The halves are whole numbers, so that their products with the levels of activations, and sums of 32
 * of them, are exact. What turns them into weights is applied to the sums:
 *
 *   Q2_K … Q5_K   level times the scale of its run, at most 1953; one factor for a block of 256
 *   Q6_K          the same, up to 4096; above 2048 halves have even numbers only: others are rounded
 *   the others    the level; a factor for 32 elements
 *
 * Minima multiply sums of activations only.
 *
 * Loading and decoding are separate, so that a stage can be loaded while the one before is multiplied. */

#if MATRIX_CORES

struct share {
    f16x8 half[2];  /* of a lane's 16 elements */
    float scale;    /* the factor of their sums; of Q8_0 in the first 32 lanes alone */
    float min[2];
};

/* What all runs of a block have in common: its scales, and where it begins. */
struct head {
    u32 word[5];
    const u8 *block;
};

/* Two runs as they were loaded. */
struct raw {
    u32x4 level[2];
    u32x4 more;   /* bits of both that are elsewhere */
    u32 scale[2]; /* of types with 32 elements per block: the halves that a block begins with */
};

/* Elements that have one factor. */
DEVICE u32 factor_span(u32 type) {
    return block_elements(type) == 32 || type == TYPE_IQ4_XS ? 32 : 256;
}

DEVICE bool has_minima(u32 type) {
    switch ((enum quantised_type)type) {
    case TYPE_Q4_1:
    case TYPE_Q5_1:
    case TYPE_Q2_K:
    case TYPE_Q4_K:
    case TYPE_Q5_K:
        return true;
    case TYPE_Q4_0:
    case TYPE_Q5_0:
    case TYPE_Q8_0:
    case TYPE_IQ4_NL:
    case TYPE_Q3_K:
    case TYPE_Q6_K:
    case TYPE_IQ4_XS:
        return false;
    }
    return false;
}

/* Does a type have levels below 0? */
DEVICE bool has_signed_levels(u32 type) {
    switch ((enum quantised_type)type) {
    case TYPE_Q8_0:
    case TYPE_IQ4_NL:
    case TYPE_IQ4_XS:
        return true;
    case TYPE_Q4_0:
    case TYPE_Q4_1:
    case TYPE_Q5_0:
    case TYPE_Q5_1:
    case TYPE_Q2_K:
    case TYPE_Q3_K:
    case TYPE_Q4_K:
    case TYPE_Q5_K:
    case TYPE_Q6_K:
        return false;
    }
    return false;
}

/* Does a lane take neighbours? narrow: activations have a scale for 16 elements. */
DEVICE bool is_wide(u32 type, bool narrow) {
    return !narrow && type != TYPE_IQ4_XS;
}

/* The level that stands for 0, once levels are not negative. */
DEVICE u32 zero_level(u32 type) {
    switch ((enum quantised_type)type) {
    case TYPE_Q4_0:
        return 8;
    case TYPE_Q5_0:
        return 16;
    case TYPE_Q6_K:
        return 32;
    case TYPE_Q3_K:
        return 4;
    case TYPE_Q8_0: /* signed levels, their first bit flipped */
    case TYPE_IQ4_NL:
    case TYPE_IQ4_XS:
        return 128;
    case TYPE_Q4_1: /* what their level 0 stands for is the minimum */
    case TYPE_Q5_1:
    case TYPE_Q2_K:
    case TYPE_Q4_K:
    case TYPE_Q5_K:
        return 0;
    }
    return 0;
}

/* ---- loading ----------------------------------------------------------------------------------- */

DEVICE void load_head(u32 type, struct head *h, const u8 *block) {
    h->block = block;
    u32 at = type == TYPE_Q3_K ? 94 : type == TYPE_Q6_K ? 192 : 0;
    if (type == TYPE_IQ4_XS) {
        h->word[0] = load_u32(block);
        h->word[1] = load_u32(block + 4);
        return;
    }
    u32x4 w = load_u32x4(block + at);
    for (int i = 0; i < 4; i++)
        h->word[i] = w[i];
    if (type == TYPE_Q2_K)
        h->word[4] = load_u32(block + 80);
    if (type == TYPE_Q6_K)
        h->word[4] = load_u16(block + 208);
}

DEVICE u32x2 load_u32x2(const u8 *p) {
    return *(const u32x2_any *)p;
}

DEVICE u32 lane_half(void) {
    return lane_id() / 32;
}

/* The lane's 16 of 32 bytes. */
DEVICE u32x4 load_bytes(const u8 *p, bool wide) {
    if (wide)
        return load_u32x4(p + lane_half() * 16);
    u32x2 a = load_u32x2(p + lane_half() * 8), b = load_u32x2(p + 16 + lane_half() * 8);
    u32x4 both = { a[0], a[1], b[0], b[1] };
    return both;
}

/* Stage `stage` of a block of 256: its runs 2 * stage and 2 * stage + 1. What the stages before it have loaded
 * is still there: bytes hold bits of several. */
DEVICE void load_large(u32 type, bool wide, struct raw *r, const u8 *block, u32 stage) {
    const bool pair = stage % 2 == 0, first = stage == 0;
    u32x2 q;
    switch ((enum large_type)type) {
    case TYPE_Q2_K:
    case TYPE_Q3_K:
        if (pair)
            r->level[0] = load_bytes(block + (type == TYPE_Q2_K ? 16 : 32) + stage / 2 * 32, wide);
        break;
    case TYPE_Q4_K:
    case TYPE_Q5_K:
        r->level[0] = load_bytes(block + (type == TYPE_Q4_K ? 16 : 48) + stage * 32, wide);
        break;
    case TYPE_Q6_K:
        for (u32 i = 0; pair && i < 2; i++)
            r->level[i] = load_bytes(block + stage / 2 * 64 + i * 32, wide);
        if (pair)
            r->more = load_bytes(block + 128 + stage / 2 * 32, wide);
        break;
    case TYPE_IQ4_XS:
        for (u32 i = 0; i < 2; i++) {
            q = load_u32x2(block + 8 + 16 * (2 * stage + i) + lane_half() * 8);
            r->level[i][0] = q[0];
            r->level[i][1] = q[1];
        }
        break;
    }
    if (first && (type == TYPE_Q3_K || type == TYPE_Q5_K))
        r->more = load_bytes(block + (type == TYPE_Q3_K ? 0 : 16), wide);
}

/* Run i of a stage, a block of 32. */
DEVICE void load_small(u32 type, struct raw *r, const u8 *block, u32 i) {
    const u32 at = lane_half() * 8;
    u32 minimum = 0, fifth = 0; /* bytes before the levels: a minimum, the fifth bits of all levels */
    u32x2 q;
    switch ((enum small_type)type) {
    case TYPE_Q8_0: /* from the scale on: see eight_bits() */
        r->level[i] = load_u32x4(block + at);
        q = load_u32x2(block + 18 + at);
        r->more[2 * i] = q[0];
        r->more[2 * i + 1] = q[1];
        return;
    case TYPE_Q4_0:
    case TYPE_IQ4_NL:
        break;
    case TYPE_Q4_1:
        minimum = 2;
        break;
    case TYPE_Q5_0:
        fifth = 4;
        break;
    case TYPE_Q5_1:
        minimum = 2;
        fifth = 4;
        break;
    }
    q = load_u32x2(block + 2 + minimum + fifth + at);
    r->level[i][0] = q[0];
    r->level[i][1] = q[1];
    if (fifth)
        r->more[i] = load_u32(block + 2 + minimum);
    r->scale[i] = minimum ? load_u32(block) : load_u16(block);
}

/* ---- levels ----------------------------------------------------------------------------------- */

/* The lane's 16 levels of a run, a byte each; of Q6_K four times the level. */
struct part {
    u32 word[4];
};

/* Moves bit i of every byte to bit (i - by) % 32, for as many as stay in their byte. */
DEVICE u32 rotate(u32 word, u32 by) {
    return __builtin_amdgcn_alignbit(word, word, by);
}

/* Run i of stage `stage` of a block of 256. */
DEVICE void large_part(u32 type, struct part *p, const struct raw *r, u32 stage, u32 i) {
    const u32 j = 2 * stage + i;
    for (int n = 0; n < 4; n++)
        switch ((enum large_type)type) {
        case TYPE_Q2_K:
            p->word[n] = rotate(r->level[0][n], 2 * (j % 4)) & 0x03030303;
            break;
        case TYPE_Q3_K:
            p->word[n] = (rotate(r->level[0][n], 2 * (j % 4)) & 0x03030303) |
                         (rotate(r->more[n], j - 2) & 0x04040404);
            break;
        case TYPE_Q4_K:
            p->word[n] = r->level[0][n] >> 4 * i & 0x0f0f0f0f;
            break;
        case TYPE_Q5_K:
            p->word[n] = (r->level[0][n] >> 4 * i & 0x0f0f0f0f) |
                         (rotate(r->more[n], j - 4) & 0x10101010);
            break;
        case TYPE_Q6_K:
            p->word[n] = (rotate(r->level[i][n], 4 * (stage % 2) - 2) & 0x3c3c3c3c) |
                         (rotate(r->more[n], 2 * (j % 4) - 6) & 0xc0c0c0c0);
            break;
        case TYPE_IQ4_XS:
            p->word[n] = look_up_word(r->level[i][n % 2] >> 4 * (n / 2) & 0x0f0f0f0f);
            break;
        }
}

/* The first 8 bytes of the lane follow two others: the scale, or levels of the other lane. */
DEVICE void eight_bits(struct part *p, const struct raw *r, u32 i) {
    for (int n = 0; n < 2; n++) {
        p->word[n] = __builtin_amdgcn_alignbyte(r->level[i][n + 1], r->level[i][n], 2);
        p->word[2 + n] = r->more[2 * i + n];
    }
}

/* Run i of a stage of blocks of 32. */
DEVICE void small_part(u32 type, struct part *p, const struct raw *r, u32 i) {
    if (type == TYPE_Q8_0) {
        eight_bits(p, r, i);
        return;
    }
    for (u32 n = 0; n < 4; n++) {
        p->word[n] = r->level[i][n % 2] >> 4 * (n / 2) & 0x0f0f0f0f;
        if (type == TYPE_IQ4_NL)
            p->word[n] = look_up_word(p->word[n]);
        if (type == TYPE_Q5_0 || type == TYPE_Q5_1) {
            u32 bits = r->more[i] >> lane_half() * 8 >> (n / 2 * 16 + n % 2 * 4) & 15;
            p->word[n] |= (bits * 0x00204081u & 0x01010101u) << 4;
        }
    }
}

/* ---- scales ------------------------------------------------------------------------------------ */

/* Byte i of a head's words. */
DEVICE u32 head_byte(const struct head *h, u32 i) {
    u32 word = i / 4 == 0 ? h->word[0] : i / 4 == 1 ? h->word[1] : i / 4 == 2 ? h->word[2] : h->word[3];
    return word >> i % 4 * 8 & 255;
}

/* Scale of run j as a whole number for each half of the lane's share, and the minima; what the number is
 * multiplied with goes into scale. Q2_K and Q6_K have four scales per stage in word 0 of the head. */
DEVICE void large_scales(u32 type, bool wide, struct share *s, i32 whole[2], const struct head *h,
                         u32 j) {
    float d = 0, dmin;
    u32 scale, min, shift = 8 * (j & 3);
    whole[0] = whole[1] = 1;
    s->min[0] = s->min[1] = 0;
    switch ((enum large_type)type) {
    case TYPE_Q4_K:
    case TYPE_Q5_K:
        d = half_of((u16)h->word[0]), dmin = half_of((u16)(h->word[0] >> 16));
        scale = j < 4 ? h->word[1] >> shift & 63
                      : (h->word[3] >> shift & 15) | (h->word[1] >> shift >> 6 & 3) << 4;
        min = j < 4 ? h->word[2] >> shift & 63
                    : (h->word[3] >> shift >> 4 & 15) | (h->word[2] >> shift >> 6 & 3) << 4;
        whole[0] = whole[1] = (i32)scale;
        s->min[0] = s->min[1] = dmin * (float)min;
        break;
    case TYPE_Q2_K:
        d = half_of((u16)h->word[4]), dmin = half_of((u16)(h->word[4] >> 16));
        for (u32 half = 0; half < 2; half++) {
            u32 both = h->word[0] >> (j % 2 * 16 + 8 * (wide ? lane_half() : half)) & 255;
            whole[half] = (i32)(both & 15);
            s->min[half] = dmin * (float)(both >> 4);
        }
        break;
    case TYPE_Q3_K: /* 12 bytes from byte 2 of the head on, then the factor */
        d = half_of((u16)(h->word[3] >> 16));
        for (u32 half = 0; half < 2; half++) {
            u32 i = 2 * j + (wide ? lane_half() : half);
            u32 low = head_byte(h, 2 + i % 8) >> 4 * (i / 8) & 15;
            u32 high = head_byte(h, 10 + i % 4) >> 2 * (i / 4) & 3;
            whole[half] = (i32)(low | high << 4) - 32;
        }
        break;
    case TYPE_Q6_K:
        d = half_of((u16)h->word[4]);
        for (u32 half = 0; half < 2; half++)
            whole[half] = (i8)(h->word[0] >> (j % 2 * 16 + 8 * (wide ? lane_half() : half)));
        break;
    case TYPE_IQ4_XS:
        scale = (h->word[1] >> 4 * j & 15) | (h->word[0] >> 16 >> 2 * j & 3) << 4;
        d = half_of((u16)h->word[0]) * (float)((i32)scale - 32);
        break;
    }
    s->scale = d;
}

/* Four scales of Q2_K and Q6_K have been used. */
DEVICE void next_scales(u32 type, struct head *h) {
    if (type == TYPE_Q2_K || type == TYPE_Q6_K)
        for (int i = 0; i < 3; i++)
            h->word[i] = h->word[i + 1];
}

/* Eight bytes as halves, less the level of 0, times `whole`: exact, because everything here is a whole
 * number below 65536 that takes 11 bits. 1024 + b is b after the byte 0x64, 256 + b / 4 after 0x5c. */
DEVICE f16x8 whole_halves(u32 low, u32 high, bool fourfold, u32 zero, i32 whole, bool folded) {
    const u32 before = fourfold ? 0x5c5c5c5cu : 0x64646464u;
    const f16 base = (f16)(float)((fourfold ? 256 : 1024) + zero);
    u32x4 bits = { __builtin_amdgcn_perm(before, low, 0x04010400u),
                   __builtin_amdgcn_perm(before, low, 0x04030402u),
                   __builtin_amdgcn_perm(before, high, 0x04010400u),
                   __builtin_amdgcn_perm(before, high, 0x04030402u) };
    f16x8 v = __builtin_bit_cast(f16x8, bits);
    f16 by = (f16)(float)whole;
#if __has_builtin(__builtin_elementwise_fma)
    /* one rounding; base times the scale is exact: a power of 2, or 288 = 9 * 32 times 8 bits */
    if (folded && (fourfold || !zero)) {
        f16x8 factors = by, less = -by * base;
        return __builtin_elementwise_fma(v, factors, less);
    }
#endif
    v = v - base;
    return folded ? v * by : v;
}

/* Run i of what was loaded for stage `stage` of a block of 256. */
DEVICE void decode_large(u32 type, bool wide, struct share *s, const struct raw *r,
                         const struct head *h, u32 stage, u32 i) {
    const u32 flip = has_signed_levels(type) ? 0x80808080u : 0;
    struct part p;
    i32 whole[2];
    large_part(type, &p, r, stage, i);
    large_scales(type, wide, s, whole, h, 2 * stage + i);
    for (int half = 0; half < 2; half++)
        s->half[half] =
            whole_halves(p.word[2 * half] ^ flip, p.word[2 * half + 1] ^ flip, type == TYPE_Q6_K,
                         zero_level(type), whole[half], factor_span(type) == 256);
}

DEVICE void decode_small_share(u32 type, struct share *s, const struct raw *r, u32 i) {
    const u32 flip = has_signed_levels(type) ? 0x80808080u : 0;
    struct part p;
    small_part(type, &p, r, i);
    for (int half = 0; half < 2; half++)
        s->half[half] = whole_halves(p.word[2 * half] ^ flip, p.word[2 * half + 1] ^ flip, false,
                                     zero_level(type), 1, false);
    u32 scales = type == TYPE_Q8_0 ? r->level[i][0] : r->scale[i];
    s->scale = half_of((u16)scales);
    s->min[0] = s->min[1] = has_minima(type) ? -half_of((u16)(scales >> 16)) : 0;
}

#endif
