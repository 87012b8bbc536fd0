/* action.c - loads, stores and atomics on memory that may be accessed.
 *
 * Copies of elements are memcpy(): GPUs of this family allow any alignment for loads and stores.
 * The caller has checked that the address of an atomic is aligned. */
#include "isa/action.h"
#include "isa/floats.h"

#define APPLY_FN(name)                                                                             \
    static void name(const struct isa_data *r, uint64_t lanes, void *const host[ISA_LANES],        \
                     bool shared)

/* ---- loads and stores ------------------------------------------------------------------------ */

#define NEAR_FN(name)                                                                              \
    static void name(const struct isa_data *r, uint64_t lanes, uint8_t *base,                      \
                     const uint32_t offset[ISA_LANES])

/* `statement` for each lane l; all of them in a plain loop. */
#define NEAR_LANES(statement)                                                                      \
    do {                                                                                           \
        if (lanes == ~UINT64_C(0))                                                                 \
            for (unsigned l = 0; l < ISA_LANES; l++)                                               \
                statement;                                                                         \
        else                                                                                       \
            for (ISA_EACH_LANE(l, lanes))                                                          \
                statement;                                                                         \
    } while (0)

/* An element of a C type, extended as C extends it. */
#define LOAD(name, type)                                                                           \
    APPLY_FN(apply_##name) {                                                                       \
        (void)shared;                                                                              \
        for (ISA_EACH_LANE(l, lanes)) {                                                            \
            type value;                                                                            \
            memcpy(&value, host[l], sizeof value);                                                 \
            r->dst[0][l] = (uint32_t)(int32_t)value;                                               \
        }                                                                                          \
    }                                                                                              \
    NEAR_FN(near_##name) {                                                                         \
        type value;                                                                                \
        NEAR_LANES((memcpy(&value, base + offset[l], sizeof value),                                \
                    r->dst[0][l] = (uint32_t)(int32_t)value));                                     \
    }                                                                                              \
    static void row_##name(const struct isa_data *r, uint8_t *base) {                              \
        isa_reach_load_small(r->dst[0], base, sizeof(type), (type)-1 < (type)1);                   \
    }                                                                                              \
    const struct isa_action isa_action_##name = { apply_##name, ISA_LOAD, sizeof(type),            \
                                                  row_##name, near_##name };
LOAD(load_ubyte, uint8_t)
LOAD(load_sbyte, int8_t)
LOAD(load_ushort, uint16_t)
LOAD(load_sshort, int16_t)

/* Into one half of the register; the other stays. */
#define LOAD_HALF(name, type, shift)                                                               \
    APPLY_FN(apply_##name) {                                                                       \
        (void)shared;                                                                              \
        for (ISA_EACH_LANE(l, lanes)) {                                                            \
            type value;                                                                            \
            memcpy(&value, host[l], sizeof value);                                                 \
            r->dst[0][l] = (r->dst[0][l] & ~(0xffffu << (shift))) |                                \
                           (uint32_t)(uint16_t)(int16_t)value << (shift);                          \
        }                                                                                          \
    }                                                                                              \
    NEAR_FN(near_##name) {                                                                         \
        type value;                                                                                \
        NEAR_LANES((memcpy(&value, base + offset[l], sizeof value),                                \
                    r->dst[0][l] = (r->dst[0][l] & ~(0xffffu << (shift))) |                        \
                                   (uint32_t)(uint16_t)(int16_t)value << (shift)));                \
    }                                                                                              \
    const struct isa_action isa_action_##name = { apply_##name, ISA_LOAD, sizeof(type), NULL,      \
                                                  near_##name };
LOAD_HALF(load_ubyte_d16, uint8_t, 0)
LOAD_HALF(load_ubyte_d16_hi, uint8_t, 16)
LOAD_HALF(load_sbyte_d16, int8_t, 0)
LOAD_HALF(load_sbyte_d16_hi, int8_t, 16)
LOAD_HALF(load_short_d16, uint16_t, 0)
LOAD_HALF(load_short_d16_hi, uint16_t, 16)

static inline void load_dwords(const struct isa_data *r, uint64_t lanes,
                               void *const host[ISA_LANES], unsigned n) {
    uint32_t value[4];
    for (ISA_EACH_LANE(l, lanes)) {
        memcpy(value, host[l], n * sizeof value[0]);
        for (unsigned d = 0; d < n; d++)
            r->dst[d][l] = value[d];
    }
}

static inline void store_dwords(const struct isa_data *r, uint64_t lanes,
                                void *const host[ISA_LANES], unsigned n) {
    uint32_t value[4];
    for (ISA_EACH_LANE(l, lanes)) {
        for (unsigned d = 0; d < n; d++)
            value[d] = r->data[d][l];
        memcpy(host[l], value, n * sizeof value[0]);
    }
}

/* Elements of 8 bytes are read and written at once, as GPUs do: programs keep two values in one,
 * and groups on other threads are at the same memory. Longer ones are pieces of 8. */

static inline void near_load(const struct isa_data *r, uint64_t lanes, const uint8_t *base,
                             const uint32_t offset[ISA_LANES], unsigned n) {
    unsigned d = 0;
    for (; n - d > 1; d += 2)
        isa_reach_load_pairs(r->dst[d], base + (size_t)4 * d, offset, lanes);
    if (d < n)
        isa_reach_load(r->dst[d], base + (size_t)4 * d, offset, lanes);
}

static inline void near_store(const struct isa_data *r, uint64_t lanes, uint8_t *base,
                              const uint32_t offset[ISA_LANES], unsigned n) {
    unsigned d = 0;
    for (; n - d > 1; d += 2)
        isa_reach_store_pairs(base + (size_t)4 * d, offset, r->data[d], lanes);
    if (d < n)
        isa_reach_store(base + (size_t)4 * d, offset, r->data[d], lanes);
}

#define DWORDS(load, store, n)                                                                     \
    APPLY_FN(apply_##load) {                                                                       \
        (void)shared;                                                                              \
        load_dwords(r, lanes, host, n);                                                            \
    }                                                                                              \
    static void row_##load(const struct isa_data *r, uint8_t *base) {                              \
        isa_reach_load_row(r->dst[0], base, n);                                                    \
    }                                                                                              \
    NEAR_FN(near_##load) {                                                                         \
        near_load(r, lanes, base, offset, n);                                                      \
    }                                                                                              \
    const struct isa_action isa_action_##load = { apply_##load, ISA_LOAD, 4 * (n), row_##load,     \
                                                  near_##load };                                   \
    APPLY_FN(apply_##store) {                                                                      \
        (void)shared;                                                                              \
        store_dwords(r, lanes, host, n);                                                           \
    }                                                                                              \
    static void row_##store(const struct isa_data *r, uint8_t *base) {                             \
        isa_reach_store_row(base, r->data[0], n);                                                  \
    }                                                                                              \
    NEAR_FN(near_##store) {                                                                        \
        near_store(r, lanes, base, offset, n);                                                     \
    }                                                                                              \
    const struct isa_action isa_action_##store = { apply_##store, ISA_STORE, 4 * (n), row_##store, \
                                                   near_##store };
DWORDS(load_dword, store_dword, 1)
DWORDS(load_dwordx2, store_dwordx2, 2)
DWORDS(load_dwordx3, store_dwordx3, 3)
DWORDS(load_dwordx4, store_dwordx4, 4)

#define STORE(name, type, shift)                                                                   \
    APPLY_FN(apply_##name) {                                                                       \
        (void)shared;                                                                              \
        for (ISA_EACH_LANE(l, lanes)) {                                                            \
            type value = (type)(r->data[0][l] >> (shift));                                         \
            memcpy(host[l], &value, sizeof value);                                                 \
        }                                                                                          \
    }                                                                                              \
    NEAR_FN(near_##name) {                                                                         \
        for (ISA_EACH_LANE(l, lanes)) {                                                            \
            type value = (type)(r->data[0][l] >> (shift));                                         \
            memcpy(base + offset[l], &value, sizeof value);                                        \
        }                                                                                          \
    }                                                                                              \
    static void row_##name(const struct isa_data *r, uint8_t *base) {                              \
        isa_reach_store_small(base, r->data[0], sizeof(type));                                     \
    }                                                                                              \
    const struct isa_action isa_action_##name = { apply_##name, ISA_STORE, sizeof(type),           \
                                                  (shift) ? NULL : row_##name, near_##name };
STORE(store_byte, uint8_t, 0)
STORE(store_byte_d16_hi, uint8_t, 16)
STORE(store_short, uint16_t, 0)
STORE(store_short_d16_hi, uint16_t, 16)

/* ---- atomics: a function from what is there to what will be ---------------------------------- */

typedef uint32_t (*fn32)(uint32_t it, uint32_t data, uint32_t data1);
typedef uint64_t (*fn64)(uint64_t it, uint64_t data, uint64_t data1);

static inline void atomic32(const struct isa_data *r, uint64_t lanes, void *const host[ISA_LANES],
                            bool shared, fn32 fn) {
    for (ISA_EACH_LANE(l, lanes)) {
        uint32_t *p = host[l], data = r->data[0][l], data1 = r->data1 ? r->data1[0][l] : 0;
        uint32_t it = __atomic_load_n(p, __ATOMIC_RELAXED);
        if (!shared)
            *p = fn(it, data, data1);
        else
            while (!__atomic_compare_exchange_n(p, &it, fn(it, data, data1), true, __ATOMIC_SEQ_CST,
                                                __ATOMIC_RELAXED))
                ;
        if (r->dst)
            r->dst[0][l] = it;
    }
}

static inline uint64_t row_pair(const uint32_t (*rows)[ISA_LANES], uint64_t l) {
    return rows[0][l] | (uint64_t)rows[1][l] << 32;
}

static inline void atomic64(const struct isa_data *r, uint64_t lanes, void *const host[ISA_LANES],
                            bool shared, fn64 fn) {
    for (ISA_EACH_LANE(l, lanes)) {
        uint64_t *p = host[l], data = row_pair(r->data, l);
        uint64_t data1 = r->data1 ? row_pair(r->data1, l) : 0;
        uint64_t it = __atomic_load_n(p, __ATOMIC_RELAXED);
        if (!shared)
            *p = fn(it, data, data1);
        else
            while (!__atomic_compare_exchange_n(p, &it, fn(it, data, data1), true, __ATOMIC_SEQ_CST,
                                                __ATOMIC_RELAXED))
                ;
        if (r->dst) {
            r->dst[0][l] = (uint32_t)it;
            r->dst[1][l] = (uint32_t)(it >> 32);
        }
    }
}

#define ATOMIC(name, bits, value)                                                                  \
    static uint##bits##_t fn_##name(uint##bits##_t it, uint##bits##_t data,                        \
                                    uint##bits##_t data1) {                                        \
        (void)it, (void)data, (void)data1;                                                         \
        return value;                                                                              \
    }                                                                                              \
    APPLY_FN(apply_##name) {                                                                       \
        atomic##bits(r, lanes, host, shared, fn_##name);                                           \
    }                                                                                              \
    const struct isa_action isa_action_##name = { apply_##name, ISA_ATOMIC, (bits) / 8, NULL,      \
                                                  NULL };
#define ATOMIC_BOTH(name, value)                                                                   \
    ATOMIC(name, 32, value)                                                                        \
    ATOMIC(name##_x2, 64, value)
#define SIGNED(x) (sizeof(x) == 4 ? (int64_t)(int32_t)(x) : (int64_t)(x))

ATOMIC_BOTH(atomic_swap, data)
ATOMIC_BOTH(atomic_cmpswap, it == data1 ? data : it)
ATOMIC_BOTH(atomic_add, it + data)
ATOMIC_BOTH(atomic_sub, it - data)
ATOMIC_BOTH(atomic_rsub, data - it)
ATOMIC_BOTH(atomic_smin, SIGNED(data) < SIGNED(it) ? data : it)
ATOMIC_BOTH(atomic_umin, data < it ? data : it)
ATOMIC_BOTH(atomic_smax, SIGNED(data) > SIGNED(it) ? data : it)
ATOMIC_BOTH(atomic_umax, data > it ? data : it)
ATOMIC_BOTH(atomic_and, it &data)
ATOMIC_BOTH(atomic_or, it | data)
ATOMIC_BOTH(atomic_xor, it ^ data)
ATOMIC_BOTH(atomic_inc, it >= data ? 0 : it + 1)
ATOMIC_BOTH(atomic_dec, it == 0 || it > data ? data : it - 1)
ATOMIC_BOTH(atomic_mskor, (it & ~data) | data1)
ATOMIC(atomic_wrap, 32, it >= data ? it - data : it + data1)

/* Two halves, each replaced if the upper bit of its data is set, by the other 31. */
static uint32_t exchange_if(uint32_t it, uint32_t data) {
    return data >> 31 ? data & 0x7fffffffu : it;
}
ATOMIC(atomic_condxchg32_x2, 64,
       exchange_if((uint32_t)it, (uint32_t)data) |
           (uint64_t)exchange_if((uint32_t)(it >> 32), (uint32_t)(data >> 32)) << 32)

/* ---- floating point -------------------------------------------------------------------------- */

/* The smaller, or the one that is a number; -0 is smaller than 0. */
static bool less32(uint32_t a, uint32_t b) {
    float x = isa_float(a), y = isa_float(b);
    if (x != x || y != y)
        return x == x;
    return x < y || (x == y && a >> 31 && !(b >> 31));
}
static bool less64(uint64_t a, uint64_t b) {
    double x = isa_double(a), y = isa_double(b);
    if (x != x || y != y)
        return x == x;
    return x < y || (x == y && a >> 63 && !(b >> 63));
}
static bool greater32(uint32_t a, uint32_t b) {
    float x = isa_float(a), y = isa_float(b);
    return x != x || y != y ? x == x : less32(b, a);
}
static bool greater64(uint64_t a, uint64_t b) {
    double x = isa_double(a), y = isa_double(b);
    return x != x || y != y ? x == x : less64(b, a);
}

/* Zero with its sign, of a denormal. */
static uint32_t flush32(uint32_t bits) {
    return bits & 0x7f800000u ? bits : bits & 0x80000000u;
}

static uint32_t add32(uint32_t a, uint32_t b) {
    return isa_bits(isa_float(a) + isa_float(b));
}

/* Memory keeps denormals whatever MODE says; LDS obeys MODE (isa_action_add_f32_in_mode). */
ATOMIC(atomic_add_f32, 32, add32(it, data))
ATOMIC(atomic_add_f32_flush, 32, flush32(add32(flush32(it), flush32(data))))
ATOMIC(atomic_add_f32_flush_in, 32, add32(flush32(it), flush32(data)))
ATOMIC(atomic_add_f32_flush_out, 32, flush32(add32(it, data)))

const struct isa_action *isa_action_add_f32_in_mode(uint32_t mode) {
    static const struct isa_action *const by_denormals[] = { &isa_action_atomic_add_f32_flush,
                                                             &isa_action_atomic_add_f32_flush_out,
                                                             &isa_action_atomic_add_f32_flush_in,
                                                             &isa_action_atomic_add_f32 };
    return by_denormals[(mode & ISA_MODE_DENORM_32) >> 4];
}

ATOMIC(atomic_min_f32, 32, less32(data, it) ? data : it)
ATOMIC(atomic_max_f32, 32, greater32(data, it) ? data : it)
ATOMIC(atomic_cmpst_f32, 32, isa_float(it) == isa_float(data1) ? data : it)
ATOMIC(atomic_add_f64, 64, isa_bits64(isa_double(it) + isa_double(data)))
ATOMIC(atomic_min_f64, 64, less64(data, it) ? data : it)
ATOMIC(atomic_max_f64, 64, greater64(data, it) ? data : it)
ATOMIC(atomic_cmpst_f64, 64, isa_double(it) == isa_double(data1) ? data : it)

static uint32_t add_halves(uint32_t a, uint32_t b) {
    return isa_to_half(isa_from_half(a) + isa_from_half(b)) |
           isa_to_half(isa_from_half(a >> 16) + isa_from_half(b >> 16)) << 16;
}

static uint32_t add_bfloats(uint32_t a, uint32_t b) {
    return isa_to_bf16(isa_from_bf16(a) + isa_from_bf16(b)) |
           isa_to_bf16(isa_from_bf16(a >> 16) + isa_from_bf16(b >> 16)) << 16;
}

ATOMIC(atomic_pk_add_f16, 32, add_halves(it, data))
ATOMIC(atomic_pk_add_bf16, 32, add_bfloats(it, data))
