/* What the device states about launches: how they are checked, how many are done, which did not
 * run, and which bytes beside a block were written. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "hip/hip_soft.h"
#include "support/soft_fixture.h"

enum { DAMAGES = 64, SKIPPED = 8, MET = 32 };

static struct hip_soft soft;
static struct {
    unsigned damages, skipped;
    struct greta_soft_slack damage[DAMAGES];
    struct {
        uint64_t tag, launches;
        int reason;
        char kernel[32];
    } not_run[SKIPPED];
} seen;

static void note_not_run(uint64_t tag, const char *kernel, int reason, uint64_t launches,
                         void *user) {
    MUST(user == &seen && seen.skipped < SKIPPED);
    seen.not_run[seen.skipped].tag = tag;
    seen.not_run[seen.skipped].reason = reason;
    seen.not_run[seen.skipped].launches = launches;
    snprintf(seen.not_run[seen.skipped++].kernel, 32, "%s", kernel);
}

static void note_slack(const struct greta_soft_slack *damage, void *user) {
    MUST(user == &seen && seen.damages < DAMAGES);
    seen.damage[seen.damages++] = *damage;
}

/* The write that was named for each wait; 0: none. */
static uint64_t met[MET];

static void note_value_met(uint64_t wait, uint64_t write, void *user) {
    MUST(user == &seen && wait < MET && !met[wait]);
    met[wait] = write;
}

static const struct greta_soft_launch_observer observer = { .not_run = note_not_run,
                                                            .slack = note_slack,
                                                            .value_met = note_value_met };

static void observe(void) {
    hip_soft_find(&soft, soft_library);
    MUST(soft.observe_launches && soft.look_at_slack && soft.launches_done && soft.check_of);
    soft.observe_launches(&observer, &seen);
}

static void launch_touch(uint64_t tag, void *at, int64_t offset, bool write) {
    soft.tag(tag);
    soft_touch(NULL, at, offset, write);
    OK(hip->hipDeviceSynchronize());
}

/* ---- slack ---------------------------------------------------------------------------------- */

static void *allocate(size_t bytes) {
    void *p = NULL;
    OK(hip->hipMalloc(&p, bytes));
    return p;
}

static bool is_checked(void) {
    const char *checked = getenv("GRETA_SOFT_CHECK");
    return !checked || strcmp(checked, "off") != 0;
}

/* Where a write beside a block of 100 bytes is not caught by a guard. */
static int64_t beside(int64_t distance) {
    return is_checked() ? -distance : 99 + distance;
}

static bool writes_beside_a_block(void) {
    observe();
    char *p = allocate(100);
    uint64_t base = (uint64_t)(uintptr_t)p;
    launch_touch(10, p, 0, true);
    launch_touch(11, p, 99, true);
    launch_touch(12, p, beside(3), false); /* reads do not show */
    MUST(seen.damages == 0);
    launch_touch(13, p, beside(3), true);
    MUST(seen.damages == 1);
    const struct greta_soft_slack *d = &seen.damage[0];
    MUST(d->base == base && d->size == 100 && d->bytes == 1);
    MUST(d->address == base + (uint64_t)beside(3));
    MUST(d->good == 12 && d->bad == 13 && d->launches == 1);
    launch_touch(14, p, 5, true); /* it was repaired */
    MUST(seen.damages == 1);
    launch_touch(15, p, beside(1), true);
    MUST(seen.damages == 2 && seen.damage[1].good == 14 && seen.damage[1].bad == 15);
    OK(hip->hipFree(p));
    MUST(seen.damages == 2);
    return true;
}

/* The kernel got another pointer and computed this one from it, as linked structures do. */
static bool writes_beside_a_block_that_is_no_argument(void) {
    observe();
    char *p = allocate(100), *q = allocate(4096);
    launch_touch(20, p, 0, true);
    launch_touch(21, q, p + beside(2) - q, true);
    launch_touch(22, q, 0, true);
    MUST(seen.damages == 0);
    OK(hip->hipFree(p));
    MUST(seen.damages == 1);
    MUST(seen.damage[0].good == 20 && seen.damage[0].bad == 0 && seen.damage[0].launches == 2);
    return true;
}

static bool looks_at_the_end(void) {
    observe();
    char *p = allocate(100), *q = allocate(4096);
    launch_touch(30, q, p + beside(2) - q, true);
    soft.look_at_slack();
    MUST(seen.damages == 1 && seen.damage[0].base == (uint64_t)(uintptr_t)p);
    MUST(seen.damage[0].good == 0 && seen.damage[0].bad == 0 && seen.damage[0].launches == 1);
    soft.look_at_slack();
    MUST(seen.damages == 1);
    launch_touch(31, q, p + beside(2) - q, true);
    OK(hip->hipDeviceReset());
    MUST(seen.damages == 2);
    return true;
}

/* Blocks of every kind have a pattern, whether they were made before or after the observer was set.
 */
static bool all_kinds_of_blocks(void) {
    char *p[4];
    OK(hip->hipMalloc((void **)&p[0], 100)); /* before anybody observes */
    observe();
    OK(hip->hipHostMalloc((void **)&p[1], 100, 0));
    OK(hip->hipMallocManaged((void **)&p[2], 100, hipMemAttachGlobal));
    OK(hip->hipMallocAsync((void **)&p[3], 100, NULL));
    for (int i = 0; i < 4; i++) {
        launch_touch(40 + (uint64_t)i, p[i], beside(1), true);
        MUST(seen.damages == (unsigned)i + 1);
        MUST(seen.damage[i].base == (uint64_t)(uintptr_t)p[i]);
    }
    OK(hip->hipFreeAsync(p[3], NULL));
    OK(hip->hipHostFree(p[1]));
    OK(hip->hipDeviceSynchronize());
    MUST(seen.damages == 4);
    return true;
}

static bool a_block_that_keeps_being_damaged(void) {
    observe();
    char *p = allocate(100);
    for (uint64_t i = 0; i < DAMAGES; i++)
        launch_touch(1 + i, p, beside(1), true);
    MUST(seen.damages == 16);
    return true;
}

/* A program may close the pages of its pinned memory. */
static bool closed_pages(void) {
    observe();
    char *p = NULL;
    OK(hip->hipHostMalloc((void **)&p, 100, 0));
    MUST(!mprotect((void *)((uintptr_t)p / 4096 * 4096), 4096, PROT_NONE));
    soft.look_at_slack();
    OK(hip->hipHostFree(p));
    MUST(seen.damages == 0);
    return true;
}

/* Blocks that fill their pages have no slack: the first byte on either side faults. */
static bool no_slack(void) {
    observe();
    char *p = allocate(8192);
    launch_touch(50, p, 8191, true);
    soft.look_at_slack();
    OK(hip->hipFree(p));
    MUST(seen.damages == 0);
    return true;
}

static void everywhere(soft_program program) {
    if (SOFT_TSAN)
        return; /* it sees the look, and a wrong program's write */
    soft_expect(program, NULL);
    soft_expect(program, "GRETA_SOFT_CHECK=off");
    soft_expect(program, "GRETA_SOFT_CHECK=off GRETA_SOFT_SCHEDULE=lazy GCORE_WATCH_HOST=1");
}

static void a_write_beside_a_block_names_the_launch(void **state) {
    (void)state;
    everywhere(writes_beside_a_block);
}
static void a_write_beside_another_block_shows_at_its_free(void **state) {
    (void)state;
    everywhere(writes_beside_a_block_that_is_no_argument);
}
static void a_write_beside_a_block_shows_at_the_end_and_at_a_reset(void **state) {
    (void)state;
    everywhere(looks_at_the_end);
}
static void all_kinds_of_blocks_have_a_pattern(void **state) {
    (void)state;
    everywhere(all_kinds_of_blocks);
}
static void damage_of_one_block_is_told_a_few_times(void **state) {
    (void)state;
    everywhere(a_block_that_keeps_being_damaged);
}
static void pages_that_the_program_closed_are_left_alone(void **state) {
    (void)state;
    soft_expect(closed_pages, NULL);
    soft_expect(closed_pages, "GRETA_SOFT_CHECK=off");
}
static void full_pages_have_no_slack(void **state) {
    (void)state;
    everywhere(no_slack);
}

/* ---- how launches are checked --------------------------------------------------------------- */

static bool what_is_checked(void) {
    struct greta_soft_check c;
    int unknown;
    hip_soft_find(&soft, soft_library);
    hipModule_t module;
    hipFunction_t f;
    OK(hip->hipModuleLoadData(&module, GRETA_SOFT_NATIVE_IMAGE));
    OK(hip->hipModuleGetFunction(&f, module, "test_nothing"));
    MUST(soft.check_of(f, &c) == 0);
    MUST(c.how == GRETA_SOFT_CHECKED_GUARDS && !c.pattern);
    MUST(c.before == (is_checked() ? 4095u : 0u) && c.after == (is_checked() ? 0u : 4095u));
    soft.observe_launches(&observer, &seen);
    MUST(soft.check_of(f, &c) == 0 && c.pattern);
    soft.observe_launches(NULL, NULL);
    MUST(soft.check_of(f, &c) == 0 && !c.pattern);
    MUST(soft.check_of(&unknown, &c) == -1 && soft.check_of(NULL, &c) == -1);
    return true;
}

static void native_kernels_run_between_guards(void **state) {
    (void)state;
    soft_expect(what_is_checked, NULL);
    soft_expect(what_is_checked, "GRETA_SOFT_CHECK=off");
}

/* ---- how many are done ---------------------------------------------------------------------- */

static bool launches_of_streams(void) {
    hip_soft_find(&soft, soft_library);
    hipStream_t a = soft_free_stream(), b = soft_blocking_stream();
    uint64_t na = soft.stream_number(a, 0), nb = soft.stream_number(b, 0);
    uint64_t null = soft.stream_number(NULL, 0), own = soft.stream_number(hipStreamPerThread, 0);
    MUST(na && nb && null && own && na != nb && na != null && na != own && own != null);
    MUST(null == soft.stream_number(hipStreamLegacy, 0) && null != soft.stream_number(NULL, 1));
    MUST(!soft.stream_number(&null, 0) && !soft.stream_number(NULL, 99));
    for (int i = 0; i < 5; i++)
        soft_nothing(a);
    soft_nothing(b);
    int *p = soft_device_ints(4); /* other operations do not count */
    OK(hip->hipDeviceSynchronize());
    MUST(soft.launches_done(na) == 5 && soft.launches_done(nb) == 1);
    MUST(soft.launches_done(null) == 0 && soft.launches_done(0) == 0);
    soft_nothing(hipStreamPerThread);
    OK(hip->hipStreamSynchronize(hipStreamPerThread));
    MUST(soft.launches_done(own) == 1);
    soft_nothing(a);
    OK(hip->hipStreamDestroy(a)); /* still answers, and no other stream gets its number */
    OK(hip->hipDeviceSynchronize());
    MUST(soft.launches_done(na) == 6);
    for (int i = 0; i < 2000; i++) {
        OK(hip->hipStreamCreate(&a));
        MUST(soft.stream_number(a, 0) != na);
        OK(hip->hipStreamDestroy(a));
    }
    MUST(soft.launches_done(na) == 0 || soft.launches_done(na) == 6);
    OK(hip->hipFree(p));
    return true;
}

static bool launches_of_graphs(void) {
    hip_soft_find(&soft, soft_library);
    hipStream_t s = soft_free_stream();
    hipGraph_t graph;
    hipGraphExec_t exec;
    uint64_t number = soft.stream_number(s, 0);
    OK(hip->hipStreamBeginCapture(s, hipStreamCaptureModeThreadLocal));
    for (int i = 0; i < 3; i++)
        soft_nothing(s);
    OK(hip->hipStreamEndCapture(s, &graph));
    MUST(soft.launches_done(number) == 0);
    OK(hip->hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    OK(hip->hipGraphLaunch(exec, s));
    OK(hip->hipGraphLaunch(exec, s));
    OK(hip->hipStreamSynchronize(s));
    MUST(soft.launches_done(number) == 6);
    return true;
}

static void launches_are_counted_stream_by_stream(void **state) {
    (void)state;
    soft_expect(launches_of_streams, "GRETA_SOFT_DEVICES=2");
    soft_expect(launches_of_streams, "GRETA_SOFT_DEVICES=2 GRETA_SOFT_SCHEDULE=lazy");
}

static void launches_of_graphs_count(void **state) {
    (void)state;
    soft_right(launches_of_graphs);
}

/* ---- which did not run ---------------------------------------------------------------------- */

static bool launches_behind_a_fault(void) {
    observe();
    hipStream_t s = soft_free_stream();
    int *p = soft_device_ints(1024);
    struct soft_gate gate = { 0 };
    soft_gate_close(&gate, s);
    soft.tag(60);
    soft_touch(s, p, 1 << 20, true);
    soft.tag(61);
    soft_nothing(s);
    soft.tag(62);
    OK(hip->hipMemsetAsync(p, 0, 4, s));
    soft.tag(63);
    soft_nothing(s);
    soft_gate_open(&gate);
    FAILS(hipErrorIllegalAddress, hip->hipStreamSynchronize(s));
    MUST(seen.skipped == 2 && seen.not_run[0].tag == 61 && seen.not_run[1].tag == 63);
    MUST(seen.not_run[0].reason == GRETA_SOFT_NOT_RUN_DEVICE_FAILED);
    MUST(seen.not_run[0].launches == 1 && !strcmp(seen.not_run[0].kernel, "test_nothing"));
    MUST(soft.launches_done(soft.stream_number(s, 0)) == 3);
    return true;
}

static void launches_behind_a_fault_are_told(void **state) {
    (void)state;
    soft_right(launches_behind_a_fault);
}

/* ---- values --------------------------------------------------------------------------------- */

static uint32_t *flag;

static void write_flag(uint64_t tag, uint32_t value) {
    soft.tag(tag);
    OK(hip->hipStreamWriteValue32(NULL, flag, value, 0));
}

static uint64_t write_that_ends(uint64_t wait, uint32_t value, unsigned how, uint32_t mask) {
    soft.tag(wait);
    OK(hip->hipStreamWaitValue32(NULL, flag, value, how, mask));
    OK(hip->hipDeviceSynchronize());
    return met[wait];
}

static bool writes_end_waits(void) {
    observe();
    OK(hip->hipExtMallocWithFlags((void **)&flag, 8, hipMallocSignalMemory));
    OK(hip->hipMemset(flag, 0, 8));
    MUST(write_that_ends(1, 0, hipStreamWaitValueGte, UINT32_MAX) == 0); /* it was there before */
    write_flag(2, 1);
    write_flag(3, 2);
    write_flag(4, 6);
    MUST(write_that_ends(5, 6, hipStreamWaitValueEq, UINT32_MAX) == 4);
    MUST(write_that_ends(6, 1, hipStreamWaitValueGte, UINT32_MAX) == 2);
    MUST(write_that_ends(7, 2, hipStreamWaitValueAnd, UINT32_MAX) == 3);
    MUST(write_that_ends(8, 6, hipStreamWaitValueEq, 4) == 4);
    MUST(write_that_ends(9, 0, hipStreamWaitValueGte, UINT32_MAX) == 0);
    OK(hip->hipMemset(flag, 0xff, 1)); /* not a stream's write of a value */
    MUST(write_that_ends(10, 1, hipStreamWaitValueGte, UINT32_MAX) == 0);
    write_flag(11, 300);
    MUST(write_that_ends(12, 1, hipStreamWaitValueGte, UINT32_MAX) == 0);
    MUST(write_that_ends(13, 300, hipStreamWaitValueEq, UINT32_MAX) == 11);
    soft.tag(14);
    OK(hip->hipStreamWriteValue64(NULL, flag, 300, 0));
    return write_that_ends(15, 300, hipStreamWaitValueEq, UINT32_MAX) == 0; /* of another size */
}

static void the_write_that_ended_a_wait_is_named(void **state) {
    (void)state;
    soft_right(writes_end_waits);
}

/* The dispatcher gives a block its pattern while the host asks what the block is. */
static bool look_at_arriving_blocks(void) {
    enum { BLOCKS = 300, BYTES = 4000, LOOKS = 100 };
    hipStream_t stream;
    hipPointerAttribute_t what;
    void *blocks[BLOCKS];
    observe();
    OK(hip->hipStreamCreate(&stream));
    for (int i = 0; i < BLOCKS; i++) {
        OK(hip->hipMallocAsync(&blocks[i], BYTES, stream));
        for (int k = 0; k < LOOKS; k++)
            OK(hip->hipPointerGetAttributes(&what, blocks[i]));
    }
    for (int i = 0; i < BLOCKS; i++)
        OK(hip->hipFreeAsync(blocks[i], stream));
    OK(hip->hipStreamSynchronize(stream));
    OK(hip->hipStreamDestroy(stream));
    return seen.damages == 0;
}

static void blocks_may_be_looked_at_while_they_arrive(void **state) {
    (void)state;
    soft_right(look_at_arriving_blocks);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_beside_a_block_names_the_launch),
        cmocka_unit_test(a_write_beside_another_block_shows_at_its_free),
        cmocka_unit_test(a_write_beside_a_block_shows_at_the_end_and_at_a_reset),
        cmocka_unit_test(all_kinds_of_blocks_have_a_pattern),
        cmocka_unit_test(damage_of_one_block_is_told_a_few_times),
        cmocka_unit_test(pages_that_the_program_closed_are_left_alone),
        cmocka_unit_test(full_pages_have_no_slack),
        cmocka_unit_test(native_kernels_run_between_guards),
        cmocka_unit_test(launches_are_counted_stream_by_stream),
        cmocka_unit_test(launches_of_graphs_count),
        cmocka_unit_test(launches_behind_a_fault_are_told),
        cmocka_unit_test(the_write_that_ended_a_wait_is_named),
        cmocka_unit_test(blocks_may_be_looked_at_while_they_arrive),
    };
    return cmocka_run_group_tests_name("soft_statements", tests, soft_fixture_load, NULL);
}
