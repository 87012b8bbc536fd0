/* lanes.c - vector instructions that move values between lanes, SGPRs and registers. */
#include "isa/exec.h"

#define EXEC_FN(name) static enum isa_result name(struct isa_wave *w, const struct isa_insn *i)

/* Not supported together with VGPR indexing, which would select other registers; compilers never
 * combine them. */
static bool is_indexed(const struct isa_wave *w) {
    return (w->mode & ISA_MODE_GPR_IDX) != 0;
}

/* The value of a source in one lane. */
static uint32_t lane_of(struct isa_wave *w, const struct isa_insn *i, unsigned code,
                        unsigned lane) {
    return code >= ISA_VGPR0 ? isa_row(w, code)[lane] : isa_scalar32(w, i, code);
}

EXEC_FN(v_readfirstlane_b32) {
    uint64_t exec = ISA_WAVE_EXEC(w);
    unsigned lane = exec ? (unsigned)__builtin_ctzll(exec) : 0;
    if (is_indexed(w))
        return isa_stop_unsupported(w, i, "VGPR indexing");
    isa_write32(w, i->dst, lane_of(w, i, i->src[0], lane));
    return ISA_CONTINUE;
}

EXEC_FN(v_readlane_b32) {
    if (is_indexed(w))
        return isa_stop_unsupported(w, i, "VGPR indexing");
    isa_write32(w, i->dst, lane_of(w, i, i->src[0], isa_scalar32(w, i, i->src[1]) & 63));
    return ISA_CONTINUE;
}

EXEC_FN(v_writelane_b32) {
    if (is_indexed(w))
        return isa_stop_unsupported(w, i, "VGPR indexing");
    isa_row(w, i->dst)[isa_scalar32(w, i, i->src[1]) & 63] = isa_scalar32(w, i, i->src[0]);
    return ISA_CONTINUE;
}

EXEC_FN(v_swap_b32) {
    uint32_t *a = isa_row(w, i->dst), *b = isa_row(w, i->src[0]);
    if (is_indexed(w))
        return isa_stop_unsupported(w, i, "VGPR indexing");
    for (uint64_t left = ISA_WAVE_EXEC(w); left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctzll(left);
        uint32_t kept = a[l];
        a[l] = b[l];
        b[l] = kept;
    }
    return ISA_CONTINUE;
}

/* Four sums of 32 bits, of bytes at offsets 0 to 3 of 64 bits. */
EXEC_FN(v_mqsad_u32_u8) {
    if (is_indexed(w) || i->src[0] < ISA_VGPR0 || i->src[2] < ISA_VGPR0)
        return isa_stop_unsupported(w, i, "scalar sources or VGPR indexing");
    const uint32_t *a = isa_row(w, i->src[0]), *c = isa_row(w, i->src[2]);
    for (uint64_t left = ISA_WAVE_EXEC(w); left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctzll(left);
        uint64_t bytes = a[l] | (uint64_t)a[ISA_LANES + l] << 32;
        uint32_t b = lane_of(w, i, i->src[1], l), sum[4];
        for (unsigned n = 0; n < 4; n++) {
            sum[n] = c[n * ISA_LANES + l];
            for (unsigned k = 0; k < 32; k += 8) {
                int x = (int)(bytes >> (8 * n + k) & 0xff), y = (int)(b >> k & 0xff);
                sum[n] += y ? (uint32_t)(x > y ? x - y : y - x) : 0;
            }
        }
        for (unsigned n = 0; n < 4; n++)
            isa_row(w, i->dst)[n * ISA_LANES + l] = sum[n];
    }
    return ISA_CONTINUE;
}

const isa_exec_fn isa_group_lanes[ISA_OP_COUNT] = {
    [ISA_OP_v_readfirstlane_b32] = v_readfirstlane_b32, [ISA_OP_v_readlane_b32] = v_readlane_b32,
    [ISA_OP_v_writelane_b32] = v_writelane_b32,         [ISA_OP_v_swap_b32] = v_swap_b32,
    [ISA_OP_v_mqsad_u32_u8] = v_mqsad_u32_u8,
};
