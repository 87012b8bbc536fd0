/* measure.h - runs a model through the engine and takes the time. Not thread-safe. */
#ifndef TOOLS_BENCH_MEASURE_H
#define TOOLS_BENCH_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "infer/engine.h"
#include "tools/bench/machine.h"

enum { MEASURE_SAMPLES_MAX = 100 };

/* One thing that is measured, and what came out. */
struct measure_run {
    enum measure_kind { MEASURE_PROMPT, MEASURE_DECODE } kind;
    uint32_t tokens; /* of the prompt, or generated per sequence */
    uint32_t depth;  /* context before them; a prompt has none */
    uint32_t batch;  /* sequences; 1 for a prompt */
    uint32_t threads;
    double samples[MEASURE_SAMPLES_MAX]; /* tokens per second of all sequences, sorted */
    uint32_t count;                      /* of samples; 0: not measured */
    double tokens_per_second;            /* their median */
    /* Decode: each sample divided by the bandwidth of memory in GB/s (the mean of right before and
     * right after it), sorted; and their median. 0: it was not measured. */
    double per_gbps[MEASURE_SAMPLES_MAX], tokens_per_gbps;
};

/* (largest - smallest) / median of a run's samples */
double measure_spread(const struct measure_run *r);
/* Positions of context that a run needs. */
uint32_t measure_positions(const struct measure_run *r);

/* Takes `repeat` samples of a run on an engine with its number of sequences and threads. With a
 * reader, the bandwidth of memory is measured between the samples of a decoding run. RC_BUSY if
 * interrupted(NULL) returned true; samples complete by then remain. */
NODISCARD enum rc measure_take(struct measure_run *r, engine *g, uint32_t repeat,
                               bool (*interrupted)(void *user), machine_reader *memory,
                               struct err *e);

#endif
