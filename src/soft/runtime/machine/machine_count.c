/* machine_count.c - counts what launches of machine code do, for reports on kernels: instructions
 * by kind, bytes asked for and the cache lines they lie in, cycles of LDS.
 *
 * LDS is taken for 32 banks of 4 bytes: as many lanes as ask for 128 bytes are served together, in
 * as many cycles as the fullest bank has different dwords. */
#include "soft/runtime/machine/machine_count.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/spin.h"

enum { LINE = 128, HALF = 64, BANKS = 32, FIRST_ROOM = 1 << 12 };

static struct {
    _Atomic bool on;
    struct spin lock;
    struct greta_soft_count sum;
    uint64_t *lines; /* open addressing: numbers of lines + 1 */
    size_t room, used;
} count;

bool machine_count_is_on(void) {
    return atomic_load_explicit(&count.on, memory_order_relaxed);
}

void greta_soft_count_start(void) {
    spin_lock(&count.lock);
    memset(&count.sum, 0, sizeof count.sum);
    free(count.lines);
    count.lines = NULL;
    count.room = count.used = 0;
    atomic_store_explicit(&count.on, true, memory_order_relaxed);
    spin_unlock(&count.lock);
}

void greta_soft_count_stop(struct greta_soft_count *out) {
    spin_lock(&count.lock);
    atomic_store_explicit(&count.on, false, memory_order_relaxed);
    count.sum.lines = count.used;
    *out = count.sum;
    free(count.lines);
    count.lines = NULL;
    count.room = count.used = 0;
    spin_unlock(&count.lock);
}

/* ---- instructions ---------------------------------------------------------------------------- */

void machine_count_insn(const struct isa_insn *i) {
    const unsigned encoding = isa_info[i->op].encoding;
    unsigned bytes, products = isa_matrix_products(i->op, &bytes);
    struct greta_soft_count *s = &count.sum;
    spin_lock(&count.lock);
    if (products) {
        s->matrix++;
        s->products[bytes >= 4 ? 2 : bytes == 2 ? 1 : 0] += products;
    } else if (encoding == ISA_ENC_SMEM) {
        s->scalar_memory++;
    } else if (encoding == ISA_ENC_DS) {
        s->lds++;
    } else if (encoding >= ISA_ENC_FLAT) {
        s->memory++;
    } else if (encoding >= ISA_ENC_VOP2) {
        s->vector++;
    } else if (encoding == ISA_ENC_SOPP) {
        s->control++;
    } else {
        s->scalar++;
    }
    spin_unlock(&count.lock);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static bool grow(void) {
    size_t room = count.room ? 2 * count.room : FIRST_ROOM;
    uint64_t *lines = calloc(room, sizeof *lines);
    if (!lines)
        return false;
    for (size_t i = 0; i < count.room; i++) {
        size_t at = hash_bytes(&count.lines[i], sizeof *count.lines, 0) % room;
        while (count.lines[i] && lines[at])
            at = (at + 1) % room;
        if (count.lines[i])
            lines[at] = count.lines[i];
    }
    free(count.lines);
    count.lines = lines;
    count.room = room;
    return true;
}

/* Out of memory, lines go uncounted. */
static void enter(uint64_t line) {
    const uint64_t key = line + 1;
    if (2 * count.used >= count.room && !grow())
        return;
    size_t at = hash_bytes(&key, sizeof key, 0) % count.room;
    while (count.lines[at] && count.lines[at] != key)
        at = (at + 1) % count.room;
    count.used += !count.lines[at];
    count.lines[at] = key;
}

void machine_count_memory(const struct isa_access *a, const uint64_t address[ISA_LANES]) {
    uint64_t seen[2 * ISA_LANES];
    unsigned n = 0;
    spin_lock(&count.lock);
    for (uint64_t left = a->lanes; left; left &= left - 1) {
        uint64_t from = address[__builtin_ctzll(left)];
        count.sum.bytes += a->bytes;
        for (uint64_t half = from / HALF; half <= (from + a->bytes - 1) / HALF; half++) {
            unsigned k = n;
            while (k && seen[k - 1] != half)
                k--;
            if (k)
                continue;
            if (n < 2 * ISA_LANES)
                seen[n++] = half;
            count.sum.half_lines++;
            enter(half / (LINE / HALF));
        }
    }
    spin_unlock(&count.lock);
}

/* Cycles of the lanes from `first` on that are served together: the most dwords of one bank. */
static unsigned bank_cycles(const struct isa_access *a, const uint32_t address[ISA_LANES],
                            unsigned first, unsigned lanes) {
    uint32_t dword[ISA_LANES * 4];
    unsigned n = 0, in_bank[BANKS] = { 0 }, most = 0;
    for (unsigned l = first; l < first + lanes; l++)
        for (uint32_t d = 0; a->lanes >> l & 1 && d < a->bytes; d += 4) {
            uint32_t at = (address[l] + d) / 4;
            unsigned k = 0;
            while (k < n && dword[k] != at)
                k++;
            if (k < n)
                continue;
            dword[n++] = at;
            unsigned cycles = ++in_bank[at % BANKS];
            most = cycles > most ? cycles : most;
        }
    return most;
}

void machine_count_lds(const struct isa_access *a, const uint32_t address[ISA_LANES]) {
    const unsigned dwords = (a->bytes + 3) / 4, lanes = dwords > 2 ? 8 : dwords == 2 ? 16 : 32;
    spin_lock(&count.lock);
    for (unsigned first = 0; first < ISA_LANES; first += lanes) {
        unsigned cycles = bank_cycles(a, address, first, lanes);
        count.sum.lds_cycles += cycles;
        count.sum.lds_conflicts += cycles ? cycles - 1 : 0;
    }
    spin_unlock(&count.lock);
}
