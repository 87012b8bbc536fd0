#include "base/bytes.h"

#include <stdio.h>

void bytes_format(uint64_t bytes, char out[BYTES_TEXT]) {
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    double n = (double)bytes;
    size_t u = 0;
    while (n >= 1024 && u + 1 < sizeof units / sizeof *units) {
        n /= 1024;
        u++;
    }
    snprintf(out, BYTES_TEXT, u ? "%.2f %s" : "%.0f %s", n, units[u]);
}
