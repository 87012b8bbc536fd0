/* prompts.h - --prompts FILE.jsonl: many prompts, run together, one line of JSON each. */
#ifndef TOOLS_INFER_PROMPTS_H
#define TOOLS_INFER_PROMPTS_H

#include "infer/engine.h"
#include "model/tokenizer/tokenizer.h"

struct app;

/* One line of the file, and its result. */
struct prompt {
    struct token_text prompt, text;
    unsigned long line;  /* of the file */
    uint32_t max_tokens; /* UINT32_MAX: not given */
    uint32_t number;     /* of its sequence */
    uint32_t generated;
    enum engine_end end;
    bool finished;
};

struct prompts {
    struct prompt *all;
    size_t count, room;
    size_t printed; /* so many lines are out */
};

/* Reads {"prompt": "…", "max_tokens": 12} lines; "-" is standard input. RC_FORMAT names the line
 * that is not one. Close *p in any case. */
NODISCARD enum rc prompts_read(struct prompts *p, const char *path, struct err *e);
void prompts_close(struct prompts *p);

/* The most positions of the KV cache that they take, with so many new tokens where a line has no
 * number. */
uint32_t prompts_positions(const struct prompts *p, uint32_t max_tokens);

/* Runs them all and prints a line for each in the order of the file. */
NODISCARD enum rc app_run_prompts(struct app *a, struct engine_result *result, struct err *e);

#endif
