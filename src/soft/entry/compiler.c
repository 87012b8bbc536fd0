/* compiler.c - what compilers call in libamdhip64, and no header declares: conversions of half
 * precision, as in libgcc. They are in node hip_4.2 (cmake/hip_exports.h). */
#include "base/half.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT float __gnu_h2f_ieee(unsigned short half);
EXPORT unsigned short __gnu_f2h_ieee(float value);

float __gnu_h2f_ieee(unsigned short half) {
    return half_to_float(half);
}

unsigned short __gnu_f2h_ieee(float value) {
    return (unsigned short)float_to_half(value);
}
