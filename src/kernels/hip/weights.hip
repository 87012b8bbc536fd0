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
    return type == TYPE_F32 || type == TYPE_F16 || type == TYPE_BF16;
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
    return type == TYPE_F32   ? float_of(load_u32(row + (u64)i * 4))
           : type == TYPE_F16 ? load_half(row + (u64)i * 2)
                              : float_of((u32)load_u16(row + (u64)i * 2) << 16);
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
    switch (type) {
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
    default: /* Q8_0 */
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
    switch (type) {
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
    default:
        decode_iq4_xs(r, block, j);
        break;
    }
}

/* Element i of a run; i is known when this is compiled. */
DEVICE float run_element(const struct run *r, int i) {
    float level = (float)(i8)(r->level[i / 4] >> i % 4 * 8);
    return __builtin_fmaf(r->scale[i / 16], level, -r->min[i / 16]);
}

/* Does a type have levels below 0? */
DEVICE bool has_signed_levels(u32 type) {
    return type == TYPE_Q8_0 || type == TYPE_IQ4_NL || type == TYPE_IQ4_XS;
}

/* ---- shares: quantised weights as the matrix cores take them ------------------------------------
 *
 * A wave has 32 rows, and two lanes share a row: of every 16 elements the lane takes 8, those of its
 * half of the wave. Its part of a run of 32 is a share: 16 elements as halves.
 *
 * The halves are whole numbers, so that their products with the levels of activations, and sums of 32
 * of them, are exact. What turns them into weights is applied to the sums:
 *
 *   Q2_K … Q5_K   level times the scale of its run, at most 1953; one factor for a block of 256
 *   Q6_K          the same, up to 4096, where halves know even numbers only: these are rounded
 *   the others    the level; a factor for 32 elements
 *
 * Minima multiply sums of activations only. */

#if MATRIX_CORES

struct share {
    f16x8 half[2];  /* of the first 16 elements, of the others */
    float scale;    /* the factor of their sums */
    float min[2];
};

/* What all runs of a block have in common: its scales, and where it begins. */
struct head {
    u32 word[5];
    const u8 *block;
};

/* Elements that have one factor. */
DEVICE u32 factor_span(u32 type) {
    return block_elements(type) == 32 || type == TYPE_IQ4_XS ? 32 : 256;
}

DEVICE bool has_minima(u32 type) {
    return type == TYPE_Q2_K || type == TYPE_Q4_K || type == TYPE_Q5_K || type == TYPE_Q4_1 ||
           type == TYPE_Q5_1;
}

/* The level that stands for 0, once levels are not negative. */
DEVICE u32 zero_level(u32 type) {
    switch (type) {
    case TYPE_Q4_0:
        return 8;
    case TYPE_Q5_0:
        return 16;
    case TYPE_Q6_K:
        return 32;
    case TYPE_Q3_K:
        return 4;
    }
    return has_signed_levels(type) ? 128 : 0;
}

DEVICE void load_head(u32 type, struct head *h, const u8 *block) {
    h->block = block;
    if (block_elements(type) == 32)
        return;
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

/* ---- levels ----------------------------------------------------------------------------------- */

/* 8 levels of each 16, a byte each. */
struct part {
    u32 word[2][2];
};

DEVICE u32x2 load_u32x2(const u8 *p) {
    return *(const u32x2_any *)p;
}

DEVICE u32 lane_part(void) {
    return lane_id() / 32 * 8;
}

DEVICE void part_nibbles(struct part *p, const u8 *qs) {
    u32x2 q = load_u32x2(qs + lane_part());
    for (int i = 0; i < 2; i++) {
        p->word[0][i] = q[i] & 0x0f0f0f0f;
        p->word[1][i] = q[i] >> 4 & 0x0f0f0f0f;
    }
}

DEVICE void part_bits(struct part *p, const u8 *qs, u32 shift, u32 mask) {
    for (int half = 0; half < 2; half++) {
        u32x2 q = load_u32x2(qs + 16 * half + lane_part());
        for (int i = 0; i < 2; i++)
            p->word[half][i] = q[i] >> shift & mask * 0x01010101u;
    }
}

DEVICE void part_more_bits(struct part *p, const u8 *qs, u32 shift, u32 mask, u32 to) {
    struct part more;
    part_bits(&more, qs, shift, mask);
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < 2; i++)
            p->word[half][i] |= more.word[half][i] << to;
}

DEVICE void part_fifth_bits(struct part *p, u32 bits) {
    bits >>= lane_part();
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < 2; i++)
            p->word[half][i] |= ((bits >> (16 * half + 4 * i) & 15) * 0x00204081u & 0x01010101u)
                                << 4;
}

DEVICE void part_look_up(struct part *p) {
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < 2; i++)
            p->word[half][i] = look_up_word(p->word[half][i]);
}

/* The levels of run j of a block. */
DEVICE void load_part(u32 type, struct part *p, const u8 *block, u32 j) {
    switch (type) {
    case TYPE_Q2_K:
        part_bits(p, block + 16 + j / 4 * 32, 2 * (j % 4), 3);
        break;
    case TYPE_Q3_K:
        part_bits(p, block + 32 + j / 4 * 32, 2 * (j % 4), 3);
        part_more_bits(p, block, j, 1, 2);
        break;
    case TYPE_Q4_K:
        part_bits(p, block + 16 + j / 2 * 32, 4 * (j % 2), 15);
        break;
    case TYPE_Q5_K:
        part_bits(p, block + 48 + j / 2 * 32, 4 * (j % 2), 15);
        part_more_bits(p, block + 16, j, 1, 4);
        break;
    case TYPE_Q6_K:
        part_bits(p, block + 64 * (j / 4) + 32 * (j % 2), 4 * (j % 4 / 2), 15);
        part_more_bits(p, block + 128 + 32 * (j / 4), 2 * (j % 4), 3, 4);
        break;
    case TYPE_IQ4_XS:
        part_nibbles(p, block + 8 + 16 * j);
        part_look_up(p);
        break;
    case TYPE_Q4_0:
    case TYPE_Q4_1:
        part_nibbles(p, block + (type == TYPE_Q4_0 ? 2 : 4));
        break;
    case TYPE_Q5_0:
    case TYPE_Q5_1:
        part_nibbles(p, block + (type == TYPE_Q5_0 ? 6 : 8));
        part_fifth_bits(p, load_u32(block + (type == TYPE_Q5_0 ? 2 : 4)));
        break;
    case TYPE_IQ4_NL:
        part_nibbles(p, block + 2);
        part_look_up(p);
        break;
    default: /* Q8_0 */
        part_bits(p, block + 2, 0, 255);
        break;
    }
}

/* ---- scales ------------------------------------------------------------------------------------ */

/* Byte i of a head's words. */
DEVICE u32 head_byte(const struct head *h, u32 i) {
    u32 word = i / 4 == 0 ? h->word[0] : i / 4 == 1 ? h->word[1] : i / 4 == 2 ? h->word[2] : h->word[3];
    return word >> i % 4 * 8 & 255;
}

/* Scale of each 16 elements as a whole number, and the minima; what the number is multiplied with goes
 * into scale. */
DEVICE void load_scales(u32 type, struct share *s, i32 whole[2], const struct head *h, u32 j) {
    float d, dmin;
    u32 scale, min, shift = 8 * (j & 3);
    whole[0] = whole[1] = 1;
    s->min[0] = s->min[1] = 0;
    switch (type) {
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
            u32 both = head_byte(h, 2 * j + half);
            whole[half] = (i32)(both & 15);
            s->min[half] = dmin * (float)(both >> 4);
        }
        break;
    case TYPE_Q3_K: /* 12 bytes from byte 2 of the head on, then the factor */
        d = half_of((u16)(h->word[3] >> 16));
        for (u32 half = 0; half < 2; half++) {
            u32 i = 2 * j + half, low = head_byte(h, 2 + i % 8) >> 4 * (i / 8) & 15;
            u32 high = head_byte(h, 10 + i % 4) >> 2 * (i / 4) & 3;
            whole[half] = (i32)(low | high << 4) - 32;
        }
        break;
    case TYPE_Q6_K:
        d = half_of((u16)h->word[4]);
        for (u32 half = 0; half < 2; half++)
            whole[half] = (i8)head_byte(h, 2 * j + half);
        break;
    case TYPE_IQ4_XS:
        scale = (h->word[1] >> 4 * j & 15) | (h->word[0] >> 16 >> 2 * j & 3) << 4;
        d = half_of((u16)h->word[0]) * (float)((i32)scale - 32);
        break;
    case TYPE_Q4_1:
    case TYPE_Q5_1:
        d = load_half(h->block);
        s->min[0] = s->min[1] = -load_half(h->block + 2);
        break;
    default:
        d = load_half(h->block);
        break;
    }
    s->scale = d;
}

/* Eight bytes as halves, less `zero`, times `whole`: exact, because everything here is a whole number
 * below 65536 that takes 11 bits. 1024 + b is b after the byte 0x64. */
DEVICE f16x8 whole_halves(u32 low, u32 high, u32 zero, i32 whole, bool folded) {
    u32x4 bits = { __builtin_amdgcn_perm(0x64646464u, low, 0x04010400u),
                   __builtin_amdgcn_perm(0x64646464u, low, 0x04030402u),
                   __builtin_amdgcn_perm(0x64646464u, high, 0x04010400u),
                   __builtin_amdgcn_perm(0x64646464u, high, 0x04030402u) };
    f16x8 v = __builtin_bit_cast(f16x8, bits);
    f16 by = (f16)(float)whole;
#if __has_builtin(__builtin_elementwise_fma)
    if (folded && !zero) { /* one rounding, of a result that needs none */
        f16x8 factors = by, less = -by * (f16)1024;
        return __builtin_elementwise_fma(v, factors, less);
    }
#endif
    v = v - (f16)(float)(1024 + zero);
    return folded ? v * by : v;
}

/* Run j of a block, or nothing. */
DEVICE void load_share(u32 type, struct share *s, const struct head *h, u32 j) {
    const bool folded = factor_span(type) == 256;
    struct part p;
    i32 whole[2];
    load_part(type, &p, h->block, j);
    load_scales(type, s, whole, h, j);
    for (int half = 0; half < 2; half++) {
        u32 flip = has_signed_levels(type) ? 0x80808080u : 0;
        s->half[half] = whole_halves(p.word[half][0] ^ flip, p.word[half][1] ^ flip,
                                     zero_level(type), whole[half], folded);
    }
}

DEVICE void clear_share(struct share *s) {
    for (int half = 0; half < 2; half++) {
        s->half[half] = 0;
        s->min[half] = 0;
    }
    s->scale = 0;
}

#endif
