/* flat.c - FLAT, GLOBAL and SCRATCH instructions.
 *
 * A flat address is one of three things by its upper half: the group's LDS (shared_base), the
 * lane's scratch (private_base), or global memory. Lanes of one instruction may differ.
 *
 * Scratch is swizzled: dword d of lane l is at scratch_base + (d * 64 + l) * 4, so that lanes which
 * access the same variable lie side by side. An element of several dwords, or one that is not
 * aligned, is therefore collected from pieces before the action sees it, and spread afterwards. */
#include "isa/action.h"

static struct isa_access access_of(struct isa_wave *w, const struct isa_insn *i,
                                   const struct isa_action *act, enum isa_space space,
                                   uint64_t lanes) {
    return (struct isa_access){ .wave = w,
                                .insn = i,
                                .space = (uint8_t)space,
                                .kind = act->kind,
                                .bytes = act->bytes,
                                .lanes = lanes };
}

/* The first lane whose address an atomic cannot have, as a fault; ISA_CONTINUE: there is none. */
static enum isa_result check_alignment(const struct isa_access *a,
                                       const uint64_t address[ISA_LANES]) {
    if (a->kind != ISA_ATOMIC)
        return ISA_CONTINUE;
    for (ISA_EACH_LANE(l, a->lanes))
        if (address[l] % a->bytes)
            return isa_stop_fault(a, (unsigned)l, address[l], "misaligned atomic");
    return ISA_CONTINUE;
}

/* ---- global ---------------------------------------------------------------------------------- */

static enum isa_result act_global(struct isa_wave *w, const struct isa_insn *i,
                                  const struct isa_action *act, const struct isa_data *r,
                                  uint64_t lanes, const uint64_t address[ISA_LANES]) {
    struct isa_access a = access_of(w, i, act, ISA_SPACE_GLOBAL, lanes);
    void *host[ISA_LANES], *row = act->apply_row ? isa_reach_row(&a, address) : NULL;
    if (row) {
        act->apply_row(r, row);
        return ISA_CONTINUE;
    }
    uint32_t offset[ISA_LANES];
    uint8_t *near = act->apply_near ? isa_reach_near(&a, address, offset) : NULL;
    if (near) {
        act->apply_near(r, lanes, near, offset);
        return ISA_CONTINUE;
    }
    enum isa_result result = check_alignment(&a, address);
    if (result == ISA_CONTINUE)
        result = isa_reach(&a, address, host);
    if (result == ISA_CONTINUE)
        act->apply(r, lanes, host, true);
    return result;
}

static void global_addresses(struct isa_wave *w, const struct isa_insn *i,
                             uint64_t address[ISA_LANES]) {
    const uint32_t(*v)[ISA_LANES] = (const uint32_t(*)[ISA_LANES])isa_rows_at(w, i->src[0]);
    uint64_t offset = (uint64_t)(int64_t)i->imm;
    if (i->src[2] == ISA_OFF)
        isa_reach_addresses(address, v[0], v[1], offset);
    else
        isa_reach_addresses(address, v[0], NULL,
                            offset + isa_scalar64(w, i, i->src[2], ISA_TYPE_B64));
}

static enum isa_result run_global(struct isa_wave *w, const struct isa_insn *i,
                                  const struct isa_action *act) {
    uint64_t address[ISA_LANES], lanes = ISA_WAVE_EXEC(w);
    struct isa_data r = isa_data_of(w, i, act, i->src[1]);
    if (!lanes)
        return ISA_CONTINUE;
    global_addresses(w, i, address);
    return act_global(w, i, act, &r, lanes, address);
}

/* ---- scratch --------------------------------------------------------------------------------- */

enum { ELEMENT_MAX = 16 };

/* The wave's whole scratch in host memory; NULL after a fault. */
static uint8_t *scratch_memory(const struct isa_access *a) {
    const struct isa_wave *w = a->wave;
    const struct isa_memory *m = w->memory;
    if (!w->scratch_bytes || !m->span)
        return NULL;
    return m->span(m->context, a, w->scratch_base, (uint64_t)w->scratch_bytes * ISA_LANES);
}

static void copy_scratch(uint8_t *element, uint8_t *memory, unsigned lane, uint32_t offset,
                         unsigned bytes, bool store) {
    for (unsigned done = 0; done < bytes;) {
        uint32_t at = offset + done, inside = at % 4;
        unsigned piece = 4 - inside < bytes - done ? 4 - inside : bytes - done;
        uint8_t *place = memory + ((size_t)(at / 4) * ISA_LANES + lane) * 4 + inside;
        if (store)
            memcpy(place, element + done, piece);
        else
            memcpy(element + done, place, piece);
        done += piece;
    }
}

/* Dword by dword, where no check per lane is needed; false if one is. */
static bool act_scratch_near(const struct isa_access *a, const struct isa_action *act,
                             const struct isa_data *r, const uint32_t offset[ISA_LANES]) {
    const struct isa_action *dword =
        act->kind == ISA_LOAD ? &isa_action_load_dword : &isa_action_store_dword;
    struct isa_access one = *a;
    struct isa_data rows = *r;
    uint32_t at[ISA_LANES], swizzled[ISA_LANES];
    if (act->bytes <= 4) {
        uint8_t *near = act->apply_near
                            ? isa_reach_scratch_near(a, a->wave->scratch_base, offset, swizzled)
                            : NULL;
        if (near)
            act->apply_near(r, a->lanes, near, swizzled);
        return near;
    }
    one.bytes = 4;
    for (uint32_t d = 0; d < act->bytes / 4u; d++) {
        isa_reach_offsets(at, offset, 4 * d);
        uint8_t *near = isa_reach_scratch_near(&one, a->wave->scratch_base, at, swizzled);
        if (!near)
            return false;
        dword->apply_near(&rows, a->lanes, near, swizzled);
        if (rows.dst)
            rows.dst++;
        if (rows.data)
            rows.data++;
    }
    return true;
}

static enum isa_result act_scratch(struct isa_wave *w, const struct isa_insn *i,
                                   const struct isa_action *act, const struct isa_data *r,
                                   uint64_t lanes, const uint32_t offset[ISA_LANES]) {
    struct isa_access a = access_of(w, i, act, ISA_SPACE_SCRATCH, lanes);
    uint8_t element[ISA_LANES][ELEMENT_MAX], *memory = NULL;
    void *host[ISA_LANES];
    if (w->memory->frame)
        w->memory->frame(w->memory->context, &a, offset);
    if (act_scratch_near(&a, act, r, offset))
        return ISA_CONTINUE;
    for (ISA_EACH_LANE(l, lanes)) {
        if (offset[l] > w->scratch_bytes || w->scratch_bytes - offset[l] < act->bytes)
            return isa_stop_fault(&a, (unsigned)l, offset[l], "outside the lane's scratch");
        host[l] = element[l];
    }
    if (!(memory = scratch_memory(&a)))
        return isa_stop_fault(&a, (unsigned)__builtin_ctzll(lanes), w->scratch_base,
                              "the wave has no scratch memory");
    if (w->memory->scratch)
        w->memory->scratch(w->memory->context, &a, offset);
    if (act->kind != ISA_STORE)
        for (ISA_EACH_LANE(l, lanes))
            copy_scratch(element[l], memory, (unsigned)l, offset[l], act->bytes, false);
    act->apply(r, lanes, host, false);
    if (act->kind != ISA_LOAD)
        for (ISA_EACH_LANE(l, lanes))
            copy_scratch(element[l], memory, (unsigned)l, offset[l], act->bytes, true);
    return ISA_CONTINUE;
}

static void scratch_offsets(struct isa_wave *w, const struct isa_insn *i,
                            uint32_t offset[ISA_LANES]) {
    uint32_t base = (uint32_t)i->imm;
    if (i->src[2] != ISA_OFF)
        base += isa_scalar32(w, i, i->src[2]);
    static const uint32_t zeros[ISA_LANES];
    isa_reach_offsets(offset, i->src[0] != ISA_OFF ? isa_row(w, i->src[0]) : zeros, base);
}

static enum isa_result run_scratch(struct isa_wave *w, const struct isa_insn *i,
                                   const struct isa_action *act) {
    uint32_t offset[ISA_LANES];
    struct isa_data r = isa_data_of(w, i, act, i->src[1]);
    if (!ISA_WAVE_EXEC(w))
        return ISA_CONTINUE;
    scratch_offsets(w, i, offset);
    return act_scratch(w, i, act, &r, ISA_WAVE_EXEC(w), offset);
}

/* ---- flat ------------------------------------------------------------------------------------ */

static enum isa_result act_lds(struct isa_wave *w, const struct isa_insn *i,
                               const struct isa_action *act, const struct isa_data *r,
                               uint64_t lanes, const uint32_t offset[ISA_LANES]) {
    struct isa_access a = access_of(w, i, act, ISA_SPACE_LDS, lanes);
    void *host[ISA_LANES];
    uint8_t *near = act->apply_near ? isa_reach_lds_near(&a, offset) : NULL;
    if (near) {
        act->apply_near(r, lanes, near, offset);
        return ISA_CONTINUE;
    }
    enum isa_result result = isa_reach_lds(&a, offset, host);
    if (result == ISA_CONTINUE)
        act->apply(r, lanes, host, false);
    return result;
}

/* The lanes whose address lies in that aperture; none if the wave has no such aperture. *alike is
 * the upper half of all addresses; alike is NULL if they differ. */
static uint64_t lanes_in(const uint64_t address[ISA_LANES], uint64_t lanes, uint64_t aperture,
                         const uint64_t *alike) {
    uint64_t in = 0;
    if (!aperture)
        return 0;
    if (alike)
        return *alike == aperture >> 32 ? lanes : 0;
    for (ISA_EACH_LANE(l, lanes))
        in |= (uint64_t)(address[l] >> 32 == aperture >> 32) << l;
    return in;
}

static enum isa_result run_flat(struct isa_wave *w, const struct isa_insn *i,
                                const struct isa_action *act) {
    uint64_t address[ISA_LANES], lanes = ISA_WAVE_EXEC(w), upper;
    _Alignas(64) uint32_t low[ISA_LANES];
    struct isa_data r = isa_data_of(w, i, act, i->src[1]);
    if (!lanes)
        return ISA_CONTINUE;
    global_addresses(w, i, address);
    const uint64_t *alike = isa_reach_upper(address, lanes, &upper) ? &upper : NULL;
    uint64_t lds = lanes_in(address, lanes, w->shared_base, alike);
    uint64_t scratch = lanes_in(address, lanes, w->private_base, alike);
    enum isa_result result = ISA_CONTINUE;
    if (lds | scratch)
        isa_reach_lower(low, address);
    if (lanes & ~(lds | scratch))
        result = act_global(w, i, act, &r, lanes & ~(lds | scratch), address);
    if (result == ISA_CONTINUE && lds)
        result = act_lds(w, i, act, &r, lds, low);
    if (result == ISA_CONTINUE && scratch)
        result = act_scratch(w, i, act, &r, scratch, low);
    return result;
}

/* ---- from memory to LDS ---------------------------------------------------------------------- */

/* A load whose result goes to LDS[M0 + offset + 4 * lane] instead of a register. */
static enum isa_result run_to_lds(struct isa_wave *w, const struct isa_insn *i,
                                  const struct isa_action *load, bool scratch) {
    uint32_t loaded[1][ISA_LANES], place[ISA_LANES], offset[ISA_LANES];
    uint64_t address[ISA_LANES], lanes = ISA_WAVE_EXEC(w);
    struct isa_data in = { .dst = loaded };
    struct isa_data out = { .data = (const uint32_t(*)[ISA_LANES])loaded };
    enum isa_result result;
    if (!lanes)
        return ISA_CONTINUE;
    if (scratch) {
        scratch_offsets(w, i, offset);
        result = act_scratch(w, i, load, &in, lanes, offset);
    } else {
        global_addresses(w, i, address);
        result = act_global(w, i, load, &in, lanes, address);
    }
    for (uint32_t l = 0; l < ISA_LANES; l++)
        place[l] = (ISA_WAVE_M0(w) & 0xffff) + (uint32_t)i->imm + 4 * l;
    return result == ISA_CONTINUE ? act_lds(w, i, &isa_action_store_dword, &out, lanes, place)
                                  : result;
}

/* ---- the table ------------------------------------------------------------------------------- */

#define RUN(space, name)                                                                           \
    static enum isa_result space##_##name(struct isa_wave *w, const struct isa_insn *i) {          \
        return run_##space(w, i, &isa_action_##name);                                              \
    }
#define RUN_GLOBAL(name)  RUN(global, name)
#define RUN_SCRATCH(name) RUN(scratch, name)
#define RUN_FLAT(name)    RUN(flat, name)
ISA_LOADS(RUN_GLOBAL)
ISA_STORES(RUN_GLOBAL)
ISA_INTEGER_ATOMICS(RUN_GLOBAL)
ISA_FLOAT_ATOMICS(RUN_GLOBAL)
RUN_GLOBAL(atomic_pk_add_bf16)
ISA_LOADS(RUN_SCRATCH)
ISA_STORES(RUN_SCRATCH)
ISA_LOADS(RUN_FLAT)
ISA_STORES(RUN_FLAT)
ISA_INTEGER_ATOMICS(RUN_FLAT)
ISA_FLOAT_ATOMICS(RUN_FLAT)
RUN_FLAT(atomic_pk_add_bf16)

#define RUN_TO_LDS(name)                                                                           \
    static enum isa_result global_load_lds_##name(struct isa_wave *w, const struct isa_insn *i) {  \
        return run_to_lds(w, i, &isa_action_load_##name, false);                                   \
    }                                                                                              \
    static enum isa_result scratch_load_lds_##name(struct isa_wave *w, const struct isa_insn *i) { \
        return run_to_lds(w, i, &isa_action_load_##name, true);                                    \
    }
#define TO_LDS(A) A(ubyte) A(sbyte) A(ushort) A(sshort) A(dword)
TO_LDS(RUN_TO_LDS)

#define ENTRY_GLOBAL(name)  [ISA_OP_global_##name] = global_##name,
#define ENTRY_SCRATCH(name) [ISA_OP_scratch_##name] = scratch_##name,
#define ENTRY_FLAT(name)    [ISA_OP_flat_##name] = flat_##name,
#define ENTRY_TO_LDS(name)                                                                         \
    [ISA_OP_global_load_lds_##name] = global_load_lds_##name,                                      \
    [ISA_OP_scratch_load_lds_##name] = scratch_load_lds_##name,
/* clang-format off */
const isa_exec_fn isa_group_flat[ISA_OP_COUNT] = {
    ISA_LOADS(ENTRY_GLOBAL) ISA_STORES(ENTRY_GLOBAL)
    ISA_INTEGER_ATOMICS(ENTRY_GLOBAL) ISA_FLOAT_ATOMICS(ENTRY_GLOBAL) ENTRY_GLOBAL(atomic_pk_add_bf16)
    ISA_LOADS(ENTRY_SCRATCH) ISA_STORES(ENTRY_SCRATCH)
    ISA_LOADS(ENTRY_FLAT) ISA_STORES(ENTRY_FLAT)
    ISA_INTEGER_ATOMICS(ENTRY_FLAT) ISA_FLOAT_ATOMICS(ENTRY_FLAT) ENTRY_FLAT(atomic_pk_add_bf16)
    TO_LDS(ENTRY_TO_LDS)
};
/* clang-format on */
