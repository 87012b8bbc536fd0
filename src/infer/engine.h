/* engine.h - a model on a device, ready to generate.
 *
 * Opening reads the file, lets the guard rail look at it, and loads it. An engine is used by one
 * thread at a time; callbacks are called on that thread. */
#ifndef INFER_ENGINE_H
#define INFER_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "infer/sampler.h"
#include "model/config.h"
#include "model/tokenizer/tokenizer.h"

typedef struct engine engine;

enum { ENGINE_CHUNK = 512 };

struct engine_options {
    const char *model;   /* path of a GGUF file; NULL: the embedded demo model */
    const char *device;  /* auto, hip, soft; NULL: GRETA_DEVICE */
    uint32_t context;    /* positions a sequence; 0: the model's own, at most 4096 */
    uint32_t sequences;  /* continuations side by side; 0: 1 */
    uint32_t chunk;      /* prompt tokens that go through the model together; 0: ENGINE_CHUNK */
    uint32_t threads;    /* cores; 0: all */
    const char *kv_type; /* F16 or Q8_0; NULL: F16 */
    const char *expect;  /* a shape the model must have (guard_rail.h); NULL: any */
    bool no_repack;      /* leave matrices in the order of the file */
    /* On a device that works in the host's memory, matrices of more bytes than these are repacked
     * between the first passes instead of before them; 0: 2.5 GiB. */
    uint64_t repack_first_bytes;
    bool guard_rail; /* false: go on in spite of what it says */
    bool all_logits; /* logits of every prompt position will be wanted */
    const char *trace, *trace_file, *trace_dump; /* trace.h; trace NULL: none */
    const char *const *inject;                   /* faults on purpose (inject.h) */
    size_t inject_count;
    /* Bytes loaded of all; returning false gives up. May be NULL. */
    bool (*progress)(uint64_t done, uint64_t total, void *user);
    /* A table of what the guard rail found, as text for people. May be NULL. */
    void (*report)(const char *text, void *user);
    /* A sentence the user should know that is no reason to stop. May be NULL. */
    void (*note)(const char *text, void *user);
    void *user;
};

/* RC_REFUSED: guard rail, or no such device. RC_BUSY: progress said stop. On failure *out is
 * untouched. */
NODISCARD enum rc engine_open(engine **out, const struct engine_options *o, struct err *e);
/* RC_IO if a trace could not be written, RC_USAGE if an injection never struck. Sets *g to NULL; *g
 * may be NULL. */
NODISCARD enum rc engine_close(engine **g, struct err *e);

const struct config *engine_config(const engine *g);
const tokenizer *engine_tokenizer(const engine *g);
uint32_t engine_context(const engine *g);
/* Appends the tokens of a text to go on from, with BOS where the model wants it. The end-of-text
 * token that some models want behind a text is left out: they would not go on from it. special:
 * markup such as "<|eot_id|>" in the text becomes those tokens. */
NODISCARD enum rc engine_encode(const engine *g, const char *text, size_t len, bool special,
                                struct token_list *list, struct err *e);
/* Positions that a request with `append` would find taken. */
uint32_t engine_position(const engine *g);
/* "greta-demo, llama, 1.6 M parameters; greta software device, 17.6 of 17.6 GiB free" */
const char *engine_description(const engine *g);

/* ---- generating ----------------------------------------------------------------------------- */

struct engine_request {
    const int32_t *prompt; /* tokens; at least one */
    size_t prompt_count;
    bool append;                     /* goes on behind what sequence 0 holds already */
    uint32_t max_tokens;             /* 0: only the prompt is evaluated */
    struct sampler_options sampling; /* sequence i uses seed + i */
    const char *const *stops;        /* texts that end a sequence and are not part of it */
    size_t stop_count;
    bool ignore_end; /* go on behind an end-of-text token */
    /* Text of a sequence as it comes, well-formed UTF-8. May be NULL. */
    void (*text)(uint32_t sequence, const char *text, size_t len, void *user);
    /* Logits [vocab] behind the token at a position of sequence 0, in order: of every prompt
     * position if engine_options.all_logits, and of every position from the last of the prompt on.
     */
    enum rc (*logits)(uint32_t position, int32_t token, const float *logits, void *user,
                      struct err *e);
    /* Asked between tokens, and between layers while the prompt is read; true ends the run as if it
     * were complete. May be NULL. */
    bool (*interrupted)(void *user);
    void *user;
};

enum engine_end { ENGINE_LENGTH, ENGINE_EOS, ENGINE_STOP, ENGINE_INTERRUPTED };

struct engine_result {
    uint64_t generated;       /* tokens, of all sequences */
    double total_ms;          /* from the call to its return */
    double first_token_ms;    /* to the first token of sequence 0 */
    double tokens_per_second; /* generated tokens behind the first, by the time they took; where
                                 there is only one, by all the time */
    enum engine_end end;      /* of sequence 0 */
    struct token_list tokens; /* prompt and continuation of sequence 0; token_list_close() */
};

/* Whether a request could run: what it asks for, and whether its prompt fits in the context. */
NODISCARD enum rc engine_check(const engine *g, const struct engine_request *r, struct err *e);

/* RC_USAGE if an injection waits for a step that comes after this request. */
NODISCARD enum rc engine_check_injections(const engine *g, const struct engine_request *r,
                                          struct err *e);

/* Runs a request. RC_RANGE if the context has no room (greta never drops the beginning of a text to
 * make some); RC_DEVICE if the device failed. *out counts what was done also then; its tokens are
 * to be closed in any case. */
NODISCARD enum rc engine_generate(engine *g, const struct engine_request *r,
                                  struct engine_result *out, struct err *e);

#endif
