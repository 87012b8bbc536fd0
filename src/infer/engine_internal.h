/* engine_internal.h - shared by engine.c (opening) and generator.c (generating). */
#ifndef INFER_ENGINE_INTERNAL_H
#define INFER_ENGINE_INTERNAL_H

#include "infer/engine.h"
#include "infer/kvcache.h"
#include "infer/scheduler.h"
#include "infer/weights.h"

struct engine {
    struct config config;
    tokenizer *tokenizer;
    struct device device;
    struct weights weights;
    gguf *file; /* weights are read where they are in it; NULL: none ever were */
    struct kvcache cache;
    trace *trace;
    scheduler *scheduler;
    inject *inject;
    uint32_t context, sequences, chunk;
    bool all_logits;
    char description[256];
    float *logits;          /* [max(chunk if all_logits, sequences), vocab] */
    uint32_t position;      /* tokens that sequence 0 has evaluated */
    int64_t step;           /* forward passes so far */
    struct token_list past; /* those tokens, and any drawn or given behind them */
};

#endif
