/* trace.h - tensors of the forward pass, as statistics or in full.
 *
 * A trace selects points (trace.def), layers and steps: "q,k:0-3:0", "all", "rmsnorm:5". Each
 * tensor that is selected is copied from the device by a checked copy and becomes one line of JSON:
 * where it was seen, shape, min, max, mean, std, counts of NaN and Inf, xxh64 of its bytes; on
 * request also an .npy file. Tracing reads only: it never changes a result. Used by one thread at a
 * time. */
#ifndef INFER_TRACE_H
#define INFER_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "infer/device.h"

enum trace_point {
#define TRACE_POINT(id, word, tensor) TRACE_##id,
#include "infer/trace.def"
#undef TRACE_POINT
    TRACE_POINT_COUNT
};

typedef struct trace trace;

/* selection as above; post_wo is another word for wo_out. lines: the JSONL file, "-" for standard
 * error. dump: folder for .npy files, made if absent; NULL: none. RC_USAGE says what a selection
 * looks like; on failure *out is untouched. */
NODISCARD enum rc trace_open(trace **out, const char *selection, const char *lines,
                             const char *dump, struct err *e);
/* RC_IO if a line could not be written. Sets *t to NULL; *t may be NULL. */
NODISCARD enum rc trace_close(trace **t, struct err *e);

/* Where in the run a tensor is seen. */
struct trace_place {
    int64_t step;
    int32_t layer;    /* -1: none */
    int32_t sequence; /* whose it is; -1: of all in the batch */
    const char *part; /* tells several tensors of one point in a layer apart: "attn_norm"; NULL:
                         there is one */
    const int32_t *blocks; /* of KERN_BLOCK rows, in which to look; NULL: from the first row on */
};

/* Whether the point is selected: some tensors are computed only to be traced. */
bool trace_wants(const trace *t, enum trace_point point, int64_t step, int32_t layer);

/* Traces `rows` rows of the view, each of `width` elements, if the point is selected. t may be
 * NULL. */
NODISCARD enum rc trace_tensor(trace *t, const struct device *d, enum trace_point point,
                               const struct kern_view *view, uint64_t rows, uint64_t width,
                               const struct trace_place *at, struct err *e);

#endif
