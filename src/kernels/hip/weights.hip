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
