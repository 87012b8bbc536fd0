/* valu.c - vector instructions: sources to rows, the row function, its result to registers.
 *
 * Most instructions are plain: no modifiers, the default MODE. They are executed by plain.c, which
 * only fetches, calls and merges. All others take general(), which prepares copies of the sources
 * (prepare.c), and treats the result (finish.c) before it is merged. What neither understands stops
 * the wave. */
#include "isa/valu.h"

#include "base/cpu.h"

#include <fenv.h>
#include <pthread.h>

const struct isa_rows *isa_rows_chosen;

/* The best for this processor; GRETA_CPU does not change it. */
static const struct isa_rows *best_rows(void) {
#if defined(__x86_64__)
    unsigned cpu = cpu_features();
    if (cpu & CPU_AVX512)
        return &isa_rows_avx512;
    if (cpu & CPU_AVX2)
        return &isa_rows_avx2;
#endif
    return &isa_rows_base;
}

static void select_rows(void) {
    isa_rows_chosen = best_rows();
}

void isa_rows_choose(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, select_rows);
}

/* ---- general ---- */

/* The part of MODE that is about a type: rounding in bits 0 and 1, denormals in bits 4 and 5. */
static unsigned float_mode(const struct isa_wave *w, enum isa_type t) {
    switch (t) {
    case ISA_TYPE_F32:
    case ISA_TYPE_V2F32:
    case ISA_TYPE_MIX:
        return w->mode & 0x33;
    case ISA_TYPE_F64:
    case ISA_TYPE_F16:
    case ISA_TYPE_V2F16:
        return w->mode >> 2 & 0x33;
    default:
        return 0x30;
    }
}

/* Calls the row function in the rounding mode of its result. */
static void call(struct isa_valu *v) {
    static const int modes[4] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
    unsigned round = v->dst_mode & 3;
    if (round)
        fesetround(modes[round]);
    v->fn(v->result, v->row[0], v->row[1], v->row[2]);
    if (round)
        fesetround(FE_TONEAREST);
}

static enum isa_result write_mask(struct isa_valu *v) {
    uint64_t mask = isa_rows_chosen->collect(v->result);
    mask = (mask & v->lanes) & ISA_WAVE_EXEC(v->w);
    isa_write64(v->w, v->i->dst, mask);
    if (isa_valu_is_cmpx(v->i->op))
        ISA_WAVE_EXEC(v->w) = mask;
    return ISA_CONTINUE;
}

static enum isa_result write_rows(struct isa_valu *v) {
    const struct isa_insn *i = v->i;
    unsigned dwords = isa_type_dwords(v->info->type[0]);
    if (i->dst < ISA_VGPR0 || i->dst + v->index[3] - ISA_VGPR0 + dwords > ISA_VGPRS)
        return isa_stop_unsupported(v->w, i, "no such destination");
    uint32_t *d = isa_row(v->w, i->dst + v->index[3]);
    isa_valu_finish(v, d);
    for (unsigned n = 0; n < dwords; n++)
        isa_rows_chosen->merge(d + (size_t)n * ISA_LANES, v->result + (size_t)n * ISA_LANES,
                               v->lanes);
    if (v->info->forms & ISA_FORM_SDST) {
        uint64_t flags =
            isa_rows_chosen->collect(v->result + (size_t)dwords * ISA_LANES) & v->lanes;
        isa_write64(v->w, i->sdst, flags);
    }
    return ISA_CONTINUE;
}

enum isa_result isa_valu_general(struct isa_wave *w, const struct isa_insn *i) {
    struct isa_valu v; /* the rows in it are written before they are read */
    const char *why = NULL;
    v.w = w;
    v.i = i;
    v.info = &isa_info[i->op];
    v.rows = isa_rows_chosen;
    memset(v.index, 0, sizeof v.index);
    v.lanes = ISA_WAVE_EXEC(w);
    v.fn = (isa_row_fn)i->kernel;
    v.dst_mode = float_mode(w, v.info->type[0]);
    if (v.info->type[0] == ISA_TYPE_M64)
        v.dst_mode = 0x30;
    v.sources = (unsigned)isa_valu_sources(i->op);
    v.row[0] = v.row[1] = v.row[2] = v.space[0];
    if (!isa_valu_prepare(&v, &why))
        return isa_stop_unsupported(w, i, why);
    for (unsigned s = 0; s < v.sources; s++)
        isa_valu_flush(&v, s, float_mode(w, v.info->type[s + 1]));
    if (v.info->type[0] == ISA_TYPE_M64) {
        call(&v);
        return write_mask(&v);
    }
    call(&v);
    return write_rows(&v);
}

/* ---- which instruction takes which way ---- */

int isa_valu_sources(enum isa_op op) {
    const struct isa_info *info = &isa_info[op];
    int n = 0;
    while (n < 3 && info->type[n + 1] != ISA_TYPE_NONE)
        n++;
    return info->forms & ISA_FORM_ACC ? n + 1 : n;
}

int isa_valu_is_cmpx(enum isa_op op) {
    return isa_info[op].encoding == ISA_ENC_VOPC && isa_info[op].forms & ISA_FORM_SETS_EXEC;
}

int isa_valu_has(enum isa_op op) {
    return isa_rows_base.fn[op] != NULL;
}

int isa_valu_bind(struct isa_insn *i) {
    const struct isa_info *info = &isa_info[i->op];
    if (!isa_valu_has(i->op))
        return 0;
    i->kernel = (isa_any_fn)isa_rows_chosen->fn[i->op];
    i->exec = isa_valu_general;
    if (info->forms & ISA_FORM_ACC) /* the destination is the last source */
        i->src[isa_valu_sources(i->op) - 1] = i->dst;
    return 1;
}
