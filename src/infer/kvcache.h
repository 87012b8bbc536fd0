/* kvcache.h - keys and values of all positions so far, a layer each.
 *
 * A cache has room for `sequences` texts of `context` positions. Position p of sequence s is row
 * s * context + p ("slot") of every layer. Used by one thread at a time. */
#ifndef INFER_KVCACHE_H
#define INFER_KVCACHE_H

#include "infer/device.h"
#include "model/config.h"

struct kvcache_layer {
    struct kern_view keys, values; /* [sequences * context, kv_heads * head_size] */
};

struct kvcache {
    struct kvcache_layer *layers;
    uint32_t layer_count, sequences, context;
    uint64_t row_bytes;
};

/* type: F16 or Q8_0. On failure *k is empty. */
NODISCARD enum rc kvcache_open(struct kvcache *k, const struct device *d, const struct config *c,
                               uint32_t sequences, uint32_t context, enum tensor_type type,
                               struct err *e);
void kvcache_close(struct kvcache *k, const struct device *d); /* a zeroed struct is fine */

/* Gives sequence `to` the first `positions` positions of sequence `from`. */
NODISCARD enum rc kvcache_share(const struct kvcache *k, const struct device *d, uint32_t from,
                                uint32_t to, uint32_t positions, struct err *e);

#endif
