/* rows_avx2.c - row functions for processors with AVX2, FMA and F16C. */
#if defined(__x86_64__)
#define ROWS isa_rows_avx2
#include "isa/rows_x86.h"

#include "isa/rows_body.h"
#else
typedef int isa_rows_avx2_is_for_x86_64; /* a file must not be empty */
#endif
