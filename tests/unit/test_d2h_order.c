/* A checked copy comes after all work that may produce its data: which events and waits that takes
 * under HIP's stream rules, and that it takes none when nothing is running. */
#include "unit/audit_fake.h"

#include <pthread.h>

#include "audit/order.h"
#include "audit/wait.h"

static unsigned char host[256];
static unsigned char *device;

static int setup(void **state) {
    fake_attach(state);
    assert_int_equal(api.hipMalloc((void **)&device, 256), hipSuccess);
    return 0;
}

static hipStream_t stream_with(unsigned flags) {
    hipStream_t s = NULL;
    assert_int_equal(api.hipStreamCreateWithFlags(&s, flags), hipSuccess);
    return s;
}

static void work_on(hipStream_t s) {
    hipFunction_t f = (hipFunction_t)0x77;
    assert_int_equal(api.hipModuleLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL), hipSuccess);
}

/* Copies on s; returns how many waits that took. */
static unsigned long waits_of_copy(hipStream_t s) {
    const struct gcore_d2h_meta m = { .tensor = "t", .size = 64 };
    unsigned long records = fake_calls(hipEventRecord), waits = fake_calls(hipStreamWaitEvent);
    assert_int_equal(gcore_d2h_copy(host, device, &m, s, NULL), GCORE_D2H_OK);
    assert_true(fake_calls(hipEventRecord) - records <= fake_calls(hipStreamWaitEvent) - waits);
    return fake_calls(hipStreamWaitEvent) - waits;
}

static unsigned long async_waits(hipStream_t s) {
    const struct gcore_d2h_meta m = { .tensor = "t", .size = 64 };
    unsigned long waits = fake_calls(hipStreamWaitEvent);
    assert_int_equal(gcore_d2h_copy_async(host, device, &m, s, NULL, NULL), GCORE_D2H_OK);
    return fake_calls(hipStreamWaitEvent) - waits;
}

static void idle_streams_cost_nothing(void **state) {
    (void)state;
    hipStream_t a = stream_with(0), b = stream_with(hipStreamNonBlocking);
    assert_int_equal(waits_of_copy(NULL), 0);
    assert_int_equal(waits_of_copy(a), 0);
    assert_int_equal(waits_of_copy(b), 0);
    assert_int_equal(fake_calls(hipEventCreateWithFlags), 0);
    assert_int_equal(fake_calls(hipDeviceSynchronize), 0);
}

static void own_work_is_in_order_anyway(void **state) {
    (void)state;
    hipStream_t a = stream_with(hipStreamNonBlocking);
    work_on(a);
    assert_int_equal(waits_of_copy(a), 0);
    work_on(NULL);
    assert_int_equal(waits_of_copy(NULL), 0);
}

static void default_stream_and_blocking_streams_wait_for_each_other(void **state) {
    (void)state;
    hipStream_t a = stream_with(0);
    work_on(a);
    assert_int_equal(waits_of_copy(NULL), 0);
    work_on(NULL);
    assert_int_equal(waits_of_copy(a), 0);
}

static void non_blocking_work_is_waited_for_by_an_event(void **state) {
    (void)state;
    hipStream_t a = stream_with(hipStreamNonBlocking);
    work_on(a);
    assert_int_equal(waits_of_copy(NULL), 1);
    /* The copy has waited for it: it is known to be over. */
    assert_int_equal(waits_of_copy(NULL), 0);
}

static void a_non_blocking_copy_waits_for_everybody(void **state) {
    (void)state;
    hipStream_t a = stream_with(0), b = stream_with(hipStreamNonBlocking),
                c = stream_with(hipStreamNonBlocking);
    work_on(a);
    work_on(b);
    work_on(NULL);
    assert_int_equal(waits_of_copy(c), 3);
}

static void blocking_streams_do_not_wait_for_each_other(void **state) {
    (void)state;
    hipStream_t a = stream_with(0), b = stream_with(0);
    work_on(a);
    assert_int_equal(waits_of_copy(b), 1);
}

static void one_event_serves_until_there_is_new_work(void **state) {
    (void)state;
    hipStream_t a = stream_with(hipStreamNonBlocking), b = stream_with(hipStreamNonBlocking);
    work_on(a);
    assert_int_equal(async_waits(b), 1);
    assert_int_equal(async_waits(b), 1); /* still not known to be over */
    assert_int_equal(fake_calls(hipEventRecord), 1);
    assert_int_equal(fake_calls(hipEventCreateWithFlags), 1);
    work_on(a);
    assert_int_equal(async_waits(b), 1);
    assert_int_equal(fake_calls(hipEventRecord), 2);
    assert_int_equal(fake_calls(hipEventCreateWithFlags), 1);
}

static void synchronising_makes_streams_idle(void **state) {
    (void)state;
    hipStream_t a = stream_with(hipStreamNonBlocking), b = stream_with(hipStreamNonBlocking);
    work_on(a);
    assert_int_equal(api.hipStreamSynchronize(a), hipSuccess);
    assert_int_equal(waits_of_copy(b), 0);
    work_on(a);
    assert_int_equal(api.hipStreamQuery(a), hipSuccess);
    assert_int_equal(waits_of_copy(b), 0);
    work_on(a);
    assert_int_equal(api.hipDeviceSynchronize(), hipSuccess);
    assert_int_equal(waits_of_copy(b), 0);
    hipEvent_t event = (hipEvent_t)0x1234;
    work_on(a);
    assert_int_equal(api.hipEventRecord(event, a), hipSuccess);
    assert_int_equal(api.hipEventSynchronize(event), hipSuccess);
    assert_int_equal(waits_of_copy(b), 0);
    work_on(a);
    assert_int_equal(api.hipEventRecord(event, a), hipSuccess);
    work_on(a); /* after the event: not covered by it */
    assert_int_equal(api.hipEventSynchronize(event), hipSuccess);
    assert_int_equal(waits_of_copy(b), 1);
}

static void a_failed_synchronisation_proves_nothing(void **state) {
    (void)state;
    hipStream_t a = stream_with(hipStreamNonBlocking), b = stream_with(hipStreamNonBlocking);
    work_on(a);
    fake.result = hipErrorNotReady;
    assert_int_equal(api.hipStreamQuery(a), hipErrorNotReady);
    fake.result = hipSuccess;
    assert_int_equal(waits_of_copy(b), 1);
}

static void every_kind_of_work_counts(void **state) {
    (void)state;
    hipStream_t a = stream_with(hipStreamNonBlocking), b = stream_with(hipStreamNonBlocking);
    void *p = NULL;
    dim3 one = { 1, 1, 1 };
    assert_int_equal(api.hipMemsetAsync(device, 0, 64, a), hipSuccess);
    assert_int_equal(waits_of_copy(b), 1);
    assert_int_equal(api.hipMemcpyAsync(device, host, 64, hipMemcpyHostToDevice, a), hipSuccess);
    assert_int_equal(waits_of_copy(b), 1);
    assert_int_equal(api.hipLaunchKernel((void *)1, one, one, NULL, 0, a), hipSuccess);
    assert_int_equal(waits_of_copy(b), 1);
    assert_int_equal(api.hipLaunchHostFunc(a, NULL, NULL), hipSuccess);
    assert_int_equal(waits_of_copy(b), 1);
    assert_int_equal(api.hipGraphLaunch(NULL, a), hipSuccess);
    assert_int_equal(waits_of_copy(b), 1);
    assert_int_equal(api.hipMallocAsync(&p, 64, a), hipSuccess);
    assert_int_equal(waits_of_copy(b), 1);
    assert_int_equal(api.hipFreeAsync(p, a), hipSuccess);
    assert_int_equal(waits_of_copy(b), 1);
    assert_int_equal(api.hipMemcpy2DAsync(device, 8, host, 8, 8, 2, hipMemcpyHostToDevice, a),
                     hipSuccess);
    assert_int_equal(waits_of_copy(b), 1);
    const struct gcore_d2h_meta m = { .tensor = "t", .size = 64 };
    assert_int_equal(gcore_h2d_copy_async(device, host, &m, a, NULL, NULL), GCORE_D2H_OK);
    assert_int_equal(waits_of_copy(b), 1);
    fake.result = hipErrorInvalidValue;
    (void)api.hipMemsetAsync(device, 0, 64, a); /* did not become work */
    fake.result = hipSuccess;
    assert_int_equal(waits_of_copy(b), 0);
}

static void blocking_calls_may_leave_work_on_the_default_stream(void **state) {
    (void)state;
    hipStream_t b = stream_with(hipStreamNonBlocking);
    assert_int_equal(api.hipMemset(device, 0, 64), hipSuccess);
    assert_int_equal(waits_of_copy(b), 1);
    assert_int_equal(api.hipMemcpy(device, device + 64, 64, hipMemcpyDeviceToDevice), hipSuccess);
    assert_int_equal(waits_of_copy(b), 1);
    assert_int_equal(api.hipMemcpy(host, device, 64, hipMemcpyDeviceToHost), hipSuccess);
    assert_int_equal(waits_of_copy(b), 0);
}

static void a_destroyed_streams_work_is_still_waited_for(void **state) {
    (void)state;
    hipStream_t a = stream_with(hipStreamNonBlocking);
    work_on(a);
    assert_int_equal(api.hipStreamDestroy(a), hipSuccess);
    assert_int_equal(fake_calls(hipEventRecord), 1); /* while it could take one */
    assert_int_equal(waits_of_copy(NULL), 1);
    assert_int_equal(fake_calls(hipEventRecord), 1);
    assert_int_equal(waits_of_copy(NULL), 0);
}

static void a_handle_used_again_is_a_new_stream(void **state) {
    (void)state;
    hipStream_t a = stream_with(hipStreamNonBlocking);
    work_on(a);
    assert_int_equal(api.hipStreamDestroy(a), hipSuccess);
    fake.handles = (uintptr_t)a - 0x10000 - 0x100;
    hipStream_t again = stream_with(0);
    assert_ptr_equal(again, a);
    assert_int_equal(waits_of_copy(again), 1); /* for the old one's work */
    work_on(again);
    assert_int_equal(waits_of_copy(NULL), 0); /* blocking now */
    const struct gcore_d2h_meta m = { .tensor = "t", .size = 64 };
    assert_int_equal(gcore_d2h_copy(host, device, &m, again, NULL), GCORE_D2H_OK);
}

static void an_idle_handle_is_revived_with_new_flags(void **state) {
    (void)state;
    hipStream_t a = stream_with(0);
    assert_int_equal(api.hipStreamDestroy(a), hipSuccess);
    fake.handles = (uintptr_t)a - 0x10000 - 0x100;
    hipStream_t again = stream_with(hipStreamNonBlocking);
    assert_ptr_equal(again, a);
    work_on(again);
    assert_int_equal(waits_of_copy(NULL), 1);
}

static void a_destroyed_handle_still_means_its_stream(void **state) {
    (void)state;
    hipStream_t a = stream_with(0);
    struct order_stream *known = order_stream(a);
    assert_int_equal(api.hipStreamDestroy(a), hipSuccess);
    fake.result = hipErrorInvalidHandle; /* what the runtime says about it */
    assert_ptr_equal(order_stream(a), known);
}

static void captured_work_does_not_run(void **state) {
    (void)state;
    hipStream_t a = stream_with(hipStreamNonBlocking), b = stream_with(hipStreamNonBlocking),
                c = stream_with(hipStreamNonBlocking);
    hipGraph_t graph = NULL;
    hipEvent_t event = (hipEvent_t)0x1234;
    assert_int_equal(api.hipStreamBeginCapture(a, hipStreamCaptureModeGlobal), hipSuccess);
    work_on(a);
    assert_int_equal(api.hipEventRecord(event, a), hipSuccess);
    assert_int_equal(api.hipStreamWaitEvent(b, event, 0), hipSuccess); /* b joins */
    work_on(b);
    assert_int_equal(waits_of_copy(c), 0);
    const struct gcore_d2h_meta m = { .tensor = "t", .size = 64 };
    assert_int_equal(gcore_d2h_copy(host, device, &m, b, NULL), GCORE_D2H_BAD_STREAM);
    assert_int_equal(api.hipStreamEndCapture(a, &graph), hipSuccess);
    assert_int_equal(gcore_d2h_copy(host, device, &m, b, NULL), GCORE_D2H_OK);
    work_on(b);
    assert_int_equal(waits_of_copy(c), 1);
}

static void work_before_a_capture_is_waited_for_without_disturbing_it(void **state) {
    (void)state;
    hipStream_t a = stream_with(hipStreamNonBlocking), b = stream_with(hipStreamNonBlocking);
    work_on(a);
    assert_int_equal(api.hipStreamBeginCapture(a, hipStreamCaptureModeGlobal), hipSuccess);
    unsigned long records = fake_calls(hipEventRecord);
    assert_int_equal(waits_of_copy(b), 1);
    assert_int_equal(fake_calls(hipEventRecord), records);
}

static void *work_on_own_stream(void *arg) {
    (void)arg;
    work_on(hipStreamPerThread);
    return NULL;
}

static void another_threads_own_stream_is_reached_through_the_default_stream(void **state) {
    (void)state;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, work_on_own_stream, NULL), 0);
    pthread_join(thread, NULL);
    hipStream_t b = stream_with(hipStreamNonBlocking);
    assert_int_equal(waits_of_copy(NULL), 0); /* blocking: in order anyway */
    assert_int_equal(pthread_create(&thread, NULL, work_on_own_stream, NULL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(waits_of_copy(b), 1);
    work_on(hipStreamPerThread);
    assert_int_equal(waits_of_copy(hipStreamPerThread), 0);
}

static void *spt_work(void *arg) {
    (void)arg;
    assert_int_equal(api.hipMemsetAsync_spt(device, 0, 64, NULL), hipSuccess);
    return NULL;
}

static void spt_functions_use_the_threads_own_stream(void **state) {
    (void)state;
    pthread_t thread;
    hipStream_t b = stream_with(hipStreamNonBlocking);
    assert_int_equal(pthread_create(&thread, NULL, spt_work, NULL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(waits_of_copy(b), 1);
}

static void other_devices_are_waited_for_on_their_own_ground(void **state) {
    (void)state;
    assert_int_equal(api.hipSetDevice(1), hipSuccess);
    work_on(NULL);
    assert_int_equal(api.hipSetDevice(0), hipSuccess);
    unsigned long sets = fake_calls(hipSetDevice);
    assert_int_equal(waits_of_copy(NULL), 1);
    assert_true(fake_calls(hipSetDevice) > sets);
    assert_int_equal(fake_device, 0);
}

static void device_reset_leaves_no_work(void **state) {
    (void)state;
    hipStream_t a = stream_with(hipStreamNonBlocking);
    work_on(a);
    assert_int_equal(api.hipDeviceReset(), hipSuccess);
    assert_int_equal(api.hipMalloc((void **)&device, 256), hipSuccess);
    assert_int_equal(waits_of_copy(NULL), 0);
}

static void a_program_that_bypasses_the_table_is_waited_for_as_a_whole(void **state) {
    (void)state;
    audit_detach();
    unlink(fake_log_path);
    fake_attach_with((struct audit_config){ 0 }, true);
    void *p = NULL;
    assert_int_equal(api.hipMalloc(&p, 256), hipSuccess);
    const struct gcore_d2h_meta m = { .tensor = "t", .size = 64 };
    assert_int_equal(gcore_d2h_copy(host, p, &m, NULL, NULL), GCORE_D2H_OK);
    assert_int_equal(fake_calls(hipDeviceSynchronize), 1);
    /* Memory that only the runtime knows is asked about every time: it may be gone by then. */
    void *foreign = fake_memory + FAKE_MEMORY - 256;
    fake.attributes = (hipPointerAttribute_t){ .type = hipMemoryTypeDevice };
    fake.attributes_base = foreign;
    fake.attributes_size = 128;
    assert_int_equal(gcore_d2h_copy(host, foreign, &m, NULL, NULL), GCORE_D2H_OK);
    fake.attributes_size = 0;
    assert_int_equal(gcore_d2h_copy(host, foreign, &m, NULL, NULL), GCORE_D2H_FREED);
    fake.attributes_size = 32; /* given away again, smaller */
    assert_int_equal(gcore_d2h_copy(host, foreign, &m, NULL, NULL), GCORE_D2H_OUT_OF_ALLOCATION);
}

static void more_busy_streams_than_are_remembered_are_all_waited_for(void **state) {
    (void)state;
    enum { MANY = WAIT_LIST_MAX + 10 };
    for (int i = 0; i < MANY; i++)
        work_on(stream_with(hipStreamNonBlocking));
    assert_int_equal(waits_of_copy(NULL), MANY);
    assert_int_equal(waits_of_copy(NULL), MANY - WAIT_LIST_MAX);
    assert_int_equal(waits_of_copy(NULL), 0);
}

static void a_failing_wait_fails_the_copy(void **state) {
    (void)state;
    hipStream_t a = stream_with(hipStreamNonBlocking);
    work_on(a);
    fake.result = hipErrorIllegalAddress;
    const struct gcore_d2h_meta m = { .tensor = "t", .size = 64 };
    struct gcore_d2h_result r;
    assert_int_equal(gcore_d2h_copy(host, device, &m, NULL, &r), GCORE_D2H_DEVICE_ERROR);
    assert_int_equal(r.hip_error, hipErrorIllegalAddress);
    assert_int_equal(fake_copies(), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, fake_detach)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(idle_streams_cost_nothing),
        T(own_work_is_in_order_anyway),
        T(default_stream_and_blocking_streams_wait_for_each_other),
        T(non_blocking_work_is_waited_for_by_an_event),
        T(a_non_blocking_copy_waits_for_everybody),
        T(blocking_streams_do_not_wait_for_each_other),
        T(one_event_serves_until_there_is_new_work),
        T(synchronising_makes_streams_idle),
        T(a_failed_synchronisation_proves_nothing),
        T(every_kind_of_work_counts),
        T(blocking_calls_may_leave_work_on_the_default_stream),
        T(a_destroyed_streams_work_is_still_waited_for),
        T(a_handle_used_again_is_a_new_stream),
        T(an_idle_handle_is_revived_with_new_flags),
        T(a_destroyed_handle_still_means_its_stream),
        T(captured_work_does_not_run),
        T(work_before_a_capture_is_waited_for_without_disturbing_it),
        T(another_threads_own_stream_is_reached_through_the_default_stream),
        T(spt_functions_use_the_threads_own_stream),
        T(other_devices_are_waited_for_on_their_own_ground),
        T(device_reset_leaves_no_work),
        T(a_program_that_bypasses_the_table_is_waited_for_as_a_whole),
        T(more_busy_streams_than_are_remembered_are_all_waited_for),
        T(a_failing_wait_fails_the_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
