/* taint_memory.c - values that nothing has defined: loads, stores, atomics, and addresses. */
#include "isa/exec.h"
#include "isa/taint_parts.h"

/* ---- addresses ------------------------------------------------------------------------------- */

/* Lanes that exchange registers by way of LDS have no address. */
static bool exchanges(const struct isa_insn *i) {
    return i->op == ISA_OP_ds_swizzle_b32 || i->op == ISA_OP_ds_permute_b32 ||
           i->op == ISA_OP_ds_bpermute_b32 || i->op == ISA_OP_ds_nop;
}

static unsigned address_dwords(const struct isa_insn *i) {
    switch (isa_info[i->op].encoding) {
    case ISA_ENC_DS:
    case ISA_ENC_SCRATCH:
        return 1;
    case ISA_ENC_FLAT:
    case ISA_ENC_GLOBAL:
        return i->src[2] == ISA_OFF ? 2 : 1;
    case ISA_ENC_MUBUF:
    case ISA_ENC_MTBUF:
        return ((i->memory & ISA_MEM_OFFEN) != 0) + ((i->memory & ISA_MEM_IDXEN) != 0);
    default:
        return 0;
    }
}

static uint64_t scalar_address(struct isa_taint *t, const struct isa_insn *i) {
    switch (isa_info[i->op].encoding) {
    case ISA_ENC_SMEM:
        return isa_taint_scalars(t, i->src[0], 2) |
               (i->src[1] < ISA_SGPRS ? isa_taint_scalars(t, i->src[1], 1) : 0);
    case ISA_ENC_MUBUF:
    case ISA_ENC_MTBUF:
        return isa_taint_scalars(t, i->src[1], 4) |
               (i->src[2] < ISA_SGPRS ? isa_taint_scalars(t, i->src[2], 1) : 0);
    case ISA_ENC_GLOBAL:
        return i->src[2] < ISA_SGPRS ? isa_taint_scalars(t, i->src[2], 2) : 0;
    case ISA_ENC_SCRATCH:
        return i->src[2] < ISA_SGPRS ? isa_taint_scalars(t, i->src[2], 1) : 0;
    default:
        return 0;
    }
}

static void define_address(struct isa_taint *t, const struct isa_insn *i) {
    for (unsigned d = 0; d < address_dwords(i) && i->src[0] >= ISA_VGPR0 && i->src[0] != ISA_OFF;
         d++)
        isa_taint_write_row(t, i->src[0] + d, ~UINT64_C(0), 0);
    unsigned base = isa_info[i->op].encoding == ISA_ENC_SMEM ? i->src[0] : i->src[2];
    for (unsigned d = 0; d < 2 && base + d < ISA_SGPRS; d++)
        t->sgpr[base + d] = 0;
}

void isa_taint_memory_before(struct isa_taint *t, struct isa_wave *w, const struct isa_insn *i) {
    bool scalar = isa_info[i->op].encoding == ISA_ENC_SMEM;
    bool accesses = isa_info[i->op].encoding == ISA_ENC_DS || isa_info[i->op].forms;
    if ((!t->exec && !scalar) || !accesses)
        return;
    if (exchanges(i)) {
        if (i->op == ISA_OP_ds_bpermute_b32) {
            uint64_t data = isa_taint_rows(t, i->src[1], 1);
            const uint32_t *from = isa_row(w, i->src[0]);
            for (unsigned l = 0; l < ISA_LANES && data; l++)
                t->mask |= (data >> ((from[l] + (uint32_t)i->imm) / 4 % ISA_LANES) & 1) << l;
        }
        return;
    }
    uint64_t lanes = i->src[0] >= ISA_VGPR0 && i->src[0] != ISA_OFF
                         ? isa_taint_rows(t, i->src[0], address_dwords(i)) & t->exec
                         : 0;
    bool undefined = lanes || scalar_address(t, i);
    if (!undefined)
        return;
    unsigned first = t->exec && !scalar ? (unsigned)__builtin_ctzll(t->exec) : 0;
    isa_taint_use(t, w, i, ISA_TAINT_ADDRESS, lanes ? (unsigned)__builtin_ctzll(lanes) : first);
    define_address(t, i);
}

/* ---- accesses -------------------------------------------------------------------------------- */

void isa_taint_note(struct isa_taint *t, const struct isa_access *a, int row,
                    const uint64_t address[ISA_LANES]) {
    if (t->accesses == ISA_TAINT_ACCESSES)
        return;
    struct isa_taint_access *n = &t->access[t->accesses++];
    n->space = a->space == ISA_SPACE_GLOBAL ? ISA_TAINT_GLOBAL
               : a->space == ISA_SPACE_LDS  ? ISA_TAINT_LDS
                                            : ISA_TAINT_SCRATCH;
    n->kind = a->kind;
    n->row = (int8_t)row;
    n->bytes = a->bytes;
    n->lanes = a->lanes;
    memcpy(n->address, address, sizeof n->address);
}

/* Lanes whose dword d is undefined in memory; sets t->origin. */
static uint64_t undefined_lanes(struct isa_taint *t, const struct isa_wave *w,
                                const struct isa_taint_access *a, unsigned d) {
    uint32_t bytes = a->bytes - 4 * d < 4 ? a->bytes - 4 * d : 4;
    uint64_t mask = 0;
    for (uint64_t left = a->lanes; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctzll(left);
        if (!t->host->is_undefined(t->host->context, w, a->space, a->address[l] + 4 * d, bytes))
            continue;
        mask |= UINT64_C(1) << l;
        t->origin = (struct isa_origin){ a->space, a->address[l] + 4 * d };
    }
    return mask;
}

static void define(struct isa_taint *t, const struct isa_wave *w, const struct isa_taint_access *a,
                   unsigned d, uint64_t undefined) {
    uint32_t bytes = a->bytes - 4 * d < 4 ? a->bytes - 4 * d : 4;
    for (uint64_t left = a->lanes; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctzll(left);
        t->host->define(t->host->context, w, a->space, a->address[l] + 4 * d, bytes,
                        undefined >> l & 1);
    }
}

/* A dword of every lane of the access is written; `undefined`: the lanes whose value is. */
static void store(struct isa_taint *t, const struct isa_wave *w, const struct isa_insn *i,
                  const struct isa_taint_access *a, unsigned d, uint64_t undefined) {
    undefined &= a->lanes;
    if (a->space == ISA_TAINT_GLOBAL && undefined) {
        isa_taint_use(t, w, i, ISA_TAINT_STORE, (unsigned)__builtin_ctzll(undefined));
        undefined = 0;
    }
    define(t, w, a, d, undefined);
}

static unsigned data_code(const struct isa_insn *i, unsigned n) {
    unsigned encoding = isa_info[i->op].encoding;
    if (encoding == ISA_ENC_MUBUF || encoding == ISA_ENC_MTBUF)
        return i->dst;
    return encoding == ISA_ENC_DS && n ? i->src[2] : i->src[1];
}

static uint64_t data_mask(struct isa_taint *t, unsigned code, unsigned row) {
    return code >= ISA_VGPR0 && code < ISA_OFF ? isa_taint_rows(t, code + row, 1) : 0;
}

/* One access; `row` is where its data begin among the registers of the instruction. */
static void follow(struct isa_taint *t, struct isa_wave *w, const struct isa_insn *i, unsigned n,
                   unsigned row) {
    const struct isa_taint_access *a = &t->access[n];
    bool ds = isa_info[i->op].encoding == ISA_ENC_DS;
    bool returns = isa_info[i->op].type[0] != ISA_TYPE_NONE &&
                   (a->kind == ISA_LOAD || ds || i->memory & ISA_MEM_GLC);
    bool whole = !(isa_info[i->op].forms & ISA_FORM_HALF);
    for (unsigned d = 0; d < (a->bytes + 3) / 4; d++) {
        uint64_t data =
            a->kind == ISA_LOAD ? 0 : data_mask(t, data_code(i, ds ? n : 0), d + (ds ? 0 : row));
        struct isa_origin of_data = t->origin;
        uint64_t memory = a->kind == ISA_STORE ? 0 : undefined_lanes(t, w, a, d);
        if (a->kind != ISA_STORE && returns && i->dst >= ISA_VGPR0)
            isa_taint_write_row(t, i->dst + row + d, a->lanes, whole ? memory : 0);
        if (data)
            t->origin = of_data;
        if (a->kind != ISA_LOAD)
            store(t, w, i, a, d, data | memory);
    }
}

static void follow_scalar(struct isa_taint *t, const struct isa_wave *w, const struct isa_insn *i) {
    const struct isa_taint_access *a = &t->access[0];
    for (unsigned d = 0; d < a->bytes / 4 && i->dst + d < ISA_SGPRS; d++) {
        if (a->kind != ISA_LOAD) {
            define(t, w, a, d, 0);
            continue;
        }
        uint64_t undefined = undefined_lanes(t, w, a, d);
        t->sgpr[i->dst + d] = undefined ? ~0u : 0;
        if (undefined)
            t->sgpr_origin[i->dst + d] = t->origin;
    }
}

void isa_taint_memory_after(struct isa_taint *t, struct isa_wave *w, const struct isa_insn *i) {
    const struct isa_info *info = &isa_info[i->op];
    unsigned row = 0;
    if (info->encoding == ISA_ENC_SMEM) {
        if (t->accesses)
            follow_scalar(t, w, i);
        else if (i->dst < ISA_SGPRS)
            for (unsigned d = 0; d < isa_type_dwords(info->type[0]) && i->dst + d < ISA_SGPRS; d++)
                t->sgpr[i->dst + d] = 0;
        return;
    }
    if (info->forms & ISA_FORM_TOLDS && t->accesses == 2) {
        define(t, w, &t->access[1], 0, undefined_lanes(t, w, &t->access[0], 0));
        return;
    }
    bool returns = info->type[0] != ISA_TYPE_NONE && !(info->forms & ISA_FORM_STORE);
    for (unsigned d = 0; returns && d < isa_type_dwords(info->type[0]) && i->dst >= ISA_VGPR0; d++)
        if (info->forms & ISA_FORM_LOAD || info->encoding == ISA_ENC_DS || i->memory & ISA_MEM_GLC)
            isa_taint_write_row(t, i->dst + d, t->exec, t->mask);
    for (unsigned n = 0; n < t->accesses; n++) {
        follow(t, w, i, n, t->access[n].row >= 0 ? (unsigned)t->access[n].row : row);
        if (info->encoding != ISA_ENC_FLAT)
            row += (t->access[n].bytes + 3) / 4;
    }
}
