/* Code that no compiler made: random words, and instructions of every encoding with random fields,
 * run with memory that is there, that is not, and that is there in part. A wave may stop for any
 * reason; it has to stop or to use up its budget, and what stops it has to be named. */
#include "isa/isa.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WORDS = 48, BUDGET = 400, LDS_BYTES = 1 << 12, MEMORY_BYTES = 1 << 12, PROGRAMS = 10000 };
#define BASE   UINT64_C(0x10000)
#define MEMORY UINT64_C(0x7f0000000000)

static struct isa_wave *wave;
static uint8_t memory[MEMORY_BYTES], lds[LDS_BYTES];
static uint64_t random_state = 1;

static uint32_t random32(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 32);
}

/* ---- memory: MEMORY_BYTES at MEMORY; everywhere else nothing ---- */

static void *span(void *context, const struct isa_access *a, uint64_t address, uint64_t bytes) {
    (void)context, (void)a;
    return address - MEMORY < MEMORY_BYTES && bytes <= MEMORY_BYTES - (address - MEMORY)
               ? memory + (address - MEMORY)
               : NULL;
}

static bool lanes(void *context, const struct isa_access *a, const uint64_t address[ISA_LANES],
                  void *host[ISA_LANES], unsigned *lane, uint64_t *at) {
    for (unsigned l = 0; l < ISA_LANES; l++) {
        if (!(a->lanes >> l & 1))
            continue;
        if (!(host[l] = span(context, a, address[l], a->bytes))) {
            *lane = l;
            *at = address[l];
            return false;
        }
    }
    return true;
}

/* ---- code ---- */

/* The upper bits that each encoding begins with. */
static uint32_t word_of(unsigned how) {
    static const struct {
        uint32_t bits, mask;
    } begins[] = {
        { 0x80000000, 0x3fffffff }, { 0xb0000000, 0x0fffffff }, { 0xbe800000, 0x007fffff },
        { 0xbf000000, 0x007fffff }, { 0xbf800000, 0x007fffff }, { 0xc0000000, 0x03ffffff },
        { 0x00000000, 0x7fffffff }, { 0x7e000000, 0x01ffffff }, { 0x7c000000, 0x01ffffff },
        { 0xd0000000, 0x03ffffff }, { 0xd3800000, 0x007fffff }, { 0xd8000000, 0x03ffffff },
        { 0xdc000000, 0x03ffffff }, { 0xe0000000, 0x03ffffff }, { 0xe8000000, 0x03ffffff },
        { 0xf0000000, 0x03ffffff },
    };
    unsigned i = how % (sizeof begins / sizeof *begins + 2);
    if (i >= sizeof begins / sizeof *begins)
        return random32();
    return begins[i].bits | (random32() & begins[i].mask);
}

/* Registers: small numbers, pointers into the memory, and anything. */
static void fill_registers(void) {
    for (unsigned r = 0; r < 104; r += 2) {
        uint64_t v = random32() % 3 ? MEMORY + random32() % MEMORY_BYTES : random32() % 4096;
        memcpy(&wave->sgpr[r], &v, sizeof v);
    }
    for (unsigned r = 0; r < ISA_VGPRS; r++)
        for (unsigned l = 0; l < ISA_LANES; l++)
            wave->vgpr[r][l] = r % 2 ? (uint32_t)(MEMORY >> 32) : random32() % MEMORY_BYTES;
    ISA_WAVE_EXEC(wave) = random32() % 2 ? ~UINT64_C(0) : random32();
}

static void run_hostile(enum isa_gpu gpu) {
    static const struct isa_memory reach = { .span = span, .row = span, .lanes = lanes };
    struct isa_group group = { .lds = lds, .lds_bytes = random32() % (LDS_BYTES + 1) };
    struct isa_code *code;
    struct err e = { 0 };
    uint32_t words[WORDS];
    char text[512];
    for (unsigned i = 0; i < WORDS; i++)
        words[i] = word_of(random32());
    assert_int_equal(isa_code_open(&code, gpu, words, sizeof words, BASE, &e), RC_OK);
    isa_wave_reset(wave, code, &group, &reach, NULL);
    wave->shared_base = UINT64_C(0x1000000000000);
    wave->private_base = UINT64_C(0x2000000000000);
    wave->scratch_base = MEMORY;
    wave->scratch_bytes = 16;
    fill_registers();
    assert_int_equal(isa_wave_jump(wave, BASE), ISA_CONTINUE);
    enum isa_result r = ISA_SLEEP;
    for (unsigned turn = 0;
         turn < 4 && (r == ISA_SLEEP || r == ISA_BARRIER || r == ISA_GRID_BARRIER); turn++)
        r = isa_run(wave, BUDGET);
    if (r != ISA_END && r != ISA_SLEEP && r != ISA_BARRIER && r != ISA_GRID_BARRIER) {
        assert_true(isa_stop_print(wave, r, text, sizeof text) > 0);
        assert_non_null(strstr(text, "0x")); /* the place at least */
    }
    isa_code_close(&code);
}

static void hostile_code_stops_or_uses_up_its_budget(void **state) {
    (void)state;
    wave = aligned_alloc(64, sizeof *wave);
    assert_non_null(wave);
    for (unsigned n = 0; n < PROGRAMS; n++)
        run_hostile(n % 2 ? ISA_GFX90A : ISA_GFX942);
    free(wave);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_code_stops_or_uses_up_its_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
