/* Plain numbers: F32, F16, BF16. */
#include <string.h>

#include "model/quant/quant_half.h"
#include "model/quant/quant_internal.h"

void quant_decode_f32(const void *src, float *dst, size_t n) {
    memcpy(dst, src, n * sizeof *dst);
}

void quant_encode_f32(const float *src, void *dst, size_t n, enum quant_effort effort) {
    (void)effort;
    memcpy(dst, src, n * sizeof *src);
}

void quant_decode_f16(const void *src, float *dst, size_t n) {
    for (size_t i = 0; i < n; i++) {
        quant_half h;
        memcpy(&h, (const char *)src + i * sizeof h, sizeof h);
        dst[i] = quant_half_to_float(h);
    }
}

void quant_encode_f16(const float *src, void *dst, size_t n, enum quant_effort effort) {
    (void)effort;
    for (size_t i = 0; i < n; i++) {
        quant_half h = quant_float_to_half(src[i]);
        memcpy((char *)dst + i * sizeof h, &h, sizeof h);
    }
}

void quant_decode_bf16(const void *src, float *dst, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint16_t b;
        memcpy(&b, (const char *)src + i * sizeof b, sizeof b);
        dst[i] = quant_bf16_to_float(b);
    }
}

void quant_encode_bf16(const float *src, void *dst, size_t n, enum quant_effort effort) {
    (void)effort;
    for (size_t i = 0; i < n; i++) {
        uint16_t b = quant_float_to_bf16(src[i]);
        memcpy((char *)dst + i * sizeof b, &b, sizeof b);
    }
}
