/* bench_preload - what recording an unmodified program costs: many small copies on the software
 * device, without and with libgcore_preload.so, in turns.
 *
 * Figures are processor time of the thread that copies, the median of the rounds. The limit is
 * for what recording adds to a copy, in clock_gettime calls of the same machine: an event takes two
 * of them for its times. The ratio depends on what it is added to; a copy of 64 bytes on the
 * software device takes some 300 ns, on a GPU many microseconds. One line a figure; exit status 1
 * if the limit is exceeded. */
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/promise.h"

enum { ROUNDS = 7, COPIES = 200000, CLOCKS = 1 << 20 };
static const double LIMIT = 16; /* clock_gettime calls that recording may add to a copy */

static char build[PATH_MAX], folder[] = "/tmp/bench_preload.XXXXXX";

/* One run of the program; ns a copy, or a negative number. */
static double run(const char *mode, bool record) {
    char command[4 * PATH_MAX], line[128] = "";
    snprintf(command, sizeof command,
             "LD_LIBRARY_PATH=%s/lib/soft GRETA_DEVICE=soft %s%s%s%s%s %s/programs/copies %d 64 %s",
             build, record ? "GCORE_RECORD=" : "", record ? folder : "",
             record ? "/record.gcr LD_PRELOAD=" : "", record ? build : "",
             record ? "/lib/libgcore_preload.so" : "", build, COPIES, mode);
    FILE *f = popen(command, "r");
    double ns = -1;
    if (!f || !fgets(line, sizeof line, f) || sscanf(line, "%lf", &ns) != 1)
        ns = -1;
    if (f && pclose(f) != 0)
        ns = -1;
    return ns;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double clock_cost(void) {
    struct timespec from, to;
    uint64_t sum = 0;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    for (int i = 0; i < CLOCKS; i++)
        sum += clock_now_ns();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    if (sum == 0)
        puts("the clock stands still");
    return ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) / CLOCKS;
}

/* False if the limit is exceeded or the program failed. */
static bool measure(const char *mode, double clock_ns) {
    double plain[ROUNDS], recorded[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        plain[i] = run(mode, false);
        recorded[i] = run(mode, true);
        if (plain[i] < 0 || recorded[i] < 0) {
            printf("%s copies: programs/copies failed\n", mode);
            return false;
        }
    }
    qsort(plain, ROUNDS, sizeof *plain, compare);
    qsort(recorded, ROUNDS, sizeof *recorded, compare);
    double a = plain[ROUNDS / 2], b = recorded[ROUNDS / 2], added = (b - a) / clock_ns;
    printf("%s copies of 64 bytes: %.0f ns, recorded %.0f ns, ratio %.2f; added %.1f clock_gettime "
           "calls of %.0f ns\n",
           mode, a, b, b / a, added, clock_ns);
    char name[64];
    snprintf(name, sizeof name, "preload.%s_copy_clocks", mode);
    return !promise_at_most(name, added, LIMIT);
}

int main(void) {
    char self[PATH_MAX] = "", library[PATH_MAX + 32];
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0 || !mkdtemp(folder))
        return 1;
    snprintf(build, sizeof build, "%s", dirname(dirname(self)));
    snprintf(library, sizeof library, "%s/lib/libgcore_preload.so", build);
    if (access(library, R_OK) != 0) {
        puts("a build with sanitizers has no libgcore_preload.so");
        return 0;
    }
    double clock_ns = clock_cost();
    bool ok = measure("sync", clock_ns);
    ok &= measure("async", clock_ns);
    char path[sizeof folder + 32];
    for (int old = 0; old < 2; old++) {
        snprintf(path, sizeof path, "%s/record.gcr%s", folder, old ? ".old" : "");
        unlink(path);
    }
    rmdir(folder);
    return ok ? 0 : 1;
}
