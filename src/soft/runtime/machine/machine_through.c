/* machine_through.c - see machine_through.h, and isa/through.h for how it is known which argument
 * an instruction goes through. Arguments are numbered from 1 among those that are pointers; own[0]
 * is for instructions that go through none. */
#include "soft/runtime/machine/machine_through.h"

#include <stdlib.h>
#include <string.h>

#include "isa/through.h"
#include "soft/runtime/machine/machine_check.h"
#include "soft/runtime/settings.h"
#include "soft/runtime/slack.h"
#include "soft/runtime/tensor.h"

/* False for memory that the program maps itself, where adjacent pieces may be used as one, and for
 * variables, which share their module's block. */
static bool stands_alone(const struct soft_block *b) {
    return b->state == SOFT_LIVE && b->kind != SOFT_VIRTUAL && b->kind != SOFT_GLOBAL;
}

void machine_through_begin(struct machine_launch *l) {
    const struct codeobj_argument *a;
    uint32_t index;
    if (!l->machine->through || !(l->own = calloc(ISA_THROUGH_ARGUMENTS, sizeof *l->own)))
        return;
    for (unsigned n = 1; n < ISA_THROUGH_ARGUMENTS; n++) {
        uint64_t value;
        struct soft_block b;
        if (!(a = machine_through_argument(l->machine->kernel, n, &index)))
            break;
        if (a->offset + sizeof value > l->op->bytes)
            continue;
        memcpy(&value, (const unsigned char *)l->op->data + a->offset, sizeof value);
        if (!soft_memory_find(value, &b) || b.state != SOFT_LIVE)
            continue;
        if (stands_alone(&b) && value - b.addr < b.size)
            l->own[n] = (struct machine_own){ b.addr, b.size };
        (void)soft_tensor_find(value, &l->own[n].start, &l->own[n].bytes);
    }
}

void machine_through_end(struct machine_launch *l) {
    free(l->own);
    l->own = NULL;
}

void machine_through_tell(struct machine_worker *w, const struct isa_access *a, unsigned lane,
                          uint64_t address) {
    static const int kinds[] = { [ISA_LOAD] = GRETA_SOFT_TOUCH_READ,
                                 [ISA_STORE] = GRETA_SOFT_TOUCH_WRITE,
                                 [ISA_ATOMIC] = GRETA_SOFT_TOUCH_ATOMIC };
    const struct machine_own *own = machine_through_own(w->launch, a);
    uint32_t index = 0;
    struct soft_block b;
    (void)machine_through_argument(w->launch->machine->kernel, (unsigned)(own - w->launch->own),
                                   &index);
    bool before = address < own->start;
    if (address - own->start < own->bytes) /* it begins inside */
        address = own->start + own->bytes;
    struct greta_soft_caught c = { .kind = GRETA_SOFT_CAUGHT_ASTRAY,
                                   .space = GRETA_SOFT_SPACE_GLOBAL,
                                   .address = address,
                                   .bytes = before ? own->start - address
                                                   : address - (own->start + own->bytes),
                                   .count = index,
                                   .all = before };
    if (soft_memory_find(address, &b))
        c.allocation_base = b.addr;
    c.at[0].pc = isa_wave_pc(a->wave) - 4u * a->insn->words;
    c.at[0].kind = kinds[a->kind];
    machine_check_tell(w, a->wave, lane, &c);
}
