#include "base/cpu.h"

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>

/* XCR0: which register state the operating system saves. */
static uint64_t saved_state(void) {
    uint32_t lo, hi;
    __asm__ __volatile__("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (uint64_t)hi << 32 | lo;
}

static int all_set(uint64_t value, uint64_t mask) {
    return (value & mask) == mask;
}

/* Linux must be asked for permission to use tiles, which add 8 KiB to the state of a thread. It
 * refuses if the signal stack of a thread is too small for that, and otherwise allows no smaller
 * ones from then on. */
static int has_amx(uint64_t state) {
    enum { TILE_STATE = 0x60000, ASK_FOR_STATE = 0x1023, TILE_DATA = 18 };
    uint32_t a, b, c, d;
    return all_set(state, TILE_STATE) && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
           all_set(d, 1u << 22 | 1u << 24) && /* BF16 TILE */
           syscall(SYS_arch_prctl, ASK_FOR_STATE, TILE_DATA) == 0;
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
        if (has_amx(state))
            found |= CPU_AMX;
    }
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && a & 1u << 4)
        found |= CPU_AVX_VNNI;
    return found;
}

void cpu_name(char out[CPU_NAME_BYTES]) {
    const uint32_t first = 0x80000002; /* three leaves of 16 characters */
    uint32_t part[4];
    strcpy(out, "unknown");
    for (uint32_t i = 0; i < 3; i++) {
        if (!__get_cpuid(first + i, &part[0], &part[1], &part[2], &part[3]))
            return;
        memcpy(out + i * sizeof part, part, sizeof part);
        out[(i + 1) * sizeof part] = '\0';
    }
}
#else
unsigned cpu_features(void) {
    return 0;
}

void cpu_name(char out[CPU_NAME_BYTES]) {
    strcpy(out, "unknown");
}
#endif

/* ---- how many, and where -------------------------------------------------------------------- */

int cpu_count(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
    /* More processors than cpu_set_t holds. */
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

static bool parse_number(const char **text, unsigned long *out) {
    char *end;
    if (**text < '0' || **text > '9')
        return false;
    *out = strtoul(*text, &end, 10);
    *text = end;
    return true;
}

/* "0,4" or "0-3,8-11"; false if it is anything else. What cpu_set_t cannot hold is left out. */
static bool parse_list(const char *text, cpu_set_t *out) {
    CPU_ZERO(out);
    for (;; text++) {
        unsigned long first, last;
        if (!parse_number(&text, &first))
            return false;
        last = first;
        if (*text == '-' && (text++, !parse_number(&text, &last) || last < first))
            return false;
        for (unsigned long cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++)
            CPU_SET(cpu, out);
        if (*text != ',')
            return *text == '\n' || *text == '\0';
    }
}

/* The processors of a core as one of its files says; false if there is no such file, or none that
 * can be right: a processor is always its own sibling. */
static bool read_siblings(const char *folder, int cpu, const char *file, cpu_set_t *out) {
    char path[512], text[4096];
    int n = snprintf(path, sizeof path, "%s/cpu%d/topology/%s", folder, cpu, file);
    FILE *f = n > 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;
    if (!f)
        return false;
    size_t length = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[length] = '\0';
    return parse_list(text, out) && CPU_ISSET(cpu, out);
}

/* The first allowed processor of the core that cpu belongs to. */
static int first_of_core(const char *folder, int cpu, const cpu_set_t *allowed) {
    cpu_set_t siblings;
    if (!read_siblings(folder, cpu, "core_cpus_list", &siblings) &&
        !read_siblings(folder, cpu, "thread_siblings_list", &siblings)) /* before Linux 5.3 */
        return cpu;
    for (int i = 0; i < cpu; i++)
        if (CPU_ISSET(i, &siblings) && CPU_ISSET(i, allowed))
            return i;
    return cpu;
}

void cpu_map_read(struct cpu_map *m, const char *folder, const cpu_set_t *allowed) {
    *m = (struct cpu_map){ .allowed = *allowed };
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, allowed))
            continue;
        m->core[cpu] = (uint16_t)first_of_core(folder, cpu, allowed);
        if (m->core[cpu] == cpu)
            m->order[m->cores++] = (uint16_t)cpu;
    }
    m->cpus = m->cores;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, allowed) && m->core[cpu] != cpu)
            m->order[m->cpus++] = (uint16_t)cpu;
}

void cpu_map_own(struct cpu_map *m) {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed))
        CPU_ZERO(&allowed);
    cpu_map_read(m, CPU_FOLDER, &allowed);
}

cpu_set_t cpu_map_core(const struct cpu_map *m, unsigned place) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &m->allowed) && m->core[cpu] == m->core[m->order[place]])
            CPU_SET(cpu, &set);
    return set;
}
