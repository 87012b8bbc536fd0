#include "isa/paths.h"

#include "isa/code.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 1 << 22 };

struct block {
    bool is_seen, is_queued;
    _Alignas(16) unsigned char before[];
};

struct walker {
    const struct isa_paths *p;
    size_t words;
    struct block **at; /* by dword; NULL where no block begins */
    size_t *queue, queued;
    void *state; /* of the block that is walked */
    uint64_t steps;
    bool failed;
};

static const struct isa_insn *insn_at(const struct walker *w, size_t word) {
    uint64_t address = w->p->entry + 4 * (uint64_t)word;
    const struct isa_page *page = isa_code_page(w->p->code, address);
    return page ? &page->insn[(address - page->address) / 4] : NULL;
}

static bool is_branch(const struct isa_insn *i) {
    return isa_info[i->op].forms & ISA_FORM_BRANCH;
}

static bool ends(const struct isa_insn *i) {
    return i->op == ISA_OP_s_endpgm || i->op == ISA_OP_s_endpgm_saved || i->op == ISA_OP_NONE;
}

static size_t target_of(const struct isa_insn *i, size_t word) {
    return word + i->words + (size_t)(ptrdiff_t)(int16_t)i->imm;
}

static bool lead(struct walker *w, size_t word) {
    if (word >= w->words)
        return false; /* a jump out of the kernel */
    if (!w->at[word])
        w->at[word] = calloc(1, sizeof **w->at + w->p->state_bytes);
    return w->at[word] != NULL;
}

/* Blocks begin at the entry, where branches lead, and after them. */
static bool find_blocks(struct walker *w) {
    if (!lead(w, w->p->skip / 4))
        return false;
    for (size_t word = w->p->skip / 4; word < w->words;) {
        const struct isa_insn *i = insn_at(w, word);
        if (!i || isa_info[i->op].forms & ISA_FORM_OPAQUE)
            return false;
        size_t next = word + i->words;
        if (is_branch(i) && !lead(w, target_of(i, word)))
            return false;
        if ((is_branch(i) || ends(i)) && next < w->words && !lead(w, next))
            return false;
        word = next;
    }
    return true;
}

static void enter(struct walker *w, size_t word, const void *state, bool back) {
    struct block *b = word < w->words ? w->at[word] : NULL;
    bool changed = true;
    if (!b) {
        w->failed = true;
        return;
    }
    if (b->is_seen)
        changed = w->p->join(w->p->context, b->before, state, word, back);
    else
        memcpy(b->before, state, w->p->state_bytes);
    b->is_seen = true;
    if (changed && !b->is_queued) {
        b->is_queued = true;
        w->queue[w->queued++] = word;
    }
}

/* One block from its beginning; what follows it is entered. */
static void walk(struct walker *w, size_t word) {
    memcpy(w->state, w->at[word]->before, w->p->state_bytes);
    for (;;) {
        const struct isa_insn *i = insn_at(w, word);
        if (!i || ++w->steps > STEPS_MAX) {
            w->failed = true;
            return;
        }
        if (ends(i))
            return;
        w->p->follow(w->p->context, w->state, i, word);
        size_t next = word + i->words;
        if (is_branch(i))
            enter(w, target_of(i, word), w->state, target_of(i, word) <= word);
        if (i->op == ISA_OP_s_branch || w->failed)
            return;
        if (is_branch(i) || next >= w->words || w->at[next]) {
            enter(w, next, w->state, false);
            return;
        }
        word = next;
    }
}

static void forget(struct walker *w) {
    for (size_t word = 0; w->at && word < w->words; word++)
        free(w->at[word]);
    free(w->at);
    free(w->queue);
    free(w->state);
}

bool isa_paths_follow(const struct isa_paths *p, const void *first) {
    struct walker w = { .p = p };
    if (p->end <= p->entry || p->entry % 4)
        return false;
    w.words = (size_t)(p->end - p->entry) / 4;
    w.at = calloc(w.words + 1, sizeof(struct block *));
    w.queue = calloc(w.words + 1, sizeof *w.queue); /* a block is in it once at most */
    w.state = malloc(p->state_bytes);
    w.failed = !w.at || !w.queue || !w.state || !find_blocks(&w);
    if (!w.failed)
        enter(&w, p->skip / 4, first, false);
    while (!w.failed && w.queued) {
        size_t word = w.queue[--w.queued];
        w.at[word]->is_queued = false;
        walk(&w, word);
    }
    forget(&w);
    return !w.failed;
}

/* ---- EXEC ------------------------------------------------------------------------------------ */

static bool writes_exec(const struct isa_insn *i) {
    const struct isa_info *info = &isa_info[i->op];
    return info->forms & ISA_FORM_SETS_EXEC ||
           (info->encoding <= ISA_ENC_SOP1 && info->type[0] != ISA_TYPE_NONE &&
            (i->dst == ISA_EXEC || i->dst == ISA_EXEC + 1));
}

enum isa_paths_exec isa_paths_exec_of(const struct isa_insn *i) {
    bool ands = i->op == ISA_OP_s_and_b64, removes = i->op == ISA_OP_s_andn2_b64;
    bool of_exec = i->src[0] == ISA_EXEC || (ands && i->src[1] == ISA_EXEC);
    if (!writes_exec(i))
        return ISA_PATHS_SAME;
    if (isa_info[i->op].encoding == ISA_ENC_VOPC)
        return ISA_PATHS_NARROWS;
    return i->op == ISA_OP_s_and_saveexec_b64 || ((ands || removes) && of_exec) ? ISA_PATHS_NARROWS
                                                                                : ISA_PATHS_WIDENS;
}

bool isa_paths_join_lanes(struct isa_paths_lanes *into, const struct isa_paths_lanes *from) {
    bool changed = from->is_partial && !into->is_partial;
    for (unsigned r = 0; r < ISA_VGPRS; r++) {
        changed |= from->in_part[r] && !into->in_part[r];
        into->in_part[r] |= from->in_part[r];
    }
    into->is_partial |= from->is_partial;
    return changed;
}
