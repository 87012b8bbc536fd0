/* sampler.h - from logits to the next token.
 *
 * The order: repetition penalty, then, unless greedy, top-k, top-p, min-p over what is left,
 * temperature, and a draw from a generator that a seed determines (xoshiro256**), so that the same
 * seed and logits give the same token on every machine, whether the host draws it or the device.
 * Ties go to the lower id. One sampler per sequence; used by one thread at a time. */
#ifndef INFER_SAMPLER_H
#define INFER_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct sampler_options {
    float temperature;    /* 0: greedy */
    uint32_t top_k;       /* 0: all */
    float top_p;          /* 1: all */
    float min_p;          /* 0: all; else drops tokens below min_p times the best */
    float repeat_penalty; /* 1: none */
    uint32_t repeat_last; /* tokens the penalty looks back at */
    uint64_t seed;
};
extern const struct sampler_options sampler_defaults;

/* RC_USAGE if an option is out of range, with what it may be. */
NODISCARD enum rc sampler_check(const struct sampler_options *options, struct err *e);

typedef struct sampler sampler;

/* RC_USAGE as sampler_check. On failure *out is untouched. */
NODISCARD enum rc sampler_open(sampler **out, const struct sampler_options *options, uint32_t vocab,
                               struct err *e);
void sampler_close(sampler **s); /* sets *s to NULL; *s may be NULL */

/* The next token for logits[vocab] after the given tokens. RC_FORMAT if a logit is NaN or +Inf, or
 * all are -Inf: a draw from those would hide that the model is broken. */
NODISCARD enum rc sampler_pick(sampler *s, const float *logits, const int32_t *before, size_t count,
                               int32_t *out, struct err *e);

/* The same on the device, by kernel sample: whether it can do what the options ask; the row of
 * settings (KERN_SETTINGS numbers) for the next token; and the result, a token or what sample says
 * about broken logits (RC_FORMAT). Nothing changes before sampler_take(), so that a step that
 * failed can be repeated. gpu: native code is slower than the host if many tokens of a large
 * vocabulary are kept. */
bool sampler_suits_device(const sampler *s, bool gpu);
void sampler_settings(const sampler *s, int32_t *settings);
NODISCARD enum rc sampler_take(sampler *s, int32_t token, int32_t *out, struct err *e);

#endif
