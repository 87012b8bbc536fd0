/* through.c - an abstract interpretation of a kernel; see through.h.
 *
 * A vector register written while some lanes are off is the new value's only as long as no other
 * lanes come back: when EXEC grows, pointers in such registers are nobody's. */
#include "isa/through.h"

#include "isa/code.h"

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
enum { REGISTERS = ISA_SGPRS + ISA_VGPRS, STEPS_MAX = 1 << 22 };

struct state {
    uint8_t value[REGISTERS]; /* by register: SGPRs by code, then vector registers */
    bool in_part[ISA_VGPRS];  /* written while lanes may have been off */
    bool is_partial;          /* lanes may be off */
};

struct block {
    struct state before;
    bool is_leader, is_seen, is_queued;
};

struct finder {
    const struct isa_through_kernel *k;
    struct isa_code *code;
    size_t words;
    struct block **at; /* by dword; NULL where no block begins */
    size_t *queue, queued;
    uint8_t *found;
    uint64_t steps;
    bool failed;
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

/* A pointer and numbers make a pointer; anything else with pointers in it is nobody's. */
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

static int slot_of(unsigned code) {
    if (code < ISA_SGPRS)
        return (int)code;
    if (code >= ISA_VGPR0 && code < ISA_VGPR0 + ISA_VGPRS)
        return (int)(ISA_SGPRS + code - ISA_VGPR0);
    return -1;
}

static uint8_t get(const struct state *s, unsigned code) {
    int slot = slot_of(code);
    if (slot < 0)
        return code >= ISA_SHARED_BASE && code <= ISA_PRIVATE_LIMIT ? LOADED : NUMBER;
    return s->value[slot];
}

static void set(struct state *s, unsigned code, uint8_t value) {
    int slot = slot_of(code);
    if (slot < 0)
        return;
    s->value[slot] = value;
    if (slot >= ISA_SGPRS)
        s->in_part[slot - ISA_SGPRS] = s->is_partial;
}

/* Dword d of source n: constants have none. */
static uint8_t source(const struct state *s, const struct isa_insn *i, unsigned n, unsigned d) {
    unsigned code = i->src[n];
    return isa_type_dwords(isa_info[i->op].type[n + 1]) > d
               ? get(s, code + (slot_of(code) < 0 ? 0 : d))
               : (uint8_t)NUMBER;
}

/* ---- EXEC ------------------------------------------------------------------------------------ */

static void narrow(struct state *s) {
    s->is_partial = true;
}

static void widen(struct state *s) {
    for (unsigned r = 0; r < ISA_VGPRS; r++)
        if (s->in_part[r] && is_pointer(s->value[ISA_SGPRS + r]))
            s->value[ISA_SGPRS + r] = NOBODY;
    s->is_partial = true;
}

static void follow_exec(struct state *s, const struct isa_insn *i) {
    bool ands = i->op == ISA_OP_s_and_b64, removes = i->op == ISA_OP_s_andn2_b64;
    bool of_exec = i->src[0] == ISA_EXEC || (ands && i->src[1] == ISA_EXEC);
    if (i->op == ISA_OP_s_and_saveexec_b64 || ((ands || removes) && of_exec))
        narrow(s);
    else
        widen(s);
}

static bool writes_exec(const struct isa_insn *i) {
    unsigned encoding = isa_info[i->op].encoding;
    if (strstr(isa_info[i->op].name, "saveexec") || strstr(isa_info[i->op].name, "wrexec"))
        return true;
    return encoding <= ISA_ENC_SOP1 && isa_info[i->op].type[0] != ISA_TYPE_NONE &&
           (i->dst == ISA_EXEC || i->dst == ISA_EXEC + 1);
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
    switch (i->op) {
    case ISA_OP_s_mov_b32:
    case ISA_OP_s_mov_b64:
    case ISA_OP_v_mov_b32:
    case ISA_OP_v_mov_b64:
    case ISA_OP_v_readfirstlane_b32:
    case ISA_OP_v_accvgpr_read_b32:
    case ISA_OP_v_accvgpr_write_b32:
    case ISA_OP_v_accvgpr_mov_b32:
        return MOVES;
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
    if (i->op == ISA_OP_v_writelane_b32 || strstr(info->name, "s_cmov") == info->name ||
        (info->encoding == ISA_ENC_SOPK && i->op != ISA_OP_s_movk_i32))
        reads_dst = true;
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
    if (strstr(info->name, "saveexec") || strstr(info->name, "wrexec"))
        for (unsigned d = 0; d < 2; d++)
            set(s, i->dst + d, NUMBER);
    if (mask && strstr(info->name, "v_cmpx"))
        narrow(s);
}

/* The argument that both halves of an address come from, else 0. */
static uint8_t pair(const struct state *s, unsigned code) {
    uint8_t low = get(s, code);
    return slot_of(code) >= 0 && low >= ARGUMENT && get(s, code + 1) == low
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

static void follow(const struct finder *f, struct state *s, const struct isa_insn *i) {
    unsigned encoding = isa_info[i->op].encoding;
    if (encoding == ISA_ENC_SMEM || encoding >= ISA_ENC_DS)
        follow_memory(f, s, i);
    else if (encoding != ISA_ENC_SOPP)
        follow_arithmetic(s, i);
    if (writes_exec(i))
        follow_exec(s, i);
    if (i->op == ISA_OP_s_swappc_b64 || i->op == ISA_OP_s_call_b64) {
        memset(s->value, NOBODY, sizeof s->value);
        s->is_partial = true;
    }
}

/* ---- paths ----------------------------------------------------------------------------------- */

static const struct isa_insn *insn_at(const struct finder *f, size_t word) {
    uint64_t address = f->k->entry + 4 * (uint64_t)word;
    const struct isa_page *p = isa_code_page(f->code, address);
    return p ? &p->insn[(address - p->address) / 4] : NULL;
}

static bool is_branch(const struct isa_insn *i) {
    return i->op == ISA_OP_s_branch ||
           (i->op >= ISA_OP_s_cbranch_scc0 && i->op <= ISA_OP_s_cbranch_execnz);
}

static bool ends(const struct isa_insn *i) {
    return i->op == ISA_OP_s_endpgm || i->op == ISA_OP_s_endpgm_saved || i->op == ISA_OP_NONE;
}

/* Instructions after which nothing here holds. */
static bool is_beyond(const struct isa_insn *i) {
    const char *name = isa_info[i->op].name;
    return i->op == ISA_OP_s_setpc_b64 || i->op == ISA_OP_s_cbranch_g_fork ||
           i->op == ISA_OP_s_cbranch_i_fork || i->op == ISA_OP_s_cbranch_join ||
           i->op == ISA_OP_v_swap_b32 ||
           (i->op != ISA_OP_NONE && (strstr(name, "gpr_idx") || strstr(name, "movrel") ||
                                     strstr(name, "s_rfe") || strstr(name, "cdbg")));
}

static size_t target_of(const struct isa_insn *i, size_t word) {
    return word + i->words + (size_t)(ptrdiff_t)(int16_t)i->imm;
}

static bool lead(struct finder *f, size_t word) {
    if (word >= f->words)
        return false; /* a jump out of the kernel */
    if (!f->at[word])
        f->at[word] = calloc(1, sizeof **f->at);
    return f->at[word] != NULL;
}

/* Blocks begin at the entry, where branches lead, and after them. */
static bool find_blocks(struct finder *f) {
    if (!lead(f, f->k->skip / 4))
        return false;
    for (size_t word = f->k->skip / 4; word < f->words;) {
        const struct isa_insn *i = insn_at(f, word);
        if (!i || is_beyond(i))
            return false;
        size_t next = word + i->words;
        if (is_branch(i) && !lead(f, target_of(i, word)))
            return false;
        if ((is_branch(i) || ends(i)) && next < f->words && !lead(f, next))
            return false;
        word = next;
    }
    return true;
}

static void enter(struct finder *f, size_t word, const struct state *s) {
    struct block *b = word < f->words ? f->at[word] : NULL;
    bool changed = b && !b->is_seen;
    if (!b) {
        f->failed = true;
        return;
    }
    for (unsigned r = 0; r < REGISTERS; r++) {
        uint8_t v = join(b->before.value[r], s->value[r]);
        changed |= v != b->before.value[r];
        b->before.value[r] = v;
    }
    for (unsigned r = 0; r < ISA_VGPRS; r++) {
        changed |= s->in_part[r] && !b->before.in_part[r];
        b->before.in_part[r] |= s->in_part[r];
    }
    changed |= s->is_partial && !b->before.is_partial;
    b->before.is_partial |= s->is_partial;
    b->is_seen = true;
    if (changed && !b->is_queued) {
        b->is_queued = true;
        f->queue[f->queued++] = word;
    }
}

/* One block from its beginning; what follows it is entered. */
static void walk(struct finder *f, size_t word) {
    struct state s = f->at[word]->before;
    for (;;) {
        const struct isa_insn *i = insn_at(f, word);
        if (!i || ++f->steps > STEPS_MAX) {
            f->failed = true;
            return;
        }
        if (ends(i))
            return;
        f->found[word] = argument_of(&s, i);
        follow(f, &s, i);
        size_t next = word + i->words;
        if (is_branch(i))
            enter(f, target_of(i, word), &s);
        if (i->op == ISA_OP_s_branch || f->failed)
            return;
        if (is_branch(i) || next >= f->words || f->at[next]) {
            enter(f, next, &s);
            return;
        }
        word = next;
    }
}

static void start(const struct finder *f, struct state *s) {
    const struct isa_through_kernel *k = f->k;
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

static void free_blocks(struct finder *f) {
    for (size_t w = 0; f->at && w < f->words; w++)
        free(f->at[w]);
    free(f->at);
    free(f->queue);
}

uint8_t *isa_through_find(struct isa_code *code, const struct isa_through_kernel *k) {
    struct finder f = { .k = k, .code = code };
    if (k->end <= k->entry || k->entry % 4)
        return NULL;
    f.words = (size_t)(k->end - k->entry) / 4;
    f.at = calloc(f.words + 1, sizeof(struct block *));
    f.queue = calloc(f.words + 1, sizeof *f.queue); /* a block is in it once at most */
    f.found = calloc(f.words + 1, 1);
    f.failed = !f.at || !f.queue || !f.found || !find_blocks(&f);
    if (!f.failed) {
        struct state first;
        start(&f, &first);
        enter(&f, k->skip / 4, &first);
    }
    while (!f.failed && f.queued) {
        size_t word = f.queue[--f.queued];
        f.at[word]->is_queued = false;
        walk(&f, word);
    }
    free_blocks(&f);
    if (f.failed) {
        free(f.found);
        return NULL;
    }
    return f.found;
}
