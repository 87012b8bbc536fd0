/* gguf_fill.h - writes the data of all tensors of a gguf_writer on several threads.
 *
 * Work is cut into pieces of GGUF_FILL_PIECE elements of one tensor, counted through its rows;
 * since a row is a whole number of blocks, so is a piece. Pieces do not depend on the number of
 * threads, and memory does not depend on the size of the model: two buffers per thread. */
#ifndef MODEL_GGUF_FILL_H
#define MODEL_GGUF_FILL_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/err.h"
#include "model/gguf/gguf_writer.h"

/* A multiple of every type's block. */
enum { GGUF_FILL_PIECE = 1 << 18 };

/* Writes `count` elements of a tensor, from element `first`, to out in the type the writer declared
 * for it. scratch has room for GGUF_FILL_PIECE floats. Called from several threads. */
typedef enum rc (*gguf_fill_fn)(void *user, uint64_t tensor, uint64_t first, uint64_t count,
                                float *scratch, void *out, struct err *e);

struct gguf_fill {
    gguf_fill_fn make;
    void *user;
    int threads; /* 0: as many as this process may run on */
    /* All optional. progress is called by one thread at a time, with bytes of tensor data. */
    void (*progress)(void *user, uint64_t done, uint64_t total);
    void *progress_user;
    const atomic_bool *cancel; /* once true, the run ends soon with RC_BUSY */
};

/* Fills every tensor of w, which has begun. The first error of any thread ends the run. */
NODISCARD enum rc gguf_fill_run(gguf_writer *w, const struct gguf_fill *how, struct err *e);

/* The same from beginning to commit: keys and tensors of w are declared, the file is complete
 * after. */
NODISCARD enum rc gguf_fill_write(gguf_writer *w, const struct gguf_fill *how, struct err *e);

#endif
