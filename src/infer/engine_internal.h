/* engine_internal.h - shared by engine.c (opening), step.c and sequence.c (sequences side by side)
 * and generator.c (one prompt). */
#ifndef INFER_ENGINE_INTERNAL_H
#define INFER_ENGINE_INTERNAL_H

#include "infer/blocks.h"
#include "infer/engine.h"
#include "infer/stages.h"

struct sequence;

/* What a step does of one sequence. */
struct engine_part {
    struct sequence *q;
    uint32_t count, was;  /* tokens of it, and how many were evaluated before */
    uint32_t row, wanted; /* of the logits: the first, and how many */
};

struct engine {
    struct config config;
    tokenizer *tokenizer;
    struct stages stages; /* devices with their weights and caches */
    gguf *file;           /* weights are read where they are in it; NULL: none ever were */
    trace *trace;
    struct forward_shape shape; /* of all layers */
    inject *inject;
    uint32_t context, sequences, chunk;
    uint32_t blocks;    /* that the KV cache may have, at most */
    struct blocks pool; /* those it has */
    int32_t *numbers;   /* room for what a batch is described by */
    bool all_logits;
    bool draws;     /* the device may draw tokens: GRETA_DEVICE_SAMPLING, no injections */
    bool has_drawn; /* … and did in the last step */
    int32_t *drawn; /* [sequences] tokens that it drew */
    char description[256];
    float *logits;          /* [max(chunk if all_logits, sequences), vocab] */
    int64_t step;           /* forward passes so far */
    struct sequence *first; /* those under way or waiting, in the order in which they came */
    uint32_t next_number;   /* of a sequence that is submitted by itself */
    struct engine_part *plan;
    uint32_t planned;
    struct sequence *held;  /* the last one of engine_generate, with its blocks; NULL: none */
    struct token_list past; /* what a request with `append` goes on from */
};

/* Puts `copies` sequences of a request at the end of those under way: r->number, r->number + 1, …,
 * each with a seed of its own; all continue after `before` (may be NULL) and the prompt. *out is
 * the first. On failure none of them is there. */
NODISCARD enum rc engine_add(engine *g, const struct engine_request *r,
                             const struct token_list *before, uint32_t copies,
                             struct sequence **out, struct err *e);

#endif
