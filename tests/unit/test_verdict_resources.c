/* RESOURCE_LEAK: streams, events, graphs, modules and registrations that are never released. */
#include "unit/test_verdict.h"

static int keep_setup(void **state) {
    int failed = verdict_setup(state);
    keeps_all = true;
    return failed;
}

#define keep_test(f) cmocka_unit_test_setup_teardown(f, keep_setup, verdict_teardown)

static uint64_t make(enum event_kind kind, uint64_t handle) {
    return put(kind, HIP_FN_hipInit, 0, handle, 0, 0, 0, NULL);
}

static void what_is_released_is_no_leak(void **state) {
    (void)state;
    keeps_all = false;
    make(EVENT_STREAM_CREATE, 0x10);
    make(EVENT_EVENT_CREATE, 0x10); /* handles of two kinds may be equal */
    make(EVENT_GRAPH_CREATE, 0x20);
    make(EVENT_GRAPH_INSTANTIATE, 0x30);
    make(EVENT_MODULE_LOAD, 0x40);
    judge();
    expect_status(RESOURCE_LEAK, RULED_OUT);
    assert_int_equal(V->hypothesis[HYPOTHESIS_RESOURCE_LEAK].checked, 5);
    expect_overall(CLEAN);
}

static void what_is_kept_is_one(void **state) {
    static const enum event_kind kinds[] = { EVENT_STREAM_CREATE, EVENT_EVENT_CREATE,
                                             EVENT_CAPTURE_END,   EVENT_GRAPH_CREATE,
                                             EVENT_MODULE_LOAD,   EVENT_GRAPH_INSTANTIATE };
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        make(kinds[i], 0x100 + i);
    judge();
    expect_status(RESOURCE_LEAK, CONFIRMED);
    expect_overall(FINDINGS);
    assert_int_equal(V->finding_count, sizeof kinds / sizeof *kinds);
}

/* Handles come in no order; what is named and what is listed is the first that was made. */
static void the_first_of_many_from_one_place_is_the_evidence(void **state) {
    enum { COUNT = 40 };
    (void)state;
    uint64_t first = EVENT_NO_SEQ;
    for (uint64_t i = 0; i < COUNT; i++) {
        site = record_site(W, (void *)0x1001);
        uint64_t made = make(EVENT_EVENT_CREATE, 0x1000 * (COUNT - i));
        first = made < first ? made : first;
    }
    judge();
    expect_finding(RESOURCE_LEAK, first);
    assert_int_equal(V->findings[0].count, COUNT);
    assert_int_equal(V->findings[0].evidence_count, 1);
    assert_int_equal(V->findings[0].evidence[0], first);
    assert_int_equal(V->culprit->address, 0); /* a handle is no address that it reads at */
}

static void a_registration_is_one(void **state) {
    (void)state;
    uint64_t made_by = put(EVENT_ALLOC, HIP_FN_hipHostRegister, DETAIL_FAMILY_REGISTERED, HOST_AT,
                           0, 4 * KIB, 0, NULL);
    judge();
    expect_finding(RESOURCE_LEAK, made_by);
}

static void a_reset_releases_all(void **state) {
    (void)state;
    make(EVENT_EVENT_CREATE, 0x10);
    make(EVENT_MODULE_LOAD, 0x20);
    put(EVENT_DEVICE_RESET, HIP_FN_hipDeviceReset, 0, 0, 0, 0, 0, NULL);
    judge();
    expect_status(RESOURCE_LEAK, RULED_OUT);
}

static void what_failed_made_nothing(void **state) {
    (void)state;
    status = hipErrorOutOfMemory;
    make(EVENT_STREAM_CREATE, 0x10);
    make(EVENT_EVENT_CREATE, 0x20);
    put(EVENT_EVENT_DESTROY, HIP_FN_hipEventDestroy, 0, 0x20, 0, 0, 0, NULL);
    judge();
    expect_status(RESOURCE_LEAK, RULED_OUT);
}

static void a_program_that_stopped_on_an_error_is_not_accused(void **state) {
    (void)state;
    make(EVENT_EVENT_CREATE, 0x10);
    status = hipErrorInvalidValue;
    alloc(0, 4);
    judge();
    expect_status(RESOURCE_LEAK, INCONCLUSIVE);
    expect_no_findings();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        keep_test(what_is_released_is_no_leak),
        keep_test(what_is_kept_is_one),
        keep_test(the_first_of_many_from_one_place_is_the_evidence),
        keep_test(a_registration_is_one),
        keep_test(a_reset_releases_all),
        keep_test(what_failed_made_nothing),
        keep_test(a_program_that_stopped_on_an_error_is_not_accused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
