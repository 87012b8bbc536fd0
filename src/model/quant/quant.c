/* The table of types, and what needs no arithmetic of its own. */
#include "model/quant/quant.h"

#include <string.h>

#include "model/quant/quant_half.h"
#include "model/quant/quant_internal.h"

struct codec {
    quant_decode_fn decode;
    quant_encode_fn encode;
    uint8_t halves; /* half-precision scales per block, all of which must be finite */
    uint16_t first; /* bytes before them */
};

static const struct codec codecs[] = {
#define TENSOR_TYPE_COMPUTED(type, number, elements, bytes, codec, halves, first, file_type)       \
    [number] = { quant_decode_##codec, quant_encode_##codec, halves, first },
#include "model/quant/tensor_type.def"
};

_Static_assert(offsetof(struct block_q2_k, d) == 80 && offsetof(struct block_q3_k, d) == 108 &&
                   offsetof(struct block_q6_k, d) == 208,
               "where the scales lie");

static const struct codec *find(enum tensor_type type) {
    return (size_t)type < sizeof codecs / sizeof *codecs && codecs[type].decode ? &codecs[type]
                                                                                : NULL;
}

quant_decode_fn quant_decoder(enum tensor_type type) {
    const struct codec *c = find(type);
    return c ? c->decode : NULL;
}

quant_encode_fn quant_encoder(enum tensor_type type) {
    const struct codec *c = find(type);
    return c ? c->encode : NULL;
}

static enum rc check(enum tensor_type type, size_t n, struct err *e) {
    const struct tensor_type_info *t = tensor_type_find(type);
    if (!t || !find(type))
        return err_set(e, RC_UNSUPPORTED, "greta does not compute with tensor type %s",
                       tensor_type_name(type));
    if (n % t->block_elements != 0)
        return err_set(e, RC_RANGE,
                       "a row of %zu elements is not a whole number of %s blocks of %u", n, t->name,
                       t->block_elements);
    return RC_OK;
}

enum rc quant_decode_row(enum tensor_type type, const void *src, float *dst, size_t n,
                         struct err *e) {
    enum rc rc = check(type, n, e);
    if (!rc)
        find(type)->decode(src, dst, n);
    return rc;
}

enum rc quant_encode_row(enum tensor_type type, const float *src, void *dst, size_t n,
                         enum quant_effort effort, struct err *e) {
    enum rc rc = check(type, n, e);
    if (!rc)
        find(type)->encode(src, dst, n, effort);
    return rc;
}

/* The first of n words of `width` bytes at p, `step` bytes apart, whose exponent bits are all set.
 */
static size_t find_exponent(const uint8_t *p, size_t n, size_t step, size_t width, uint64_t mask) {
    for (size_t i = 0; i < n; i++, p += step) {
        uint64_t word = 0;
        memcpy(&word, p, width);
        if ((word & mask) == mask)
            return i;
    }
    return n;
}

size_t quant_find_nonfinite(enum tensor_type type, const void *src, size_t n) {
    switch (type) {
    case TENSOR_TYPE_F32:
        return find_exponent(src, n, 4, 4, 0x7f800000);
    case TENSOR_TYPE_F64:
        return find_exponent(src, n, 8, 8, 0x7ff0000000000000);
    case TENSOR_TYPE_BF16:
        return find_exponent(src, n, 2, 2, 0x7f80);
    default:
        break;
    }
    const struct codec *c = find(type);
    if (!c)
        return n;
    const struct tensor_type_info *t = tensor_type_find(type);
    size_t blocks = n / t->block_elements, found = blocks;
    for (unsigned h = 0; h < c->halves; h++) {
        size_t at = find_exponent((const uint8_t *)src + c->first + 2 * h, blocks, t->block_bytes,
                                  2, 0x7c00);
        found = at < found ? at : found;
    }
    return found < blocks ? found * t->block_elements : n;
}
