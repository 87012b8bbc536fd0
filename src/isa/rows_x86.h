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

/* Lanes of a block of 2 or 3 dimensions are mostly side by side, or all at one place, in groups of
 * 16 (of pairs: 8), if not all of them. Of the group from lane l on, of which lanes are `on`: where
 * the first of these is, and how far the others are from it. */
struct near {
    unsigned first;
    uint32_t start;
};

static inline struct near near_of(const uint32_t *offset, int l, unsigned on) {
    unsigned first = (unsigned)__builtin_ctz(on);
    return (struct near){ first, offset[(unsigned)l + first] };
}

static inline bool is_run(__m512i away, unsigned first, __mmask16 on) {
    const __m512i step =
        _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60);
    __m512i from = _mm512_add_epi32(away, _mm512_set1_epi32((int)(4 * first)));
    return !(_mm512_cmpneq_epi32_mask(from, step) & on);
}

static inline __m512i load_16(__m512i to, const uint8_t *base, const uint32_t *offset, int l,
                              __mmask16 on) {
    struct near n = near_of(offset, l, on);
    __m512i at = _mm512_loadu_si512(offset + l);
    __m512i away = _mm512_sub_epi32(at, _mm512_set1_epi32((int)n.start));
    if (is_run(away, n.first, on))
        return _mm512_mask_loadu_epi32(to, on, base + n.start - 4 * (size_t)n.first);
    if (_mm512_test_epi32_mask(away, away) & on)
        return _mm512_mask_i32gather_epi32(to, on, at, base, 1);
    int one;
    memcpy(&one, base + n.start, sizeof one);
    return _mm512_mask_set1_epi32(to, on, one);
}

static void load(uint32_t *d, const uint8_t *base, const uint32_t *offset, uint64_t lanes) {
    for (int l = 0; l < ISA_LANES; l += 16) {
        __mmask16 on = (__mmask16)(lanes >> l);
        if (on)
            _mm512_storeu_si512(d + l, load_16(_mm512_loadu_si512(d + l), base, offset, l, on));
    }
}

static inline bool is_run_of_pairs(__m256i away, unsigned first, __mmask8 on) {
    const __m256i step = _mm256_setr_epi32(0, 8, 16, 24, 32, 40, 48, 56);
    __m256i from = _mm256_add_epi32(away, _mm256_set1_epi32((int)(8 * first)));
    return !(_mm256_cmpneq_epi32_mask(from, step) & on);
}

static inline __m512i load_8_pairs(const uint8_t *base, const uint32_t *offset, int l,
                                   __mmask8 on) {
    struct near n = near_of(offset, l, on);
    __m256i at = _mm256_loadu_si256((const __m256i *)(const void *)(offset + l));
    __m256i away = _mm256_sub_epi32(at, _mm256_set1_epi32((int)n.start));
    if (is_run_of_pairs(away, n.first, on))
        return _mm512_maskz_loadu_epi64(on, base + n.start - 8 * (size_t)n.first);
    if (_mm256_test_epi32_mask(away, away) & on)
        return _mm512_mask_i32gather_epi64(_mm512_setzero_si512(), on, at, base, 1);
    long long one;
    memcpy(&one, base + n.start, sizeof one);
    return _mm512_set1_epi64(one);
}

/* Not by a masked store, as above. */
static inline void put_8(uint32_t *d, __m256i value, __mmask8 on) {
    __m256i *to = (__m256i *)(void *)d;
    _mm256_storeu_si256(to, _mm256_mask_mov_epi32(_mm256_loadu_si256(to), on, value));
}

static void load_pairs(uint32_t *d, const uint8_t *base, const uint32_t *offset, uint64_t lanes) {
    for (int l = 0; l < ISA_LANES; l += 8) {
        __mmask8 on = (__mmask8)(lanes >> l);
        if (!on)
            continue;
        __m512i pair = load_8_pairs(base, offset, l, on);
        put_8(d + l, _mm512_cvtepi64_epi32(pair), on);
        put_8(d + ISA_LANES + l, _mm512_cvtepi64_epi32(_mm512_srli_epi64(pair, 32)), on);
    }
}

/* Stores those dwords of a group if they lie side by side; false if they do not. */
static inline bool store_group(uint8_t *base, const uint32_t *offset, const uint32_t *s, int l,
                               uint64_t lanes) {
    __mmask16 on = (__mmask16)(lanes >> l);
    struct near n = near_of(offset, l, on);
    __m512i away = _mm512_loadu_si512(offset + l), value = _mm512_loadu_si512(s + l);
    if (!is_run(_mm512_sub_epi32(away, _mm512_set1_epi32((int)n.start)), n.first, on))
        return false;
    void *to = base + n.start - 4 * (size_t)n.first;
    if (on == 0xffff)
        _mm512_storeu_si512(to, value);
    else
        _mm512_mask_storeu_epi32(to, on, value);
    return true;
}

static inline bool store_group_of_pairs(uint8_t *base, const uint32_t *offset, const uint32_t *s,
                                        int l, uint64_t lanes) {
    __mmask8 on = (__mmask8)(lanes >> l);
    struct near n = near_of(offset, l, on);
    __m256i at = _mm256_loadu_si256((const __m256i *)(const void *)(offset + l));
    __m256i away = _mm256_sub_epi32(at, _mm256_set1_epi32((int)n.start));
    if (!is_run_of_pairs(away, n.first, on))
        return false;
    __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)(s + l));
    __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(s + ISA_LANES + l));
    __m512i value = _mm512_or_si512(_mm512_cvtepu32_epi64(low),
                                    _mm512_slli_epi64(_mm512_cvtepu32_epi64(high), 32));
    void *to = base + n.start - 8 * (size_t)n.first;
    if (on == 0xff)
        _mm512_storeu_si512(to, value);
    else
        _mm512_mask_storeu_epi64(to, on, value);
    return true;
}
enum { GROUP = 16, GROUP_OF_PAIRS = 8 };

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

/* Do the dwords of those lanes, 8 from lane l on, lie side by side? *start: where lane l's would
 * be. */
static inline bool is_run(const uint32_t *offset, int l, unsigned on, uint32_t *start) {
    const __m256i step = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    unsigned first = (unsigned)__builtin_ctz(on);
    *start = offset[(unsigned)l + first] - 4 * first;
    __m256i expected = _mm256_add_epi32(_mm256_set1_epi32((int)*start), step);
    __m256i at = _mm256_loadu_si256((const __m256i *)(const void *)(offset + l));
    __m256 equal = _mm256_castsi256_ps(_mm256_cmpeq_epi32(at, expected));
    return !(~(unsigned)_mm256_movemask_ps(equal) & on);
}

/* Gathers of AVX2 are no faster than the inner loop on many processors. */
static void load(uint32_t *d, const uint8_t *base, const uint32_t *offset, uint64_t lanes) {
    for (int l = 0; l < ISA_LANES; l += 8) {
        uint32_t start, on = (uint8_t)(lanes >> l);
        if (!on)
            continue;
        if (is_run(offset, l, on, &start)) {
            __m256i mask = lanes_of(on), *row = (__m256i *)(void *)(d + l);
            const void *from = base + (int32_t)start;
            __m256i value = _mm256_maskload_epi32(from, mask);
            _mm256_storeu_si256(row, _mm256_blendv_epi8(_mm256_loadu_si256(row), value, mask));
            continue;
        }
        for (uint32_t left = on; left; left &= left - 1) {
            int n = l + __builtin_ctz(left);
            memcpy(&d[n], base + offset[n], sizeof d[n]);
        }
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

static inline bool store_group(uint8_t *base, const uint32_t *offset, const uint32_t *s, int l,
                               uint64_t lanes) {
    uint32_t start, on = (uint8_t)(lanes >> l);
    if (!is_run(offset, l, on, &start))
        return false;
    __m256i value = _mm256_loadu_si256((const __m256i *)(const void *)(s + l));
    void *to = base + (int32_t)start;
    if (on == 0xff)
        _mm256_storeu_si256(to, value);
    else
        _mm256_maskstore_epi32(to, lanes_of(on), value);
    return true;
}

static inline bool store_group_of_pairs(uint8_t *base, const uint32_t *offset, const uint32_t *s,
                                        int l, uint64_t lanes) {
    (void)base, (void)offset, (void)s, (void)l, (void)lanes;
    return false;
}
enum { GROUP = 8, GROUP_OF_PAIRS = 64 };
#endif

/* The lanes of a group, moved down to bit 0. */
static inline uint64_t group_of(uint64_t lanes, int l, unsigned size) {
    return lanes >> l & (size < 64 ? (UINT64_C(1) << size) - 1 : ~UINT64_C(0));
}

static void store(uint8_t *base, const uint32_t *offset, const uint32_t *s, uint64_t lanes) {
    for (int l = 0; l < ISA_LANES; l += GROUP) {
        uint64_t on = group_of(lanes, l, GROUP);
        if (!on || store_group(base, offset, s, l, lanes))
            continue;
        for (uint64_t left = on; left; left &= left - 1) {
            int n = l + __builtin_ctzll(left);
            memcpy(base + offset[n], &s[n], sizeof s[n]);
        }
    }
}

static void store_pairs(uint8_t *base, const uint32_t *offset, const uint32_t *s, uint64_t lanes) {
    for (int l = 0; l < ISA_LANES; l += GROUP_OF_PAIRS) {
        uint64_t on = group_of(lanes, l, GROUP_OF_PAIRS);
        if (!on || store_group_of_pairs(base, offset, s, l, lanes))
            continue;
        for (uint64_t left = on; left; left &= left - 1) {
            int n = l + __builtin_ctzll(left);
            uint64_t pair = s[n] | (uint64_t)s[ISA_LANES + n] << 32;
            memcpy(base + offset[n], &pair, sizeof pair);
        }
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
