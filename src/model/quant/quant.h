/* quant.h - rows of tensor elements from and to every type greta computes with.
 *
 * Decoding is bit-exact with the reference arithmetic of the formats (scale times level, then the
 * offset, each rounded to float). Encoding minimises the squared error; what it writes decodes with
 * any reader of the format. All functions are pure: thread-safe, no allocation. */
#ifndef MODEL_QUANT_H
#define MODEL_QUANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/quant/tensor_type.h"

enum quant_effort {
    QUANT_FAST, /* scales straight from the extremes: for random weights and scratch data */
    QUANT_BEST, /* searches scales for the least squared error */
};

/* n is a whole number of blocks; neither pointer needs alignment. */
typedef void (*quant_decode_fn)(const void *src, float *dst, size_t n);
typedef void (*quant_encode_fn)(const float *src, void *dst, size_t n, enum quant_effort effort);

/* NULL for a type that greta does not compute with. */
quant_decode_fn quant_decoder(enum tensor_type type);
quant_encode_fn quant_encoder(enum tensor_type type);

/* The same with checks: RC_UNSUPPORTED if the type has no decoder or encoder, RC_RANGE if n is not
 * a whole number of blocks; dst is then untouched. */
NODISCARD enum rc quant_decode_row(enum tensor_type type, const void *src, float *dst, size_t n,
                                   struct err *e);
NODISCARD enum rc quant_encode_row(enum tensor_type type, const float *src, void *dst, size_t n,
                                   enum quant_effort effort, struct err *e);

/* Index of the first element whose block cannot decode to finite numbers (a NaN or infinite value,
 * scale or offset), or n if all are fine. For types without a decoder, only floating-point ones are
 * looked at. */
size_t quant_find_nonfinite(enum tensor_type type, const void *src, size_t n);

#endif
