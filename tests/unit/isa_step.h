/* isa_step.h - one wave that executes single encoded instructions, for tests of vector
 * instructions. setup() and teardown() are the group fixtures. */
#ifndef TESTS_UNIT_ISA_STEP_H
#define TESTS_UNIT_ISA_STEP_H

#include "isa/isa.h"
#include "unit/isa_bits.h"
#include "unit/test.h"

#include <stdlib.h>

#define BASE 0x4000u

static struct isa_wave *wave;
static struct isa_group group;
static enum isa_gpu step_gpu = ISA_GFX942; /* whose code step() runs */

static inline int setup(void **state) {
    (void)state;
    wave = aligned_alloc(64, sizeof *wave);
    return wave ? 0 : -1;
}

static inline int teardown(void **state) {
    (void)state;
    free(wave);
    return 0;
}

/* Runs an instruction; registers are as they were. */
static inline enum isa_result step(const uint32_t *words, int n, uint64_t exec, uint32_t mode) {
    struct isa_code *code;
    struct err e = { 0 };
    uint32_t program[3] = { words[0], n > 1 ? words[1] : 0xbf810000, 0xbf810000 };
    assert_int_equal(isa_code_open(&code, step_gpu, program, sizeof program, BASE, &e), RC_OK);
    wave->code = code;
    wave->group = &group;
    wave->memory = NULL;
    wave->host = NULL;
    wave->used = NULL;
    wave->mode = mode;
    ISA_WAVE_EXEC(wave) = exec;
    assert_int_equal(isa_wave_jump(wave, BASE), ISA_CONTINUE);
    enum isa_result r = isa_run(wave, 100);
    isa_code_close(&code);
    return r;
}

static inline void set_all(int reg, uint32_t value) {
    for (int l = 0; l < ISA_LANES; l++)
        wave->vgpr[reg][l] = value;
}

static uint64_t random_state = 7;

static inline uint64_t random64(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    uint64_t high = random_state >> 32;
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return high << 32 | random_state >> 32;
}

#endif
