/* engine.h - a model on a device, ready to generate.
 *
 * The unit is a sequence: a prompt, what follows it, its sampler, its stop rules and its blocks of
 * the KV cache. engine_submit() adds one at any time, engine_step() runs one pass for all of them,
 * and engine_generate() is both for a single prompt. With quantised weights, not one bit of a
 * sequence's result depends on the other sequences.
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
    const char *exec;    /* native or isa: code of the kernels; NULL: what suits the device */
    const char *devices; /* device numbers that share the model by layers, "0,1"; NULL: 0 */
    const char *record;  /* where the flight recording goes; NULL: GCORE_RECORD */
    uint32_t context;    /* positions per sequence; 0: the model's own, at most 4096 */
    uint32_t sequences;  /* at most that many take part in a step; continuations of
                            engine_generate(); 0: 1 */
    uint32_t cache; /* positions of the KV cache for all sequences together; it grows up to that as
                       needed; 0: context for each */
    uint32_t chunk; /* prompt tokens that go through the model together; 0: ENGINE_CHUNK */
    uint32_t threads;    /* cores; 0: all */
    const char *kv_type; /* F16 or Q8_0; NULL: F16 */
    const char *expect;  /* a shape the model must have (guard_rail.h); NULL: any */
    bool no_repack;      /* leave matrices in the order of the file */
    bool packed_cache;   /* map packed matrices from a file, which is made where it is missing */
    const char *packed_folder; /* where it is; NULL: greta's cache folder */
    /* On a device that works in the host's memory, matrices of more bytes than these are repacked
     * between the first passes instead of before them; 0: 2.5 GiB. */
    uint64_t repack_first_bytes;
    bool guard_rail; /* false: continue in spite of what it finds */
    bool all_logits; /* logits of every prompt position will be wanted */
    const char *trace, *trace_file, *trace_dump; /* trace.h; trace NULL: none */
    const char *const *inject;                   /* faults to inject (inject.h) */
    size_t inject_count;
    /* Bytes loaded so far, and in total; returning false gives up. May be NULL. */
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
/* Ends all sequences first. RC_IO if a trace could not be written, RC_USAGE if an injection never
 * struck. Sets *g to NULL; *g may be NULL. */
NODISCARD enum rc engine_close(engine **g, struct err *e);

const struct config *engine_config(const engine *g);
const tokenizer *engine_tokenizer(const engine *g);
uint32_t engine_context(const engine *g);
/* Appends the tokens of a text to be continued, with BOS where the model wants it. The end-of-text
 * token that some models want after a text is left out: they would not continue from it. special:
 * markup such as "<|eot_id|>" in the text becomes those tokens. */
NODISCARD enum rc engine_encode(const engine *g, const char *text, size_t len, bool special,
                                struct token_list *list, struct err *e);
/* Positions that are taken already for a request with `append`. */
uint32_t engine_position(const engine *g);
/* "greta-demo, llama, 1.6 M parameters; greta software device, 17.6 of 17.6 GiB free" */
const char *engine_description(const engine *g);

/* ---- generating ----------------------------------------------------------------------------- */

/* FULL: the context has no room for the next token. */
enum engine_end { ENGINE_LENGTH, ENGINE_EOS, ENGINE_STOP, ENGINE_INTERRUPTED, ENGINE_FULL };

/* How a sequence ended. */
struct engine_finished {
    enum engine_end end;
    uint32_t generated, evaluated; /* tokens that were drawn, and tokens that the cache held */
    uint64_t first_ns;             /* when the first was drawn, by clock_now_ns(); 0: none was */
    struct token_list *tokens;     /* prompt and continuation; may be taken, leaving it empty */
};

/* The stop texts must stay valid until the sequence has ended, the prompt only during the call. */
struct engine_request {
    const int32_t *prompt; /* tokens; at least one */
    size_t prompt_count;
    uint32_t number; /* the sequence's number in callbacks and traces; engine_submit() sets it */
    bool hold;       /* for engine_generate(): its blocks stay for a request with `append` */
    bool unshared;   /* neither uses blocks that others computed nor lets others use its own */
    bool append;     /* continues what sequence 0 holds already */
    uint32_t max_tokens;             /* 0: only the prompt is evaluated */
    struct sampler_options sampling; /* sequence i uses seed + i */
    const char *const *stops;        /* texts that end a sequence and are not part of it */
    size_t stop_count;
    bool ignore_end; /* continue past an end-of-text token */
    /* Text of a sequence as it comes, well-formed UTF-8. May be NULL. */
    void (*text)(uint32_t sequence, const char *text, size_t len, void *user);
    /* Logits [vocab] after the token at a position of sequence 0, in order: of every prompt
     * position if engine_options.all_logits, and of every position from the last of the prompt on.
     */
    enum rc (*logits)(uint32_t position, int32_t token, const float *logits, void *user,
                      struct err *e);
    /* Asked between tokens, and between layers while the prompt is read; true ends the run as if it
     * were complete. May be NULL. */
    bool (*interrupted)(void *user);
    /* How many of a sequence's tokens have been read, and how many there are: before each pass and
     * after it, until the prompt has been read. May be NULL. */
    void (*progress)(uint32_t sequence, uint32_t done, uint32_t total, void *user);
    /* Called once at the end of a sequence. May be NULL. */
    void (*finished)(uint32_t sequence, const struct engine_finished *f, void *user);
    void *user;
};

struct engine_result {
    uint64_t generated;       /* tokens, of all sequences */
    double total_ms;          /* from the call to its return */
    double first_token_ms;    /* to the first token of sequence 0 */
    double tokens_per_second; /* generated tokens after the first, divided by the time they took; if
                                 there is only one, by the total time */
    enum engine_end end;      /* of sequence 0 */
    struct token_list tokens; /* prompt and continuation of sequence 0; token_list_close() */
};

/* Whether a request could run: what it asks for, and whether its prompt fits in the context. */
NODISCARD enum rc engine_check(const engine *g, const struct engine_request *r, struct err *e);

/* RC_USAGE if an injection waits for a step that comes after this request. */
NODISCARD enum rc engine_check_injections(const engine *g, const struct engine_request *r,
                                          struct err *e);

/* Adds a sequence to the end of the queue; *number is what its callbacks get. */
NODISCARD enum rc engine_submit(engine *g, const struct engine_request *r, uint32_t *number,
                                struct err *e);
/* Ends a sequence at the next step, if it is still there. Callbacks may call it too. */
void engine_cancel(engine *g, uint32_t number);

/* Ends `count` sequences from `number` on as they are, without completing their text; their
 * finished() is called. A caller that gives up after an error does this while what finished() uses
 * still exists; engine_close() does it for the rest. */
void engine_drop(engine *g, uint32_t number, uint32_t count);
/* One pass for all live sequences: the next token of each, and prompts in chunks. *more: some are
 * left. If it fails, it can be called again: each sequence is as it was, or has its next token. */
NODISCARD enum rc engine_step(engine *g, bool *more, struct err *e);

/* Runs a request. RC_RANGE if the context has no room (greta never drops the beginning of a text to
 * make some); RC_DEVICE if the device failed. *out counts what was done also then; its tokens are
 * to be closed in any case. */
NODISCARD enum rc engine_generate(engine *g, const struct engine_request *r,
                                  struct engine_result *out, struct err *e);

#endif
