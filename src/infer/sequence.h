/* sequence.h - one text being generated: its tokens, position, sampler, stop rules and blocks of
 * the cache. Belongs to an engine (engine_internal.h) and to its thread. */
#ifndef INFER_SEQUENCE_H
#define INFER_SEQUENCE_H

#include "infer/engine.h"
#include "infer/stopper.h"

struct sequence {
    struct sequence *next; /* the next one in the queue */
    struct engine_request r;
    uint32_t number; /* in callbacks and traces */
    sampler *sampler;
    struct tokenizer_decoder decoder;
    struct stopper stopper;
    struct token_list tokens; /* of the prompt and its continuation */
    uint32_t evaluated;       /* how many of them the cache holds */
    uint32_t generated;
    int32_t *blocks;  /* of the cache, in order */
    uint64_t *hashes; /* of the full blocks */
    uint32_t block_count;
    struct sequence *leader; /* has the same prompt and reads it for both; NULL: none */
    uint64_t first_ns;       /* when the first token was drawn; 0: not yet */
    bool interrupted;        /* r.interrupted() returned true, or engine_cancel() was called */
    bool done;
    enum engine_end end;
};

/* A sequence with the request's prompt after `before`, which may be NULL. On failure *out is
 * untouched. */
NODISCARD enum rc sequence_open(struct sequence **out, const engine *g,
                                const struct engine_request *r, uint32_t number,
                                const struct token_list *before, struct err *e);
/* Gives its blocks back. Sets *q to NULL; *q may be NULL. */
void sequence_close(struct sequence **q, engine *g);
void sequence_give_back_blocks(struct sequence *q, engine *g);

/* Where the next token comes from. */
struct sequence_next {
    const float *logits; /* [vocab]; NULL: the device has drawn it */
    int32_t token;       /* result of kernel sample */
};

/* Draws the next token, hands out the text it adds and decides whether the sequence continues. */
NODISCARD enum rc sequence_advance(struct sequence *q, const engine *g,
                                   const struct sequence_next *from, struct err *e);
/* Ends it; text that was held back is given out. */
NODISCARD enum rc sequence_finish(struct sequence *q, enum engine_end end, struct err *e);

#endif
