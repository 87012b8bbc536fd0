/* rewind.h - taking an engine back to an earlier position of what it holds. */
#ifndef INFER_REWIND_H
#define INFER_REWIND_H

#include "infer/engine.h"

/* Forgets what sequence 0 holds after its first `positions` tokens: a request with `append` goes
 * on from there. Does nothing if it does not hold more. One thread at a time, as for every use of
 * an engine. */
void engine_rewind(engine *g, uint32_t positions);

#endif
