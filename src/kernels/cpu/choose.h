/* choose.h - how a token is drawn from logits: what the host's sampler and the kernels agree on to
 * the bit.
 *
 * The order of candidates is by logit, of equals the lower id first. Their weights are e^x as
 * choose_exp() has it, summed in that order. No library's exp is used, so a seed gives the same
 * tokens on every machine and on a GPU. Pure functions; thread-safe. */
#ifndef KERNELS_CPU_CHOOSE_H
#define KERNELS_CPU_CHOOSE_H

#include <stddef.h>
#include <stdint.h>

struct candidate {
    float logit;
    int32_t id;
};

/* What is done with the best candidates. */
struct choose_rule {
    uint32_t keep; /* of all, at most; 1: the best, and nothing else counts */
    float top_p;   /* the fewest whose probabilities, before temperature, sum up to it */
    float min_p;   /* those that are at least that likely, compared with the best */
    double cold;   /* 1 / temperature */
    double draw;   /* 0 to 1, without 1 */
};

/* A rule to KERN_SETTINGS numbers for the kernels, and back. */
void choose_write(const struct choose_rule *r, int32_t *settings);
struct choose_rule choose_read(const int32_t *settings);

/* e^x for x <= 0; 0 where that is below 1e-307. */
double choose_exp(double x);

/* How many of the logits are NaN or +Inf: nothing can be drawn from those. */
uint32_t choose_count_bad(const float *logits, size_t n);

/* The `keep` best of n logits, whose ids are their indexes, in order; all n, if there are no more.
 * Returns how many those are. */
size_t choose_best(const float *logits, size_t n, size_t keep, struct candidate *out);

/* Draws from candidates in order; n is at least 1. */
int32_t choose_draw(const struct candidate *c, size_t n, const struct choose_rule *r);

#endif
