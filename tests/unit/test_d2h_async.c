/* Asynchronous copies and batches: complete when they say so, END at completion and once. */
#include "unit/audit_fake.h"

static hipError_t fake_hipStreamAddCallback_refusing(hipStream_t s, hipStreamCallback_t callback,
                                                     void *user, unsigned flags) {
    return hipErrorNotSupported;
}

static hipError_t fake_copy_that_is_queued(void *dst, const void *src, size_t bytes,
                                           hipMemcpyKind kind, hipStream_t s) {
    return hipSuccess;
}

static unsigned char host[4096];
static unsigned char *device;
static hipStream_t stream;

static void attach(struct audit_config config) {
    fake_attach_with(config, false);
    memset(host, 0xa5, sizeof host);
    assert_int_equal(api.hipMalloc((void **)&device, 4096), hipSuccess);
    memset(device, 7, 4096);
    assert_int_equal(api.hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), hipSuccess);
}

static const struct gcore_d2h_meta small = { .tensor = "t", .size = 64 };

static unsigned count(const char *text, const char *word) {
    unsigned n = 0;
    for (; (text = strstr(text, word)); text += strlen(word))
        n++;
    return n;
}

static void an_async_copy_is_done_after_its_wait(void **state) {
    (void)state;
    attach((struct audit_config){ 0 });
    struct gcore_d2h_op op;
    assert_int_equal(gcore_d2h_copy_async(host, device, &small, stream, &op, NULL), GCORE_D2H_OK);
    assert_non_null(op.pending);
    assert_int_equal(host[0], 0xa5);
    assert_int_equal(gcore_d2h_wait(&op, NULL), GCORE_D2H_OK);
    assert_null(op.pending);
    assert_int_equal(host[63], 7);
    assert_int_equal(gcore_d2h_wait(&op, NULL), GCORE_D2H_OK); /* nothing left to wait for */
    assert_int_equal(fake_calls(hipEventSynchronize), 1);
}

static void events_are_used_again(void **state) {
    (void)state;
    attach((struct audit_config){ 0 });
    for (int i = 0; i < 10; i++) {
        struct gcore_d2h_op op;
        assert_int_equal(gcore_h2d_copy_async(device, host, &small, stream, &op, NULL),
                         GCORE_D2H_OK);
        assert_int_equal(gcore_d2h_wait(&op, NULL), GCORE_D2H_OK);
    }
    assert_int_equal(fake_calls(hipEventCreateWithFlags), 1);
}

static void without_an_op_there_is_no_event(void **state) {
    (void)state;
    attach((struct audit_config){ 0 });
    assert_int_equal(gcore_d2d_copy_async(device, device + 128, &small, stream, NULL, NULL),
                     GCORE_D2H_OK);
    assert_int_equal(fake_calls(hipEventCreateWithFlags), 0);
    assert_int_equal(fake_calls(hipStreamAddCallback), 0);
}

static void end_is_written_at_completion_not_at_queueing(void **state) {
    (void)state;
    attach((struct audit_config){ .d2h_audit = true });
    assert_int_equal(gcore_d2h_copy_async(host, device, &small, stream, NULL, NULL), GCORE_D2H_OK);
    assert_int_equal(count(fake_log(), "D2H_AUDIT_START"), 1);
    assert_int_equal(count(fake_log(), "D2H_AUDIT_END"), 0);
    assert_int_equal(api.hipStreamSynchronize(stream), hipSuccess);
    assert_int_equal(count(fake_log(), "D2H_AUDIT_END"), 1);
    assert_int_equal(host[0], 7);
}

static void end_is_written_once_by_wait_or_by_the_stream(void **state) {
    (void)state;
    attach((struct audit_config){ .d2h_audit = true });
    struct gcore_d2h_op op;
    assert_int_equal(gcore_d2h_copy_async(host, device, &small, stream, &op, NULL), GCORE_D2H_OK);
    assert_int_equal(gcore_d2h_wait(&op, NULL), GCORE_D2H_OK); /* the callback is still queued */
    assert_int_equal(count(fake_log(), "D2H_AUDIT_END"), 1);
    assert_int_equal(api.hipStreamSynchronize(stream), hipSuccess); /* now it runs */
    assert_int_equal(count(fake_log(), "D2H_AUDIT_END"), 1);
    assert_int_equal(gcore_d2h_copy_async(host, device, &small, stream, &op, NULL), GCORE_D2H_OK);
    assert_int_equal(api.hipStreamSynchronize(stream), hipSuccess);
    assert_int_equal(count(fake_log(), "op_id=1"), 2);
    assert_int_equal(gcore_d2h_wait(&op, NULL), GCORE_D2H_OK);
    assert_int_equal(count(fake_log(), "D2H_AUDIT_END"), 2);
}

static void a_failing_stream_gives_every_start_its_end(void **state) {
    (void)state;
    attach((struct audit_config){ .d2h_audit = true });
    struct gcore_d2h_op op;
    assert_int_equal(gcore_d2h_copy_async(host, device, &small, stream, &op, NULL), GCORE_D2H_OK);
    assert_int_equal(gcore_d2h_copy_async(host, device, &small, stream, NULL, NULL), GCORE_D2H_OK);
    fake.result = hipErrorIllegalAddress;
    fake.queued = 0; /* this runtime forgets its callbacks when it fails */
    struct gcore_d2h_result r;
    assert_int_equal(gcore_d2h_wait(&op, &r), GCORE_D2H_DEVICE_ERROR);
    assert_int_equal(r.hip_error, hipErrorIllegalAddress);
    assert_int_equal(fake_calls(hipEventSynchronize), 1);
    assert_int_equal(count(fake_log(), "D2H_AUDIT_START"), 2);
    assert_int_equal(count(fake_log(), "D2H_AUDIT_END"), 2);
    assert_int_equal(count(fake_log(), "result=hipErrorIllegalAddress"), 2);
    assert_int_equal(host[0], 0xa5);
}

static void a_sticky_error_of_any_call_flushes_the_log(void **state) {
    (void)state;
    attach((struct audit_config){ .d2h_audit = true });
    assert_int_equal(gcore_d2h_copy_async(host, device, &small, stream, NULL, NULL), GCORE_D2H_OK);
    fake.result = hipErrorLaunchFailure;
    fake.queued = 0;
    assert_int_equal(api.hipDeviceSynchronize(), hipErrorLaunchFailure);
    assert_int_equal(count(fake_log(), "result=hipErrorLaunchFailure"), 1);
}

static void a_stream_that_cannot_report_is_waited_for(void **state) {
    (void)state;
    attach((struct audit_config){ .d2h_audit = true });
    audit.raw.hipStreamAddCallback = fake_hipStreamAddCallback_refusing;
    assert_int_equal(gcore_d2h_copy_async(host, device, &small, stream, NULL, NULL), GCORE_D2H_OK);
    assert_int_equal(host[0], 7);
    assert_int_equal(count(fake_log(), "D2H_AUDIT_END"), 1);
}

static void detaching_ends_what_is_open(void **state) {
    (void)state;
    attach((struct audit_config){ .d2h_audit = true });
    assert_int_equal(gcore_d2h_copy_async(host, device, &small, stream, NULL, NULL), GCORE_D2H_OK);
    audit_detach();
    assert_int_equal(count(fake_log(), "D2H_AUDIT_END"), 1);
    assert_int_equal(count(fake_log(), "result=hipErrorNotReady"), 1);
    fake_run(NULL, true, hipSuccess); /* the late callback finds its copy still there */
}

static void a_device_reset_ends_what_is_open(void **state) {
    (void)state;
    attach((struct audit_config){ .d2h_audit = true });
    struct gcore_d2h_op op;
    assert_int_equal(gcore_d2h_copy_async(host, device, &small, stream, &op, NULL), GCORE_D2H_OK);
    assert_int_equal(api.hipDeviceReset(), hipSuccess);
    assert_int_equal(count(fake_log(), "result=hipErrorContextIsDestroyed"), 1);
    unsigned long waits = fake_calls(hipEventSynchronize);
    assert_int_equal(gcore_d2h_wait(&op, NULL), GCORE_D2H_DEVICE_ERROR);
    assert_int_equal(fake_calls(hipEventSynchronize), waits); /* its event is gone as well */
    fake_run(NULL, true, hipSuccess);
}

static void a_copy_that_cannot_be_queued_fails_at_once(void **state) {
    (void)state;
    attach((struct audit_config){ 0 });
    struct gcore_d2h_op op;
    struct gcore_d2h_result r;
    assert_int_equal(gcore_d2h_copy_async(host, device, &small, stream, &op, NULL), GCORE_D2H_OK);
    assert_int_equal(gcore_d2h_wait(&op, NULL), GCORE_D2H_OK);
    fake.result = hipErrorInvalidValue;
    assert_int_equal(gcore_d2h_copy_async(host, device, &small, stream, &op, &r),
                     GCORE_D2H_DEVICE_ERROR);
    assert_int_equal(r.hip_error, hipErrorInvalidValue);
    assert_null(op.pending);
    fake.result = hipSuccess;
    assert_int_equal(gcore_d2h_wait(&op, NULL), GCORE_D2H_OK);
}

/* ---- the messenger --------------------------------------------------------------------------- */

static void the_message_names_who_reported_the_error_first(void **state) {
    (void)state;
    attach((struct audit_config){ 0 });
    struct gcore_d2h_result r;
    fake.result = hipErrorIllegalAddress;
    assert_int_equal(api.hipStreamSynchronize(stream), hipErrorIllegalAddress);
    assert_int_equal(gcore_d2h_copy(host, device, &small, NULL, &r), GCORE_D2H_DEVICE_ERROR);
    assert_non_null(strstr(r.message, "first reported by hipStreamSynchronize in test_d2h_async"));
    assert_non_null(strstr(r.message, "only reports"));
}

static void an_unknown_pointer_on_a_failed_device_is_a_device_error(void **state) {
    (void)state;
    attach((struct audit_config){ 0 });
    struct gcore_d2h_result r;
    audit.raw.hipPointerGetAttributes = fake_hipPointerGetAttributes; /* fails as everything does */
    fake.result = hipErrorIllegalAddress;
    assert_int_equal(gcore_d2h_copy(host, "stray", &small, NULL, &r), GCORE_D2H_DEVICE_ERROR);
    assert_int_equal(r.hip_error, hipErrorIllegalAddress);
    assert_int_equal(fake_copies(), 0);
}

/* ---- batches --------------------------------------------------------------------------------- */

static void a_batch_waits_once_for_all(void **state) {
    (void)state;
    attach((struct audit_config){ .d2h_audit = true });
    struct gcore_d2h_item items[3] = { 0 };
    struct gcore_d2h_result r;
    for (int i = 0; i < 3; i++) {
        device[64 * i] = (unsigned char)(i + 1);
        items[i] = (struct gcore_d2h_item){
            .to = host + 64 * i,
            .from = device,
            .kind = i == 1 ? hipMemcpyDefault : hipMemcpyDeviceToHost,
            .meta = { .tensor = "qkv", .offset = 64 * (size_t)i, .size = 64 }
        };
    }
    assert_int_equal(gcore_d2h_batch(items, 3, stream, &r), GCORE_D2H_OK);
    assert_int_equal(fake_calls(hipStreamSynchronize), 1);
    assert_int_equal(fake_calls(hipMemcpyAsync), 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(host[64 * i], i + 1);
        assert_int_equal(items[i].result.code, GCORE_D2H_OK);
        assert_int_equal(items[i].result.op_id, i);
    }
    /* All were started before any had ended. */
    const char *log = fake_log();
    assert_int_equal(count(log, "D2H_AUDIT_END"), 3);
    assert_true(strstr(log, "START] op_id=2") < strstr(log, "END] op_id=0"));
}

static void a_refused_item_keeps_nobody_back(void **state) {
    (void)state;
    attach((struct audit_config){ 0 });
    struct gcore_d2h_item items[3];
    struct gcore_d2h_result r;
    for (int i = 0; i < 3; i++)
        items[i] = (struct gcore_d2h_item){
            host + 64 * i, device, hipMemcpyDeviceToHost, { .tensor = "x", .size = 64 }, { 0 }
        };
    items[1].meta.size = 5000;
    assert_int_equal(gcore_d2h_batch(items, 3, stream, &r), GCORE_D2H_OUT_OF_ALLOCATION);
    assert_int_equal(r.code, GCORE_D2H_OUT_OF_ALLOCATION);
    assert_int_equal(items[0].result.code, GCORE_D2H_OK);
    assert_int_equal(items[1].result.code, GCORE_D2H_OUT_OF_ALLOCATION);
    assert_int_equal(items[2].result.code, GCORE_D2H_OK);
    assert_int_equal(host[0], 7);
    assert_int_equal(host[64], 0xa5);
    assert_int_equal(host[128], 7);
    assert_string_equal(fake_log(), "[D2H_BOUNDS] tensor=x offset=0 size=5000 alloc=4096\n");
}

static void a_batch_on_a_failed_device_asks_it_once(void **state) {
    (void)state;
    attach((struct audit_config){ .d2h_audit = true });
    struct gcore_d2h_item items[3];
    for (int i = 0; i < 3; i++)
        items[i] = (struct gcore_d2h_item){
            host + 64 * i, device, hipMemcpyDeviceToHost, { .tensor = "x", .size = 64 }, { 0 }
        };
    fake.result = hipErrorIllegalAddress;
    assert_int_equal(gcore_d2h_batch(items, 3, stream, NULL), GCORE_D2H_DEVICE_ERROR);
    assert_int_equal(fake_calls(hipMemcpyAsync), 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(items[i].result.hip_error, hipErrorIllegalAddress);
    assert_int_equal(count(fake_log(), "D2H_AUDIT_START"), 3);
    assert_int_equal(count(fake_log(), "D2H_AUDIT_END"), 3);
}

static void a_batch_whose_wait_fails_fails_as_a_whole(void **state) {
    (void)state;
    attach((struct audit_config){ 0 });
    struct gcore_d2h_item items[2];
    for (int i = 0; i < 2; i++)
        items[i] = (struct gcore_d2h_item){
            host + 64 * i, device, hipMemcpyDeviceToHost, { .tensor = "x", .size = 64 }, { 0 }
        };
    audit.raw.hipStreamSynchronize = fake_hipStreamSynchronize;
    audit.raw.hipMemcpyAsync = fake_copy_that_is_queued;
    fake.result = hipErrorIllegalAddress;
    assert_int_equal(gcore_d2h_batch(items, 2, stream, NULL), GCORE_D2H_DEVICE_ERROR);
    assert_int_equal(items[0].result.code, GCORE_D2H_DEVICE_ERROR);
    assert_int_equal(items[1].result.code, GCORE_D2H_DEVICE_ERROR);
}

#define T(name) cmocka_unit_test_teardown(name, fake_detach)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(an_async_copy_is_done_after_its_wait),
        T(events_are_used_again),
        T(without_an_op_there_is_no_event),
        T(end_is_written_at_completion_not_at_queueing),
        T(end_is_written_once_by_wait_or_by_the_stream),
        T(a_failing_stream_gives_every_start_its_end),
        T(a_sticky_error_of_any_call_flushes_the_log),
        T(a_stream_that_cannot_report_is_waited_for),
        T(detaching_ends_what_is_open),
        T(a_device_reset_ends_what_is_open),
        T(a_copy_that_cannot_be_queued_fails_at_once),
        T(the_message_names_who_reported_the_error_first),
        T(an_unknown_pointer_on_a_failed_device_is_a_device_error),
        T(a_batch_waits_once_for_all),
        T(a_refused_item_keeps_nobody_back),
        T(a_batch_on_a_failed_device_asks_it_once),
        T(a_batch_whose_wait_fails_fails_as_a_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
