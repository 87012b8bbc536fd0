/* cpu.h - what this processor can do, and which cores this process may use. Thread-safe. */
#ifndef BASE_CPU_H
#define BASE_CPU_H

#include <sched.h>
#include <stdint.h>

enum cpu_feature {
    CPU_AVX2 = 1 << 0,        /* with FMA and F16C: every AVX2 machine has them */
    CPU_AVX512 = 1 << 1,      /* F, BW, DQ and VL together */
    CPU_AVX512_VNNI = 1 << 2, /* 512-bit dot products of bytes */
    CPU_AVX_VNNI = 1 << 3,    /* the same in 256 bits with VEX encoding */
    CPU_AMX = 1 << 4,         /* tiles, with products of bfloat16; this process may use them */
};

/* The set of enum cpu_feature that both the processor and the operating system support. */
unsigned cpu_features(void);

/* The model of the processor as it names itself; "unknown" if it does not. */
enum { CPU_NAME_BYTES = 49 };
void cpu_name(char out[CPU_NAME_BYTES]);

/* Processors this process may run on (its affinity mask), at least 1. */
int cpu_count(void);

/* Processors and the cores they belong to: with simultaneous multithreading a core shows itself as
 * several processors (siblings), which share its units and caches. */
struct cpu_map {
    cpu_set_t allowed;
    unsigned cpus;               /* in allowed */
    unsigned cores;              /* cores that have at least one of them */
    uint16_t order[CPU_SETSIZE]; /* all of them: the first of every core, then the others */
    uint16_t core[CPU_SETSIZE];  /* of a processor in allowed: the first in allowed of its core */
};

/* Where the processors in allowed are, as `folder` (CPU_FOLDER) says. A processor about which it
 * says nothing, or nothing plausible, counts as a core of its own. */
#define CPU_FOLDER "/sys/devices/system/cpu"
void cpu_map_read(struct cpu_map *m, const char *folder, const cpu_set_t *allowed);

/* The same for the processors this thread may run on; none if there are more than cpu_set_t holds.
 */
void cpu_map_own(struct cpu_map *m);

/* All allowed processors of the core that order[place] belongs to; place < m->cpus. The places
 * below m->cores are different cores. */
cpu_set_t cpu_map_core(const struct cpu_map *m, unsigned place);

#endif
