/* test_verdict_streams.h - runs with work in several streams.
 *
 * A test of streams_test() begins after prepare(), with the default stream and two that wait for
 * nobody, and ends with one of the expectations below, which call finish(). */
#ifndef TESTS_UNIT_TEST_VERDICT_STREAMS_H
#define TESTS_UNIT_TEST_VERDICT_STREAMS_H

#include "unit/test_verdict.h"

/* A file's own: memory that has been written and waited for; the end in good order, and judge(). */
static void prepare(void);
static void finish(void);

static uint32_t s0, s1, s2;

static inline int streams_setup(void **state) {
    int failed = verdict_setup(state);
    s0 = default_stream();
    watch_host();
    prepare();
    s1 = nonblocking();
    s2 = nonblocking();
    return failed;
}

#define streams_test(f) cmocka_unit_test_setup_teardown(f, streams_setup, verdict_teardown)

/* Kernels on the first 4 KiB. */
static inline uint64_t write_in(uint32_t stream) {
    return launch_writes("w", DEVICE_AT, 4 * KIB, stream);
}

static inline uint64_t read_in(uint32_t stream) {
    return launch_reads("r", DEVICE_AT, 4 * KIB, stream);
}

static inline void expect_clean(void) {
    finish();
    expect_no_findings();
    expect_overall(CLEAN);
}

/* No finding, but no proof either. */
static inline void expect_doubt(void) {
    finish();
    expect_no_findings();
    expect_status(STREAM_UNSYNCED, INCONCLUSIVE);
}

/* One finding, about two events. */
#define expect_pair(id, first, second)                                                             \
    do {                                                                                           \
        finish();                                                                                  \
        expect_finding(id, second);                                                                \
        expect_other(first);                                                                       \
    } while (0)

#endif
