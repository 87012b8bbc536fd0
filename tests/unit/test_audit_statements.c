/* What the software device states about launches, as it stands in the recording. */
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/attach.h"
#include "audit/audit.h"
#include "record/reader.h"
#include "support/soft_fixture.h"
#include "unit/test_soft_module_elf.h"

enum { GFX942 = 0x4c };

static char path[64];

static void attach(void) {
    static struct hip_api decorated;
    struct audit_config config = { .d2h_log = "/dev/null",
                                   .record = { .path = path, .events = 65536 } };
    struct audit_options options = { .config = &config, .library = soft_library };
    struct err e = { 0 };
    decorated = *hip;
    if (audit_attach(&decorated, &options, &e) != RC_OK)
        soft_fail(__FILE__, __LINE__, "%s", e.msg);
    hip = &decorated;
}

/* ---- reading --------------------------------------------------------------------------------- */

static reader *recording;
static struct reader_cursor cursor;

static void record_and_open(soft_program program, const char *settings) {
    strcpy(path, "/tmp/greta-test-XXXXXX");
    close(mkstemp(path));
    soft_expect(program, settings);
    assert_int_equal(reader_open(&recording, path, NULL), RC_OK);
}

static void done(void) {
    char old[80];
    reader_close(&recording);
    unlink(path);
    snprintf(old, sizeof old, "%s.old", path);
    unlink(old);
}

/* The events of a kind, one after the other. */
static void rewind_events(void) {
    cursor = reader_events(recording, 0, UINT64_MAX);
}

static struct reader_event next(enum event_kind kind) {
    struct reader_event e;
    while (reader_next(&cursor, &e))
        if (e.event.kind == kind)
            return e;
    fail_msg("no more events of kind %d", (int)kind);
    return (struct reader_event){ 0 };
}

static unsigned count(enum event_kind kind) {
    struct reader_event e;
    unsigned n = 0;
    rewind_events();
    while (reader_next(&cursor, &e))
        n += e.event.kind == kind;
    rewind_events();
    return n;
}

static struct event_checked checked(const struct reader_event *e) {
    const struct event_extra *x = reader_extra(e, EXTRA_CHECKED);
    assert_non_null(x);
    return event_checked_of(x);
}

static void expect_not_run(uint64_t launch, unsigned reason) {
    struct reader_event e = next(EVENT_NOT_RUN);
    assert_int_equal(e.event.src, launch);
    assert_int_equal(e.event.len, 1);
    assert_int_equal(event_detail(&e.event), reason);
}

/* ---- launches that run ----------------------------------------------------------------------- */

static bool runs_launches(void) {
    attach();
    hipStream_t a = soft_free_stream(), b = soft_free_stream();
    hipGraph_t graph;
    hipGraphExec_t exec;
    soft_nothing(a);
    soft_nothing(a);
    OK(hip->hipStreamSynchronize(a));
    OK(hip->hipStreamBeginCapture(b, hipStreamCaptureModeThreadLocal));
    soft_nothing(b);
    soft_nothing(b);
    OK(hip->hipStreamEndCapture(b, &graph));
    OK(hip->hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    OK(hip->hipGraphLaunch(exec, b));
    OK(hip->hipStreamSynchronize(b));
    OK(hip->hipStreamSynchronize(b)); /* nothing new to say */
    soft_nothing(a);
    OK(hip->hipStreamDestroy(a));
    OK(hip->hipDeviceSynchronize());
    OK(hip->hipGraphExecDestroy(exec));
    OK(hip->hipGraphDestroy(graph));
    OK(hip->hipStreamDestroy(b));
    audit_detach();
    return true;
}

static void launches_say_how_they_are_checked_and_that_they_ran(void **state) {
    (void)state;
    static const char *const schedules[] = { NULL, "GRETA_SOFT_SCHEDULE=lazy" };
    for (int i = 0; i < 2; i++) {
        record_and_open(runs_launches, schedules[i]);
        assert_int_equal(count(EVENT_LAUNCH), 5);
        uint32_t stream[5];
        for (int k = 0; k < 5; k++) {
            struct reader_event e = next(EVENT_LAUNCH);
            struct event_checked c = checked(&e);
            assert_int_equal(c.how, DETAIL_CHECKED_GUARDS);
            assert_int_equal(c.before, 4095);
            assert_int_equal(c.after, 0);
            assert_int_equal(c.flags, EVENT_CHECKED_PATTERN);
            stream[k] = e.event.stream;
        }
        assert_int_equal(count(EVENT_NOT_RUN), 0);
        assert_int_equal(count(EVENT_SLACK), 0);
        assert_int_equal(count(EVENT_RAN), 3);
        const struct {
            uint32_t stream;
            uint64_t launches;
        } ran[] = { { stream[0], 2 }, { stream[2], 2 }, { stream[0], 3 } };
        for (int k = 0; k < 3; k++) {
            struct reader_event e = next(EVENT_RAN);
            assert_int_equal(e.event.stream, ran[k].stream);
            assert_int_equal(e.event.dst, ran[k].launches);
        }
        done();
    }
}

/* ---- launches that do not -------------------------------------------------------------------- */

static bool launches_machine_code(void) {
    attach();
    struct image elf = elf_build(GFX942);
    elf.bytes[sizeof(Elf64_Ehdr) + 56] =
        8; /* the descriptor asks for SGPRs that it does not have */
    hipModule_t m;
    hipFunction_t f, nothing;
    hipGraph_t graph;
    hipGraphNode_t node;
    int *a = soft_device_ints(1), n = 3;
    void *args[] = { &a, &n };
    hipKernelNodeParams p = { .blockDim = { 64, 1, 1 },
                              .gridDim = { 1, 1, 1 },
                              .kernelParams = args };
    OK(hip->hipModuleLoadData(&m, elf.bytes));
    OK(hip->hipModuleGetFunction(&f, m, "vadd"));
    OK(hip->hipModuleGetFunction(&nothing, m, "test_nothing"));
    FAILS(hipErrorNotSupported,
          hip->hipModuleLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, args, NULL));
    FAILS(hipErrorInvalidValue,
          hip->hipModuleLaunchKernel(nothing, 0, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL));
    OK(hip->hipGraphCreate(&graph, 0));
    p.func = f;
    FAILS(hipErrorNotSupported, hip->hipGraphAddKernelNode(&node, graph, NULL, 0, &p));
    OK(hip->hipGraphDestroy(graph));
    OK(hip->hipModuleUnload(m));
    OK(hip->hipFree(a));
    audit_detach();
    free(elf.bytes);
    return true;
}

static void refused_launches_did_not_run(void **state) {
    (void)state;
    record_and_open(launches_machine_code, NULL);
    uint64_t launch[3];
    static const unsigned how[] = { DETAIL_CHECKED_NOTHING, DETAIL_CHECKED_GUARDS,
                                    DETAIL_CHECKED_NOTHING };
    assert_int_equal(count(EVENT_LAUNCH), 3);
    for (int i = 0; i < 3; i++) {
        struct reader_event e = next(EVENT_LAUNCH);
        assert_int_equal(checked(&e).how, how[i]);
        launch[i] = e.seq;
    }
    assert_int_equal(count(EVENT_NOT_RUN), 3);
    expect_not_run(launch[0], DETAIL_REASON_NO_NATIVE_TWIN);
    expect_not_run(launch[1], DETAIL_REASON_REFUSED);
    expect_not_run(launch[2], DETAIL_REASON_NO_NATIVE_TWIN);
    assert_int_equal(count(EVENT_RAN), 0);
    done();
}

static bool launches_behind_a_fault(void) {
    attach();
    hipStream_t s = soft_free_stream();
    int *p = soft_device_ints(1024);
    struct soft_gate gate = { 0 };
    soft_gate_close(&gate, s);
    soft_touch(s, p, 1 << 20, true);
    soft_nothing(s);
    soft_nothing(s);
    soft_gate_open(&gate);
    FAILS(hipErrorIllegalAddress, hip->hipStreamSynchronize(s));
    FAILS(hipErrorIllegalAddress, soft_touch_call(s, p, 0, true));
    audit_detach();
    return true;
}

static void launches_behind_a_fault_did_not_run(void **state) {
    (void)state;
    record_and_open(launches_behind_a_fault, NULL);
    uint64_t launch[4];
    assert_int_equal(count(EVENT_LAUNCH), 4);
    for (int i = 0; i < 4; i++)
        launch[i] = next(EVENT_LAUNCH).seq;
    assert_int_equal(count(EVENT_FAULT), 1);
    assert_int_equal(next(EVENT_FAULT).event.src, launch[0]);
    assert_int_equal(count(EVENT_NOT_RUN), 3);
    for (int i = 1; i < 4; i++)
        expect_not_run(launch[i], DETAIL_REASON_DEVICE_FAILED);
    assert_int_equal(count(EVENT_RAN), 1);
    assert_int_equal(next(EVENT_RAN).event.dst, 3); /* done with, though not run */
    done();
}

/* ---- slack ----------------------------------------------------------------------------------- */

static bool writes_beside_blocks(void) {
    attach();
    char *p = NULL, *q = NULL;
    OK(hip->hipMalloc((void **)&p, 100));
    OK(hip->hipMalloc((void **)&q, 4096));
    soft_touch(NULL, p, 0, true);
    soft_touch(NULL, p, -2, true);
    OK(hip->hipDeviceSynchronize());
    soft_touch(NULL, q, p - 1 - q, true);
    OK(hip->hipFree(p));
    OK(hip->hipFree(q));
    audit_detach();
    return true;
}

static void writes_beside_blocks_name_the_launches_between_two_looks(void **state) {
    (void)state;
    if (SOFT_TSAN)
        skip(); /* it sees the look, and the wrong write */
    record_and_open(writes_beside_blocks, NULL);
    rewind_events();
    struct reader_event alloc = next(EVENT_ALLOC);
    rewind_events();
    uint64_t launch[3];
    for (int i = 0; i < 3; i++)
        launch[i] = next(EVENT_LAUNCH).seq;
    assert_int_equal(count(EVENT_SLACK), 2);
    struct reader_event first = next(EVENT_SLACK), second = next(EVENT_SLACK);
    const uint64_t *looks = reader_extra(&first, EXTRA_LOOKS)->word;
    assert_int_equal(first.event.dst, alloc.event.dst - 2);
    assert_int_equal(first.event.src, alloc.seq);
    assert_int_equal(first.event.len, 1);
    assert_int_equal(event_detail(&first.event), DETAIL_SIDE_BEFORE);
    assert_int_equal(looks[0], launch[0]);
    assert_int_equal(looks[1], launch[1]);
    assert_int_equal(looks[2], 1);
    looks = reader_extra(&second, EXTRA_LOOKS)->word;
    assert_int_equal(second.event.src, alloc.seq);
    assert_int_equal(looks[0], launch[1]);
    assert_int_equal(looks[1], EVENT_NO_SEQ);
    assert_int_equal(looks[2], 1);
    done();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches_say_how_they_are_checked_and_that_they_ran),
        cmocka_unit_test(refused_launches_did_not_run),
        cmocka_unit_test(launches_behind_a_fault_did_not_run),
        cmocka_unit_test(writes_beside_blocks_name_the_launches_between_two_looks),
    };
    return cmocka_run_group_tests_name("audit_statements", tests, soft_fixture_load, NULL);
}
