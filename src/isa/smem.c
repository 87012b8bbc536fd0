/* smem.c - SMEM: loads, stores and atomics of scalar registers.
 *
 * The lower bits of an address are ignored: it is a multiple of 4. A scalar buffer is bounded by
 * its descriptor: loads beyond it give 0, stores and atomics do nothing. */
#include "isa/action.h"

#define EXEC_FN(name) static enum isa_result name(struct isa_wave *w, const struct isa_insn *i)

static unsigned dwords_of(const struct isa_insn *i) {
    return isa_type_dwords(isa_info[i->op].type[0]);
}

static bool is_buffer(const struct isa_insn *i) {
    return isa_info[i->op].type[1] == ISA_TYPE_B128;
}

static bool is_scratch(const struct isa_insn *i) {
    return (i->op >= ISA_OP_s_scratch_load_dword && i->op <= ISA_OP_s_scratch_load_dwordx4) ||
           (i->op >= ISA_OP_s_scratch_store_dword && i->op <= ISA_OP_s_scratch_store_dwordx4);
}

/* Base, and the bytes that a buffer has from there. */
static uint64_t base_of(const struct isa_wave *w, const struct isa_insn *i, uint64_t *limit) {
    uint64_t base = isa_scalar64(w, i, i->src[0], ISA_TYPE_B64);
    *limit = UINT64_MAX;
    if (!is_buffer(i))
        return base;
    uint32_t stride = (uint32_t)(base >> 48) & 0x3fff, records = w->sgpr[i->src[0] + 2];
    *limit = stride ? (uint64_t)records * stride : records;
    return base & UINT64_C(0xffffffffffff);
}

static uint64_t offset_of(const struct isa_wave *w, const struct isa_insn *i) {
    uint64_t offset = i->memory & ISA_MEM_IMM ? (uint64_t)(int64_t)i->imm : 0;
    if (i->src[1] != ISA_OFF) /* of scratch, in units of 64 bytes */
        offset += (uint64_t)isa_scalar32(w, i, i->src[1]) << (is_scratch(i) ? 6 : 0);
    return offset;
}

static void *reach_one(const struct isa_access *a, uint64_t at, enum isa_result *result) {
    uint64_t address[ISA_LANES] = { at };
    void *host[ISA_LANES];
    *result = isa_reach(a, address, host);
    return *result == ISA_CONTINUE ? host[0] : NULL;
}

/* Host memory for the access, NULL with *result ISA_CONTINUE if a buffer ends before it. */
static void *reach(struct isa_wave *w, const struct isa_insn *i, enum isa_access_kind kind,
                   unsigned bytes, enum isa_result *result) {
    uint64_t limit, base = base_of(w, i, &limit), offset = offset_of(w, i) & ~UINT64_C(3);
    uint64_t address = (base & ~UINT64_C(3)) + offset;
    struct isa_access a = { .wave = w,
                            .insn = i,
                            .space = ISA_SPACE_GLOBAL,
                            .kind = (uint8_t)kind,
                            .scalar = true,
                            .bytes = bytes,
                            .lanes = 1 };
    const struct isa_memory *m = w->memory;
    *result = ISA_CONTINUE;
    if (limit != UINT64_MAX && (offset > limit || limit - offset < bytes))
        return NULL;
    void *host = m->span ? m->span(m->context, &a, address, bytes) : NULL;
    return host ? host : reach_one(&a, address, result);
}

EXEC_FN(load) {
    unsigned bytes = 4 * dwords_of(i);
    enum isa_result result;
    const void *from = reach(w, i, ISA_LOAD, bytes, &result);
    if (from)
        memcpy(&w->sgpr[i->dst], from, bytes);
    else if (result == ISA_CONTINUE)
        memset(&w->sgpr[i->dst], 0, bytes);
    return result;
}

EXEC_FN(store) {
    unsigned bytes = 4 * dwords_of(i);
    enum isa_result result;
    void *to = reach(w, i, ISA_STORE, bytes, &result);
    if (to)
        memcpy(to, &w->sgpr[i->dst], bytes);
    return result;
}

/* The action of vector atomics, on a wave of one lane. */
static enum isa_result atomic(struct isa_wave *w, const struct isa_insn *i,
                              const struct isa_action *action) {
    uint32_t data[4][ISA_LANES], before[2][ISA_LANES];
    unsigned rows = action->bytes / 4;
    enum isa_result result;
    void *host[ISA_LANES] = { reach(w, i, ISA_ATOMIC, action->bytes, &result) };
    if (!host[0])
        return result;
    for (unsigned d = 0; d < dwords_of(i); d++)
        data[d][0] = w->sgpr[i->dst + d];
    struct isa_data r = { .dst = before,
                          .data = (const uint32_t(*)[ISA_LANES])data,
                          .data1 = (const uint32_t(*)[ISA_LANES])data + rows };
    if (dwords_of(i) == rows)
        r.data1 = NULL;
    action->apply(&r, 1, host, true);
    for (unsigned d = 0; d < rows && i->memory & ISA_MEM_GLC; d++)
        w->sgpr[i->dst + d] = before[d][0];
    return ISA_CONTINUE;
}

EXEC_FN(s_memtime) {
    bool real = i->op == ISA_OP_s_memrealtime;
    uint64_t now = w->host && w->host->clock ? w->host->clock(w->host->context, real) : w->executed;
    isa_write64(w, i->dst, now);
    return ISA_CONTINUE;
}

EXEC_FN(nothing) {
    (void)w, (void)i;
    return ISA_CONTINUE;
}

#define RUN_ATOMIC(name)                                                                           \
    EXEC_FN(run_##name) {                                                                          \
        return atomic(w, i, &isa_action_##name);                                                   \
    }
ISA_INTEGER_ATOMICS(RUN_ATOMIC)

#define ENTRY_ATOMIC(name) [ISA_OP_s_##name] = run_##name, [ISA_OP_s_buffer_##name] = run_##name,
/* clang-format off */
const isa_exec_fn isa_group_smem[ISA_OP_COUNT] = {
    [ISA_OP_s_load_dword] = load, [ISA_OP_s_load_dwordx2] = load, [ISA_OP_s_load_dwordx4] = load,
    [ISA_OP_s_load_dwordx8] = load, [ISA_OP_s_load_dwordx16] = load,
    [ISA_OP_s_buffer_load_dword] = load, [ISA_OP_s_buffer_load_dwordx2] = load,
    [ISA_OP_s_buffer_load_dwordx4] = load, [ISA_OP_s_buffer_load_dwordx8] = load,
    [ISA_OP_s_buffer_load_dwordx16] = load,
    [ISA_OP_s_store_dword] = store, [ISA_OP_s_store_dwordx2] = store, [ISA_OP_s_store_dwordx4] = store,
    [ISA_OP_s_buffer_store_dword] = store, [ISA_OP_s_buffer_store_dwordx2] = store,
    [ISA_OP_s_buffer_store_dwordx4] = store,
    [ISA_OP_s_scratch_load_dword] = load, [ISA_OP_s_scratch_load_dwordx2] = load,
    [ISA_OP_s_scratch_load_dwordx4] = load, [ISA_OP_s_scratch_store_dword] = store,
    [ISA_OP_s_scratch_store_dwordx2] = store, [ISA_OP_s_scratch_store_dwordx4] = store,
    [ISA_OP_s_memtime] = s_memtime, [ISA_OP_s_memrealtime] = s_memtime,
    [ISA_OP_s_dcache_inv] = nothing, [ISA_OP_s_dcache_wb] = nothing,
    [ISA_OP_s_dcache_inv_vol] = nothing, [ISA_OP_s_dcache_wb_vol] = nothing,
    [ISA_OP_s_atc_probe] = nothing, [ISA_OP_s_atc_probe_buffer] = nothing,
    [ISA_OP_s_dcache_discard] = nothing, [ISA_OP_s_dcache_discard_x2] = nothing,
    ISA_INTEGER_ATOMICS(ENTRY_ATOMIC)
};
/* clang-format on */
