#include "base/cpu.h"

#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>

/* XCR0: which register state the operating system saves. */
static uint64_t saved_state(void) {
    uint32_t lo, hi;
    __asm__ __volatile__("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (uint64_t)hi << 32 | lo;
}

static int all_set(uint64_t value, uint64_t mask) {
    return (value & mask) == mask;
}

unsigned cpu_features(void) {
    enum { YMM_STATE = 0x6, ZMM_STATE = 0xe6 };
    const uint32_t leaf1_ecx = 1u << 12 | 1u << 27 | 1u << 29;             /* FMA OSXSAVE F16C */
    const uint32_t avx512_ebx = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31; /* F DQ BW VL */
    uint32_t a, b, c, d;
    unsigned found = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !all_set(c, leaf1_ecx))
        return 0;
    uint64_t state = saved_state();
    if (!all_set(state, YMM_STATE) || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & 1u << 5))
        return 0;
    found |= CPU_AVX2;
    if (all_set(state, ZMM_STATE) && all_set(b, avx512_ebx)) {
        found |= CPU_AVX512;
        if (c & 1u << 11)
            found |= CPU_AVX512_VNNI;
    }
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && a & 1u << 4)
        found |= CPU_AVX_VNNI;
    return found;
}
#else
unsigned cpu_features(void) {
    return 0;
}
#endif

int cpu_count(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
    /* More processors than cpu_set_t holds. */
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}
