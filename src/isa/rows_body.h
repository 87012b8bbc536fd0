/* rows_body.h - the row functions of one instruction set. Included by rows_base.c, rows_avx2.c and
 * rows_avx512.c, each compiled for another one, after ROWS (the name of the table) was defined and
 * rows_any.h or rows_x86.h included; the loops are the same, and the compiler vectorises them. */
#include "isa/rows.h"
#include "isa/rows_math.h"
#include "isa/rows_matrix.h"

/* Lanes do not depend on each other, although rows may be the same. */
#if defined(__clang__)
/* Sanitizers prevent vectorisation, which is not the fault of the loops. */
#pragma clang diagnostic ignored "-Wpass-failed"
#define LANES_OF(n) _Pragma("clang loop vectorize(assume_safety)") for (int l = 0; l < (n); l++)
#else
#define LANES_OF(n) _Pragma("GCC ivdep") for (int l = 0; l < (n); l++)
#endif
#define LANES LANES_OF(ISA_LANES)

typedef uint32_t u32;
typedef int32_t i32;
typedef uint64_t u64;
typedef int64_t i64;
typedef uint16_t u16;
typedef int16_t i16;
typedef float f32;
typedef double f64;
typedef float h16;

#define GET_u32(p) ((p)[l])
#define GET_i32(p) ((int32_t)(p)[l])
#define GET_u16(p) ((uint16_t)(p)[l])
#define GET_i16(p) ((int16_t)(p)[l])
#define GET_f32(p) isa_float((p)[l])
#define GET_u64(p) ((p)[l] | (uint64_t)(p)[ISA_LANES + l] << 32)
#define GET_i64(p) ((int64_t)GET_u64(p))
#define GET_f64(p) isa_double(GET_u64(p))
#define GET_h16(p) isa_from_half((p)[l])

static inline void put64(uint32_t *d, int l, uint64_t value) {
    d[l] = (uint32_t)value;
    d[ISA_LANES + l] = (uint32_t)(value >> 32);
}
#define PUT_u32(p, x) ((p)[l] = (uint32_t)(x))
#define PUT_i32(p, x) ((p)[l] = (uint32_t)(int32_t)(x))
#define PUT_u16(p, x) ((p)[l] = (uint32_t)(x)&0xffff)
#define PUT_f32(p, x) ((p)[l] = isa_bits(x))
#define PUT_u64(p, x) put64((p), l, (x))
#define PUT_i64(p, x) put64((p), l, (uint64_t)(x))
#define PUT_f64(p, x) put64((p), l, isa_bits64(x))
#define PUT_h16(p, x) ((p)[l] = isa_to_half(x))
/* Registers of a type, for the flag row after them. */
#define ROWS_u32 1
#define ROWS_f32 1
#define ROWS_u64 2
#define ROWS_i64 2
#define ROWS_f64 2

#define ROW_FN(name)                                                                               \
    static void name(uint32_t *pd, const uint32_t *pa, const uint32_t *pb, const uint32_t *pc)

#define FN1(fn, td, ta, expression)                                                                \
    ROW_FN(fn) {                                                                                   \
        (void)pb, (void)pc;                                                                        \
        LANES {                                                                                    \
            ta a = GET_##ta(pa);                                                                   \
            PUT_##td(pd, (expression));                                                            \
        }                                                                                          \
    }
#define FN2(fn, td, ta, tb, expression)                                                            \
    ROW_FN(fn) {                                                                                   \
        (void)pc;                                                                                  \
        LANES {                                                                                    \
            ta a = GET_##ta(pa);                                                                   \
            tb b = GET_##tb(pb);                                                                   \
            PUT_##td(pd, (expression));                                                            \
        }                                                                                          \
    }
#define FN3(fn, td, ta, tb, tc, expression)                                                        \
    ROW_FN(fn) {                                                                                   \
        LANES {                                                                                    \
            ta a = GET_##ta(pa);                                                                   \
            tb b = GET_##tb(pb);                                                                   \
            tc c = GET_##tc(pc);                                                                   \
            PUT_##td(pd, (expression));                                                            \
        }                                                                                          \
    }
#define ROW1(op, td, ta, ...)         FN1(row_##op, td, ta, (__VA_ARGS__))
#define ROW2(op, td, ta, tb, ...)     FN2(row_##op, td, ta, tb, (__VA_ARGS__))
#define ROW3(op, td, ta, tb, tc, ...) FN3(row_##op, td, ta, tb, tc, (__VA_ARGS__))
#define SAT2(op, td, ta, tb, ...)     FN2(sat_##op, td, ta, tb, (__VA_ARGS__))
#define SAT3(op, td, ta, tb, tc, ...) FN3(sat_##op, td, ta, tb, tc, (__VA_ARGS__))
#define FLAG2(op, td, ta, tb, ...)                                                                 \
    ROW_FN(row_##op) {                                                                             \
        (void)pc;                                                                                  \
        LANES {                                                                                    \
            ta a = GET_##ta(pa);                                                                   \
            tb b = GET_##tb(pb);                                                                   \
            td d;                                                                                  \
            uint32_t flag;                                                                         \
            __VA_ARGS__;                                                                           \
            PUT_##td(pd, d);                                                                       \
            pd[ROWS_##td * ISA_LANES + l] = -flag;                                                 \
        }                                                                                          \
    }
#define FLAG3(op, td, ta, tb, tc, ...)                                                             \
    ROW_FN(row_##op) {                                                                             \
        LANES {                                                                                    \
            ta a = GET_##ta(pa);                                                                   \
            tb b = GET_##tb(pb);                                                                   \
            tc c = GET_##tc(pc);                                                                   \
            td d;                                                                                  \
            uint32_t flag;                                                                         \
            __VA_ARGS__;                                                                           \
            PUT_##td(pd, d);                                                                       \
            pd[ROWS_##td * ISA_LANES + l] = -flag;                                                 \
        }                                                                                          \
    }
/* Shifts of 64 bits by the halves low and high, which is faster than to join them first: a is from
 * 0 to 63, n the same modulo 32, and `on` all ones if a is 32 at least. */
#define SHIFT2(op, into_low, into_high)                                                            \
    ROW_FN(row_##op) {                                                                             \
        (void)pc;                                                                                  \
        LANES {                                                                                    \
            u32 a = pa[l] & 63, low = pb[l], high = pb[ISA_LANES + l], n = a & 31, on = -(a >> 5); \
            (void)low, (void)high;                                                                 \
            u32 new_low = (into_low), new_high = (into_high);                                      \
            pd[l] = new_low;                                                                       \
            pd[ISA_LANES + l] = new_high;                                                          \
        }                                                                                          \
    }
/* Packed f32: two registers, each a row of its own. */
#define BOTH_LANES LANES_OF(2 * ISA_LANES)
#define PACKED2(op, ...)                                                                           \
    ROW_FN(row_##op) {                                                                             \
        (void)pc;                                                                                  \
        BOTH_LANES {                                                                               \
            f32 a = GET_f32(pa), b = GET_f32(pb);                                                  \
            PUT_f32(pd, (__VA_ARGS__));                                                            \
        }                                                                                          \
    }
#define PACKED3(op, ...)                                                                           \
    ROW_FN(row_##op) {                                                                             \
        BOTH_LANES {                                                                               \
            f32 a = GET_f32(pa), b = GET_f32(pb), c = GET_f32(pc);                                 \
            PUT_f32(pd, (__VA_ARGS__));                                                            \
        }                                                                                          \
    }
/* f16, both halves of a register; the upper ones are then cleared if the mask says so. */
#define HALVES_FN(op, mask, fetch, ...)                                                            \
    ROW_FN(row_##op) {                                                                             \
        (void)pc;                                                                                  \
        for (int at = 0; at < 2 * ISA_LANES; at += HALVES) {                                       \
            halves a = get_halves(pa, at), b = get_halves(pb, at);                                 \
            fetch put_halves(pd, at, (__VA_ARGS__));                                               \
        }                                                                                          \
        if ((mask) != ~0u)                                                                         \
            LANES pd[l] &= (mask);                                                                 \
    }
#define HALVES2(op, mask, ...) HALVES_FN(op, mask, , __VA_ARGS__)
#define HALVES3(op, mask, ...) HALVES_FN(op, mask, halves c = get_halves(pc, at);, __VA_ARGS__)
/* Numbers that have to be scaled before a division are rare: if no lane has one, no quotients have
 * to be computed here. */
#define SCALE(op, t, rare, most, all)                                                              \
    ROW_FN(row_##op) {                                                                             \
        uint32_t any = 0, flag = 0;                                                                \
        LANES any |= (uint32_t)rare(GET_##t(pb), GET_##t(pc));                                     \
        if (!any) {                                                                                \
            LANES {                                                                                \
                t a = GET_##t(pa), b = GET_##t(pb), c = GET_##t(pc);                               \
                PUT_##t(pd, most(a, b, c));                                                        \
                pd[ROWS_##t * ISA_LANES + l] = 0;                                                  \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int l = 0; l < ISA_LANES; l++) {                                                      \
            t a = GET_##t(pa), b = GET_##t(pb), c = GET_##t(pc);                                   \
            PUT_##t(pd, all(a, b, c, &flag));                                                      \
            pd[ROWS_##t * ISA_LANES + l] = -flag;                                                  \
        }                                                                                          \
    }
#define COMPARE(op, t, ...) FN2(compare_##op, u32, t, t, -(uint32_t)((__VA_ARGS__) != 0))
#define SAME(op, other)
#include "isa/rows_float.def"
#include "isa/rows_int.def"
#undef ROW1
#undef ROW2
#undef ROW3
#undef SAT2
#undef SAT3
#undef FLAG2
#undef FLAG3
#undef SHIFT2
#undef PACKED2
#undef PACKED3
#undef SCALE
#undef HALVES2
#undef HALVES3
#undef COMPARE
#undef SAME

static void flip(uint32_t *d, const uint32_t *s, uint32_t keep, uint32_t change) {
    LANES d[l] = (s[l] & keep) ^ change;
}

static void extract(uint32_t *d, const uint32_t *s, unsigned left, unsigned right, bool sign) {
    if (sign)
        LANES d[l] = (uint32_t)((int32_t)(s[l] << left) >> right);
    else
        LANES d[l] = s[l] << left >> right;
}

static void addresses(uint64_t *d, const uint32_t *low, const uint32_t *high, uint64_t add) {
    if (high)
        LANES d[l] = (low[l] | (uint64_t)high[l] << 32) + add;
    else
        LANES d[l] = low[l] + add;
}

/* Masks become rows first: shifts by the lane number would not be vectorised. */
static void bounds(const uint64_t *address, uint64_t lanes, uint64_t *low, uint64_t *high) {
    _Alignas(64) uint32_t on[ISA_LANES];
    uint64_t first = address[__builtin_ctzll(lanes)], least = first, most = first;
    expand(on, lanes);
    for (int l = 0; l < ISA_LANES; l++) {
        uint64_t mask = (uint64_t)(int64_t)(int32_t)on[l];
        uint64_t at = (address[l] & mask) | (first & ~mask);
        least = at < least ? at : least;
        most = at > most ? at : most;
    }
    *low = least;
    *high = most;
}

static void distances(uint32_t *d, const uint64_t *address, uint64_t base) {
    LANES d[l] = (uint32_t)(address[l] - base);
}

static uint32_t highest(const uint32_t *s, uint64_t lanes) {
    _Alignas(64) uint32_t on[ISA_LANES];
    uint32_t most = 0;
    expand(on, lanes);
    for (int l = 0; l < ISA_LANES; l++) {
        uint32_t at = s[l] & on[l];
        most = at > most ? at : most;
    }
    return most;
}

static void sum(uint32_t *d, const uint32_t *s, uint32_t add) {
    LANES d[l] = s[l] + add;
}

static uint32_t swizzle(uint32_t *d, const uint32_t *s) {
    uint32_t odd = 0;
    LANES d[l] = s[l] / 4 * (4 * ISA_LANES) + 4 * (uint32_t)l + s[l] % 4;
    for (int l = 0; l < ISA_LANES; l++)
        odd |= s[l];
    return odd % 4;
}

/* Elements of memory, which may have any address and are of any type. */
typedef uint8_t byte_of_memory __attribute__((may_alias));
typedef int8_t sbyte_of_memory __attribute__((may_alias));
typedef uint16_t half_of_memory __attribute__((aligned(1), may_alias));
typedef int16_t shalf_of_memory __attribute__((aligned(1), may_alias));
typedef uint64_t pair_of_memory __attribute__((aligned(1), may_alias));

static void load_row(uint32_t *d, const uint8_t *base, unsigned dwords) {
    const pair_of_memory *pair = (const void *)base;
    uint32_t *second = d + (size_t)2 * ISA_LANES;
    switch (dwords) {
    case 1:
        memcpy(d, base, ISA_LANES * sizeof *d);
        break;
    case 2:
        LANES put64(d, l, pair[l]);
        break;
    case 4:
        LANES {
            put64(d, l, pair[2 * l]);
            put64(second, l, pair[2 * l + 1]);
        }
        break;
    default:
        for (int l = 0; l < ISA_LANES; l++) {
            uint64_t two;
            memcpy(&two, base + (size_t)12 * l, sizeof two);
            put64(d, l, two);
            memcpy(&second[l], base + (size_t)12 * l + 8, sizeof *second);
        }
    }
}

static void store_row(uint8_t *base, const uint32_t *s, unsigned dwords) {
    pair_of_memory *pair = (void *)base;
    const uint32_t *second = s + (size_t)2 * ISA_LANES;
    switch (dwords) {
    case 1:
        memcpy(base, s, ISA_LANES * sizeof *s);
        break;
    case 2:
        LANES pair[l] = GET_u64(s);
        break;
    case 4:
        LANES {
            pair[2 * l] = GET_u64(s);
            pair[2 * l + 1] = GET_u64(second);
        }
        break;
    default:
        for (int l = 0; l < ISA_LANES; l++) {
            uint64_t two = GET_u64(s);
            memcpy(base + (size_t)12 * l, &two, sizeof two);
            memcpy(base + (size_t)12 * l + 8, &second[l], sizeof *second);
        }
    }
}

static void load_small(uint32_t *d, const uint8_t *base, unsigned bytes, bool sign) {
    const byte_of_memory *byte = (const void *)base;
    const sbyte_of_memory *sbyte = (const void *)base;
    const half_of_memory *half = (const void *)base;
    const shalf_of_memory *shalf = (const void *)base;
    if (bytes == 1 && sign)
        LANES d[l] = (uint32_t)(int32_t)sbyte[l];
    else if (bytes == 1)
        LANES d[l] = byte[l];
    else if (sign)
        LANES d[l] = (uint32_t)(int32_t)shalf[l];
    else
        LANES d[l] = half[l];
}

static void store_small(uint8_t *base, const uint32_t *s, unsigned bytes) {
    byte_of_memory *byte = (void *)base;
    half_of_memory *half = (void *)base;
    if (bytes == 1)
        LANES byte[l] = (uint8_t)s[l];
    else
        LANES half[l] = (uint16_t)s[l];
}

static bool is_row(const uint64_t *address, uint64_t bytes) {
    uint64_t astray = 0, first = address[0];
    for (uint64_t l = 0; l < ISA_LANES; l++)
        astray |= address[l] - first - l * bytes;
    return !astray;
}

static void gather(uint32_t *d, const uint32_t *s, const uint32_t *from, uint64_t valid) {
    _Alignas(64) uint32_t on[ISA_LANES];
    permute(d, s, from);
    expand(on, valid);
    LANES d[l] &= on[l];
}

const struct isa_rows ROWS = {
    .fill = fill,
    .merge = merge,
    .expand = expand,
    .collect = collect,
    .flip = flip,
    .extract = extract,
    .addresses = addresses,
    .bounds = bounds,
    .distances = distances,
    .highest = highest,
    .sum = sum,
    .swizzle = swizzle,
    .is_row = is_row,
    .load = load,
    .store = store,
    .load_pairs = load_pairs,
    .store_pairs = store_pairs,
    .load_row = load_row,
    .store_row = store_row,
    .load_small = load_small,
    .store_small = store_small,
    .gather = gather,
    .widen = widen,
    .multiply = { multiply_small, multiply_f32, multiply_i8, multiply_f64 },
    .fn = {
#define ROW1(op, ...)    [ISA_OP_##op] = row_##op,
#define ROW2             ROW1
#define ROW3             ROW1
#define FLAG2            ROW1
#define FLAG3            ROW1
#define SHIFT2           ROW1
#define PACKED2          ROW1
#define PACKED3          ROW1
#define SCALE            ROW1
#define HALVES2          ROW1
#define HALVES3          ROW1
#define SAME(op, other)  [ISA_OP_##op] = row_##other,
#define COMPARE(op, ...) [ISA_OP_v_cmp_##op] = compare_##op, [ISA_OP_v_cmpx_##op] = compare_##op,
#define SAT2(...)
#define SAT3(...)
#include "isa/rows_float.def"
#include "isa/rows_int.def"
        [ISA_OP_v_div_fmas_f32] = row_v_fma_f32,
        [ISA_OP_v_div_fmas_f64] = row_v_fma_f64,
    },
#undef ROW1
#undef SAME
#undef COMPARE
#undef SAT2
#undef SAT3
#define ROW1(...)
#define SAME(...)
#define COMPARE(...)
#define SAT2(op, ...) [ISA_OP_##op] = sat_##op,
#define SAT3          SAT2
    .saturating = {
#include "isa/rows_float.def"
#include "isa/rows_int.def"
    },
};
