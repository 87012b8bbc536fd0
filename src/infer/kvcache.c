#include "infer/kvcache.h"

#include <stdlib.h>

/* Bytes of the keys of one layer, or of its values; 0 if there can be no such cache. */
static uint64_t layer_bytes(const struct config *c, uint32_t blocks, enum tensor_type type) {
    uint64_t row = tensor_type_row_bytes(type, (uint64_t)c->kv_heads * c->head_size), bytes;
    return __builtin_mul_overflow(row, (uint64_t)blocks * KERN_BLOCK, &bytes) ? 0 : bytes;
}

uint64_t kvcache_bytes(const struct config *c, uint32_t layers, uint32_t blocks,
                       enum tensor_type type) {
    uint64_t bytes = layer_bytes(c, blocks, type), all;
    return !bytes || __builtin_mul_overflow(bytes, 2 * (uint64_t)layers, &all) ? UINT64_MAX : all;
}

enum rc kvcache_open(struct kvcache *k, const struct device *d, const struct config *c,
                     uint32_t first, uint32_t last, uint32_t blocks, enum tensor_type type,
                     struct err *e) {
    uint64_t width = (uint64_t)c->kv_heads * c->head_size, bytes = layer_bytes(c, blocks, type);
    *k = (struct kvcache){ .layer_count = c->layers,
                           .blocks = blocks,
                           .type = type,
                           .row_bytes = tensor_type_row_bytes(type, width) };
    if (!bytes)
        return err_set(e, RC_RANGE, "a KV cache of %u blocks of %llu elements cannot be made",
                       blocks, (unsigned long long)(KERN_BLOCK * width));
    k->layers = calloc(c->layers, sizeof *k->layers);
    enum rc rc = k->layers ? RC_OK : err_set(e, RC_MEMORY, "out of memory");
    for (uint32_t l = first; !rc && l < last; l++) {
        rc = device_alloc(d, &k->layers[l].keys, "k_cache", type, bytes, e);
        if (!rc)
            rc = device_alloc(d, &k->layers[l].values, "v_cache", type, bytes, e);
    }
    if (rc)
        kvcache_close(k, d);
    return rc;
}

static enum rc enlarge(struct kvcache *k, const struct device *d, struct kern_view *v,
                       uint64_t bytes, int32_t layer, struct err *e) {
    struct kern_view more;
    if (!v->ptr || v->bytes >= bytes)
        return RC_OK;
    enum rc rc = device_alloc(d, &more, v->name, (enum tensor_type)v->type, bytes, e);
    if (rc)
        return rc;
    struct gcore_d2h_meta meta = { v->name, -1, layer, 0, v->bytes, v->bytes };
    struct gcore_d2h_result r;
    if (gcore_d2d_copy(more.ptr, v->ptr, &meta, d->stream, &r) != GCORE_D2H_OK) {
        device_free(d, &more);
        return device_copy_failed("D2D", &r, e);
    }
    device_free(d, v);
    *v = more;
    k->version++;
    return RC_OK;
}

enum rc kvcache_grow(struct kvcache *k, const struct device *d, const struct config *c,
                     uint32_t blocks, struct err *e) {
    uint64_t bytes = layer_bytes(c, blocks, k->type);
    enum rc rc = RC_OK;
    for (uint32_t l = 0; !rc && l < k->layer_count; l++) {
        rc = enlarge(k, d, &k->layers[l].keys, bytes, (int32_t)l, e);
        rc = rc ? rc : enlarge(k, d, &k->layers[l].values, bytes, (int32_t)l, e);
    }
    if (!rc)
        k->blocks = blocks;
    return rc;
}

void kvcache_close(struct kvcache *k, const struct device *d) {
    for (uint32_t l = 0; k->layers && l < k->layer_count; l++) {
        device_free(d, &k->layers[l].keys);
        device_free(d, &k->layers[l].values);
    }
    free(k->layers);
    *k = (struct kvcache){ 0 };
}

static enum rc copy(const struct kvcache *k, const struct device *d, const struct kern_view *v,
                    uint32_t from, uint32_t to, uint32_t count, int32_t layer, struct err *e) {
    uint64_t block = k->row_bytes * KERN_BLOCK;
    struct gcore_d2h_meta meta = { v->name, -1, layer, from * block, count * block, v->bytes };
    struct gcore_d2h_result r;
    enum rc rc = device_use(d, e);
    if (rc || !v->ptr)
        return rc;
    if (gcore_d2d_copy((char *)v->ptr + to * block, v->ptr, &meta, d->stream, &r) == GCORE_D2H_OK)
        return RC_OK;
    return device_copy_failed("D2D", &r, e);
}

enum rc kvcache_copy(const struct kvcache *k, const struct device *d, uint32_t from, uint32_t to,
                     uint32_t count, struct err *e) {
    enum rc rc = RC_OK;
    for (uint32_t l = 0; !rc && l < k->layer_count; l++) {
        rc = copy(k, d, &k->layers[l].keys, from, to, count, (int32_t)l, e);
        if (!rc)
            rc = copy(k, d, &k->layers[l].values, from, to, count, (int32_t)l, e);
    }
    return rc;
}
