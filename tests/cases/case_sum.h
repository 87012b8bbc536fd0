/* case_sum.h - a kernel that several cases have: out[0] is the sum of in[0], … in[count - 1]. */
#ifndef CASES_CASE_SUM_H
#define CASES_CASE_SUM_H

#include "case.h"

KERNEL(sum, { "out", 8, GRETA_SOFT_POINTER }, { "in", 8, GRETA_SOFT_POINTER | GRETA_SOFT_READS },
       { "count", 4, 0 }) {
    float *out = ARG(float *, 0), total = 0;
    const float *in = ARG(const float *, 1);
    if (work->first)
        return;
    for (uint32_t i = 0; i < ARG(uint32_t, 2); i++)
        total += in[i];
    out[0] = total;
}

#endif
