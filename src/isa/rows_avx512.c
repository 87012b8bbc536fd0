/* rows_avx512.c - row functions for processors with AVX-512 (F, BW, DQ, VL). */
#if defined(__x86_64__)
#define ROWS isa_rows_avx512
#include "isa/rows_x86.h"

#include "isa/rows_body.h"
#else
typedef int isa_rows_avx512_is_for_x86_64; /* a file must not be empty */
#endif
