#include "isa/frame.h"

#include "isa/paths.h"

#include <stdlib.h>
#include <string.h>

enum kind {
    UNKNOWN, /* also whatever was loaded */
    NUMBER,  /* certainly no address */
    PLACE    /* a sum of constants, the same on all paths, and of numbers */
};

/* Two places are the same variable's if origin and sum are. A constant has origin 0. What begins as
 * (from, at) and is moved by a loop has that loop as its origin. */
struct value {
    uint32_t kind;
    uint32_t origin;
    int32_t sum;
    uint32_t from;
    int32_t at;
    bool stepped; /* a loop moved it, perhaps from one variable into the next */
};
enum { REGISTERS = ISA_PATHS_REGISTERS };
#define LOOP 0x80000000u

struct state {
    struct value value[REGISTERS]; /* by register: SGPRs by code, then vector registers */
    struct isa_paths_lanes lanes;
    bool was_partial; /* before all lanes were switched on to spill registers, */
    uint16_t saved;   /* with EXEC in these SGPRs; ISA_OFF: they were not */
};

struct finder {
    bool zero_is_null;
    uint8_t *found;
};

static const struct value unknown = { .kind = UNKNOWN }, a_number = { .kind = NUMBER };

/* ---- values ---------------------------------------------------------------------------------- */

static struct value constant(uint32_t v) {
    return (struct value){ .kind = PLACE, .sum = (int32_t)v };
}

static bool is_constant(const struct value *v) {
    return v->kind == PLACE && !v->origin;
}

static bool is_same(const struct value *a, const struct value *b) {
    return a->kind == b->kind && a->origin == b->origin && a->sum == b->sum;
}

/* One of two values that are the same. */
static struct value either(const struct value *a, const struct value *b) {
    struct value v = *a;
    v.stepped |= b->stepped;
    return v;
}

static int32_t wrap(int32_t a, int32_t b) {
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

static bool is_near(int32_t a, int32_t b) {
    int64_t distance = (int64_t)a - b;
    return distance >= -ISA_FRAME_STEP && distance <= ISA_FRAME_STEP;
}

static struct value sum(const struct value *a, const struct value *b, size_t word) {
    if (a->kind == UNKNOWN || b->kind == UNKNOWN)
        return unknown;
    if (a->kind == NUMBER && b->kind == NUMBER)
        return a_number;
    if (is_constant(a) && is_constant(b))
        return constant((uint32_t)wrap(a->sum, b->sum));
    struct value v = is_constant(a) || a->kind == NUMBER ? *b : *a;
    const struct value *other = is_constant(a) || a->kind == NUMBER ? a : b;
    if (v.kind == NUMBER || !v.origin || (other->kind == PLACE && other->origin))
        return (struct value){ .kind = PLACE,
                               .origin = (uint32_t)word + 1,
                               .stepped = a->stepped || b->stepped };
    if (other->kind == PLACE)
        v.sum = wrap(v.sum, other->sum);
    return v;
}

static struct value difference(const struct value *a, const struct value *b, size_t word) {
    if (b->kind == NUMBER)
        return sum(a, b, word);
    if (!is_constant(b))
        return unknown;
    struct value less = constant(0u - (uint32_t)b->sum);
    return sum(a, &less, word);
}

/* A loop begins where the paths meet, if one comes back. */
static struct value join(const struct value *a, const struct value *b, size_t word, bool back) {
    uint32_t loop = LOOP | (uint32_t)word;
    if (is_same(a, b))
        return either(a, b);
    if (a->kind != PLACE || b->kind != PLACE)
        return unknown;
    if (a->origin == loop)
        return (b->origin == loop && is_near(b->sum, 0)) ||
                       (b->origin == a->from && is_near(b->sum, a->at))
                   ? *a
                   : unknown;
    if (back && a->origin == b->origin && is_near(a->sum, b->sum))
        return (struct value){
            .kind = PLACE, .origin = loop, .from = a->origin, .at = a->sum, .stepped = true
        };
    return unknown;
}

/* ---- registers ------------------------------------------------------------------------------- */

static void set(struct state *s, unsigned code, const struct value *v) {
    int slot = isa_paths_register(code);
    if (slot < 0)
        return;
    s->value[slot] = *v;
    if (slot >= ISA_SGPRS)
        s->lanes.in_part[slot - ISA_SGPRS] = s->lanes.is_partial;
}

/* Dword d of an operand. */
static struct value get(const struct state *s, const struct isa_insn *i, unsigned code,
                        unsigned d) {
    int slot = isa_paths_register(code);
    if (slot >= 0)
        return slot + (int)d < REGISTERS ? s->value[slot + (int)d] : unknown;
    if (code == ISA_LITERAL)
        return constant(d ? 0 : i->literal);
    if (code >= ISA_INT_0 && code <= ISA_INT_M16) {
        int32_t v = code < ISA_INT_M1 ? (int32_t)(code - ISA_INT_0) : 192 - (int32_t)code;
        return constant((uint32_t)(d ? v >> 31 : v));
    }
    return a_number;
}

static struct value source(const struct state *s, const struct isa_insn *i, unsigned n,
                           unsigned d) {
    return get(s, i, i->src[n], d);
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* A choice between a place and null, or between two equal values. */
static struct value choice(const struct finder *f, const struct value *a, const struct value *b) {
    if (is_same(a, b))
        return either(a, b);
    if (f->zero_is_null && is_constant(a) && !a->sum && b->kind == PLACE)
        return *b;
    if (a->kind == NUMBER && b->kind == NUMBER)
        return a_number;
    return unknown;
}

static struct value blend(const struct state *s, const struct isa_insn *i, unsigned dwords) {
    const uint8_t *type = isa_info[i->op].type;
    for (unsigned n = 0; n < 3 && type[n + 1] != ISA_TYPE_NONE; n++)
        for (unsigned d = 0; d < dwords && d < isa_type_dwords(type[n + 1]); d++) {
            struct value v = source(s, i, n, d);
            if (v.kind == UNKNOWN || (v.kind == PLACE && v.origin))
                return unknown;
        }
    return a_number;
}

/* A scaled value plus the last source. */
static struct value scaled_plus(const struct state *s, const struct isa_insn *i, unsigned last,
                                size_t word) {
    struct value v = source(s, i, last, 0);
    return sum(&a_number, &v, word);
}

/* The lowest dword of the result. */
static struct value low_result(const struct finder *f, const struct state *s,
                               const struct isa_insn *i, size_t word) {
    struct value a = source(s, i, 0, 0), b = source(s, i, 1, 0), c;
    if (isa_info[i->op].forms & ISA_FORM_MOVE)
        return a;
    switch (i->op) {
    case ISA_OP_s_movk_i32:
        return constant((uint32_t)(int16_t)i->imm);
    case ISA_OP_s_add_u32:
    case ISA_OP_s_add_i32:
    case ISA_OP_s_or_b32:
    case ISA_OP_v_add_u32:
    case ISA_OP_v_add_co_u32:
    case ISA_OP_v_or_b32:
        return sum(&a, &b, word);
    case ISA_OP_v_add3_u32:
        c = source(s, i, 2, 0);
        a = sum(&a, &b, word);
        return sum(&a, &c, word);
    case ISA_OP_s_sub_u32:
    case ISA_OP_s_sub_i32:
    case ISA_OP_v_sub_u32:
    case ISA_OP_v_sub_co_u32:
        return difference(&a, &b, word);
    case ISA_OP_v_subrev_u32:
    case ISA_OP_v_subrev_co_u32:
        return difference(&b, &a, word);
    case ISA_OP_s_cselect_b32:
    case ISA_OP_v_cndmask_b32:
        return choice(f, &a, &b);
    case ISA_OP_s_lshl1_add_u32:
    case ISA_OP_s_lshl2_add_u32:
    case ISA_OP_s_lshl3_add_u32:
    case ISA_OP_s_lshl4_add_u32:
        return scaled_plus(s, i, 1, word);
    case ISA_OP_v_lshl_add_u64:
        if (i->src[1] == ISA_INT_0) {
            c = source(s, i, 2, 0);
            return sum(&a, &c, word);
        }
        return scaled_plus(s, i, 2, word);
    case ISA_OP_v_lshl_add_u32:
    case ISA_OP_v_lshl_or_b32:
    case ISA_OP_v_mad_u32_u24:
    case ISA_OP_v_mad_i32_i24:
    case ISA_OP_v_mad_u64_u32:
    case ISA_OP_v_mad_i64_i32:
        return scaled_plus(s, i, 2, word);
    default:
        return isa_info[i->op].forms & ISA_FORM_SCALE ? a_number : blend(s, i, 1);
    }
}

/* Dwords after the first: moves keep them, all else is not followed. */
static struct value next_result(const struct state *s, const struct isa_insn *i, unsigned d) {
    return isa_info[i->op].forms & ISA_FORM_MOVE ? source(s, i, 0, d) : unknown;
}

static void follow_arithmetic(const struct finder *f, struct state *s, const struct isa_insn *i,
                              size_t word) {
    const struct isa_info *info = &isa_info[i->op];
    unsigned dwords = isa_type_dwords(info->type[0]);
    bool plain = i->form != ISA_AS_SDWA && i->form != ISA_AS_DPP && !(info->forms & ISA_FORM_ACC) &&
                 i->op != ISA_OP_v_readlane_b32 && !i->modifiers;
    struct value v[32];
    if (info->encoding == ISA_ENC_SOPC || dwords > 32)
        return;
    if (i->op == ISA_OP_v_pk_mov_b32) { /* two dwords are copied if op_sel is 0,1 */
        bool copies = i->src[0] == i->src[1] && (i->raw[0] >> 11 & 3) == 2;
        for (unsigned d = 0; d < dwords; d++)
            v[d] = copies ? source(s, i, 0, d) : unknown;
    } else {
        for (unsigned d = 0; d < dwords; d++)
            v[d] = !plain ? unknown : d ? next_result(s, i, d) : low_result(f, s, i, word);
    }
    for (unsigned d = 0; d < dwords; d++)
        set(s, i->dst + d, info->type[0] == ISA_TYPE_M64 ? &unknown : &v[d]);
    if (info->forms & ISA_FORM_SDST)
        for (unsigned d = 0; d < 2; d++)
            set(s, i->sdst + d, &unknown);
}

/* Loads of so few bits that no address can be among them. */
static bool loads_number(const struct isa_insn *i) {
    switch (i->op) {
    case ISA_OP_flat_load_ubyte:
    case ISA_OP_flat_load_sbyte:
    case ISA_OP_flat_load_ushort:
    case ISA_OP_flat_load_sshort:
    case ISA_OP_global_load_ubyte:
    case ISA_OP_global_load_sbyte:
    case ISA_OP_global_load_ushort:
    case ISA_OP_global_load_sshort:
    case ISA_OP_scratch_load_ubyte:
    case ISA_OP_scratch_load_sbyte:
    case ISA_OP_scratch_load_ushort:
    case ISA_OP_scratch_load_sshort:
    case ISA_OP_buffer_load_ubyte:
    case ISA_OP_buffer_load_sbyte:
    case ISA_OP_buffer_load_ushort:
    case ISA_OP_buffer_load_sshort:
        return true;
    default:
        return false;
    }
}

static void follow_memory(struct state *s, const struct isa_insn *i) {
    const struct value *loaded = loads_number(i) ? &a_number : &unknown;
    for (unsigned d = 0; d < isa_type_dwords(isa_info[i->op].type[0]); d++)
        set(s, i->dst + d, loaded);
}

/* Whether the address of the instruction is a place, and not a constant one: enum isa_frame_found.
 */
static uint8_t is_for_one(const struct state *s, const struct isa_insn *i, size_t word) {
    struct value a = source(s, i, 0, 0), b = constant(0);
    switch (isa_info[i->op].encoding) {
    case ISA_ENC_SCRATCH:
        if (i->src[0] == ISA_OFF)
            a = constant(0);
        if (i->src[2] != ISA_OFF)
            b = source(s, i, 2, 0);
        break;
    case ISA_ENC_MUBUF:
        if ((i->memory & (ISA_MEM_OFFEN | ISA_MEM_IDXEN)) != ISA_MEM_OFFEN)
            return ISA_FRAME_ANY;
        b = source(s, i, 2, 0);
        if (!is_constant(&b))
            return ISA_FRAME_ANY;
        break;
    case ISA_ENC_FLAT:
        break;
    default:
        return ISA_FRAME_ANY;
    }
    a = sum(&a, &b, word);
    if (a.kind != PLACE || !a.origin)
        return ISA_FRAME_ANY;
    return a.stepped ? ISA_FRAME_STEPPED : ISA_FRAME_ONE;
}

/* ---- EXEC and calls -------------------------------------------------------------------------- */

static void widen(struct state *s) {
    for (unsigned r = 0; r < ISA_VGPRS; r++)
        if (s->lanes.in_part[r])
            s->value[ISA_SGPRS + r] = unknown;
}

/* Code that is not optimised switches all lanes on to spill a register, and back. */
static void follow_exec(struct state *s, const struct isa_insn *i) {
    enum isa_paths_exec exec = isa_paths_exec_of(i);
    if (exec == ISA_PATHS_SAME)
        return;
    if (i->op == ISA_OP_s_or_saveexec_b64 && i->src[0] == ISA_INT_M1 && s->saved == ISA_OFF) {
        s->saved = i->dst;
        s->was_partial = s->lanes.is_partial;
        s->lanes.is_partial = false;
        return;
    }
    if (i->op == ISA_OP_s_mov_b64 && s->saved != ISA_OFF && i->src[0] == s->saved) {
        s->lanes.is_partial = s->was_partial;
        s->saved = ISA_OFF;
        return;
    }
    s->saved = ISA_OFF;
    if (exec == ISA_PATHS_WIDENS)
        widen(s);
    s->lanes.is_partial = true;
}

/* Results come in the first 32 VGPRs; any other register that is read after a call was preserved by
 * the callee. */
static void follow_call(struct state *s) {
    for (unsigned r = 0; r < ISA_SGPRS + 32; r++)
        s->value[r] = unknown;
}

static void follow(void *context, void *state, const struct isa_insn *i, size_t word) {
    const struct finder *f = context;
    struct state *s = state;
    unsigned encoding = isa_info[i->op].encoding;
    f->found[word] = is_for_one(s, i, word);
    if (encoding == ISA_ENC_SMEM || encoding >= ISA_ENC_DS)
        follow_memory(s, i);
    else if (encoding != ISA_ENC_SOPP)
        follow_arithmetic(f, s, i, word);
    follow_exec(s, i);
    if (i->op == ISA_OP_s_swappc_b64 || i->op == ISA_OP_s_call_b64)
        follow_call(s);
}

/* ---- paths ----------------------------------------------------------------------------------- */

static bool meet(void *context, void *before, const void *from, size_t word, bool back) {
    struct state *b = before;
    const struct state *s = from;
    bool changed = isa_paths_join_lanes(&b->lanes, &s->lanes);
    changed |= s->saved != b->saved && b->saved != ISA_OFF;
    (void)context;
    for (unsigned r = 0; r < REGISTERS; r++) {
        struct value v = join(&b->value[r], &s->value[r], word, back);
        changed |= !is_same(&v, &b->value[r]) || v.stepped != b->value[r].stepped;
        b->value[r] = v;
    }
    if (s->saved != b->saved)
        b->saved = ISA_OFF;
    return changed;
}

/* Vector registers hold thread ids. */
static void start(struct state *s) {
    memset(s, 0, sizeof *s);
    s->saved = ISA_OFF;
    for (unsigned r = ISA_SGPRS; r < REGISTERS; r++)
        s->value[r] = a_number;
}

uint8_t *isa_frame_find(struct isa_code *code, const struct isa_frame_kernel *k) {
    struct finder f = { .zero_is_null = k->zero_is_null };
    struct state *first = malloc(sizeof *first);
    const struct isa_paths paths = { .code = code,
                                     .entry = k->entry,
                                     .end = k->end,
                                     .skip = k->skip,
                                     .state_bytes = sizeof *first,
                                     .context = &f,
                                     .join = meet,
                                     .follow = follow };
    if (first && k->end > k->entry)
        f.found = calloc((size_t)(k->end - k->entry) / 4 + 1, 1);
    if (f.found) {
        start(first);
        if (!isa_paths_follow(&paths, first)) {
            free(f.found);
            f.found = NULL;
        }
    }
    free(first);
    return f.found;
}
