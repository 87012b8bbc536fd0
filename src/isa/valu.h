/* valu.h - shared by the files that execute vector instructions. */
#ifndef ISA_VALU_H
#define ISA_VALU_H

#include "isa/exec.h"
#include "isa/rows.h"

/* An instruction on its way through general(). */
struct isa_valu {
    struct isa_wave *w;
    const struct isa_insn *i;
    const struct isa_info *info;
    const struct isa_rows *rows;
    isa_row_fn fn;
    unsigned sources;
    unsigned dst_mode; /* rounding and denormals of the destination's type */
    unsigned index[4]; /* of src0 to src2 and dst: what VGPR indexing adds */
    uint64_t lanes;    /* that are written */
    const uint32_t *row[3];
    _Alignas(64) uint32_t space[3][4 * ISA_LANES]; /* copies of sources */
    _Alignas(64) uint32_t result[5 * ISA_LANES];
};

/* A scalar source in all lanes: one row, or two for 64-bit types. */
const uint32_t *isa_valu_spread(struct isa_wave *w, const struct isa_insn *i, int s,
                                const struct isa_rows *rows, uint32_t *space);

/* Rows of all sources with VGPR indexing, SDWA, DPP, op_sel, abs and neg. Takes lanes away (DPP)
 * and sets the row function of saturating instructions. False, and why, for what is not supported.
 */
bool isa_valu_prepare(struct isa_valu *v, const char **why);

/* Denormals of a source become zeros if its mode says so. */
void isa_valu_flush(struct isa_valu *v, unsigned s, unsigned mode);

/* omod, clamp, denormals, halves and SDWA of the result, which is to be merged into d. */
void isa_valu_finish(struct isa_valu *v, const uint32_t *d);

enum isa_result isa_valu_general(struct isa_wave *w, const struct isa_insn *i);

/* Rows that the row function reads. */
int isa_valu_sources(enum isa_op op);
int isa_valu_is_cmpx(enum isa_op op);
int isa_valu_has(enum isa_op op);

/* For isa_bind(): sets exec and kernel if there is a row function. */
int isa_valu_bind(struct isa_insn *i);

/* The same for one that isa_valu_bind() has bound: a shorter way, if its form allows one. */
void isa_plain_bind(struct isa_insn *i);

#endif
