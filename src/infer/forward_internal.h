/* forward_internal.h - shared by forward.c (buffers, the pass) and forward_layers.c (what it
 * launches).
 */
#ifndef INFER_FORWARD_INTERNAL_H
#define INFER_FORWARD_INTERNAL_H

#include "infer/forward.h"
#include "infer/graphs.h"

/* The buffers that the host fills come first. */
enum { UPLOADS = FORWARD_settings + 1 };

struct forward {
    const struct device *d;
    const struct config *c;
    const struct weights *w;
    const struct kvcache *k;
    trace *trace;
    inject *inject;
    struct forward_shape shape;
    bool fuses; /* GRETA_FUSE */
    union {
        struct {
#define BUFFER(field, name, type, written, rows, width) struct kern_view field;
#include "infer/forward.def"
#undef BUFFER
        };
        struct kern_view buffer[FORWARD_BUFFERS];
    };
    const struct forward_batch *b; /* the batch that is running */
    struct {
        int32_t *numbers;
        uint32_t count;
    } held[UPLOADS]; /* contents of the device's copies of the buffers that the host fills */
    struct graphs graphs;
};

enum { NO_LAYER = -1 };

static inline bool forward_begins(const forward *f) {
    return f->shape.first == 0;
}

static inline bool forward_ends(const forward *f) {
    return f->shape.last == f->c->layers;
}

/* Whether the device itself makes the numbers of the next step, where every sequence goes on with
 * the token drawn. There are as many rows of logits as tokens then, so row i is that of token i. */
static inline bool forward_advances(const forward *f) {
    const struct forward_batch *b = f->b;
    return b->settings && b->tokens == b->sequences && b->wanted == b->tokens &&
           forward_begins(f) && forward_ends(f);
}

/* x through the layer: attention, then the feed-forward block. */
NODISCARD enum rc forward_layer(forward *f, uint32_t layer, struct err *e);
/* The cosines and sines of RoPE for all layers, if the fused kernels of a decode step need them. */
NODISCARD enum rc forward_turns(forward *f, struct err *e);
/* The logits that are wanted of x, and tokens drawn from them. */
NODISCARD enum rc forward_logits(forward *f, struct err *e);
NODISCARD enum rc forward_draw(forward *f, struct err *e);

/* Into how many ranges the contexts of this batch are divided: 1 if they are not. */
uint32_t forward_ranges(const forward *f);

#endif
