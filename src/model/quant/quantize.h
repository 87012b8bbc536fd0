/* quantize.h - rewrites a model with other tensor types.
 *
 * Reads through the mapping, piece by piece and on several threads: memory stays at a few MiB per
 * thread whatever the model's size. */
#ifndef MODEL_QUANTIZE_H
#define MODEL_QUANTIZE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/err.h"
#include "model/gguf/gguf.h"
#include "model/quant/quant_mix.h"

struct quantize_options {
    const struct quant_mix *mix;
    int threads; /* 0: all */
    void (*progress)(void *user, uint64_t done, uint64_t total);
    void *progress_user;
    const atomic_bool *cancel;
};

struct quantize_result {
    uint64_t bytes_in, bytes_out; /* of tensors */
    uint64_t changed, kept;       /* tensors */
    uint64_t fallbacks;           /* tensors whose rows did not fit the type asked for */
    uint64_t requantized;         /* tensors that had been quantised before: errors add up */
};

/* Writes the model g to path in the types of o->mix, whole or not at all; a split model becomes one
 * file. RC_REFUSED if path is one of g's own files, RC_UNSUPPORTED if a matrix has a type greta
 * does not compute with, RC_FORMAT if a number in it is not finite. result may be NULL. */
NODISCARD enum rc quantize_model(const gguf *g, const char *path, const struct quantize_options *o,
                                 struct quantize_result *result, struct err *e);

#endif
