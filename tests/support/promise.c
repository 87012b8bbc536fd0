#include "support/promise.h"

#include <stdbool.h>
#include <stdio.h>

static int tell(const char *name, double value, const char *sign, double limit, bool kept) {
    printf("%s %.3f %s%g %s\n", name, value, sign, limit, kept ? "ok" : "missed");
    fflush(stdout);
    return !kept;
}

int promise_at_most(const char *name, double value, double limit) {
    return tell(name, value, "<=", limit, value <= limit);
}

int promise_at_least(const char *name, double value, double limit) {
    return tell(name, value, ">=", limit, value >= limit);
}
