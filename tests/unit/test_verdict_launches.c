/* What the device states about launches, and what may be concluded from it. */
#include "unit/test_verdict.h"

static uint32_t s0, s1;
static uint64_t block;

static const struct event_checked nothing = { .how = DETAIL_CHECKED_NOTHING };
static const struct event_checked slack_in_front = { .how = DETAIL_CHECKED_GUARDS,
                                                     .before = 4095,
                                                     .flags = EVENT_CHECKED_PATTERN };
static const struct event_checked slack_behind = { .how = DETAIL_CHECKED_GUARDS, .after = 4095 };
static const struct event_checked every = { .how = DETAIL_CHECKED_EVERY_ACCESS };

static void prepare(void) {
    s0 = default_stream();
    s1 = nonblocking();
    block = alloc(DEVICE_AT, 4 * KIB);
    set(DEVICE_AT, 4 * KIB, s0);
    sync_device(0);
}

static void finish(void) {
    sync_device(0);
    free_at(DEVICE_AT);
    put(EVENT_STREAM_DESTROY, HIP_FN_hipStreamDestroy, 0, 0x1000, 0, 0, s1, NULL);
    judge();
}

static uint64_t scale(const struct event_checked *checked) {
    return launch_checked("scale", DEVICE_AT, EVENT_ARG_READ | EVENT_ARG_WRITE, 1, s0, checked);
}

static void expect_says(const char *text, const char *part) {
    if (!strstr(text, part))
        fail_msg("'%s' is not in: %s", part, text);
}

static const char *text_of(enum verdict_hypothesis_id id) {
    return V->hypothesis[id].text;
}

/* ---- what did it touch? ---------------------------------------------------------------------- */

enum { POINTS = 100, POINT = 12 };

/* The device states one member of every point, of `ranges` that the launch touched in all. */
static uint64_t touched(uint64_t launch, unsigned access, uint64_t at, uint64_t ranges,
                        uint64_t before) {
    union event_slot s[2];
    s[0].event = (struct event){ .kind = EVENT_TOUCHED,
                                 .dst = ranges,
                                 .src = launch,
                                 .len = before,
                                 .aux = event_aux(EVENT_NO_FN, 0) };
    event_extra_pattern(&s[1], &(struct event_pattern){ .access = { .address = at,
                                                                    .bytes = 4,
                                                                    .access = access,
                                                                    .argument = EVENT_NO_ARGUMENT },
                                                        .pitch = POINT,
                                                        .rows = POINTS,
                                                        .slices = 1 });
    return put_slots(s, 2);
}

static uint64_t launch_points(const char *kernel) {
    return launch_checked(kernel, DEVICE2_AT, EVENT_ARG_READ | EVENT_ARG_WRITE, 1, s0, &every);
}

/* x and y are written, in the order in which the device may tell it; then one member is read. */
static void use_points(uint64_t read_at) {
    prepare();
    alloc(DEVICE2_AT, POINTS * POINT);
    uint64_t l = launch_points("set");
    uint64_t first = touched(l, DETAIL_ACCESS_WRITE, DEVICE2_AT, 2, 0);
    touched(l, DETAIL_ACCESS_WRITE, DEVICE2_AT + 4, 2, first);
    touched(launch_points("get"), DETAIL_ACCESS_READ, read_at, 1, 0);
    sync_device(0);
    free_at(DEVICE2_AT);
    finish();
}

static void strides_are_compared_row_by_row(void **state) {
    (void)state;
    use_points(DEVICE2_AT + 4);
    expect_no_findings();
    assert_int_equal(status_of(HYPOTHESIS_UNINITIALISED_READ), VERDICT_STATUS_RULED_OUT);
    assert_int_equal(status_of(HYPOTHESIS_SHAPE_MISMATCH), VERDICT_STATUS_NOT_APPLICABLE);
}

static void a_member_that_nothing_wrote_is_found(void **state) {
    (void)state;
    use_points(DEVICE2_AT + 8);
    assert_int_equal(status_of(HYPOTHESIS_UNINITIALISED_READ), VERDICT_STATUS_CONFIRMED);
    expect_says(text_of(HYPOTHESIS_UNINITIALISED_READ), "reads 400 bytes that nothing has written");
}

/* A kernel writes a variable, whose address the program asks for only when it copies it. */
static void copy_variable(bool ordered) {
    prepare();
    touched(launch_checked("count", DEVICE_AT, EVENT_ARG_READ, 1, s0, &every), DETAIL_ACCESS_WRITE,
            DEVICE2_AT, 1, 0);
    if (ordered)
        sync_device(0);
    put(EVENT_SYMBOL, EVENT_NO_FN, 0, DEVICE2_AT, 0, POINTS * POINT, s1, NULL);
    copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE2_AT, 4, s1);
    finish();
}

/* Two streams, and memory that no call allocated. */
static void share_variable(unsigned first, unsigned second) {
    const unsigned access[] = { first, second };
    prepare();
    for (unsigned i = 0; i < 2; i++) {
        union event_slot s[2];
        const struct event_access a = { DEVICE2_AT, 64, access[i], EVENT_NO_ARGUMENT };
        uint64_t l = launch_checked("k", DEVICE_AT, EVENT_ARG_READ, 1, i ? s1 : s0, &every);
        s[0].event = (struct event){
            .kind = EVENT_TOUCHED, .dst = 1, .src = l, .aux = event_aux(EVENT_NO_FN, 0)
        };
        event_extra_accesses(&s[1], &a, 1);
        put_slots(s, 2);
    }
    sync_device(0);
    finish();
}

static void constants_of_a_module_are_read_by_all(void **state) {
    (void)state;
    share_variable(DETAIL_ACCESS_READ, DETAIL_ACCESS_READ);
    assert_int_equal(status_of(HYPOTHESIS_STREAM_UNSYNCED), VERDICT_STATUS_RULED_OUT);
}

static void a_variable_in_two_streams_is_never_clean(void **state) {
    (void)state;
    share_variable(DETAIL_ACCESS_WRITE, DETAIL_ACCESS_READ);
    expect_no_findings();
    expect_overall(INCONCLUSIVE);
    expect_says(V->answer, "use the same bytes of memory that no recorded call allocated");
}

static void a_variable_is_known_to_launches_before_its_address_is_asked_for(void **state) {
    (void)state;
    copy_variable(false);
    assert_int_equal(status_of(HYPOTHESIS_STREAM_UNSYNCED), VERDICT_STATUS_CONFIRMED);
    expect_says(text_of(HYPOTHESIS_STREAM_UNSYNCED), "count");
}

static void a_variable_that_is_waited_for_is_copied_in_order(void **state) {
    (void)state;
    copy_variable(true);
    expect_no_findings();
    assert_int_equal(status_of(HYPOTHESIS_STREAM_UNSYNCED), VERDICT_STATUS_RULED_OUT);
}

/* Some of what the launch wrote is in an event that is not there. */
static void a_missing_part_is_a_launch_of_unknown_extent(void **state) {
    (void)state;
    prepare();
    alloc(DEVICE2_AT, POINTS * POINT);
    touched(launch_points("set"), DETAIL_ACCESS_WRITE, DEVICE2_AT, 2, 0);
    touched(launch_points("get"), DETAIL_ACCESS_READ, DEVICE2_AT + 4, 1, 0);
    sync_device(0);
    free_at(DEVICE2_AT);
    finish();
    expect_no_findings();
    assert_int_equal(status_of(HYPOTHESIS_UNINITIALISED_READ), VERDICT_STATUS_INCONCLUSIVE);
}

/* A count of 0 says nothing; what the device states does. */
static void what_was_not_there_is_not_counted(void **state) {
    (void)state;
    s0 = default_stream();
    s1 = nonblocking();
    block = alloc(DEVICE_AT, 4 * KIB);
    touched(launch_checked("fill", DEVICE_AT, EVENT_ARG_WRITE, 1, s0, &every), DETAIL_ACCESS_WRITE,
            DEVICE_AT, 1, 0);
    finish();
    expect_no_findings();
    expect_says(
        text_of(HYPOTHESIS_SIZE_MISMATCH),
        "its tensor; the device states that it checked the launch; private arrays of a thread "
        "were checked against its private memory as a whole");
    assert_int_equal(status_of(HYPOTHESIS_SHAPE_MISMATCH), VERDICT_STATUS_NOT_APPLICABLE);
    expect_says(text_of(HYPOTHESIS_SHAPE_MISMATCH),
                "launched no kernel that states the shapes it expects");
}

/* ---- did it run? ----------------------------------------------------------------------------- */

static void kernels_that_did_not_run_are_never_clean(void **state) {
    (void)state;
    prepare();
    uint64_t a = scale(&nothing), b = scale(&nothing);
    not_run(a, DETAIL_REASON_NO_NATIVE_TWIN, "scale");
    not_run(b, DETAIL_REASON_NO_NATIVE_TWIN, "scale");
    launch_writes("w", DEVICE_AT, KIB, s0);
    finish();
    expect_no_findings();
    expect_overall(INCONCLUSIVE);
    expect_says(V->answer, "2 of 3 launches did not run: first scale, machine code");
    expect_status(UPSTREAM_KERNEL_FAULT, INCONCLUSIVE);
    expect_status(SIZE_MISMATCH, INCONCLUSIVE);
    expect_status(DOUBLE_FREE, RULED_OUT); /* which needs no kernel */
}

static void launches_nobody_waited_for_may_not_have_run(void **state) {
    (void)state;
    prepare();
    launch_writes("w", DEVICE_AT, KIB, s1);
    judge();
    expect_status(UPSTREAM_KERNEL_FAULT, INCONCLUSIVE);
    expect_says(text_of(HYPOTHESIS_UPSTREAM_KERNEL_FAULT),
                "the only launch ran to its end (kernel w)");
}

static void the_device_may_say_that_they_ran(void **state) {
    (void)state;
    prepare();
    launch_writes("w", DEVICE_AT, KIB, s1);
    launch_writes("w", DEVICE_AT, KIB, s1);
    ran(2, s1);
    judge();
    expect_status(UPSTREAM_KERNEL_FAULT, RULED_OUT);
}

static void some_of_them_are_not_all(void **state) {
    (void)state;
    prepare();
    launch_writes("w", DEVICE_AT, KIB, s1);
    launch_writes("late", DEVICE_AT, KIB, s1);
    ran(1, s1);
    judge();
    expect_status(UPSTREAM_KERNEL_FAULT, INCONCLUSIVE);
    expect_says(text_of(HYPOTHESIS_UPSTREAM_KERNEL_FAULT), "kernel late");
}

/* What a kernel that did not run should have written is not the reader's fault. */
static void output_of_a_kernel_that_failed_is_not_uninitialised(void **state) {
    (void)state;
    prepare();
    alloc(DEVICE2_AT, KIB);
    status = hipErrorNotSupported;
    uint64_t k = launch_pointer("k", DEVICE2_AT, EVENT_ARG_WRITE, 1, s0);
    not_run(k, DETAIL_REASON_NO_NATIVE_TWIN, "k");
    call(HIP_FN_hipGetErrorString, hipErrorNotSupported);
    copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE2_AT, KIB, s0);
    free_at(DEVICE2_AT);
    finish();
    expect_no_findings();
    expect_says(V->answer, "the only launch did not run");
}

/* ---- what was checked? ----------------------------------------------------------------------- */

static void unchecked_launches_prove_nothing(void **state) {
    (void)state;
    prepare();
    scale(&nothing);
    launch_unknown("other", s0);
    finish();
    expect_status(SIZE_MISMATCH, INCONCLUSIVE);
    expect_status(BAD_OFFSET, INCONCLUSIVE);
    expect_status(INVALID_POINTER, INCONCLUSIVE);
    expect_status(USE_AFTER_FREE, INCONCLUSIVE);
    expect_status(UNINITIALISED_READ, INCONCLUSIVE);
    expect_says(text_of(HYPOTHESIS_SIZE_MISMATCH), "2 of 2 launches (first scale)");
    expect_overall(CLEAN); /* a GPU cannot tell: no option would have decided it */
}

static void every_access_checked_is_proof(void **state) {
    (void)state;
    prepare();
    scale(&every);
    finish();
    expect_status(SIZE_MISMATCH, RULED_OUT);
    expect_status(BAD_OFFSET, RULED_OUT);
    expect_status(USE_AFTER_FREE, RULED_OUT);
    expect_status(UNINITIALISED_READ, INCONCLUSIVE); /* which bytes it read is not recorded */
    expect_says(text_of(HYPOTHESIS_SIZE_MISMATCH), "the device states that it checked");
}

static void slack_in_front_leaves_offsets_open(void **state) {
    (void)state;
    prepare();
    scale(&slack_in_front);
    finish();
    expect_status(BAD_OFFSET, INCONCLUSIVE);
    expect_says(text_of(HYPOTHESIS_BAD_OFFSET), "reads up to 4095 bytes in front of a buffer");
    expect_status(SIZE_MISMATCH, RULED_OUT);
    expect_overall(CLEAN);
}

static void slack_behind_leaves_sizes_open(void **state) {
    (void)state;
    prepare();
    scale(&slack_behind);
    finish();
    expect_status(BAD_OFFSET, RULED_OUT);
    expect_status(SIZE_MISMATCH, INCONCLUSIVE);
    expect_says(text_of(HYPOTHESIS_SIZE_MISMATCH), "accesses up to 4095 bytes past the end of");
}

static void tensors_inside_a_block_have_no_guards(void **state) {
    (void)state;
    prepare();
    name_range(DEVICE_AT, KIB, "a");
    name_range(DEVICE_AT + KIB, KIB, "b");
    launch_pointer("k", DEVICE_AT, EVENT_ARG_WRITE, 1, s0);
    finish();
    expect_status(SIZE_MISMATCH, INCONCLUSIVE);
    expect_says(text_of(HYPOTHESIS_SIZE_MISMATCH), "inside a larger block");
}

static void the_path_of_the_library_proves_nothing(void **state) {
    (void)state;
    record_provenance(W, "runtime.path", "/x/lib/soft/libamdhip64.so.6");
    prepare();
    scale(&nothing);
    finish();
    expect_status(SIZE_MISMATCH, INCONCLUSIVE);
}

/* ---- slack ----------------------------------------------------------------------------------- */

static void a_write_in_front_is_a_bad_offset(void **state) {
    (void)state;
    prepare();
    uint64_t good = scale(&slack_in_front), bad = scale(&slack_in_front);
    slack(DEVICE_AT - 16, block, 16, DETAIL_SIDE_BEFORE, good, bad);
    finish();
    expect_finding(BAD_OFFSET, bad);
    expect_overall(FINDINGS);
    expect_says(V->answer, "wrote 16 bytes in front of a block of 4 KiB");
    assert_int_equal(V->findings[0].block->alloc, block);
    assert_null(V->messenger);
}

static void a_write_behind_is_a_size(void **state) {
    (void)state;
    prepare();
    uint64_t bad = scale(&slack_behind);
    slack(DEVICE_AT + 4 * KIB, block, 4, DETAIL_SIDE_AFTER, EVENT_NO_SEQ, bad);
    finish();
    expect_finding(SIZE_MISMATCH, bad);
}

static void of_several_launches_none_is_accused(void **state) {
    (void)state;
    prepare();
    scale(&slack_in_front);
    scale(&slack_in_front);
    slack(DEVICE_AT - 16, block, 16, DETAIL_SIDE_BEFORE, EVENT_NO_SEQ, EVENT_NO_SEQ);
    finish();
    expect_status(BAD_OFFSET, CONFIRMED);
    expect_overall(FINDINGS);
    assert_null(V->culprit);
    expect_says(V->answer, "one of 2 launches: kernel scale");
}

/* The other launch had nothing to do with the block. */
static void a_launch_on_another_block_is_no_candidate(void **state) {
    (void)state;
    prepare();
    alloc(DEVICE2_AT, KIB);
    launch_pointer("other", DEVICE2_AT, EVENT_ARG_WRITE, 1, s0);
    uint64_t bad = scale(&slack_in_front);
    slack(DEVICE_AT - 16, block, 16, DETAIL_SIDE_BEFORE, EVENT_NO_SEQ, bad);
    free_at(DEVICE2_AT);
    finish();
    expect_finding(BAD_OFFSET, bad);
}

/* ---- pointers that a kernel finds in memory -------------------------------------------------- */

/* A table of pointers is uploaded; the kernel writes through it. */
static void output_through_a_table_is_not_uninitialised(void **state) {
    (void)state;
    prepare();
    alloc(DEVICE2_AT, KIB); /* its address is in the table */
    copy(hipMemcpyHostToDevice, DEVICE_AT, HOST_AT, 64, s0);
    launch_pointer("batched", DEVICE_AT, EVENT_ARG_READ, 1, s0);
    copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE2_AT, KIB, s0);
    free_at(DEVICE2_AT);
    finish();
    expect_no_findings();
    expect_status(UNINITIALISED_READ, INCONCLUSIVE);
}

/* No table can have held the address of memory that did not exist yet. */
static void a_table_older_than_the_block_excuses_nothing(void **state) {
    (void)state;
    prepare();
    copy(hipMemcpyHostToDevice, DEVICE_AT, HOST_AT, 64, s0);
    alloc(DEVICE2_AT, KIB);
    launch_pointer("batched", DEVICE_AT, EVENT_ARG_READ, 1, s0);
    uint64_t read = copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE2_AT, KIB, s0);
    free_at(DEVICE2_AT);
    finish();
    expect_finding(UNINITIALISED_READ, read);
}

static void order_beside_kernels_of_unknown_bytes_is_open(void **state) {
    (void)state;
    prepare();
    alloc(DEVICE2_AT, KIB);
    set(DEVICE2_AT, KIB, s1);
    launch_pointer("k", DEVICE_AT, EVENT_ARG_READ, 1, s0);
    sync_device(0);
    free_at(DEVICE2_AT);
    finish();
    expect_no_findings();
    expect_status(STREAM_UNSYNCED, INCONCLUSIVE);
    expect_says(text_of(HYPOTHESIS_STREAM_UNSYNCED), "kernel k");
}

/* ---- host memory ----------------------------------------------------------------------------- */

static void copy_from_pinned(void) {
    prepare();
    alloc_pinned(PINNED_AT, KIB);
    h2d(DEVICE_AT, PINNED_AT, KIB, s0);
    sync_stream(s0);
    free_pinned(PINNED_AT);
    finish();
}

static void host_memory_in_use_needs_watching(void **state) {
    (void)state;
    copy_from_pinned();
    expect_no_findings();
    expect_overall(INCONCLUSIVE);
    expect_says(V->answer, "--watch-host");
    expect_status(STREAM_UNSYNCED, INCONCLUSIVE);
    expect_status(STAGING_REUSE, INCONCLUSIVE);
}

static void watched_host_memory_is_proof(void **state) {
    (void)state;
    watch_host();
    copy_from_pinned();
    expect_overall(CLEAN);
    expect_status(STREAM_UNSYNCED, RULED_OUT);
    expect_status(STAGING_REUSE, RULED_OUT);
}

static void copies_that_wait_need_no_watching(void **state) {
    (void)state;
    prepare();
    alloc_pinned(PINNED_AT, KIB);
    copy(hipMemcpyHostToDevice, DEVICE_AT, PINNED_AT, KIB, s0);
    h2d(DEVICE_AT, HOST_AT, KIB, s0); /* plain memory: HIP waits for it */
    free_pinned(PINNED_AT);
    finish();
    expect_overall(CLEAN);
    expect_status(STREAM_UNSYNCED, RULED_OUT);
}

/* ---- CLEAN ----------------------------------------------------------------------------------- */

static void a_program_that_exits_with_an_error_is_not_clean(void **state) {
    (void)state;
    record_provenance(W, "run.exit", "3");
    prepare();
    finish();
    expect_overall(INCONCLUSIVE);
    expect_says(V->answer, "exit status 3");
}

static void a_failing_call_that_nobody_looks_at_is_not_clean(void **state) {
    (void)state;
    prepare();
    sync_device(0);
    status = hipErrorInvalidValue;
    put(EVENT_EVENT_CREATE, HIP_FN_hipEventCreateWithFlags, 0, 0, 77, 0, 0, NULL);
    finish();
    expect_no_findings();
    expect_overall(INCONCLUSIVE);
    expect_says(V->answer, "hipEventCreateWithFlags");
    expect_says(V->answer, "hipErrorInvalidValue");
}

static void a_failing_call_that_is_made_again_is_handled(void **state) {
    (void)state;
    prepare();
    status = hipErrorOutOfMemory;
    put(EVENT_ALLOC, HIP_FN_hipMalloc, DETAIL_FAMILY_DEVICE, 0, 0, UINT64_C(1) << 50, 0, NULL);
    alloc(DEVICE2_AT, KIB);
    free_at(DEVICE2_AT);
    finish();
    expect_no_findings();
    expect_overall(CLEAN);
}

static void try_to_allocate(int shift) {
    status = hipErrorOutOfMemory;
    put(EVENT_ALLOC, HIP_FN_hipMalloc, DETAIL_FAMILY_DEVICE, 0, 0, UINT64_C(1) << shift, 0, NULL);
}

/* As in while (hipMalloc(&p, size) != hipSuccess) size /= 2; */
static void a_call_that_is_tried_until_it_succeeds_is_handled(void **state) {
    (void)state;
    prepare();
    try_to_allocate(50);
    try_to_allocate(49);
    try_to_allocate(48);
    alloc(DEVICE2_AT, KIB);
    free_at(DEVICE2_AT);
    finish();
    expect_no_findings();
    expect_overall(CLEAN);
}

static void a_call_that_is_tried_in_vain_is_not_clean(void **state) {
    (void)state;
    prepare();
    try_to_allocate(50);
    try_to_allocate(49);
    sync_device(0);
    finish();
    expect_no_findings();
    expect_overall(INCONCLUSIVE);
    expect_says(V->answer, "hipErrorOutOfMemory");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        verdict_test(strides_are_compared_row_by_row),
        verdict_test(a_member_that_nothing_wrote_is_found),
        verdict_test(constants_of_a_module_are_read_by_all),
        verdict_test(a_variable_in_two_streams_is_never_clean),
        verdict_test(a_variable_is_known_to_launches_before_its_address_is_asked_for),
        verdict_test(a_variable_that_is_waited_for_is_copied_in_order),
        verdict_test(what_was_not_there_is_not_counted),
        verdict_test(a_missing_part_is_a_launch_of_unknown_extent),
        verdict_test(kernels_that_did_not_run_are_never_clean),
        verdict_test(launches_nobody_waited_for_may_not_have_run),
        verdict_test(the_device_may_say_that_they_ran),
        verdict_test(some_of_them_are_not_all),
        verdict_test(output_of_a_kernel_that_failed_is_not_uninitialised),
        verdict_test(unchecked_launches_prove_nothing),
        verdict_test(every_access_checked_is_proof),
        verdict_test(slack_in_front_leaves_offsets_open),
        verdict_test(slack_behind_leaves_sizes_open),
        verdict_test(tensors_inside_a_block_have_no_guards),
        verdict_test(the_path_of_the_library_proves_nothing),
        verdict_test(a_write_in_front_is_a_bad_offset),
        verdict_test(a_write_behind_is_a_size),
        verdict_test(of_several_launches_none_is_accused),
        verdict_test(a_launch_on_another_block_is_no_candidate),
        verdict_test(output_through_a_table_is_not_uninitialised),
        verdict_test(a_table_older_than_the_block_excuses_nothing),
        verdict_test(order_beside_kernels_of_unknown_bytes_is_open),
        verdict_test(host_memory_in_use_needs_watching),
        verdict_test(watched_host_memory_is_proof),
        verdict_test(copies_that_wait_need_no_watching),
        verdict_test(a_program_that_exits_with_an_error_is_not_clean),
        verdict_test(a_failing_call_that_nobody_looks_at_is_not_clean),
        verdict_test(a_failing_call_that_is_made_again_is_handled),
        verdict_test(a_call_that_is_tried_until_it_succeeds_is_handled),
        verdict_test(a_call_that_is_tried_in_vain_is_not_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
