/* rows_body.h - the row functions of one instruction set. Included by rows_base.c, rows_avx2.c and
 * rows_avx512.c, each compiled for another one, after ROWS (the name of the table) was defined and
 * rows_any.h or rows_x86.h included; the loops are the same, and the compiler makes vectors of
 * them. */
#include "isa/rows.h"
#include "isa/rows_math.h"

/* Lanes do not depend on each other, although rows may be the same. */
#if defined(__clang__)
/* Sanitizers keep loops from becoming vectors, which is no fault of the loops. */
#pragma clang diagnostic ignored "-Wpass-failed"
#define LANES _Pragma("clang loop vectorize(assume_safety)") for (int l = 0; l < ISA_LANES; l++)
#else
#define LANES _Pragma("GCC ivdep") for (int l = 0; l < ISA_LANES; l++)
#endif

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
#undef COMPARE
#undef SAME

const struct isa_rows ROWS = {
    .fill = fill,
    .merge = merge,
    .expand = expand,
    .collect = collect,
    .fn = {
#define ROW1(op, ...)    [ISA_OP_##op] = row_##op,
#define ROW2             ROW1
#define ROW3             ROW1
#define FLAG2            ROW1
#define FLAG3            ROW1
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
