/* action.h - what a memory instruction does with one element of memory per lane.
 *
 * Instructions of FLAT, GLOBAL, SCRATCH, MUBUF and DS differ in how they find their addresses; what
 * happens there is the same list of actions. An action works on host addresses that were checked
 * before. */
#ifndef ISA_ACTION_H
#define ISA_ACTION_H

#include "isa/exec.h"

/* Registers of an access: rows of 64 lanes, consecutive registers in consecutive rows. */
struct isa_data {
    uint32_t (*dst)[ISA_LANES];         /* NULL: nothing is returned */
    const uint32_t (*data)[ISA_LANES];  /* what is stored, or the operand of an atomic */
    const uint32_t (*data1)[ISA_LANES]; /* a second one, of compare-and-swap and the like */
};

struct isa_action {
    /* shared: other threads may access the same memory, so the host must use atomics too. */
    void (*apply)(const struct isa_data *r, uint64_t lanes, void *const host[ISA_LANES],
                  bool shared);
    uint8_t kind;  /* enum isa_access_kind */
    uint8_t bytes; /* per lane */
    /* The same for all lanes and elements one after the other from base; NULL: not worth it. */
    void (*apply_row)(const struct isa_data *r, uint8_t *base);
    /* The same for lanes at offsets from base; NULL: not worth it. */
    void (*apply_near)(const struct isa_data *r, uint64_t lanes, uint8_t *base,
                       const uint32_t offset[ISA_LANES]);
};

/* Every load, store and atomic by the second half of its mnemonic: A(load_ubyte), ... */
#define ISA_LOADS(A)                                                                               \
    A(load_ubyte)                                                                                  \
    A(load_sbyte)                                                                                  \
    A(load_ushort)                                                                                 \
    A(load_sshort)                                                                                 \
    A(load_dword)                                                                                  \
    A(load_dwordx2)                                                                                \
    A(load_dwordx3)                                                                                \
    A(load_dwordx4)                                                                                \
    A(load_ubyte_d16)                                                                              \
    A(load_ubyte_d16_hi)                                                                           \
    A(load_sbyte_d16)                                                                              \
    A(load_sbyte_d16_hi)                                                                           \
    A(load_short_d16)                                                                              \
    A(load_short_d16_hi)
#define ISA_STORES(A)                                                                              \
    A(store_byte)                                                                                  \
    A(store_byte_d16_hi)                                                                           \
    A(store_short)                                                                                 \
    A(store_short_d16_hi)                                                                          \
    A(store_dword)                                                                                 \
    A(store_dwordx2)                                                                               \
    A(store_dwordx3)                                                                               \
    A(store_dwordx4)
#define ISA_INTEGER_ATOMICS(A)                                                                     \
    A(atomic_swap)                                                                                 \
    A(atomic_cmpswap)                                                                              \
    A(atomic_add)                                                                                  \
    A(atomic_sub)                                                                                  \
    A(atomic_smin)                                                                                 \
    A(atomic_umin)                                                                                 \
    A(atomic_smax)                                                                                 \
    A(atomic_umax)                                                                                 \
    A(atomic_and)                                                                                  \
    A(atomic_or)                                                                                   \
    A(atomic_xor)                                                                                  \
    A(atomic_inc)                                                                                  \
    A(atomic_dec)                                                                                  \
    A(atomic_swap_x2)                                                                              \
    A(atomic_cmpswap_x2)                                                                           \
    A(atomic_add_x2)                                                                               \
    A(atomic_sub_x2)                                                                               \
    A(atomic_smin_x2)                                                                              \
    A(atomic_umin_x2)                                                                              \
    A(atomic_smax_x2)                                                                              \
    A(atomic_umax_x2)                                                                              \
    A(atomic_and_x2)                                                                               \
    A(atomic_or_x2)                                                                                \
    A(atomic_xor_x2)                                                                               \
    A(atomic_inc_x2)                                                                               \
    A(atomic_dec_x2)
#define ISA_FLOAT_ATOMICS(A)                                                                       \
    A(atomic_add_f32)                                                                              \
    A(atomic_pk_add_f16)                                                                           \
    A(atomic_add_f64)                                                                              \
    A(atomic_min_f64)                                                                              \
    A(atomic_max_f64)
/* Atomics that only DS has. */
#define ISA_LDS_ATOMICS(A)                                                                         \
    A(atomic_rsub)                                                                                 \
    A(atomic_mskor)                                                                                \
    A(atomic_add_f32_flush)                                                                        \
    A(atomic_add_f32_flush_in)                                                                     \
    A(atomic_add_f32_flush_out)                                                                    \
    A(atomic_cmpst_f32)                                                                            \
    A(atomic_min_f32)                                                                              \
    A(atomic_max_f32)                                                                              \
    A(atomic_wrap)                                                                                 \
    A(atomic_rsub_x2)                                                                              \
    A(atomic_mskor_x2)                                                                             \
    A(atomic_cmpst_f64)                                                                            \
    A(atomic_condxchg32_x2)

#define ISA_ACTION_DECLARE(name) extern const struct isa_action isa_action_##name;
ISA_LOADS(ISA_ACTION_DECLARE)
ISA_STORES(ISA_ACTION_DECLARE)
ISA_INTEGER_ATOMICS(ISA_ACTION_DECLARE)
ISA_FLOAT_ATOMICS(ISA_ACTION_DECLARE)
ISA_LDS_ATOMICS(ISA_ACTION_DECLARE)
ISA_ACTION_DECLARE(atomic_pk_add_bf16)
#undef ISA_ACTION_DECLARE

/* The f32 addition of LDS, which treats denormals as MODE says. (It always rounds to nearest.) */
const struct isa_action *isa_action_add_f32_in_mode(uint32_t mode);

static inline uint32_t (*isa_rows_at(struct isa_wave *w, unsigned code))[ISA_LANES] {
    return &w->vgpr[code - ISA_VGPR0];
}

/* The registers of an access whose data, if it sends any, begin in register `code`. */
static inline struct isa_data isa_data_of(struct isa_wave *w, const struct isa_insn *i,
                                          const struct isa_action *act, unsigned code) {
    struct isa_data r = { 0 };
    if (act->kind == ISA_LOAD || (act->kind == ISA_ATOMIC && i->memory & ISA_MEM_GLC))
        r.dst = isa_rows_at(w, i->dst);
    if (act->kind != ISA_LOAD)
        r.data = (const uint32_t(*)[ISA_LANES])isa_rows_at(w, code);
    if (act->kind == ISA_ATOMIC) /* of compare-and-swap: the second half of the data */
        r.data1 = r.data + act->bytes / 4;
    return r;
}

/* Lane by lane: `for (ISA_EACH_LANE(l, lanes))`. */
#define ISA_EACH_LANE(l, lanes)                                                                    \
    uint64_t left_##l = (lanes), l = 0;                                                            \
    left_##l && (l = (uint64_t)__builtin_ctzll(left_##l), 1);                                      \
    left_##l &= left_##l - 1

#endif
