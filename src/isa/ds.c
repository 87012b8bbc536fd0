/* ds.c - DS instructions: the group's LDS, and lanes that read each other's registers.
 *
 * Waves of a group take turns on one thread, so that an atomic on LDS needs no atomic of the host.
 */
#include "isa/action.h"

#define EXEC_FN(name) static enum isa_result name(struct isa_wave *w, const struct isa_insn *i)

static enum isa_result not_gds(struct isa_wave *w, const struct isa_insn *i) {
    return i->memory & ISA_MEM_GDS ? isa_stop_unsupported(w, i, "global data share") : ISA_CONTINUE;
}

static struct isa_access access_of(struct isa_wave *w, const struct isa_insn *i,
                                   const struct isa_action *act) {
    return (struct isa_access){ .wave = w,
                                .insn = i,
                                .space = ISA_SPACE_LDS,
                                .kind = act->kind,
                                .bytes = act->bytes,
                                .lanes = ISA_WAVE_EXEC(w) };
}

static void offsets(struct isa_wave *w, const struct isa_insn *i, uint32_t add,
                    uint32_t offset[ISA_LANES]) {
    isa_reach_offsets(offset, isa_row(w, i->src[0]), add);
}

/* One action at offset[lane]. */
static enum isa_result act(struct isa_wave *w, const struct isa_insn *i,
                           const struct isa_action *action, const struct isa_data *r,
                           const uint32_t offset[ISA_LANES]) {
    struct isa_access a = access_of(w, i, action);
    void *host[ISA_LANES];
    enum isa_result result = not_gds(w, i);
    if (result != ISA_CONTINUE || !a.lanes)
        return result;
    uint8_t *near = action->apply_near ? isa_reach_lds_near(&a, offset) : NULL;
    if (near) {
        action->apply_near(r, a.lanes, near, offset);
        return ISA_CONTINUE;
    }
    result = isa_reach_lds(&a, offset, host);
    if (result == ISA_CONTINUE)
        action->apply(r, a.lanes, host, false);
    return result;
}

static const uint32_t (*data_rows(struct isa_wave *w, unsigned code))[ISA_LANES] {
    return (const uint32_t(*)[ISA_LANES])isa_rows_at(w, code);
}

static enum isa_result run(struct isa_wave *w, const struct isa_insn *i,
                           const struct isa_action *action) {
    const struct isa_info *info = &isa_info[i->op];
    _Alignas(64) uint32_t offset[ISA_LANES];
    struct isa_data r = { 0 };
    if (info->type[0] != ISA_TYPE_NONE)
        r.dst = isa_rows_at(w, i->dst);
    if (info->type[2] != ISA_TYPE_NONE)
        r.data = data_rows(w, i->src[1]);
    if (info->type[3] != ISA_TYPE_NONE)
        r.data1 = data_rows(w, i->src[2]);
    offsets(w, i, (uint32_t)i->imm, offset);
    return act(w, i, action, &r, offset);
}

/* Compare-and-store has its operands in the opposite order of compare-and-swap: DATA0 is compared,
 * DATA1 stored. */
static enum isa_result run_compare(struct isa_wave *w, const struct isa_insn *i,
                                   const struct isa_action *action) {
    _Alignas(64) uint32_t offset[ISA_LANES];
    struct isa_data r = { .data = data_rows(w, i->src[2]), .data1 = data_rows(w, i->src[1]) };
    if (isa_info[i->op].type[0] != ISA_TYPE_NONE)
        r.dst = isa_rows_at(w, i->dst);
    offsets(w, i, (uint32_t)i->imm, offset);
    return act(w, i, action, &r, offset);
}

/* ---- two places at once ---------------------------------------------------------------------- */

/* Offsets of 8 bits each, in units of elements or of 64 elements. Both places are checked before
 * either is written. */
static enum isa_result run_two(struct isa_wave *w, const struct isa_insn *i,
                               const struct isa_action *action, uint32_t unit) {
    struct isa_access a = access_of(w, i, action);
    unsigned rows = action->bytes / 4;
    _Alignas(64) uint32_t offset[2][ISA_LANES];
    void *host[2][ISA_LANES];
    uint8_t *near[2] = { NULL, NULL };
    enum isa_result result = not_gds(w, i);
    for (unsigned n = 0; n < 2 && result == ISA_CONTINUE && a.lanes; n++) {
        offsets(w, i, ((uint32_t)i->imm >> (8 * n) & 0xff) * unit * action->bytes, offset[n]);
        near[n] = action->apply_near ? isa_reach_lds_near(&a, offset[n]) : NULL;
        if (!near[n])
            result = isa_reach_lds(&a, offset[n], host[n]);
    }
    for (unsigned n = 0; n < 2 && result == ISA_CONTINUE && a.lanes; n++) {
        struct isa_data r = { .data = data_rows(w, i->src[1 + n]) };
        if (isa_info[i->op].type[0] != ISA_TYPE_NONE)
            r.dst = isa_rows_at(w, i->dst) + n * rows;
        if (near[n])
            action->apply_near(&r, a.lanes, near[n], offset[n]);
        else
            action->apply(&r, a.lanes, host[n], false);
    }
    return result;
}

/* ---- lanes that exchange values -------------------------------------------------------------- */

/* The lane that lane l reads from, by the instruction's offset; ISA_LANES: not a known pattern. */
static unsigned swizzle_source(unsigned l, uint32_t pattern) {
    unsigned group = l & 32, j = l & 31;
    if (!(pattern & 0x8000)) { /* masks, within 32 lanes */
        unsigned and = pattern & 31, or = pattern >> 5 & 31, xor = pattern >> 10 & 31;
        return group | (((j & and) | or) ^ xor);
    }
    if (pattern < 0xc000) /* any order within 4 lanes */
        return (l & ~3u) | (pattern >> (2 * (l & 3)) & 3);
    if (pattern < 0xe000) { /* rotation within 32 lanes; the bits of the mask stay */
        unsigned mask = pattern & 31, by = pattern >> 5 & 31;
        unsigned to = pattern & 0x400 ? j - by : j + by;
        return group | (j & mask) | (to & ~mask & 31);
    }
    return ISA_LANES;
}

EXEC_FN(ds_swizzle_b32) {
    uint32_t from[ISA_LANES];
    for (unsigned l = 0; l < ISA_LANES; l++) {
        from[l] = swizzle_source(l, (uint32_t)i->imm & 0xffff);
        if (from[l] == ISA_LANES)
            return isa_stop_unsupported(w, i, "FFT pattern");
    }
    isa_reach_exchange(isa_row(w, i->dst), isa_row(w, i->src[0]), from, ISA_WAVE_EXEC(w));
    return ISA_CONTINUE;
}

/* Every lane sends its value to a lane; if several send to the same lane, the highest one wins. */
EXEC_FN(ds_permute_b32) {
    uint32_t to[ISA_LANES] = { 0 }, *dst = isa_row(w, i->dst);
    const uint32_t *address = isa_row(w, i->src[0]), *data = isa_row(w, i->src[1]);
    uint64_t exec = ISA_WAVE_EXEC(w);
    for (ISA_EACH_LANE(l, exec))
        to[(address[l] + (uint32_t)i->imm) / 4 % ISA_LANES] = data[l];
    for (ISA_EACH_LANE(l, exec))
        dst[l] = to[l];
    return ISA_CONTINUE;
}

EXEC_FN(ds_bpermute_b32) {
    _Alignas(64) uint32_t byte[ISA_LANES];
    offsets(w, i, (uint32_t)i->imm, byte);
    isa_reach_exchange_bytes(isa_row(w, i->dst), isa_row(w, i->src[1]), byte, ISA_WAVE_EXEC(w));
    return ISA_CONTINUE;
}

EXEC_FN(ds_nop) {
    (void)w, (void)i;
    return ISA_CONTINUE;
}

/* ---- addresses from M0 ----------------------------------------------------------------------- */

static enum isa_result run_addtid(struct isa_wave *w, const struct isa_insn *i,
                                  const struct isa_action *action) {
    _Alignas(64) uint32_t offset[ISA_LANES];
    struct isa_data r = { .dst = isa_rows_at(w, i->dst), .data = data_rows(w, i->src[1]) };
    for (uint32_t l = 0; l < ISA_LANES; l++)
        offset[l] = (ISA_WAVE_M0(w) & 0xffff) + (uint32_t)i->imm + 4 * l;
    return act(w, i, action, &r, offset);
}

EXEC_FN(ds_read_addtid_b32) {
    return run_addtid(w, i, &isa_action_load_dword);
}
EXEC_FN(ds_write_addtid_b32) {
    return run_addtid(w, i, &isa_action_store_dword);
}

/* A counter at M0, moved by the number of lanes; all get what was there. */
static enum isa_result run_counter(struct isa_wave *w, const struct isa_insn *i, bool append) {
    const struct isa_action *action = append ? &isa_action_atomic_add : &isa_action_atomic_sub;
    uint64_t exec = ISA_WAVE_EXEC(w), first = exec & (~exec + 1);
    struct isa_access a = access_of(w, i, action);
    uint32_t count[1][ISA_LANES], before[1][ISA_LANES], offset[ISA_LANES];
    struct isa_data r = { .dst = before, .data = (const uint32_t(*)[ISA_LANES])count };
    void *host[ISA_LANES];
    enum isa_result result = not_gds(w, i);
    if (result != ISA_CONTINUE || !exec)
        return result;
    a.lanes = first;
    for (unsigned l = 0; l < ISA_LANES; l++) {
        offset[l] = (ISA_WAVE_M0(w) & 0xffff) + (uint32_t)i->imm;
        count[0][l] = (uint32_t)__builtin_popcountll(exec);
    }
    if ((result = isa_reach_lds(&a, offset, host)) != ISA_CONTINUE)
        return result;
    action->apply(&r, first, host, false);
    uint32_t *dst = isa_row(w, i->dst), value = before[0][__builtin_ctzll(first)];
    for (ISA_EACH_LANE(l, exec))
        dst[l] = value;
    return ISA_CONTINUE;
}

EXEC_FN(ds_append) {
    return run_counter(w, i, true);
}
EXEC_FN(ds_consume) {
    return run_counter(w, i, false);
}

/* ---- the table ------------------------------------------------------------------------------- */

/* D(mnemonic, action) */
#define SINGLE(D)                                                                                  \
    D(ds_read_b32, load_dword)                                                                     \
    D(ds_read_b64, load_dwordx2)                                                                   \
    D(ds_read_b96, load_dwordx3)                                                                   \
    D(ds_read_b128, load_dwordx4)                                                                  \
    D(ds_read_u8, load_ubyte)                                                                      \
    D(ds_read_i8, load_sbyte)                                                                      \
    D(ds_read_u16, load_ushort)                                                                    \
    D(ds_read_i16, load_sshort)                                                                    \
    D(ds_read_u8_d16, load_ubyte_d16)                                                              \
    D(ds_read_u8_d16_hi, load_ubyte_d16_hi)                                                        \
    D(ds_read_i8_d16, load_sbyte_d16)                                                              \
    D(ds_read_i8_d16_hi, load_sbyte_d16_hi)                                                        \
    D(ds_read_u16_d16, load_short_d16)                                                             \
    D(ds_read_u16_d16_hi, load_short_d16_hi)                                                       \
    D(ds_write_b32, store_dword)                                                                   \
    D(ds_write_b64, store_dwordx2)                                                                 \
    D(ds_write_b96, store_dwordx3)                                                                 \
    D(ds_write_b128, store_dwordx4)                                                                \
    D(ds_write_b8, store_byte)                                                                     \
    D(ds_write_b16, store_short)                                                                   \
    D(ds_write_b8_d16_hi, store_byte_d16_hi)                                                       \
    D(ds_write_b16_d16_hi, store_short_d16_hi)                                                     \
    D(ds_pk_add_f16, atomic_pk_add_f16)                                                            \
    D(ds_pk_add_rtn_f16, atomic_pk_add_f16)                                                        \
    D(ds_pk_add_bf16, atomic_pk_add_bf16)                                                          \
    D(ds_pk_add_rtn_bf16, atomic_pk_add_bf16)                                                      \
    D(ds_wrxchg_rtn_b32, atomic_swap)                                                              \
    D(ds_wrxchg_rtn_b64, atomic_swap_x2)                                                           \
    D(ds_wrap_rtn_b32, atomic_wrap)                                                                \
    D(ds_condxchg32_rtn_b64, atomic_condxchg32_x2)
/* R(ds_NAME_TYPE and ds_NAME_rtn_TYPE, action) */
#define RETURNING(R)                                                                               \
    R(add, u32, atomic_add)                                                                        \
    R(sub, u32, atomic_sub)                                                                        \
    R(rsub, u32, atomic_rsub)                                                                      \
    R(inc, u32, atomic_inc)                                                                        \
    R(dec, u32, atomic_dec)                                                                        \
    R(min, i32, atomic_smin)                                                                       \
    R(max, i32, atomic_smax)                                                                       \
    R(min, u32, atomic_umin)                                                                       \
    R(max, u32, atomic_umax)                                                                       \
    R(and, b32, atomic_and)                                                                        \
    R(or, b32, atomic_or)                                                                          \
    R(xor, b32, atomic_xor)                                                                        \
    R(mskor, b32, atomic_mskor)                                                                    \
    R(min, f32, atomic_min_f32)                                                                    \
    R(max, f32, atomic_max_f32)                                                                    \
    R(add, u64, atomic_add_x2)                                                                     \
    R(sub, u64, atomic_sub_x2)                                                                     \
    R(rsub, u64, atomic_rsub_x2)                                                                   \
    R(inc, u64, atomic_inc_x2)                                                                     \
    R(dec, u64, atomic_dec_x2)                                                                     \
    R(min, i64, atomic_smin_x2)                                                                    \
    R(max, i64, atomic_smax_x2)                                                                    \
    R(min, u64, atomic_umin_x2)                                                                    \
    R(max, u64, atomic_umax_x2)                                                                    \
    R(and, b64, atomic_and_x2)                                                                     \
    R(or, b64, atomic_or_x2)                                                                       \
    R(xor, b64, atomic_xor_x2)                                                                     \
    R(mskor, b64, atomic_mskor_x2)                                                                 \
    R(min, f64, atomic_min_f64)                                                                    \
    R(max, f64, atomic_max_f64)                                                                    \
    R(add, f64, atomic_add_f64)
#define COMPARING(R)                                                                               \
    R(cmpst, b32, atomic_cmpswap)                                                                  \
    R(cmpst, f32, atomic_cmpst_f32)                                                                \
    R(cmpst, b64, atomic_cmpswap_x2)                                                               \
    R(cmpst, f64, atomic_cmpst_f64)
/* T(mnemonic, action, unit) */
#define TWO(T)                                                                                     \
    T(ds_read2_b32, load_dword, 1)                                                                 \
    T(ds_read2st64_b32, load_dword, 64)                                                            \
    T(ds_read2_b64, load_dwordx2, 1)                                                               \
    T(ds_read2st64_b64, load_dwordx2, 64)                                                          \
    T(ds_write2_b32, store_dword, 1)                                                               \
    T(ds_write2st64_b32, store_dword, 64)                                                          \
    T(ds_write2_b64, store_dwordx2, 1)                                                             \
    T(ds_write2st64_b64, store_dwordx2, 64)                                                        \
    T(ds_wrxchg2_rtn_b32, atomic_swap, 1)                                                          \
    T(ds_wrxchg2st64_rtn_b32, atomic_swap, 64)                                                     \
    T(ds_wrxchg2_rtn_b64, atomic_swap_x2, 1)                                                       \
    T(ds_wrxchg2st64_rtn_b64, atomic_swap_x2, 64)

#define RUN_SINGLE(name, action)                                                                   \
    EXEC_FN(name) {                                                                                \
        return run(w, i, &isa_action_##action);                                                    \
    }
#define RUN_RETURNING(name, type, action)                                                          \
    EXEC_FN(ds_##name##_##type) {                                                                  \
        return run(w, i, &isa_action_##action);                                                    \
    }
#define RUN_COMPARING(name, type, action)                                                          \
    EXEC_FN(ds_##name##_##type) {                                                                  \
        return run_compare(w, i, &isa_action_##action);                                            \
    }
#define RUN_TWO(name, action, unit)                                                                \
    EXEC_FN(name) {                                                                                \
        return run_two(w, i, &isa_action_##action, unit);                                          \
    }
SINGLE(RUN_SINGLE)
RETURNING(RUN_RETURNING)
COMPARING(RUN_COMPARING)
TWO(RUN_TWO)

EXEC_FN(ds_add_f32) {
    return run(w, i, isa_action_add_f32_in_mode(w->mode));
}

/* ---- global wave sync ------------------------------------------------------------------------ */

static unsigned semaphore_of(const struct isa_wave *w, const struct isa_insn *i) {
    return ((ISA_WAVE_M0(w) >> 16 & 63) + (uint32_t)i->imm) % ISA_SEMAPHORES;
}

static uint32_t first_lane(struct isa_wave *w, const struct isa_insn *i) {
    uint64_t exec = ISA_WAVE_EXEC(w);
    return isa_row(w, i->src[0])[exec ? __builtin_ctzll(exec) : 0];
}

static enum isa_result add_to_semaphore(struct isa_wave *w, const struct isa_insn *i,
                                        uint32_t add) {
    struct isa_semaphores *s = w->group->semaphores;
    if (!s)
        return isa_stop_unsupported(w, i, "semaphores need a cooperative launch");
    __atomic_fetch_add(&s->count[semaphore_of(w, i)], add, __ATOMIC_SEQ_CST);
    return ISA_CONTINUE;
}

EXEC_FN(ds_gws_init) {
    struct isa_semaphores *s = w->group->semaphores;
    if (s)
        __atomic_store_n(&s->count[semaphore_of(w, i)], first_lane(w, i), __ATOMIC_SEQ_CST);
    return ISA_CONTINUE;
}

EXEC_FN(ds_gws_sema_v) {
    return add_to_semaphore(w, i, 1);
}

EXEC_FN(ds_gws_sema_br) {
    return add_to_semaphore(w, i, first_lane(w, i));
}

EXEC_FN(ds_gws_sema_release_all) {
    struct isa_semaphores *s = w->group->semaphores;
    return add_to_semaphore(
        w, i, s ? __atomic_load_n(&s->waiting[semaphore_of(w, i)], __ATOMIC_SEQ_CST) : 0);
}

/* Takes one, or comes back to this instruction after others had their turn. */
EXEC_FN(ds_gws_sema_p) {
    struct isa_semaphores *s = w->group->semaphores;
    unsigned n = semaphore_of(w, i);
    if (!s)
        return isa_stop_unsupported(w, i, "semaphores need a cooperative launch");
    uint32_t count = __atomic_load_n(&s->count[n], __ATOMIC_SEQ_CST);
    while (count && !__atomic_compare_exchange_n(&s->count[n], &count, count - 1, false,
                                                 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
    if (w->waits != !count)
        __atomic_fetch_add(&s->waiting[n], count ? ~0u : 1, __ATOMIC_SEQ_CST);
    w->waits = !count;
    if (count)
        return ISA_CONTINUE;
    w->ip = i;
    return ISA_SLEEP;
}

EXEC_FN(ds_gws_barrier) {
    (void)w, (void)i;
    return ISA_GRID_BARRIER;
}

#define ENTRY(name)                [ISA_OP_##name] = name,
#define ENTRY_SINGLE(name, action) ENTRY(name)
#define ENTRY_BOTH(name, type, action)                                                             \
    [ISA_OP_ds_##name##_##type] = ds_##name##_##type,                                              \
    [ISA_OP_ds_##name##_rtn_##type] = ds_##name##_##type,
#define ENTRY_TWO(name, action, unit) ENTRY(name)
/* clang-format off */
const isa_exec_fn isa_group_ds[ISA_OP_COUNT] = {
    SINGLE(ENTRY_SINGLE) RETURNING(ENTRY_BOTH) COMPARING(ENTRY_BOTH) TWO(ENTRY_TWO)
    ENTRY_BOTH(add, f32, _)
    ENTRY(ds_swizzle_b32) ENTRY(ds_permute_b32) ENTRY(ds_bpermute_b32) ENTRY(ds_nop)
    ENTRY(ds_read_addtid_b32) ENTRY(ds_write_addtid_b32) ENTRY(ds_append) ENTRY(ds_consume)
    ENTRY(ds_gws_init) ENTRY(ds_gws_barrier) ENTRY(ds_gws_sema_v) ENTRY(ds_gws_sema_br)
    ENTRY(ds_gws_sema_p) ENTRY(ds_gws_sema_release_all)
};
/* clang-format on */
