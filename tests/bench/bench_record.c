/* bench_record - what an event costs, in the same run as what clock_gettime costs.
 *
 * The limits are in clock_gettime calls: 4 for an event with one thread, 8 with four threads, 3 for
 * a call with its call stack. A cost is the processor time of the process divided by the number of
 * events: it includes the event's time stamp, growing the file and page faults, but not what else
 * runs on the machine. The elapsed time per event that one of four threads sees, which includes
 * that, is printed beside what clock_gettime costs such a thread. One line per figure; exit status
 * 1 if a limit is exceeded. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "record/writer.h"
#include "support/promise.h"

enum { ROUNDS = 5, EVENTS = 2 << 20, CLOCKS = 1 << 20, MAX_THREADS = 4 };

static char path[256];

struct job {
    writer *w;
    pthread_barrier_t *start;
    unsigned events;
    enum { EVENT_ONLY, EVENT_FINISHED, CLOCK_ONLY } what;
};

static volatile uint64_t clock_sum;

static void record_many(const struct job *j) {
    if (j->what == CLOCK_ONLY) {
        uint64_t sum = 0;
        for (unsigned i = 0; i < j->events; i++)
            sum += clock_now_ns();
        clock_sum = sum;
        return;
    }
    struct event proto = { .kind = EVENT_COPY,
                           .dst = 0x7f0000001000,
                           .src = 0x7e0000002000,
                           .len = 4096,
                           .stream = 1,
                           .status = RECORD_PENDING,
                           .aux = event_aux(7, DETAIL_COPY_KIND_D2H) };
    for (unsigned i = 0; i < j->events; i++) {
        struct event e = proto;
        e.len += i;
        uint64_t seq = record_event(j->w, &e);
        if (j->what == EVENT_FINISHED)
            record_finish(j->w, seq, 0, i);
    }
}

static void *run_job(void *arg) {
    struct job *j = arg;
    record_many(&(struct job){ .w = j->w, .events = 1 }); /* makes the thread known */
    pthread_barrier_wait(j->start);
    record_many(j);
    pthread_barrier_wait(j->start);
    return NULL;
}

static uint64_t processor_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static double clock_cost(void) {
    uint64_t sum = 0, start = processor_ns();
    for (int i = 0; i < CLOCKS; i++)
        sum += clock_now_ns();
    double cost = (double)(processor_ns() - start) / CLOCKS;
    return sum ? cost : 0;
}

/* Processor time per event in a fresh recording; *elapsed: time per event as a thread sees it. */
static double event_cost(unsigned threads, int what, double *elapsed) {
    pthread_t id[MAX_THREADS];
    struct job job[MAX_THREADS];
    pthread_barrier_t start;
    struct err e;
    struct record_options o = { .path = path };
    writer *w;
    if (record_open(&w, &o, &e) != RC_OK) {
        fprintf(stderr, "bench_record: %s\n", e.msg);
        exit(1);
    }
    pthread_barrier_init(&start, NULL, threads + 1);
    for (unsigned i = 0; i < threads; i++) {
        job[i] = (struct job){ w, &start, EVENTS / threads, what };
        if (pthread_create(&id[i], NULL, run_job, &job[i]))
            exit(1);
    }
    pthread_barrier_wait(&start);
    uint64_t begin = clock_now_ns(), begin_processor = processor_ns();
    pthread_barrier_wait(&start);
    double cost = (double)(processor_ns() - begin_processor) / EVENTS;
    int each = EVENTS / threads;
    *elapsed = (double)(clock_now_ns() - begin) / each;
    for (unsigned i = 0; i < threads; i++)
        pthread_join(id[i], NULL);
    pthread_barrier_destroy(&start);
    if (record_lost(w)) {
        fprintf(stderr, "bench_record: %llu events lost, no figure\n",
                (unsigned long long)record_lost(w));
        exit(1);
    }
    record_close(&w);
    unlink(path);
    return cost;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v) {
    qsort(v, ROUNDS, sizeof *v, by_value);
    return v[ROUNDS / 2];
}

/* ---- calls with their stacks ----------------------------------------------------------------- */

enum { DEPTH = 12 };

/* What a hook does for a call: the stack, an event, its completion. */
__attribute__((noinline)) static void hook(writer *w, uint64_t n) {
    struct event e = { .kind = EVENT_COPY,
                       .dst = 0x7f0000001000,
                       .len = n,
                       .status = RECORD_PENDING,
                       .aux = event_aux(7, DETAIL_COPY_KIND_D2H),
                       .site = record_site(w, __builtin_return_address(0)) };
    record_finish(w, record_begin(w, &e), 0, n);
}

/* A call site deep in a program: DEPTH frames up to here. */
__attribute__((noinline)) static void call_from(writer *w, unsigned depth, unsigned calls) {
    if (depth)
        call_from(w, depth - 1, calls);
    else
        for (unsigned i = 0; i < calls; i++)
            hook(w, i);
    __asm__ volatile("");
}

/* The same call through a wrapper from many places, whose stacks differ in one return address. */
#define CALLER(n)                                                                                  \
    __attribute__((noinline)) static void caller_##n(writer *w) {                                  \
        call_from(w, DEPTH - 2, 1);                                                                \
        __asm__ volatile("" ::"i"(n));                                                             \
    }
CALLER(0)
CALLER(1)
CALLER(2)
CALLER(3)
CALLER(4)
CALLER(5)
CALLER(6)
CALLER(7)
static void (*const callers[])(writer *) = { caller_0, caller_1, caller_2, caller_3,
                                             caller_4, caller_5, caller_6, caller_7 };

/* Processor time of CLOCKS calls; with no writer, that of the calls alone. */
static double calls_cost(writer *w, bool changing) {
    call_from(w, DEPTH, 1);
    uint64_t begin = processor_ns();
    if (changing)
        for (int i = 0; i < CLOCKS; i++)
            callers[i % (int)(sizeof callers / sizeof *callers)](w);
    else
        call_from(w, DEPTH, CLOCKS);
    return (double)(processor_ns() - begin) / CLOCKS;
}

/* What recording a call with its stack adds to it. */
static double call_cost(bool changing) {
    struct record_options o = { .path = path };
    writer *w;
    if (record_open(&w, &o, NULL) != RC_OK)
        exit(1);
    double cost = calls_cost(w, changing);
    record_close(&w);
    unlink(path);
    return cost - calls_cost(NULL, changing);
}

static int report(const char *what, const char *name, double cost, double clock, double limit) {
    printf("%-44s %7.1f ns = %.2f clock_gettime\n", what, cost, cost / clock);
    return promise_at_most(name, cost / clock, limit);
}

int main(void) {
    const char *dir = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/bench_record.%d.gcr", dir && *dir ? dir : "/tmp",
             (int)getpid());
    double clock[ROUNDS], one[ROUNDS], both[ROUNDS], four[ROUNDS];
    double seen[ROUNDS], clock_seen[ROUNDS], same[ROUNDS], changing[ROUNDS], unused;
    for (int i = 0; i < ROUNDS; i++) {
        clock[i] = clock_cost();
        one[i] = event_cost(1, EVENT_ONLY, &unused);
        both[i] = event_cost(1, EVENT_FINISHED, &unused);
        four[i] = event_cost(MAX_THREADS, EVENT_ONLY, &seen[i]);
        event_cost(MAX_THREADS, CLOCK_ONLY, &clock_seen[i]);
        same[i] = call_cost(false);
        changing[i] = call_cost(true);
    }
    double c = median(clock), elapsed = median(seen), clock_elapsed = median(clock_seen);
    printf("%-44s %7.1f ns\n", "clock_gettime", c);
    int failed = report("event, 1 thread", "record.event_clocks", median(one), c, 4);
    failed |=
        report("event and its completion, 1 thread", "record.finished_clocks", median(both), c, 4);
    failed |= report("event, 4 threads", "record.event_clocks_4_threads", median(four), c, 8);
    printf("%-44s %7.1f ns = %.2f of the clock_gettime (%.1f ns) it sees, %d cores\n",
           "event, 4 threads, elapsed for one of them", elapsed, elapsed / clock_elapsed,
           clock_elapsed, cpu_count());
    failed |= report("call with its stack, 14 frames", "record.call_clocks", median(same), c, 3);
    failed |= report("the same from 8 callers in turn, 15 frames", "record.changing_call_clocks",
                     median(changing), c, 3);
    return failed;
}
