#include "infer/sampler.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/choose.h"
#include "kernels/kern.h"

const struct sampler_options sampler_defaults = {
    .temperature = 0.8f,
    .top_k = 40,
    .top_p = 0.95f,
    .min_p = 0,
    .repeat_penalty = 1,
    .repeat_last = 64,
};

struct sampler {
    struct sampler_options options;
    uint32_t vocab;
    uint64_t state[4];
    float *logits;          /* [vocab] after the repetition penalty */
    struct candidate *best; /* [vocab] */
};

/* ---- random numbers: xoshiro256**, seeded by splitmix64 -------------------------------------- */

static uint64_t splitmix(uint64_t *x) {
    uint64_t z = *x += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static uint64_t rotate(uint64_t x, int by) {
    return x << by | x >> (64 - by);
}

static uint64_t next_random(uint64_t s[4]) {
    uint64_t result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

/* ---- opening -------------------------------------------------------------------------------- */

enum rc sampler_check(const struct sampler_options *o, struct err *e) {
    if (!(o->temperature >= 0 && o->temperature <= 100))
        return err_set(e, RC_USAGE, "temperature: expected 0 to 100, found %g",
                       (double)o->temperature);
    if (!(o->top_p > 0 && o->top_p <= 1))
        return err_set(e, RC_USAGE, "top-p: expected more than 0 and at most 1, found %g",
                       (double)o->top_p);
    if (!(o->min_p >= 0 && o->min_p < 1))
        return err_set(e, RC_USAGE, "min-p: expected at least 0 and less than 1, found %g",
                       (double)o->min_p);
    if (!(o->repeat_penalty > 0 && o->repeat_penalty <= 10))
        return err_set(e, RC_USAGE, "repeat-penalty: expected more than 0 and at most 10, found %g",
                       (double)o->repeat_penalty);
    return RC_OK;
}

enum rc sampler_open(sampler **out, const struct sampler_options *options, uint32_t vocab,
                     struct err *e) {
    enum rc rc = sampler_check(options, e);
    if (rc)
        return rc;
    sampler *s = calloc(1, sizeof *s);
    if (!s)
        return err_set(e, RC_MEMORY, "out of memory");
    *s = (struct sampler){ .options = *options, .vocab = vocab };
    uint64_t x = options->seed;
    for (int i = 0; i < 4; i++)
        s->state[i] = splitmix(&x);
    *out = s;
    return RC_OK;
}

void sampler_close(sampler **s) {
    if (*s) {
        free((*s)->logits);
        free((*s)->best);
    }
    free(*s);
    *s = NULL;
}

/* ---- picking -------------------------------------------------------------------------------- */

/* Makes recent tokens less likely, whatever the sign of their logit; once each. */
static void penalise(sampler *s, const int32_t *before, size_t count) {
    float by = s->options.repeat_penalty;
    size_t from = count > s->options.repeat_last ? count - s->options.repeat_last : 0;
    for (size_t i = from; by != 1 && i < count; i++) {
        bool seen = false;
        for (size_t j = from; j < i && !seen; j++)
            seen = before[j] == before[i];
        if (seen || before[i] < 0 || (uint32_t)before[i] >= s->vocab)
            continue;
        float *logit = &s->logits[before[i]];
        *logit = *logit > 0 ? *logit / by : *logit * by;
    }
}

static enum rc broken(const sampler *s, uint32_t bad, struct err *e) {
    return err_set(e, RC_FORMAT,
                   "%u of %u logits are NaN or Inf: the weights or the arithmetic are broken "
                   "(greta_model verify looks at the weights, --trace all at the arithmetic)",
                   bad, s->vocab);
}

/* Copies the logits. The buffer is allocated on first use: a device that draws sends none. */
static enum rc load(sampler *s, const float *logits, struct err *e) {
    uint32_t bad = choose_count_bad(logits, s->vocab), possible = 0;
    for (uint32_t i = 0; i < s->vocab; i++)
        possible += logits[i] > -(float)INFINITY;
    if (bad || !possible)
        return broken(s, bad ? bad : s->vocab, e);
    s->logits = s->logits ? s->logits : malloc(s->vocab * sizeof *s->logits);
    s->best = s->best ? s->best : malloc(s->vocab * sizeof *s->best);
    if (!s->logits || !s->best)
        return err_set(e, RC_MEMORY, "out of memory");
    memcpy(s->logits, logits, s->vocab * sizeof *logits);
    return RC_OK;
}

static uint32_t kept(const sampler *s) {
    uint32_t all = s->options.top_k ? s->options.top_k : s->vocab;
    return s->options.temperature == 0 ? 1 : all < s->vocab ? all : s->vocab;
}

static struct choose_rule rule_with(const sampler *s, uint64_t random) {
    bool greedy = s->options.temperature == 0;
    return (struct choose_rule){ .keep = kept(s),
                                 .top_p = s->options.top_p,
                                 .min_p = s->options.min_p,
                                 .cold = greedy ? 0 : 1 / (double)s->options.temperature,
                                 .draw = greedy ? 0 : (double)(random >> 11) * 0x1p-53 };
}

/* Greedy decoding needs no random numbers. */
static uint64_t advance(uint64_t state[4], const sampler *s) {
    return s->options.temperature == 0 ? 0 : next_random(state);
}

enum rc sampler_pick(sampler *s, const float *logits, const int32_t *before, size_t count,
                     int32_t *out, struct err *e) {
    enum rc rc = load(s, logits, e);
    if (rc)
        return rc;
    penalise(s, before, count);
    const struct choose_rule rule = rule_with(s, advance(s->state, s));
    size_t left = choose_best(s->logits, s->vocab, rule.keep, s->best);
    *out = choose_draw(s->best, left, &rule);
    return RC_OK;
}

/* ---- picking on the device ------------------------------------------------------------------- */

bool sampler_suits_device(const sampler *s, bool gpu) {
    bool fast = gpu || kept(s) == 1 || s->vocab <= KERN_CHOICES;
    return fast && s->options.repeat_penalty == 1 && kept(s) <= KERN_KEPT &&
           KERN_LISTS(s->vocab) * kept(s) <= KERN_CHOICES;
}

void sampler_settings(const sampler *s, int32_t *settings) {
    uint64_t state[4];
    memcpy(state, s->state, sizeof state);
    const struct choose_rule rule = rule_with(s, advance(state, s));
    choose_write(&rule, settings);
}

enum rc sampler_take(sampler *s, int32_t token, int32_t *out, struct err *e) {
    if (token < 0)
        return broken(s, (uint32_t)-token, e);
    (void)advance(s->state, s);
    *out = token;
    return RC_OK;
}
