/* Recordings of correct programs with slots taken out in thousands of ways: nothing may be found in
 * any of them. tests/cases does the same with recordings of real programs. */
#include "support/torn.h"
#include "unit/test_verdict.h"

enum { VARIANTS = 1400 };

/* ---- correct programs ------------------------------------------------------------------------ */

/* Upload, compute, download; named tensors; memory that is freed and allocated again, smaller and
 * larger, as device memory and as pinned memory. */
static void buffers_again_and_again(void) {
    uint32_t s = default_stream();
    for (unsigned i = 0; i < 6; i++) {
        uint64_t bytes = (1 + i % 3) * KIB, host = i % 2 ? HOST_AT : PINNED_AT;
        alloc(DEVICE_AT, bytes);
        if (host == PINNED_AT)
            alloc_pinned(PINNED_AT, bytes);
        name_range(DEVICE_AT, bytes / 2, "half");
        h2d(DEVICE_AT, host, bytes, s);
        launch_reads("r", DEVICE_AT, bytes / 2, s);
        launch_writes("w", DEVICE_AT + bytes / 2, bytes / 2, s);
        d2h(host, DEVICE_AT, bytes, s);
        sync_stream(s);
        if (host == PINNED_AT)
            free_pinned(PINNED_AT);
        put(EVENT_UNNAME_RANGE, EVENT_NO_FN, 0, DEVICE_AT, 0, bytes / 2, 0, "half");
        free_at(DEVICE_AT);
        /* The same address on the other side of the world. */
        alloc_pinned(DEVICE_AT, 3 * KIB);
        copy(hipMemcpyHostToHost, HOST_AT, DEVICE_AT, KIB, s);
        free_pinned(DEVICE_AT);
    }
}

/* Two streams that pass a buffer to and fro with events. */
static void streams_and_events(void) {
    uint32_t a = nonblocking(), b = nonblocking();
    alloc(DEVICE_AT, 8 * KIB);
    event_create(0x70);
    event_create(0x71);
    set(DEVICE_AT, 8 * KIB, a);
    for (unsigned i = 0; i < 8; i++) {
        uint64_t first = event_record(0x70, a);
        event_wait(0x70, first, b);
        launch_writes("w", DEVICE_AT, 8 * KIB, b);
        uint64_t second = event_record(0x71, b);
        event_wait(0x71, second, a);
        launch_pointer("p", DEVICE_AT, EVENT_ARG_READ | EVENT_ARG_WRITE, 1, a);
        copy_rows(hipMemcpyDeviceToHost | ASYNC, HOST_AT, 64, DEVICE_AT, 128, 64, 64, a);
    }
    sync_device(0);
    free_at(DEVICE_AT);
    put(EVENT_EVENT_DESTROY, HIP_FN_hipEventDestroy, 0, 0x70, 0, 0, 0, NULL);
    put(EVENT_EVENT_DESTROY, HIP_FN_hipEventDestroy, 0, 0x71, 0, 0, 0, NULL);
    put(EVENT_STREAM_DESTROY, HIP_FN_hipStreamDestroy, 0, 0x1000, 0, 0, a, NULL);
    put(EVENT_STREAM_DESTROY, HIP_FN_hipStreamDestroy, 0, 0x1000, 0, 0, b, NULL);
}

/* Stream-ordered memory at one address, and rows set one by one. */
static void pools_and_rows(void) {
    uint32_t s = nonblocking();
    for (unsigned i = 0; i < 8; i++) {
        alloc_async(DEVICE_AT, 4 * KIB, s);
        union event_slot slot[2];
        slot[0].event = (struct event){ .kind = EVENT_SET,
                                        .aux = event_aux(HIP_FN_hipMemset2DAsync, DETAIL_WIDTH_8),
                                        .dst = DEVICE_AT + KIB,
                                        .len = 32 * 64,
                                        .stream = s };
        event_extra_rows(&slot[1], 64, 0, 32, 48);
        put_slots(slot, 2);
        set(DEVICE_AT, 4 * KIB, s);
        launch_reads("r", DEVICE_AT, 4 * KIB, s);
        free_async(DEVICE_AT, s);
    }
    sync_stream(s);
    put(EVENT_STREAM_DESTROY, HIP_FN_hipStreamDestroy, 0, 0x1000, 0, 0, s, NULL);
}

/* A captured graph of two branches, launched again and again. */
static void graphs(void) {
    uint32_t a = nonblocking(), b = nonblocking();
    uint64_t graph = 0x90;
    alloc(DEVICE_AT, 8 * KIB);
    set(DEVICE_AT, 8 * KIB, a);
    event_create(0x70);
    event_create(0x71);
    put(EVENT_CAPTURE_BEGIN, HIP_FN_hipStreamBeginCapture, 0, 0, 0, 0, a, NULL);
    put(EVENT_EVENT_RECORD, HIP_FN_hipEventRecord, EVENT_CAPTURED, 0x70, 0, 0, a, NULL);
    put(EVENT_EVENT_WAIT, HIP_FN_hipStreamWaitEvent, EVENT_CAPTURED, 0x70, 0, 0, b, NULL);
    put(EVENT_SET, HIP_FN_hipMemsetAsync, DETAIL_WIDTH_ASYNC_8 | EVENT_CAPTURED, DEVICE_AT, 0,
        4 * KIB, a, NULL);
    put(EVENT_SET, HIP_FN_hipMemsetAsync, DETAIL_WIDTH_ASYNC_8 | EVENT_CAPTURED,
        DEVICE_AT + 4 * KIB, 0, 4 * KIB, b, NULL);
    put(EVENT_EVENT_RECORD, HIP_FN_hipEventRecord, EVENT_CAPTURED, 0x71, 0, 0, b, NULL);
    put(EVENT_EVENT_WAIT, HIP_FN_hipStreamWaitEvent, EVENT_CAPTURED, 0x71, 0, 0, a, NULL);
    put(EVENT_SET, HIP_FN_hipMemsetAsync, DETAIL_WIDTH_ASYNC_8 | EVENT_CAPTURED, DEVICE_AT, 0,
        8 * KIB, a, NULL);
    put(EVENT_CAPTURE_END, HIP_FN_hipStreamEndCapture, 0, graph, 0, 0, a, NULL);
    put(EVENT_GRAPH_INSTANTIATE, HIP_FN_hipGraphInstantiate, 0, graph + 1, graph, 0, 0, NULL);
    for (unsigned i = 0; i < 4; i++) {
        put(EVENT_GRAPH_LAUNCH, HIP_FN_hipGraphLaunch, 0, graph + 1, 0, 0, a, NULL);
        sync_stream(a);
        launch_reads("r", DEVICE_AT, 8 * KIB, b);
        sync_stream(b);
    }
    put(EVENT_GRAPH_DESTROY, HIP_FN_hipGraphExecDestroy, 0, 0, graph + 1, 0, 0, NULL);
    put(EVENT_GRAPH_DESTROY, HIP_FN_hipGraphDestroy, 0, graph, 0, 0, 0, NULL);
    put(EVENT_EVENT_DESTROY, HIP_FN_hipEventDestroy, 0, 0x70, 0, 0, 0, NULL);
    put(EVENT_EVENT_DESTROY, HIP_FN_hipEventDestroy, 0, 0x71, 0, 0, 0, NULL);
    free_at(DEVICE_AT);
    put(EVENT_STREAM_DESTROY, HIP_FN_hipStreamDestroy, 0, 0x1000, 0, 0, a, NULL);
    put(EVENT_STREAM_DESTROY, HIP_FN_hipStreamDestroy, 0, 0x1000, 0, 0, b, NULL);
}

/* Failing calls that the program asks about: an allocation that is too large, a bad value. */
static void handled_errors(void) {
    uint32_t s = default_stream();
    for (unsigned i = 0; i < 6; i++) {
        status = hipErrorOutOfMemory;
        uint64_t failed = put(EVENT_ALLOC, HIP_FN_hipMalloc, DETAIL_FAMILY_DEVICE, 0, 0,
                              UINT64_C(1) << 50, 0, NULL);
        error_read(hipErrorOutOfMemory, failed);
        alloc(DEVICE_AT, KIB);
        set(DEVICE_AT, KIB, s);
        status = hipErrorInvalidValue;
        failed = copy(hipMemcpyDeviceToDevice, DEVICE_AT, 0, 16, s);
        error_read(hipErrorInvalidValue, failed);
        launch_reads("r", DEVICE_AT, KIB, s);
        sync_device(0);
        free_at(DEVICE_AT);
    }
}

/* ---- taking them apart ----------------------------------------------------------------------- */

static bool finds_something(char *answer, size_t room) {
    struct err e = { 0 };
    R = open_reader();
    if (verdict_open(&V, R, &options, &e) != RC_OK)
        fail_msg("%s", e.msg);
    bool found = V->finding_count != 0;
    snprintf(answer, room, "%s", V->answer);
    verdict_close(&V);
    reader_close(&R);
    return found;
}

static void check_variants(void (*program)(void), bool is_clean) {
    struct torn t;
    char answer[400];
    program();
    record_close(&W);
    if (is_clean && finds_something(answer, sizeof answer))
        fail_msg("the whole recording: %s", answer);
    assert_true(torn_open(&t, record_file));
    for (uint64_t i = 0; i < VARIANTS; i++) {
        torn_take(&t, i);
        if (finds_something(answer, sizeof answer)) {
            torn_close(&t);
            fail_msg("variant %d: %s", (int)i, answer);
        }
        torn_restore(&t);
    }
    for (uint64_t i = 0; i < t.slots; i++) { /* each one alone */
        torn_out(&t, i);
        if (finds_something(answer, sizeof answer)) {
            torn_close(&t);
            fail_msg("without slot %d: %s", (int)i, answer);
        }
        torn_restore(&t);
    }
    torn_close(&t);
}

static void torn_buffers_are_no_bugs(void **state) {
    (void)state;
    check_variants(buffers_again_and_again, true);
}

static void torn_streams_are_no_bugs(void **state) {
    (void)state;
    check_variants(streams_and_events, true);
}

static void torn_pools_are_no_bugs(void **state) {
    (void)state;
    check_variants(pools_and_rows, true);
}

static void torn_graphs_are_no_bugs(void **state) {
    (void)state;
    check_variants(graphs, true);
}

/* That the copy failed is a finding of its own (a null pointer), also in the whole recording; but
 * no other may come of what is missing. */
static void torn_failures_are_no_other_bugs(void **state) {
    struct torn t;
    (void)state;
    handled_errors();
    record_close(&W);
    assert_true(torn_open(&t, record_file));
    for (uint64_t i = 0; i < VARIANTS; i++) {
        struct err e = { 0 };
        torn_take(&t, i);
        R = open_reader();
        assert_int_equal(verdict_open(&V, R, &options, &e), RC_OK);
        for (size_t k = 0; k < V->finding_count; k++)
            assert_int_equal(V->findings[k].hypothesis, HYPOTHESIS_INVALID_POINTER);
        verdict_close(&V);
        reader_close(&R);
        torn_restore(&t);
    }
    torn_close(&t);
}

/* The test can fail: without its synchronisation the program is wrong, and is found to be. */
static void what_is_wrong_is_found_where_nothing_is_missing(void **state) {
    (void)state;
    uint32_t a = nonblocking(), b = nonblocking();
    alloc(DEVICE_AT, KIB);
    set(DEVICE_AT, KIB, a);
    uint64_t second = set(DEVICE_AT, KIB, b);
    record_close(&W);
    struct torn t;
    char answer[400];
    assert_true(torn_open(&t, record_file));
    assert_true(finds_something(answer, sizeof answer));
    torn_out(&t, second - 1);
    assert_false(finds_something(answer, sizeof answer));
    torn_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        verdict_test(torn_buffers_are_no_bugs),
        verdict_test(torn_streams_are_no_bugs),
        verdict_test(torn_pools_are_no_bugs),
        verdict_test(torn_graphs_are_no_bugs),
        verdict_test(torn_failures_are_no_other_bugs),
        verdict_test(what_is_wrong_is_found_where_nothing_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
