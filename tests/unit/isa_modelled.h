/* isa_modelled.h - which lines of gfx9.def the tests that make models from names have: each of
 * those tests asks here what it must check, and test_isa_covered asks which lines are left. */
#ifndef TESTS_UNIT_ISA_MODELLED_H
#define TESTS_UNIT_ISA_MODELLED_H

#include "isa/insn.h"

#include <stdbool.h>
#include <string.h>

/* test_isa_loads: loads and stores of device memory and scratch. */
static inline bool isa_is_plain_move(const struct isa_info *info) {
    bool encoding = info->encoding == ISA_ENC_FLAT || info->encoding == ISA_ENC_GLOBAL ||
                    info->encoding == ISA_ENC_SCRATCH || info->encoding == ISA_ENC_MUBUF;
    return encoding && info->forms & (ISA_FORM_LOAD | ISA_FORM_STORE) &&
           !(info->forms & (ISA_FORM_ATOMIC | ISA_FORM_TOLDS)) && !strstr(info->name, "format");
}

/* test_isa_lds: loads, stores and exchanges of two places of LDS. */
static inline bool isa_is_lds_move(const struct isa_info *info) {
    return info->encoding == ISA_ENC_DS &&
           (!strncmp(info->name, "ds_read", 7) || !strncmp(info->name, "ds_write", 8) ||
            !strncmp(info->name, "ds_wrxchg2", 10));
}

/* test_isa_lds: loads and stores of scalar registers. */
static inline bool isa_is_scalar_move(const struct isa_info *info) {
    return info->encoding == ISA_ENC_SMEM && strstr(info->name, "_dword") &&
           !(info->forms & ISA_FORM_ATOMIC);
}

/* test_isa_atomics: atomics of memory, images and scalar registers; those of LDS. */
static inline bool isa_is_atomic(const struct isa_info *info) {
    static const char *const others[] = { "ds_swizzle", "ds_permute", "ds_bpermute", "ds_gws",
                                          "ds_consume", "ds_append",  "ds_nop" };
    if (info->encoding != ISA_ENC_DS)
        return info->forms & ISA_FORM_ATOMIC;
    for (size_t n = 0; n < sizeof others / sizeof *others; n++)
        if (!strncmp(info->name, others[n], strlen(others[n])))
            return false;
    return !isa_is_lds_move(info);
}

#endif
