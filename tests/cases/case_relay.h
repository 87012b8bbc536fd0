/* case_relay.h - a buffer that one thread fills in its stream and another sums up in its own. Each
 * program says how the first tells the second that it may begin. With the bug it does so when the
 * work is only queued; the fixed program waits for the work first. */
#ifndef CASES_CASE_RELAY_H
#define CASES_CASE_RELAY_H

#include "case_threads.h"

/* By the thread that fills, when the other may begin; by the one that sums up, until then. */
static void hand_over(void);
static void take_over(void);

static void *produce(void *unused) {
    CHECK(hipMemsetAsync(in, 0, BYTES, first));
    if (!BUG)
        CHECK(hipStreamSynchronize(first));
    hand_over();
    return unused;
}

static void *consume(void *unused) {
    take_over();
    reduce();
    return unused;
}

static inline int relay(void) {
    open_both();
    pthread_t producer = start(produce), consumer = start(consume);
    pthread_join(producer, NULL);
    pthread_join(consumer, NULL);
    close_both();
    return 0;
}

#endif
