/* greta/greta.h - the engine as a library: a model on a device, text in, text out.
 *
 *     greta_engine *engine = NULL;
 *     struct greta_error why;
 *     struct greta_options options;
 *     struct greta_request request;
 *     greta_options_init(&options);
 *     options.model = "model.gguf";
 *     greta_request_init(&request);
 *     request.prompt = "Once upon a time";
 *     request.text = print;
 *     if (greta_open(&engine, &options, &why) || greta_generate(engine, &request, NULL, &why))
 *         fprintf(stderr, "%s\n", why.message);
 *     greta_close(&engine, NULL);
 *
 * Functions that can fail return an enum greta_code, GRETA_OK being 0, and explain themselves in
 * the struct greta_error that the caller passes last, which may be NULL. They never print and never
 * exit. An engine is used by one thread at a time; callbacks run on that thread. A process may have
 * several engines, all on the same device.
 *
 * libgreta contains libgcore: everything an engine does on the device goes through its audited
 * table and checked copies, and GCORE_RECORD and its relatives work as in any program that links
 * it. A program that also calls gcore_* itself links libgreta alone. */
#ifndef GRETA_GRETA_H
#define GRETA_GRETA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GRETA_API __attribute__((visibility("default")))

enum greta_code {
    GRETA_OK = 0,
    GRETA_USAGE,       /* an option or an argument is wrong */
    GRETA_IO,          /* the operating system failed a call */
    GRETA_FORMAT,      /* the file contradicts its format, or the model's numbers are broken */
    GRETA_MEMORY,      /* host or device memory ran out */
    GRETA_RANGE,       /* the prompt does not fit, or the context is full */
    GRETA_UNSUPPORTED, /* valid, but not something greta runs */
    GRETA_REFUSED,     /* the guard rail, a launch check or a checked copy refused */
    GRETA_DEVICE,      /* the device failed; HIP's error is in the message */
    GRETA_INTERRUPTED, /* a callback ended it before there was a result */
};

struct greta_error {
    enum greta_code code;
    char message[512];
};

typedef struct greta_engine greta_engine;

/* ---- opening ------------------------------------------------------------------------------- */

struct greta_options {
    const char *model;  /* path of a GGUF file; NULL: the demo model that is built in */
    const char *device; /* "auto", "hip", "soft"; NULL: GRETA_DEVICE */
    const char *record; /* file of the flight recording; NULL: GCORE_RECORD. A process has one:
                           engines opened later name the same or none */
    uint32_t context;   /* positions per sequence; 0: the model's own, at most 4096 */
    uint32_t sequences; /* at most that many take part in a step; continuations of greta_generate();
                           0: 1 */
    uint32_t cache;     /* positions of the KV cache for all sequences together; it grows up to that
                           as it is needed; 0: context for each */
    uint32_t chunk;     /* prompt tokens that go through the model together; 0: 512 */
    uint32_t threads;   /* cores of the software device; 0: all */
    const char *kv_type;   /* "F16" or "Q8_0"; NULL: F16 */
    const char *expect;    /* a shape the model must have ("llama-3-8b", FILE.json); NULL: any */
    int ignore_guard_rail; /* nonzero: continue in spite of what the guard rail finds */
    int all_logits;        /* nonzero: logits of every prompt position will be wanted */
    /* Bytes loaded so far, and in total; nonzero gives up. May be NULL. */
    int (*progress)(uint64_t done, uint64_t total, void *user);
    /* What the guard rail found, as a table for people, and notes that are no reason to stop. May
     * be NULL. */
    void (*report)(const char *text, void *user);
    void *user;
};

/* The defaults: all zero. */
GRETA_API void greta_options_init(struct greta_options *o);

/* On failure *out is untouched. */
GRETA_API enum greta_code greta_open(greta_engine **out, const struct greta_options *o,
                                     struct greta_error *e);
/* Sets *g to NULL; *g may be NULL. */
GRETA_API enum greta_code greta_close(greta_engine **g, struct greta_error *e);

/* "greta demo (llama, 1.837 million parameters) on …"; lives as long as the engine. */
GRETA_API const char *greta_description(const greta_engine *g);
GRETA_API uint32_t greta_vocab(const greta_engine *g);
GRETA_API uint32_t greta_context(const greta_engine *g);

/* ---- tokens -------------------------------------------------------------------------------- */

enum {
    GRETA_ADD_SPECIAL = 1,   /* BOS before the text where the model wants it */
    GRETA_PARSE_SPECIAL = 2, /* "<|eot_id|>" and its like become those tokens */
};

/* Writes the ids of a text to ids, as far as there is room, and their number to *count. */
GRETA_API enum greta_code greta_tokenize(const greta_engine *g, const char *text, size_t bytes,
                                         unsigned flags, int32_t *ids, size_t room, size_t *count,
                                         struct greta_error *e);
/* The bytes a token stands for, not terminated; NULL for a number that is none. */
GRETA_API const char *greta_token_text(const greta_engine *g, int32_t id, size_t *bytes);

/* ---- generating ---------------------------------------------------------------------------- */

enum greta_end {
    GRETA_END_LENGTH, /* max_tokens */
    GRETA_END_EOS,    /* the model's end-of-text token */
    GRETA_END_STOP,   /* a stop text */
    GRETA_END_INTERRUPTED,
    GRETA_END_FULL, /* the context has no room for another token */
};

struct greta_finished {
    enum greta_end end;
    uint32_t prompt_tokens, generated;
};

struct greta_request {
    const char *prompt;    /* text; NULL: tokens */
    size_t prompt_bytes;   /* 0: prompt is terminated */
    const int32_t *tokens; /* instead of a text */
    size_t token_count;
    int append;               /* continue what sequence 0 holds already */
    uint32_t max_tokens;      /* 0: only the prompt is evaluated */
    float temperature;        /* 0: greedy decoding */
    uint32_t top_k;           /* 0: all */
    float top_p;              /* 1: all */
    float min_p;              /* 0: all */
    float repeat_penalty;     /* 1: none */
    uint32_t repeat_last;     /* tokens it looks back at */
    uint64_t seed;            /* sequence i of greta_generate() draws with seed + i */
    const char *const *stops; /* texts that end a sequence and are not part of it */
    size_t stop_count;
    int ignore_end; /* continue past an end-of-text token */
    /* Text of a sequence as it comes, well-formed UTF-8. May be NULL. */
    void (*text)(uint32_t sequence, const char *text, size_t bytes, void *user);
    /* logits[vocab] after the token at a position of sequence 0; nonzero ends the run. May be
     * NULL. */
    int (*logits)(uint32_t position, int32_t token, const float *logits, uint32_t vocab,
                  void *user);
    /* Asked between tokens; nonzero ends the run as if it were complete. May be NULL. */
    int (*interrupted)(void *user);
    /* Called once at the end of a sequence. May be NULL. */
    void (*finished)(uint32_t sequence, const struct greta_finished *f, void *user);
    void *user;
};

/* 128 tokens, temperature 0.8, top-k 40, top-p 0.95, no penalty, seed 0. */
GRETA_API void greta_request_init(struct greta_request *r);

struct greta_result {
    uint64_t generated;       /* tokens, of all sequences */
    double total_ms;          /* of the call */
    double first_token_ms;    /* to the first token */
    double tokens_per_second; /* after the first */
    enum greta_end end;       /* of sequence 0 */
};

/* Runs a request; *out (may be NULL) counts what was done also if it fails. */
GRETA_API enum greta_code greta_generate(greta_engine *g, const struct greta_request *r,
                                         struct greta_result *out, struct greta_error *e);

/* ---- several prompts side by side ----------------------------------------------------------
 *
 * greta_submit() adds a sequence at any time, greta_step() runs one pass of the model for all live
 * sequences: the next token of each, and prompts in chunks. Sequences that begin with the same
 * tokens share the blocks of the KV cache that hold them. With quantised weights the text of a
 * sequence does not depend on its neighbours.
 *
 *     for (size_t i = 0; i < count; i++)
 *         greta_submit(engine, &requests[i], &ids[i], &why);
 *     for (int more = 1; more && !greta_step(engine, &more, &why);)
 *         ;                                      // calls text() and finished()
 */

/* *id is what the callbacks get. The request's stop texts must stay valid until the sequence has
 * ended; append is not possible. */
GRETA_API enum greta_code greta_submit(greta_engine *g, const struct greta_request *r, uint32_t *id,
                                       struct greta_error *e);
/* *more: sequences are left. If it fails, it can be called again: each sequence is as it was, or
 * has its next token. */
GRETA_API enum greta_code greta_step(greta_engine *g, int *more, struct greta_error *e);
/* Ends a sequence at the next step, if it is still there; unknown ids are ignored. Callbacks may
 * call it too. */
GRETA_API enum greta_code greta_cancel(greta_engine *g, uint32_t id, struct greta_error *e);

/* "0.1.0" */
GRETA_API const char *greta_version(void);

#ifdef __cplusplus
}
#endif
#endif
