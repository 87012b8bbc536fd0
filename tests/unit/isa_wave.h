/* isa_wave.h - one wave with plain memory, for tests that execute single instructions. */
#ifndef TESTS_UNIT_ISA_WAVE_H
#define TESTS_UNIT_ISA_WAVE_H

#include "isa/exec.h"
#include "unit/test.h"

#include <stdlib.h>
#include <string.h>

enum { MEMORY_BYTES = 64 << 10, LDS_BYTES = 4096, SCRATCH_BYTES = 64 };
#define MEMORY_BASE  UINT64_C(0x10000000000)
#define SCRATCH_BASE (MEMORY_BASE + MEMORY_BYTES / 2)
#define SHARED_BASE  UINT64_C(0x1000000000000)
#define PRIVATE_BASE UINT64_C(0x2000000000000)

static uint8_t memory[MEMORY_BYTES], lds[LDS_BYTES];
static unsigned spans, lane_calls; /* how often memory was asked */
static struct isa_wave *wave;
static struct isa_code *wave_code;
static struct isa_group group = { .lds = lds, .lds_bytes = LDS_BYTES };

static bool inside(uint64_t address, uint64_t bytes) {
    return address >= MEMORY_BASE && address - MEMORY_BASE <= MEMORY_BYTES &&
           MEMORY_BYTES - (address - MEMORY_BASE) >= bytes;
}

static void *memory_span(void *context, const struct isa_access *a, uint64_t address,
                         uint64_t bytes) {
    (void)context, (void)a;
    spans++;
    return inside(address, bytes) ? memory + (address - MEMORY_BASE) : NULL;
}

static bool memory_lanes(void *context, const struct isa_access *a,
                         const uint64_t address[ISA_LANES], void *host[ISA_LANES], unsigned *lane,
                         uint64_t *at) {
    (void)context;
    lane_calls++;
    for (unsigned l = 0; l < ISA_LANES; l++) {
        if (!(a->lanes >> l & 1))
            continue;
        if (!inside(address[l], a->bytes)) {
            *lane = l;
            *at = address[l];
            return false;
        }
        host[l] = memory + (address[l] - MEMORY_BASE);
    }
    return true;
}

static const struct isa_memory wave_memory = { .span = memory_span,
                                               .row = memory_span,
                                               .lanes = memory_lanes };

/* A fresh wave of that GPU; memory and LDS hold different bytes everywhere. */
static inline void wave_open(enum isa_gpu gpu) {
    static const uint32_t end = 0xbf810000; /* s_endpgm */
    struct err e = { 0 };
    wave = wave ? wave : aligned_alloc(64, (sizeof *wave + 63) / 64 * 64);
    assert_non_null(wave);
    isa_code_close(&wave_code);
    assert_int_equal(isa_code_open(&wave_code, gpu, &end, sizeof end, 0x1000, &e), RC_OK);
    isa_wave_reset(wave, wave_code, &group, &wave_memory, NULL);
    wave->shared_base = SHARED_BASE;
    wave->private_base = PRIVATE_BASE;
    wave->scratch_base = SCRATCH_BASE;
    wave->scratch_bytes = SCRATCH_BYTES;
    for (unsigned i = 0; i < MEMORY_BYTES; i++)
        memory[i] = (uint8_t)(i * 7 + i / 256);
    for (unsigned i = 0; i < LDS_BYTES; i++)
        lds[i] = (uint8_t)(i * 11 + i / 256 + 3);
    spans = lane_calls = 0;
}

static inline void wave_close(void) {
    isa_code_close(&wave_code);
    free(wave);
    wave = NULL;
}

/* Executes one decoded instruction. */
static inline enum isa_result execute(struct isa_insn i) {
    i.words = 2;
    isa_bind(&i);
    return i.exec(wave, &i);
}

static inline uint32_t *vgpr(unsigned n) {
    return wave->vgpr[n];
}
static inline void set_address(unsigned v, unsigned lane, uint64_t address) {
    wave->vgpr[v][lane] = (uint32_t)address;
    wave->vgpr[v + 1][lane] = (uint32_t)(address >> 32);
}
static inline uint32_t word_at(const void *p) {
    uint32_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

#endif
