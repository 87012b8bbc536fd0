/* machine_follow.c - has a kernel's pointer arguments followed through its code (isa/through.h),
 * once, when the function is made. Arguments are numbered from 1 among those that are pointers. */
#include <stdlib.h>

#include "isa/through.h"
#include "soft/runtime/machine/machine_through.h"
#include "soft/runtime/settings.h"

static bool is_followed(const struct codeobj_argument *a) {
    return a->is_pointer && !a->is_hidden && a->size == 8 && a->offset % 4 == 0;
}

const struct codeobj_argument *machine_through_argument(const struct codeobj_kernel *k,
                                                        unsigned number, uint32_t *index) {
    for (uint32_t i = 0; i < k->argument_count; i++)
        if (is_followed(&k->arguments[i]) && --number == 0) {
            *index = i;
            return &k->arguments[i];
        }
    return NULL;
}

void soft_machine_find_through(struct soft_machine *m, uint64_t end) {
    unsigned dwords = codeobj_kernarg_bytes(m->kernel) / 4, number = 1;
    uint8_t *of = calloc(dwords + 1, 1);
    if (!of || !(soft_settings()->checks & SOFT_CHECK_BOUNDS) || end <= m->entry) {
        free(of);
        return;
    }
    for (uint32_t i = 0; i < m->kernel->argument_count; i++) {
        const struct codeobj_argument *a = &m->kernel->arguments[i];
        if (!is_followed(a))
            continue;
        if (number < ISA_THROUGH_ARGUMENTS && a->offset / 4 + 1 < dwords)
            of[a->offset / 4] = of[a->offset / 4 + 1] = (uint8_t)number;
        number++;
    }
    const struct isa_through_kernel k = { .entry = m->entry,
                                          .end = end,
                                          .skip = m->start.entry_skip,
                                          .kernarg = m->start.kernarg_ptr,
                                          .preload = m->start.preload,
                                          .preload_offset = m->descriptor.preload_offset,
                                          .preload_count = m->descriptor.preload_count,
                                          .argument = of,
                                          .dwords = dwords };
    m->through = isa_through_find(m->code, &k);
    m->through_words = m->through ? (size_t)(end - m->entry) / 4 : 0;
    free(of);
}

void soft_machine_forget_through(struct soft_machine *m) {
    free(m->through);
    m->through = NULL;
    m->through_words = 0;
}
