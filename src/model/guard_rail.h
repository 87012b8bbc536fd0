/* guard_rail.h - refuses a model before anything is allocated for it.
 *
 * Every check adds rows to a report: what was looked at, what was expected, what was found. An
 * empty report means that file, configuration and machine agree. Nothing here touches a device:
 * free memory comes in as a number. Whether to continue in spite of a report
 * (GRETA_DISABLE_GUARD_RAIL) is up to the caller. A report is used by one thread at a time. */
#ifndef MODEL_GUARD_RAIL_H
#define MODEL_GUARD_RAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "model/config.h"
#include "model/gguf/gguf.h"

struct guard_rail_row {
    char subject[80]; /* a tensor's name, or a property: "number of KV heads" */
    char expected[80];
    char found[80];
};

struct guard_rail_report {
    struct guard_rail_row *rows; /* owned; freed by guard_rail_clear() */
    size_t count, room;
    bool incomplete; /* rows are missing because memory ran out */
};

/* What the kernels can take. */
struct guard_rail_limits {
    uint32_t head_size_multiple, head_size_max;
};
extern const struct guard_rail_limits guard_rail_default_limits;

/* Names, shapes and types of all tensors against the configuration; required ones that are missing,
 * and tensors that greta would leave out of its arithmetic; head sizes; the vocabulary against
 * embedding and tokenizer. */
void guard_rail_check_model(const gguf *g, const struct config *c,
                            const struct guard_rail_limits *limits, struct guard_rail_report *r);

/* A shape the user demands. Numbers that are 0 demand nothing. */
struct guard_rail_expectation {
    char source[256]; /* "llama-2-7b" or the file's name */
    char arch[32];    /* "": any */
    uint32_t dim, layers, heads, kv_heads, head_size, hidden, vocab, context;
    double rope_base;
    int tied; /* -1: either */
};

/* what: a name of config_shape.def, else the path of a JSON file. The file is an object of numbers
 * and strings with greta's names (arch, dim, layers, heads, kv_heads, head_size, hidden, vocab,
 * context, rope_base, tied) or a model's config.json as published on Hugging Face. RC_USAGE if it
 * is neither a name nor a file, RC_FORMAT if the file is not such JSON; *out is then untouched. */
NODISCARD enum rc guard_rail_read_expectation(const char *what, struct guard_rail_expectation *out,
                                              struct err *e);

/* The same from JSON text of len bytes; name serves for messages. */
NODISCARD enum rc guard_rail_parse_expectation(const char *text, size_t len, const char *name,
                                               struct guard_rail_expectation *out, struct err *e);

/* Adds a row for every property of c that is not as demanded. */
void guard_rail_check_expectation(const struct config *c, const struct guard_rail_expectation *x,
                                  struct guard_rail_report *r);

/* What a run will need on the device, in bytes. */
struct guard_rail_memory {
    uint64_t weights, kv_cache, activations, total;
};

/* Adds the weights to what the caller will allocate. Never overflows: what cannot be counted is
 * UINT64_MAX. */
struct guard_rail_memory guard_rail_memory_need(const gguf *g, uint64_t kv_cache,
                                                uint64_t activations);

/* Adds a row if need is more than there is. */
void guard_rail_check_memory(const struct guard_rail_memory *need, uint64_t free_bytes,
                             struct guard_rail_report *r);

/* RC_OK for an empty report, else RC_REFUSED with a summary that names the first row, the number of
 * others, and how to continue in spite of them. */
NODISCARD enum rc guard_rail_verdict(const struct guard_rail_report *r, const gguf *g,
                                     struct err *e);

/* The table for people, expected beside found. */
void guard_rail_print(const struct guard_rail_report *r, FILE *out);

void guard_rail_clear(struct guard_rail_report *r); /* frees the rows; *r is empty again */

#endif
