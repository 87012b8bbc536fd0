/* bench_d2h - what a checked copy costs above the bare hipMemcpy on the software device, in
 * clock_gettime calls of the same run, and the audit log under eight threads. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <gcore/audit.h>
#include <gcore/d2h.h>

#include "audit/audit.h"
#include "base/clock.h"
#include "hip/hip_api.h"
#include "support/promise.h"

enum { ROUNDS = 301, CALLS = 1000, BYTES = 64, LOG_THREADS = 8, LOG_COPIES = 100000 };

static char *device;
static char host[4096];

typedef void (*measured)(void);

static double time_once(measured run) {
    uint64_t start = clock_now_ns();
    for (int i = 0; i < CALLS; i++)
        run();
    return (double)(clock_now_ns() - start) / CALLS;
}

/* The fastest of many short rounds, interleaved. A busy machine slows most rounds down by far more
 * than the differences measured here, but hardly all of them. */
static void time_all(const measured *runs, double *ns, int count) {
    for (int i = 0; i < count; i++)
        ns[i] = time_once(runs[i]);
    for (int round = 1; round < ROUNDS; round++)
        for (int i = 0; i < count; i++) {
            double t = time_once(runs[i]);
            ns[i] = t < ns[i] ? t : ns[i];
        }
}

static void read_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
}

static void bare_copy(void) {
    if (audit.raw.hipMemcpy(host, device, BYTES, hipMemcpyDeviceToHost) != hipSuccess)
        abort();
}

static void safe_copy(void) {
    struct gcore_d2h_meta m = { "logits", 1, 2, 0, BYTES, BYTES };
    if (gcore_d2h_copy(host, device, &m, NULL, NULL) != GCORE_D2H_OK)
        abort();
}

static void table_copy(void) {
    if (audit.table->hipMemcpy(host, device, BYTES, hipMemcpyDeviceToHost) != hipSuccess)
        abort();
}

static void fail(const char *what) {
    fprintf(stderr, "bench_d2h: %s\n", what);
    exit(1);
}

/* A ledger as full as a model's: the copy's block is one of many. */
static void open_with_blocks(int blocks) {
    char message[512];
    if (gcore_open("soft", message, sizeof message) != 0)
        fail(message);
    for (int i = 0; i < blocks; i++) {
        void *p = NULL;
        if (audit.table->hipMalloc(&p, 4096) != hipSuccess)
            fail("hipMalloc");
        if (i == blocks / 2)
            device = p;
    }
    (void)gcore_name_range(device, BYTES, "logits");
}

static int measure_cost(void) {
    double ns[4];
    open_with_blocks(500);
    time_all((const measured[]){ read_clock, bare_copy, safe_copy, table_copy }, ns, 4);
    printf("clock_gettime                     %8.1f ns\n", ns[0]);
    printf("hipMemcpy, 64 bytes to the host   %8.1f ns\n", ns[1]);
    printf("gcore_d2h_copy, everything off    %8.1f ns  +%.1f ns = %.1f clock_gettime\n", ns[2],
           ns[2] - ns[1], (ns[2] - ns[1]) / ns[0]);
    printf("hipMemcpy through the table       %8.1f ns  +%.1f ns = %.1f clock_gettime\n", ns[3],
           ns[3] - ns[1], (ns[3] - ns[1]) / ns[0]);
    gcore_close();
    return promise_at_most("d2h.copy_clocks", (ns[2] - ns[1]) / ns[0], 6);
}

static void measure_recorded(void) {
    double ns[4];
    char path[] = "/tmp/bench_d2h.XXXXXX";
    close(mkstemp(path));
    setenv("GCORE_RECORD", path, 1);
    setenv("GCORE_RECORD_EVENTS", "1M", 1);
    open_with_blocks(500);
    time_all((const measured[]){ read_clock, bare_copy, safe_copy, table_copy }, ns, 4);
    printf("gcore_d2h_copy, recorded          %8.1f ns  +%.1f ns = %.1f clock_gettime\n", ns[2],
           ns[2] - ns[1], (ns[2] - ns[1]) / ns[0]);
    printf("hipMemcpy through it, recorded    %8.1f ns  +%.1f ns = %.1f clock_gettime\n", ns[3],
           ns[3] - ns[1], (ns[3] - ns[1]) / ns[0]);
    gcore_close();
    unsetenv("GCORE_RECORD");
    unlink(path);
}

static void *log_copies(void *arg) {
    (void)arg;
    char to[BYTES];
    struct gcore_d2h_meta m = { "logits", 1, 2, 0, BYTES, BYTES };
    for (int i = 0; i < LOG_COPIES; i++)
        if (gcore_d2h_copy(to, device, &m, NULL, NULL) != GCORE_D2H_OK)
            abort();
    return NULL;
}

static void measure_log(void) {
    pthread_t threads[LOG_THREADS];
    char path[] = "/tmp/bench_d2h.XXXXXX";
    close(mkstemp(path));
    setenv("GCORE_D2H_AUDIT", "1", 1);
    setenv("GCORE_D2H_AUDIT_LOG", path, 1);
    open_with_blocks(500);
    uint64_t start = clock_now_ns();
    for (int i = 0; i < LOG_THREADS; i++)
        if (pthread_create(&threads[i], NULL, log_copies, NULL) != 0)
            fail("pthread_create");
    for (int i = 0; i < LOG_THREADS; i++)
        pthread_join(threads[i], NULL);
    double seconds = (double)(clock_now_ns() - start) / 1e9;
    printf("8 threads x 100000 copies, logged %8.2f s   %.1f us a copy\n", seconds,
           seconds * 1e6 / (LOG_THREADS * LOG_COPIES));
    gcore_close();
    unlink(path);
}

int main(void) {
    unsetenv("GCORE_RECORD");
    unsetenv("GCORE_D2H_AUDIT");
    unsetenv("GRETA_D2H_DEBUG");
    unsetenv("GRETA_TRACE_MEMCPY");
    int missed = measure_cost();
    measure_recorded();
    measure_log();
    return missed;
}
