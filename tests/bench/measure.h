/* measure.h - the statistics that the benches share. Not thread-safe: they sort in place. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdlib.h>

static inline int measure_by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline void measure_sort(double *v, size_t n) {
    qsort(v, n, sizeof *v, measure_by_value);
}

/* Of values that are sorted already. */
static inline double measure_median(const double *v, size_t n) {
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* The mean without the given share of the highest values, which other programs on the machine have
 * disturbed. Of values that are sorted already. */
static inline double measure_mean_below(const double *v, size_t n, double share) {
    size_t kept = n - (size_t)((double)n * share);
    double sum = 0;
    for (size_t i = 0; i < kept; i++)
        sum += v[i];
    return sum / (double)kept;
}

#endif
