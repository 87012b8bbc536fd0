/* weights.h - a model's tensors on the device.
 *
 * Matrices stay in the type they have in the file; norms and biases become F32. Every tensor is an
 * allocation of its own, so that a kernel that runs past one faults there. Immutable once open. */
#ifndef INFER_WEIGHTS_H
#define INFER_WEIGHTS_H

#include "infer/device.h"
#include "model/config.h"
#include "model/gguf.h"

struct weights_layer {
    struct kern_view tensor[CONFIG_TENSOR_COUNT]; /* by role; ptr NULL where the model has none */
};

struct weights_mapped {
    const void *memory; /* of the host */
    const void *ptr;    /* for the device */
};

struct weights {
    struct kern_view tensor[CONFIG_TENSOR_COUNT]; /* those that are not of a layer */
    struct kern_view output;                      /* OUTPUT, or the embedding where it is tied */
    struct kern_view rope_freqs;                  /* [rope_dims / 2] angles a position */
    struct weights_layer *layers;
    uint32_t layer_count;
    bool packed;                   /* matrices are in the order the device multiplies them in */
    struct weights_mapped *mapped; /* matrices that are read where they are in the file */
    size_t mapped_count;
    char (*names)[GGUF_MAX_NAME + 1]; /* of all views */
};

/* Bytes that are done and bytes there are; returns false to give up. */
typedef bool (*weights_progress)(uint64_t done, uint64_t total, void *user);

/* Loads what c says from g. repack: copies of the matrices in the device's own order, and g may be
 * closed afterwards; else they are used where they are, and g must stay open.
 * RC_BUSY if progress said stop. On failure *w is empty. */
NODISCARD enum rc weights_load(struct weights *w, const struct device *d, const gguf *g,
                               const struct config *c, bool repack, weights_progress progress,
                               void *user, struct err *e);
void weights_free(struct weights *w, const struct device *d); /* a zeroed struct is fine */

/* The angle a position turns pair i by, with the model's scaling; i < rope_dims / 2. freq_factor is
 * the element of rope_freqs.weight, or 1. */
double weights_rope_frequency(const struct config *c, uint32_t i, double freq_factor);

#endif
