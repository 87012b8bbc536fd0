/* machine_memory.c - which memory a wave may access.
 *
 * Every byte of every access lies in a live block of the device's table, within the size the
 * program asked for. What was found is remembered for the launch, a few blocks per thread, because
 * waves return to the same buffers; a block that is freed while a kernel runs is unmapped and
 * faults as every access to such memory does. */
#include "soft/runtime/machine/machine.h"

#include <string.h>

static const struct machine_range *recall(const struct machine_worker *w, uint64_t address) {
    for (unsigned i = 0; i < MACHINE_RANGES; i++)
        if (address - w->ranges[i].start < w->ranges[i].bytes)
            return &w->ranges[i];
    return NULL;
}

static const struct machine_range *look_up(struct machine_worker *w, uint64_t address) {
    struct soft_block b;
    const struct machine_range *known = recall(w, address);
    if (known)
        return known;
    if (!soft_memory_find(address, &b) || b.state != SOFT_LIVE)
        return NULL;
    struct machine_range *r = &w->ranges[w->next_range++ % MACHINE_RANGES];
    *r = (struct machine_range){ b.addr, b.size, soft_reach(b.addr) };
    return r;
}

static void *span(void *context, const struct isa_access *a, uint64_t address, uint64_t bytes) {
    const struct machine_range *r = look_up(context, address);
    (void)a;
    if (!r || bytes > r->bytes - (address - r->start))
        return NULL;
    return r->host + (address - r->start);
}

static bool lanes(void *context, const struct isa_access *a, const uint64_t address[ISA_LANES],
                  void *host[ISA_LANES], unsigned *lane, uint64_t *at) {
    for (uint64_t left = a->lanes; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctzll(left);
        const struct machine_range *r = look_up(context, address[l]);
        uint64_t inside = r ? r->bytes - (address[l] - r->start) : 0;
        if (inside < a->bytes) {
            *lane = l;
            *at = address[l] + inside; /* the first byte that is not there */
            return false;
        }
        host[l] = r->host + (address[l] - r->start);
    }
    return true;
}

void machine_memory_init(struct machine_worker *w) {
    w->memory = (struct isa_memory){ .context = w, .span = span, .lanes = lanes };
}

void machine_memory_forget(struct machine_worker *w) {
    memset(w->ranges, 0, sizeof w->ranges);
}
