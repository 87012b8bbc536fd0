/* isa_bits.h - numbers as the bits that registers hold, and back. */
#ifndef TESTS_UNIT_ISA_BITS_H
#define TESTS_UNIT_ISA_BITS_H

#include <stdint.h>
#include <string.h>

static inline uint32_t bits32(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}
static inline uint64_t bits64(double f) {
    uint64_t u;
    memcpy(&u, &f, 8);
    return u;
}
static inline float float_of(uint32_t u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}
static inline double double_of(uint64_t u) {
    double f;
    memcpy(&f, &u, 8);
    return f;
}

#endif
