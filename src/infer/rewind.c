#include "infer/rewind.h"

#include "infer/engine_internal.h"

/* Rows of the cache behind a position are never read before they are written again. */
void engine_rewind(engine *g, uint32_t positions) {
    if (g->past.count > positions)
        g->past.count = positions;
    if (g->position > positions)
        g->position = positions;
}
