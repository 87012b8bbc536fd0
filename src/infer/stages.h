/* stages.h - a model on one device, or divided among several by its layers.
 *
 * Each device has a range of layers: their weights, their part of the KV cache, and buffers of its
 * own. The first also has the embedding, the last the output. A batch goes through them one after
 * another; between two the residual stream is copied, ordered by events. Used by one thread at a
 * time. */
#ifndef INFER_STAGES_H
#define INFER_STAGES_H

#include "infer/forward.h"

enum { STAGES_MAX = 16 };

struct stage {
    struct device device;
    struct weights weights;
    struct kvcache cache;
    forward *forward;
    struct weights_range range; /* its layers */
};

struct stages {
    struct stage at[STAGES_MAX];
    uint32_t count; /* at least 1 once they are open */
};

/* Opens the devices of a list ("0,1"; NULL: device 0) and gives each its range of `layers`; the
 * first is open already. RC_USAGE if the list cannot be, RC_REFUSED if there is no such device. */
NODISCARD enum rc stages_open(struct stages *s, const char *list, uint32_t layers, const char *exec,
                              struct err *e);
/* Frees what the stages have, and closes the devices. */
void stages_close(struct stages *s);

/* Grow the cache, or copy one of its blocks, in all stages (kvcache.h). */
NODISCARD enum rc stages_grow(struct stages *s, const struct config *c, uint32_t blocks,
                              struct err *e);
NODISCARD enum rc stages_copy_block(const struct stages *s, uint32_t from, uint32_t to,
                                    struct err *e);

/* Runs a batch; logits and tokens as in forward_finish(). RC_DEVICE if a device failed, RC_BUSY if
 * interrupted() said so: nothing of the batch can be relied on then. */
NODISCARD enum rc stages_run(struct stages *s, const struct forward_batch *b, float *logits,
                             int32_t *tokens, struct err *e);

#endif
