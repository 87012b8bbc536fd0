/* What is before what: every rule of HIP with two operations that it orders, and the same two where
 * it does not. An operation of each pair writes what the other reads. */
#include "unit/test_verdict_streams.h"

#include <pthread.h>

static void prepare(void) {
    alloc(DEVICE_AT, 4 * KIB);
    set(DEVICE_AT, 4 * KIB, s0);
    sync_device(0);
}

static void finish(void) {
    sync_device(0);
    free_at(DEVICE_AT);
    judge();
}

static void expect_ordered(void) {
    expect_clean();
    expect_status(STREAM_UNSYNCED, RULED_OUT);
    assert_true(V->hypothesis[HYPOTHESIS_STREAM_UNSYNCED].checked > 0);
}

static void expect_race(uint64_t first, uint64_t second) {
    expect_pair(STREAM_UNSYNCED, first, second);
    expect_overall(FINDINGS);
}

/* ---- streams --------------------------------------------------------------------------------- */

static void one_stream_is_in_order(void **state) {
    (void)state;
    write_in(s1);
    read_in(s1);
    expect_ordered();
}

static void two_streams_are_not(void **state) {
    (void)state;
    uint64_t a = write_in(s1);
    uint64_t b = read_in(s2);
    expect_race(a, b);
}

static void two_blocking_streams_are_not(void **state) {
    (void)state;
    uint32_t s = new_stream(0), t = new_stream(0);
    uint64_t a = read_in(s);
    uint64_t b = write_in(t);
    expect_race(a, b);
}

static void reads_in_two_streams_are_no_race(void **state) {
    (void)state;
    read_in(s1);
    read_in(s2);
    expect_ordered();
}

static void different_bytes_are_no_race(void **state) {
    (void)state;
    launch_writes("w", DEVICE_AT, 2 * KIB, s1);
    launch_writes("w", DEVICE_AT + 2 * KIB, 2 * KIB, s2);
    expect_ordered();
}

static void one_common_byte_is_a_race(void **state) {
    (void)state;
    uint64_t a = launch_writes("w", DEVICE_AT, 2 * KIB + 1, s1);
    uint64_t b = launch_writes("w", DEVICE_AT + 2 * KIB, 2 * KIB, s2);
    expect_pair(STREAM_UNSYNCED, a, b);
    assert_int_equal(V->findings[0].culprit.address, DEVICE_AT + 2 * KIB);
    assert_int_equal(V->findings[0].culprit.len, 1);
}

static void many_streams_use_lanes_again(void **state) {
    (void)state;
    for (int i = 0; i < 2000; i++) {
        uint32_t s = nonblocking();
        write_in(s);
        sync_stream(s);
        put(EVENT_STREAM_DESTROY, HIP_FN_hipStreamDestroy, 0, 0x1000, 0, 0, s, NULL);
    }
    expect_ordered();
    assert_int_equal(V->coverage.streams, 2003); /* with s0, s1 and s2 */
}

static void work_of_a_destroyed_stream_goes_on(void **state) {
    (void)state;
    uint64_t a = write_in(s1);
    put(EVENT_STREAM_DESTROY, HIP_FN_hipStreamDestroy, 0, 0x1000, 0, 0, s1, NULL);
    uint64_t b = write_in(s2);
    expect_race(a, b);
}

static void a_device_wait_takes_in_destroyed_streams(void **state) {
    (void)state;
    write_in(s1);
    put(EVENT_STREAM_DESTROY, HIP_FN_hipStreamDestroy, 0, 0x1000, 0, 0, s1, NULL);
    sync_device(0);
    write_in(s2);
    expect_ordered();
}

/* ---- the default stream ---------------------------------------------------------------------- */

static void the_default_stream_waits_for_blocking_streams(void **state) {
    (void)state;
    uint32_t s = new_stream(0);
    write_in(s);
    read_in(s0);
    expect_ordered();
}

static void blocking_streams_wait_for_the_default_stream(void **state) {
    (void)state;
    uint32_t s = new_stream(0);
    write_in(s0);
    read_in(s);
    expect_ordered();
}

static void the_default_stream_orders_two_blocking_streams(void **state) {
    (void)state;
    uint32_t s = new_stream(0), t = new_stream(0);
    alloc(DEVICE2_AT, 64);
    write_in(s);
    set(DEVICE2_AT, 64, s0);
    read_in(t);
    sync_device(0);
    free_at(DEVICE2_AT);
    expect_ordered();
}

static void nonblocking_streams_do_not_wait_for_it(void **state) {
    (void)state;
    uint64_t a = write_in(s0);
    uint64_t b = read_in(s1);
    expect_race(a, b);
}

static void it_does_not_wait_for_nonblocking_streams(void **state) {
    (void)state;
    uint64_t a = write_in(s1);
    uint64_t b = read_in(s0);
    expect_race(a, b);
}

static void default_streams_of_two_devices_are_not_ordered(void **state) {
    (void)state;
    uint32_t other =
        record_stream(W, &(struct record_stream){ .device = 1, .flags = RECORD_STREAM_DEFAULT });
    put(EVENT_DEVICE, HIP_FN_hipSetDevice, 0, 1, 0, 0, 0, NULL);
    put(EVENT_CALL, HIP_FN_hipDeviceEnablePeerAccess, 0, 0, 0, 0, 0, NULL);
    uint64_t a = write_in(s0);
    uint64_t b = read_in(other);
    sync_device(1);
    expect_race(a, b);
}

static void per_thread_default_streams_are_blocking(void **state) {
    (void)state;
    uint32_t own = record_stream(W, &(struct record_stream){ .flags = RECORD_STREAM_PER_THREAD });
    write_in(own);
    read_in(s0);
    expect_ordered();
}

static void per_thread_default_streams_do_not_wait_for_each_other(void **state) {
    (void)state;
    uint32_t own = record_stream(W, &(struct record_stream){ .flags = RECORD_STREAM_PER_THREAD });
    uint32_t other = record_stream(W, &(struct record_stream){ .flags = RECORD_STREAM_PER_THREAD });
    uint64_t a = write_in(own);
    uint64_t b = read_in(other);
    expect_race(a, b);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void synchronising_a_stream_orders(void **state) {
    (void)state;
    write_in(s1);
    sync_stream(s1);
    read_in(s2);
    expect_ordered();
}

static void synchronising_another_stream_does_not(void **state) {
    (void)state;
    uint32_t u = nonblocking();
    uint64_t a = write_in(s1);
    sync_stream(u);
    uint64_t b = read_in(s2);
    expect_race(a, b);
}

static void a_failed_synchronisation_orders_nothing(void **state) {
    (void)state;
    write_in(s1);
    status = hipErrorInvalidHandle;
    sync_stream(s1);
    read_in(s2);
    finish();
    expect_status(STREAM_UNSYNCED, CONFIRMED);
}

static void a_query_orders_if_all_is_done(void **state) {
    (void)state;
    write_in(s1);
    status = hipErrorNotReady;
    query_stream(s1);
    query_stream(s1);
    read_in(s2);
    expect_ordered();
}

static void a_query_that_says_not_yet_orders_nothing(void **state) {
    (void)state;
    uint64_t a = write_in(s1);
    status = hipErrorNotReady;
    query_stream(s1);
    uint64_t b = read_in(s2);
    expect_race(a, b);
}

static void synchronising_the_default_stream_takes_in_blocking_ones(void **state) {
    (void)state;
    uint32_t s = new_stream(0);
    write_in(s);
    sync_stream(s0);
    read_in(s1);
    expect_ordered();
}

static void synchronising_the_device_orders_all_its_streams(void **state) {
    (void)state;
    write_in(s1);
    sync_device(0);
    read_in(s2);
    expect_ordered();
}

static void synchronising_another_device_does_not(void **state) {
    (void)state;
    uint64_t a = write_in(s1);
    sync_device(1);
    uint64_t b = read_in(s2);
    expect_race(a, b);
}

static void freeing_waits_for_the_device(void **state) {
    (void)state;
    alloc(DEVICE2_AT, 64);
    write_in(s1);
    free_at(DEVICE2_AT);
    read_in(s2);
    expect_ordered();
}

/* ---- events ---------------------------------------------------------------------------------- */

static void waiting_for_an_event_orders(void **state) {
    (void)state;
    event_create(7);
    write_in(s1);
    uint64_t record = event_record(7, s1);
    event_wait(7, record, s2);
    read_in(s2);
    expect_ordered();
}

static void an_event_recorded_too_early_does_not(void **state) {
    (void)state;
    event_create(7);
    uint64_t record = event_record(7, s1);
    uint64_t a = write_in(s1);
    event_wait(7, record, s2);
    uint64_t b = read_in(s2);
    expect_race(a, b);
}

static void a_wait_before_the_record_waits_for_nothing(void **state) {
    (void)state;
    event_create(7);
    event_wait(7, EVENT_NO_SEQ, s2);
    uint64_t a = write_in(s1);
    event_record(7, s1);
    uint64_t b = read_in(s2);
    expect_race(a, b);
}

static void recording_again_does_not_change_an_earlier_wait(void **state) {
    (void)state;
    event_create(7);
    uint64_t record = event_record(7, s1);
    event_wait(7, record, s2);
    uint64_t a = write_in(s1);
    event_record(7, s1);
    uint64_t b = read_in(s2);
    expect_race(a, b);
}

static void the_host_waits_for_an_event(void **state) {
    (void)state;
    event_create(7);
    write_in(s1);
    uint64_t record = event_record(7, s1);
    event_sync(7, record);
    read_in(s2);
    expect_ordered();
}

static void waits_are_passed_on(void **state) {
    (void)state;
    uint32_t u = nonblocking();
    event_create(7);
    event_create(8);
    write_in(s1);
    uint64_t first = event_record(7, s1);
    event_wait(7, first, s2);
    uint64_t second = event_record(8, s2);
    event_wait(8, second, u);
    read_in(u);
    expect_ordered();
}

static void an_event_in_the_default_stream_takes_in_blocking_ones(void **state) {
    (void)state;
    uint32_t s = new_stream(0);
    event_create(7);
    write_in(s);
    uint64_t record = event_record(7, s0);
    event_wait(7, record, s1);
    read_in(s1);
    expect_ordered();
}

/* ---- copies and sets ------------------------------------------------------------------------- */

static void a_pageable_copy_has_run_when_it_returns(void **state) {
    (void)state;
    h2d(DEVICE_AT, HOST_AT, 4 * KIB, s1);
    read_in(s2);
    expect_ordered();
}

static void a_pinned_copy_has_not(void **state) {
    (void)state;
    alloc_pinned(PINNED_AT, 4 * KIB);
    uint64_t a = h2d(DEVICE_AT, PINNED_AT, 4 * KIB, s1);
    uint64_t b = read_in(s2);
    sync_device(0);
    free_pinned(PINNED_AT);
    expect_race(a, b);
}

static void a_synchronous_copy_with_pinned_memory_has(void **state) {
    (void)state;
    alloc_pinned(PINNED_AT, 4 * KIB);
    copy(hipMemcpyHostToDevice, DEVICE_AT, PINNED_AT, 4 * KIB, s0);
    read_in(s1);
    free_pinned(PINNED_AT);
    expect_ordered();
}

static void a_copy_within_the_device_only_queues(void **state) {
    (void)state;
    alloc(DEVICE2_AT, 4 * KIB);
    uint64_t a = copy(hipMemcpyDeviceToDevice, DEVICE2_AT, DEVICE_AT, 4 * KIB, s0);
    uint64_t b = launch_reads("r", DEVICE2_AT, 4 * KIB, s1);
    sync_device(0);
    free_at(DEVICE2_AT);
    expect_race(a, b);
}

static void a_synchronous_set_only_queues(void **state) {
    (void)state;
    uint64_t a = set_sync(DEVICE_AT, 4 * KIB, s0);
    uint64_t b = read_in(s1);
    expect_race(a, b);
}

static void a_copy_of_nothing_orders_nothing(void **state) {
    (void)state;
    uint64_t a = write_in(s1);
    h2d(DEVICE_AT, HOST_AT, 0, s1);
    uint64_t b = read_in(s2);
    expect_race(a, b);
}

static void rows_are_compared_one_by_one(void **state) {
    (void)state;
    alloc_pinned(PINNED_AT, 4 * KIB);
    /* 16 rows of 64 bytes in a pitch of 256, and the bytes between them */
    copy_rows(hipMemcpyHostToDevice | ASYNC, DEVICE_AT, 256, PINNED_AT, 64, 64, 16, s1);
    copy_rows(hipMemcpyHostToDevice | ASYNC, DEVICE_AT + 64, 256, PINNED_AT + KIB, 64, 64, 16, s2);
    sync_device(0);
    free_pinned(PINNED_AT);
    finish();
    expect_no_findings();
    expect_status(OVERLAPPING_COPIES, RULED_OUT);
}

static void rows_that_touch_collide(void **state) {
    (void)state;
    alloc_pinned(PINNED_AT, 4 * KIB);
    uint64_t a =
        copy_rows(hipMemcpyHostToDevice | ASYNC, DEVICE_AT, 256, PINNED_AT, 64, 64, 16, s1);
    uint64_t b = copy_rows(hipMemcpyHostToDevice | ASYNC, DEVICE_AT + 63, 256, PINNED_AT + KIB, 64,
                           64, 16, s2);
    sync_device(0);
    free_pinned(PINNED_AT);
    expect_pair(OVERLAPPING_COPIES, a, b);
}

/* ---- host functions -------------------------------------------------------------------------- */

static void a_host_function_comes_after_the_work_before_it(void **state) {
    (void)state;
    write_in(s1);
    uint64_t queued = put(EVENT_HOST_FN, HIP_FN_hipLaunchHostFunc, 0, 1, 2, 0, s1, NULL);
    put(EVENT_HOST_FN_BEGIN, EVENT_NO_FN, 0, 1, queued, 0, 0, NULL);
    put(EVENT_HOST_FN_END, EVENT_NO_FN, 0, 1, queued, 0, 0, NULL);
    read_in(s2); /* by the thread that ran it */
    expect_ordered();
}

static void a_host_function_that_is_only_queued_orders_nothing(void **state) {
    (void)state;
    uint64_t a = write_in(s1);
    put(EVENT_HOST_FN, HIP_FN_hipLaunchHostFunc, 0, 1, 2, 0, s1, NULL);
    uint64_t b = read_in(s2);
    expect_race(a, b);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void in_thread(void *(*f)(void *), void *arg) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, f, arg), 0);
    pthread_join(thread, NULL);
}

struct thread_run {
    uint32_t stream;
    uint64_t token, event, at_ns;
};

static void *acquire_and_read(void *arg) {
    struct thread_run *x = arg;
    if (x->token)
        put(EVENT_HOST_ACQUIRE, EVENT_NO_FN, 0, x->token, 0, 0, 0, NULL);
    clock_ns = x->at_ns;
    x->event = read_in(x->stream);
    return NULL;
}

static void what_a_thread_waited_for_passes_with_a_token(void **state) {
    (void)state;
    struct thread_run x = { .stream = s2, .token = 99 };
    write_in(s1);
    sync_stream(s1);
    put(EVENT_HOST_RELEASE, EVENT_NO_FN, 0, 99, 0, 0, 0, NULL);
    in_thread(acquire_and_read, &x);
    sync_stream(s2);
    sync_device(0);
    finish();
    expect_no_findings();
    expect_status(STREAM_UNSYNCED, RULED_OUT);
    assert_int_equal(V->coverage.pairs_by_time, 0);
}

/* One stream keeps the order it was given; who gave first is up to the threads. */
static void a_stream_does_not_order_the_threads_that_fill_it(void **state) {
    (void)state;
    struct thread_run x = { .stream = s1 };
    write_in(s1);
    in_thread(acquire_and_read, &x);
    finish();
    expect_no_findings();
    expect_status(STREAM_UNSYNCED, INCONCLUSIVE);
    expect_overall(INCONCLUSIVE);
    assert_non_null(strstr(V->answer, "happened to run"));
    assert_int_equal(V->remark_count, 2);
    assert_non_null(strstr(V->remarks[1], "atomic variables")); /* why it is not known */
}

static void threads_in_order_may_fill_one_stream(void **state) {
    (void)state;
    struct thread_run x = { .stream = s1, .token = 99 };
    write_in(s1);
    put(EVENT_HOST_RELEASE, EVENT_NO_FN, 0, 99, 0, 0, 0, NULL);
    in_thread(acquire_and_read, &x);
    expect_ordered();
    assert_int_equal(V->coverage.pairs_by_time, 0);
}

static void *write_the_other_half(void *arg) {
    launch_writes("w", DEVICE_AT + 2 * KIB, KIB, *(uint32_t *)arg);
    return NULL;
}

static void threads_that_use_different_bytes_need_no_order(void **state) {
    (void)state;
    launch_writes("w", DEVICE_AT, KIB, s1);
    in_thread(write_the_other_half, &s1);
    finish();
    assert_int_equal(V->coverage.pairs_by_time, 1); /* only with the memory that was prepared */
}

static void time_alone_is_no_proof_but_no_race_either(void **state) {
    (void)state;
    struct thread_run x = { .stream = s2 };
    write_in(s1);
    sync_stream(s1);
    in_thread(acquire_and_read, &x);
    sync_stream(s2);
    finish();
    expect_no_findings();
    expect_status(STREAM_UNSYNCED, INCONCLUSIVE);
    assert_true(V->coverage.pairs_by_time > 0);
    expect_overall(INCONCLUSIVE); /* the next run may go otherwise */
    assert_non_null(strstr(V->answer, "happened to run"));
}

static void work_that_another_thread_still_waits_for_races(void **state) {
    (void)state;
    uint64_t a = write_in(s1);
    clock_ns = 1000000;
    took_ns = 500000; /* until 1500000 */
    sync_stream(s1);
    struct thread_run x = { .stream = s2, .at_ns = 1200000 };
    in_thread(acquire_and_read, &x);
    sync_stream(s2);
    expect_pair(STREAM_UNSYNCED, a, x.event);
}

static void a_token_released_before_the_work_orders_nothing(void **state) {
    (void)state;
    struct thread_run x = { .stream = s2, .token = 99 };
    put(EVENT_HOST_RELEASE, EVENT_NO_FN, 0, 99, 0, 0, 0, NULL);
    uint64_t a = write_in(s1);
    in_thread(acquire_and_read, &x);
    expect_pair(STREAM_UNSYNCED, a, x.event);
}

/* ---- stream-ordered memory ------------------------------------------------------------------- */

static void memory_of_a_stream_is_there_for_that_stream(void **state) {
    (void)state;
    alloc_async(DEVICE2_AT, 64, s1);
    launch_writes("w", DEVICE2_AT, 64, s1);
    free_async(DEVICE2_AT, s1);
    expect_ordered();
}

static void another_stream_must_wait_for_it(void **state) {
    (void)state;
    uint64_t a = alloc_async(DEVICE2_AT, 64, s1);
    uint64_t b = launch_writes("w", DEVICE2_AT, 64, s2);
    sync_device(0);
    free_async(DEVICE2_AT, s1);
    expect_race(a, b);
}

static void it_may_not_be_freed_under_another_stream(void **state) {
    (void)state;
    alloc_async(DEVICE2_AT, 64, s1);
    sync_stream(s1);
    uint64_t a = launch_writes("w", DEVICE2_AT, 64, s2);
    uint64_t b = free_async(DEVICE2_AT, s1);
    expect_pair(USE_AFTER_FREE, a, b);
}

static void a_pool_may_give_the_same_address_again(void **state) {
    (void)state;
    for (int i = 0; i < 10; i++) {
        uint32_t on = i % 2 ? s2 : s1;
        alloc_async(DEVICE2_AT, 64, on);
        launch_writes("w", DEVICE2_AT, 64, on);
        free_async(DEVICE2_AT, on);
    }
    expect_ordered();
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static uint64_t captured_write(const char *kernel, uint64_t at, uint64_t bytes, uint32_t stream) {
    union event_slot s[3];
    struct event_access a = { at, bytes, DETAIL_ACCESS_WRITE, 0 };
    s[0].event = (struct event){ .kind = EVENT_LAUNCH,
                                 .aux = event_aux(HIP_FN_hipModuleLaunchKernel, EVENT_CAPTURED),
                                 .stream = stream,
                                 .name = record_string(W, kernel) };
    event_extra_dims(&s[1], &(struct event_dims){ { 1, 1, 1 }, { 64, 1, 1 }, 0, 0 });
    event_extra_accesses(&s[2], &a, 1);
    return put_slots(s, 3);
}

static void begin_capture(uint32_t s) {
    put(EVENT_CAPTURE_BEGIN, HIP_FN_hipStreamBeginCapture, 0, 0, 0, 0, s, NULL);
}

static void end_capture(uint32_t s, uint64_t graph) {
    put(EVENT_CAPTURE_END, HIP_FN_hipStreamEndCapture, 0, graph, 0, 0, s, NULL);
    put(EVENT_GRAPH_INSTANTIATE, HIP_FN_hipGraphInstantiate, 0, graph + 1, graph, 0, 0, NULL);
}

static uint64_t launch_graph(uint64_t graph, uint32_t s) {
    return put(EVENT_GRAPH_LAUNCH, HIP_FN_hipGraphLaunch, 0, graph + 1, 0, 0, s, NULL);
}

static void a_captured_chain_is_in_order(void **state) {
    (void)state;
    begin_capture(s1);
    captured_write("a", DEVICE_AT, 4 * KIB, s1);
    captured_write("b", DEVICE_AT, 4 * KIB, s1);
    end_capture(s1, 0x50);
    for (int i = 0; i < 3; i++)
        launch_graph(0x50, s1);
    sync_stream(s1);
    expect_ordered();
    assert_int_equal(V->coverage.graph_launches, 3);
}

static void what_is_captured_has_not_run(void **state) {
    (void)state;
    begin_capture(s1);
    captured_write("a", DEVICE_AT, 4 * KIB, s1);
    end_capture(s1, 0x50);
    write_in(s2); /* the graph is never launched */
    expect_ordered();
}

/* A fork by events: s1 records, s2 waits and so joins the capture. */
static uint64_t capture_fork(uint32_t s, uint32_t t, bool joined, uint64_t *left) {
    event_create(7);
    event_create(8);
    begin_capture(s);
    captured_write("root", DEVICE_AT, 64, s);
    uint64_t record =
        put(EVENT_EVENT_RECORD, HIP_FN_hipEventRecord, EVENT_CAPTURED, 7, 0, 0, s, NULL);
    event_wait(7, record, t);
    *left = captured_write("left", DEVICE_AT, 4 * KIB, s);
    if (joined) {
        record = put(EVENT_EVENT_RECORD, HIP_FN_hipEventRecord, EVENT_CAPTURED, 8, 0, 0, s, NULL);
        put(EVENT_EVENT_WAIT, HIP_FN_hipStreamWaitEvent, EVENT_CAPTURED, 8, record, 0, t, NULL);
    }
    uint64_t right = captured_write("right", DEVICE_AT, 4 * KIB, t);
    record = put(EVENT_EVENT_RECORD, HIP_FN_hipEventRecord, EVENT_CAPTURED, 8, 0, 0, t, NULL);
    put(EVENT_EVENT_WAIT, HIP_FN_hipStreamWaitEvent, EVENT_CAPTURED, 8, record, 0, s, NULL);
    end_capture(s, 0x50);
    return right;
}

static void branches_of_a_graph_are_not_ordered(void **state) {
    (void)state;
    uint64_t left, right;
    right = capture_fork(s1, s2, false, &left);
    launch_graph(0x50, s1);
    finish();
    expect_status(STREAM_UNSYNCED, CONFIRMED);
    assert_int_equal(V->finding_count, 1);
    uint64_t a = V->findings[0].culprit.event, b = V->findings[0].other->event;
    assert_true((a == left && b == right) || (a == right && b == left));
}

static void branches_that_wait_for_each_other_are(void **state) {
    (void)state;
    uint64_t left;
    capture_fork(s1, s2, true, &left);
    launch_graph(0x50, s1);
    launch_graph(0x50, s1);
    expect_ordered();
}

static void a_graph_is_one_unit_of_its_stream(void **state) {
    (void)state;
    uint64_t left;
    capture_fork(s1, s2, true, &left);
    launch_writes("before", DEVICE_AT, 4 * KIB, s1);
    launch_graph(0x50, s1);
    launch_writes("after", DEVICE_AT, 4 * KIB, s1);
    expect_ordered();
}

static void a_graph_races_with_another_stream(void **state) {
    (void)state;
    begin_capture(s1);
    uint64_t node = captured_write("a", DEVICE_AT, 4 * KIB, s1);
    end_capture(s1, 0x50);
    launch_graph(0x50, s1);
    uint64_t b = write_in(s2);
    expect_pair(STREAM_UNSYNCED, node, b);
}

static uint64_t add_node(uint64_t graph, uint64_t node, uint64_t depends_on) {
    union event_slot s[2];
    s[0].event = (struct event){ .kind = EVENT_GRAPH_NODE,
                                 .aux = event_aux(HIP_FN_hipGraphAddKernelNode, 0),
                                 .dst = graph,
                                 .src = node,
                                 .len = depends_on != 0 };
    *event_extra_init(&s[1], EXTRA_NODES, 1) = depends_on;
    put_slots(s, depends_on ? 2 : 1);
    return captured_write("node", DEVICE_AT, 4 * KIB, 0);
}

static void run_hand_made(bool with_edge) {
    put(EVENT_GRAPH_CREATE, HIP_FN_hipGraphCreate, 0, 0x50, 0, 0, 0, NULL);
    add_node(0x50, 0x61, 0);
    add_node(0x50, 0x62, with_edge ? 0x61 : 0);
    put(EVENT_GRAPH_INSTANTIATE, HIP_FN_hipGraphInstantiate, 0, 0x51, 0x50, 0, 0, NULL);
    launch_graph(0x50, s1);
}

static void nodes_made_by_hand_follow_their_dependencies(void **state) {
    (void)state;
    run_hand_made(true);
    expect_ordered();
}

static void nodes_without_dependencies_are_not_ordered(void **state) {
    (void)state;
    run_hand_made(false);
    finish();
    expect_status(STREAM_UNSYNCED, CONFIRMED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        streams_test(one_stream_is_in_order),
        streams_test(two_streams_are_not),
        streams_test(two_blocking_streams_are_not),
        streams_test(reads_in_two_streams_are_no_race),
        streams_test(different_bytes_are_no_race),
        streams_test(one_common_byte_is_a_race),
        streams_test(many_streams_use_lanes_again),
        streams_test(work_of_a_destroyed_stream_goes_on),
        streams_test(a_device_wait_takes_in_destroyed_streams),
        streams_test(the_default_stream_waits_for_blocking_streams),
        streams_test(blocking_streams_wait_for_the_default_stream),
        streams_test(the_default_stream_orders_two_blocking_streams),
        streams_test(nonblocking_streams_do_not_wait_for_it),
        streams_test(it_does_not_wait_for_nonblocking_streams),
        streams_test(default_streams_of_two_devices_are_not_ordered),
        streams_test(per_thread_default_streams_are_blocking),
        streams_test(per_thread_default_streams_do_not_wait_for_each_other),
        streams_test(synchronising_a_stream_orders),
        streams_test(synchronising_another_stream_does_not),
        streams_test(a_failed_synchronisation_orders_nothing),
        streams_test(a_query_orders_if_all_is_done),
        streams_test(a_query_that_says_not_yet_orders_nothing),
        streams_test(synchronising_the_default_stream_takes_in_blocking_ones),
        streams_test(synchronising_the_device_orders_all_its_streams),
        streams_test(synchronising_another_device_does_not),
        streams_test(freeing_waits_for_the_device),
        streams_test(waiting_for_an_event_orders),
        streams_test(an_event_recorded_too_early_does_not),
        streams_test(a_wait_before_the_record_waits_for_nothing),
        streams_test(recording_again_does_not_change_an_earlier_wait),
        streams_test(the_host_waits_for_an_event),
        streams_test(waits_are_passed_on),
        streams_test(an_event_in_the_default_stream_takes_in_blocking_ones),
        streams_test(a_pageable_copy_has_run_when_it_returns),
        streams_test(a_pinned_copy_has_not),
        streams_test(a_synchronous_copy_with_pinned_memory_has),
        streams_test(a_copy_within_the_device_only_queues),
        streams_test(a_synchronous_set_only_queues),
        streams_test(a_copy_of_nothing_orders_nothing),
        streams_test(rows_are_compared_one_by_one),
        streams_test(rows_that_touch_collide),
        streams_test(a_host_function_comes_after_the_work_before_it),
        streams_test(a_host_function_that_is_only_queued_orders_nothing),
        streams_test(what_a_thread_waited_for_passes_with_a_token),
        streams_test(a_stream_does_not_order_the_threads_that_fill_it),
        streams_test(threads_in_order_may_fill_one_stream),
        streams_test(threads_that_use_different_bytes_need_no_order),
        streams_test(time_alone_is_no_proof_but_no_race_either),
        streams_test(work_that_another_thread_still_waits_for_races),
        streams_test(a_token_released_before_the_work_orders_nothing),
        streams_test(memory_of_a_stream_is_there_for_that_stream),
        streams_test(another_stream_must_wait_for_it),
        streams_test(it_may_not_be_freed_under_another_stream),
        streams_test(a_pool_may_give_the_same_address_again),
        streams_test(a_captured_chain_is_in_order),
        streams_test(what_is_captured_has_not_run),
        streams_test(branches_of_a_graph_are_not_ordered),
        streams_test(branches_that_wait_for_each_other_are),
        streams_test(a_graph_is_one_unit_of_its_stream),
        streams_test(a_graph_races_with_another_stream),
        streams_test(nodes_made_by_hand_follow_their_dependencies),
        streams_test(nodes_without_dependencies_are_not_ordered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
