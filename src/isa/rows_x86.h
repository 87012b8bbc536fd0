/* rows_x86.h - moving bits between masks and rows with AVX2 or AVX-512; for rows_avx2.c and
 * rows_avx512.c. */
#ifndef ISA_ROWS_X86_H
#define ISA_ROWS_X86_H

#include "isa/isa.h"

#include <immintrin.h>
#include <string.h>

static void fill(uint32_t *d, uint32_t value) {
    __m256i all = _mm256_set1_epi32((int)value);
    for (int l = 0; l < ISA_LANES; l += 8)
        _mm256_store_si256((__m256i *)(void *)(d + l), all);
}

#if defined(__AVX512F__)
static void expand(uint32_t *d, uint64_t mask) {
    for (int l = 0; l < ISA_LANES; l += 16)
        _mm512_store_si512(d + l, _mm512_movm_epi32((__mmask16)(mask >> l)));
}

/* Not by a masked store, which is slow on AMD processors. */
static void merge(uint32_t *d, const uint32_t *s, uint64_t lanes) {
    for (int l = 0; l < ISA_LANES; l += 16) {
        __m512i from = _mm512_load_si512(s + l), to = _mm512_load_si512(d + l);
        _mm512_store_si512(d + l, _mm512_mask_mov_epi32(to, (__mmask16)(lanes >> l), from));
    }
}

static uint64_t collect(const uint32_t *s) {
    uint64_t mask = 0;
    for (int l = 0; l < ISA_LANES; l += 16)
        mask |= (uint64_t)_mm512_movepi32_mask(_mm512_load_si512(s + l)) << l;
    return mask;
}

/* Do the dwords of those lanes lie one after the other? */
static inline bool is_run(const uint32_t *offset, uint64_t lanes) {
    const __m512i step =
        _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60);
    unsigned first = (unsigned)__builtin_ctzll(lanes);
    uint32_t start = offset[first] - 4 * first;
    uint64_t other = 0;
    for (unsigned l = 0; l < ISA_LANES; l += 16) {
        __m512i expected = _mm512_add_epi32(_mm512_set1_epi32((int)(start + 4 * l)), step);
        other |= (uint64_t)_mm512_cmpneq_epi32_mask(_mm512_loadu_si512(offset + l), expected) << l;
    }
    return !(other & lanes);
}

static void load(uint32_t *d, const uint8_t *base, const uint32_t *offset, uint64_t lanes) {
    unsigned first = (unsigned)__builtin_ctzll(lanes);
    bool run = is_run(offset, lanes);
    const uint8_t *from = base + offset[first] - 4 * (size_t)first;
    for (int l = 0; l < ISA_LANES; l += 16) {
        __mmask16 on = (__mmask16)(lanes >> l);
        __m512i to = _mm512_loadu_si512(d + l), at = _mm512_loadu_si512(offset + l);
        to = run ? _mm512_mask_loadu_epi32(to, on, from + 4 * (size_t)l)
                 : _mm512_mask_i32gather_epi32(to, on, at, base, 1);
        _mm512_storeu_si512(d + l, to);
    }
}

static void load_pairs(uint32_t *d, const uint8_t *base, const uint32_t *offset, uint64_t lanes) {
    for (int l = 0; l < ISA_LANES; l += 8) {
        __mmask8 on = (__mmask8)(lanes >> l);
        __m256i at = _mm256_loadu_si256((const __m256i *)(const void *)(offset + l));
        __m512i pair = _mm512_mask_i32gather_epi64(_mm512_setzero_si512(), on, at, base, 1);
        _mm512_mask_cvtepi64_storeu_epi32(d + l, on, pair);
        _mm512_mask_cvtepi64_storeu_epi32(d + ISA_LANES + l, on, _mm512_srli_epi64(pair, 32));
    }
}

/* d[l] = s[from[l]]; d is not s. */
static void permute(uint32_t *d, const uint32_t *s, const uint32_t *from) {
    __m512i row[4];
    for (int n = 0; n < 4; n++)
        row[n] = _mm512_loadu_si512(s + 16 * n);
    for (int l = 0; l < ISA_LANES; l += 16) {
        __m512i at = _mm512_loadu_si512(from + l);
        __m512i low = _mm512_permutex2var_epi32(row[0], at, row[1]);
        __m512i high = _mm512_permutex2var_epi32(row[2], at, row[3]);
        __mmask16 upper = _mm512_test_epi32_mask(at, _mm512_set1_epi32(32));
        _mm512_storeu_si512(d + l, _mm512_mask_mov_epi32(low, upper, high));
    }
}

static inline void store_run(uint8_t *to, const uint32_t *s, uint64_t lanes) {
    for (int l = 0; l < ISA_LANES; l += 16) {
        __mmask16 on = (__mmask16)(lanes >> l);
        if (on == 0xffff)
            _mm512_storeu_si512(to + 4 * (size_t)l, _mm512_loadu_si512(s + l));
        else
            _mm512_mask_storeu_epi32(to + 4 * (size_t)l, on, _mm512_loadu_si512(s + l));
    }
}
#else
/* 0 or ~0 in 8 lanes, from the low 8 bits. */
static inline __m256i lanes_of(uint32_t bits) {
    const __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)bits), each), each);
}

static void expand(uint32_t *d, uint64_t mask) {
    for (int l = 0; l < ISA_LANES; l += 8)
        _mm256_store_si256((__m256i *)(void *)(d + l), lanes_of((uint32_t)(mask >> l)));
}

/* Not by a masked store, which is slow on AMD processors. */
static void merge(uint32_t *d, const uint32_t *s, uint64_t lanes) {
    for (int l = 0; l < ISA_LANES; l += 8) {
        __m256i from = _mm256_load_si256((const __m256i *)(const void *)(s + l));
        __m256i to = _mm256_load_si256((const __m256i *)(const void *)(d + l));
        to = _mm256_blendv_epi8(to, from, lanes_of((uint32_t)(lanes >> l)));
        _mm256_store_si256((__m256i *)(void *)(d + l), to);
    }
}

static uint64_t collect(const uint32_t *s) {
    uint64_t mask = 0;
    for (int l = 0; l < ISA_LANES; l += 8) {
        __m256i x = _mm256_load_si256((const __m256i *)(const void *)(s + l));
        mask |= (uint64_t)(unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(x)) << l;
    }
    return mask;
}

/* Do the dwords of those lanes lie one after the other? */
static inline bool is_run(const uint32_t *offset, uint64_t lanes) {
    const __m256i step = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    unsigned first = (unsigned)__builtin_ctzll(lanes);
    uint32_t start = offset[first] - 4 * first;
    uint64_t same = 0;
    for (unsigned l = 0; l < ISA_LANES; l += 8) {
        __m256i expected = _mm256_add_epi32(_mm256_set1_epi32((int)(start + 4 * l)), step);
        __m256i at = _mm256_loadu_si256((const __m256i *)(const void *)(offset + l));
        __m256 equal = _mm256_castsi256_ps(_mm256_cmpeq_epi32(at, expected));
        same |= (uint64_t)(unsigned)_mm256_movemask_ps(equal) << l;
    }
    return !(~same & lanes);
}

/* Gathers of AVX2 are no faster than this loop on many processors. */
static void load(uint32_t *d, const uint8_t *base, const uint32_t *offset, uint64_t lanes) {
    unsigned first = (unsigned)__builtin_ctzll(lanes);
    const uint8_t *from = base + offset[first] - 4 * (size_t)first;
    if (!is_run(offset, lanes)) {
        for (uint64_t left = lanes; left; left &= left - 1) {
            unsigned l = (unsigned)__builtin_ctzll(left);
            memcpy(&d[l], base + offset[l], sizeof d[l]);
        }
        return;
    }
    for (int l = 0; l < ISA_LANES; l += 8) {
        __m256i on = lanes_of((uint32_t)(lanes >> l)), *row = (__m256i *)(void *)(d + l);
        __m256i value =
            _mm256_maskload_epi32((const int *)(const void *)(from + 4 * (size_t)l), on);
        _mm256_storeu_si256(row, _mm256_blendv_epi8(_mm256_loadu_si256(row), value, on));
    }
}

static void load_pairs(uint32_t *d, const uint8_t *base, const uint32_t *offset, uint64_t lanes) {
    for (uint64_t left = lanes; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctzll(left);
        uint64_t pair;
        memcpy(&pair, base + offset[l], sizeof pair);
        d[l] = (uint32_t)pair;
        d[ISA_LANES + l] = (uint32_t)(pair >> 32);
    }
}

/* d[l] = s[from[l]]; d is not s. */
static void permute(uint32_t *d, const uint32_t *s, const uint32_t *from) {
    for (int l = 0; l < ISA_LANES; l++)
        d[l] = s[from[l]];
}

static inline void store_run(uint8_t *to, const uint32_t *s, uint64_t lanes) {
    for (int l = 0; l < ISA_LANES; l += 8) {
        __m256i value = _mm256_loadu_si256((const __m256i *)(const void *)(s + l));
        void *place = to + 4 * (size_t)l;
        if ((uint8_t)(lanes >> l) == 0xff)
            _mm256_storeu_si256(place, value);
        else
            _mm256_maskstore_epi32(place, lanes_of((uint32_t)(lanes >> l)), value);
    }
}
#endif

static void store(uint8_t *base, const uint32_t *offset, const uint32_t *s, uint64_t lanes) {
    unsigned first = (unsigned)__builtin_ctzll(lanes);
    if (is_run(offset, lanes)) {
        store_run(base + offset[first] - 4 * (size_t)first, s, lanes);
        return;
    }
    for (uint64_t left = lanes; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctzll(left);
        memcpy(base + offset[l], &s[l], sizeof s[l]);
    }
}

/* f16 in a row, 128 of them: as many at a time as `halves` holds. They are rounded as MODE says:
 * the caller has set the processor's mode. */
#if defined(__AVX512F__)
typedef float halves __attribute__((vector_size(64)));
typedef int32_t halves_int __attribute__((vector_size(64)));
enum { HALVES = 16 };

static inline halves get_halves(const uint32_t *row, int at) {
    const void *from = (const uint8_t *)row + 2 * at;
    return (halves)_mm512_cvtph_ps(_mm256_load_si256(from));
}
static inline void put_halves(uint32_t *row, int at, halves value) {
    void *to = (uint8_t *)row + 2 * at;
    _mm256_store_si256(to, _mm512_cvtps_ph((__m512)value, _MM_FROUND_CUR_DIRECTION));
}
#else
typedef float halves __attribute__((vector_size(32)));
typedef int32_t halves_int __attribute__((vector_size(32)));
enum { HALVES = 8 };

static inline halves get_halves(const uint32_t *row, int at) {
    const void *from = (const uint8_t *)row + 2 * at;
    return (halves)_mm256_cvtph_ps(_mm_load_si128(from));
}
static inline void put_halves(uint32_t *row, int at, halves value) {
    void *to = (uint8_t *)row + 2 * at;
    _mm_store_si128(to, _mm256_cvtps_ph((__m256)value, _MM_FROUND_CUR_DIRECTION));
}
#endif

/* isa_odd_fma() of each; a comparison is 0 or -1. */
static inline halves odd_fma(halves a, halves b, halves c) {
    halves p = a * b, s = p + c;
    halves back = s - p, lost = (p - (s - back)) + (c - back), zero = { 0 };
    halves_int u = (halves_int)s, inexact = (lost < zero) | (lost > zero);
    halves_int away = (lost < zero) ^ ~(s < zero); /* -1 if the signs are the same */
    halves_int step = (away & 2) - 1;
    return (halves)(u + (step & inexact & ((u & 1) - 1)));
}

#endif
