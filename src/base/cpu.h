/* cpu.h - what this processor can do and how much of it is ours. Thread-safe. */
#ifndef BASE_CPU_H
#define BASE_CPU_H

enum cpu_feature {
    CPU_AVX2 = 1 << 0,        /* with FMA and F16C: every AVX2 machine has them */
    CPU_AVX512 = 1 << 1,      /* F, BW, DQ and VL together */
    CPU_AVX512_VNNI = 1 << 2, /* 512-bit dot products of bytes */
    CPU_AVX_VNNI = 1 << 3,    /* the same in 256 bits with VEX encoding */
};

/* The set of enum cpu_feature that both the processor and the operating system support. */
unsigned cpu_features(void);

/* Processors this process may run on (its affinity mask), at least 1. */
int cpu_count(void);

#endif
