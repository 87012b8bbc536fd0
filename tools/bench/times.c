#include "tools/bench/times.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <gcore/audit.h>
#include <greta/soft_times.h>

#include "base/clock.h"

enum { KERNELS_MAX = 128 };

static bool wanted;
static uint64_t begin_ns, end_ns;

void times_wanted(void) {
    wanted = true;
}

/* The runtime's symbol is a data pointer; copying turns it into a function pointer. */
static bool find(const char *name, void *function, size_t size) {
    void *symbol = gcore_runtime_symbol(name);
    memcpy(function, &symbol, size);
    return symbol != NULL;
}

void times_begin(void) {
    void (*time_kernels)(int on);
    if (wanted && find("greta_soft_time_kernels", &time_kernels, sizeof time_kernels))
        time_kernels(1);
    begin_ns = clock_now_ns();
}

void times_end(void) {
    end_ns = clock_now_ns();
}

static void print_row(const char *name, const struct greta_soft_kernel_time *k, FILE *out) {
    fprintf(out, "  %-20s %8" PRIu64 " %9.2f  ", name, k->launches, (double)k->wall_ns / 1e6);
    for (unsigned i = 0; i < k->threads; i++)
        fprintf(out, " %9.2f %8.2f", (double)k->computing_ns[i] / 1e6,
                (double)(k->wall_ns - k->computing_ns[i]) / 1e6);
    fputc('\n', out);
}

static void add(struct greta_soft_kernel_time *sum, const struct greta_soft_kernel_time *k) {
    sum->launches += k->launches;
    sum->wall_ns += k->wall_ns;
    sum->threads = k->threads > sum->threads ? k->threads : sum->threads;
    for (unsigned i = 0; i < k->threads; i++)
        sum->computing_ns[i] += k->computing_ns[i];
}

static int by_wall(const void *a, const void *b) {
    const struct greta_soft_kernel_time *x = a, *y = b;
    return (x->wall_ns < y->wall_ns) - (x->wall_ns > y->wall_ns);
}

static void print_head(const char *run, unsigned threads, uint64_t passed_ns, FILE *out) {
    fprintf(out, "\nTime per kernel in ms, last sample of %s (%.2f ms):\n", run,
            (double)passed_ns / 1e6);
    fprintf(out, "  %-20s %8s %9s  ", "", "launches", "all");
    for (unsigned i = 0; i < threads; i++)
        fprintf(out, " thread %-2u %8s", i, "");
    fprintf(out, "\n  %-20s %8s %9s  ", "", "", "");
    for (unsigned i = 0; i < threads; i++)
        fprintf(out, " %9s %8s", "computing", "waiting");
    fputc('\n', out);
}

void times_print(const char *run, FILE *out) {
    const uint64_t passed = end_ns - begin_ns;
    unsigned (*kernel_times)(struct greta_soft_kernel_time *, unsigned);
    struct greta_soft_kernel_time *k, sum = { 0 };
    if (!wanted || !find("greta_soft_kernel_times", &kernel_times, sizeof kernel_times))
        return;
    k = calloc(KERNELS_MAX, sizeof *k);
    if (!k)
        return;
    unsigned count = kernel_times(k, KERNELS_MAX);
    count = count < KERNELS_MAX ? count : KERNELS_MAX;
    qsort(k, count, sizeof *k, by_wall);
    for (unsigned i = 0; i < count; i++)
        add(&sum, &k[i]);
    print_head(run, sum.threads, passed, out);
    for (unsigned i = 0; i < count; i++)
        print_row(k[i].name, &k[i], out);
    print_row("all kernels", &sum, out);
    fprintf(out, "  %-20s %8s %9.2f\n", "between kernels", "",
            ((double)passed - (double)sum.wall_ns) / 1e6);
    free(k);
}
