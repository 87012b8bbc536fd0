/* machine.h - what this machine can do at most: read memory, and multiply and add.
 *
 * Measured with as many threads as a model will run on, each on a core of its own, all at once; the
 * best of several passes counts, because what is wanted is a bound. Not thread-safe. */
#ifndef TOOLS_BENCH_MACHINE_H
#define TOOLS_BENCH_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { MACHINE_PEAKS_MAX = 16 };

/* Multiplications and additions of one kind, in registers. */
struct machine_peak {
    const char *set;         /* instruction set: "avx512vnni" */
    const char *instruction; /* what it is made of: "vpdpbusd" */
    unsigned bits;           /* of a factor: 8, 16; 32 is float */
    double gops;             /* 1e9 per second; a multiplication and its addition are two */
};

struct machine {
    unsigned threads;
    uint64_t buffer;  /* bytes that were read */
    double read_gbps; /* 1e9 bytes per second */
    unsigned streams; /* that it was read in */
    struct machine_peak peaks[MACHINE_PEAKS_MAX];
    size_t peak_count;
};

/* Bytes to measure reading with by default: 2 GiB, or a quarter of the memory that is free. */
uint64_t machine_default_buffer(void);

/* Measures; instruction sets that GRETA_CPU rules out are left out. A second call with the same
 * threads keeps the better value of each. interrupted() is asked before each pass; if it returns
 * true, the result is RC_BUSY and *m has what was measured so far. RC_MEMORY without buffer or
 * threads. */
NODISCARD enum rc machine_measure(struct machine *m, unsigned threads, uint64_t buffer,
                                  bool (*interrupted)(void), struct err *e);

/* Measures the bandwidth between the samples of another measurement. On a virtual machine it can
 * double or halve within seconds, when its processors move between dies; a fraction of it means
 * something only if both were measured at the same time. */
typedef struct machine_reader machine_reader;

/* With the threads and streams of a machine that was measured, in no more than 512 MiB. RC_MEMORY
 * without buffer or threads, RC_BUSY if interrupted(); *out is NULL then. */
NODISCARD enum rc machine_reader_open(machine_reader **out, const struct machine *m,
                                      bool (*interrupted)(void), struct err *e);
/* The bandwidth of memory now, in 1e9 bytes per second. */
NODISCARD enum rc machine_reader_take(machine_reader *r, double *gbps, struct err *e);
void machine_reader_close(machine_reader **r); /* sets *r to NULL; *r may be NULL */

/* The best peak of that many bits, or NULL. */
const struct machine_peak *machine_best(const struct machine *m, unsigned bits);

#endif
