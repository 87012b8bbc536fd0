/* rewind.h - taking an engine back to an earlier position of what it holds. */
#ifndef INFER_REWIND_H
#define INFER_REWIND_H

#include "infer/engine.h"

/* Forgets what sequence 0 holds after its first `positions` tokens: a request with `append`
 * continues from there. Does nothing if it holds no more than that. One thread at a time, as for
 * every use of an engine. */
void engine_rewind(engine *g, uint32_t positions);

#endif
