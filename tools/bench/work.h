/* work.h - what a model costs: bytes read and multiplications done, by the shapes in its file.
 *
 * docs/performance.md has the formulas. Plain data; thread-safe. */
#ifndef TOOLS_BENCH_WORK_H
#define TOOLS_BENCH_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/config.h"

struct work {
    struct config config;
    char type[16]; /* of most of its weights: "Q4_0" */
    bool is_float; /* they are F16, BF16 or F32: multiplied as floats */
    const char *kv_type;
    uint64_t parameters;
    uint64_t file_bytes;
    uint64_t weight_bytes;   /* read by every step, whatever the batch */
    uint64_t layer_macs;     /* multiplications per token in the matrices of all layers */
    uint64_t output_macs;    /* … and in the output matrix, for tokens whose logits are wanted */
    uint64_t kv_bytes;       /* of all layers, per position */
    uint64_t attention_macs; /* of all layers, per position that a token attends to */
};

/* path NULL: the demo model; kv_type NULL: F16. */
NODISCARD enum rc work_read(struct work *w, const char *path, const char *kv_type, struct err *e);

/* Bytes read per generated token, on average over `batch` sequences that each generate `tokens`
 * tokens from position `depth` on. */
double work_decode_bytes(const struct work *w, uint32_t depth, uint32_t tokens, uint32_t batch);
/* Multiplications per token of a prompt. */
double work_prompt_macs(const struct work *w, uint32_t tokens);

#endif
