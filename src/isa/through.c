/* through.c - pointer arguments along the paths of a kernel (paths.h); see through.h.
 *
 * A vector register written while some lanes are off holds the new value in the other lanes only.
 * When EXEC grows again, a pointer in such a register no longer belongs to any argument. */
#include "isa/through.h"

#include "isa/paths.h"

#include <stdlib.h>
#include <string.h>

/* What a register holds. From ARGUMENT on: a pointer, derived from that argument. */
enum value {
    UNSEEN, /* no path has come here */
    NUMBER, /* certainly no pointer */
    LOADED, /* from memory: anything */
    NOBODY, /* made of pointers in some other way */
    KERNARG,
    ARGUMENT
};
enum { REGISTERS = ISA_PATHS_REGISTERS };

struct state {
    uint8_t value[REGISTERS]; /* by register: SGPRs by code, then vector registers */
    struct isa_paths_lanes lanes;
};

struct finder {
    const struct isa_through_kernel *k;
    uint8_t *found;
};

/* ---- values ---------------------------------------------------------------------------------- */

static uint8_t join(uint8_t a, uint8_t b) {
    if (a == b || b == UNSEEN)
        return a;
    if (a == UNSEEN)
        return b;
    if (a == NUMBER)
        return b; /* a number where others have a pointer is not used as one */
    return b == NUMBER ? a : NOBODY;
}

static bool is_pointer(uint8_t v) {
    return v >= KERNARG;
}

/* A pointer and numbers make a pointer; anything else made of pointers belongs to no argument. */
static uint8_t sum(uint8_t a, uint8_t b) {
    if (a == NOBODY || b == NOBODY || (is_pointer(a) && is_pointer(b)))
        return NOBODY;
    if (a == KERNARG || b == KERNARG)
        return NOBODY; /* the offset is not followed */
    return a > b ? a : b;
}

static uint8_t blend(uint8_t a, uint8_t b) {
    uint8_t s = sum(a, b);
    return is_pointer(s) ? (uint8_t)NOBODY : s;
}

static uint8_t get(const struct state *s, unsigned code) {
    int slot = isa_paths_register(code);
    if (slot < 0)
        return code >= ISA_SHARED_BASE && code <= ISA_PRIVATE_LIMIT ? LOADED : NUMBER;
    return s->value[slot];
}

static void set(struct state *s, unsigned code, uint8_t value) {
    int slot = isa_paths_register(code);
    if (slot < 0)
        return;
    s->value[slot] = value;
    if (slot >= ISA_SGPRS)
        s->lanes.in_part[slot - ISA_SGPRS] = s->lanes.is_partial;
}

/* Dword d of source n: constants have none. */
static uint8_t source(const struct state *s, const struct isa_insn *i, unsigned n, unsigned d) {
    unsigned code = i->src[n];
    return isa_type_dwords(isa_info[i->op].type[n + 1]) > d
               ? get(s, code + (isa_paths_register(code) < 0 ? 0 : d))
               : (uint8_t)NUMBER;
}

/* ---- EXEC ------------------------------------------------------------------------------------ */

static void widen(struct state *s) {
    for (unsigned r = 0; r < ISA_VGPRS; r++)
        if (s->lanes.in_part[r] && is_pointer(s->value[ISA_SGPRS + r]))
            s->value[ISA_SGPRS + r] = NOBODY;
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* How the dwords of a result come from those of the sources. */
enum rule {
    BLENDS, /* numbers; pointers are lost */
    MOVES,  /* src0 */
    ADDS,   /* the sum of all sources, dword by dword */
    LESS,   /* src0 minus a number */
    CHOOSES,
    ADDS_LAST, /* the last source plus numbers */
};

static enum rule rule_of(const struct isa_insn *i) {
    if (isa_info[i->op].forms & ISA_FORM_MOVE)
        return MOVES;
    switch (i->op) {
    case ISA_OP_s_add_u32:
    case ISA_OP_s_add_i32:
    case ISA_OP_s_addc_u32:
    case ISA_OP_s_and_b32:
    case ISA_OP_s_and_b64:
    case ISA_OP_s_or_b32:
    case ISA_OP_s_or_b64:
    case ISA_OP_v_add_u32:
    case ISA_OP_v_add_co_u32:
    case ISA_OP_v_addc_co_u32:
    case ISA_OP_v_add3_u32:
    case ISA_OP_v_and_b32:
    case ISA_OP_v_or_b32:
        return ADDS;
    case ISA_OP_s_sub_u32:
    case ISA_OP_s_subb_u32:
    case ISA_OP_v_sub_u32:
    case ISA_OP_v_sub_co_u32:
    case ISA_OP_v_subb_co_u32:
        return LESS;
    case ISA_OP_s_cselect_b32:
    case ISA_OP_s_cselect_b64:
    case ISA_OP_v_cndmask_b32:
        return CHOOSES;
    case ISA_OP_s_lshl1_add_u32:
    case ISA_OP_s_lshl2_add_u32:
    case ISA_OP_s_lshl3_add_u32:
    case ISA_OP_s_lshl4_add_u32:
    case ISA_OP_v_lshl_add_u32:
    case ISA_OP_v_lshl_or_b32:
    case ISA_OP_v_mad_u64_u32:
    case ISA_OP_v_mad_i64_i32:
        return ADDS_LAST;
    case ISA_OP_v_lshl_add_u64: /* also how 64 bits are added: shifted by 0 */
        return i->src[1] == ISA_INT_0 ? ADDS : ADDS_LAST;
    default:
        return BLENDS;
    }
}

static unsigned sources_of(const struct isa_insn *i) {
    const uint8_t *type = isa_info[i->op].type;
    unsigned n = 0;
    while (n < 3 && type[n + 1] != ISA_TYPE_NONE && type[n + 1] != ISA_TYPE_M64)
        n++;
    return n;
}

static uint8_t blend_all(const struct state *s, const struct isa_insn *i, unsigned sources) {
    uint8_t v = NUMBER;
    for (unsigned n = 0; n < sources; n++)
        for (unsigned d = 0; d < isa_type_dwords(isa_info[i->op].type[n + 1]); d++)
            v = blend(v, source(s, i, n, d));
    return v;
}

/* Dword d of the result. */
static uint8_t result(const struct state *s, const struct isa_insn *i, enum rule rule,
                      unsigned sources, unsigned d) {
    uint8_t v = NUMBER;
    switch (rule) {
    case MOVES:
        return source(s, i, 0, d);
    case ADDS:
        for (unsigned n = 0; n < sources; n++)
            v = sum(v, source(s, i, n, d));
        return v;
    case LESS:
        return sources == 2 ? sum(source(s, i, 0, d), blend(NUMBER, source(s, i, 1, d))) : NOBODY;
    case CHOOSES:
        return join(source(s, i, 0, d), source(s, i, 1, d));
    case ADDS_LAST:
        return sum(blend_all(s, i, sources - 1), source(s, i, sources - 1, d));
    default:
        return blend_all(s, i, sources);
    }
}

static void follow_arithmetic(struct state *s, const struct isa_insn *i) {
    const struct isa_info *info = &isa_info[i->op];
    unsigned sources = sources_of(i), dwords = isa_type_dwords(info->type[0]);
    enum rule rule = i->form == ISA_AS_SDWA || i->form == ISA_AS_DPP ? BLENDS : rule_of(i);
    bool scalar = info->encoding <= ISA_ENC_SOPC, reads_dst = info->forms & ISA_FORM_ACC;
    uint8_t v[32];
    if (info->encoding == ISA_ENC_SOPC || dwords > 32)
        return;
    for (unsigned d = 0; d < dwords; d++) {
        v[d] = i->op == ISA_OP_s_getpc_b64 ? (uint8_t)LOADED : result(s, i, rule, sources, d);
        if (reads_dst)
            v[d] = blend(v[d], get(s, i->dst + d));
    }
    bool mask = info->type[0] == ISA_TYPE_M64 && !scalar;
    for (unsigned d = 0; d < dwords; d++)
        set(s, i->dst + d, mask ? (uint8_t)NUMBER : v[d]);
    if (info->forms & ISA_FORM_SDST)
        for (unsigned d = 0; d < 2; d++)
            set(s, i->sdst + d, NUMBER);
    if (scalar && info->forms & ISA_FORM_SETS_EXEC)
        for (unsigned d = 0; d < 2; d++)
            set(s, i->dst + d, NUMBER);
}

/* The argument that both halves of an address come from, else 0. */
static uint8_t pair(const struct state *s, unsigned code) {
    uint8_t low = get(s, code);
    return isa_paths_register(code) >= 0 && low >= ARGUMENT && get(s, code + 1) == low
               ? (uint8_t)(low - ARGUMENT)
               : 0;
}

static uint8_t argument_of(const struct state *s, const struct isa_insn *i) {
    switch (isa_info[i->op].encoding) {
    case ISA_ENC_SMEM:
        return isa_info[i->op].type[1] == ISA_TYPE_B64 ? pair(s, i->src[0]) : 0;
    case ISA_ENC_FLAT:
    case ISA_ENC_GLOBAL:
        if (i->src[2] == ISA_OFF)
            return pair(s, i->src[0]);
        return get(s, i->src[0]) <= LOADED ? pair(s, i->src[2]) : 0;
    default:
        return 0;
    }
}

/* Dword d of what an SMEM instruction loads. */
static uint8_t loaded(const struct finder *f, const struct state *s, const struct isa_insn *i,
                      unsigned d) {
    unsigned at = (unsigned)i->imm / 4 + d;
    bool segment = i->src[1] == ISA_OFF && i->memory & ISA_MEM_IMM && i->imm >= 0 &&
                   isa_info[i->op].type[1] == ISA_TYPE_B64 && get(s, i->src[0]) == KERNARG &&
                   get(s, i->src[0] + 1) == KERNARG;
    if (segment && at < f->k->dwords && f->k->argument[at])
        return (uint8_t)(ARGUMENT + f->k->argument[at]);
    return LOADED;
}

static void follow_memory(const struct finder *f, struct state *s, const struct isa_insn *i) {
    const struct isa_info *info = &isa_info[i->op];
    unsigned dwords = isa_type_dwords(info->type[0]);
    uint8_t v[16];
    bool smem = info->encoding == ISA_ENC_SMEM;
    for (unsigned d = 0; d < dwords && d < 16; d++)
        v[d] = smem ? loaded(f, s, i, d) : (uint8_t)LOADED;
    for (unsigned d = 0; d < dwords && d < 16; d++)
        set(s, i->dst + d, v[d]);
}

static void follow(void *context, void *state, const struct isa_insn *i, size_t word) {
    const struct finder *f = context;
    struct state *s = state;
    unsigned encoding = isa_info[i->op].encoding;
    f->found[word] = argument_of(s, i);
    if (encoding == ISA_ENC_SMEM || encoding >= ISA_ENC_DS)
        follow_memory(f, s, i);
    else if (encoding != ISA_ENC_SOPP)
        follow_arithmetic(s, i);
    enum isa_paths_exec exec = isa_paths_exec_of(i);
    if (exec == ISA_PATHS_WIDENS)
        widen(s);
    s->lanes.is_partial |= exec != ISA_PATHS_SAME;
    if (i->op == ISA_OP_s_swappc_b64 || i->op == ISA_OP_s_call_b64) {
        memset(s->value, NOBODY, sizeof s->value);
        s->lanes.is_partial = true;
    }
}

/* ---- paths ----------------------------------------------------------------------------------- */

static bool meet(void *context, void *before, const void *from, size_t word, bool back) {
    struct state *b = before;
    const struct state *s = from;
    bool changed = isa_paths_join_lanes(&b->lanes, &s->lanes);
    (void)context, (void)word, (void)back;
    for (unsigned r = 0; r < REGISTERS; r++) {
        uint8_t v = join(b->value[r], s->value[r]);
        changed |= v != b->value[r];
        b->value[r] = v;
    }
    return changed;
}

static void start(const struct isa_through_kernel *k, struct state *s) {
    memset(s, 0, sizeof *s);
    memset(s->value, NUMBER, sizeof s->value);
    for (unsigned r = 0; r < ISA_SGPRS; r++)
        s->value[r] = LOADED; /* pointers of the dispatch among them */
    if (k->kernarg >= 0)
        s->value[k->kernarg] = s->value[k->kernarg + 1] = KERNARG;
    for (unsigned d = 0; k->preload >= 0 && d < k->preload_count; d++) {
        unsigned at = k->preload_offset + d;
        if (at < k->dwords && k->argument[at] && k->preload + d < ISA_SGPRS)
            s->value[k->preload + (int)d] = (uint8_t)(ARGUMENT + k->argument[at]);
    }
}

uint8_t *isa_through_find(struct isa_code *code, const struct isa_through_kernel *k) {
    struct finder f = { .k = k };
    struct state first;
    const struct isa_paths paths = { .code = code,
                                     .entry = k->entry,
                                     .end = k->end,
                                     .skip = k->skip,
                                     .state_bytes = sizeof first,
                                     .context = &f,
                                     .join = meet,
                                     .follow = follow };
    if (k->end <= k->entry || !(f.found = calloc((size_t)(k->end - k->entry) / 4 + 1, 1)))
        return NULL;
    start(k, &first);
    if (!isa_paths_follow(&paths, &first)) {
        free(f.found);
        return NULL;
    }
    return f.found;
}
