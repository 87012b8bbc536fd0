/* operand.c - scalar sources. */
#include "isa/exec.h"

/* Inline constants 240 to 248. */
static const uint32_t float32[] = { 0x3f000000, 0xbf000000, 0x3f800000, 0xbf800000, 0x40000000,
                                    0xc0000000, 0x40800000, 0xc0800000, 0x3e22f983 };
static const uint16_t float16[] = { 0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000,
                                    0xc000, 0x4400, 0xc400, 0x3118 };
static const uint64_t float64[] = { 0x3fe0000000000000, 0xbfe0000000000000, 0x3ff0000000000000,
                                    0xbff0000000000000, 0x4000000000000000, 0xc000000000000000,
                                    0x4010000000000000, 0xc010000000000000, 0x3fc45f306dc9c882 };

static int32_t integer(unsigned code) {
    return code <= 192 ? (int32_t)(code - 128) : 192 - (int32_t)code;
}

static uint32_t special(const struct isa_wave *w, const struct isa_insn *i, unsigned code) {
    switch (code) {
    case ISA_VCCZ:
        return ISA_WAVE_VCC(w) == 0;
    case ISA_EXECZ:
        return ISA_WAVE_EXEC(w) == 0;
    case ISA_SCC:
        return w->scc;
    case ISA_LITERAL:
        return i->literal;
    default: /* the apertures: their low halves are 0 */
        return 0;
    }
}

uint32_t isa_constant32(const struct isa_wave *w, const struct isa_insn *i, unsigned code) {
    if (code <= ISA_INT_M16)
        return (uint32_t)integer(code);
    if (code >= ISA_FLOAT_0_5 && code <= ISA_FLOAT_1_2PI)
        return float32[code - ISA_FLOAT_0_5];
    return special(w, i, code);
}

uint32_t isa_scalar16(const struct isa_wave *w, const struct isa_insn *i, unsigned code) {
    if (code >= ISA_FLOAT_0_5 && code <= ISA_FLOAT_1_2PI)
        return float16[code - ISA_FLOAT_0_5];
    return isa_scalar32(w, i, code);
}

uint64_t isa_constant64(const struct isa_wave *w, const struct isa_insn *i, unsigned code,
                        enum isa_type type) {
    if (code >= ISA_INT_0 && code <= ISA_INT_M16)
        return (uint64_t)(int64_t)integer(code);
    if (code >= ISA_FLOAT_0_5 && code <= ISA_FLOAT_1_2PI)
        return float64[code - ISA_FLOAT_0_5];
    switch (code) {
    case ISA_SHARED_BASE:
        return w->shared_base;
    case ISA_SHARED_LIMIT:
        return w->shared_base | 0xffffffffu;
    case ISA_PRIVATE_BASE:
        return w->private_base;
    case ISA_PRIVATE_LIMIT:
        return w->private_base | 0xffffffffu;
    case ISA_LITERAL:
        if (type == ISA_TYPE_F64)
            return (uint64_t)i->literal << 32;
        return type == ISA_TYPE_I64 ? (uint64_t)(int64_t)(int32_t)i->literal : i->literal;
    default:
        return special(w, i, code);
    }
}
