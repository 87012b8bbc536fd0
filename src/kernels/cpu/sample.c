/* sample.c - the kernels that draw tokens, over choose.h. */
#include <math.h>

#include "kernels/cpu/choose.h"
#include "kernels/cpu/native.h"
#include "kernels/cpu/scratch.h"

static const float *row_of_logits(const struct kern_view *logits, uint64_t row, uint32_t vocab) {
    return (const float *)logits->ptr + row * vocab;
}

static struct choose_rule rule_of(const struct kern_view *settings, uint64_t row) {
    return choose_read((const int32_t *)settings->ptr + row * KERN_SETTINGS);
}

/* Where a row's lists are; number n of list l is n * lists + l. */
static int32_t *row_of_lists(const struct kern_view *lists, uint64_t row, uint32_t vocab) {
    return (int32_t *)lists->ptr + row * KERN_LISTS(vocab) * KERN_LISTED;
}

void cpu_shortlist(const struct greta_soft_work *work, const struct kern_shortlist *a) {
    struct candidate best[KERN_KEPT];
    uint64_t lists = KERN_LISTS(a->vocab);
    for (uint64_t b = work->first; b < work->last; b++) {
        uint64_t row = b / lists, first = b % lists * KERN_CHOICES, rest = a->vocab - first;
        const float *logits = row_of_logits(&a->logits, row, a->vocab) + first;
        size_t n = rest < KERN_CHOICES ? rest : KERN_CHOICES;
        int32_t *ids = row_of_lists(&a->lists, row, a->vocab) + b % lists;
        float *kept = (float *)ids + KERN_KEPT * lists;
        uint32_t keep = rule_of(&a->settings, row).keep, bad = choose_count_bad(logits, n);
        size_t count = bad ? 0 : choose_best(logits, n, keep < KERN_KEPT ? keep : KERN_KEPT, best);
        for (size_t i = 0; i < KERN_KEPT; i++) {
            ids[i * lists] = i < count ? (int32_t)first + best[i].id : -1;
            kept[i * lists] = i < count ? best[i].logit : 0;
        }
        ids[2 * KERN_KEPT * lists] = (int32_t)bad;
    }
}

/* The candidates that a row's lists have: their logits and ids. Returns how many; *bad counts. */
static size_t gather(const struct kern_sample *a, uint64_t row, uint32_t keep, float *logits,
                     int32_t *ids, uint32_t *bad) {
    uint64_t lists = KERN_LISTS(a->vocab);
    const int32_t *list = row_of_lists(&a->lists, row, a->vocab);
    const float *kept = (const float *)list + KERN_KEPT * lists;
    size_t n = 0;
    for (uint64_t l = 0; l < lists; l++, list++, kept++) {
        *bad += (uint32_t)list[2 * KERN_KEPT * lists];
        for (uint32_t i = 0; i < keep && list[i * lists] >= 0; i++) {
            logits[n] = kept[i * lists];
            ids[n++] = list[i * lists];
        }
    }
    return n;
}

static int32_t draw_row(const struct kern_sample *a, uint64_t row) {
    struct choose_rule rule = rule_of(&a->settings, row);
    struct candidate best[KERN_KEPT];
    const float *logits = row_of_logits(&a->logits, row, a->vocab);
    size_t n = a->vocab;
    int32_t *ids = NULL;
    uint32_t bad = 0, keep = rule.keep < KERN_KEPT ? rule.keep : KERN_KEPT;
    if (a->vocab > KERN_CHOICES) {
        size_t room = KERN_LISTS(a->vocab) * keep;
        float *gathered = scratch_need(SCRATCH_HEADS, room * (sizeof(float) + sizeof(int32_t)));
        ids = (int32_t *)(void *)(gathered + room);
        n = gather(a, row, keep, gathered, ids, &bad);
        logits = gathered;
    } else {
        bad = choose_count_bad(logits, n);
    }
    size_t kept = bad ? 0 : choose_best(logits, n, keep, best);
    if (!kept || best[0].logit == -(float)INFINITY)
        return -(int32_t)(bad ? bad : a->vocab);
    int32_t drawn = choose_draw(best, kept, &rule);
    return ids ? ids[drawn] : drawn;
}

void cpu_sample(const struct greta_soft_work *work, const struct kern_sample *a) {
    int32_t *tokens = a->tokens.ptr, *ids = a->ids.ptr, *pos = a->pos.ptr;
    for (uint64_t row = work->first; row < work->last; row++) {
        tokens[row] = draw_row(a, row);
        if (a->advance) {
            ids[row] = tokens[row];
            pos[row]++;
        }
    }
}
