/* bench_isa - how many wave instructions the interpreter executes per second, on one core, without
 * memory accesses. Runs a loop of 32 vector instructions of one kind, with the scalar instructions
 * of the loop, with all lanes on and with every other lane off. The promise is about fused
 * multiply-adds. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "isa/isa.h"
#include "support/promise.h"

enum { UNROLLED = 32, ROUNDS = 5, BUDGET = 100000 };
#define SECONDS 0.05 /* of a round */

/* Processor time of this thread: what else runs on the machine does not count. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct kind {
    const char *name;
    uint32_t word; /* with v2 to v33 as destination: bits [24:17] of the first dword */
    uint32_t second;
};

static const struct kind kinds[] = {
    { "v_fmac_f32_e32", 0x76000000 | 34 << 9 | (256 + 35), 0 },
    { "v_fma_f32", 0xd1cb0000, (256u + 34) | (256u + 35) << 9 | (256u + 36) << 18 },
    { "v_fma_f32 with an SGPR", 0xd1cb0000, (256u + 34) | 2u << 9 | (256u + 36) << 18 },
    { "v_add_u32_e32", 0x68000000 | 34 << 9 | (256 + 35), 0 },
    { "v_lshlrev_b32_e32 by 2", 0x24000000 | 34 << 9 | 130, 0 },
    { "v_cndmask_b32_e32", 0x00000000 | 34 << 9 | (256 + 35), 0 },
    { "v_add_co_u32_e32", 0x32000000 | 34 << 9 | (256 + 35), 0 },
    { "v_cmp_lt_f32_e32", 0x7c820000 | 34 << 9 | (256 + 35), 0 },
    { "v_fma_f64", 0xd1cc0000, (256u + 34) | (256u + 36) << 9 | (256u + 38) << 18 },
    { "v_max_f32_e32", 0x16000000 | 34 << 9 | (256 + 35), 0 },
    { "v_cvt_f32_u32_e32", 0x7e000c00 | (256 + 35), 0 },
    { "v_exp_f32_e32", 0x7e004000 | (256 + 35), 0 },
    { "v_log_f32_e32", 0x7e004200 | (256 + 35), 0 },
    { "v_sin_f32_e32", 0x7e005200 | (256 + 35), 0 },
    { "v_div_scale_f32", 0xd1e00000, (256u + 34) | (256u + 35) << 9 | (256u + 36) << 18 },
    { "v_add_f32 row_shr:1", 0x020000fa | 34 << 9, 35u | 0x111 << 8 | 0xffu << 24 },
    { "v_add_u32 sdwa", 0x680000f9 | 34 << 9, 35u | 6 << 8 | 5 << 16 | 4u << 24 },
    { "v_pk_fma_f32", 0xd3b04000, (256u + 34) | (256u + 36) << 9 | (256u + 38) << 18 | 3u << 27 },
    { "v_pk_fma_f32, one broadcast", 0xd3b04000,
      (256u + 34) | (256u + 36) << 9 | (256u + 38) << 18 | 1u << 27 },
    { "v_pk_fma_f16", 0xd38e4000, (256u + 34) | (256u + 35) << 9 | (256u + 36) << 18 | 3u << 27 },
};

static size_t assemble(const struct kind *k, uint32_t *code) {
    size_t n = 0;
    for (uint32_t u = 0; u < UNROLLED; u++) {
        uint32_t reg = 2 + 2 * (u % 16);
        if (k->second) {
            code[n++] = k->word | (k->word >> 31 ? reg : reg << 17);
            code[n++] = k->second;
        } else {
            code[n++] = k->word >> 25 == 0x3e ? k->word : k->word | reg << 17;
        }
    }
    code[n++] = 0xb700ffff;                                   /* s_addk_i32 s0, -1 */
    code[n++] = 0xbf078000;                                   /* s_cmp_lg_u32 s0, 0 */
    code[n] = 0xbf850000 | ((0u - (uint32_t)n - 1) & 0xffff); /* s_cbranch_scc1 to the start */
    return n + 1;
}

/* Millions of wave instructions per second, the best of a few rounds. */
static double measure(const struct kind *k, uint64_t exec) {
    uint32_t words[3 * UNROLLED];
    struct isa_code *code;
    struct isa_group group = { 0 };
    struct err e;
    double best = 0;
    size_t n = assemble(k, words);
    struct isa_wave *w = aligned_alloc(64, sizeof *w);
    if (!w || isa_code_open(&code, ISA_GFX90A, words, 4 * n, 0x1000, &e))
        exit(2);
    for (int round = 0; round < ROUNDS; round++) {
        isa_wave_reset(w, code, &group, NULL, NULL);
        ISA_WAVE_EXEC(w) = exec;
        for (int r = 34; r < 40; r++)
            for (int l = 0; l < ISA_LANES; l++)
                w->vgpr[r][l] = 0x3f000000;
        w->sgpr[0] = 0x7fffffff;
        if (isa_wave_jump(w, 0x1000) != ISA_CONTINUE)
            exit(2);
        double begin = now(), seconds;
        enum isa_result r;
        do {
            r = isa_run(w, BUDGET);
            seconds = now() - begin;
        } while (r == ISA_SLEEP && seconds < SECONDS);
        if (r != ISA_SLEEP) {
            char text[256];
            isa_stop_print(w, r, text, sizeof text);
            fprintf(stderr, "%s: %s\n", k->name, text);
            exit(2);
        }
        double rate = (double)w->executed / seconds * 1e-6;
        best = rate > best ? rate : best;
    }
    isa_code_close(&code);
    free(w);
    return best;
}

int main(void) {
    double promised = 0;
    printf("%-26s %12s %12s   million wave instructions per second\n", "", "all lanes", "half");
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        double all = measure(&kinds[k], ~UINT64_C(0));
        double half = measure(&kinds[k], UINT64_C(0x5555555555555555));
        printf("%-26s %12.1f %12.1f\n", kinds[k].name, all, half);
        if (k == 1)
            promised = all;
    }
    return promise_at_least("isa.fma", promised, 20);
}
