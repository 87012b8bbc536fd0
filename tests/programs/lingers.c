/* Waits for its stream at one place, alone, beside another thread, and beside it once more, and
 * says whether the shortest of each few waits took 2 ms. Sleeping never takes less; whoever does
 * not sleep is quick at least once. */
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>

#include "program.h"

enum { WAITS = 4, PAUSE_NS = 2000000 };

static pthread_barrier_t meeting;

static void *meet(void *unused) {
    (void)unused;
    (void)pthread_barrier_wait(&meeting);
    (void)pthread_barrier_wait(&meeting);
    return NULL;
}

static long now_ns(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

__attribute__((noinline)) static int are_slow(void) {
    long shortest = -1;
    for (int i = 0; i < WAITS; i++) {
        long before = now_ns();
        CHECK(hipStreamSynchronize(NULL));
        long took = now_ns() - before;
        if (shortest < 0 || took < shortest)
            shortest = took;
    }
    return shortest >= PAUSE_NS;
}

int main(void) {
    pthread_t thread;
    int alone = are_slow();
    if (pthread_barrier_init(&meeting, NULL, 2) != 0 ||
        pthread_create(&thread, NULL, meet, NULL) != 0)
        return 1;
    (void)pthread_barrier_wait(&meeting);
    int first = are_slow(), again = are_slow();
    (void)pthread_barrier_wait(&meeting);
    (void)pthread_join(thread, NULL);
    printf("alone=%d first=%d again=%d\n", alone, first, again);
    return 0;
}
