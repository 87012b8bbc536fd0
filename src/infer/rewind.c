#include "infer/rewind.h"

#include "infer/engine_internal.h"

void engine_rewind(engine *g, uint32_t positions) {
    if (g->past.count > positions)
        g->past.count = positions;
}
