/* kvcache.h - keys and values of all positions so far, one pair of buffers per layer.
 *
 * A cache is blocks of KERN_BLOCK positions; the caller decides which blocks a sequence has.
 * Row b * KERN_BLOCK + i of every layer is position i of block b. Used by one thread at a time. */
#ifndef INFER_KVCACHE_H
#define INFER_KVCACHE_H

#include "infer/device.h"
#include "model/config.h"

struct kvcache_layer {
    struct kern_view keys, values; /* [blocks * KERN_BLOCK, kv_heads * head_size] */
};

struct kvcache {
    struct kvcache_layer *layers; /* views of layers that other devices have are empty */
    uint32_t layer_count, blocks;
    enum tensor_type type;
    uint32_t version; /* changes whenever a view does */
    uint64_t row_bytes;
};

/* Bytes of such a cache of so many layers; UINT64_MAX if they cannot be counted. */
uint64_t kvcache_bytes(const struct config *c, uint32_t layers, uint32_t blocks,
                       enum tensor_type type);
/* A cache of layers `first` to `last` - 1. type: F16 or Q8_0. On failure *k is empty. */
NODISCARD enum rc kvcache_open(struct kvcache *k, const struct device *d, const struct config *c,
                               uint32_t first, uint32_t last, uint32_t blocks,
                               enum tensor_type type, struct err *e);
/* Makes the cache larger and keeps what is in it. If it fails, some layers may be larger already.
 */
NODISCARD enum rc kvcache_grow(struct kvcache *k, const struct device *d, const struct config *c,
                               uint32_t blocks, struct err *e);
void kvcache_close(struct kvcache *k, const struct device *d); /* a zeroed struct is fine */

/* Copies `count` blocks, in all layers. */
NODISCARD enum rc kvcache_copy(const struct kvcache *k, const struct device *d, uint32_t from,
                               uint32_t to, uint32_t count, struct err *e);

#endif
