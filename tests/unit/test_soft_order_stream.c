/* The order of streams: one test per rule, under every schedule. */
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/soft_fixture.h"

enum { SLOW = 300 }; /* microseconds */

/* ---- one stream ---------------------------------------------------------------------------- */

static bool fold_forty_times(void) {
    hipStream_t s = soft_free_stream();
    int *x = soft_device_ints(2), *out = soft_pinned_ints(1);
    unsigned expected = 0;
    for (int i = 1; i <= 40; i++) {
        soft_fold(s, x, 3, i);
        expected = expected * 3 + (unsigned)i;
        if (i % 8 == 0) { /* over the other int and back, by copies */
            OK(hip->hipMemcpyAsync(x + 1, x, sizeof *x, hipMemcpyDeviceToDevice, s));
            OK(hip->hipMemsetAsync(x, 0xff, sizeof *x, s));
            OK(hip->hipMemcpyAsync(x, x + 1, sizeof *x, hipMemcpyDeviceToDevice, s));
        }
    }
    OK(hip->hipMemcpyAsync(out, x, sizeof *x, hipMemcpyDeviceToHost, s));
    OK(hip->hipStreamSynchronize(s));
    return *out == (int)expected;
}

static void work_in_one_stream_runs_in_order(void **state) {
    (void)state;
    soft_right(fold_forty_times);
}

/* ---- two streams --------------------------------------------------------------------------- */

static bool finish_one_while_the_other_is_stopped(void) {
    hipStream_t stopped = soft_blocking_stream(), other = soft_blocking_stream();
    int *x = soft_device_ints(1);
    struct soft_gate gate = { 0 };
    soft_gate_close(&gate, stopped);
    soft_store(other, x, 7, 0);
    OK(hip->hipStreamSynchronize(other));
    MUST(!atomic_load(&gate.open));
    bool right = soft_peek(x) == 7;
    soft_gate_open(&gate);
    OK(hip->hipStreamSynchronize(stopped));
    return right;
}

static bool read_in_another_stream(void) {
    hipStream_t a = soft_blocking_stream(), b = soft_blocking_stream();
    int *x = soft_device_ints(2);
    soft_store(a, x, 7, SLOW);
    soft_move(b, x + 1, x, 0);
    OK(hip->hipStreamSynchronize(b));
    return soft_peek(x + 1) == 7;
}

static void streams_do_not_wait_for_each_other(void **state) {
    (void)state;
    soft_right_waiting(finish_one_while_the_other_is_stopped);
    soft_wrong(read_in_another_stream);
}

/* ---- the legacy default stream ------------------------------------------------------------- */

static bool default_stream_after(unsigned flags) {
    hipStream_t s = soft_stream(flags);
    int *x = soft_device_ints(2);
    soft_store(s, x, 7, SLOW);
    soft_move(NULL, x + 1, x, 0);
    /* Waiting for the default stream's last work and no more: an event in a free stream. */
    hipStream_t watch = soft_free_stream();
    hipEvent_t done = soft_event();
    OK(hip->hipEventRecord(done, NULL));
    OK(hip->hipStreamWaitEvent(watch, done, 0));
    OK(hip->hipStreamSynchronize(watch));
    return soft_peek(x + 1) == 7;
}
static bool default_stream_after_blocking(void) {
    return default_stream_after(hipStreamDefault);
}
static bool default_stream_after_free(void) {
    return default_stream_after(hipStreamNonBlocking);
}

static void the_default_stream_waits_for_blocking_streams(void **state) {
    (void)state;
    soft_right(default_stream_after_blocking);
    soft_wrong(default_stream_after_free);
}

static bool stream_after_default(unsigned flags, hipStream_t first) {
    hipStream_t s = soft_stream(flags);
    int *x = soft_device_ints(2);
    soft_store(first, x, 7, SLOW);
    soft_move(s, x + 1, x, 0);
    OK(hip->hipStreamSynchronize(s));
    return soft_peek(x + 1) == 7;
}
static bool blocking_after_default(void) {
    return stream_after_default(hipStreamDefault, NULL);
}
static bool blocking_after_legacy_handle(void) {
    return stream_after_default(hipStreamDefault, hipStreamLegacy);
}
static bool free_after_default(void) {
    return stream_after_default(hipStreamNonBlocking, NULL);
}

static void blocking_streams_wait_for_the_default_stream(void **state) {
    (void)state;
    soft_right(blocking_after_default);
    soft_right(blocking_after_legacy_handle);
    soft_wrong(free_after_default);
}

static bool through_the_default_stream(void) {
    enum { STREAMS = 6 };
    hipStream_t s[STREAMS];
    int *x = soft_device_ints(STREAMS + 1);
    for (int i = 0; i < STREAMS; i++)
        s[i] = soft_blocking_stream();
    for (int i = 0; i < STREAMS; i++)
        soft_store(s[i], x + i, i + 1, SLOW / 4);
    for (int i = 0; i < STREAMS; i++)
        soft_fold(NULL, x + i, 10, 1);
    for (int i = 0; i < STREAMS; i++) /* each reads what another one has written */
        soft_fold(s[(i + 1) % STREAMS], x + i, 10, 2);
    OK(hip->hipStreamSynchronize(NULL));
    for (int i = 0; i < STREAMS; i++)
        if (soft_peek(x + i) != (i + 1) * 100 + 12)
            return false;
    return true;
}

static void the_default_stream_orders_all_blocking_streams(void **state) {
    (void)state;
    soft_right(through_the_default_stream);
}

static bool pass_the_stopped_default_stream(void) {
    hipStream_t s = soft_free_stream();
    int *x = soft_device_ints(1);
    struct soft_gate gate = { 0 };
    soft_gate_close(&gate, NULL);
    soft_store(s, x, 7, 0);
    OK(hip->hipStreamSynchronize(s));
    bool right = soft_peek(x) == 7;
    soft_gate_open(&gate);
    OK(hip->hipDeviceSynchronize());
    return right;
}

static bool default_stream_passes_the_stopped_free_one(void) {
    hipStream_t s = soft_free_stream();
    int *x = soft_device_ints(1);
    struct soft_gate gate = { 0 };
    soft_gate_close(&gate, s);
    soft_store(NULL, x, 7, 0);
    OK(hip->hipStreamSynchronize(NULL));
    bool right = soft_peek(x) == 7;
    soft_gate_open(&gate);
    OK(hip->hipDeviceSynchronize());
    return right;
}

static void non_blocking_streams_and_the_default_stream_ignore_each_other(void **state) {
    (void)state;
    soft_right_waiting(pass_the_stopped_default_stream);
    soft_right_waiting(default_stream_passes_the_stopped_free_one);
}

/* ---- per-thread default streams ------------------------------------------------------------ */

static int *shared;

static void *store_in_own_stream(void *unused) {
    (void)unused;
    soft_store(hipStreamPerThread, shared, 7, SLOW);
    return NULL;
}

static void in_another_thread(void *(*main)(void *), void *argument) {
    pthread_t t;
    MUST(pthread_create(&t, NULL, main, argument) == 0);
    MUST(pthread_join(t, NULL) == 0);
}

static bool per_thread_then_legacy(void) {
    shared = soft_device_ints(2);
    in_another_thread(store_in_own_stream, NULL); /* the thread ends, its work stays */
    soft_move(NULL, shared + 1, shared, 0);
    OK(hip->hipStreamSynchronize(NULL));
    return soft_peek(shared + 1) == 7;
}

static bool legacy_then_per_thread(void) {
    shared = soft_device_ints(2);
    soft_store(NULL, shared, 7, SLOW);
    soft_move(hipStreamPerThread, shared + 1, shared, 0);
    OK(hip->hipStreamSynchronize(hipStreamPerThread));
    return soft_peek(shared + 1) == 7;
}

static bool two_per_thread_streams(void) {
    shared = soft_device_ints(2);
    in_another_thread(store_in_own_stream, NULL);
    soft_move(hipStreamPerThread, shared + 1, shared, 0);
    OK(hip->hipStreamSynchronize(hipStreamPerThread));
    return soft_peek(shared + 1) == 7;
}

static void per_thread_default_streams_are_blocking(void **state) {
    (void)state;
    soft_right(per_thread_then_legacy);
    soft_right(legacy_then_per_thread);
    soft_wrong(two_per_thread_streams);
}

static void *wait_for_own_stream(void *unused) {
    (void)unused;
    soft_store(hipStreamPerThread, shared, 7, 0);
    OK(hip->hipStreamSynchronize(hipStreamPerThread));
    return NULL;
}

static bool own_stream_is_not_stopped(void) {
    struct soft_gate gate = { 0 };
    shared = soft_device_ints(1);
    soft_gate_close(&gate, hipStreamPerThread);
    in_another_thread(wait_for_own_stream, NULL);
    bool right = soft_peek(shared) == 7;
    soft_gate_open(&gate);
    OK(hip->hipStreamSynchronize(hipStreamPerThread));
    return right;
}

/* What programs compiled with per-thread default streams call. */
static bool spt_functions_use_the_own_stream(void) {
    int value = 5, back = 0;
    struct soft_gate gate = { 0 };
    shared = soft_device_ints(1);
    OK(hip->hipMemcpy_spt(shared, &value, sizeof value, hipMemcpyHostToDevice));
    OK(hip->hipMemcpyAsync_spt(&back, shared, sizeof back, hipMemcpyDeviceToHost, NULL));
    MUST(back == 5);
    soft_gate_close(&gate, hipStreamPerThread);
    FAILS(hipErrorNotReady, hip->hipStreamQuery_spt(NULL));
    soft_gate_open(&gate);
    OK(hip->hipStreamSynchronize_spt(NULL));
    OK(hip->hipStreamQuery_spt(NULL));
    return true;
}

static void every_thread_has_its_own_per_thread_stream(void **state) {
    (void)state;
    soft_right_waiting(own_stream_is_not_stopped);
    soft_right_waiting(spt_functions_use_the_own_stream);
}

/* ---- waiting ------------------------------------------------------------------------------- */

static bool synchronize_default_after(unsigned flags) {
    hipStream_t s = soft_stream(flags);
    int *out = soft_pinned_ints(1);
    soft_store(s, out, 7, SLOW);
    OK(hip->hipStreamSynchronize(NULL));
    return soft_racy_load(out) == 7;
}
static bool synchronize_default_after_blocking(void) {
    return synchronize_default_after(hipStreamDefault);
}
static bool synchronize_default_after_free(void) {
    return synchronize_default_after(hipStreamNonBlocking);
}

static void waiting_for_the_default_stream_waits_for_blocking_streams(void **state) {
    (void)state;
    soft_right(synchronize_default_after_blocking);
    soft_wrong(synchronize_default_after_free);
}

static bool synchronize_the_device(void) {
    int *out = soft_pinned_ints(4);
    soft_store(soft_blocking_stream(), out, 1, SLOW);
    soft_store(soft_free_stream(), out + 1, 2, SLOW);
    soft_store(hipStreamPerThread, out + 2, 3, SLOW);
    soft_store(NULL, out + 3, 4, SLOW);
    OK(hip->hipDeviceSynchronize());
    return out[0] == 1 && out[1] == 2 && out[2] == 3 && out[3] == 4;
}

static bool synchronize_one_device_of_two(void) {
    int *out = soft_pinned_ints(1);
    struct soft_gate gate = { 0 };
    OK(hip->hipSetDevice(1));
    soft_gate_close(&gate, soft_free_stream());
    OK(hip->hipSetDevice(0));
    soft_store(soft_free_stream(), out, 7, SLOW);
    OK(hip->hipDeviceSynchronize());
    bool right = *out == 7;
    soft_gate_open(&gate);
    OK(hip->hipSetDevice(1));
    OK(hip->hipDeviceSynchronize());
    return right;
}

static bool synchronize_the_wrong_device(void) {
    int *out = soft_pinned_ints(1);
    OK(hip->hipSetDevice(1));
    soft_store(NULL, out, 7, SLOW);
    OK(hip->hipSetDevice(0));
    OK(hip->hipDeviceSynchronize());
    return soft_racy_load(out) == 7;
}

static void waiting_for_a_device_waits_for_all_its_streams_and_no_others(void **state) {
    (void)state;
    soft_right(synchronize_the_device);
    soft_right_with(synchronize_one_device_of_two, "GRETA_SOFT_DEVICES=2", SOFT_JOBS_WAITING);
    soft_wrong_with(synchronize_the_wrong_device, "GRETA_SOFT_DEVICES=2");
}

/* The default stream of one device does not order the blocking streams of another. */
static bool default_stream_of_the_other_device(void) {
    struct soft_gate gate = { 0 };
    int *out = soft_pinned_ints(1);
    OK(hip->hipSetDevice(1));
    soft_gate_close(&gate, NULL);
    OK(hip->hipSetDevice(0));
    hipStream_t s = soft_blocking_stream();
    soft_store(s, out, 7, 0);
    OK(hip->hipStreamSynchronize(s));
    OK(hip->hipStreamSynchronize(NULL));
    bool right = *out == 7;
    soft_gate_open(&gate);
    OK(hip->hipSetDevice(1));
    OK(hip->hipStreamSynchronize(NULL));
    return right;
}

static void default_streams_are_one_a_device(void **state) {
    (void)state;
    soft_right_with(default_stream_of_the_other_device, "GRETA_SOFT_DEVICES=2", SOFT_JOBS_WAITING);
}

/* ---- asking -------------------------------------------------------------------------------- */

static bool poll_stream(hipStream_t s) {
    int *out = soft_pinned_ints(1);
    soft_store(s, out, 7, SLOW);
    hipError_t r;
    while ((r = hip->hipStreamQuery(s)) == hipErrorNotReady)
        ;
    OK(r);
    MUST(hip->hipPeekAtLastError() == hipSuccess); /* not ready is no error to remember */
    return *out == 7;
}
static bool poll_a_stream(void) {
    return poll_stream(soft_free_stream());
}
static bool poll_the_default_stream(void) {
    return poll_stream(NULL);
}

static bool query_says_not_ready(void) {
    hipStream_t s = soft_free_stream();
    struct soft_gate gate = { 0 };
    OK(hip->hipStreamQuery(s));
    soft_gate_close(&gate, s);
    for (int i = 0; i < 100; i++)
        FAILS(hipErrorNotReady, hip->hipStreamQuery(s));
    soft_gate_open(&gate);
    OK(hip->hipStreamSynchronize(s));
    OK(hip->hipStreamQuery(s));
    return true;
}

static bool query_of_the_default_stream_covers_blocking_streams(void) {
    hipStream_t s = soft_blocking_stream();
    int *out = soft_pinned_ints(1);
    struct soft_gate gate = { 0 };
    soft_gate_close(&gate, s);
    soft_store(s, out, 7, 0);
    for (int i = 0; i < 20; i++)
        FAILS(hipErrorNotReady, hip->hipStreamQuery(NULL));
    soft_gate_open(&gate);
    hipError_t r;
    while ((r = hip->hipStreamQuery(NULL)) == hipErrorNotReady)
        ;
    OK(r);
    return *out == 7;
}

static void polling_a_stream_makes_progress(void **state) {
    (void)state;
    soft_right(poll_a_stream);
    soft_right(poll_the_default_stream);
    soft_right_waiting(query_says_not_ready);
    soft_right_waiting(query_of_the_default_stream_covers_blocking_streams);
}

/* ---- creation and destruction -------------------------------------------------------------- */

static bool destroy_with_work(void) {
    hipStream_t s = soft_free_stream();
    int *out = soft_pinned_ints(2);
    for (int i = 1; i <= 20; i++)
        soft_store(s, out, i, 20);
    soft_move(s, out + 1, out, 0);
    OK(hip->hipStreamDestroy(s));
    FAILS(hipErrorContextIsDestroyed, hip->hipStreamSynchronize(s));
    FAILS(hipErrorContextIsDestroyed, hip->hipStreamDestroy(s));
    OK(hip->hipDeviceSynchronize());
    return out[1] == 20;
}

static void a_destroyed_stream_finishes_its_work(void **state) {
    (void)state;
    soft_right(destroy_with_work);
}

static bool use_and_destroy_many(void) {
    enum { COUNT = 2500, KEPT = 50 };
    hipStream_t s[KEPT];
    hipEvent_t e[KEPT];
    int *sum = soft_device_ints(1);
    for (int i = 0; i < COUNT; i++) {
        hipStream_t *at = &s[i % KEPT];
        hipEvent_t *done = &e[i % KEPT];
        if (i >= KEPT) {
            OK(hip->hipStreamDestroy(*at));
            OK(hip->hipEventDestroy(*done));
        }
        *at = soft_free_stream();
        *done = soft_event();
        if (i % 25)
            continue;
        /* A chain: each adds one after the one before it has. */
        if (i)
            OK(hip->hipStreamWaitEvent(*at, e[(i - 25) % KEPT], 0));
        soft_fold(*at, sum, 1, 1);
        OK(hip->hipEventRecord(*done, *at));
    }
    OK(hip->hipDeviceSynchronize());
    return soft_peek(sum) == COUNT / 25;
}

static void streams_and_events_can_be_made_for_ever(void **state) {
    (void)state;
    soft_right(use_and_destroy_many);
}

/* Handles are taken again after 1024 others: here, while the records of the events that had them
 * are being reached. What others still look at must hold then, which ThreadSanitizer checks. */
static bool reuse_while_records_are_reached(void) {
    enum { COUNT = 1500 };
    hipStream_t s = soft_free_stream(), t = soft_free_stream();
    struct soft_gate gate = { 0 };
    soft_gate_close(&gate, s);
    for (int i = 0; i < COUNT; i++) {
        hipEvent_t e = soft_event();
        OK(hip->hipEventRecord(e, s));
        OK(hip->hipStreamWaitEvent(t, e, 0));
        OK(hip->hipEventDestroy(e));
    }
    soft_gate_open(&gate);
    for (int i = 0; i < COUNT; i++) {
        hipEvent_t e = soft_event();
        FAILS(hipErrorInvalidHandle, hip->hipEventElapsedTime(&(float){ 0 }, e, e));
        OK(hip->hipEventDestroy(e));
        OK(hip->hipStreamDestroy(soft_free_stream()));
    }
    OK(hip->hipDeviceSynchronize());
    return true;
}

static void handles_are_reused_while_records_are_reached(void **state) {
    (void)state;
    soft_expect(reuse_while_records_are_reached, "GRETA_SOFT_SCHEDULE=fast");
    soft_expect(reuse_while_records_are_reached, "GRETA_SOFT_SCHEDULE=lazy");
}

static bool priorities_are_kept(void) {
    int low, high, found;
    hipStream_t s;
    int *sum = soft_pinned_ints(5);
    OK(hip->hipDeviceGetStreamPriorityRange(&low, &high));
    MUST(low > high);
    for (int p = high; p <= low; p++) {
        OK(hip->hipStreamCreateWithPriority(&s, hipStreamNonBlocking, p));
        OK(hip->hipStreamGetPriority(s, &found));
        MUST(found == p);
        soft_store(s, sum + p - high, 1, 20);
    }
    OK(hip->hipStreamCreateWithPriority(&s, hipStreamDefault, high - 100));
    OK(hip->hipStreamGetPriority(s, &found));
    MUST(found == high);
    OK(hip->hipStreamCreateWithPriority(&s, hipStreamDefault, low + 100));
    OK(hip->hipStreamGetPriority(s, &found));
    MUST(found == low);
    FAILS(hipErrorInvalidValue, hip->hipStreamCreateWithPriority(&s, 0x80, 0));
    FAILS(hipErrorInvalidValue, hip->hipStreamCreate(NULL));
    OK(hip->hipDeviceSynchronize());
    for (int p = high; p <= low; p++)
        MUST(sum[p - high] == 1);
    return true;
}

static void priorities_are_accepted_and_clamped(void **state) {
    (void)state;
    soft_right(priorities_are_kept);
}

static bool handles_are_checked(void) {
    unsigned flags;
    int device, on_stack;
    hipStream_t bad[] = { (hipStream_t)0x1000, (hipStream_t)&on_stack,
                          (hipStream_t)((char *)soft_free_stream() + 8) };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        MUST(hip->hipStreamSynchronize(bad[i]) != hipSuccess);
        MUST(hip->hipStreamQuery(bad[i]) != hipSuccess);
        MUST(hip->hipStreamDestroy(bad[i]) != hipSuccess);
        MUST(hip->hipMemsetAsync(soft_device_ints(1), 0, 4, bad[i]) != hipSuccess);
        MUST(soft_touch_call(bad[i], soft_device_ints(1), 0, true) != hipSuccess);
    }
    MUST(hip->hipStreamDestroy(NULL) != hipSuccess);
    MUST(hip->hipStreamDestroy(hipStreamPerThread) != hipSuccess);
    OK(hip->hipStreamGetFlags(soft_free_stream(), &flags));
    MUST(flags == hipStreamNonBlocking);
    FAILS(hipErrorInvalidValue, hip->hipStreamGetFlags(NULL, &flags));
    OK(hip->hipStreamGetDevice(soft_free_stream(), &device));
    MUST(device == 0);
    return true;
}

static void foreign_handles_are_refused(void **state) {
    (void)state;
    soft_expect(handles_are_checked, NULL);
}

/* ---- threads ------------------------------------------------------------------------------- */

static void *hammer(void *number) {
    int seed = (int)(intptr_t)number;
    hipStream_t s = soft_stream(seed % 2 ? hipStreamDefault : hipStreamNonBlocking);
    int *x = soft_device_ints(1), back;
    unsigned expected = 0;
    for (int i = 0; i < 60; i++) {
        soft_fold(s, x, 5, seed + i);
        expected = expected * 5 + (unsigned)(seed + i);
        if (i % 10 == 9) {
            OK(hip->hipMemcpyAsync(&back, x, sizeof back, hipMemcpyDeviceToHost, s));
            MUST(back == (int)expected);
        }
    }
    OK(hip->hipStreamSynchronize(s));
    OK(hip->hipStreamDestroy(s));
    OK(hip->hipFree(x));
    return NULL;
}

static bool eight_threads(void) {
    pthread_t t[8];
    for (intptr_t i = 0; i < 8; i++)
        MUST(pthread_create(&t[i], NULL, hammer, (void *)i) == 0);
    for (int i = 0; i < 8; i++)
        MUST(pthread_join(t[i], NULL) == 0);
    return true;
}

static void eight_threads_use_their_own_streams(void **state) {
    (void)state;
    soft_right(eight_threads);
}

/* ---- the end ------------------------------------------------------------------------------- */

static bool leave_with_work_queued(void) {
    int *x = soft_device_ints(1);
    for (int i = 0; i < 50; i++)
        soft_store(soft_free_stream(), x, i, 100);
    exit(0);
}

static void a_program_may_end_with_work_queued(void **state) {
    (void)state;
    soft_right(leave_with_work_queued);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_in_one_stream_runs_in_order),
        cmocka_unit_test(streams_do_not_wait_for_each_other),
        cmocka_unit_test(the_default_stream_waits_for_blocking_streams),
        cmocka_unit_test(blocking_streams_wait_for_the_default_stream),
        cmocka_unit_test(the_default_stream_orders_all_blocking_streams),
        cmocka_unit_test(non_blocking_streams_and_the_default_stream_ignore_each_other),
        cmocka_unit_test(per_thread_default_streams_are_blocking),
        cmocka_unit_test(every_thread_has_its_own_per_thread_stream),
        cmocka_unit_test(waiting_for_the_default_stream_waits_for_blocking_streams),
        cmocka_unit_test(waiting_for_a_device_waits_for_all_its_streams_and_no_others),
        cmocka_unit_test(default_streams_are_one_a_device),
        cmocka_unit_test(polling_a_stream_makes_progress),
        cmocka_unit_test(a_destroyed_stream_finishes_its_work),
        cmocka_unit_test(streams_and_events_can_be_made_for_ever),
        cmocka_unit_test(handles_are_reused_while_records_are_reached),
        cmocka_unit_test(priorities_are_accepted_and_clamped),
        cmocka_unit_test(foreign_handles_are_refused),
        cmocka_unit_test(eight_threads_use_their_own_streams),
        cmocka_unit_test(a_program_may_end_with_work_queued),
    };
    return cmocka_run_group_tests_name("soft_order_stream", tests, soft_fixture_load, NULL);
}
