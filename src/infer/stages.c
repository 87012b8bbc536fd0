#include "infer/stages.h"

#include <errno.h>
#include <stdlib.h>

/* ---- which devices --------------------------------------------------------------------------- */

/* The numbers of a list. Returns how many, 0 if it is none; *twice is one that comes again, or -1.
 */
static uint32_t read_list(const char *list, int *ordinals, int *twice) {
    uint32_t count = 0;
    *twice = -1;
    for (const char *at = list;; at++) {
        char *end;
        errno = 0;
        long n = *at >= '0' && *at <= '9' ? strtol(at, &end, 10) : -1;
        if (n < 0 || n > INT32_MAX || errno || count == STAGES_MAX)
            return 0;
        for (uint32_t i = 0; i < count; i++)
            *twice = ordinals[i] == n ? (int)n : *twice;
        ordinals[count++] = (int)n;
        at = end;
        if (!*at)
            return count;
        if (*at != ',')
            return 0;
    }
}

static enum rc check_list(const struct device *d, const char *list, const int *ordinals,
                          uint32_t count, int twice, uint32_t layers, struct err *e) {
    int there = 0;
    if (!count)
        return err_set(e, RC_USAGE,
                       "--devices: expected up to %d numbers of devices separated by commas, as "
                       "in 0,1; found '%s'",
                       STAGES_MAX, list);
    if (twice >= 0)
        return err_set(e, RC_USAGE, "--devices: device %d is given twice in '%s'; give each once",
                       twice, list);
    if (count > layers)
        return err_set(e, RC_USAGE,
                       "--devices: %u devices for a model of %u layers: expected at most one for "
                       "each layer",
                       count, layers);
    enum rc rc = device_count(d, &there, e);
    for (uint32_t i = 0; !rc && i < count; i++)
        if (ordinals[i] >= there)
            rc = err_set(e, RC_REFUSED,
                         "--devices: there is no device %d: the HIP runtime shows %d, numbered "
                         "from 0 (see HIP_VISIBLE_DEVICES)",
                         ordinals[i], there);
    return rc;
}

enum rc stages_open(struct stages *s, const char *list, uint32_t layers, const char *exec,
                    struct err *e) {
    int ordinals[STAGES_MAX] = { 0 }, twice = -1;
    uint32_t count = list ? read_list(list, ordinals, &twice) : 1;
    enum rc rc =
        list ? check_list(&s->at[0].device, list, ordinals, count, twice, layers, e) : RC_OK;
    s->count = 1;
    rc = rc ? rc : device_move(&s->at[0].device, ordinals[0], exec, e);
    for (uint32_t i = 1; !rc && i < count; i++, s->count++)
        rc = device_open_beside(&s->at[i].device, &s->at[0].device, ordinals[i], exec, e);
    for (uint32_t i = 0; !rc && i < count; i++) {
        s->at[i].range = (struct weights_range){ (uint32_t)((uint64_t)layers * i / count),
                                                 (uint32_t)((uint64_t)layers * (i + 1) / count) };
        if (i)
            device_reach(&s->at[i].device, &s->at[i - 1].device);
    }
    return rc;
}

void stages_close(struct stages *s) {
    for (uint32_t i = 0; i < STAGES_MAX; i++) {
        struct stage *t = &s->at[i];
        if (!t->device.hip)
            continue;
        forward_close(&t->forward);
        kvcache_close(&t->cache, &t->device);
        weights_free(&t->weights, &t->device);
        device_close(&t->device);
    }
    s->count = 0;
}

/* ---- operations on all stages ---------------------------------------------------------------- */

enum rc stages_grow(struct stages *s, const struct config *c, uint32_t blocks, struct err *e) {
    enum rc rc = RC_OK;
    for (uint32_t i = 0; !rc && i < s->count; i++)
        rc = kvcache_grow(&s->at[i].cache, &s->at[i].device, c, blocks, e);
    return rc;
}

enum rc stages_copy_block(const struct stages *s, uint32_t from, uint32_t to, struct err *e) {
    enum rc rc = RC_OK;
    for (uint32_t i = 0; !rc && i < s->count; i++)
        rc = kvcache_copy(&s->at[i].cache, &s->at[i].device, from, to, 1, e);
    return rc;
}

/* x of the stage before, where this one's layers begin. The checked copy waits for what that stage
 * has queued. */
static enum rc hand_over(struct stage *to, struct stage *from, const struct forward_batch *b,
                         uint32_t dim, struct err *e) {
    const struct kern_view *x = &forward_views(from->forward)[FORWARD_x];
    return device_copy_from(&to->device, &forward_views(to->forward)[FORWARD_x], x,
                            (uint64_t)b->tokens * dim * sizeof(float), b->step,
                            (int32_t)to->range.first, e);
}

enum rc stages_run(struct stages *s, const struct forward_batch *b, float *logits, int32_t *tokens,
                   struct err *e) {
    enum rc rc = RC_OK;
    for (uint32_t i = 0; !rc && i < s->count; i++)
        rc = forward_begin(s->at[i].forward, b, e);
    for (uint32_t i = 0; !rc && i < s->count; i++) {
        if (i)
            rc = hand_over(&s->at[i], &s->at[i - 1], b, forward_dim(s->at[i].forward), e);
        rc = rc ? rc : forward_queue(s->at[i].forward, e);
    }
    return rc ? rc : forward_finish(s->at[s->count - 1].forward, logits, tokens, e);
}
