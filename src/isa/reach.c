/* reach.c - device addresses of a wave's lanes to host addresses. */
#include "isa/exec.h"

/* Lanes within this many bytes of each other are asked about as one span. */
#define SPAN_MAX (64 * 1024)

static enum isa_result ask_lanes(const struct isa_access *a, const uint64_t address[ISA_LANES],
                                 void *host[ISA_LANES]) {
    const struct isa_memory *m = a->wave->memory;
    unsigned lane = 0;
    uint64_t at = 0;
    if (m->lanes(m->context, a, address, host, &lane, &at))
        return ISA_CONTINUE;
    return isa_stop_fault(a, lane, at, NULL);
}

enum isa_result isa_reach(const struct isa_access *a, const uint64_t address[ISA_LANES],
                          void *host[ISA_LANES]) {
    const struct isa_memory *m = a->wave->memory;
    uint64_t lanes = a->lanes, low = ~UINT64_C(0), high = 0;
    if (!lanes)
        return ISA_CONTINUE;
    if (!m->span)
        return ask_lanes(a, address, host);
    for (uint64_t left = lanes; left; left &= left - 1) {
        uint64_t at = address[__builtin_ctzll(left)];
        low = at < low ? at : low;
        high = at > high ? at : high;
    }
    if (high - low > SPAN_MAX)
        return ask_lanes(a, address, host);
    uint8_t *base = m->span(m->context, a, low, high - low + a->bytes);
    if (!base)
        return ask_lanes(a, address, host);
    for (uint64_t left = lanes; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctzll(left);
        host[l] = base + (address[l] - low);
    }
    return ISA_CONTINUE;
}
