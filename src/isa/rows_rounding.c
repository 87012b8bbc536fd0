/* rows_rounding.c - row functions for f16 results in a rounding mode other than to nearest.
 *
 * The other sets round floats to f16 by their bits, which is to nearest whatever the processor's
 * mode is. Rounding twice in one direction is rounding once, so that here an operation on floats
 * under the processor's mode is followed by a conversion under the same. */
#define ROWS isa_rows_rounding
#include "isa/floats.h"

#include <fenv.h>

static uint32_t to_half_by_mode(float f) {
    int mode = fegetround();
    if (mode == FE_TONEAREST || f != f)
        return isa_to_half(f);
    uint32_t h = isa_to_half_zero(f);
    if (isa_from_half(h) == f)
        return h;
    return h + ((mode == FE_UPWARD && f > 0) || (mode == FE_DOWNWARD && f < 0));
}

#define isa_to_half           to_half_by_mode
#define isa_half_fma(a, b, c) to_half_by_mode(isa_odd_fma(a, b, c))
#include "isa/rows_any.h"

#include "isa/rows_body.h"
