/* reach.c - device addresses of a wave's lanes to host addresses. */
#include "isa/exec.h"
#include "isa/rows.h"

/* Lanes within this many bytes of each other are asked about as one span: offsets have 31 bits. */
#define SPAN_MAX (UINT64_C(1) << 30)

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
    uint64_t lanes = a->lanes, low, high;
    if (!lanes)
        return ISA_CONTINUE;
    if (!m->span)
        return ask_lanes(a, address, host);
    isa_rows_chosen->bounds(address, lanes, &low, &high);
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

void isa_reach_addresses(uint64_t address[ISA_LANES], const uint32_t *low, const uint32_t *high,
                         uint64_t add) {
    isa_rows_chosen->addresses(address, low, high, add);
}

bool isa_reach_upper(const uint64_t address[ISA_LANES], uint64_t lanes, uint64_t *upper) {
    uint64_t low, high;
    isa_rows_chosen->bounds(address, lanes, &low, &high);
    *upper = low >> 32;
    return low >> 32 == high >> 32;
}

void isa_reach_lower(uint32_t low[ISA_LANES], const uint64_t address[ISA_LANES]) {
    isa_rows_chosen->distances(low, address, 0);
}

void isa_reach_load(uint32_t *d, const uint8_t *base, const uint32_t *offset, uint64_t lanes) {
    isa_rows_chosen->load(d, base, offset, lanes);
}

void isa_reach_load_pairs(uint32_t *d, const uint8_t *base, const uint32_t *offset,
                          uint64_t lanes) {
    isa_rows_chosen->load_pairs(d, base, offset, lanes);
}

void isa_reach_store(uint8_t *base, const uint32_t *offset, const uint32_t *s, uint64_t lanes) {
    isa_rows_chosen->store(base, offset, s, lanes);
}

void isa_reach_store_pairs(uint8_t *base, const uint32_t *offset, const uint32_t *s,
                           uint64_t lanes) {
    isa_rows_chosen->store_pairs(base, offset, s, lanes);
}

void isa_reach_load_row(uint32_t *d, const uint8_t *base, unsigned dwords) {
    isa_rows_chosen->load_row(d, base, dwords);
}

void isa_reach_store_row(uint8_t *base, const uint32_t *s, unsigned dwords) {
    isa_rows_chosen->store_row(base, s, dwords);
}

void isa_reach_load_small(uint32_t *d, const uint8_t *base, unsigned bytes, bool sign) {
    isa_rows_chosen->load_small(d, base, bytes, sign);
}

void isa_reach_store_small(uint8_t *base, const uint32_t *s, unsigned bytes) {
    isa_rows_chosen->store_small(base, s, bytes);
}

void isa_reach_offsets(uint32_t offset[ISA_LANES], const uint32_t *s, uint32_t add) {
    isa_rows_chosen->sum(offset, s, add);
}

/* Lane numbers are `bits` of from[], from bit `at` on. */
static void exchange(uint32_t *d, const uint32_t *s, const uint32_t from[ISA_LANES], uint64_t lanes,
                     unsigned at) {
    enum { BITS = 6 };
    const struct isa_rows *rows = isa_rows_chosen;
    _Alignas(64) uint32_t taken[ISA_LANES], lane[ISA_LANES], on[ISA_LANES], valid[ISA_LANES];
    rows->extract(lane, from, 32 - BITS - at, 32 - BITS, false);
    if (lanes == ~UINT64_C(0)) {
        rows->gather(taken, s, lane, lanes);
    } else {
        rows->expand(on, lanes);
        rows->gather(valid, on, lane, lanes);
        rows->gather(taken, s, lane, rows->collect(valid));
    }
    rows->merge(d, taken, lanes);
}

void isa_reach_exchange(uint32_t *d, const uint32_t *s, const uint32_t from[ISA_LANES],
                        uint64_t lanes) {
    exchange(d, s, from, lanes, 0);
}

void isa_reach_exchange_bytes(uint32_t *d, const uint32_t *s, const uint32_t byte[ISA_LANES],
                              uint64_t lanes) {
    exchange(d, s, byte, lanes, 2);
}

void *isa_reach_near(const struct isa_access *a, const uint64_t address[ISA_LANES],
                     uint32_t offset[ISA_LANES]) {
    const struct isa_memory *m = a->wave->memory;
    uint64_t low, high;
    if (!m->span)
        return NULL;
    isa_rows_chosen->bounds(address, a->lanes, &low, &high);
    if (high - low > SPAN_MAX)
        return NULL;
    isa_rows_chosen->distances(offset, address, low);
    return m->span(m->context, a, low, high - low + a->bytes);
}

uint8_t *isa_reach_lds_near(const struct isa_access *a, const uint32_t offset[ISA_LANES]) {
    const struct isa_group *g = a->wave->group;
    if (a->wave->memory->lds || a->kind == ISA_ATOMIC || g->lds_bytes < a->bytes)
        return NULL;
    bool inside = isa_rows_chosen->highest(offset, a->lanes) <= g->lds_bytes - a->bytes;
    return inside ? g->lds : NULL;
}

void *isa_reach_row(const struct isa_access *a, const uint64_t address[ISA_LANES]) {
    const struct isa_memory *m = a->wave->memory;
    if (a->lanes != ~UINT64_C(0) || !m->row)
        return NULL;
    if (!isa_rows_chosen->is_row(address, a->bytes))
        return NULL;
    return m->row(m->context, a, address[0], (uint64_t)ISA_LANES * a->bytes);
}

/* Host addresses of all lanes at once, where none is outside, and none that is on or off is
 * misaligned for an atomic; false where they have to be looked at one by one. */
static bool reach_lds_together(const struct isa_access *a, const uint32_t offset[ISA_LANES],
                               void *host[ISA_LANES]) {
    const struct isa_group *g = a->wave->group;
    uint32_t odd = 0;
    if (a->wave->memory->lds || !a->lanes || g->lds_bytes < a->bytes ||
        isa_rows_chosen->highest(offset, a->lanes) > g->lds_bytes - a->bytes)
        return false;
    for (unsigned l = 0; l < ISA_LANES; l++)
        odd |= offset[l];
    if (a->kind == ISA_ATOMIC && odd & (a->bytes - 1))
        return false;
    for (unsigned l = 0; l < ISA_LANES; l++)
        host[l] = (void *)((uintptr_t)g->lds + offset[l]);
    return true;
}

enum isa_result isa_reach_lds(const struct isa_access *a, const uint32_t offset[ISA_LANES],
                              void *host[ISA_LANES]) {
    const struct isa_group *g = a->wave->group;
    const struct isa_memory *m = a->wave->memory;
    if (reach_lds_together(a, offset, host))
        return ISA_CONTINUE;
    for (uint64_t left = a->lanes; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctzll(left);
        if (offset[l] > g->lds_bytes || g->lds_bytes - offset[l] < a->bytes)
            return isa_stop_fault(a, l, offset[l], "outside the group's LDS");
        if (a->kind == ISA_ATOMIC && offset[l] % a->bytes)
            return isa_stop_fault(a, l, offset[l], "misaligned atomic");
        host[l] = g->lds + offset[l];
    }
    unsigned lane = 0;
    uint64_t at = 0;
    if (m->lds && !m->lds(m->context, a, offset, &lane, &at))
        return isa_stop_fault(a, lane, at, NULL);
    return ISA_CONTINUE;
}

uint8_t *isa_reach_scratch_near(const struct isa_access *a, uint64_t base,
                                const uint32_t offset[ISA_LANES], uint32_t swizzled[ISA_LANES]) {
    const struct isa_wave *w = a->wave;
    const struct isa_memory *m = w->memory;
    uint64_t size = (uint64_t)w->scratch_bytes * ISA_LANES, skipped = base - w->scratch_base;
    if (a->kind == ISA_ATOMIC || m->scratch || !m->span || !size || skipped > size)
        return NULL;
    uint32_t odd = isa_rows_chosen->swizzle(swizzled, offset);
    uint64_t last = isa_rows_chosen->highest(offset, a->lanes) / 4;
    if (odd + a->bytes > 4 || (last + 1) * 4 * ISA_LANES > size - skipped)
        return NULL;
    uint8_t *all = m->span(m->context, a, w->scratch_base, size);
    return all ? all + skipped : NULL;
}
