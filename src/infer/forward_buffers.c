/* forward_buffers.c - what a pass allocates: forward.def as tables and sizes. */
#include "infer/forward.h"

/* Attention of few tokens to many positions is divided into ranges, so that all cores have
 * something to do, unless that makes more parts than this and than one token can have. */
enum { PARTS_AT_LEAST = 64 };

static const struct forward_buffer buffers[FORWARD_BUFFERS] = {
#define BUFFER(field, name, type, written, rows, width)                                            \
    [FORWARD_##field] = { name, TENSOR_TYPE_##type, FORWARD_##written },
#include "infer/forward.def"
#undef BUFFER
};

const struct forward_buffer *forward_buffer_at(enum forward_buffer_id id) {
    return &buffers[id];
}

static uint64_t times(uint64_t a, uint64_t b) {
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

#define MOST(a, b) ((a) > (b) ? (a) : (b))

uint64_t forward_parts_most(const struct forward_shape *s) {
    return MOST(KERN_RANGES(s->context), PARTS_AT_LEAST);
}

/* Bytes of the longest row that is multiplied, quantised or split. */
static uint64_t levels_row(const struct forward_shape *s) {
    const struct config *c = s->config;
    uint64_t longest = MOST(MOST(c->dim, c->hidden), (uint64_t)c->heads * c->head_size);
    uint64_t slabs = (longest + KERN_SLAB - 1) / KERN_SLAB;
    return slabs * (s->all_floats ? KERN_SPLIT_BYTES : KERN_SLAB_BYTES);
}

uint64_t forward_buffer_bytes(const struct forward_shape *s, enum forward_buffer_id id) {
    const struct config *c = s->config;
    const bool ends = s->last == c->layers;
    const uint64_t T = s->tokens, W = ends ? s->wanted : 0, E = ends ? s->sequences : 0;
    const uint64_t D = c->dim, H = c->hidden, V = c->vocab;
    const uint64_t Q = (uint64_t)c->heads * c->head_size, K = (uint64_t)c->kv_heads * c->head_size;
    const uint64_t S = s->sequences, B = KERN_BLOCKS(s->context);
    const uint64_t PARTS = forward_parts_most(s), LEVELS = levels_row(s);
    const uint64_t elements[FORWARD_BUFFERS] = {
#define BUFFER(field, name, type, written, rows, width) [FORWARD_##field] = times(rows, width),
#include "infer/forward.def"
#undef BUFFER
    };
    return times(elements[id], tensor_type_find(buffers[id].type)->block_bytes);
}

uint64_t forward_bytes(const struct forward_shape *s) {
    uint64_t all = 0;
    for (int id = 0; id < FORWARD_BUFFERS; id++)
        if (__builtin_add_overflow(all, forward_buffer_bytes(s, (enum forward_buffer_id)id), &all))
            return UINT64_MAX;
    return all;
}
