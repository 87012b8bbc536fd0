/* Copies that overlap, staging buffers, host memory that goes too early, and kernels of which only
 * pointers are known: what is a finding, what is a doubt, and what is right. */
#include "unit/test_verdict_streams.h"

static void prepare(void) {
    alloc(DEVICE_AT, 64 * KIB);
    alloc(DEVICE2_AT, 64 * KIB);
    alloc_pinned(PINNED_AT, 64 * KIB);
    set(DEVICE_AT, 64 * KIB, s0);
    set(DEVICE2_AT, 64 * KIB, s0);
    sync_device(0);
}

static void finish(void) {
    sync_device(0);
    free_at(DEVICE_AT);
    free_at(DEVICE2_AT);
    free_pinned(PINNED_AT);
    judge();
}

/* ---- OVERLAPPING_COPIES ---------------------------------------------------------------------- */

static void two_copies_into_the_same_bytes(void **state) {
    (void)state;
    uint64_t a = h2d(DEVICE_AT, PINNED_AT, 8 * KIB, s1);
    uint64_t b = h2d(DEVICE_AT + 4 * KIB, PINNED_AT + 16 * KIB, 8 * KIB, s2);
    expect_pair(OVERLAPPING_COPIES, a, b);
    assert_int_equal(V->findings[0].culprit.len, 4 * KIB);
    expect_status(STAGING_REUSE, RULED_OUT);
}

static void a_copy_out_of_what_another_copies_in(void **state) {
    (void)state;
    uint64_t a = h2d(DEVICE_AT, PINNED_AT, 8 * KIB, s1);
    uint64_t b = d2h(PINNED_AT + 16 * KIB, DEVICE_AT, 8 * KIB, s2);
    expect_pair(OVERLAPPING_COPIES, a, b);
    expect_status(STREAM_UNSYNCED, CONFIRMED); /* it is that, too */
}

static void two_copies_with_an_event_between(void **state) {
    (void)state;
    event_create(7);
    h2d(DEVICE_AT, PINNED_AT, 8 * KIB, s1);
    uint64_t record = event_record(7, s1);
    event_wait(7, record, s2);
    h2d(DEVICE_AT + 4 * KIB, PINNED_AT + 16 * KIB, 8 * KIB, s2);
    expect_clean();
    expect_status(OVERLAPPING_COPIES, RULED_OUT);
    assert_true(V->hypothesis[HYPOTHESIS_OVERLAPPING_COPIES].checked > 0);
}

static void two_copies_out_of_the_same_bytes_are_right(void **state) {
    (void)state;
    d2h(PINNED_AT, DEVICE_AT, 8 * KIB, s1);
    d2h(PINNED_AT + 16 * KIB, DEVICE_AT, 8 * KIB, s2);
    expect_clean();
}

static void a_set_and_a_copy_are_unsynchronised(void **state) {
    (void)state;
    uint64_t a = set(DEVICE_AT, 8 * KIB, s1);
    uint64_t b = d2h(PINNED_AT, DEVICE_AT, 8 * KIB, s2);
    expect_pair(STREAM_UNSYNCED, a, b);
    expect_status(OVERLAPPING_COPIES, RULED_OUT); /* one copy, which does not overlap itself */
}

static void the_same_race_many_times_is_one_finding(void **state) {
    (void)state;
    for (int i = 0; i < 100; i++) {
        site = record_site(W, (void *)0x1111);
        set(DEVICE_AT, 8 * KIB, s1);
        site = record_site(W, (void *)0x2222);
        d2h(PINNED_AT, DEVICE_AT, 8 * KIB, s2);
        sync_device(0);
    }
    finish();
    assert_int_equal(V->finding_count, 1);
    assert_int_equal(V->findings[0].count, 100);
}

/* ---- STAGING_REUSE, HOST_BUFFER_LIFETIME ----------------------------------------------------- */

static void a_staging_buffer_filled_under_a_copy(void **state) {
    (void)state;
    uint64_t a = h2d(DEVICE_AT, PINNED_AT, 8 * KIB, s1);
    uint64_t b = d2h(PINNED_AT, DEVICE2_AT, 8 * KIB, s2);
    expect_pair(STAGING_REUSE, a, b);
    expect_status(OVERLAPPING_COPIES, CONFIRMED);
}

static void two_copies_into_one_staging_buffer(void **state) {
    (void)state;
    uint64_t a = d2h(PINNED_AT, DEVICE_AT, 8 * KIB, s1);
    uint64_t b = d2h(PINNED_AT, DEVICE2_AT, 8 * KIB, s2);
    expect_pair(STAGING_REUSE, a, b);
}

static void a_staging_buffer_used_again_after_a_wait(void **state) {
    (void)state;
    h2d(DEVICE_AT, PINNED_AT, 8 * KIB, s1);
    sync_stream(s1);
    d2h(PINNED_AT, DEVICE2_AT, 8 * KIB, s2);
    expect_clean();
    expect_status(STAGING_REUSE, RULED_OUT);
}

static void a_staging_buffer_in_one_stream(void **state) {
    (void)state;
    h2d(DEVICE_AT, PINNED_AT, 8 * KIB, s1);
    d2h(PINNED_AT, DEVICE_AT, 8 * KIB, s1);
    expect_clean();
}

static uint64_t host_access(uint64_t at, uint64_t op, unsigned access) {
    return put(EVENT_EARLY_HOST_ACCESS, EVENT_NO_FN, access, at, op, 1, 0, NULL);
}

static void the_host_overwrites_a_source(void **state) {
    (void)state;
    uint64_t a = h2d(DEVICE_AT, PINNED_AT, 8 * KIB, s1);
    uint64_t b = host_access(PINNED_AT + 5, a, DETAIL_ACCESS_WRITE);
    expect_pair(STAGING_REUSE, a, b);
    assert_string_equal(V->culprit->status, ""); /* which returns nothing */
}

static void the_host_reads_a_destination_too_early(void **state) {
    (void)state;
    uint64_t a = d2h(PINNED_AT, DEVICE_AT, 8 * KIB, s1);
    uint64_t b = host_access(PINNED_AT + 5, a, DETAIL_ACCESS_READ);
    expect_pair(STREAM_UNSYNCED, a, b);
}

static void the_host_may_read_a_source(void **state) {
    (void)state;
    uint64_t a = h2d(DEVICE_AT, PINNED_AT, 8 * KIB, s1);
    host_access(PINNED_AT, a, DETAIL_ACCESS_READ);
    expect_clean();
}

static void an_access_after_the_wait_is_right(void **state) {
    (void)state;
    uint64_t a = d2h(PINNED_AT, DEVICE_AT, 8 * KIB, s1);
    sync_stream(s1);
    host_access(PINNED_AT, a, DETAIL_ACCESS_READ);
    expect_clean();
}

static uint64_t host_free(uint64_t at, uint64_t bytes, uint64_t op) {
    return put(EVENT_HOST_FREE, EVENT_NO_FN, 0, at, op, bytes, 0, NULL);
}

static void registered_memory_freed_under_a_copy(void **state) {
    (void)state;
    record_provenance(W, "run.recorder", "test");
    put(EVENT_ALLOC, HIP_FN_hipHostRegister, DETAIL_FAMILY_REGISTERED, HOST_AT, 0, 8 * KIB, 0,
        NULL);
    uint64_t a = d2h(HOST_AT, DEVICE_AT, 8 * KIB, s1);
    uint64_t b = host_free(HOST_AT, 8 * KIB, a);
    expect_pair(HOST_BUFFER_LIFETIME, b, a);
}

static void registered_memory_freed_after_the_wait(void **state) {
    (void)state;
    record_provenance(W, "run.recorder", "test");
    put(EVENT_ALLOC, HIP_FN_hipHostRegister, DETAIL_FAMILY_REGISTERED, HOST_AT, 0, 8 * KIB, 0,
        NULL);
    uint64_t a = d2h(HOST_AT, DEVICE_AT, 8 * KIB, s1);
    sync_stream(s1);
    host_free(HOST_AT, 8 * KIB, a);
    expect_clean();
    expect_status(HOST_BUFFER_LIFETIME, RULED_OUT);
}

static void pageable_memory_may_go_at_once(void **state) {
    (void)state;
    uint64_t a = d2h(HOST_AT, DEVICE_AT, 8 * KIB, s1);
    host_free(HOST_AT, 8 * KIB, a); /* such a copy is over when it returns */
    expect_clean();
}

static void unseen_frees_leave_it_undecided(void **state) {
    (void)state;
    put(EVENT_ALLOC, HIP_FN_hipHostRegister, DETAIL_FAMILY_REGISTERED, HOST_AT, 0, 8 * KIB, 0,
        NULL);
    d2h(HOST_AT, DEVICE_AT, 8 * KIB, s1);
    finish();
    expect_status(HOST_BUFFER_LIFETIME, INCONCLUSIVE);
}

/* ---- kernels with pointers only -------------------------------------------------------------- */

static void a_kernel_writes_what_a_copy_reads(void **state) {
    (void)state;
    uint64_t a = launch_pointer("k", DEVICE_AT, EVENT_ARG_WRITE, 1, s1);
    uint64_t b = d2h(PINNED_AT, DEVICE_AT, 64 * KIB, s2);
    expect_pair(STREAM_UNSYNCED, a, b);
}

static void a_kernel_reads_what_a_copy_writes(void **state) {
    (void)state;
    uint64_t a = h2d(DEVICE_AT, PINNED_AT, 64 * KIB, s1);
    uint64_t b = launch_pointer("k", DEVICE_AT, EVENT_ARG_READ, 1, s2);
    expect_pair(STREAM_UNSYNCED, a, b);
}

static void they_are_right_in_order(void **state) {
    (void)state;
    launch_pointer("k", DEVICE_AT, EVENT_ARG_WRITE, 1, s1);
    sync_stream(s1);
    d2h(PINNED_AT, DEVICE_AT, 64 * KIB, s2);
    launch_pointer("k", DEVICE_AT, EVENT_ARG_READ, 1, s2);
    expect_clean();
    expect_status(STREAM_UNSYNCED, RULED_OUT);
}

static void a_kernel_that_only_reads_beside_a_copy_that_reads(void **state) {
    (void)state;
    launch_pointer("k", DEVICE_AT, EVENT_ARG_READ, 1, s1);
    d2h(PINNED_AT, DEVICE_AT, 64 * KIB, s2);
    expect_clean();
}

static void the_same_launch_in_two_streams(void **state) {
    (void)state;
    uint64_t a = launch_pointer("k", DEVICE_AT, EVENT_ARG_WRITE, 77, s1);
    uint64_t b = launch_pointer("k", DEVICE_AT, EVENT_ARG_WRITE, 77, s2);
    expect_pair(STREAM_UNSYNCED, a, b);
}

static void the_same_kernel_with_another_offset_is_a_doubt(void **state) {
    (void)state;
    launch_pointer("k", DEVICE_AT, EVENT_ARG_WRITE, 77, s1);
    launch_pointer("k", DEVICE_AT, EVENT_ARG_WRITE, 78, s2);
    expect_doubt();
}

static void a_writer_and_a_reader_of_one_pointer(void **state) {
    (void)state;
    uint64_t a = launch_pointer("w", DEVICE_AT, EVENT_ARG_WRITE, 1, s1);
    uint64_t b = launch_pointer("r", DEVICE_AT, EVENT_ARG_READ, 2, s2);
    expect_pair(STREAM_UNSYNCED, a, b);
}

/* Each stream brings its part, works on it by pointer and offset, and fetches it. */
static void streams_that_share_a_block_in_parts_are_right(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t s = i ? s2 : s1;
        uint64_t part = i * 32 * KIB;
        h2d(DEVICE_AT + part, PINNED_AT + part, 32 * KIB, s);
        launch_pointer("k", DEVICE_AT, EVENT_ARG_WRITE, i + 1, s);
        d2h(PINNED_AT + part, DEVICE_AT + part, 32 * KIB, s);
    }
    expect_clean();
    expect_status(STREAM_UNSYNCED, INCONCLUSIVE);
}

/* The same with a pointer to each part, and the parts are brought in before. */
static void pointers_to_parts_are_right(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t s = i ? s2 : s1;
        uint64_t part = i * 32 * KIB;
        launch_pointer("k", DEVICE_AT + part, EVENT_ARG_WRITE, i + 1, s);
        d2h(PINNED_AT + part, DEVICE_AT + part, 32 * KIB, s);
    }
    finish();
    expect_no_findings();
}

static void tensors_of_one_block_are_apart(void **state) {
    (void)state;
    name_range(DEVICE_AT, 32 * KIB, "a");
    name_range(DEVICE_AT + 32 * KIB, 32 * KIB, "b");
    launch_pointer("k", DEVICE_AT, EVENT_ARG_WRITE, 1, s1);
    launch_pointer("k", DEVICE_AT + 32 * KIB, EVENT_ARG_WRITE, 2, s2);
    d2h(PINNED_AT, DEVICE_AT + 32 * KIB, 32 * KIB, s2);
    expect_clean();
    expect_status(STREAM_UNSYNCED, INCONCLUSIVE); /* they may find pointers in memory */
}

static void a_guessed_pointer_alone_proves_nothing(void **state) {
    (void)state;
    launch_pointer("k", DEVICE_AT, EVENT_ARG_GUESSED, 1, s1);
    d2h(PINNED_AT, DEVICE_AT, 64 * KIB, s2);
    expect_doubt();
}

static void a_guessed_pointer_against_a_sure_write_does(void **state) {
    (void)state;
    uint64_t a = h2d(DEVICE_AT, PINNED_AT, 64 * KIB, s1);
    uint64_t b = launch_pointer("k", DEVICE_AT, EVENT_ARG_GUESSED, 1, s2);
    expect_pair(STREAM_UNSYNCED, a, b);
}

static void unknown_kernels_beside_others_leave_it_undecided(void **state) {
    (void)state;
    launch_unknown("k", s1);
    d2h(PINNED_AT, DEVICE_AT, 64 * KIB, s2);
    expect_doubt();
    expect_overall(CLEAN);
}

static void managed_memory_read_by_the_host_under_a_kernel(void **state) {
    (void)state;
    alloc_managed(DEVICE_AT + 64 * MIB, KIB);
    uint64_t a = launch_pointer("k", DEVICE_AT + 64 * MIB, EVENT_ARG_WRITE, 1, s1);
    uint64_t b = host_access(DEVICE_AT + 64 * MIB + 8, a, DETAIL_ACCESS_READ);
    sync_device(0);
    free_at(DEVICE_AT + 64 * MIB);
    expect_pair(STREAM_UNSYNCED, a, b);
}

/* A call that waits: its copy names the host as the target. */
static void managed_memory_copied_to_as_if_it_were_the_host_s(void **state) {
    (void)state;
    alloc_managed(DEVICE_AT + 64 * MIB, KIB);
    copy(hipMemcpyDeviceToHost, DEVICE_AT + 64 * MIB, DEVICE_AT, KIB, s1);
    h2d(DEVICE2_AT, DEVICE_AT + 64 * MIB, KIB, s2);
    sync_device(0);
    free_at(DEVICE_AT + 64 * MIB);
    expect_clean();
}

static void managed_memory_copied_to_within_the_device(void **state) {
    (void)state;
    alloc_managed(DEVICE_AT + 64 * MIB, KIB);
    uint64_t a = copy(hipMemcpyDeviceToDevice, DEVICE_AT + 64 * MIB, DEVICE_AT, KIB, s1);
    uint64_t b = h2d(DEVICE2_AT, DEVICE_AT + 64 * MIB, KIB, s2);
    sync_device(0);
    free_at(DEVICE_AT + 64 * MIB);
    expect_pair(OVERLAPPING_COPIES, a, b);
}

/* ---- what is not understood ------------------------------------------------------------------ */

static void an_order_that_is_not_understood_makes_a_doubt(void **state) {
    (void)state;
    set(DEVICE_AT, KIB, s1);
    put(EVENT_CALL, HIP_FN_hipStreamWaitValue32, 0, PINNED_AT, 1, 0, s2, NULL);
    d2h(PINNED_AT, DEVICE_AT, KIB, s2);
    expect_doubt();
    expect_overall(INCONCLUSIVE);
    assert_non_null(strstr(V->answer, "streams wait for values in memory"));
}

static void a_wait_for_a_value_that_is_over_orders_nothing_more(void **state) {
    (void)state;
    put(EVENT_CALL, HIP_FN_hipStreamWaitValue32, 0, PINNED_AT, 1, 0, s2, NULL);
    sync_device(0);
    uint64_t a = set(DEVICE_AT, KIB, s1);
    uint64_t b = d2h(PINNED_AT, DEVICE_AT, KIB, s2);
    expect_pair(STREAM_UNSYNCED, a, b);
}

/* A write, a wait and what the device says of them. */
static uint64_t write_value(unsigned stream) {
    return put(EVENT_SET, HIP_FN_hipStreamWriteValue32, DETAIL_WIDTH_ASYNC_32, DEVICE_AT + 32 * KIB,
               1, 4, stream, NULL);
}

static uint64_t wait_value(unsigned stream) {
    return put(EVENT_CALL, HIP_FN_hipStreamWaitValue32, 0, DEVICE_AT + 32 * KIB, 1, 0, stream,
               NULL);
}

static void say_met(uint64_t wait, uint64_t write) {
    put(EVENT_VALUE_MET, EVENT_NO_FN, 0, wait, write, 0, 0, NULL);
}

static void a_write_that_a_wait_was_for_orders_two_streams(void **state) {
    (void)state;
    set(DEVICE_AT, KIB, s1);
    uint64_t write = write_value(s1), wait = wait_value(s2);
    d2h(PINNED_AT, DEVICE_AT, KIB, s2);
    say_met(wait, write);
    sync_device(0);
    expect_clean();
    expect_status(STREAM_UNSYNCED, RULED_OUT);
}

static void what_comes_after_that_write_is_not_ordered(void **state) {
    (void)state;
    uint64_t write = write_value(s1);
    uint64_t a = set(DEVICE_AT, KIB, s1);
    uint64_t wait = wait_value(s2);
    uint64_t b = d2h(PINNED_AT, DEVICE_AT, KIB, s2);
    say_met(wait, write);
    sync_device(0);
    expect_pair(STREAM_UNSYNCED, a, b);
}

static void a_wait_before_its_write_orders_two_streams(void **state) {
    (void)state;
    uint64_t wait = wait_value(s2);
    d2h(PINNED_AT, DEVICE_AT, KIB, s2);
    set(DEVICE_AT, KIB, s1);
    say_met(wait, write_value(s1));
    sync_device(0);
    expect_clean();
    expect_status(STREAM_UNSYNCED, RULED_OUT);
    expect_status(UNINITIALISED_READ, RULED_OUT);
}

static void an_event_after_such_a_wait_passes_it_on(void **state) {
    (void)state;
    event_create(7);
    uint32_t third = nonblocking();
    uint64_t wait = wait_value(s2);
    event_wait(7, event_record(7, s2), third);
    d2h(PINNED_AT, DEVICE_AT, KIB, third);
    set(DEVICE_AT, KIB, s1);
    say_met(wait, write_value(s1));
    sync_device(0);
    expect_clean();
}

static void what_follows_the_write_of_such_a_wait_is_not_ordered(void **state) {
    (void)state;
    set(DEVICE_AT, KIB, s1);
    uint64_t wait = wait_value(s2);
    uint64_t a = d2h(PINNED_AT, DEVICE_AT, KIB, s2);
    uint64_t write = write_value(s1);
    uint64_t b = set(DEVICE_AT, KIB, s1);
    say_met(wait, write);
    sync_device(0);
    expect_pair(STREAM_UNSYNCED, a, b);
}

static void a_wait_whose_write_never_came_makes_a_doubt(void **state) {
    (void)state;
    uint64_t wait = wait_value(s2);
    d2h(PINNED_AT, DEVICE_AT, KIB, s2);
    uint64_t set_at = set(DEVICE_AT, KIB, s1);
    say_met(wait, set_at);
    sync_device(0);
    expect_doubt();
    expect_overall(INCONCLUSIVE);
}

static void what_gave_the_memory_back_has_its_name(void **state) {
    (void)state;
    uint64_t a = h2d(DEVICE_AT, PINNED_AT, KIB, s1);
    put(EVENT_HOST_FREE, EVENT_NO_FN, DETAIL_RELEASE_MUNMAP, PINNED_AT, a, KIB, 0, NULL);
    finish();
    assert_string_equal(V->findings[0].other->api, "munmap");
}

/* ---- words ----------------------------------------------------------------------------------- */

static void of_an_access_of_the_host_only_the_beginning_is_known(void **state) {
    (void)state;
    uint64_t a = h2d(DEVICE_AT, PINNED_AT, KIB, s1);
    host_access(PINNED_AT + 5, a, DETAIL_ACCESS_WRITE); /* by a memcpy() of many bytes, perhaps */
    finish();
    assert_null(strstr(V->answer, "1 byte"));
    assert_non_null(strstr(V->answer, "the host writes at offset 5 of a block of "));
    assert_int_equal(V->culprit->len, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        streams_test(two_copies_into_the_same_bytes),
        streams_test(a_copy_out_of_what_another_copies_in),
        streams_test(two_copies_with_an_event_between),
        streams_test(two_copies_out_of_the_same_bytes_are_right),
        streams_test(a_set_and_a_copy_are_unsynchronised),
        streams_test(the_same_race_many_times_is_one_finding),
        streams_test(a_staging_buffer_filled_under_a_copy),
        streams_test(two_copies_into_one_staging_buffer),
        streams_test(a_staging_buffer_used_again_after_a_wait),
        streams_test(a_staging_buffer_in_one_stream),
        streams_test(the_host_overwrites_a_source),
        streams_test(the_host_reads_a_destination_too_early),
        streams_test(the_host_may_read_a_source),
        streams_test(an_access_after_the_wait_is_right),
        streams_test(registered_memory_freed_under_a_copy),
        streams_test(registered_memory_freed_after_the_wait),
        streams_test(pageable_memory_may_go_at_once),
        streams_test(unseen_frees_leave_it_undecided),
        streams_test(a_kernel_writes_what_a_copy_reads),
        streams_test(a_kernel_reads_what_a_copy_writes),
        streams_test(they_are_right_in_order),
        streams_test(a_kernel_that_only_reads_beside_a_copy_that_reads),
        streams_test(the_same_launch_in_two_streams),
        streams_test(the_same_kernel_with_another_offset_is_a_doubt),
        streams_test(a_writer_and_a_reader_of_one_pointer),
        streams_test(streams_that_share_a_block_in_parts_are_right),
        streams_test(pointers_to_parts_are_right),
        streams_test(tensors_of_one_block_are_apart),
        streams_test(a_guessed_pointer_alone_proves_nothing),
        streams_test(a_guessed_pointer_against_a_sure_write_does),
        streams_test(unknown_kernels_beside_others_leave_it_undecided),
        streams_test(managed_memory_read_by_the_host_under_a_kernel),
        streams_test(managed_memory_copied_to_as_if_it_were_the_host_s),
        streams_test(managed_memory_copied_to_within_the_device),
        streams_test(an_order_that_is_not_understood_makes_a_doubt),
        streams_test(a_wait_for_a_value_that_is_over_orders_nothing_more),
        streams_test(a_write_that_a_wait_was_for_orders_two_streams),
        streams_test(what_comes_after_that_write_is_not_ordered),
        streams_test(a_wait_before_its_write_orders_two_streams),
        streams_test(an_event_after_such_a_wait_passes_it_on),
        streams_test(what_follows_the_write_of_such_a_wait_is_not_ordered),
        streams_test(a_wait_whose_write_never_came_makes_a_doubt),
        streams_test(what_gave_the_memory_back_has_its_name),
        streams_test(of_an_access_of_the_host_only_the_beginning_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
