#include "kernels/cpu/choose.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* ---- settings -------------------------------------------------------------------------------- */

void choose_write(const struct choose_rule *r, int32_t *settings) {
    memcpy(settings, &r->keep, sizeof r->keep);
    memcpy(settings + 1, &r->top_p, sizeof r->top_p);
    memcpy(settings + 2, &r->min_p, sizeof r->min_p);
    settings[3] = 0;
    memcpy(settings + 4, &r->cold, sizeof r->cold);
    memcpy(settings + 6, &r->draw, sizeof r->draw);
}

struct choose_rule choose_read(const int32_t *settings) {
    struct choose_rule r;
    memcpy(&r.keep, settings, sizeof r.keep);
    memcpy(&r.top_p, settings + 1, sizeof r.top_p);
    memcpy(&r.min_p, settings + 2, sizeof r.min_p);
    memcpy(&r.cold, settings + 4, sizeof r.cold);
    memcpy(&r.draw, settings + 6, sizeof r.draw);
    return r;
}

/* ---- weights --------------------------------------------------------------------------------- */

/* x = n ln 2 + r. ln 2 comes in two parts, the first with so few bits that n times it is exact; the
 * sum of a double below 2^51 and 1.5 * 2^52 rounds it to a whole number. */
double choose_exp(double x) {
    const double whole = 0x1.8p52;
    if (!(x > -707))
        return 0;
    double n = x * 0x1.71547652b82fep+0 + whole - whole;
    double r = x - n * 0x1.62e42fefap-1 - n * 0x1.cf79abc9e3b3ap-40;
    double sum = 0;
#define EXP_TERM(term) sum = sum * r + (term);
#include "kernels/hip/exp_series.def"
#undef EXP_TERM
    uint64_t bits = (uint64_t)(1023 + (int64_t)n) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return sum * power;
}

/* ---- the best -------------------------------------------------------------------------------- */

static bool comes_before(const struct candidate *a, const struct candidate *b) {
    return a->logit > b->logit || (a->logit == b->logit && a->id < b->id);
}

enum { FEW = 16 }; /* logits that are compared together, by vector instructions */

uint32_t choose_count_bad(const float *logits, size_t n) {
    const float infinity = (float)INFINITY;
    uint32_t bad = 0;
    size_t i = 0;
    for (; i + FEW <= n; i += FEW) {
        uint32_t here = 0;
        for (size_t j = 0; j < FEW; j++)
            here += !(logits[i + j] < infinity);
        bad += here;
    }
    for (; i < n; i++)
        bad += !(logits[i] < infinity);
    return bad;
}

static void swap(struct candidate *a, struct candidate *b) {
    struct candidate c = *a;
    *a = *b;
    *b = c;
}

/* A heap, the worst on top. */
static void sift_down(struct candidate *heap, size_t n, size_t at) {
    for (;;) {
        size_t worst = at, left = 2 * at + 1, right = left + 1;
        if (left < n && comes_before(&heap[worst], &heap[left]))
            worst = left;
        if (right < n && comes_before(&heap[worst], &heap[right]))
            worst = right;
        if (worst == at)
            return;
        swap(&heap[at], &heap[worst]);
        at = worst;
    }
}

/* Whether one of FEW logits is above a bound; nearly all of a row are below it. */
static bool any_above(const float *logits, float bound) {
    uint32_t above = 0;
    for (size_t i = 0; i < FEW; i++)
        above |= logits[i] > bound;
    return above;
}

/* The first from `at` on that is above a bound, or n. */
static size_t find_above(const float *logits, size_t at, size_t n, float bound) {
    while (at + FEW <= n && !any_above(logits + at, bound))
        at += FEW;
    while (at < n && !(logits[at] > bound))
        at++;
    return at;
}

/* A later logit never takes the place of an equal one: its id is higher. */
size_t choose_best(const float *logits, size_t n, size_t keep, struct candidate *out) {
    keep = keep < n ? keep : n;
    for (size_t i = 0; i < keep; i++)
        out[i] = (struct candidate){ logits[i], (int32_t)i };
    for (size_t i = keep / 2; i-- > 0;)
        sift_down(out, keep, i);
    for (size_t i = keep; keep && (i = find_above(logits, i, n, out[0].logit)) < n; i++) {
        out[0] = (struct candidate){ logits[i], (int32_t)i };
        sift_down(out, keep, 0);
    }
    for (size_t left = keep; left-- > 1;) { /* the worst of those that are left goes to their end */
        swap(&out[0], &out[left]);
        sift_down(out, left, 0);
    }
    return keep;
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* How many of the candidates are left by top-p and min-p; probabilities before temperature. */
static size_t cut_tail(const struct candidate *c, size_t n, const struct choose_rule *r) {
    double total = 0, sum = 0, best = (double)c[0].logit;
    for (size_t i = 0; i < n; i++)
        total += choose_exp((double)c[i].logit - best);
    for (size_t i = 0; i < n; i++) {
        double p = choose_exp((double)c[i].logit - best);
        if (i && (sum >= (double)r->top_p * total || p < (double)r->min_p))
            return i;
        sum += p;
    }
    return n;
}

int32_t choose_draw(const struct candidate *c, size_t n, const struct choose_rule *r) {
    if (r->keep == 1)
        return c[0].id;
    double total = 0, best = (double)c[0].logit;
    n = cut_tail(c, n, r);
    for (size_t i = 0; i < n; i++)
        total += choose_exp(((double)c[i].logit - best) * r->cold);
    double at = r->draw * total;
    for (size_t i = 0; i < n; i++) {
        at -= choose_exp(((double)c[i].logit - best) * r->cold);
        if (at < 0)
            return c[i].id;
    }
    return c[n - 1].id;
}
