/* bench_launch - what a launch costs, compared with what handing work to a thread costs.
 *
 * The unit is a round trip between two threads over a mutex and a condition variable: the least
 * that any device made of threads pays to hand over work and to learn that it is done. The limits
 * are in round trips: 1 for an empty kernel, launched and waited for, and 0.1 for a queued launch.
 * Many short rounds measure all three one after the other, so that disturbed rounds are outliers
 * that do not affect the medians. Exit status 1 if a limit is exceeded. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "support/promise.h"
#include "support/soft_fixture.h"

enum { ROUNDS = 501, TRIPS = 50, WAITS = 500, QUEUED = 1000 };

/* ---- the unit ------------------------------------------------------------------------------ */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int ball; /* 0: here, 1: there, 2: game over */
} table = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 };

static void *return_balls(void *unused) {
    pthread_mutex_lock(&table.lock);
    while (table.ball != 2) {
        if (table.ball == 1) {
            table.ball = 0;
            pthread_cond_signal(&table.changed);
        }
        while (table.ball == 0)
            pthread_cond_wait(&table.changed, &table.lock);
    }
    pthread_mutex_unlock(&table.lock);
    return unused;
}

static void hit(int to) {
    pthread_mutex_lock(&table.lock);
    table.ball = to;
    pthread_cond_signal(&table.changed);
    while (table.ball == 1)
        pthread_cond_wait(&table.changed, &table.lock);
    pthread_mutex_unlock(&table.lock);
}

static double round_trip(void) {
    uint64_t begin = clock_now_ns();
    for (int i = 0; i < TRIPS; i++)
        hit(1);
    return (double)(clock_now_ns() - begin) / TRIPS;
}

/* ---- launches ------------------------------------------------------------------------------ */

static void run_empty(const struct greta_soft_work *work, void *const *args) {
    (void)work, (void)args;
}
static const struct greta_soft_param params[] = {
    { "out", sizeof(void *), GRETA_SOFT_POINTER },
    { "in", sizeof(void *), GRETA_SOFT_POINTER | GRETA_SOFT_READS },
    { "count", sizeof(int), GRETA_SOFT_VALUE },
};
static const struct greta_soft_kernel empty = { "bench_empty", run_empty, params, 3 };

static hipFunction_t function;
static hipStream_t stream;
static void *block;

static void launch(void) {
    int count = 1;
    OK(hip->hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, stream,
                                  (void *[]){ &block, &block, &count }, NULL));
}

static double launch_and_wait(void) {
    uint64_t begin = clock_now_ns();
    for (int i = 0; i < WAITS; i++) {
        launch();
        OK(hip->hipStreamSynchronize(stream));
    }
    return (double)(clock_now_ns() - begin) / WAITS;
}

static double queued_launch(void) {
    uint64_t begin = clock_now_ns();
    for (int i = 0; i < QUEUED; i++)
        launch();
    double cost = (double)(clock_now_ns() - begin) / QUEUED;
    OK(hip->hipStreamSynchronize(stream));
    return cost;
}

/* ---- the report ---------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v) {
    qsort(v, ROUNDS, sizeof *v, by_value);
    return v[ROUNDS / 2];
}

static int report(const char *what, const char *name, double *v, double unit, double limit) {
    double m = median(v);
    printf("%-44s %7.2f us = %.3f round trips (fastest %.2f us)\n", what, m / 1e3, m / unit,
           v[0] / 1e3);
    return promise_at_most(name, m / unit, limit);
}

int main(void) {
    static double trip[ROUNDS], waited[ROUNDS], queued[ROUNDS];
    pthread_t other;
    if (soft_fixture_load(NULL))
        return 1;
    soft_kernel_add(&empty, &empty);
    OK(hip->hipGetFuncBySymbol(&function, &empty));
    stream = soft_free_stream();
    block = soft_device_ints(64);
    if (pthread_create(&other, NULL, return_balls, NULL))
        return 1;
    for (int i = 0; i < ROUNDS; i++) {
        trip[i] = round_trip();
        waited[i] = launch_and_wait();
        queued[i] = queued_launch();
    }
    hit(2);
    pthread_join(other, NULL);
    double unit = median(trip);
    printf("%-44s %7.2f us (%d cores; fastest %.2f us)\n", "condition variable, round trip",
           unit / 1e3, cpu_count(), trip[0] / 1e3);
    int failed =
        report("empty kernel, launched and waited for", "launch.waited_trips", waited, unit, 1);
    return failed | report("empty kernel, queued", "launch.queued_trips", queued, unit, 0.1);
}
