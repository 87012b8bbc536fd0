/* Ranges, pointers, frees, directions, unwritten memory, leaks: each hypothesis with its bug and
 * with the run that has it fixed. */
#include "unit/test_verdict_block.h"

/* ---- SIZE_MISMATCH --------------------------------------------------------------------------- */

static void a_copy_past_its_block(void **state) {
    (void)state;
    prepare();
    status = hipErrorInvalidValue;
    uint64_t bad = copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE_AT + KIB, 4 * KIB, s0);
    finish();
    expect_finding(SIZE_MISMATCH, bad);
    expect_messenger(bad);
    expect_overall(ROOT_CAUSE);
    assert_int_equal(V->findings[0].block->alloc, block);
    assert_int_equal(V->findings[0].culprit.len, 4 * KIB);
    assert_int_equal(V->findings[0].culprit.address, DEVICE_AT + KIB);
    assert_non_null(strstr(V->answer, "SIZE_MISMATCH"));
    assert_non_null(strstr(V->answer, ": 1024 bytes past its end"));
    expect_status(BAD_OFFSET, RULED_OUT);
}

static void a_copy_of_the_whole_block(void **state) {
    (void)state;
    prepare();
    copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE_AT + KIB, 3 * KIB, s0);
    expect_clean();
    expect_status(SIZE_MISMATCH, RULED_OUT);
    assert_int_equal(V->hypothesis[HYPOTHESIS_SIZE_MISMATCH].checked, 2);
}

static void a_range_that_wraps(void **state) {
    (void)state;
    prepare();
    status = hipErrorInvalidValue;
    uint64_t bad = copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE_AT, UINT64_MAX - 5, s0);
    finish();
    expect_finding(SIZE_MISMATCH, bad);
}

static void rows_past_their_block(void **state) {
    (void)state;
    prepare();
    status = hipErrorInvalidValue;
    uint64_t bad =
        copy_rows(hipMemcpyHostToDevice | ASYNC, DEVICE_AT, 1024, HOST_AT, 64, 64, 5, s0);
    finish();
    expect_finding(SIZE_MISMATCH, bad);
}

static void rows_that_end_with_their_block(void **state) {
    (void)state;
    prepare();
    copy_rows(hipMemcpyHostToDevice | ASYNC, DEVICE_AT, 1024, HOST_AT, 64, 64, 4, s0);
    expect_clean();
}

static void a_copy_past_pinned_memory(void **state) {
    (void)state;
    prepare();
    alloc_pinned(PINNED_AT, KIB);
    status = hipErrorInvalidValue;
    uint64_t bad = d2h(PINNED_AT, DEVICE_AT, 2 * KIB, s0);
    free_pinned(PINNED_AT);
    finish();
    expect_finding(SIZE_MISMATCH, bad);
}

static void a_copy_from_one_tensor_into_the_next(void **state) {
    (void)state;
    prepare();
    name_range(DEVICE_AT, KIB, "q");
    name_range(DEVICE_AT + KIB, KIB, "k");
    uint64_t bad = copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE_AT, KIB + 4, s0);
    finish();
    expect_finding(SIZE_MISMATCH, bad);
    assert_string_equal(V->findings[0].culprit.tensor, "q");
    expect_overall(FINDINGS);
}

static void a_copy_of_several_whole_tensors(void **state) {
    (void)state;
    prepare();
    name_range(DEVICE_AT, KIB, "q");
    name_range(DEVICE_AT + KIB, KIB, "k");
    copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE_AT, 2 * KIB, s0);
    copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE_AT, 4 * KIB, s0);
    expect_clean();
}

static void a_kernel_argument_smaller_than_what_the_kernel_reads(void **state) {
    (void)state;
    prepare();
    struct event_access a = { DEVICE_AT, 8 * KIB, DETAIL_ACCESS_READ, 3 };
    uint64_t bad = launch_exact("rope", &a, 1, s0);
    finish();
    expect_finding(SIZE_MISMATCH, bad);
    assert_string_equal(V->culprit->kernel, "rope");
    assert_int_equal(V->culprit->argument_index, 3);
    assert_string_equal(V->culprit->argument, "#3");
}

/* ---- SHAPE_MISMATCH -------------------------------------------------------------------------- */

static void a_shape_that_does_not_fit_its_tensor(void **state) {
    (void)state;
    prepare();
    name_range(DEVICE_AT, KIB, "attn_k.weight");
    struct event_access a = { DEVICE_AT, 4 * KIB, DETAIL_ACCESS_READ | EVENT_ACCESS_SHAPED, 1 };
    uint64_t bad = launch_exact("gemm", &a, 1, s0);
    finish();
    expect_finding(SHAPE_MISMATCH, bad);
    assert_string_equal(V->culprit->tensor, "attn_k.weight");
    expect_status(SIZE_MISMATCH, RULED_OUT);
    assert_non_null(strstr(V->hypothesis[HYPOTHESIS_SIZE_MISMATCH].text,
                           "; what SHAPE_MISMATCH confirms is left out"));
}

static void a_shape_that_fits(void **state) {
    (void)state;
    prepare();
    name_range(DEVICE_AT, KIB, "attn_k.weight");
    struct event_access a = { DEVICE_AT, KIB, DETAIL_ACCESS_READ | EVENT_ACCESS_SHAPED, 1 };
    launch_exact("gemm", &a, 1, s0);
    expect_clean();
    expect_status(SHAPE_MISMATCH, RULED_OUT);
    assert_int_equal(V->hypothesis[HYPOTHESIS_SHAPE_MISMATCH].checked, 1);
}

static void without_shapes_it_is_undecided(void **state) {
    (void)state;
    prepare();
    launch_unknown("k", s0);
    finish();
    expect_status(SHAPE_MISMATCH, INCONCLUSIVE);
    expect_status(SIZE_MISMATCH, INCONCLUSIVE);
    expect_status(UNINITIALISED_READ, INCONCLUSIVE);
    expect_status(STREAM_UNSYNCED, RULED_OUT); /* nothing ran beside it */
    expect_overall(CLEAN);
}

/* ---- BAD_OFFSET, INVALID_POINTER ------------------------------------------------------------- */

static void a_copy_that_starts_past_its_block(void **state) {
    (void)state;
    prepare();
    status = hipErrorInvalidValue;
    uint64_t bad = copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE_AT + 5 * KIB, 64, s0);
    finish();
    expect_finding(BAD_OFFSET, bad);
    expect_messenger(bad);
    assert_int_equal(V->findings[0].block->alloc, block);
}

static void a_copy_that_starts_where_its_block_ends(void **state) {
    (void)state;
    prepare();
    status = hipErrorInvalidValue;
    uint64_t bad = copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE_AT + 4 * KIB, 64, s0);
    finish();
    expect_finding(BAD_OFFSET, bad);
    assert_non_null(strstr(V->answer, "64 bytes that start where a block of 4 KiB ends"));
    assert_non_null(strstr(V->hypothesis[HYPOTHESIS_INVALID_POINTER].text,
                           "; what BAD_OFFSET confirms is left out"));
}

static void a_copy_that_starts_before_its_block(void **state) {
    (void)state;
    prepare();
    status = hipErrorInvalidValue;
    uint64_t bad = set(DEVICE_AT - 16, 64, s0);
    finish();
    expect_finding(BAD_OFFSET, bad);
}

static void a_free_inside_a_block(void **state) {
    (void)state;
    prepare();
    status = hipErrorInvalidValue;
    uint64_t bad = free_at(DEVICE_AT + 64);
    finish();
    expect_finding(BAD_OFFSET, bad);
    expect_status(DOUBLE_FREE, RULED_OUT);
}

static void a_null_pointer(void **state) {
    (void)state;
    prepare();
    status = hipErrorInvalidValue;
    uint64_t bad = copy(hipMemcpyHostToDevice, 0, HOST_AT, 64, s0);
    finish();
    expect_finding(INVALID_POINTER, bad);
}

static void a_wild_pointer(void **state) {
    (void)state;
    prepare();
    status = hipErrorInvalidValue;
    uint64_t bad = copy(hipMemcpyDeviceToHost, HOST_AT, 0xdeadbeef0000, 64, s0);
    finish();
    expect_finding(INVALID_POINTER, bad);
    expect_status(BAD_OFFSET, RULED_OUT);
}

static void a_free_of_what_was_never_allocated(void **state) {
    (void)state;
    prepare();
    status = hipErrorInvalidValue;
    uint64_t bad = free_at(0xdeadbeef0000);
    finish();
    expect_finding(INVALID_POINTER, bad);
}

static void nothing_copied_from_nowhere_is_right(void **state) {
    (void)state;
    prepare();
    copy(hipMemcpyHostToDevice, 0, 0, 0, s0);
    free_at(0);
    expect_clean();
}

static void a_pointer_to_one_past_the_end_is_right(void **state) {
    (void)state;
    prepare();
    launch_pointer("k", DEVICE_AT + 4 * KIB, EVENT_ARG_READ, 1, s0);
    finish();
    expect_no_findings();
}

/* ---- USE_AFTER_FREE, DOUBLE_FREE ------------------------------------------------------------- */

static void a_copy_from_freed_memory(void **state) {
    (void)state;
    prepare();
    uint64_t other = alloc(DEVICE2_AT, KIB);
    uint64_t freed = free_at(DEVICE2_AT);
    status = hipErrorInvalidValue;
    uint64_t bad = copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE2_AT, KIB, s0);
    finish();
    expect_finding(USE_AFTER_FREE, bad);
    assert_int_equal(V->findings[0].block->alloc, other);
    assert_int_equal(V->findings[0].block->free, freed);
}

static void an_address_that_is_used_again_is_right(void **state) {
    (void)state;
    prepare();
    for (int i = 0; i < 3; i++) {
        alloc(DEVICE2_AT, (uint64_t)(i + 1) * KIB);
        set(DEVICE2_AT, KIB, s0);
        copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE2_AT, KIB, s0);
        free_at(DEVICE2_AT);
    }
    expect_clean();
    expect_status(USE_AFTER_FREE, RULED_OUT);
}

static void a_kernel_with_a_freed_pointer(void **state) {
    (void)state;
    prepare();
    alloc(DEVICE2_AT, KIB);
    free_at(DEVICE2_AT);
    uint64_t bad = launch_pointer("k", DEVICE2_AT + 64, EVENT_ARG_READ, 1, s0);
    finish();
    expect_finding(USE_AFTER_FREE, bad);
}

static void what_only_looks_like_a_freed_pointer_is_a_doubt(void **state) {
    (void)state;
    prepare();
    alloc(DEVICE2_AT, KIB);
    free_at(DEVICE2_AT);
    launch_pointer("k", DEVICE2_AT + 64, EVENT_ARG_GUESSED, 1, s0);
    finish();
    expect_no_findings();
    expect_status(USE_AFTER_FREE, INCONCLUSIVE);
}

static void a_graph_with_freed_memory(void **state) {
    (void)state;
    prepare();
    uint32_t s = nonblocking();
    alloc(DEVICE2_AT, KIB);
    put(EVENT_CAPTURE_BEGIN, HIP_FN_hipStreamBeginCapture, 0, 0, 0, 0, s, NULL);
    uint64_t node = put(EVENT_SET, HIP_FN_hipMemsetAsync, DETAIL_WIDTH_ASYNC_8 | EVENT_CAPTURED,
                        DEVICE2_AT, 0, KIB, s, NULL);
    put(EVENT_CAPTURE_END, HIP_FN_hipStreamEndCapture, 0, 0x50, 0, 0, s, NULL);
    put(EVENT_GRAPH_INSTANTIATE, HIP_FN_hipGraphInstantiate, 0, 0x51, 0x50, 0, 0, NULL);
    uint64_t gone = free_at(DEVICE2_AT);
    uint64_t launch = put(EVENT_GRAPH_LAUNCH, HIP_FN_hipGraphLaunch, 0, 0x51, 0, 0, s, NULL);
    finish();
    expect_finding(USE_AFTER_FREE, node);
    /* What was captured before the free is wrong because of the replay after it: both are named. */
    char words[200];
    snprintf(words, sizeof words,
             "hipMemsetAsync (event %u, replayed by event %u) writes 1024 bytes at offset 0 of a "
             "block of 1024 bytes that hipFree (event %u) had freed",
             (unsigned)node, (unsigned)launch, (unsigned)gone);
    assert_string_equal(V->findings[0].text, words);
    assert_int_equal(V->findings[0].culprit.replay, launch);
}

/* One captured operation that two launches ran: both launches are named, and where each ran. */
static void a_graph_against_itself(void **state) {
    (void)state;
    prepare();
    uint32_t a = nonblocking(), b = nonblocking();
    put(EVENT_CAPTURE_BEGIN, HIP_FN_hipStreamBeginCapture, 0, 0, 0, 0, a, NULL);
    uint64_t node = put(EVENT_SET, HIP_FN_hipMemsetAsync, DETAIL_WIDTH_ASYNC_8 | EVENT_CAPTURED,
                        DEVICE_AT, 0, KIB, a, NULL);
    put(EVENT_CAPTURE_END, HIP_FN_hipStreamEndCapture, 0, 0x50, 0, 0, a, NULL);
    put(EVENT_GRAPH_INSTANTIATE, HIP_FN_hipGraphInstantiate, 0, 0x51, 0x50, 0, 0, NULL);
    put(EVENT_GRAPH_INSTANTIATE, HIP_FN_hipGraphInstantiate, 0, 0x52, 0x50, 0, 0, NULL);
    uint64_t first = put(EVENT_GRAPH_LAUNCH, HIP_FN_hipGraphLaunch, 0, 0x51, 0, 0, a, NULL);
    uint64_t second = put(EVENT_GRAPH_LAUNCH, HIP_FN_hipGraphLaunch, 0, 0x52, 0, 0, b, NULL);
    finish();
    expect_finding(STREAM_UNSYNCED, node);
    assert_int_equal(V->findings[0].culprit.replay, second);
    assert_int_equal(V->findings[0].culprit.stream, b);
    assert_int_equal(V->findings[0].other->replay, first);
    assert_int_equal(V->findings[0].other->stream, a);
    char words[80];
    snprintf(words, sizeof words, "that hipMemsetAsync (event %u, replayed by event %u) writes",
             (unsigned)node, (unsigned)first);
    assert_non_null(strstr(V->findings[0].text, words));
}

static void a_second_free(void **state) {
    (void)state;
    prepare();
    alloc(DEVICE2_AT, KIB);
    uint64_t first = free_at(DEVICE2_AT);
    status = hipErrorInvalidValue;
    uint64_t bad = free_at(DEVICE2_AT);
    finish();
    expect_finding(DOUBLE_FREE, bad);
    expect_messenger(bad);
    assert_int_equal(V->findings[0].block->free, first);
    assert_non_null(strstr(V->findings[0].text, "freed before"));
}

static void a_second_free_in_a_stream(void **state) {
    (void)state;
    prepare();
    alloc_async(DEVICE2_AT, KIB, s0);
    free_async(DEVICE2_AT, s0);
    status = hipErrorInvalidValue;
    uint64_t bad = free_async(DEVICE2_AT, s0);
    finish();
    expect_finding(DOUBLE_FREE, bad);
}

static void frees_of_all_kinds_once(void **state) {
    (void)state;
    prepare();
    alloc_pinned(PINNED_AT, KIB);
    free_pinned(PINNED_AT);
    alloc_async(DEVICE2_AT, KIB, s0);
    free_async(DEVICE2_AT, s0);
    expect_clean();
    expect_status(DOUBLE_FREE, RULED_OUT);
    assert_int_equal(V->hypothesis[HYPOTHESIS_DOUBLE_FREE].checked, 3);
}

/* ---- KIND_MISMATCH --------------------------------------------------------------------------- */

static void a_device_source_called_host(void **state) {
    (void)state;
    prepare();
    alloc(DEVICE2_AT, KIB);
    uint64_t bad = copy(hipMemcpyHostToDevice, DEVICE2_AT, DEVICE_AT, KIB, s0);
    sync_device(0);
    free_at(DEVICE2_AT);
    finish();
    expect_finding(KIND_MISMATCH, bad);
}

static void a_copy_in_the_wrong_direction(void **state) {
    (void)state;
    prepare();
    uint64_t bad = copy(hipMemcpyHostToDevice, HOST_AT, DEVICE_AT, KIB, s0);
    finish();
    expect_status(KIND_MISMATCH, CONFIRMED);
    assert_int_equal(V->findings[0].culprit.event, bad);
    assert_int_equal(V->finding_count, 1);
}

static void host_memory_called_device(void **state) {
    (void)state;
    prepare();
    uint64_t bad = copy(hipMemcpyDeviceToDevice, DEVICE_AT, HOST_AT, KIB, s0);
    finish();
    expect_finding(KIND_MISMATCH, bad);
}

static void directions_that_agree(void **state) {
    (void)state;
    watch_host();
    prepare();
    alloc_pinned(PINNED_AT, 4 * KIB);
    alloc_managed(DEVICE2_AT, 4 * KIB);
    copy(hipMemcpyHostToDevice, DEVICE_AT, PINNED_AT, KIB, s0);
    copy(hipMemcpyDeviceToHost, PINNED_AT, DEVICE_AT, KIB, s0);
    copy(hipMemcpyDeviceToDevice, DEVICE_AT, PINNED_AT, KIB, s0); /* pinned is on both sides */
    copy(hipMemcpyHostToDevice, DEVICE_AT, DEVICE2_AT, KIB, s0);  /* so is managed */
    copy(hipMemcpyDefault, HOST_AT, DEVICE_AT, KIB, s0);
    copy(hipMemcpyHostToHost, HOST_AT, PINNED_AT, KIB, s0);
    free_pinned(PINNED_AT);
    free_at(DEVICE2_AT);
    expect_clean();
    expect_status(KIND_MISMATCH, RULED_OUT);
    assert_int_equal(V->hypothesis[HYPOTHESIS_KIND_MISMATCH].checked, 6);
}

/* ---- UNINITIALISED_READ ---------------------------------------------------------------------- */

static void a_copy_of_what_nobody_wrote(void **state) {
    (void)state;
    prepare();
    alloc(DEVICE2_AT, KIB);
    uint64_t bad = copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE2_AT, KIB, s0);
    free_at(DEVICE2_AT);
    finish();
    expect_finding(UNINITIALISED_READ, bad);
    expect_overall(FINDINGS);
}

static void a_copy_of_more_than_was_written(void **state) {
    (void)state;
    prepare();
    alloc(DEVICE2_AT, KIB);
    set(DEVICE2_AT, 1000, s0);
    uint64_t bad = copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE2_AT, KIB, s0);
    free_at(DEVICE2_AT);
    finish();
    expect_finding(UNINITIALISED_READ, bad);
    assert_int_equal(V->findings[0].culprit.address, DEVICE2_AT + 1000);
    assert_int_equal(V->findings[0].culprit.len, 24);
}

static void a_kernel_reads_what_nobody_wrote(void **state) {
    (void)state;
    prepare();
    alloc(DEVICE2_AT, KIB);
    uint64_t bad = launch_reads("k", DEVICE2_AT, KIB, s0);
    free_at(DEVICE2_AT);
    finish();
    expect_finding(UNINITIALISED_READ, bad);
}

static void what_was_written_may_be_read(void **state) {
    (void)state;
    prepare();
    alloc(DEVICE2_AT, 2 * KIB);
    set(DEVICE2_AT, KIB, s0);
    launch_writes("k", DEVICE2_AT + KIB, KIB, s0);
    copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE2_AT, 2 * KIB, s0);
    free_at(DEVICE2_AT);
    expect_clean();
    expect_status(UNINITIALISED_READ, RULED_OUT);
}

static void memory_that_is_allocated_again_is_unwritten(void **state) {
    (void)state;
    prepare();
    alloc(DEVICE2_AT, KIB);
    set(DEVICE2_AT, KIB, s0);
    free_at(DEVICE2_AT);
    alloc(DEVICE2_AT, KIB);
    uint64_t bad = copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE2_AT, KIB, s0);
    free_at(DEVICE2_AT);
    finish();
    expect_finding(UNINITIALISED_READ, bad);
}

static void a_kernel_of_unknown_extent_may_have_written(void **state) {
    (void)state;
    prepare();
    alloc(DEVICE2_AT, KIB);
    launch_pointer("k", DEVICE2_AT, EVENT_ARG_WRITE, 1, s0);
    copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE2_AT, KIB, s0);
    free_at(DEVICE2_AT);
    finish();
    expect_no_findings();
    expect_status(UNINITIALISED_READ, INCONCLUSIVE);
}

static void so_may_one_of_which_nothing_is_known(void **state) {
    (void)state;
    prepare();
    alloc(DEVICE2_AT, KIB);
    launch_unknown("k", s0);
    copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE2_AT, KIB, s0);
    free_at(DEVICE2_AT);
    finish();
    expect_no_findings();
    expect_status(UNINITIALISED_READ, INCONCLUSIVE);
}

static void a_kernel_that_also_writes_there_may_write_first(void **state) {
    (void)state;
    prepare();
    alloc(DEVICE2_AT, KIB);
    struct event_access a[] = { { DEVICE2_AT, KIB, DETAIL_ACCESS_READ, 0 },
                                { DEVICE2_AT, KIB, DETAIL_ACCESS_WRITE, 0 } };
    launch_exact("k", a, 2, s0);
    copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE2_AT, KIB, s0);
    free_at(DEVICE2_AT);
    expect_clean();
}

static void host_visible_memory_may_be_written_by_the_host(void **state) {
    (void)state;
    prepare();
    alloc_pinned(PINNED_AT, KIB);
    alloc_managed(DEVICE2_AT, KIB);
    copy(hipMemcpyHostToDevice, DEVICE_AT, PINNED_AT, KIB, s0);
    copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE2_AT, KIB, s0);
    free_pinned(PINNED_AT);
    free_at(DEVICE2_AT);
    expect_clean();
}

/* ---- LEAK ------------------------------------------------------------------------------------ */

static void memory_that_is_never_freed(void **state) {
    (void)state;
    prepare();
    site = record_site(W, (void *)0x1234);
    uint64_t first = alloc(DEVICE2_AT, KIB);
    site = record_site(W, (void *)0x1234);
    alloc(DEVICE2_AT + MIB, 3 * KIB);
    finish();
    expect_finding(LEAK, first);
    assert_int_equal(V->findings[0].count, 2);
    assert_int_equal(V->coverage.alive, 2);
    assert_int_equal(V->coverage.bytes_alive, 4 * KIB);
    expect_overall(FINDINGS);
}

static void memory_that_is_freed(void **state) {
    (void)state;
    prepare();
    expect_clean();
    expect_status(LEAK, RULED_OUT);
    assert_int_equal(V->hypothesis[HYPOTHESIS_LEAK].checked, 1);
}

static void a_reset_frees_everything(void **state) {
    (void)state;
    prepare();
    put(EVENT_DEVICE_RESET, HIP_FN_hipDeviceReset, 0, 0, 0, 0, 0, NULL);
    judge();
    expect_no_findings();
    expect_status(LEAK, RULED_OUT);
}

static void frees_after_the_end_count(void **state) {
    (void)state;
    prepare();
    sync_device(0);
    record_end(W);
    free_at(DEVICE_AT); /* a destructor that runs late */
    judge();
    expect_no_findings();
    expect_status(LEAK, RULED_OUT);
}

/* ---- safe copies that were refused ----------------------------------------------------------- */

static uint64_t refused(unsigned decision, uint64_t src, uint64_t offset, uint64_t len) {
    union event_slot s[2];
    s[0].event = (struct event){ .kind = EVENT_REFUSED,
                                 .aux = event_aux(EVENT_NO_FN, decision),
                                 .dst = HOST_AT,
                                 .src = src,
                                 .len = len,
                                 .name = record_string(W, "logits") };
    event_extra_safe(&s[1], &(struct event_safe){ .step = 3, .layer = -1, .offset = offset });
    return put_slots(s, 2);
}

static void a_refused_copy_names_its_tensor(void **state) {
    (void)state;
    prepare();
    uint64_t bad = refused(DETAIL_DECISION_PAST_ALLOCATION, DEVICE_AT, KIB, 4 * KIB);
    finish();
    expect_finding(SIZE_MISMATCH, bad);
    assert_string_equal(V->culprit->tensor, "logits");
    assert_int_equal(V->culprit->step, 3);
    assert_int_equal(V->coverage.copies_refused, 1);
}

static void a_refused_offset_is_an_offset(void **state) {
    (void)state;
    prepare();
    uint64_t bad = refused(DETAIL_DECISION_PAST_ALLOCATION, DEVICE_AT, 5 * KIB, 64);
    finish();
    expect_finding(BAD_OFFSET, bad);
}

static void other_refusals_have_their_hypotheses(void **state) {
    (void)state;
    static const struct {
        unsigned decision;
        enum verdict_hypothesis_id id;
    } cases[] = {
        { DETAIL_DECISION_NULL_POINTER, HYPOTHESIS_INVALID_POINTER },
        { DETAIL_DECISION_UNKNOWN_POINTER, HYPOTHESIS_INVALID_POINTER },
        { DETAIL_DECISION_FREED, HYPOTHESIS_USE_AFTER_FREE },
        { DETAIL_DECISION_KIND_MISMATCH, HYPOTHESIS_KIND_MISMATCH },
        { DETAIL_DECISION_WRONG_SIDE, HYPOTHESIS_KIND_MISMATCH },
        { DETAIL_DECISION_WRAPS, HYPOTHESIS_BAD_OFFSET },
        { DETAIL_DECISION_PAST_TENSOR, HYPOTHESIS_SIZE_MISMATCH },
        { DETAIL_DECISION_HOST_TOO_SMALL, HYPOTHESIS_SIZE_MISMATCH },
        { DETAIL_DECISION_FALSE_CLAIM, HYPOTHESIS_SIZE_MISMATCH },
    };
    prepare();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        site = record_site(W, (void *)(uintptr_t)(0x1000 + i));
        refused(cases[i].decision, DEVICE_AT, 0, 8 * KIB);
    }
    finish();
    assert_int_equal(V->finding_count, sizeof cases / sizeof *cases);
    for (size_t i = 0; i < V->finding_count; i++)
        assert_int_equal(V->findings[i].hypothesis, cases[i].id);
}

/* ---- half a history -------------------------------------------------------------------------- */

static void memory_from_before_the_recording_is_no_finding(void **state) {
    (void)state;
    record_provenance(W, "audit.partial", "1");
    s0 = default_stream();
    copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE_AT, KIB, s0);
    set(DEVICE_AT, KIB, s0);
    free_at(DEVICE_AT);
    judge();
    expect_no_findings();
    expect_status(INVALID_POINTER, INCONCLUSIVE);
    expect_status(SIZE_MISMATCH, INCONCLUSIVE);
    expect_overall(INCONCLUSIVE);
    assert_false(V->coverage.complete);
}

static void an_overwritten_beginning_is_no_finding(void **state) {
    (void)state;
    record_close(&W);
    unlink(record_file);
    open_run(1024); /* smaller than the run; a ring has at least a chunk */
    prepare();
    for (int i = 0; i < 20000; i++)
        put(EVENT_MARK, EVENT_NO_FN, 0, (uint64_t)i, 0, 0, 0, "tick");
    copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE_AT, KIB, s0);
    finish();
    assert_true(V->coverage.overwritten > 0);
    expect_no_findings();
    expect_overall(INCONCLUSIVE);
    expect_status(USE_AFTER_FREE, INCONCLUSIVE);
    assert_non_null(strstr(V->answer, "overwritten"));
}

static void the_end_of_a_killed_run_is_named(void **state) {
    (void)state;
    prepare();
    status = RECORD_PENDING;
    uint64_t last = sync_device(0);
    struct err e = { 0 };
    R = open_reader(); /* the writer has not closed: as after kill -9 */
    if (verdict_open(&V, R, NULL, &e) != RC_OK)
        fail_msg("%s", e.msg);
    expect_no_findings();
    expect_overall(INCONCLUSIVE);
    expect_status(LEAK, INCONCLUSIVE);
    expect_status(STREAM_UNSYNCED, INCONCLUSIVE);
    assert_false(V->coverage.ended);
    assert_int_equal(V->coverage.last_event, last);
    assert_int_equal(V->coverage.pending_count, 1);
    assert_int_equal(V->coverage.pending[0].event, last);
    assert_non_null(strstr(V->answer, "hipDeviceSynchronize"));
}

static void a_run_without_events(void **state) {
    (void)state;
    record_close(&W);
    unlink(record_file);
    open_run(1024);
    judge();
    expect_no_findings();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        verdict_test(a_copy_past_its_block),
        verdict_test(a_copy_of_the_whole_block),
        verdict_test(a_range_that_wraps),
        verdict_test(rows_past_their_block),
        verdict_test(rows_that_end_with_their_block),
        verdict_test(a_copy_past_pinned_memory),
        verdict_test(a_copy_from_one_tensor_into_the_next),
        verdict_test(a_copy_of_several_whole_tensors),
        verdict_test(a_kernel_argument_smaller_than_what_the_kernel_reads),
        verdict_test(a_shape_that_does_not_fit_its_tensor),
        verdict_test(a_shape_that_fits),
        verdict_test(without_shapes_it_is_undecided),
        verdict_test(a_copy_that_starts_past_its_block),
        verdict_test(a_copy_that_starts_where_its_block_ends),
        verdict_test(a_copy_that_starts_before_its_block),
        verdict_test(a_free_inside_a_block),
        verdict_test(a_null_pointer),
        verdict_test(a_wild_pointer),
        verdict_test(a_free_of_what_was_never_allocated),
        verdict_test(nothing_copied_from_nowhere_is_right),
        verdict_test(a_pointer_to_one_past_the_end_is_right),
        verdict_test(a_copy_from_freed_memory),
        verdict_test(an_address_that_is_used_again_is_right),
        verdict_test(a_kernel_with_a_freed_pointer),
        verdict_test(what_only_looks_like_a_freed_pointer_is_a_doubt),
        verdict_test(a_graph_against_itself),
        verdict_test(a_graph_with_freed_memory),
        verdict_test(a_second_free),
        verdict_test(a_second_free_in_a_stream),
        verdict_test(frees_of_all_kinds_once),
        verdict_test(a_device_source_called_host),
        verdict_test(a_copy_in_the_wrong_direction),
        verdict_test(host_memory_called_device),
        verdict_test(directions_that_agree),
        verdict_test(a_copy_of_what_nobody_wrote),
        verdict_test(a_copy_of_more_than_was_written),
        verdict_test(a_kernel_reads_what_nobody_wrote),
        verdict_test(what_was_written_may_be_read),
        verdict_test(memory_that_is_allocated_again_is_unwritten),
        verdict_test(a_kernel_of_unknown_extent_may_have_written),
        verdict_test(so_may_one_of_which_nothing_is_known),
        verdict_test(a_kernel_that_also_writes_there_may_write_first),
        verdict_test(host_visible_memory_may_be_written_by_the_host),
        verdict_test(memory_that_is_never_freed),
        verdict_test(memory_that_is_freed),
        verdict_test(a_reset_frees_everything),
        verdict_test(frees_after_the_end_count),
        verdict_test(a_refused_copy_names_its_tensor),
        verdict_test(a_refused_offset_is_an_offset),
        verdict_test(other_refusals_have_their_hypotheses),
        verdict_test(memory_from_before_the_recording_is_no_finding),
        verdict_test(an_overwritten_beginning_is_no_finding),
        verdict_test(the_end_of_a_killed_run_is_named),
        verdict_test(a_run_without_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
