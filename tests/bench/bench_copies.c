/* bench_copies - what recording adds to small copies on the software device.
 *
 * Inside: one process, the runtime's function and the audited one interleaved, block by block.
 * Outside: a program that knows nothing of greta and makes a million copies, alone, with
 * libgcore_preload.so and GCORE_RECORD, and under `greta_audit run`, interleaved run by run. All
 * times are elapsed time per copy, the median of the rounds. The limit is a ratio, 1.10.
 *
 * The cost of an unrecorded copy depends on where the device's other thread runs: on its own core
 * it takes part in every copy, and the two threads pay for moving cache lines between them;
 * otherwise a copy is several times cheaper. So the nanoseconds that recording adds are printed,
 * too. With the argument `inside`, only that part runs. Exit status 1 if a limit is exceeded. */
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gcore/audit.h>

#include "audit/audit.h"
#include "base/clock.h"
#include "bench/measure.h"
#include "support/promise.h"

enum { ROUNDS = 301, BLOCK = 200, PROGRAM_ROUNDS = 5, COPIES = 1000000 };
static const double LIMIT = 1.10;

static char build[PATH_MAX], folder[] = "/tmp/bench_copies.XXXXXX", record[64];

/* name: of the promise, or NULL if none is made. */
static int report(const char *how, const char *what, double plain, double recorded,
                  const char *name) {
    printf("%-9s %-28s %5.0f ns, recorded %5.0f ns: %+4.0f ns, ratio %.2f\n", how, what, plain,
           recorded, recorded - plain, recorded / plain);
    return name ? promise_at_most(name, recorded / plain, LIMIT) : 0;
}

/* ---- inside ---------------------------------------------------------------------------------- */

static double time_block(const struct hip_api *hip, void *dst, const void *src, size_t bytes,
                         hipMemcpyKind kind) {
    uint64_t start = clock_now_ns();
    for (int i = 0; i < BLOCK; i++)
        if (hip->hipMemcpy(dst, src, bytes, kind) != hipSuccess)
            abort();
    return (double)(clock_now_ns() - start) / BLOCK;
}

static int measure_inside(size_t bytes, bool to_device, bool pinned) {
    static double plain[ROUNDS], recorded[ROUNDS];
    void *device = NULL, *host = pinned ? NULL : malloc(bytes);
    if (audit.table->hipMalloc(&device, bytes) != hipSuccess ||
        (pinned && audit.table->hipHostMalloc(&host, bytes, 0) != hipSuccess) || !host)
        return 1;
    memset(host, 1, bytes);
    void *dst = to_device ? device : host, *src = to_device ? host : device;
    hipMemcpyKind kind = to_device ? hipMemcpyHostToDevice : hipMemcpyDeviceToHost;
    for (int i = 0; i < ROUNDS; i++) {
        plain[i] = time_block(&audit.raw, dst, src, bytes, kind);
        recorded[i] = time_block(audit.table, dst, src, bytes, kind);
    }
    if (!pinned)
        free(host);
    else if (audit.table->hipHostFree(host) != hipSuccess)
        return 1;
    if (audit.table->hipFree(device) != hipSuccess)
        return 1;
    char what[64], name[64];
    snprintf(what, sizeof what, "%zu bytes %s %s", bytes, to_device ? "h2d" : "d2h",
             pinned ? "pinned" : "pageable");
    snprintf(name, sizeof name, "copies.%zu_%s_%s", bytes, to_device ? "h2d" : "d2h",
             pinned ? "pinned" : "pageable");
    measure_sort(plain, ROUNDS);
    measure_sort(recorded, ROUNDS);
    return report("inside", what, measure_median(plain, ROUNDS), measure_median(recorded, ROUNDS),
                  name);
}

static hipError_t copy_nothing(void *dst, const void *src, size_t bytes, hipMemcpyKind kind) {
    (void)dst, (void)src, (void)bytes, (void)kind;
    return hipSuccess;
}

/* What recording itself costs: the audited function over one that returns at once. */
static void measure_alone(void) {
    static double plain[ROUNDS], recorded[ROUNDS];
    struct hip_api raw = audit.raw;
    void *device = NULL, *host = malloc(64);
    if (!host || audit.table->hipMalloc(&device, 64) != hipSuccess)
        abort();
    audit.raw.hipMemcpy = copy_nothing;
    for (int i = 0; i < ROUNDS; i++) {
        plain[i] = time_block(&audit.raw, host, device, 64, hipMemcpyDeviceToHost);
        recorded[i] = time_block(audit.table, host, device, 64, hipMemcpyDeviceToHost);
    }
    audit.raw = raw;
    if (audit.table->hipFree(device) != hipSuccess)
        abort();
    free(host);
    measure_sort(plain, ROUNDS);
    measure_sort(recorded, ROUNDS);
    printf("inside    a runtime that does nothing    %5.0f ns, recorded %5.0f ns\n",
           measure_median(plain, ROUNDS), measure_median(recorded, ROUNDS));
}

static int measure_all_inside(void) {
    char message[512];
    setenv("GCORE_RECORD", record, 1);
    if (gcore_open("soft", message, sizeof message) != 0) {
        printf("gcore_open: %s\n", message);
        return 1;
    }
    int failed = 0;
    measure_alone();
    for (size_t bytes = 64; bytes <= 64 << 10; bytes *= 32)
        for (int how = 0; how < 4; how++)
            failed |= measure_inside(bytes, how & 1, how & 2);
    return failed;
}

/* ---- outside --------------------------------------------------------------------------------- */

enum program { PLAIN, PRELOADED, AUDITED };

/* One run of the program; ns per copy, or a negative number. */
static double run(enum program how, int bytes, const char *words) {
    char command[6 * PATH_MAX], line[128] = "";
    snprintf(command, sizeof command,
             "unset GCORE_RECORD GCORE_RECORD_JOIN; export LD_LIBRARY_PATH=%s/lib/soft; %s%s%s%s%s "
             "%s%s%s%s%s %s/programs/copies %d %d %s 2>/dev/null",
             build, how == PRELOADED ? "GCORE_RECORD=" : "", how == PRELOADED ? folder : "",
             how == PRELOADED ? "/copies.gcr LD_PRELOAD=" : "", how == PRELOADED ? build : "",
             how == PRELOADED ? "/lib/libgcore_preload.so" : "", how == AUDITED ? build : "",
             how == AUDITED ? "/bin/greta_audit run --device soft --out " : "",
             how == AUDITED ? folder : "", how == AUDITED ? "/out" : "",
             how == AUDITED ? " --" : "", build, COPIES, bytes, words);
    FILE *f = popen(command, "r");
    double processor = -1, elapsed = -1;
    if (!f || !fgets(line, sizeof line, f) || sscanf(line, "%lf %lf", &processor, &elapsed) != 2)
        elapsed = -1;
    while (f && fgets(line, sizeof line, f))
        ;
    if (f && pclose(f) != 0)
        elapsed = -1;
    return elapsed;
}

static int measure_outside(enum program how, int bytes, const char *words, const char *name,
                           int rounds) {
    double plain[PROGRAM_ROUNDS], recorded[PROGRAM_ROUNDS];
    char what[64];
    snprintf(what, sizeof what, "%d bytes %s", bytes, words);
    for (int i = 0; i < rounds; i++) {
        plain[i] = run(PLAIN, bytes, words);
        recorded[i] = run(how, bytes, words);
        if (plain[i] < 0 || recorded[i] < 0) {
            printf("programs/copies failed: %s\n", what);
            return 1;
        }
    }
    measure_sort(plain, (size_t)rounds);
    measure_sort(recorded, (size_t)rounds);
    return report(how == PRELOADED ? "preloaded" : "audited", what,
                  measure_median(plain, (size_t)rounds), measure_median(recorded, (size_t)rounds),
                  name);
}

int main(int argc, char **argv) {
    bool inside_only = argc > 1 && strcmp(argv[1], "inside") == 0;
    setlinebuf(stdout);
    char self[PATH_MAX] = "", library[PATH_MAX + 32], command[sizeof folder + 32];
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0 || !mkdtemp(folder))
        return 1;
    snprintf(build, sizeof build, "%s", dirname(dirname(self)));
    snprintf(record, sizeof record, "%s/record.gcr", folder);
    snprintf(library, sizeof library, "%s/lib/libgcore_preload.so", build);
    int failed = measure_all_inside();
    if (!inside_only && access(library, R_OK) == 0) { /* a build with sanitizers has none */
        failed |= measure_outside(PRELOADED, 64, "d2h", "copies.preloaded_64_d2h", PROGRAM_ROUNDS);
        failed |= measure_outside(PRELOADED, 64, "both pageable", "copies.preloaded_64_both",
                                  PROGRAM_ROUNDS);
        failed |= measure_outside(PRELOADED, 64, "d2h async", "copies.preloaded_64_async",
                                  PROGRAM_ROUNDS);
        failed |= measure_outside(PRELOADED, 4096, "both pageable", "copies.preloaded_4096_both",
                                  PROGRAM_ROUNDS);
        failed |= measure_outside(AUDITED, 64, "both pageable", "copies.audited_64_both", 3);
    }
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) ? 1 : failed;
}
