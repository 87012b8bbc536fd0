/* reference.h - a model evaluated in double precision, from its GGUF file alone.
 *
 * The judge of the engine: plain loops, every weight decoded and every sum kept in double, keys and
 * values unrounded. Written from the definition of the architectures, each with the words its own
 * publication uses; it shares with the engine only the reading of GGUF files and the decoding of
 * tensor types, and reads the metadata itself. Slow; for small models. */
#ifndef TESTS_SUPPORT_REFERENCE_H
#define TESTS_SUPPORT_REFERENCE_H

#include <stdint.h>

#include "model/gguf/gguf.h"

/* Logits [count, vocab] after each token of a text; NULL with a message on standard error if the
 * model cannot be evaluated. context: positions the run has room for, which is what LongRoPE goes
 * by; 0 is as many as there are tokens. The caller frees. */
double *reference_logits(const gguf *g, const int32_t *tokens, uint32_t count, uint32_t context);

/* How far logits are from the reference: mean of |difference| over the standard deviation of the
 * reference, both over all positions. */
double reference_distance(const double *reference, const float *logits, uint64_t count);

#endif
