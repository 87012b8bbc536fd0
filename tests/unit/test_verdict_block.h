/* test_verdict_block.h - runs on one block of device memory: 4 KiB that the host has filled, in the
 * default stream. */
#ifndef TESTS_UNIT_TEST_VERDICT_BLOCK_H
#define TESTS_UNIT_TEST_VERDICT_BLOCK_H

#include "unit/test_verdict.h"

static uint32_t s0;
static uint64_t block; /* the event of its allocation */

static inline void prepare(void) {
    s0 = default_stream();
    block = alloc(DEVICE_AT, 4 * KIB);
    copy(hipMemcpyHostToDevice, DEVICE_AT, HOST_AT, 4 * KIB, s0);
}

/* Ends the run in good order and judges it. */
static inline void finish(void) {
    sync_device(0);
    free_at(DEVICE_AT);
    judge();
}

static inline void expect_clean(void) {
    finish();
    expect_no_findings();
    expect_overall(CLEAN);
}

#endif
