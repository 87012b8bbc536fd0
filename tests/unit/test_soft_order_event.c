/* The order that events make: one test per rule, under every schedule. */
#include "test.h"

#include <stdatomic.h>

#include "support/soft_fixture.h"

enum { SLOW = 300 }; /* microseconds */

/* ---- hipStreamWaitEvent -------------------------------------------------------------------- */

/* b reads what a writes; the wait is left out on purpose or not. */
static bool read_across(hipStream_t a, hipStream_t b, hipEvent_t e, bool wait) {
    int *x = soft_device_ints(2);
    soft_store(a, x, 7, SLOW);
    OK(hip->hipEventRecord(e, a));
    if (wait)
        OK(hip->hipStreamWaitEvent(b, e, 0));
    soft_move(b, x + 1, x, 0);
    OK(hip->hipStreamSynchronize(b));
    return soft_peek(x + 1) == 7;
}
static bool read_after_event(void) {
    return read_across(soft_free_stream(), soft_free_stream(), soft_event(), true);
}
static bool read_without_event(void) {
    return read_across(soft_free_stream(), soft_free_stream(), soft_event(), false);
}
static bool read_after_event_without_timing(void) {
    hipEvent_t e;
    OK(hip->hipEventCreateWithFlags(&e, hipEventDisableTiming));
    return read_across(soft_free_stream(), soft_blocking_stream(), e, true);
}

static void a_stream_waits_for_an_event(void **state) {
    (void)state;
    soft_right(read_after_event);
    soft_right(read_after_event_without_timing);
    soft_wrong(read_without_event);
}

static bool across_devices(bool wait) {
    hipStream_t a = soft_free_stream();
    hipEvent_t e = soft_event();
    OK(hip->hipSetDevice(1));
    hipStream_t b = soft_free_stream();
    OK(hip->hipSetDevice(0));
    return read_across(a, b, e, wait);
}
static bool read_after_event_of_another_device(void) {
    return across_devices(true);
}
static bool read_from_another_device_without_event(void) {
    return across_devices(false);
}

static bool an_event_belongs_to_its_device(void) {
    hipEvent_t e = soft_event();
    OK(hip->hipSetDevice(1));
    FAILS(hipErrorInvalidHandle, hip->hipEventRecord(e, soft_free_stream()));
    return true;
}

static void a_stream_waits_for_an_event_of_another_device(void **state) {
    (void)state;
    soft_right_with(read_after_event_of_another_device, "GRETA_SOFT_DEVICES=2", SOFT_JOBS);
    soft_wrong_with(read_from_another_device_without_event, "GRETA_SOFT_DEVICES=2");
    soft_expect(an_event_belongs_to_its_device, "GRETA_SOFT_DEVICES=2");
}

/* Sixteen streams, each waits for the one before it: the whole is one line of work. */
static bool chain_of_events(void) {
    enum { STREAMS = 16 };
    hipEvent_t e = NULL;
    int *x = soft_device_ints(1);
    unsigned expected = 0;
    hipStream_t s = NULL;
    for (int i = 0; i < STREAMS; i++) {
        s = soft_free_stream();
        if (e)
            OK(hip->hipStreamWaitEvent(s, e, 0));
        soft_fold(s, x, 3, i);
        expected = expected * 3 + (unsigned)i;
        e = soft_event();
        OK(hip->hipEventRecord(e, s));
    }
    OK(hip->hipStreamSynchronize(s));
    return soft_peek(x) == (int)expected;
}

/* One waits for many. */
static bool join_of_events(void) {
    enum { STREAMS = 12 };
    int *x = soft_device_ints(STREAMS), *sum = soft_device_ints(STREAMS);
    hipStream_t last = soft_free_stream();
    for (int i = 0; i < STREAMS; i++) {
        hipStream_t s = soft_free_stream();
        hipEvent_t e = soft_event();
        soft_store(s, x + i, i + 1, 50);
        OK(hip->hipEventRecord(e, s));
        OK(hip->hipStreamWaitEvent(last, e, 0));
        OK(hip->hipEventDestroy(e));
    }
    for (int i = 0; i < STREAMS; i++)
        soft_move(last, sum + i, x + i, 0);
    OK(hip->hipStreamSynchronize(last));
    for (int i = 0; i < STREAMS; i++)
        if (soft_peek(sum + i) != i + 1)
            return false;
    return true;
}

static void events_make_chains_and_joins(void **state) {
    (void)state;
    soft_right(chain_of_events);
    soft_right(join_of_events);
}

/* ---- recording again ----------------------------------------------------------------------- */

static bool wait_then_record_again(void) {
    hipStream_t a = soft_free_stream(), b = soft_free_stream();
    hipEvent_t e = soft_event();
    int *x = soft_device_ints(2);
    struct soft_gate gate = { 0 };
    soft_store(a, x, 7, SLOW);
    OK(hip->hipEventRecord(e, a));
    OK(hip->hipStreamWaitEvent(b, e, 0));
    soft_gate_close(&gate, a);
    OK(hip->hipEventRecord(e, a)); /* b waits for the first record, not for this one */
    soft_move(b, x + 1, x, 0);
    OK(hip->hipStreamSynchronize(b));
    bool right = soft_peek(x + 1) == 7;
    FAILS(hipErrorNotReady, hip->hipEventQuery(e));
    soft_gate_open(&gate);
    OK(hip->hipEventSynchronize(e));
    OK(hip->hipEventQuery(e));
    return right;
}

static bool hope_that_the_wait_covers_a_later_record(void) {
    hipStream_t a = soft_free_stream(), b = soft_free_stream();
    hipEvent_t e = soft_event();
    int *x = soft_device_ints(2);
    OK(hip->hipEventRecord(e, a));
    OK(hip->hipStreamWaitEvent(b, e, 0));
    soft_store(a, x, 7, SLOW);
    OK(hip->hipEventRecord(e, a));
    soft_move(b, x + 1, x, 0);
    OK(hip->hipStreamSynchronize(b));
    return soft_peek(x + 1) == 7;
}

static void a_wait_is_for_the_record_at_the_time_of_the_call(void **state) {
    (void)state;
    soft_right_waiting(wait_then_record_again);
    soft_wrong(hope_that_the_wait_covers_a_later_record);
}

static bool wait_for_a_fresh_event(void) {
    hipStream_t a = soft_free_stream(), b = soft_free_stream();
    hipEvent_t e = soft_event();
    int *x = soft_device_ints(1);
    struct soft_gate gate = { 0 };
    float ms;
    OK(hip->hipEventQuery(e));
    OK(hip->hipEventSynchronize(e));
    FAILS(hipErrorInvalidHandle, hip->hipEventElapsedTime(&ms, e, e));
    OK(hip->hipStreamWaitEvent(b, e, 0));
    soft_gate_close(&gate, a);
    OK(hip->hipEventRecord(e, a)); /* after the wait: does not count for it */
    soft_store(b, x, 7, 0);
    OK(hip->hipStreamSynchronize(b));
    bool right = soft_peek(x) == 7;
    soft_gate_open(&gate);
    OK(hip->hipEventSynchronize(e));
    return right;
}

static bool wait_before_the_record(void) {
    hipStream_t a = soft_free_stream(), b = soft_free_stream();
    hipEvent_t e = soft_event();
    int *x = soft_device_ints(2);
    OK(hip->hipStreamWaitEvent(b, e, 0));
    soft_store(a, x, 7, SLOW);
    OK(hip->hipEventRecord(e, a));
    soft_move(b, x + 1, x, 0);
    OK(hip->hipStreamSynchronize(b));
    return soft_peek(x + 1) == 7;
}

static void an_event_that_was_never_recorded_counts_as_done(void **state) {
    (void)state;
    soft_right_waiting(wait_for_a_fresh_event);
    soft_wrong(wait_before_the_record);
}

/* ---- the default stream -------------------------------------------------------------------- */

static bool event_in_the_default_stream(unsigned flags) {
    hipStream_t a = soft_stream(flags), b = soft_free_stream();
    hipEvent_t e = soft_event();
    int *x = soft_device_ints(2);
    soft_store(a, x, 7, SLOW);
    OK(hip->hipEventRecord(e, NULL));
    OK(hip->hipStreamWaitEvent(b, e, 0));
    soft_move(b, x + 1, x, 0);
    OK(hip->hipStreamSynchronize(b));
    return soft_peek(x + 1) == 7;
}
static bool event_behind_a_blocking_stream(void) {
    return event_in_the_default_stream(hipStreamDefault);
}
static bool event_behind_a_free_stream(void) {
    return event_in_the_default_stream(hipStreamNonBlocking);
}

/* A wait in the default stream holds back what blocking streams get after it. */
static bool wait_in_the_default_stream(void) {
    hipStream_t a = soft_free_stream(), b = soft_blocking_stream();
    hipEvent_t e = soft_event();
    int *x = soft_device_ints(2);
    soft_store(a, x, 7, SLOW);
    OK(hip->hipEventRecord(e, a));
    OK(hip->hipStreamWaitEvent(NULL, e, 0));
    soft_move(b, x + 1, x, 0);
    OK(hip->hipStreamSynchronize(b));
    return soft_peek(x + 1) == 7;
}

static void events_in_the_default_stream_cover_blocking_streams(void **state) {
    (void)state;
    soft_right(event_behind_a_blocking_stream);
    soft_right(wait_in_the_default_stream);
    soft_wrong(event_behind_a_free_stream);
}

/* ---- the host ------------------------------------------------------------------------------ */

static bool synchronize_with_the_middle(void) {
    hipStream_t s = soft_free_stream();
    hipEvent_t e = soft_event();
    int *out = soft_pinned_ints(1);
    struct soft_gate gate = { 0 };
    soft_store(s, out, 7, SLOW);
    OK(hip->hipEventRecord(e, s));
    soft_gate_close(&gate, s);
    OK(hip->hipEventSynchronize(e)); /* what comes after the event does not matter */
    bool right = *out == 7;
    FAILS(hipErrorNotReady, hip->hipStreamQuery(s));
    soft_gate_open(&gate);
    OK(hip->hipStreamSynchronize(s));
    return right;
}

static bool record_too_early(void) {
    hipStream_t s = soft_free_stream();
    hipEvent_t e = soft_event();
    int *out = soft_pinned_ints(1);
    OK(hip->hipEventRecord(e, s));
    soft_store(s, out, 7, SLOW);
    OK(hip->hipEventSynchronize(e));
    return soft_racy_load(out) == 7;
}

static void the_host_waits_for_what_stands_before_an_event(void **state) {
    (void)state;
    soft_right_waiting(synchronize_with_the_middle);
    soft_wrong(record_too_early);
}

static bool poll_an_event(void) {
    hipStream_t s = soft_free_stream();
    hipEvent_t e = soft_event();
    int *out = soft_pinned_ints(1);
    soft_store(s, out, 7, SLOW);
    OK(hip->hipEventRecord(e, s));
    hipError_t r;
    while ((r = hip->hipEventQuery(e)) == hipErrorNotReady)
        ;
    OK(r);
    MUST(hip->hipPeekAtLastError() == hipSuccess);
    return *out == 7;
}

static void polling_an_event_makes_progress(void **state) {
    (void)state;
    soft_right(poll_an_event);
}

/* ---- time ---------------------------------------------------------------------------------- */

static bool measure_a_kernel(void) {
    hipStream_t s = soft_free_stream();
    hipEvent_t from = soft_event(), to = soft_event(), untimed;
    int *x = soft_device_ints(1);
    float ms = -1;
    struct soft_gate gate = { 0 };
    OK(hip->hipEventRecord(from, s));
    soft_store(s, x, 1, 2000);
    OK(hip->hipEventRecord(to, s));
    OK(hip->hipEventSynchronize(to));
    OK(hip->hipEventElapsedTime(&ms, from, to));
    MUST(ms >= 1.9f && ms < 60000);
    OK(hip->hipEventElapsedTime(&ms, from, from));
    MUST(ms == 0);
    OK(hip->hipEventElapsedTime(&ms, to, from));
    MUST(ms <= -1.9f);

    soft_gate_close(&gate, s);
    OK(hip->hipEventRecord(to, s));
    FAILS(hipErrorNotReady, hip->hipEventElapsedTime(&ms, from, to));
    OK(hip->hipEventCreateWithFlags(&untimed, hipEventDisableTiming));
    OK(hip->hipEventRecord(untimed, s));
    FAILS(hipErrorInvalidHandle, hip->hipEventElapsedTime(&ms, to, untimed));
    FAILS(hipErrorInvalidHandle, hip->hipEventElapsedTime(&ms, to, soft_event()));
    soft_gate_open(&gate);
    OK(hip->hipEventSynchronize(to));
    OK(hip->hipEventElapsedTime(&ms, from, to));
    OK(hip->hipStreamSynchronize(s));
    FAILS(hipErrorInvalidHandle, hip->hipEventElapsedTime(&ms, from, untimed));
    FAILS(hipErrorInvalidValue, hip->hipEventElapsedTime(NULL, from, to));
    return true;
}

static void elapsed_time_is_that_of_the_work_between(void **state) {
    (void)state;
    soft_right_waiting(measure_a_kernel);
}

/* ---- handles ------------------------------------------------------------------------------- */

static bool destroy_an_event_that_is_waited_for(void) {
    hipStream_t a = soft_free_stream(), b = soft_free_stream();
    hipEvent_t e = soft_event();
    int *x = soft_device_ints(2);
    soft_store(a, x, 7, SLOW);
    OK(hip->hipEventRecord(e, a));
    OK(hip->hipStreamWaitEvent(b, e, 0));
    OK(hip->hipEventDestroy(e));
    OK(hip->hipStreamDestroy(a));
    FAILS(hipErrorInvalidHandle, hip->hipEventQuery(e));
    FAILS(hipErrorContextIsDestroyed, hip->hipEventDestroy(e));
    FAILS(hipErrorInvalidHandle, hip->hipEventDestroy(NULL));
    soft_move(b, x + 1, x, 0);
    OK(hip->hipStreamSynchronize(b));
    return soft_peek(x + 1) == 7;
}

/* The record outlives its stream. */
static bool event_of_a_destroyed_stream(void) {
    hipStream_t s = soft_free_stream();
    hipEvent_t e = soft_event();
    int *out = soft_pinned_ints(1);
    soft_store(s, out, 7, SLOW);
    OK(hip->hipEventRecord(e, s));
    OK(hip->hipStreamDestroy(s));
    for (int i = 0; i < 1500; i++) /* enough for the stream's place to be used again */
        OK(hip->hipStreamDestroy(soft_free_stream()));
    OK(hip->hipEventSynchronize(e));
    return *out == 7;
}

static bool bad_arguments(void) {
    hipEvent_t e, bad = (hipEvent_t)&e;
    FAILS(hipErrorInvalidValue, hip->hipEventCreate(NULL));
    FAILS(hipErrorInvalidValue, hip->hipEventCreateWithFlags(&e, 0x1000));
    MUST(hip->hipEventRecord(bad, NULL) != hipSuccess);
    MUST(hip->hipEventRecord(NULL, NULL) != hipSuccess);
    MUST(hip->hipEventSynchronize(bad) != hipSuccess);
    MUST(hip->hipEventQuery(NULL) != hipSuccess);
    MUST(hip->hipEventDestroy(bad) != hipSuccess);
    MUST(hip->hipStreamWaitEvent(NULL, bad, 0) != hipSuccess);
    FAILS(hipErrorInvalidValue, hip->hipStreamWaitEvent(NULL, soft_event(), 0x80));
    FAILS(hipErrorInvalidHandle, hip->hipStreamWaitEvent((hipStream_t)&e, soft_event(), 0));
    (void)hip->hipGetLastError();
    FAILS(hipErrorInvalidValue, hip->hipEventCreateWithFlags(&bad, hipEventInterprocess));
    FAILS(hipErrorInvalidValue,
          hip->hipEventCreateWithFlags(&bad, hipEventReleaseToDevice | hipEventReleaseToSystem));
    FAILS(hipErrorInvalidValue, hip->hipGetLastError());
    OK(hip->hipGetLastError());
    return true;
}

static void events_may_be_destroyed_early(void **state) {
    (void)state;
    soft_right(destroy_an_event_that_is_waited_for);
    soft_right(event_of_a_destroyed_stream);
    soft_expect(bad_arguments, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_waits_for_an_event),
        cmocka_unit_test(a_stream_waits_for_an_event_of_another_device),
        cmocka_unit_test(events_make_chains_and_joins),
        cmocka_unit_test(a_wait_is_for_the_record_at_the_time_of_the_call),
        cmocka_unit_test(an_event_that_was_never_recorded_counts_as_done),
        cmocka_unit_test(events_in_the_default_stream_cover_blocking_streams),
        cmocka_unit_test(the_host_waits_for_what_stands_before_an_event),
        cmocka_unit_test(polling_an_event_makes_progress),
        cmocka_unit_test(elapsed_time_is_that_of_the_work_between),
        cmocka_unit_test(events_may_be_destroyed_early),
    };
    return cmocka_run_group_tests_name("soft_order_event", tests, soft_fixture_load, NULL);
}
