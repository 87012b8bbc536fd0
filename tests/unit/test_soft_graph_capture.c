/* test_soft_graph_capture.c - streams that record graphs instead of working. */
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "support/soft_fixture.h"

/* ---- building blocks ----------------------------------------------------------------------- */

static void begin(hipStream_t s) {
    OK(hip->hipStreamBeginCapture(s, hipStreamCaptureModeGlobal));
}

static hipGraph_t end(hipStream_t s) {
    hipGraph_t g = NULL;
    OK(hip->hipStreamEndCapture(s, &g));
    MUST(g);
    return g;
}

static hipGraphExec_t instantiate(hipGraph_t g) {
    hipGraphExec_t x;
    OK(hip->hipGraphInstantiate(&x, g, NULL, NULL, 0));
    return x;
}

static void fork_to(hipStream_t from, hipStream_t to) {
    hipEvent_t e = soft_event();
    OK(hip->hipEventRecord(e, from));
    OK(hip->hipStreamWaitEvent(to, e, 0));
}

static int read_int(const int *device) {
    int value;
    OK(hip->hipMemcpy(&value, device, sizeof value, hipMemcpyDeviceToHost));
    return value;
}

static hipStreamCaptureStatus status_of(hipStream_t s) {
    hipStreamCaptureStatus status;
    OK(hip->hipStreamIsCapturing(s, &status));
    return status;
}

/* The capture on s has been invalidated: it takes nothing more, and ends without a graph. */
static void is_invalid(hipStream_t s) {
    static int unused;
    hipGraph_t g = (hipGraph_t)&g;
    MUST(status_of(s) == hipStreamCaptureStatusInvalidated);
    FAILS(hipErrorStreamCaptureInvalidated, hip->hipLaunchHostFunc(s, free, &unused));
    FAILS(hipErrorStreamCaptureInvalidated, hip->hipStreamEndCapture(s, &g));
    MUST(!g && status_of(s) == hipStreamCaptureStatusNone);
}

/* ---- recording ----------------------------------------------------------------------------- */

static void count_call(void *user) {
    __atomic_add_fetch((int *)user, 1, __ATOMIC_RELAXED);
}

static bool captured_work_runs_at_launch(void) {
    int *a = soft_device_ints(1), *b = soft_device_ints(1), *host = soft_pinned_ints(1);
    static int calls;
    calls = 0;
    hipStream_t s = soft_blocking_stream();
    begin(s);
    MUST(status_of(s) == hipStreamCaptureStatusActive);
    soft_fold(s, a, 10, 1);
    OK(hip->hipMemcpyAsync(b, a, sizeof *a, hipMemcpyDeviceToDevice, s));
    OK(hip->hipMemsetAsync(a, 0, sizeof *a, s));
    OK(hip->hipMemcpyAsync(host, b, sizeof *b, hipMemcpyDeviceToHost, s));
    OK(hip->hipLaunchHostFunc(s, count_call, &calls));
    hipGraph_t g = end(s);
    MUST(status_of(s) == hipStreamCaptureStatusNone);
    MUST(read_int(a) == 0 && read_int(b) == 0 && calls == 0); /* nothing has run */
    static const hipGraphNodeType expected[] = { hipGraphNodeTypeKernel, hipGraphNodeTypeMemcpy,
                                                 hipGraphNodeTypeMemset, hipGraphNodeTypeMemcpy,
                                                 hipGraphNodeTypeHost };
    hipGraphNode_t nodes[8];
    size_t n = 8;
    OK(hip->hipGraphGetNodes(g, nodes, &n));
    MUST(n == 5);
    for (size_t i = 0; i < n; i++) {
        hipGraphNodeType type;
        OK(hip->hipGraphNodeGetType(nodes[i], &type));
        MUST(type == expected[i]);
    }
    hipGraphExec_t x = instantiate(g);
    OK(hip->hipGraphLaunch(x, s));
    OK(hip->hipGraphLaunch(x, s));
    OK(hip->hipStreamSynchronize(s));
    return *host == 1 && calls == 2 && read_int(a) == 0;
}

static void a_capturing_stream_records_instead_of_working(void **state) {
    (void)state;
    soft_right(captured_work_runs_at_launch);
}

/* Host memory is read when the graph runs, not when it is captured. */
static bool pageable_memory_is_read_at_launch(void) {
    int *a = soft_device_ints(1);
    static int source;
    source = 1;
    hipStream_t s = soft_blocking_stream();
    begin(s);
    OK(hip->hipMemcpyAsync(a, &source, sizeof source, hipMemcpyHostToDevice, s));
    hipGraphExec_t x = instantiate(end(s));
    source = 2;
    OK(hip->hipGraphLaunch(x, s));
    OK(hip->hipStreamSynchronize(s));
    return read_int(a) == 2;
}

static void captured_copies_read_late(void **state) {
    (void)state;
    soft_right(pageable_memory_is_read_at_launch);
}

static bool graphs_can_be_captured(void) {
    int *a = soft_device_ints(1);
    hipStream_t s = soft_blocking_stream();
    begin(s);
    soft_fold(s, a, 10, 2);
    hipGraphExec_t inner = instantiate(end(s));
    begin(s);
    soft_fold(s, a, 10, 1);
    OK(hip->hipGraphLaunch(inner, s));
    soft_fold(s, a, 10, 3);
    hipGraph_t g = end(s);
    OK(hip->hipGraphExecDestroy(inner));
    OK(hip->hipGraphLaunch(instantiate(g), s));
    OK(hip->hipStreamSynchronize(s));
    return read_int(a) == 123;
}

static void a_captured_launch_is_a_child_graph(void **state) {
    (void)state;
    soft_right(graphs_can_be_captured);
}

/* ---- forking and joining ------------------------------------------------------------------- */

/* a = 1, then b and c from it in two streams, then both folded together. */
static hipGraph_t capture_diamond(hipStream_t s, hipStream_t t, int *a, bool join) {
    begin(s);
    soft_store(s, &a[0], 5, 300);
    fork_to(s, t);
    MUST(status_of(t) == hipStreamCaptureStatusActive);
    soft_move(t, &a[1], &a[0], 300);
    soft_move(s, &a[2], &a[0], 0);
    if (join)
        fork_to(t, s);
    soft_move(s, &a[3], &a[1], 0);
    hipGraph_t g = NULL;
    hipError_t r = hip->hipStreamEndCapture(s, &g);
    MUST(r == (join ? hipSuccess : hipErrorStreamCaptureUnjoined));
    MUST(status_of(t) == hipStreamCaptureStatusNone);
    return g;
}

static bool forked_work_is_joined(void) {
    int *a = soft_device_ints(4);
    hipStream_t s = soft_blocking_stream(), t = soft_free_stream();
    hipGraph_t g = capture_diamond(s, t, a, true);
    size_t edges = 0;
    OK(hip->hipGraphGetEdges(g, NULL, NULL, &edges));
    MUST(edges == 4);
    OK(hip->hipGraphLaunch(instantiate(g), s));
    OK(hip->hipStreamSynchronize(s));
    return read_int(&a[1]) == 5 && read_int(&a[2]) == 5 && read_int(&a[3]) == 5;
}

static bool unjoined_work_is_refused(void) {
    int *a = soft_device_ints(4);
    hipStream_t s = soft_blocking_stream(), t = soft_free_stream();
    MUST(!capture_diamond(s, t, a, false));
    soft_store(t, &a[0], 9, 0); /* both work again */
    OK(hip->hipStreamSynchronize(t));
    soft_store(s, &a[1], 9, 0);
    OK(hip->hipStreamSynchronize(s));
    return read_int(&a[0]) == 9 && read_int(&a[1]) == 9;
}

/* Work that is only unordered by mistake shows under lazy. */
static bool the_join_came_too_early(void) {
    int *a = soft_device_ints(2);
    hipStream_t s = soft_blocking_stream(), t = soft_free_stream(), u = soft_free_stream();
    begin(s);
    fork_to(s, t);
    fork_to(s, u);
    soft_store(t, &a[0], 5, 0);
    soft_move(u, &a[1], &a[0], 0); /* should have waited for t */
    fork_to(t, s);
    fork_to(u, s);
    OK(hip->hipGraphLaunch(instantiate(end(s)), s));
    OK(hip->hipStreamSynchronize(s));
    return read_int(&a[1]) == 5;
}

static void events_fork_and_join_a_capture(void **state) {
    (void)state;
    soft_right(forked_work_is_joined);
    soft_right(unjoined_work_is_refused);
    soft_wrong(the_join_came_too_early);
}

static bool forks_need_a_way_back_only_for_work(void) {
    hipStream_t s = soft_blocking_stream(), t = soft_free_stream();
    begin(s);
    soft_nothing(s);
    fork_to(s, t); /* t adds nothing */
    hipGraph_t g = end(s);
    size_t n = 0;
    OK(hip->hipGraphGetNodes(g, NULL, &n));
    MUST(n == 1);
    return status_of(t) == hipStreamCaptureStatusNone;
}

static void a_fork_without_work_is_joined(void **state) {
    (void)state;
    soft_expect(forks_need_a_way_back_only_for_work, NULL);
}

/* ---- what is forbidden --------------------------------------------------------------------- */

static bool synchronising_invalidates(void) {
    hipStream_t s = soft_blocking_stream();
    hipEvent_t e = soft_event();
    begin(s);
    FAILS(hipErrorStreamCaptureUnsupported, hip->hipStreamSynchronize(s));
    is_invalid(s);
    begin(s);
    FAILS(hipErrorStreamCaptureUnsupported, hip->hipStreamQuery(s));
    is_invalid(s);
    begin(s);
    FAILS(hipErrorStreamCaptureUnsupported, hip->hipDeviceSynchronize());
    is_invalid(s);
    begin(s);
    OK(hip->hipEventRecord(e, s));
    FAILS(hipErrorCapturedEvent, hip->hipEventSynchronize(e));
    FAILS(hipErrorCapturedEvent, hip->hipEventQuery(e));
    OK(hip->hipGraphDestroy(end(s)));
    OK(hip->hipEventQuery(e)); /* it was never recorded outside */
    return true;
}

static bool unsafe_calls_invalidate(void) {
    hipStream_t s = soft_blocking_stream();
    int *a = soft_device_ints(1), *p, value = 0;
    begin(s);
    FAILS(hipErrorStreamCaptureUnsupported, hip->hipMalloc((void **)&p, 4));
    is_invalid(s);
    begin(s);
    FAILS(hipErrorStreamCaptureUnsupported, hip->hipFree(a));
    is_invalid(s);
    begin(s);
    FAILS(hipErrorStreamCaptureImplicit,
          hip->hipMemcpy(&value, a, sizeof value, hipMemcpyDeviceToHost));
    is_invalid(s);
    OK(hip->hipStreamBeginCapture(s, hipStreamCaptureModeRelaxed));
    OK(hip->hipMalloc((void **)&p, 4));
    OK(hip->hipFree(p));
    OK(hip->hipGraphDestroy(end(s)));
    hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
    OK(hip->hipThreadExchangeStreamCaptureMode(&mode));
    MUST(mode == hipStreamCaptureModeGlobal);
    begin(s); /* the thread has said that it knows what it does … */
    MUST(hip->hipMalloc((void **)&p, 4) == hipSuccess);
    OK(hip->hipGraphDestroy(end(s)));
    OK(hip->hipThreadExchangeStreamCaptureMode(&mode));
    MUST(mode == hipStreamCaptureModeRelaxed);
    mode = (hipStreamCaptureMode)7;
    FAILS(hipErrorInvalidValue, hip->hipThreadExchangeStreamCaptureMode(&mode));
    FAILS(hipErrorInvalidValue, hip->hipThreadExchangeStreamCaptureMode(NULL));
    return true;
}

static bool the_legacy_stream_is_forbidden(void) {
    hipStream_t s = soft_blocking_stream(), free_stream = soft_free_stream();
    int *a = soft_device_ints(1);
    hipEvent_t e = soft_event();
    hipStreamCaptureStatus status;
    FAILS(hipErrorStreamCaptureUnsupported,
          hip->hipStreamBeginCapture(NULL, hipStreamCaptureModeGlobal));
    FAILS(hipErrorStreamCaptureUnsupported,
          hip->hipStreamBeginCapture(hipStreamLegacy, hipStreamCaptureModeGlobal));
    begin(s);
    FAILS(hipErrorStreamCaptureImplicit, hip->hipMemsetAsync(a, 0, 4, NULL));
    is_invalid(s);
    begin(s);
    FAILS(hipErrorStreamCaptureImplicit, hip->hipEventRecord(e, NULL));
    is_invalid(s);
    begin(s);
    FAILS(hipErrorStreamCaptureImplicit, hip->hipStreamSynchronize(NULL));
    is_invalid(s);
    begin(s);
    FAILS(hipErrorStreamCaptureImplicit, hip->hipStreamIsCapturing(NULL, &status));
    OK(hip->hipEventRecord(e, s));
    FAILS(hipErrorStreamCaptureImplicit, hip->hipStreamWaitEvent(NULL, e, 0));
    is_invalid(s);
    /* A stream that does not synchronise with it does not forbid it either. */
    begin(free_stream);
    OK(hip->hipMemsetAsync(a, 0, 4, NULL));
    OK(hip->hipStreamIsCapturing(NULL, &status));
    MUST(status == hipStreamCaptureStatusNone);
    OK(hip->hipGraphDestroy(end(free_stream)));
    OK(hip->hipStreamSynchronize(NULL));
    return true;
}

static bool captures_do_not_mix(void) {
    hipStream_t s = soft_free_stream(), t = soft_free_stream(), u = soft_free_stream();
    hipEvent_t outside = soft_event(), inside = soft_event(), never = soft_event();
    OK(hip->hipEventRecord(outside, u));
    begin(s);
    OK(hip->hipStreamWaitEvent(s, never, 0));
    FAILS(hipErrorStreamCaptureIsolation, hip->hipStreamWaitEvent(s, outside, 0));
    is_invalid(s);
    begin(s);
    begin(t);
    OK(hip->hipEventRecord(inside, s));
    FAILS(hipErrorStreamCaptureMerge, hip->hipStreamWaitEvent(t, inside, 0));
    is_invalid(s);
    is_invalid(t);
    return true;
}

static void rules_of_capture_are_enforced(void **state) {
    (void)state;
    soft_right(synchronising_invalidates);
    soft_right(unsafe_calls_invalidate);
    soft_right(the_legacy_stream_is_forbidden);
    soft_right(captures_do_not_mix);
}

/* ---- beginning and ending ------------------------------------------------------------------ */

static void *end_elsewhere(void *stream) {
    hipGraph_t g;
    FAILS(hipErrorStreamCaptureWrongThread, hip->hipStreamEndCapture(stream, &g));
    return NULL;
}

static void *end_relaxed_elsewhere(void *stream) {
    hipGraph_t g;
    OK(hip->hipStreamEndCapture(stream, &g));
    return NULL;
}

static void in_thread(void *(*fn)(void *), void *argument) {
    pthread_t thread;
    MUST(!pthread_create(&thread, NULL, fn, argument));
    MUST(!pthread_join(thread, NULL));
}

static bool captures_end_where_they_began(void) {
    hipStream_t s = soft_free_stream(), t = soft_free_stream();
    hipGraph_t g;
    FAILS(hipErrorIllegalState, hip->hipStreamEndCapture(s, &g));
    FAILS(hipErrorIllegalState, hip->hipStreamEndCapture(NULL, &g));
    FAILS(hipErrorInvalidValue, hip->hipStreamBeginCapture(s, (hipStreamCaptureMode)3));
    begin(s);
    FAILS(hipErrorInvalidValue, hip->hipStreamEndCapture(s, NULL));
    FAILS(hipErrorIllegalState, hip->hipStreamBeginCapture(s, hipStreamCaptureModeGlobal));
    fork_to(s, t);
    FAILS(hipErrorStreamCaptureUnmatched, hip->hipStreamEndCapture(t, &g));
    in_thread(end_elsewhere, s);
    OK(hip->hipGraphDestroy(end(s)));
    OK(hip->hipStreamBeginCapture(s, hipStreamCaptureModeRelaxed));
    in_thread(end_relaxed_elsewhere, s);
    return status_of(s) == hipStreamCaptureStatusNone;
}

static bool destroyed_streams_leave_the_capture(void) {
    hipStream_t s = soft_blocking_stream(), t = soft_free_stream();
    int *a = soft_device_ints(1);
    begin(s);
    fork_to(s, t);
    OK(hip->hipStreamDestroy(t));
    is_invalid(s);
    begin(s);
    soft_store(s, a, 1, 0);
    OK(hip->hipStreamDestroy(s));
    soft_store(NULL, a, 2, 0); /* the legacy stream is free again */
    return read_int(a) == 2;
}

static bool destroyed_events_leave_the_capture(void) {
    hipStream_t s = soft_blocking_stream();
    hipEvent_t e = soft_event();
    begin(s);
    OK(hip->hipEventRecord(e, s));
    OK(hip->hipEventRecord(e, s));
    OK(hip->hipEventDestroy(e));
    OK(hip->hipGraphDestroy(end(s)));
    return true;
}

static void captures_have_a_beginning_and_an_end(void **state) {
    (void)state;
    soft_right(captures_end_where_they_began);
    soft_right(destroyed_streams_leave_the_capture);
    soft_right(destroyed_events_leave_the_capture);
}

static hipStream_t shared_stream;
static _Atomic int stage;

static void wait_for_stage(int n) {
    while (atomic_load(&stage) < n)
        sched_yield();
}

static void *capture_in_mode(void *mode) {
    OK(hip->hipStreamBeginCapture(shared_stream, *(hipStreamCaptureMode *)mode));
    atomic_store(&stage, 1);
    wait_for_stage(2);
    hipGraph_t g;
    bool valid = hip->hipStreamEndCapture(shared_stream, &g) == hipSuccess;
    return valid ? mode : NULL;
}

/* While another thread captures in `theirs`, does this one, in `mine`, get memory? */
static bool may_allocate(hipStreamCaptureMode theirs, hipStreamCaptureMode mine) {
    pthread_t thread;
    void *p, *valid;
    atomic_store(&stage, 0);
    MUST(!pthread_create(&thread, NULL, capture_in_mode, &theirs));
    wait_for_stage(1);
    OK(hip->hipThreadExchangeStreamCaptureMode(&mine));
    hipError_t r = hip->hipMalloc(&p, 4);
    OK(hip->hipThreadExchangeStreamCaptureMode(&mine));
    atomic_store(&stage, 2);
    MUST(!pthread_join(thread, &valid));
    MUST(r == (valid ? hipSuccess : hipErrorStreamCaptureUnsupported));
    return r == hipSuccess;
}

static bool modes_say_who_may_do_what(void) {
    shared_stream = soft_free_stream();
    MUST(!may_allocate(hipStreamCaptureModeGlobal, hipStreamCaptureModeGlobal));
    MUST(may_allocate(hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal));
    MUST(may_allocate(hipStreamCaptureModeThreadLocal, hipStreamCaptureModeGlobal));
    MUST(may_allocate(hipStreamCaptureModeRelaxed, hipStreamCaptureModeGlobal));
    MUST(may_allocate(hipStreamCaptureModeGlobal, hipStreamCaptureModeRelaxed));
    return true;
}

static void modes_bind_the_right_threads(void **state) {
    (void)state;
    soft_right(modes_say_who_may_do_what);
}

/* ---- information and manual changes -------------------------------------------------------- */

static bool a_capture_can_be_looked_at(void) {
    int *a = soft_device_ints(1);
    hipStream_t s = soft_free_stream(), t = soft_free_stream();
    hipStreamCaptureStatus status;
    unsigned long long id = 0, other_id = 0, next_id = 0;
    hipGraph_t g, other;
    const hipGraphNode_t *frontier;
    size_t count = 9;
    OK(hip->hipStreamGetCaptureInfo(s, &status, &id));
    MUST(status == hipStreamCaptureStatusNone && id == 0);
    begin(s);
    OK(hip->hipStreamGetCaptureInfo_v2(s, &status, &id, &g, &frontier, &count));
    MUST(status == hipStreamCaptureStatusActive && id && count == 0);
    soft_fold(s, a, 10, 1);
    fork_to(s, t);
    OK(hip->hipStreamGetCaptureInfo_v2(t, &status, &other_id, &other, &frontier, &count));
    MUST(other_id == id && other == g && count == 1);
    hipGraphNode_t first = frontier[0], extra;
    /* The graph may be added to by hand; the stream goes on after what is set. */
    FAILS(hipErrorIllegalState, hip->hipGraphDestroy(g));
    FAILS(hipErrorInvalidValue, hip->hipGraphDestroyNode(first));
    OK(hip->hipGraphAddEmptyNode(&extra, g, &first, 1));
    OK(hip->hipStreamUpdateCaptureDependencies(s, &extra, 1, hipStreamAddCaptureDependencies));
    OK(hip->hipStreamGetCaptureInfo_v2(s, &status, NULL, NULL, &frontier, &count));
    MUST(count == 2);
    OK(hip->hipStreamUpdateCaptureDependencies(s, &extra, 1, hipStreamSetCaptureDependencies));
    soft_fold(s, a, 10, 2);
    FAILS(hipErrorInvalidValue, hip->hipStreamUpdateCaptureDependencies(s, &extra, 1, 9));
    FAILS(hipErrorInvalidValue,
          hip->hipStreamUpdateCaptureDependencies(s, (hipGraphNode_t *)&g, 1, 0));
    FAILS(hipErrorInvalidValue, hip->hipStreamGetCaptureInfo(s, NULL, NULL));
    MUST(end(s) == g);
    FAILS(hipErrorIllegalState, hip->hipStreamUpdateCaptureDependencies(s, &extra, 1, 0));
    begin(s);
    OK(hip->hipStreamGetCaptureInfo(s, &status, &next_id));
    MUST(next_id != id);
    OK(hip->hipGraphDestroy(end(s)));
    OK(hip->hipGraphLaunch(instantiate(g), s));
    OK(hip->hipStreamSynchronize(s));
    return read_int(a) == 12;
}

static bool nodes_taken_out_need_not_be_joined(void) {
    int *a = soft_device_ints(1);
    hipStream_t s = soft_free_stream();
    begin(s);
    soft_fold(s, a, 10, 1);
    OK(hip->hipStreamUpdateCaptureDependencies(s, NULL, 0, hipStreamSetCaptureDependencies));
    soft_nothing(s);
    hipGraph_t g = end(s);
    size_t roots = 0;
    OK(hip->hipGraphGetRootNodes(g, NULL, &roots));
    return roots == 2;
}

static bool a_capture_can_go_into_a_graph(void) {
    int *a = soft_device_ints(1);
    hipStream_t s = soft_free_stream();
    hipGraph_t g, got = NULL;
    begin(s);
    soft_fold(s, a, 10, 1);
    g = end(s);
    hipGraphNode_t first;
    size_t n = 1;
    OK(hip->hipGraphGetNodes(g, &first, &n));
    OK(hip->hipStreamBeginCaptureToGraph(s, g, &first, NULL, 1, hipStreamCaptureModeGlobal));
    soft_fold(s, a, 10, 2);
    OK(hip->hipStreamEndCapture(s, &got));
    MUST(got == g);
    OK(hip->hipStreamBeginCaptureToGraph(s, g, NULL, NULL, 0, hipStreamCaptureModeGlobal));
    FAILS(hipErrorStreamCaptureUnsupported, hip->hipStreamQuery(s));
    FAILS(hipErrorStreamCaptureInvalidated, hip->hipStreamEndCapture(s, &got));
    FAILS(hipErrorInvalidValue,
          hip->hipStreamBeginCaptureToGraph(s, NULL, NULL, NULL, 0, hipStreamCaptureModeGlobal));
    OK(hip->hipGraphLaunch(instantiate(g), s)); /* the graph is still there */
    OK(hip->hipStreamSynchronize(s));
    return read_int(a) == 12;
}

static void captures_can_be_steered(void **state) {
    (void)state;
    soft_right(a_capture_can_be_looked_at);
    soft_expect(nodes_taken_out_need_not_be_joined, NULL);
    soft_right(a_capture_can_go_into_a_graph);
}

/* ---- threads ------------------------------------------------------------------------------- */

static void *capture_and_launch(void *unused) {
    int *a = soft_device_ints(1);
    hipStream_t s = soft_free_stream();
    for (int i = 0; i < 20; i++) {
        OK(hip->hipStreamBeginCapture(s, hipStreamCaptureModeThreadLocal));
        soft_fold(s, a, 1, 1);
        soft_fold(s, a, 1, 1);
        hipGraph_t g = end(s);
        hipGraphExec_t x = instantiate(g);
        OK(hip->hipGraphDestroy(g));
        OK(hip->hipGraphLaunch(x, s));
        OK(hip->hipGraphLaunch(x, s));
        OK(hip->hipGraphExecDestroy(x));
    }
    OK(hip->hipStreamSynchronize(s));
    int value = soft_peek(a);
    MUST(value == 80);
    return unused;
}

static bool threads_capture_side_by_side(void) {
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        MUST(!pthread_create(&threads[i], NULL, capture_and_launch, NULL));
    for (int i = 0; i < THREADS; i++)
        MUST(!pthread_join(threads[i], NULL));
    return true;
}

static void threads_do_not_disturb_each_other(void **state) {
    (void)state;
    soft_expect(threads_capture_side_by_side, "GRETA_SOFT_SCHEDULE=fast");
    soft_expect(threads_capture_side_by_side, "GRETA_SOFT_SCHEDULE=eager");
    soft_expect(threads_capture_side_by_side, "GRETA_SOFT_SCHEDULE=lazy");
    soft_expect(threads_capture_side_by_side, "GRETA_SOFT_SCHEDULE=random:1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_capturing_stream_records_instead_of_working),
        cmocka_unit_test(captured_copies_read_late),
        cmocka_unit_test(a_captured_launch_is_a_child_graph),
        cmocka_unit_test(events_fork_and_join_a_capture),
        cmocka_unit_test(a_fork_without_work_is_joined),
        cmocka_unit_test(rules_of_capture_are_enforced),
        cmocka_unit_test(captures_have_a_beginning_and_an_end),
        cmocka_unit_test(modes_bind_the_right_threads),
        cmocka_unit_test(captures_can_be_steered),
        cmocka_unit_test(threads_do_not_disturb_each_other),
    };
    return cmocka_run_group_tests(tests, soft_fixture_load, NULL);
}
