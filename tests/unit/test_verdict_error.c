/* Failing calls and faults: which call reported it, which operation did it, whether the program
 * looked; stale binaries; what the verdict as a whole says. */
#include "unit/test_verdict_block.h"

/* The device's word: an operation, an address, an argument. */
static uint64_t width; /* of the access that faults; 0: not known */

static uint64_t fault(uint64_t op, uint64_t at, unsigned access, const char *kernel,
                      const char *argument, uint64_t position, uint64_t base, uint64_t bytes) {
    union event_slot s[3];
    s[0].event = (struct event){ .kind = EVENT_FAULT,
                                 .aux = event_aux(EVENT_NO_FN, access),
                                 .dst = at,
                                 .src = op,
                                 .len = width,
                                 .name = record_string(W, kernel) };
    event_extra_fault(&s[1], &(struct event_fault){ .argument = position,
                                                    .alloc_base = base,
                                                    .alloc_bytes = bytes,
                                                    .alloc_seq = EVENT_NO_SEQ });
    event_extra_argument(&s[2], position, record_string(W, argument));
    status = hipErrorIllegalAddress;
    return put_slots(s, argument ? 3 : 2);
}

static uint64_t sticky_copy(void) {
    status = hipErrorIllegalAddress;
    return copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE_AT, KIB, s0);
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void a_kernel_past_its_buffer_is_the_culprit(void **state) {
    (void)state;
    prepare();
    name_range(DEVICE_AT, 4 * KIB, "logits");
    uint64_t k = launch_pointer("scale", DEVICE_AT, EVENT_ARG_WRITE, 1, s0);
    fault(k, DEVICE_AT + 4 * KIB, DETAIL_ACCESS_WRITE, "scale", "out", 0, DEVICE_AT, 4 * KIB);
    uint64_t messenger = sticky_copy();
    call(HIP_FN_hipGetErrorString, hipErrorIllegalAddress);
    judge();
    expect_overall(ROOT_CAUSE);
    expect_finding(SIZE_MISMATCH, k);
    expect_status(UPSTREAM_KERNEL_FAULT, CONFIRMED);
    expect_messenger(messenger);
    assert_string_equal(V->messenger->api, "hipMemcpy");
    assert_string_equal(V->culprit->kernel, "scale");
    assert_string_equal(V->culprit->argument, "out");
    assert_string_equal(V->culprit->tensor, "logits");
    assert_true(V->culprit->writes);
    assert_non_null(strstr(V->answer, "scale"));
    assert_non_null(strstr(V->answer, "hipMemcpy"));
    expect_status(BAD_OFFSET, RULED_OUT);
    expect_status(USE_AFTER_FREE, RULED_OUT);
}

static void failures_after_the_first_are_no_findings(void **state) {
    (void)state;
    prepare();
    uint64_t k = launch_unknown("k", s0);
    fault(k, DEVICE_AT + 4 * KIB, DETAIL_ACCESS_READ, "k", NULL, EVENT_NO_ARGUMENT, DEVICE_AT,
          4 * KIB);
    status = hipErrorIllegalAddress;
    uint64_t messenger = sync_device(0);
    for (int i = 0; i < 10; i++) {
        status = hipErrorIllegalAddress;
        free_at(DEVICE_AT);
        status = hipErrorIllegalAddress;
        copy(hipMemcpyDeviceToHost, HOST_AT, 0, 99 * MIB, s0); /* nobody looked at it */
        status = hipErrorIllegalAddress;
        alloc(0, KIB);
    }
    judge();
    expect_messenger(messenger);
    expect_overall(ROOT_CAUSE);
    expect_status(INVALID_POINTER, INCONCLUSIVE); /* nothing says that k was checked */
    expect_status(DOUBLE_FREE, RULED_OUT);
    expect_status(LEAK, INCONCLUSIVE);
    assert_int_equal(V->findings[0].culprit.event, k);
    assert_int_equal(V->coverage.calls_failed, 31);
}

static void sizes_of_the_launch_tell_a_shape(void **state) {
    (void)state;
    prepare();
    name_range(DEVICE_AT, 4 * KIB, "attn_k.weight");
    struct event_access a = { DEVICE_AT, 16 * KIB, DETAIL_ACCESS_READ | EVENT_ACCESS_SHAPED, 1 };
    uint64_t k = launch_exact("matmul", &a, 1, s0);
    fault(k, DEVICE_AT + 7 * KIB, DETAIL_ACCESS_READ, "matmul", "weight", 1, DEVICE_AT, 4 * KIB);
    uint64_t messenger = sticky_copy();
    judge();
    expect_overall(ROOT_CAUSE);
    expect_finding(SHAPE_MISMATCH, k);
    expect_messenger(messenger);
    expect_status(UPSTREAM_KERNEL_FAULT, CONFIRMED);
    expect_status(SIZE_MISMATCH, RULED_OUT);
    assert_string_equal(V->culprit->tensor, "attn_k.weight");
}

/* A kernel that is told a size of 32 x 100 reads just past a block of 12,800 bytes. */
static void past_a_matrix(uint64_t bytes, enum verdict_hypothesis_id expected) {
    enum { ROWS = 100, COLUMNS = 32, SIZE = 4 * ROWS * COLUMNS };
    union event_slot s[3];
    const struct event_arg args[] = { { DEVICE2_AT, 0, EVENT_ARG_READ },
                                      { COLUMNS, 1, EVENT_ARG_NUMBER },
                                      { ROWS, 2, EVENT_ARG_NUMBER } };
    prepare();
    alloc(DEVICE2_AT, SIZE);
    s[0].event = (struct event){ .kind = EVENT_LAUNCH,
                                 .aux = event_aux(HIP_FN_hipModuleLaunchKernel, 0),
                                 .stream = s0,
                                 .name = record_string(W, "blur") };
    event_extra_dims(&s[1], &(struct event_dims){ { 2, 7, 1 }, { 16, 16, 1 }, 0, 0 });
    event_extra_args(&s[2], args, 3);
    uint64_t k = put_slots(s, 3);
    width = bytes;
    fault(k, DEVICE2_AT + SIZE, DETAIL_ACCESS_READ, "blur", "a", 0, DEVICE2_AT, SIZE);
    width = 0;
    sticky_copy();
    judge();
    assert_int_equal(V->findings[0].hypothesis, expected);
}

/* So many floats are what the block holds: the kernel did not keep to its sizes. */
static void sizes_that_fit_are_no_other_shape(void **state) {
    (void)state;
    past_a_matrix(4, HYPOTHESIS_SIZE_MISMATCH);
}

static void sizes_that_do_not_fit_are_another_shape(void **state) {
    (void)state;
    past_a_matrix(8, HYPOTHESIS_SHAPE_MISMATCH);
}

/* Found by the pointer that the kernel got, and told by the device: one case. */
static void a_fault_where_a_range_was_found_counts_once(void **state) {
    (void)state;
    prepare();
    alloc(DEVICE2_AT, KIB);
    free_at(DEVICE2_AT);
    uint64_t k = 0;
    for (int i = 0; i < 3; i++) {
        site = record_site(W, (void *)0x1001);
        k = launch_pointer("k", DEVICE2_AT, EVENT_ARG_READ, 1, s0);
    }
    fault(k, DEVICE2_AT + 5, DETAIL_ACCESS_READ, "k", "in", 0, DEVICE2_AT, KIB);
    sticky_copy();
    judge();
    assert_int_equal(V->finding_count, 1);
    assert_int_equal(V->findings[0].hypothesis, HYPOTHESIS_USE_AFTER_FREE);
    assert_int_equal(V->findings[0].count, 3);
}

static void a_fault_in_freed_memory(void **state) {
    (void)state;
    prepare();
    alloc(DEVICE2_AT, KIB);
    free_at(DEVICE2_AT);
    uint64_t k = launch_unknown("k", s0);
    fault(k, DEVICE2_AT + 5, DETAIL_ACCESS_READ, "k", "in", 0, DEVICE2_AT, KIB);
    sticky_copy();
    judge();
    expect_finding(USE_AFTER_FREE, k);
}

static void a_fault_far_from_the_argument(void **state) {
    (void)state;
    prepare();
    uint64_t k = launch_pointer("k", DEVICE_AT, EVENT_ARG_READ, 1, s0);
    fault(k, DEVICE_AT + 64 * MIB, DETAIL_ACCESS_READ, "k", "in", 0, DEVICE_AT, 4 * KIB);
    sticky_copy();
    judge();
    expect_finding(BAD_OFFSET, k);
}

static void a_fault_before_the_argument(void **state) {
    (void)state;
    prepare();
    uint64_t k = launch_pointer("k", DEVICE_AT, EVENT_ARG_READ, 1, s0);
    fault(k, DEVICE_AT - 100, DETAIL_ACCESS_READ, "k", "in", 0, DEVICE_AT, 4 * KIB);
    sticky_copy();
    judge();
    expect_finding(BAD_OFFSET, k);
}

static void a_fault_at_null(void **state) {
    (void)state;
    prepare();
    uint64_t k = launch_unknown("k", s0);
    fault(k, 16, DETAIL_ACCESS_READ, "k", "in", 0, 0, 0);
    sticky_copy();
    judge();
    expect_finding(INVALID_POINTER, k);
}

static void memory_whose_turn_has_not_come(void **state) {
    (void)state;
    prepare();
    uint32_t s = nonblocking(), t = nonblocking();
    alloc_async(DEVICE2_AT, KIB, s);
    uint64_t k = launch_unknown("k", t);
    fault(k, DEVICE2_AT, DETAIL_ACCESS_WRITE, "k", "out", 0, DEVICE2_AT, KIB);
    sticky_copy();
    judge();
    expect_finding(STREAM_UNSYNCED, k);
}

static void a_fault_after_a_reset_is_another(void **state) {
    (void)state;
    prepare();
    uint64_t k = launch_unknown("one", s0);
    fault(k, DEVICE_AT + 4 * KIB, DETAIL_ACCESS_READ, "one", NULL, EVENT_NO_ARGUMENT, DEVICE_AT,
          4 * KIB);
    uint64_t m1 = sticky_copy();
    put(EVENT_DEVICE_RESET, HIP_FN_hipDeviceReset, 0, 0, 0, 0, 0, NULL);
    alloc(DEVICE_AT, 4 * KIB);
    uint64_t k2 = launch_unknown("two", s0);
    fault(k2, 8, DETAIL_ACCESS_READ, "two", NULL, EVENT_NO_ARGUMENT, 0, 0);
    uint64_t m2 = sticky_copy();
    judge();
    assert_int_equal(V->finding_count, 2);
    expect_messenger(m1);
    assert_int_equal(V->findings[0].culprit.event, k);
    assert_int_equal(V->findings[1].culprit.event, k2);
    assert_int_equal(V->findings[1].messenger->event, m2);
    assert_int_equal(V->findings[1].hypothesis, HYPOTHESIS_INVALID_POINTER);
}

static void a_process_that_died_in_a_call_got_the_message_there(void **state) {
    (void)state;
    prepare();
    uint64_t k = launch_unknown("k", s0);
    status = RECORD_PENDING;
    uint64_t pending = sync_device(0);
    R = open_reader();
    verdict_close(&V);
    reader_close(&R);
    /* The fault is told by a thread of the device. */
    fault(k, 8, DETAIL_ACCESS_READ, "k", NULL, EVENT_NO_ARGUMENT, 0, 0);
    struct err e = { 0 };
    R = open_reader();
    assert_int_equal(verdict_open(&V, R, NULL, &e), RC_OK);
    expect_overall(ROOT_CAUSE);
    assert_int_equal(V->culprit->event, k);
    assert_false(V->coverage.ended);
    (void)pending;
}

/* ---- calls from host functions --------------------------------------------------------------- */

static uint64_t begin_host_fn(void) {
    uint64_t queued = put(EVENT_HOST_FN, HIP_FN_hipLaunchHostFunc, 0, 1, 2, 0, s0, NULL);
    put(EVENT_HOST_FN_BEGIN, EVENT_NO_FN, 0, 1, queued, 0, 0, NULL);
    return queued;
}

static void a_host_function_must_not_call_hip(void **state) {
    (void)state;
    prepare();
    uint64_t queued = begin_host_fn();
    call(HIP_FN___hipPushCallConfiguration, hipSuccess); /* the compiler's, before a launch */
    uint64_t made = sync_device(0);
    sync_device(0); /* the first call stands for all */
    put(EVENT_HOST_FN_END, EVENT_NO_FN, 0, 1, queued, 0, 0, NULL);
    finish();
    expect_overall(FINDINGS);
    assert_int_equal(V->finding_count, 1);
    expect_finding(CALL_IN_CALLBACK, made);
    expect_other(queued);
}

static void a_host_function_may_read_errors(void **state) {
    (void)state;
    prepare();
    uint64_t queued = begin_host_fn();
    call(HIP_FN_hipGetErrorString, hipSuccess);
    put(EVENT_HOST_FN_END, EVENT_NO_FN, 0, 1, queued, 0, 0, NULL);
    expect_clean(); /* and what the thread calls later is not the function's */
    expect_status(CALL_IN_CALLBACK, RULED_OUT);
}

static void a_host_function_that_waits_forever_is_the_cause(void **state) {
    (void)state;
    prepare();
    begin_host_fn();
    status = RECORD_PENDING;
    uint64_t stuck = sync_device(0);
    R = open_reader();
    struct err e = { 0 };
    assert_int_equal(verdict_open(&V, R, NULL, &e), RC_OK);
    expect_overall(ROOT_CAUSE);
    expect_finding(CALL_IN_CALLBACK, stuck);
    expect_messenger(stuck);
}

/* ---- sticky errors without the device's word ------------------------------------------------- */

static void the_only_kernel_in_flight_did_it(void **state) {
    (void)state;
    prepare();
    uint64_t k = launch_unknown("gemm", s0);
    uint64_t messenger = sticky_copy();
    call(HIP_FN_hipGetErrorString, hipErrorIllegalAddress);
    judge();
    expect_finding(UPSTREAM_KERNEL_FAULT, k);
    expect_messenger(messenger);
    expect_overall(ROOT_CAUSE);
}

static void one_of_several_kernels_did_it(void **state) {
    (void)state;
    prepare();
    launch_unknown("gemm", s0);
    launch_unknown("rope", s0);
    uint64_t messenger = sticky_copy();
    judge();
    expect_status(UPSTREAM_KERNEL_FAULT, CONFIRMED);
    expect_overall(INCONCLUSIVE);
    expect_messenger(messenger);
    assert_null(V->culprit);
    assert_non_null(strstr(V->answer, "gemm, rope"));
}

static void kernels_that_were_waited_for_did_not(void **state) {
    (void)state;
    prepare();
    launch_unknown("gemm", s0);
    sync_device(0);
    uint64_t k = launch_unknown("rope", s0);
    sticky_copy();
    judge();
    expect_finding(UPSTREAM_KERNEL_FAULT, k);
}

static void a_finding_about_a_kernel_explains_it(void **state) {
    (void)state;
    prepare();
    launch_unknown("gemm", s0);
    struct event_access a = { DEVICE_AT, 8 * KIB, DETAIL_ACCESS_READ, 2 };
    uint64_t k = launch_exact("rope", &a, 1, s0);
    launch_unknown("softmax", s0);
    uint64_t messenger = sticky_copy();
    judge();
    expect_overall(ROOT_CAUSE);
    expect_finding(SIZE_MISMATCH, k);
    expect_messenger(messenger);
    expect_status(UPSTREAM_KERNEL_FAULT, CONFIRMED);
}

/* ---- who is the messenger -------------------------------------------------------------------- */

static void a_launch_nobody_checked_is_not_the_messenger(void **state) {
    (void)state;
    prepare();
    uint64_t k = launch_unknown("k", s0);
    fault(k, 8, DETAIL_ACCESS_READ, "k", NULL, EVENT_NO_ARGUMENT, 0, 0);
    for (int i = 0; i < 3; i++) {
        status = hipErrorIllegalAddress;
        launch_unknown("next", s0);
    }
    uint64_t messenger = sticky_copy();
    call(HIP_FN_hipGetErrorString, hipErrorIllegalAddress);
    judge();
    expect_messenger(messenger);
}

static void a_launch_that_was_checked_is(void **state) {
    (void)state;
    prepare();
    uint64_t k = launch_unknown("k", s0);
    fault(k, 8, DETAIL_ACCESS_READ, "k", NULL, EVENT_NO_ARGUMENT, 0, 0);
    status = hipErrorIllegalAddress;
    uint64_t messenger = launch_unknown("rope", s0);
    call(HIP_FN_hipGetErrorString, hipErrorIllegalAddress);
    judge();
    expect_messenger(messenger);
    assert_string_equal(V->messenger->kernel, "rope");
}

static void reading_the_last_error_can_be_the_message(void **state) {
    (void)state;
    prepare();
    uint64_t k = launch_unknown("k", s0);
    fault(k, 8, DETAIL_ACCESS_READ, "k", NULL, EVENT_NO_ARGUMENT, 0, 0);
    uint64_t messenger = error_read(hipErrorIllegalAddress, EVENT_NO_SEQ);
    judge();
    expect_messenger(messenger);
    assert_string_equal(V->messenger->api, "hipGetLastError");
    assert_string_equal(V->messenger->status, "hipErrorIllegalAddress");
}

/* A safe copy waits for its stream itself; the copy is what the program called. */
static void the_copy_of_a_safe_copy_is_the_messenger(void **state) {
    (void)state;
    prepare();
    uint64_t k = launch_unknown("k", s0);
    fault(k, 8, DETAIL_ACCESS_READ, "k", NULL, EVENT_NO_ARGUMENT, 0, 0);
    uint32_t here = record_site(W, (void *)0x4242);
    union event_slot s[2];
    s[0].event = (struct event){ .kind = EVENT_SAFE_COPY,
                                 .aux = event_aux(EVENT_NO_FN, DETAIL_DECISION_PASSED),
                                 .dst = HOST_AT,
                                 .src = DEVICE_AT,
                                 .len = KIB,
                                 .name = record_string(W, "logits") };
    event_extra_safe(&s[1], &(struct event_safe){ .op_id = 1, .step = 7, .layer = 2 });
    site = here;
    put_slots(s, 2);
    site = here;
    uint64_t messenger = put(EVENT_COPY, HIP_FN_hipMemcpyAsync, hipMemcpyDeviceToHost | ASYNC,
                             HOST_AT, DEVICE_AT, KIB, s0, "logits");
    site = here;
    status = hipErrorIllegalAddress;
    sync_stream(s0);
    judge();
    expect_messenger(messenger);
    assert_string_equal(V->messenger->tensor, "logits");
    assert_int_equal(V->messenger->step, 7);
    assert_int_equal(V->messenger->layer, 2);
    assert_int_equal(V->coverage.copies_safe, 1);
    assert_int_equal(V->coverage.copies_d2h_safe, 1);
}

/* ---- UNCHECKED_ERROR ------------------------------------------------------------------------- */

static void a_failed_allocation_that_is_used(void **state) {
    (void)state;
    prepare();
    status = hipErrorOutOfMemory;
    uint64_t failed = alloc(0, 99 * MIB);
    status = hipErrorInvalidValue;
    uint64_t used = copy(hipMemcpyHostToDevice, 0, HOST_AT, KIB, s0);
    finish();
    expect_overall(ROOT_CAUSE);
    expect_status(UNCHECKED_ERROR, CONFIRMED);
    assert_int_equal(V->findings[0].hypothesis, HYPOTHESIS_UNCHECKED_ERROR);
    assert_int_equal(V->culprit->event, failed);
    expect_messenger(used);
}

static void a_failed_allocation_that_is_looked_at(void **state) {
    (void)state;
    prepare();
    status = hipErrorOutOfMemory;
    alloc(0, 99 * MIB);
    call(HIP_FN_hipGetErrorString, hipErrorOutOfMemory);
    alloc(DEVICE2_AT, KIB);
    set(DEVICE2_AT, KIB, s0);
    free_at(DEVICE2_AT);
    expect_clean();
    expect_status(UNCHECKED_ERROR, RULED_OUT);
    assert_int_equal(V->remark_count, 1);
}

static void a_program_without_code_for_the_device(void **state) {
    (void)state;
    prepare();
    status = hipErrorNoBinaryForGpu;
    launch_unknown("k", s0);
    status = hipErrorNoBinaryForGpu;
    launch_unknown("k", s0);
    finish();
    unsigned said = 0;
    for (size_t i = 0; i < V->remark_count; i++)
        said += strstr(V->remarks[i], "--offload-arch=gfx90a") != NULL;
    assert_int_equal(said, 1);
    assert_non_null(strstr(V->answer, "the program has no code for this device (kernel k"));
}

static void an_error_that_is_read_at_another_place(void **state) {
    (void)state;
    prepare();
    status = hipErrorInvalidConfiguration;
    uint64_t failed = launch_unknown("bad", s0);
    launch_unknown("good", s0);
    uint64_t read = error_read(hipErrorInvalidConfiguration, failed);
    finish();
    expect_finding(UNCHECKED_ERROR, failed);
    expect_messenger(read);
}

static void an_error_that_is_read_at_once(void **state) {
    (void)state;
    prepare();
    status = hipErrorInvalidConfiguration;
    uint64_t failed = launch_unknown("bad", s0);
    error_read(hipErrorInvalidConfiguration, failed);
    launch_unknown("good", s0);
    finish();
    expect_no_findings();
    expect_status(UNCHECKED_ERROR, RULED_OUT);
}

static uint64_t dropped(uint64_t call) {
    return put(EVENT_DROPPED, EVENT_NO_FN, 0, call, 0, 0, 0, NULL);
}

static void a_failure_whose_result_is_dropped(void **state) {
    (void)state;
    prepare();
    status = hipErrorInvalidHandle;
    uint64_t failed = set(DEVICE_AT, KIB, s0);
    dropped(failed);
    finish();
    expect_finding(UNCHECKED_ERROR, failed);
    assert_non_null(strstr(V->answer, "does not look at the result"));
}

static void a_dropped_failure_that_somebody_asks_about(void **state) {
    (void)state;
    prepare();
    status = hipErrorInvalidHandle;
    uint64_t failed = set(DEVICE_AT, KIB, s0);
    dropped(failed);
    error_read(hipErrorInvalidHandle, failed);
    finish();
    expect_no_findings();
}

static void a_dropped_failure_that_is_tried_again(void **state) {
    (void)state;
    prepare();
    status = hipErrorInvalidHandle;
    dropped(set(DEVICE_AT, KIB, s0));
    set(DEVICE_AT, KIB, s0);
    finish();
    expect_no_findings();
}

static void a_failed_copy_whose_data_is_used(void **state) {
    (void)state;
    prepare();
    alloc(DEVICE2_AT, KIB);
    set(DEVICE2_AT, KIB, s0);
    status = hipErrorNotSupported;
    uint64_t failed = copy(hipMemcpyHostToDevice, DEVICE2_AT, HOST_AT, KIB, s0);
    uint64_t used = launch_reads("k", DEVICE2_AT, KIB, s0);
    free_at(DEVICE2_AT);
    finish();
    expect_finding(UNCHECKED_ERROR, failed);
    expect_messenger(used);
}

static void a_synchronisation_nobody_checked(void **state) {
    (void)state;
    prepare();
    uint64_t k = launch_unknown("k", s0);
    fault(k, 8, DETAIL_ACCESS_READ, "k", NULL, EVENT_NO_ARGUMENT, 0, 0);
    status = hipErrorIllegalAddress;
    uint64_t ignored = sync_device(0);
    sticky_copy();
    call(HIP_FN_hipGetErrorString, hipErrorIllegalAddress);
    judge();
    expect_status(UNCHECKED_ERROR, CONFIRMED);
    assert_int_equal(V->findings[0].culprit.event, k); /* the fault stays the cause */
    assert_int_equal(V->findings[1].culprit.event, ignored);
}

static void failing_questions_are_no_failures(void **state) {
    (void)state;
    prepare();
    status = hipErrorInvalidValue;
    call(HIP_FN_hipPointerGetAttributes, 1);
    status = hipErrorNotReady;
    query_stream(s0);
    launch_unknown("k", s0);
    expect_clean();
    expect_status(UNCHECKED_ERROR, RULED_OUT);
}

/* ---- STALE_BINARY ---------------------------------------------------------------------------- */

static void another_commit_is_not_judged(void **state) {
    (void)state;
    record_provenance(W, "greta.commit", "303b6340000000000000000000000000000000aa");
    prepare();
    status = hipErrorInvalidValue;
    copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE_AT, 8 * KIB, s0);
    options.expect_commit = "1173ae5";
    finish();
    expect_overall(INCONCLUSIVE);
    expect_status(STALE_BINARY, CONFIRMED);
    expect_status(DOUBLE_FREE, INCONCLUSIVE);
    assert_int_equal(strncmp(V->answer, "STALE_BINARY", 12), 0);
    assert_null(V->root);
    assert_int_equal(verdict_exit_code(V), 3);
}

static void the_expected_commit_is_judged(void **state) {
    (void)state;
    record_provenance(W, "greta.commit", "303b6340000000000000000000000000000000aa");
    record_provenance(W, "model.hash", "00ff00ff00ff00ff");
    prepare();
    options.expect_commit = "303b634";
    options.expect_model_hash = "00FF00FF00FF00FF";
    finish();
    expect_overall(CLEAN);
    expect_status(STALE_BINARY, RULED_OUT);
    assert_int_equal(V->hypothesis[HYPOTHESIS_STALE_BINARY].checked, 2);
    assert_int_equal(verdict_exit_code(V), 0);
    assert_string_equal(V->provenance.commit, "303b6340000000000000000000000000000000aa");
}

static void another_model_is_not_judged(void **state) {
    (void)state;
    record_provenance(W, "model.hash", "00ff00ff00ff00ff");
    prepare();
    options.expect_model_hash = "1234567812345678";
    finish();
    expect_status(STALE_BINARY, CONFIRMED);
    assert_int_equal(verdict_exit_code(V), 3);
}

static void a_recording_that_does_not_say_is_not_judged(void **state) {
    (void)state;
    prepare();
    options.expect_commit = "1173ae5";
    finish();
    expect_status(STALE_BINARY, CONFIRMED);
    assert_non_null(strstr(V->answer, "not in the recording"));
}

static void a_changed_tree_is_a_doubt(void **state) {
    (void)state;
    record_provenance(W, "greta.commit", "303b6340000000000000000000000000000000aa");
    record_provenance(W, "greta.dirty", "1");
    prepare();
    options.expect_commit = "303b634";
    finish();
    expect_status(STALE_BINARY, INCONCLUSIVE);
    expect_overall(CLEAN);
}

static void without_expectations_it_does_not_apply(void **state) {
    (void)state;
    prepare();
    finish();
    expect_status(STALE_BINARY, NOT_APPLICABLE);
}

/* ---- as a whole ------------------------------------------------------------------------------ */

static void a_failure_that_was_expected_and_did_not_come(void **state) {
    (void)state;
    prepare();
    options.expect_failure = true;
    finish();
    expect_overall(NOT_REPRODUCED);
    assert_int_equal(verdict_exit_code(V), 0);
}

static void the_earliest_failure_is_the_root(void **state) {
    (void)state;
    prepare();
    site = record_site(W, (void *)0x1001);
    status = hipErrorInvalidValue;
    uint64_t first = copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE_AT, 8 * KIB, s0);
    site = record_site(W, (void *)0x1002);
    status = hipErrorInvalidValue;
    free_at(DEVICE_AT + 8);
    finish();
    assert_int_equal(V->finding_count, 2);
    assert_ptr_equal(V->root, &V->findings[0]);
    assert_int_equal(V->root->culprit.event, first);
    assert_int_equal(verdict_exit_code(V), 1);
}

static void what_the_device_says_beats_an_earlier_suspicion(void **state) {
    (void)state;
    prepare();
    site = record_site(W, (void *)0x1001);
    status = hipErrorInvalidValue;
    copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE_AT, 8 * KIB, s0);
    uint64_t k = launch_unknown("k", s0);
    fault(k, 8, DETAIL_ACCESS_READ, "k", NULL, EVENT_NO_ARGUMENT, 0, 0);
    uint64_t messenger = sticky_copy();
    judge();
    assert_int_equal(V->root->culprit.event, k);
    expect_messenger(messenger);
}

static void only_so_many_findings_are_kept(void **state) {
    (void)state;
    prepare();
    options.findings_max = 5;
    for (uintptr_t i = 1; i <= 20; i++) {
        site = record_site(W, (void *)(0x1000 + i));
        status = hipErrorInvalidValue;
        free_at(DEVICE_AT + i);
    }
    finish();
    assert_int_equal(V->finding_count, 5);
    assert_int_equal(V->findings_left_out, 15);
}

static void steps_and_layers_come_from_marks(void **state) {
    (void)state;
    prepare();
    put(EVENT_MARK, EVENT_NO_FN, DETAIL_MARK_STEP, 3, 0, 0, 0, "step");
    put(EVENT_MARK, EVENT_NO_FN, DETAIL_MARK_LAYER, 11, 0, 0, 0, "layer");
    status = hipErrorInvalidValue;
    copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE_AT, 8 * KIB, s0);
    finish();
    assert_int_equal(V->culprit->step, 3);
    assert_int_equal(V->culprit->layer, 11);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        verdict_test(a_kernel_past_its_buffer_is_the_culprit),
        verdict_test(failures_after_the_first_are_no_findings),
        verdict_test(sizes_of_the_launch_tell_a_shape),
        verdict_test(sizes_that_fit_are_no_other_shape),
        verdict_test(sizes_that_do_not_fit_are_another_shape),
        verdict_test(a_fault_where_a_range_was_found_counts_once),
        verdict_test(a_fault_in_freed_memory),
        verdict_test(a_fault_far_from_the_argument),
        verdict_test(a_fault_before_the_argument),
        verdict_test(a_fault_at_null),
        verdict_test(memory_whose_turn_has_not_come),
        verdict_test(a_fault_after_a_reset_is_another),
        verdict_test(a_process_that_died_in_a_call_got_the_message_there),
        verdict_test(a_host_function_must_not_call_hip),
        verdict_test(a_host_function_may_read_errors),
        verdict_test(a_host_function_that_waits_forever_is_the_cause),
        verdict_test(the_only_kernel_in_flight_did_it),
        verdict_test(one_of_several_kernels_did_it),
        verdict_test(kernels_that_were_waited_for_did_not),
        verdict_test(a_finding_about_a_kernel_explains_it),
        verdict_test(a_launch_nobody_checked_is_not_the_messenger),
        verdict_test(a_launch_that_was_checked_is),
        verdict_test(reading_the_last_error_can_be_the_message),
        verdict_test(the_copy_of_a_safe_copy_is_the_messenger),
        verdict_test(a_failed_allocation_that_is_used),
        verdict_test(a_failed_allocation_that_is_looked_at),
        verdict_test(a_program_without_code_for_the_device),
        verdict_test(an_error_that_is_read_at_another_place),
        verdict_test(an_error_that_is_read_at_once),
        verdict_test(a_failure_whose_result_is_dropped),
        verdict_test(a_dropped_failure_that_somebody_asks_about),
        verdict_test(a_dropped_failure_that_is_tried_again),
        verdict_test(a_failed_copy_whose_data_is_used),
        verdict_test(a_synchronisation_nobody_checked),
        verdict_test(failing_questions_are_no_failures),
        verdict_test(another_commit_is_not_judged),
        verdict_test(the_expected_commit_is_judged),
        verdict_test(another_model_is_not_judged),
        verdict_test(a_recording_that_does_not_say_is_not_judged),
        verdict_test(a_changed_tree_is_a_doubt),
        verdict_test(without_expectations_it_does_not_apply),
        verdict_test(a_failure_that_was_expected_and_did_not_come),
        verdict_test(the_earliest_failure_is_the_root),
        verdict_test(what_the_device_says_beats_an_earlier_suspicion),
        verdict_test(only_so_many_findings_are_kept),
        verdict_test(steps_and_layers_come_from_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
