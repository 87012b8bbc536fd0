#include "soft/runtime/machine/machine_used.h"

#include "isa/taint.h"
#include "soft/runtime/settings.h"
#include "soft/runtime/slack.h"

#include <stdlib.h>
#include <string.h>

enum { KINDS = ISA_APPROXIMATE + 1 };

void machine_used_begin(struct machine_launch *l) {
    if (soft_executed_wanted())
        l->used = calloc(ISA_OP_COUNT, sizeof *l->used);
}

void machine_used_take(struct machine_launch *l, struct machine_worker *w) {
    w->used = l->used ? calloc(ISA_OP_COUNT, sizeof *w->used) : NULL;
}

void machine_used_give(struct machine_launch *l, struct machine_worker *w) {
    if (!w->used)
        return;
    spin_lock(&l->lock);
    for (unsigned op = 0; op < ISA_OP_COUNT; op++)
        l->used[op] += w->used[op];
    spin_unlock(&l->lock);
    free(w->used);
    w->used = NULL;
}

/* Room for the names of all instructions, and a blank after each. */
static size_t all_names(void) {
    size_t bytes = 1;
    for (unsigned op = 1; op < ISA_OP_COUNT; op++)
        bytes += strlen(isa_info[op].name) + 1;
    return bytes;
}

/* Lists the executed instructions of that exactness; *count: how often they were executed. */
static void list_names(const struct machine_launch *l, unsigned exactness, char *out,
                       uint64_t *count) {
    enum isa_gpu gpu = isa_code_gpu(l->machine->code);
    size_t n = 0;
    *count = 0;
    for (unsigned op = 1; op < ISA_OP_COUNT; op++) {
        if (!l->used[op] || isa_exactness_on(gpu, op) != exactness)
            continue;
        size_t bytes = strlen(isa_info[op].name);
        if (n)
            out[n++] = ' ';
        memcpy(out + n, isa_info[op].name, bytes);
        n += bytes;
        *count += l->used[op];
    }
    out[n] = '\0';
}

void machine_used_end(struct machine_launch *l) {
    size_t room = all_names();
    char *names = l->used ? malloc(KINDS * room) : NULL;
    uint64_t count[KINDS];
    if (names) {
        for (unsigned k = 0; k < KINDS; k++)
            list_names(l, k, names + k * room, &count[k]);
        struct greta_soft_executed e = {
            .exact = count[ISA_EXACT],
            .precise = count[ISA_PRECISION],
            .approximate = count[ISA_APPROXIMATE],
            .exact_names = names + ISA_EXACT * room,
            .precise_names = names + ISA_PRECISION * room,
            .approximate_names = names + ISA_APPROXIMATE * room,
            .followed = (soft_settings()->checks & SOFT_CHECK_INIT) != 0,
            .address = l->reached >> ISA_TAINT_ADDRESS & 1,
            .branch = l->reached >> ISA_TAINT_BRANCH & 1,
        };
        soft_executed_tell(l->op, &e);
    }
    free(names);
    free(l->used);
    l->used = NULL;
}
