/* model_run.h - models of synthetic weights, and what an engine computes with them. Failures end
 * the test. */
#ifndef SUPPORT_MODEL_RUN_H
#define SUPPORT_MODEL_RUN_H

#include <stddef.h>
#include <stdint.h>

#include "infer/engine.h"

/* Writes a model of a shape ("dim=256,layers=2,…", see synth.h) with weights of a type. */
void model_run_write(const char *path, const char *shape, const char *type, uint64_t seed);

/* What a run gave. */
struct kept {
    float *logits; /* [rows, vocab], malloc'd */
    uint32_t rows, vocab;
    char text[4096]; /* of sequence 0 */
    size_t text_len;
};

/* Runs tokens through a model, then continues greedily by `generate` tokens. */
struct kept model_run_on(engine *g, const int32_t *tokens, uint32_t count, uint32_t generate);
/* The same with an engine of its own. */
struct kept model_run(const struct engine_options *o, const int32_t *tokens, uint32_t count,
                      uint32_t generate);

/* Tokens that look arbitrary, always the same. */
void model_run_fill_tokens(int32_t *tokens, uint32_t count, uint32_t vocab);

#endif
