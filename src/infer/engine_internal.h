/* engine_internal.h - shared by engine.c (opening), queue.c (sequences join and leave), sequence.c
 * (one of them), step.c (a pass for all of them) and generator.c (one prompt). */
#ifndef INFER_ENGINE_INTERNAL_H
#define INFER_ENGINE_INTERNAL_H

#include "infer/blocks.h"
#include "infer/engine.h"
#include "infer/stages.h"

struct sequence;

/* The part that one sequence has in a step. */
struct engine_part {
    struct sequence *q;
    uint32_t count, was;  /* tokens that it evaluates, and those that were evaluated before */
    uint32_t row, wanted; /* its first row of logits, and how many it has */
};

struct engine {
    struct config config;
    tokenizer *tokenizer;
    struct stages stages; /* devices with their weights and caches */
    gguf *file; /* open as long as weights are read from it in place; NULL: they never were */
    trace *trace;
    struct forward_shape shape; /* of all layers */
    inject *inject;
    uint32_t context, sequences, chunk;
    uint32_t blocks;    /* the most that the KV cache may have */
    struct blocks pool; /* those that it has now */
    int32_t *numbers;   /* scratch memory for the arrays of a struct forward_batch */
    bool all_logits;
    bool draws;     /* the device may draw tokens: GRETA_DEVICE_SAMPLING, no injections */
    bool has_drawn; /* … and did in the last step */
    int32_t *drawn; /* [sequences] tokens that it drew */
    char description[256];
    float *logits;          /* [max(chunk if all_logits, sequences), vocab] */
    int64_t step;           /* forward passes so far */
    struct sequence *first; /* the queue: live and waiting ones, in the order in which they came */
    uint32_t next_number;   /* what the next engine_submit() returns */
    struct engine_part *plan;
    uint32_t planned;
    struct sequence *held;  /* the last one of engine_generate, with its blocks; NULL: none */
    struct token_list past; /* what a request with `append` continues */
};

/* Adds `copies` sequences of a request to the end of the queue: r->number, r->number + 1, …, each
 * with a seed of its own; all continue after `before` (may be NULL) and the prompt. *out is the
 * first. On failure none is added. */
NODISCARD enum rc engine_add(engine *g, const struct engine_request *r,
                             const struct token_list *before, uint32_t copies,
                             struct sequence **out, struct err *e);

/* Removes the sequences that are done; their finished() is called. */
void engine_sweep(engine *g);

#endif
