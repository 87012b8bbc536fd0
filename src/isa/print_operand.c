/* print_operand.c - operands as llvm-mc and llvm-objdump write them. */
#include "isa/print.h"

#include <stdarg.h>
#include <stdio.h>

void isa_text_add(struct isa_text *t, const char *fmt, ...) {
    size_t used = (size_t)t->length < t->size ? (size_t)t->length : t->size;
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(t->size > used ? t->out + used : NULL, t->size - used, fmt, args);
    va_end(args);
    t->length += n > 0 ? n : 0;
}

/* "s3", "s[4:7]". */
static void register_range(struct isa_text *t, char kind, unsigned first, unsigned dwords) {
    if (dwords <= 1)
        isa_text_add(t, "%c%u", kind, first);
    else
        isa_text_add(t, "%c[%u:%u]", kind, first, first + dwords - 1);
}

static void print_scalar_register(struct isa_text *t, unsigned code, unsigned dwords) {
    static const struct {
        unsigned code;
        const char *low, *high, *both;
    } named[] = { { ISA_FLAT_SCRATCH, "flat_scratch_lo", "flat_scratch_hi", "flat_scratch" },
                  { ISA_XNACK_MASK, "xnack_mask_lo", "xnack_mask_hi", "xnack_mask" },
                  { ISA_VCC, "vcc_lo", "vcc_hi", "vcc" },
                  { ISA_EXEC, "exec_lo", "exec_hi", "exec" } };
    if (code < ISA_FLAT_SCRATCH) {
        register_range(t, 's', code, dwords);
        return;
    }
    for (size_t n = 0; n < sizeof named / sizeof *named; n++) {
        if (named[n].code == (code & ~1u)) {
            isa_text_add(t, "%s",
                         dwords > 1 ? named[n].both
                         : code & 1 ? named[n].high
                                    : named[n].low);
            return;
        }
    }
    if (code >= ISA_TTMP0 && code < ISA_M0) {
        isa_text_add(t, "ttmp");
        if (dwords <= 1)
            isa_text_add(t, "%u", code - ISA_TTMP0);
        else
            isa_text_add(t, "[%u:%u]", code - ISA_TTMP0, code - ISA_TTMP0 + dwords - 1);
        return;
    }
    isa_text_add(t, code == ISA_M0 ? "m0" : "<reserved %u>", code);
}

static const char *const floats[] = { "0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0" };

static const uint16_t float16[] = { 0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000,
                                    0xc000, 0x4400, 0xc400, 0x3118 };

static int is_f16(enum isa_type type) {
    return type == ISA_TYPE_F16;
}

static int is_i16(enum isa_type type) {
    return type == ISA_TYPE_I16 || type == ISA_TYPE_U16 || type == ISA_TYPE_B16;
}

/* A constant of 16 bits. Integers show what floats they are as bits. */
static void print_16(struct isa_text *t, uint16_t value, enum isa_type type) {
    if ((int16_t)value >= -16 && (int16_t)value <= 64) {
        isa_text_add(t, "%d", (int16_t)value);
        return;
    }
    for (int n = 0; n < 8 && is_f16(type); n++)
        if (float16[n] == value) {
            isa_text_add(t, "%s", floats[n]);
            return;
        }
    if (value == 0x3118 && is_f16(type))
        isa_text_add(t, "0.15915494");
    else
        isa_text_add(t, "0x%x", value);
}

/* A literal that equals an inline constant is written like it. */
static void print_literal(struct isa_text *t, uint32_t value, enum isa_type type) {
    static const uint32_t inline32[] = { 0x3f000000, 0xbf000000, 0x3f800000, 0xbf800000,
                                         0x40000000, 0xc0000000, 0x40800000, 0xc0800000 };
    int low = isa_type_dwords(type) == 2 ? 0 : -16; /* zero-extended to 64 bits */
    if (is_f16(type) || is_i16(type)) {
        print_16(t, (uint16_t)value, type);
        return;
    }
    if ((int32_t)value >= low && (int32_t)value <= 64 && type != ISA_TYPE_F64) {
        isa_text_add(t, "%d", (int32_t)value);
        return;
    }
    int has_floats = isa_type_dwords(type) == 1 && type != ISA_TYPE_V2F16 &&
                     type != ISA_TYPE_V2I16 && type != ISA_TYPE_V2U16;
    for (int n = 0; n < 8 && has_floats; n++)
        if (inline32[n] == value) {
            isa_text_add(t, "%s", floats[n]);
            return;
        }
    if (has_floats && value == 0x3e22f983)
        isa_text_add(t, "0.15915494");
    else
        isa_text_add(t, "0x%x", value);
}

static void print_constant(struct isa_text *t, const struct isa_insn *i, unsigned code,
                           enum isa_type type) {
    static const char *const special[] = { "src_shared_base", "src_shared_limit",
                                           "src_private_base", "src_private_limit",
                                           "src_pops_exiting_wave_id" };
    if (code <= 192)
        isa_text_add(t, "%u", code - 128);
    else if (code <= ISA_INT_M16)
        isa_text_add(t, "-%u", code - 192);
    else if (code >= ISA_SHARED_BASE && code < ISA_FLOAT_0_5)
        isa_text_add(t, "%s", special[code - ISA_SHARED_BASE]);
    else if (code >= ISA_FLOAT_0_5 && code <= ISA_FLOAT_1_2PI && is_i16(type))
        isa_text_add(t, "0x%x", float16[code - ISA_FLOAT_0_5]);
    else if (code >= ISA_FLOAT_0_5 && code < ISA_FLOAT_1_2PI)
        isa_text_add(t, "%s", floats[code - ISA_FLOAT_0_5]);
    else if (code == ISA_FLOAT_1_2PI)
        isa_text_add(t, "%s",
                     isa_type_dwords(type) == 2 && type != ISA_TYPE_V2F32 && type != ISA_TYPE_V2B32
                         ? "0.15915494309189532"
                         : "0.15915494");
    else if (code == ISA_VCCZ || code == ISA_EXECZ || code == ISA_SCC)
        isa_text_add(t, "%s",
                     code == ISA_VCCZ    ? "src_vccz"
                     : code == ISA_EXECZ ? "src_execz"
                                         : "src_scc");
    else if (code == ISA_LITERAL)
        print_literal(t, i->literal, type);
    else
        isa_text_add(t, "<reserved %u>", code);
}

void isa_operand_print(struct isa_text *t, const struct isa_insn *i, unsigned code,
                       enum isa_type type) {
    unsigned dwords = isa_type_dwords(type);
    if (code == ISA_OFF)
        isa_text_add(t, "off");
    else if (code >= ISA_AGPR0)
        register_range(t, 'a', code - ISA_AGPR0, dwords);
    else if (code >= ISA_VGPR0)
        register_range(t, 'v', code - ISA_VGPR0, dwords);
    else if (code >= ISA_INT_0)
        print_constant(t, i, code, type);
    else
        print_scalar_register(t, code, dwords);
}

/* Bit 15 set: a permutation of 4 lanes. Else lane = ((lane & and) | or) ^ xor, of which some have
 * names: BROADCAST (and = ~(n - 1), or < n), SWAP (xor = n), REVERSE (xor = n - 1). */
void isa_swizzle_print(struct isa_text *t, unsigned offset) {
    unsigned and = offset & 31, or = offset >> 5 & 31, xor = offset >> 10 & 31;
    if (offset == 0)
        return;
    isa_text_add(t, " offset:");
    if (offset >> 8 == 0x80) {
        isa_text_add(t, "swizzle(QUAD_PERM,%u,%u,%u,%u)", offset & 3, offset >> 2 & 3,
                     offset >> 4 & 3, offset >> 6 & 3);
        return;
    }
    if (offset >> 15) {
        isa_text_add(t, "%u", offset);
        return;
    }
    if (and == 31 && or == 0 && xor&&(xor&(xor-1)) == 0) {
        isa_text_add(t, "swizzle(SWAP,%u)", xor);
        return;
    }
    if (and == 31 && or == 0 && xor&&(xor&(xor+1)) == 0) {
        isa_text_add(t, "swizzle(REVERSE,%u)", xor+1);
        return;
    }
    unsigned group = 32 - and;
    if (group > 1 && (group & (group - 1)) == 0 && or < group && xor == 0) {
        isa_text_add(t, "swizzle(BROADCAST,%u,%u)", group, or);
        return;
    }
    isa_text_add(t, "swizzle(BITMASK_PERM,\"");
    for (int b = 4; b >= 0; b--) {
        unsigned p0 = ((0u & and) | or) ^ xor, p1 = ((31u & and) | or) ^ xor;
        p0 = p0 >> b & 1;
        p1 = p1 >> b & 1;
        isa_text_add(t, "%c", p0 == p1 ? (p0 ? '1' : '0') : p0 == 0 ? 'p' : 'i');
    }
    isa_text_add(t, "\")");
}

void isa_format_print(struct isa_text *t, unsigned format) {
    static const char *const data[16] = {
        "INVALID",     "8",        "16",          "8_8",         "32",      "16_16",
        "10_11_11",    "11_11_10", "10_10_10_2",  "2_10_10_10",  "8_8_8_8", "32_32",
        "16_16_16_16", "32_32_32", "32_32_32_32", "RESERVED_15",
    };
    static const char *const number[8] = { "UNORM", "SNORM", "USCALED",    "SSCALED",
                                           "UINT",  "SINT",  "RESERVED_6", "FLOAT" };
    unsigned dfmt = format & 15, nfmt = format >> 4 & 7;
    if (dfmt == 1 && nfmt == 0)
        return; /* the default */
    isa_text_add(t, " format:[");
    if (dfmt != 1)
        isa_text_add(t, "BUF_DATA_FORMAT_%s", data[dfmt]);
    if (dfmt != 1 && nfmt != 0)
        isa_text_add(t, ",");
    if (nfmt != 0)
        isa_text_add(t, "BUF_NUM_FORMAT_%s", number[nfmt]);
    isa_text_add(t, "]");
}
