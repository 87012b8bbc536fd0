/* quant_scan.h - looks for NaN and infinity in all tensors of a model, on several threads. */
#ifndef MODEL_QUANT_SCAN_H
#define MODEL_QUANT_SCAN_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/err.h"
#include "model/gguf/gguf.h"

struct quant_scan_result {
    uint64_t bad;   /* blocks (for plain numbers: elements) that do not decode to finite numbers */
    uint64_t first; /* element with which the first of them begins; valid if bad > 0 */
};

struct quant_scan {
    int threads; /* 0: all */
    /* Optional, as in gguf_fill.h. */
    void (*progress)(void *user, uint64_t done, uint64_t total);
    void *progress_user;
    const atomic_bool *cancel;
};

/* results has one element per tensor of g. RC_BUSY if cancelled; results are then incomplete. */
NODISCARD enum rc quant_scan_model(const gguf *g, const struct quant_scan *how,
                                   struct quant_scan_result *results, struct err *e);

#endif
