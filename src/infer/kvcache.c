#include "infer/kvcache.h"

#include <stdlib.h>

enum rc kvcache_open(struct kvcache *k, const struct device *d, const struct config *c,
                     uint32_t sequences, uint32_t context, enum tensor_type type, struct err *e) {
    uint64_t width = (uint64_t)c->kv_heads * c->head_size;
    uint64_t row = tensor_type_row_bytes(type, width), rows = (uint64_t)sequences * context, bytes;
    *k = (struct kvcache){ NULL, c->layers, sequences, context, row };
    if (!row || __builtin_mul_overflow(row, rows, &bytes))
        return err_set(e, RC_RANGE, "a KV cache of %llu rows of %llu elements cannot be made",
                       (unsigned long long)rows, (unsigned long long)width);
    k->layers = calloc(c->layers, sizeof *k->layers);
    enum rc rc = k->layers ? RC_OK : err_set(e, RC_MEMORY, "out of memory");
    for (uint32_t l = 0; !rc && l < c->layers; l++) {
        rc = device_alloc(d, &k->layers[l].keys, "k_cache", type, bytes, e);
        if (!rc)
            rc = device_alloc(d, &k->layers[l].values, "v_cache", type, bytes, e);
    }
    if (rc)
        kvcache_close(k, d);
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

static enum rc share(const struct kvcache *k, const struct device *d, const struct kern_view *v,
                     uint32_t from, uint32_t to, uint32_t positions, int32_t layer, struct err *e) {
    uint64_t stride = k->row_bytes * k->context;
    struct gcore_d2h_meta meta = { v->name, -1, layer, from * stride, positions * k->row_bytes,
                                   v->bytes };
    struct gcore_d2h_result r;
    if (gcore_d2d_copy((char *)v->ptr + to * stride, v->ptr, &meta, d->stream, &r) == GCORE_D2H_OK)
        return RC_OK;
    return device_copy_failed("D2D", &r, e);
}

enum rc kvcache_share(const struct kvcache *k, const struct device *d, uint32_t from, uint32_t to,
                      uint32_t positions, struct err *e) {
    enum rc rc = RC_OK;
    for (uint32_t l = 0; !rc && l < k->layer_count && from != to; l++) {
        rc = share(k, d, &k->layers[l].keys, from, to, positions, (int32_t)l, e);
        if (!rc)
            rc = share(k, d, &k->layers[l].values, from, to, positions, (int32_t)l, e);
    }
    return rc;
}
