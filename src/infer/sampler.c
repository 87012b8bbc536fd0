#include "infer/sampler.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

const struct sampler_options sampler_defaults = {
    .temperature = 0.8f,
    .top_k = 40,
    .top_p = 0.95f,
    .min_p = 0,
    .repeat_penalty = 1,
    .repeat_last = 64,
};

struct candidate {
    float logit;
    int32_t id;
};

struct sampler {
    struct sampler_options options;
    uint32_t vocab;
    uint64_t state[4];
    struct candidate *candidates; /* [vocab] */
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
    struct candidate *candidates = calloc(vocab, sizeof *candidates);
    if (!s || !candidates) {
        free(s);
        free(candidates);
        return err_set(e, RC_MEMORY, "out of memory");
    }
    *s = (struct sampler){ .options = *options, .vocab = vocab, .candidates = candidates };
    uint64_t x = options->seed;
    for (int i = 0; i < 4; i++)
        s->state[i] = splitmix(&x);
    *out = s;
    return RC_OK;
}

void sampler_close(sampler **s) {
    if (*s)
        free((*s)->candidates);
    free(*s);
    *s = NULL;
}

/* ---- picking -------------------------------------------------------------------------------- */

/* Makes tokens that were there lately less likely, whatever the sign of their logit; once each. */
static void penalise(sampler *s, const int32_t *before, size_t count) {
    float by = s->options.repeat_penalty;
    size_t from = count > s->options.repeat_last ? count - s->options.repeat_last : 0;
    for (size_t i = from; by != 1 && i < count; i++) {
        bool seen = false;
        for (size_t j = from; j < i && !seen; j++)
            seen = before[j] == before[i];
        if (seen || before[i] < 0 || (uint32_t)before[i] >= s->vocab)
            continue;
        float *logit = &s->candidates[before[i]].logit;
        *logit = *logit > 0 ? *logit / by : *logit * by;
    }
}

static int by_logit(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    if (x->logit != y->logit)
        return x->logit > y->logit ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static const struct candidate *best_of(const struct candidate *c, size_t n) {
    const struct candidate *best = c;
    for (size_t i = 1; i < n; i++)
        if (by_logit(&c[i], best) < 0)
            best = &c[i];
    return best;
}

/* Moves the k best to the front, in order: a heap of the k best so far, its worst on top. */
static void sift_down(struct candidate *heap, size_t n, size_t at) {
    for (;;) {
        size_t worst = at, left = 2 * at + 1, right = left + 1;
        if (left < n && by_logit(&heap[left], &heap[worst]) > 0)
            worst = left;
        if (right < n && by_logit(&heap[right], &heap[worst]) > 0)
            worst = right;
        if (worst == at)
            return;
        struct candidate c = heap[at];
        heap[at] = heap[worst];
        heap[worst] = c;
        at = worst;
    }
}

static size_t keep_best(struct candidate *c, size_t n, size_t k) {
    if (k == 0 || k > n)
        k = n;
    for (size_t i = k / 2; k < n && i-- > 0;)
        sift_down(c, k, i);
    for (size_t i = k; i < n; i++) {
        if (by_logit(&c[i], &c[0]) < 0) {
            struct candidate worst = c[0];
            c[0] = c[i];
            c[i] = worst;
            sift_down(c, k, 0);
        }
    }
    qsort(c, k, sizeof *c, by_logit);
    return k;
}

/* How many of the sorted candidates are left by top-p and min-p; probabilities before temperature.
 */
static size_t cut_tail(const sampler *s, size_t n) {
    const struct candidate *c = s->candidates;
    double total = 0, sum = 0, best = (double)c[0].logit;
    for (size_t i = 0; i < n; i++)
        total += exp((double)c[i].logit - best);
    for (size_t i = 0; i < n; i++) {
        double p = exp((double)c[i].logit - best);
        if (i && (sum >= (double)s->options.top_p * total || p < (double)s->options.min_p))
            return i;
        sum += p;
    }
    return n;
}

static int32_t draw(sampler *s, size_t n) {
    const struct candidate *c = s->candidates;
    double total = 0, best = (double)c[0].logit, t = (double)s->options.temperature;
    for (size_t i = 0; i < n; i++)
        total += exp(((double)c[i].logit - best) / t);
    double at = (double)(next_random(s->state) >> 11) * 0x1p-53 * total;
    for (size_t i = 0; i < n; i++) {
        at -= exp(((double)c[i].logit - best) / t);
        if (at < 0)
            return c[i].id;
    }
    return c[n - 1].id;
}

/* Takes the logits in. */
static enum rc load(sampler *s, const float *logits, struct err *e) {
    uint32_t bad = 0, possible = 0;
    for (uint32_t i = 0; i < s->vocab; i++) {
        bad += isnan(logits[i]) || logits[i] == INFINITY;
        possible += logits[i] > -INFINITY;
        s->candidates[i] = (struct candidate){ logits[i], (int32_t)i };
    }
    if (!bad && possible)
        return RC_OK;
    return err_set(e, RC_FORMAT,
                   "%u of %u logits are NaN or Inf: the weights or the arithmetic are broken "
                   "(greta_model verify looks at the weights, --trace all at the arithmetic)",
                   bad ? bad : s->vocab, s->vocab);
}

enum rc sampler_pick(sampler *s, const float *logits, const int32_t *before, size_t count,
                     int32_t *out, struct err *e) {
    enum rc rc = load(s, logits, e);
    if (rc)
        return rc;
    penalise(s, before, count);
    if (s->options.temperature == 0) {
        *out = best_of(s->candidates, s->vocab)->id;
        return RC_OK;
    }
    size_t left = keep_best(s->candidates, s->vocab, s->options.top_k);
    *out = draw(s, cut_tail(s, left));
    return RC_OK;
}
