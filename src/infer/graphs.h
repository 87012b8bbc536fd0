/* graphs.h - passes through the model as HIP graphs.
 *
 * What a pass launches depends on the shape of its batch and on where its buffers are; what it
 * computes with (tokens, positions, tables of blocks) is in device memory. So a pass is captured
 * once for each shape, and from then on it is one hipGraphLaunch, with nothing to update in
 * between.
 *
 * Used by one thread at a time. */
#ifndef INFER_GRAPHS_H
#define INFER_GRAPHS_H

#include <stdbool.h>
#include <stdint.h>

#include "infer/device.h"

/* All that the launches of a pass depend on. Two passes with equal keys launch the same. */
struct graphs_key {
    uint32_t tokens;
    uint32_t table_width, ranges;
    uint32_t cache, weights; /* change whenever these move in memory */
    uint32_t drawn;          /* tokens are drawn */
};

enum { GRAPHS_KEPT = 16 };

struct graphs {
    bool on; /* GRETA_HIP_GRAPH; false once the runtime has refused */
    uint64_t uses;
    struct graphs_entry {
        struct graphs_key key;
        hipGraphExec_t exec; /* NULL: the key has been seen once */
        uint64_t used;       /* time of the last use; 0: the entry is free */
    } entry[GRAPHS_KEPT];
};

/* Queues a pass on the device's stream. */
typedef enum rc (*graphs_pass)(void *user, struct err *e);

void graphs_open(struct graphs *g); /* reads GRETA_HIP_GRAPH */
/* Queues the pass: the first time a key is seen, launch by launch; the second time it is captured,
 * and from then on the graph is launched. A runtime that refuses to capture is not asked again.
 * RC_DEVICE if a launch failed, or what the pass returned. */
NODISCARD enum rc graphs_run(struct graphs *g, const struct device *d, const struct graphs_key *key,
                             graphs_pass pass, void *user, struct err *e);
void graphs_close(struct graphs *g, const struct device *d); /* a zeroed struct is fine */

#endif
