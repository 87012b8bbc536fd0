/* scheduler.h - the forward pass: tokens in, logits out.
 *
 * The caller owns device, weights and cache, which must outlive the scheduler. Used by one thread
 * at a time. */
#ifndef INFER_SCHEDULER_H
#define INFER_SCHEDULER_H

#include "infer/device.h"
#include "infer/inject.h"
#include "infer/kvcache.h"
#include "infer/trace.h"
#include "infer/weights.h"
#include "model/config.h"

typedef struct scheduler scheduler;

/* Tokens that go through the model together, of any sequences. */
struct scheduler_batch {
    uint32_t tokens;
    const int32_t *ids;   /* [tokens] */
    const int32_t *pos;   /* [tokens] position in its sequence */
    const int32_t *slots; /* [tokens] row of the KV cache: sequence * context + position */
    uint32_t wanted;      /* tokens whose logits are wanted */
    const int32_t *rows;  /* [wanted] which ones: indexes below tokens */
    int64_t step;         /* for logs and traces */
    /* Asked between layers of a large batch; true gives it up. May be NULL. */
    bool (*interrupted)(void *user);
    void *user;
};

/* Buffers for batches of up to max_tokens, of which max_wanted may want logits. trace may be NULL.
 * On failure *out is untouched. */
NODISCARD enum rc scheduler_open(scheduler **out, const struct device *d, const struct config *c,
                                 const struct weights *w, const struct kvcache *k,
                                 uint32_t max_tokens, uint32_t max_wanted, trace *t, struct err *e);
void scheduler_close(scheduler **s); /* sets *s to NULL; *s may be NULL */

/* All buffers, under the names that the ledger has for them. They stay the scheduler's. */
enum { SCHEDULER_BUFFERS_MAX = 24 };
size_t scheduler_buffers(scheduler *s, struct kern_view *out[SCHEDULER_BUFFERS_MAX]);
/* Faults to inject (inject.h), which the caller closes before the scheduler; NULL: none. */
void scheduler_set_inject(scheduler *s, inject *i);

/* Runs a batch; logits receives [wanted, vocab]. RC_DEVICE if the device failed, RC_BUSY if
 * interrupted() said so: nothing of the batch can be relied on then. */
NODISCARD enum rc scheduler_forward(scheduler *s, const struct scheduler_batch *b, float *logits,
                                    struct err *e);

#endif
