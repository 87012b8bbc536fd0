/* dispatch.c - from operations to the functions that execute them, and the loop that calls these.
 */
#include "isa/code.h"
#include "isa/exec.h"
#include "isa/valu.h"

#include <inttypes.h>
#include <stdio.h>

static enum isa_result exec_unknown(struct isa_wave *w, const struct isa_insn *i) {
    (void)w, (void)i;
    return ISA_UNKNOWN;
}

static enum isa_result exec_unsupported(struct isa_wave *w, const struct isa_insn *i) {
    return isa_stop_unsupported(w, i, NULL);
}

static isa_exec_fn find(enum isa_op op) {
#define GROUP_POINTER(name) name,
    static const isa_exec_fn *const groups[] = { ISA_GROUPS(GROUP_POINTER) };
#undef GROUP_POINTER
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
        if (groups[g][op])
            return groups[g][op];
    return NULL;
}

int isa_is_executable(enum isa_op op) {
    return isa_valu_has(op) || find(op) != NULL;
}

/* ---- operands that no register file has: compilers do not make them, hostile code does ---- */

static bool is_within(unsigned code, unsigned dwords) {
    if (code < ISA_SGPRS)
        return code + dwords <= ISA_SGPRS;
    return code < ISA_VGPR0 || code == ISA_OFF || code - ISA_VGPR0 + dwords <= ISA_VGPRS;
}

static bool is_vector(unsigned code) {
    return code >= ISA_VGPR0 && code != ISA_OFF;
}

/* Descriptors of buffers, images and samplers are in SGPRs. */
static bool has_descriptors(const struct isa_insn *i, unsigned encoding) {
    enum { BUFFER = 4, IMAGE = 8, SAMPLER = 4, COORDINATES = 16 };
    if (encoding == ISA_ENC_MUBUF || encoding == ISA_ENC_MTBUF)
        return i->src[1] + BUFFER <= ISA_SGPRS;
    if (encoding != ISA_ENC_MIMG)
        return true;
    return i->src[1] + IMAGE <= ISA_SGPRS && i->src[2] + SAMPLER <= ISA_SGPRS &&
           is_within(i->src[0], COORDINATES);
}

/* Matrices are in vector registers; C may be a constant, indices of a sparse one may not. */
static bool has_matrices(const struct isa_insn *i) {
    bool is_sparse = isa_info[i->op].forms & ISA_FORM_SPARSE;
    return is_vector(i->dst) && is_vector(i->src[0]) && is_vector(i->src[1]) &&
           (is_vector(i->src[2]) || (!is_sparse && i->src[2] >= ISA_SGPRS));
}

static bool has_its_operands(const struct isa_insn *i) {
    const struct isa_info *info = &isa_info[i->op];
    unsigned more = i->memory & ISA_MEM_TFE ? 1 : 0; /* tfe writes one more register */
    if (info->type[0] != ISA_TYPE_NONE &&
        ((i->dst >= ISA_SGPRS && !is_vector(i->dst) && i->dst != ISA_OFF) ||
         !is_within(i->dst, isa_type_dwords(info->type[0]) + more)))
        return false;
    if (info->forms & ISA_FORM_SDST && i->sdst + 2 > ISA_SGPRS)
        return false;
    for (unsigned n = 0; n < 3; n++)
        if (!is_within(i->src[n], isa_type_dwords(info->type[n + 1])))
            return false;
    if (info->encoding == ISA_ENC_MAI && info->type[0] != ISA_TYPE_B32 && !has_matrices(i))
        return false;
    if (i->op == ISA_OP_v_swap_b32 && !is_vector(i->src[0]))
        return false;
    return has_descriptors(i, info->encoding);
}

static enum isa_result exec_misfit(struct isa_wave *w, const struct isa_insn *i) {
    return isa_stop_unsupported(w, i, "an operand is no register");
}

void isa_bind(struct isa_insn *i) {
    isa_exec_fn fn = find(i->op);
    isa_rows_choose();
    i->kernel = NULL;
    if (i->op != ISA_OP_NONE && !has_its_operands(i)) {
        i->exec = exec_misfit;
        return;
    }
    if (isa_valu_bind(i)) {
        isa_plain_bind(i);
        return;
    }
    if (i->op == ISA_OP_NONE)
        i->exec = exec_unknown;
    else
        i->exec = fn ? fn : exec_unsupported;
}

enum rc isa_code_open(struct isa_code **out, enum isa_gpu gpu, const void *bytes, size_t size,
                      uint64_t address, struct err *e) {
    static const struct isa_code_binding binding = { isa_bind, isa_exec_next_page };
    return isa_code_make(out, gpu, bytes, size, address, &binding, e);
}

/* Completes w->stop for the instruction that returned r; the parts that only it knows are there. */
static enum isa_result stopped(struct isa_wave *w, const struct isa_insn *i, uint64_t pc,
                               enum isa_result r) {
    if (r == ISA_BAD_PC)
        return r;
    w->stop.pc = pc;
    w->stop.op = i->op;
    w->stop.raw[0] = i->raw[0];
    w->stop.raw[1] = i->words > 1 || i->op == ISA_OP_NONE ? i->raw[1] : 0;
    return r;
}

/* While s_setvskip says so, vector instructions do nothing. */
static enum isa_result run_skipping(struct isa_wave *w, uint64_t end) {
    while (w->executed < end && w->mode & ISA_MODE_VSKIP) {
        const struct isa_insn *i = w->ip;
        const struct isa_page *page = w->page;
        unsigned encoding = isa_info[i->op].encoding;
        bool vector = encoding >= ISA_ENC_VOP2 && i->exec != isa_exec_next_page;
        w->ip = i + i->words;
        w->executed++;
        enum isa_result r = vector ? ISA_CONTINUE : i->exec(w, i);
        if (r != ISA_CONTINUE)
            return stopped(w, i, page->address + 4 * (uint64_t)(i - page->insn), r);
    }
    return ISA_SLEEP;
}

enum isa_result isa_run(struct isa_wave *w, uint64_t budget) {
    uint64_t end = w->executed + budget;
    if (__builtin_expect(w->mode & ISA_MODE_VSKIP, 0))
        return run_skipping(w, end);
    while (w->executed < end) {
        const struct isa_insn *i = w->ip;
        const struct isa_page *page = w->page;
        w->ip = i + i->words;
        w->executed++;
        if (w->used)
            w->used[i->op]++;
        enum isa_result r = i->exec(w, i);
        if (__builtin_expect(r != ISA_CONTINUE, 0))
            return stopped(w, i, page->address + 4 * (uint64_t)(i - page->insn), r);
    }
    return ISA_SLEEP;
}

static int print_fault(const struct isa_stop *s, const char *text, char *out, size_t size) {
    static const char *const spaces[] = { "global memory", "LDS", "scratch" };
    static const char *const kinds[] = { "load", "store", "atomic" };
    return snprintf(out, size,
                    "%s of %u bytes of %s at 0x%" PRIx64 " by lane %u%s%s, pc 0x%" PRIx64 ": %s",
                    kinds[s->kind], s->bytes, spaces[s->space], s->address, s->lane,
                    s->why ? ": " : "", s->why ? s->why : "", s->pc, text);
}

int isa_stop_instruction(const struct isa_wave *w, enum isa_result r, char *out, size_t size) {
    struct isa_insn i;
    if (r == ISA_BAD_PC || r == ISA_UNKNOWN)
        return snprintf(out, size, "%s", "");
    isa_decode(isa_code_gpu(w->code), w->stop.raw, 2, &i);
    return isa_print(isa_code_gpu(w->code), &i, out, size);
}

int isa_stop_print(const struct isa_wave *w, enum isa_result r, char *out, size_t size) {
    const struct isa_stop *s = &w->stop;
    char text[ISA_TEXT_BYTES];
    isa_stop_instruction(w, r, text, sizeof text);
    switch (r) {
    case ISA_FAULT:
        return print_fault(s, text, out, size);
    case ISA_UNKNOWN:
        return snprintf(out, size,
                        "unknown instruction at pc 0x%" PRIx64 ": 0x%08x 0x%08x is none of %s",
                        s->pc, s->raw[0], s->raw[1], isa_gpu_name(isa_code_gpu(w->code)));
    case ISA_UNSUPPORTED:
        return snprintf(
            out, size, "unsupported instruction at pc 0x%" PRIx64 ": %s (0x%08x 0x%08x)%s%s", s->pc,
            text, s->raw[0], s->raw[1], s->why ? ": " : "", s->why ? s->why : "");
    case ISA_TRAP:
        return snprintf(out, size, "trap %u at pc 0x%" PRIx64 ": %s", s->code, s->pc, text);
    case ISA_BAD_PC:
        return snprintf(out, size, "jump to 0x%" PRIx64 ", where there is no code", s->pc);
    case ISA_CONTINUE:
    case ISA_END:
    case ISA_BARRIER:
    case ISA_GRID_BARRIER:
    case ISA_SLEEP:
        break;
    }
    return snprintf(out, size, "at pc 0x%" PRIx64 ": %s", s->pc, text);
}
