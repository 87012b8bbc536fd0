/* The peaks are measured with chains of multiply-adds that depend only on themselves, enough of
 * them to cover the latency of an instruction. The factors never change; an empty asm before every
 * step hides that from the compiler, which would otherwise multiply once. */
#include "tools/bench/loops.h"

#include "base/cpu.h"

enum { CHAINS = 12, ROUND = 4 }; /* chains, and steps of each per round */

#define FOR_EACH_CHAIN(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)

static void peak_scalar(uint64_t rounds) {
    int32_t a = 3, b = 5, sum[4] = { 0 };
    for (uint64_t r = 0; r < rounds; r++) {
#pragma GCC unroll 8
        for (int i = 0; i < CHAINS * ROUND; i++) {
            __asm__ volatile("" : "+r"(a));
            sum[i & 3] += (int8_t)a * (int8_t)b;
        }
    }
    __asm__ volatile("" ::"r"(sum[0]), "r"(sum[1]), "r"(sum[2]), "r"(sum[3]));
}

static void read_words(const char *from, size_t bytes, unsigned streams) {
    size_t part = bytes / streams;
    uint64_t sum = 0;
    for (size_t i = 0; i < part; i += LOOPS_READ_STEP)
        for (unsigned s = 0; s < streams; s++) {
            const uint64_t *at = (const uint64_t *)(const void *)(from + s * part + i);
            for (unsigned k = 0; k < LOOPS_READ_STEP / sizeof *at; k++)
                sum ^= at[k];
        }
    __asm__ volatile("" ::"r"(sum));
}

#if defined(__x86_64__)
#include <immintrin.h>

/* A function that does STEP(sum) on CHAINS sums, ROUND times per call. `a` and `b` are the factors,
 * `one` is 1 in every 16-bit element. */
#define PEAK(name, isa, type, kept, zero, one_of, STEP)                                            \
    __attribute__((target(isa))) static void name(uint64_t rounds) {                               \
        type a = one_of, b = one_of, one = one_of, sum[CHAINS];                                    \
        for (int i = 0; i < CHAINS; i++)                                                           \
            sum[i] = zero;                                                                         \
        __asm__ volatile("" : "+" kept(b), "+" kept(one));                                         \
        for (uint64_t r = 0; r < rounds * ROUND; r++) {                                            \
            FOR_EACH_CHAIN(STEP)                                                                   \
        }                                                                                          \
        for (int i = 0; i < CHAINS; i++)                                                           \
            __asm__ volatile("" ::kept(sum[i]));                                                   \
        (void)one;                                                                                 \
    }

#define HIDE_X __asm__ volatile("" : "+x"(a));
#define HIDE_V __asm__ volatile("" : "+v"(a));

#define INT256                         __m256i, "x", _mm256_setzero_si256(), _mm256_set1_epi16(1)
#define INT512                         __m512i, "v", _mm512_setzero_si512(), _mm512_set1_epi16(1)
#define F32_256                        __m256, "x", _mm256_setzero_ps(), _mm256_set1_ps(0)
#define F32_512                        __m512, "v", _mm512_setzero_ps(), _mm512_set1_ps(0)
#define PEAK_OF(name, isa, kind, STEP) PEAK_EXPAND(name, isa, kind, STEP)
#define PEAK_EXPAND(...)               PEAK(__VA_ARGS__)

/* Bytes with 16-bit sums: how quantised products of few bits can be added for a while. */
#define STEP(i) HIDE_X sum[i] = _mm256_add_epi16(sum[i], _mm256_maddubs_epi16(a, b));
PEAK_OF(peak_avx2_8, "avx2", INT256, STEP)
#undef STEP
#define STEP(i) HIDE_X sum[i] = _mm256_add_epi32(sum[i], _mm256_madd_epi16(a, b));
PEAK_OF(peak_avx2_16, "avx2", INT256, STEP)
#undef STEP
#define STEP(i) HIDE_X sum[i] = _mm256_fmadd_ps(a, b, sum[i]);
PEAK_OF(peak_avx2_float, "avx2,fma", F32_256, STEP)
#undef STEP
#define STEP(i) HIDE_X sum[i] = _mm256_dpbusd_avx_epi32(sum[i], a, b);
PEAK_OF(peak_avx_vnni_8, "avx2,avxvnni", INT256, STEP)
#undef STEP
#define STEP(i) HIDE_X sum[i] = _mm256_dpwssd_avx_epi32(sum[i], a, b);
PEAK_OF(peak_avx_vnni_16, "avx2,avxvnni", INT256, STEP)
#undef STEP
#define STEP(i) HIDE_V sum[i] = _mm512_add_epi16(sum[i], _mm512_maddubs_epi16(a, b));
PEAK_OF(peak_avx512_8, "avx512f,avx512bw", INT512, STEP)
#undef STEP
#define STEP(i) HIDE_V sum[i] = _mm512_add_epi32(sum[i], _mm512_madd_epi16(a, b));
PEAK_OF(peak_avx512_16, "avx512f,avx512bw", INT512, STEP)
#undef STEP
#define STEP(i) HIDE_V sum[i] = _mm512_fmadd_ps(a, b, sum[i]);
PEAK_OF(peak_avx512_float, "avx512f", F32_512, STEP)
#undef STEP
#define STEP(i) HIDE_V sum[i] = _mm512_dpbusd_epi32(sum[i], a, b);
PEAK_OF(peak_avx512_vnni_8, "avx512f,avx512vnni", INT512, STEP)
#undef STEP
#define STEP(i) HIDE_V sum[i] = _mm512_dpwssd_epi32(sum[i], a, b);
PEAK_OF(peak_avx512_vnni_16, "avx512f,avx512vnni", INT512, STEP)
#undef STEP

__attribute__((target("avx2"), no_sanitize("address", "thread"))) static void
read_avx2(const char *from, size_t bytes, unsigned streams) {
    size_t part = bytes / streams;
    __m256i sum[4] = { _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(),
                       _mm256_setzero_si256() };
    for (size_t i = 0; i < part; i += LOOPS_READ_STEP)
        for (unsigned s = 0; s < streams; s++) {
            const __m256i *at = (const __m256i *)(const void *)(from + s * part + i);
#pragma GCC unroll 8
            for (unsigned k = 0; k < LOOPS_READ_STEP / sizeof *at; k++)
                sum[k & 3] = _mm256_xor_si256(sum[k & 3], _mm256_load_si256(at + k));
        }
    __asm__ volatile("" ::"x"(sum[0]), "x"(sum[1]), "x"(sum[2]), "x"(sum[3]));
}

__attribute__((target("avx512f"), no_sanitize("address", "thread"))) static void
read_avx512(const char *from, size_t bytes, unsigned streams) {
    size_t part = bytes / streams;
    __m512i sum[4] = { _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(),
                       _mm512_setzero_si512() };
    for (size_t i = 0; i < part; i += LOOPS_READ_STEP)
        for (unsigned s = 0; s < streams; s++) {
            const char *at = from + s * part + i;
#pragma GCC unroll 4
            for (unsigned k = 0; k < 4; k++)
                sum[k] = _mm512_xor_si512(sum[k], _mm512_load_si512(at + 64ul * k));
        }
    __asm__ volatile("" ::"v"(sum[0]), "v"(sum[1]), "v"(sum[2]), "v"(sum[3]));
}
#endif

#define MACS(elements) (CHAINS * ROUND * (elements))
static const struct loops_peak peaks[] = {
    { "scalar", "imul", 8, 0, MACS(1), peak_scalar },
#if defined(__x86_64__)
    { "avx2", "vpmaddubsw", 8, CPU_AVX2, MACS(32), peak_avx2_8 },
    { "avx2", "vpmaddwd", 16, CPU_AVX2, MACS(16), peak_avx2_16 },
    { "avx2", "vfmadd", 32, CPU_AVX2, MACS(8), peak_avx2_float },
    { "avxvnni", "vpdpbusd", 8, CPU_AVX2 | CPU_AVX_VNNI, MACS(32), peak_avx_vnni_8 },
    { "avxvnni", "vpdpwssd", 16, CPU_AVX2 | CPU_AVX_VNNI, MACS(16), peak_avx_vnni_16 },
    { "avx512", "vpmaddubsw", 8, CPU_AVX512, MACS(64), peak_avx512_8 },
    { "avx512", "vpmaddwd", 16, CPU_AVX512, MACS(32), peak_avx512_16 },
    { "avx512", "vfmadd", 32, CPU_AVX512, MACS(16), peak_avx512_float },
    { "avx512vnni", "vpdpbusd", 8, CPU_AVX512 | CPU_AVX512_VNNI, MACS(64), peak_avx512_vnni_8 },
    { "avx512vnni", "vpdpwssd", 16, CPU_AVX512 | CPU_AVX512_VNNI, MACS(32), peak_avx512_vnni_16 },
#endif
};

const struct loops_peak *loops_peaks(size_t *count) {
    *count = sizeof peaks / sizeof *peaks;
    return peaks;
}

loops_read *loops_find_read(unsigned features) {
#if defined(__x86_64__)
    if (features & CPU_AVX512)
        return read_avx512;
    if (features & CPU_AVX2)
        return read_avx2;
#endif
    (void)features;
    return read_words;
}
