/* loops.h - the loops that machine.c measures with, by instruction set. Pure. */
#ifndef TOOLS_BENCH_LOOPS_H
#define TOOLS_BENCH_LOOPS_H

#include <stddef.h>
#include <stdint.h>

/* Multiplies and adds in registers. */
struct loops_peak {
    const char *set, *instruction;
    unsigned bits;
    unsigned features; /* enum cpu_feature that it needs, all of them */
    unsigned macs;     /* multiply-adds per round */
    void (*run)(uint64_t rounds);
};
const struct loops_peak *loops_peaks(size_t *count);

/* Reads all of a buffer, as `streams` parts side by side; bytes is a multiple of streams *
 * LOOPS_READ_STEP, and the buffer aligned to that step. */
enum { LOOPS_READ_STEP = 256, LOOPS_STREAMS_MAX = 8 };
typedef void loops_read(const char *from, size_t bytes, unsigned streams);
/* The widest that the features (enum cpu_feature) allow. */
loops_read *loops_find_read(unsigned features);

#endif
