/* Device faults: which call reports one, what every later call says, and what ends it. */
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/soft_fixture.h"

/* What programs here work with; made before the fault. */
static struct {
    hipStream_t stream; /* blocking, so that the default stream waits for it */
    hipEvent_t event;
    int *device, *pinned, *registered;
} thing;

static void make_things(void) {
    thing.stream = soft_blocking_stream();
    thing.event = soft_event();
    thing.device = soft_device_ints(4);
    thing.pinned = soft_pinned_ints(4);
    thing.registered = calloc(4, sizeof(int));
    OK(hip->hipHostRegister(thing.registered, 4 * sizeof(int), hipHostRegisterDefault));
}

/* One byte behind a block. */
static void break_in(hipStream_t s) {
    soft_touch(s, thing.device, 4 * sizeof(int), true);
}

/* ---- calls that do not wait ---------------------------------------------------------------- */

static void ignore(void *unused) {
    (void)unused;
}

/* None of these may report the fault, though the device may have failed long ago. */
static void make_calls_that_do_not_wait(void) {
    int n;
    size_t free_bytes, total;
    void *p;
    hipStream_t s;
    hipEvent_t e;
    hipPointerAttribute_t attributes;
    OK(hip->hipGetLastError());
    OK(hip->hipPeekAtLastError());
    OK(hip->hipGetDeviceCount(&n));
    OK(hip->hipGetDevice(&n));
    OK(hip->hipSetDevice(0));
    OK(hip->hipDeviceGetAttribute(&n, hipDeviceAttributeWarpSize, 0));
    OK(hip->hipMemGetInfo(&free_bytes, &total));
    OK(hip->hipMalloc(&p, 100));
    OK(hip->hipHostMalloc(&p, 100, 0));
    OK(hip->hipMallocManaged(&p, 100, hipMemAttachGlobal));
    OK(hip->hipMallocAsync(&p, 100, thing.stream));
    OK(hip->hipFreeAsync(p, thing.stream));
    OK(hip->hipPointerGetAttributes(&attributes, thing.device));
    OK(hip->hipStreamCreate(&s));
    OK(hip->hipStreamDestroy(s));
    OK(hip->hipEventCreate(&e));
    OK(hip->hipEventRecord(e, thing.stream));
    OK(hip->hipStreamWaitEvent(thing.stream, e, 0));
    OK(hip->hipEventDestroy(e));
    OK(hip->hipMemsetAsync(thing.device, 0, 4, thing.stream));
    OK(hip->hipMemset(thing.device, 0, 4));
    OK(hip->hipMemcpy(thing.device + 1, thing.device, 4, hipMemcpyDeviceToDevice));
    OK(hip->hipMemcpyAsync(thing.pinned, thing.device, 4, hipMemcpyDeviceToHost, thing.stream));
    OK(hip->hipLaunchHostFunc(thing.stream, ignore, NULL));
    soft_nothing(thing.stream);
    soft_store(NULL, thing.device, 1, 0);
    OK(hip->hipEventRecord(thing.event, thing.stream));
    OK(hip->hipGetLastError());
}

/* ---- calls that report --------------------------------------------------------------------- */

static int pageable[4];

static hipError_t stream_query(void) {
    hipError_t r;
    while ((r = hip->hipStreamQuery(thing.stream)) == hipErrorNotReady)
        ;
    return r;
}
static hipError_t event_query(void) {
    hipError_t r;
    while ((r = hip->hipEventQuery(thing.event)) == hipErrorNotReady)
        ;
    return r;
}
static hipError_t copy_3d(void) {
    hipMemcpy3DParms p = { .srcPtr = { thing.device, 4, 4, 1 },
                           .dstPtr = { pageable, 4, 4, 1 },
                           .extent = { 4, 1, 1 },
                           .kind = hipMemcpyDeviceToHost };
    return hip->hipMemcpy3D(&p);
}

/* name, call */
#define REPORTERS(X)                                                                               \
    X(hipStreamSynchronize, hip->hipStreamSynchronize(thing.stream))                               \
    X(hipStreamSynchronize_default, hip->hipStreamSynchronize(NULL))                               \
    X(hipDeviceSynchronize, hip->hipDeviceSynchronize())                                           \
    X(hipCtxSynchronize, hip->hipCtxSynchronize())                                                 \
    X(hipEventSynchronize, hip->hipEventSynchronize(thing.event))                                  \
    X(hipStreamQuery, stream_query())                                                              \
    X(hipEventQuery, event_query())                                                                \
    X(hipMemcpy_D2H, hip->hipMemcpy(pageable, thing.device, 4, hipMemcpyDeviceToHost))             \
    X(hipMemcpy_H2D, hip->hipMemcpy(thing.device, pageable, 4, hipMemcpyHostToDevice))             \
    X(hipMemcpy_pinned, hip->hipMemcpy(thing.pinned, thing.device, 4, hipMemcpyDeviceToHost))      \
    X(hipMemcpyAsync_D2H_pageable,                                                                 \
      hip->hipMemcpyAsync(pageable, thing.device, 4, hipMemcpyDeviceToHost, thing.stream))         \
    X(hipMemcpyAsync_H2D_pageable,                                                                 \
      hip->hipMemcpyAsync(thing.device, pageable, 4, hipMemcpyHostToDevice, thing.stream))         \
    X(hipMemcpyWithStream, hip->hipMemcpyWithStream(thing.pinned, thing.device, 4,                 \
                                                    hipMemcpyDeviceToHost, thing.stream))          \
    X(hipMemcpyDtoH, hip->hipMemcpyDtoH(pageable, thing.device, 4))                                \
    X(hipMemcpyHtoD, hip->hipMemcpyHtoD(thing.device, pageable, 4))                                \
    X(hipMemcpy2D, hip->hipMemcpy2D(pageable, 4, thing.device, 4, 4, 2, hipMemcpyDeviceToHost))    \
    X(hipMemcpy3D, copy_3d())                                                                      \
    X(hipMemset_pinned, hip->hipMemset(thing.pinned, 0, 4))                                        \
    X(hipFree, hip->hipFree(thing.device))                                                         \
    X(hipHostFree, hip->hipHostFree(thing.pinned))                                                 \
    X(hipHostUnregister, hip->hipHostUnregister(thing.registered))

/* Everything says the same from the report on, in every thread. */
static void *expect_the_same_in_a_thread(void *unused) {
    int n;
    FAILS(hipErrorIllegalAddress, hip->hipGetDeviceCount(&n));
    FAILS(hipErrorIllegalAddress, hip->hipGetLastError());
    return unused;
}

static void expect_sticky(void) {
    int n;
    void *p;
    pthread_t t;
    for (int i = 0; i < 3; i++) {
        FAILS(hipErrorIllegalAddress, hip->hipGetLastError());
        FAILS(hipErrorIllegalAddress, hip->hipPeekAtLastError());
        FAILS(hipErrorIllegalAddress, hip->hipGetDeviceCount(&n));
        FAILS(hipErrorIllegalAddress, hip->hipMalloc(&p, 4));
        FAILS(hipErrorIllegalAddress, soft_touch_call(NULL, thing.device, 0, true));
        FAILS(hipErrorIllegalAddress, hip->hipDeviceSynchronize());
    }
    MUST(pthread_create(&t, NULL, expect_the_same_in_a_thread, NULL) == 0);
    MUST(pthread_join(t, NULL) == 0);
}

#define PROGRAM(name, call)                                                                        \
    static bool report_by_##name(void) {                                                           \
        make_things();                                                                             \
        break_in(thing.stream);                                                                    \
        make_calls_that_do_not_wait();                                                             \
        FAILS(hipErrorIllegalAddress, call);                                                       \
        expect_sticky();                                                                           \
        return true;                                                                               \
    }
REPORTERS(PROGRAM)

#define TEST(name, call)                                                                           \
    static void name##_reports_a_fault(void **state) {                                             \
        (void)state;                                                                               \
        soft_right(report_by_##name);                                                              \
    }
REPORTERS(TEST)

/* ---- the whole table ----------------------------------------------------------------------- */

static size_t called;

static void expect_illegal_address(const char *name, hipError_t found) {
    if (found != hipErrorIllegalAddress)
        soft_fail(__FILE__, __LINE__, "%s: found %s", name, hip_error_name(found));
    called++;
}

static bool every_call_fails(void) {
    make_things();
    break_in(NULL);
    FAILS(hipErrorIllegalAddress, hip->hipDeviceSynchronize());
    soft_call_everything(NULL, expect_illegal_address);
    MUST(called > 400);
    return true;
}

static bool texts_still_work(void) {
    const char *text;
    make_things();
    break_in(NULL);
    FAILS(hipErrorIllegalAddress, hip->hipDeviceSynchronize());
    MUST(!strcmp(hip->hipGetErrorName(hipErrorIllegalAddress), "hipErrorIllegalAddress"));
    MUST(!strcmp(hip->hipGetErrorString(hipErrorIllegalAddress),
                 "an illegal memory access was encountered"));
    OK(hip->hipDrvGetErrorName(hipErrorIllegalAddress, &text));
    MUST(!strcmp(text, "hipErrorIllegalAddress"));
    OK(hip->hipDrvGetErrorString(hipErrorIllegalAddress, &text));
    MUST(!strcmp(text, "an illegal memory access was encountered"));
    return true;
}

static void after_the_report_every_function_reports(void **state) {
    (void)state;
    soft_expect(every_call_fails, NULL);
    soft_expect(every_call_fails, "GRETA_SOFT_SCHEDULE=lazy");
    soft_expect(texts_still_work, NULL);
}

/* ---- what was queued ----------------------------------------------------------------------- */

static _Atomic int host_calls, callback_calls;
static _Atomic int callback_status;

static void count_host(void *unused) {
    (void)unused;
    atomic_fetch_add(&host_calls, 1);
}
static void count_callback(hipStream_t stream, hipError_t status, void *unused) {
    (void)stream, (void)unused;
    atomic_fetch_add(&callback_calls, 1);
    atomic_store(&callback_status, (int)status);
}

static bool nothing_runs_behind_a_fault(void) {
    make_things();
    hipStream_t behind = soft_free_stream();
    break_in(thing.stream);
    soft_store(thing.stream, thing.pinned, 1, 0);
    OK(hip->hipMemsetAsync(thing.pinned + 1, 1, 4, thing.stream));
    OK(hip->hipLaunchHostFunc(thing.stream, count_host, NULL));
    OK(hip->hipStreamAddCallback(thing.stream, count_callback, NULL, 0));
    OK(hip->hipEventRecord(thing.event, thing.stream));
    OK(hip->hipStreamWaitEvent(behind, thing.event, 0));
    soft_store(behind, thing.pinned + 2, 1, 0);
    OK(hip->hipLaunchHostFunc(behind, count_host, NULL));
    FAILS(hipErrorIllegalAddress, hip->hipDeviceSynchronize());
    MUST(thing.pinned[0] == 0 && thing.pinned[1] == 0 && thing.pinned[2] == 0);
    MUST(atomic_load(&host_calls) == 0);
    /* A callback is told. */
    MUST(atomic_load(&callback_calls) == 1);
    MUST(atomic_load(&callback_status) == hipErrorIllegalAddress);
    return true;
}

/* What was complete before stays complete. */
static bool what_ran_before_stays(void) {
    make_things();
    soft_store(thing.stream, thing.pinned, 1, 100);
    OK(hip->hipMemcpyAsync(thing.pinned + 1, thing.pinned, 4, hipMemcpyHostToHost, thing.stream));
    break_in(thing.stream);
    FAILS(hipErrorIllegalAddress, hip->hipStreamSynchronize(thing.stream));
    return thing.pinned[0] == 1 && thing.pinned[1] == 1;
}

static bool the_other_device_goes_on(void) {
    make_things();
    OK(hip->hipSetDevice(1));
    hipStream_t other = soft_free_stream();
    OK(hip->hipSetDevice(0));
    break_in(thing.stream);
    soft_store(other, thing.pinned, 1, 100);
    FAILS(hipErrorIllegalAddress, hip->hipStreamSynchronize(thing.stream));
    /* Its work is done, but no call says so any more. */
    for (int i = 0; i < 5000 && !__atomic_load_n(thing.pinned, __ATOMIC_RELAXED); i++)
        usleep(1000);
    FAILS(hipErrorIllegalAddress, hip->hipStreamSynchronize(other));
    return __atomic_load_n(thing.pinned, __ATOMIC_RELAXED) == 1;
}

static void work_behind_a_fault_does_not_run(void **state) {
    (void)state;
    soft_right(nothing_runs_behind_a_fault);
    soft_right(what_ran_before_stays);
    soft_right_with(the_other_device_goes_on, "GRETA_SOFT_DEVICES=2", 64);
}

/* ---- hipDeviceReset ------------------------------------------------------------------------ */

static void expect_working_device(void) {
    hipStream_t s = soft_free_stream();
    int *x = soft_device_ints(2), value = 5, back = 0;
    OK(hip->hipMemcpy(x, &value, sizeof value, hipMemcpyHostToDevice));
    soft_fold(s, x, 10, 3);
    OK(hip->hipMemcpyAsync(&back, x, sizeof back, hipMemcpyDeviceToHost, s));
    MUST(back == 53);
    OK(hip->hipStreamDestroy(s));
    OK(hip->hipFree(x));
    OK(hip->hipGetLastError());
}

static bool reset_ends_it(void) {
    for (int round = 0; round < 3; round++) {
        make_things();
        break_in(thing.stream);
        if (round != 1) /* a fault that nobody has seen goes too */
            FAILS(hipErrorIllegalAddress, hip->hipDeviceSynchronize());
        OK(hip->hipDeviceReset());
        OK(hip->hipGetLastError());
        OK(hip->hipDeviceSynchronize());
        MUST(hip->hipStreamQuery(thing.stream) != hipSuccess); /* went with the reset */
        FAILS(hipErrorInvalidValue, hip->hipFree(thing.device));
        FAILS(hipErrorInvalidValue, hip->hipHostFree(thing.pinned));
        (void)hip->hipGetLastError();
        expect_working_device();
    }
    return true;
}

static bool reset_frees_everything(void) {
    size_t before, after, total;
    void *p, *q;
    OK(hip->hipMemGetInfo(&before, &total));
    OK(hip->hipMalloc(&p, 10 << 20));
    OK(hip->hipMallocAsync(&q, 10 << 20, NULL));
    OK(hip->hipMemGetInfo(&after, &total));
    MUST(after + (20 << 20) == before);
    OK(hip->hipDeviceReset());
    OK(hip->hipMemGetInfo(&after, &total));
    MUST(after == before);
    FAILS(hipErrorInvalidValue, hip->hipFree(p));
    return true;
}

static bool reset_of_the_wrong_device(void) {
    int n;
    make_things();
    break_in(thing.stream);
    FAILS(hipErrorIllegalAddress, hip->hipDeviceSynchronize());
    /* hipSetDevice says what every call says, but does its work. */
    FAILS(hipErrorIllegalAddress, hip->hipSetDevice(1));
    FAILS(hipErrorIllegalAddress, hip->hipDeviceReset());
    FAILS(hipErrorIllegalAddress, hip->hipGetDeviceCount(&n));
    FAILS(hipErrorIllegalAddress, hip->hipGetLastError());
    FAILS(hipErrorIllegalAddress, hip->hipSetDevice(0));
    OK(hip->hipDeviceReset());
    OK(hip->hipGetDeviceCount(&n));
    expect_working_device();
    OK(hip->hipSetDevice(1));
    expect_working_device();
    return true;
}

/* Resetting one device leaves the memory and streams of the other alone. */
static bool reset_keeps_the_other_device(void) {
    make_things();
    OK(hip->hipSetDevice(1));
    OK(hip->hipDeviceReset());
    OK(hip->hipSetDevice(0));
    soft_store(thing.stream, thing.device, 7, 0);
    OK(hip->hipStreamSynchronize(thing.stream));
    MUST(soft_peek(thing.device) == 7);
    OK(hip->hipFree(thing.device));
    OK(hip->hipHostFree(thing.pinned));
    return true;
}

static void a_reset_of_the_device_ends_the_fault(void **state) {
    (void)state;
    soft_right(reset_ends_it);
    soft_expect(reset_frees_everything, NULL);
    soft_expect(reset_of_the_wrong_device, "GRETA_SOFT_DEVICES=2");
    soft_expect(reset_keeps_the_other_device, "GRETA_SOFT_DEVICES=2");
}

/* ---- ordinary errors ----------------------------------------------------------------------- */

static void *expect_no_error(void *unused) {
    OK(hip->hipPeekAtLastError());
    return unused;
}

static bool the_last_error_is_kept(void) {
    void *p;
    pthread_t t;
    FAILS(hipErrorInvalidValue, hip->hipMalloc(NULL, 4));
    OK(hip->hipMalloc(&p, 4)); /* success does not wipe it out */
    FAILS(hipErrorInvalidValue, hip->hipPeekAtLastError());
    MUST(pthread_create(&t, NULL, expect_no_error, NULL) == 0); /* it is the thread's own */
    MUST(pthread_join(t, NULL) == 0);
    FAILS(hipErrorInvalidDevice, hip->hipSetDevice(99));
    FAILS(hipErrorInvalidDevice, hip->hipGetLastError());
    OK(hip->hipGetLastError());
    OK(hip->hipDeviceSynchronize());
    return true;
}

static void an_ordinary_error_belongs_to_one_call(void **state) {
    (void)state;
    soft_expect(the_last_error_is_kept, NULL);
}

/* ---- serialised launches ------------------------------------------------------------------- */

static bool the_launch_reports(void) {
    make_things();
    FAILS(hipErrorIllegalAddress,
          soft_touch_call(thing.stream, thing.device, 4 * sizeof(int), true));
    expect_sticky();
    return true;
}

/* Correct under lazy only because every launch is waited for. */
static bool a_launch_is_complete(void) {
    make_things();
    soft_store(thing.stream, thing.pinned, 7, 200);
    return thing.pinned[0] == 7;
}

static bool a_copy_is_complete(void) {
    make_things();
    thing.pinned[0] = 7;
    OK(hip->hipMemcpyAsync(thing.device, thing.pinned, 4, hipMemcpyHostToDevice, thing.stream));
    thing.pinned[0] = 8;
    return soft_peek(thing.device) == 7;
}

/* "Before": the launch waits for all that came earlier. */
static bool a_launch_waits_for_what_is_queued(void) {
    make_things();
    thing.pinned[0] = 7;
    OK(hip->hipMemcpyAsync(thing.device, thing.pinned, 4, hipMemcpyHostToDevice, thing.stream));
    soft_nothing(soft_free_stream());
    soft_racy_store(thing.pinned, 8);
    OK(hip->hipStreamSynchronize(thing.stream));
    return soft_peek(thing.device) == 7;
}

static void serialised_launches_report_their_own_fault(void **state) {
    (void)state;
    soft_right_with(the_launch_reports, "AMD_SERIALIZE_KERNEL=3", SOFT_JOBS);
    soft_right_with(the_launch_reports, "AMD_SERIALIZE_KERNEL=2", SOFT_JOBS);
    soft_right_with(the_launch_reports, "HIP_LAUNCH_BLOCKING=1", SOFT_JOBS);
    soft_right_with(a_launch_is_complete, "HIP_LAUNCH_BLOCKING=1", SOFT_JOBS);
    soft_right_with(a_copy_is_complete, "AMD_SERIALIZE_COPY=2", SOFT_JOBS);
    soft_right_with(a_launch_waits_for_what_is_queued, "AMD_SERIALIZE_KERNEL=1", SOFT_JOBS);
}

#define ENTRY(name, call) cmocka_unit_test(name##_reports_a_fault),

int main(void) {
    const struct CMUnitTest tests[] = {
        REPORTERS(ENTRY) cmocka_unit_test(after_the_report_every_function_reports),
        cmocka_unit_test(work_behind_a_fault_does_not_run),
        cmocka_unit_test(a_reset_of_the_device_ends_the_fault),
        cmocka_unit_test(an_ordinary_error_belongs_to_one_call),
        cmocka_unit_test(serialised_launches_report_their_own_fault),
    };
    return cmocka_run_group_tests_name("soft_fault", tests, soft_fixture_load, NULL);
}
