/* What the audit writes into a recording: the right event for each call, with what later questions
 * need: which allocation, which record of an event, which call had failed, what was refused. */
#include "unit/audit_fake.h"

#include <signal.h>
#include <sys/wait.h>

#include "audit/kernel.h"
#include "record/reader.h"

static char path[64];
static unsigned char host[4096];
static reader *recording;

static int setup(void **state) {
    (void)state;
    strcpy(path, "/tmp/greta-test-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    setenv("GRETA_TEST_PROVENANCE", "seen", 1);
    fake_attach_with((struct audit_config){ .record = { .path = path, .events = 65536 } }, false);
    return 0;
}

static int teardown(void **state) {
    reader_close(&recording);
    unlink(path);
    return fake_detach(state);
}

/* Ends the recording and opens it. */
static void finish(void) {
    struct err e = { 0 };
    audit_detach();
    if (reader_open(&recording, path, &e) != RC_OK)
        fail_msg("%s", e.msg);
    assert_int_equal(reader_info(recording)->lost, 0);
}

/* The n-th (from 0) event of the kind, after finish(). */
static const struct reader_event *nth(enum event_kind kind, unsigned n) {
    static struct reader_event e;
    struct reader_cursor at = reader_events(recording, 0, UINT64_MAX);
    while (reader_next(&at, &e))
        if (e.event.kind == kind && n-- == 0)
            return &e;
    fail_msg("there is no such event: %s", event_kind_text(kind));
    return NULL;
}

static unsigned count(enum event_kind kind) {
    unsigned n = 0;
    struct reader_event e;
    struct reader_cursor at = reader_events(recording, 0, UINT64_MAX);
    while (reader_next(&at, &e))
        n += e.event.kind == kind;
    return n;
}

static void *device_memory(size_t size) {
    void *p = NULL;
    assert_int_equal(api.hipMalloc(&p, size), hipSuccess);
    return p;
}

static uint64_t bits(const void *p) {
    return (uint64_t)(uintptr_t)p;
}

/* Finished, from this program, about this function. */
static void expect_call(const struct reader_event *e, hipError_t status, enum hip_fn fn) {
    char site[256];
    assert_int_equal(e->event.status, status);
    assert_int_equal(event_fn(&e->event), fn);
    reader_site_text(recording, e->event.site, site, sizeof site);
    assert_non_null(strstr(site, "test_audit_record"));
}

static void allocations_and_frees(void **state) {
    (void)state;
    void *p = device_memory(100);
    fake.next_result = hipErrorOutOfMemory;
    void *none;
    assert_int_equal(api.hipHostMalloc(&none, 50, 7), hipErrorOutOfMemory);
    assert_int_equal(api.hipFree(p), hipSuccess);
    fake.next_result = hipErrorInvalidValue;
    assert_int_equal(api.hipFree(p), hipErrorInvalidValue);
    finish();
    const struct reader_event *e = nth(EVENT_ALLOC, 0);
    uint64_t alloc = e->seq;
    expect_call(e, hipSuccess, HIP_FN_hipMalloc);
    assert_int_equal(e->event.dst, bits(p));
    assert_int_equal(e->event.len, 100);
    assert_int_equal(event_detail(&e->event), DETAIL_FAMILY_DEVICE);
    e = nth(EVENT_ALLOC, 1);
    expect_call(e, hipErrorOutOfMemory, HIP_FN_hipHostMalloc);
    assert_int_equal(e->event.dst, 0);
    assert_int_equal(e->event.src & UINT32_MAX, 7);
    e = nth(EVENT_FREE, 0);
    expect_call(e, hipSuccess, HIP_FN_hipFree);
    assert_int_equal(e->event.src, alloc);
    assert_int_equal(e->event.len, 100);
    e = nth(EVENT_FREE, 1); /* the double free points at the same allocation */
    expect_call(e, hipErrorInvalidValue, HIP_FN_hipFree);
    assert_int_equal(e->event.src, alloc);
    assert_int_equal(e->event.len, 0);
}

static void copies_sets_and_their_tensors(void **state) {
    (void)state;
    char *p = device_memory(4096);
    assert_int_equal(gcore_name_range(p, 256, "wq"), GCORE_D2H_OK);
    assert_int_equal(api.hipMemcpy(host, p + 8, 16, hipMemcpyDeviceToHost), hipSuccess);
    assert_int_equal(api.hipMemsetD32Async(p, 0x11223344, 4, NULL), hipSuccess);
    assert_int_equal(api.hipMemcpy2D(p, 64, host, 32, 16, 3, hipMemcpyHostToDevice), hipSuccess);
    hipMemcpy3DParms box = { .srcPtr = { host, 32, 32, 4 },
                             .dstPtr = { p, 64, 64, 8 },
                             .dstPos = { 1, 2, 1 },
                             .extent = { 16, 3, 2 },
                             .kind = hipMemcpyHostToDevice };
    assert_int_equal(api.hipMemcpy3DAsync(&box, NULL), hipSuccess);
    finish();
    const struct reader_event *e = nth(EVENT_NAME_RANGE, 0);
    assert_string_equal(reader_string(recording, e->event.name), "wq");
    assert_int_equal(e->event.len, 256);
    e = nth(EVENT_COPY, 0);
    expect_call(e, hipSuccess, HIP_FN_hipMemcpy);
    assert_int_equal(event_detail(&e->event), DETAIL_COPY_KIND_D2H);
    assert_int_equal(e->event.src, bits(p + 8));
    assert_int_equal(e->event.dst, bits(host));
    assert_int_equal(e->event.len, 16);
    assert_string_equal(reader_string(recording, e->event.name), "wq");
    assert_true(e->event.stream != 0);
    e = nth(EVENT_SET, 0);
    expect_call(e, hipSuccess, HIP_FN_hipMemsetD32Async);
    assert_int_equal(event_detail(&e->event), DETAIL_WIDTH_ASYNC_32);
    assert_int_equal(e->event.src, 0x11223344);
    assert_int_equal(e->event.len, 16);
    e = nth(EVENT_COPY2D, 0);
    assert_int_equal(e->event.len, 48);
    const struct event_extra *x = reader_extra(e, EXTRA_ROWS);
    assert_non_null(x);
    assert_int_equal(x->word[0], 64);
    assert_int_equal(x->word[1], 32);
    assert_int_equal(x->word[2], 16);
    assert_int_equal(x->word[3], 3);
    e = nth(EVENT_COPY2D, 1);
    assert_int_equal(e->event.dst, bits(p) + 1 + 2 * 64 + 64 * 8);
    assert_int_equal(event_detail(&e->event), DETAIL_COPY_KIND_ASYNC_H2D);
    x = reader_extra(e, EXTRA_SLICES);
    assert_non_null(x);
    assert_int_equal(x->word[0], 64 * 8);
    assert_int_equal(x->word[2], 2);
}

static void launches(void **state) {
    (void)state;
    void *p = device_memory(64);
    hipFunction_t f;
    uint64_t buffer[2] = { 1, bits(p) };
    size_t size = sizeof buffer;
    void *extra[] = { HIP_LAUNCH_PARAM_BUFFER_POINTER, buffer, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size,
                      HIP_LAUNCH_PARAM_END };
    assert_int_equal(api.hipModuleGetFunction(&f, NULL, "gemm"), hipSuccess);
    assert_int_equal(api.hipModuleLaunchKernel(f, 2, 3, 4, 5, 6, 7, 99, NULL, NULL, extra),
                     hipSuccess);
    assert_int_equal(
        api.hipExtModuleLaunchKernel(f, 64, 1, 1, 16, 1, 1, 0, NULL, NULL, extra, NULL, NULL, 0),
        hipSuccess);
    finish();
    const struct reader_event *e = nth(EVENT_LAUNCH, 0);
    expect_call(e, hipSuccess, HIP_FN_hipModuleLaunchKernel);
    assert_string_equal(reader_string(recording, e->event.name), "gemm");
    assert_int_equal(e->event.len, sizeof buffer);
    struct event_dims dims = event_dims_of(reader_extra(e, EXTRA_DIMS));
    assert_int_equal(dims.grid[1], 3);
    assert_int_equal(dims.block[2], 7);
    assert_int_equal(dims.shared, 99);
    struct event_arg args[EVENT_ARGS_PER_SLOT];
    assert_int_equal(event_args_of(reader_extra(e, EXTRA_ARGS), args), 1);
    assert_int_equal(args[0].value, bits(p));
    assert_int_equal(args[0].index, 1);
    e = nth(EVENT_LAUNCH, 1);
    dims = event_dims_of(reader_extra(e, EXTRA_DIMS));
    assert_int_equal(dims.grid[0], 4); /* 64 threads in blocks of 16 */
    assert_string_equal(reader_string(recording, nth(EVENT_FUNCTION, 0)->event.name), "gemm");
}

static bool copy_layout(const char *name, struct kernel_layout *out, void *user) {
    (void)name;
    (void)user;
    out->count = 2;
    out->param[0].size = 8;
    out->param[0].access = EVENT_ARG_WRITE;
    out->param[1].size = 4;
    return true;
}

static void launch_gemm(hipFunction_t f, void *p, uint32_t n) {
    void *params[] = { &p, &n };
    assert_int_equal(api.hipModuleLaunchKernel(f, 2, 1, 1, 64, 1, 1, 0, NULL, params, NULL),
                     hipSuccess);
}

static void launches_that_repeat_take_one_slot(void **state) {
    (void)state;
    void *p = device_memory(64), *other = device_memory(64);
    hipFunction_t f;
    kernel_set_source(copy_layout, NULL);
    assert_int_equal(api.hipModuleGetFunction(&f, NULL, "gemm"), hipSuccess);
    for (uint32_t i = 0; i < 4; i++)
        launch_gemm(f, p, 7);
    launch_gemm(f, p, 8);     /* another number */
    launch_gemm(f, other, 7); /* another pointer */
    launch_gemm(f, p, 7);
    kernel_set_source(NULL, NULL);
    finish();
    for (unsigned i = 0; i < 7; i++) {
        bool repeats = i > 0 && i != 4 && i != 5;
        const struct reader_event *e = nth(EVENT_LAUNCH, i);
        assert_int_equal(e->event.src != 0, repeats);
        assert_int_equal(e->slots, repeats ? 1 : 4);
        assert_int_equal(e->extras, 3);
        /* A runtime that is not the software device states nothing. */
        assert_int_equal(event_checked_of(reader_extra(e, EXTRA_CHECKED)).how,
                         DETAIL_CHECKED_NOTHING);
        assert_false(e->extras_lost);
        struct event_arg args[EVENT_ARGS_PER_SLOT];
        assert_int_equal(event_args_of(reader_extra(e, EXTRA_ARGS), args), 2);
        assert_int_equal(args[0].value, bits(i == 5 ? other : p));
        assert_int_equal(args[1].value, i == 4 ? 8 : 7);
        assert_int_equal(event_dims_of(reader_extra(e, EXTRA_DIMS)).block[0], 64);
    }
    assert_int_equal(reader_count(recording, DEFINITION_LAUNCH), 1);
}

static void order_of_streams_and_events(void **state) {
    (void)state;
    hipStream_t a, b;
    hipEvent_t ev;
    assert_int_equal(api.hipStreamCreateWithFlags(&a, hipStreamNonBlocking), hipSuccess);
    assert_int_equal(api.hipStreamCreateWithFlags(&b, 0), hipSuccess);
    assert_int_equal(api.hipEventCreateWithFlags(&ev, 2), hipSuccess);
    assert_int_equal(api.hipEventRecord(ev, a), hipSuccess);
    assert_int_equal(api.hipStreamWaitEvent(b, ev, 0), hipSuccess);
    assert_int_equal(api.hipEventSynchronize(ev), hipSuccess);
    assert_int_equal(api.hipStreamSynchronize(b), hipSuccess);
    assert_int_equal(api.hipDeviceSynchronize(), hipSuccess);
    assert_int_equal(api.hipStreamDestroy(a), hipSuccess);
    finish();
    uint64_t record = nth(EVENT_EVENT_RECORD, 0)->seq;
    uint32_t stream_a = nth(EVENT_EVENT_RECORD, 0)->event.stream;
    const struct stream_value *s = reader_stream(recording, stream_a);
    assert_non_null(s);
    assert_int_equal(s->handle, bits(a));
    assert_int_equal(s->flags, hipStreamNonBlocking);
    const struct reader_event *e = nth(EVENT_EVENT_WAIT, 0);
    assert_int_equal(e->event.src, record);
    assert_true(e->event.stream != stream_a && e->event.stream != 0);
    e = nth(EVENT_EVENT_SYNC, 0);
    assert_int_equal(e->event.src, record);
    assert_int_equal(event_detail(&nth(EVENT_SYNC, 0)->event), DETAIL_SCOPE_STREAM);
    assert_int_equal(event_detail(&nth(EVENT_SYNC, 1)->event), DETAIL_SCOPE_DEVICE);
    assert_int_equal(nth(EVENT_STREAM_DESTROY, 0)->event.dst, bits(a));
    assert_int_equal(count(EVENT_STREAM_CREATE), 2);
    assert_int_equal(nth(EVENT_EVENT_CREATE, 0)->event.dst, bits(ev));
}

static void errors_point_at_the_call_that_failed(void **state) {
    (void)state;
    fake.result = hipErrorInvalidValue;
    assert_int_equal(api.hipMemset(host, 0, 4), hipErrorInvalidValue);
    fake.result = hipErrorNotReady;
    assert_int_equal(api.hipStreamQuery(NULL), hipErrorNotReady); /* no error */
    fake.result = hipErrorInvalidValue;
    assert_int_equal(api.hipPeekAtLastError(), hipErrorInvalidValue);
    assert_int_equal(api.hipGetLastError(), hipErrorInvalidValue);
    fake.result = hipSuccess;
    assert_int_equal(api.hipGetLastError(), hipSuccess);
    finish();
    uint64_t failed = nth(EVENT_SET, 0)->seq;
    assert_int_equal(nth(EVENT_ERROR_READ, 0)->event.src, failed);
    assert_int_equal(nth(EVENT_ERROR_READ, 0)->event.dst, hipErrorInvalidValue);
    assert_int_equal(nth(EVENT_ERROR_READ, 1)->event.src, failed);
    assert_int_equal(nth(EVENT_ERROR_READ, 2)->event.src, EVENT_NO_SEQ);
}

static void checked_copies_and_their_order(void **state) {
    (void)state;
    char *p = device_memory(4096);
    hipStream_t busy;
    assert_int_equal(api.hipStreamCreateWithFlags(&busy, hipStreamNonBlocking), hipSuccess);
    assert_int_equal(api.hipMemsetAsync(p, 0, 64, busy), hipSuccess);
    struct gcore_d2h_meta m = { "logits", 5, 9, 16, 64, 4096 };
    assert_int_equal(gcore_d2h_copy(host, p, &m, NULL, NULL), GCORE_D2H_OK);
    m.size = 5000;
    assert_int_equal(gcore_d2h_copy(host, p, &m, NULL, NULL), GCORE_D2H_OUT_OF_ALLOCATION);
    m.size = 10;
    m.alloc = 20;
    assert_int_equal(gcore_d2h_copy(host, p, &m, NULL, NULL), GCORE_D2H_OUT_OF_ALLOCATION);
    finish();
    const struct reader_event *e = nth(EVENT_SAFE_COPY, 0);
    uint64_t safe_seq = e->seq;
    assert_int_equal(event_detail(&e->event), DETAIL_DECISION_PASSED);
    assert_int_equal(e->event.src, bits(p + 16));
    struct event_safe safe = event_safe_of(reader_extra(e, EXTRA_SAFE));
    assert_int_equal(safe.op_id, 0);
    assert_int_equal(safe.step, 5);
    assert_int_equal(safe.layer, 9);
    assert_int_equal(safe.offset, 16);
    assert_int_equal(safe.alloc, 4096);
    uint64_t record = nth(EVENT_EVENT_RECORD, 0)->seq, wait = nth(EVENT_EVENT_WAIT, 0)->seq;
    assert_int_equal(nth(EVENT_EVENT_WAIT, 0)->event.src, record);
    e = nth(EVENT_COPY, 0);
    expect_call(e, hipSuccess, HIP_FN_hipMemcpy);
    assert_string_equal(reader_string(recording, e->event.name), "logits");
    assert_true(safe_seq < record && record < wait && wait < e->seq);
    assert_int_equal(count(EVENT_COPY), 1);
    e = nth(EVENT_REFUSED, 0);
    assert_int_equal(event_detail(&e->event), DETAIL_DECISION_PAST_ALLOCATION);
    assert_int_equal(e->event.len, 5000);
    assert_int_equal(event_detail(&nth(EVENT_REFUSED, 1)->event), DETAIL_DECISION_FALSE_CLAIM);
}

static void async_copies_and_their_waits(void **state) {
    (void)state;
    char *p = device_memory(64);
    struct gcore_d2h_meta m = { .tensor = "q", .size = 64 };
    struct gcore_d2h_op op;
    assert_int_equal(gcore_d2h_copy_async(host, p, &m, NULL, &op, NULL), GCORE_D2H_OK);
    assert_int_equal(gcore_d2h_wait(&op, NULL), GCORE_D2H_OK);
    finish();
    assert_int_equal(event_detail(&nth(EVENT_COPY, 0)->event), DETAIL_COPY_KIND_ASYNC_D2H);
    uint64_t record = nth(EVENT_EVENT_RECORD, 0)->seq;
    assert_int_equal(nth(EVENT_EVENT_SYNC, 0)->event.src, record);
}

static void captures_and_graphs(void **state) {
    (void)state;
    hipStream_t s;
    hipGraph_t graph = (hipGraph_t)0x60;
    hipGraphExec_t exec = (hipGraphExec_t)0x70;
    hipGraphNode_t node = (hipGraphNode_t)0x80, needs[7];
    for (int i = 0; i < 7; i++)
        needs[i] = (hipGraphNode_t)(uintptr_t)(0x100 + i);
    assert_int_equal(api.hipStreamCreateWithFlags(&s, 0), hipSuccess);
    assert_int_equal(api.hipStreamBeginCapture(s, hipStreamCaptureModeGlobal), hipSuccess);
    assert_int_equal(api.hipMemsetAsync(host, 0, 4, s), hipSuccess);
    assert_int_equal(api.hipStreamEndCapture(s, &graph), hipSuccess);
    assert_int_equal(api.hipMemsetAsync(host, 0, 4, s), hipSuccess);
    assert_int_equal(
        api.hipGraphAddMemcpyNode1D(&node, graph, needs, 7, host, host + 8, 8, hipMemcpyHostToHost),
        hipSuccess);
    assert_int_equal(api.hipGraphInstantiateWithFlags(&exec, graph, 0), hipSuccess);
    assert_int_equal(api.hipGraphLaunch(exec, s), hipSuccess);
    finish();
    uint64_t begin = nth(EVENT_CAPTURE_BEGIN, 0)->seq;
    assert_int_equal(nth(EVENT_CAPTURE_END, 0)->event.src, begin);
    assert_int_equal(nth(EVENT_CAPTURE_END, 0)->event.dst, bits(graph));
    assert_true(event_is_captured(&nth(EVENT_SET, 0)->event));
    assert_false(event_is_captured(&nth(EVENT_SET, 1)->event));
    const struct reader_event *e = nth(EVENT_GRAPH_NODE, 0);
    assert_int_equal(e->event.src, bits(node));
    assert_int_equal(e->event.len, 7);
    assert_int_equal(e->extras, 2);
    assert_int_equal(e->extra[1].word[0], 0x106);
    assert_true(event_is_captured(&nth(EVENT_COPY, 0)->event));
    assert_int_equal(nth(EVENT_GRAPH_INSTANTIATE, 0)->event.dst, bits(exec));
    assert_int_equal(nth(EVENT_GRAPH_INSTANTIATE, 0)->event.src, bits(graph));
    assert_int_equal(nth(EVENT_GRAPH_LAUNCH, 0)->event.dst, bits(exec));
}

static void on_host(void *user) {
    *(int *)user += 1;
}

static hipError_t run_host_fn_now(hipStream_t s, hipHostFn_t fn, void *user) {
    fn(user);
    return hipSuccess;
}

static void host_functions_run_between_their_events(void **state) {
    (void)state;
    int runs = 0;
    audit.raw.hipLaunchHostFunc = run_host_fn_now;
    assert_int_equal(api.hipLaunchHostFunc(NULL, on_host, &runs), hipSuccess);
    assert_int_equal(runs, 1);
    audit.raw.hipLaunchHostFunc = fake_hipLaunchHostFunc;
    fake.result = hipErrorInvalidValue; /* never runs, and leaks nothing */
    assert_int_equal(api.hipLaunchHostFunc(NULL, on_host, &runs), hipErrorInvalidValue);
    finish();
    const struct reader_event *e = nth(EVENT_HOST_FN, 0);
    uint64_t queued = e->seq;
    assert_int_equal(e->event.dst, (uint64_t)(uintptr_t)on_host);
    assert_int_equal(nth(EVENT_HOST_FN_BEGIN, 0)->event.src, queued);
    assert_int_equal(nth(EVENT_HOST_FN_END, 0)->event.src, queued);
    assert_int_equal(count(EVENT_HOST_FN_BEGIN), 1);
}

static void plain_calls_show_their_arguments(void **state) {
    (void)state;
    int value;
    assert_int_equal(api.hipDeviceGetAttribute(&value, (hipDeviceAttribute_t)5, 1), hipSuccess);
    finish();
    struct reader_cursor at = reader_events(recording, 0, UINT64_MAX);
    struct reader_event e;
    bool found = false;
    while (reader_next(&at, &e))
        if (e.event.kind == EVENT_CALL && event_fn(&e.event) == HIP_FN_hipDeviceGetAttribute) {
            expect_call(&e, hipSuccess, HIP_FN_hipDeviceGetAttribute);
            assert_int_equal(e.event.dst, bits(&value));
            assert_int_equal(e.event.src, 5);
            assert_int_equal(e.event.len, 1);
            found = true;
        }
    assert_true(found);
    assert_string_equal(reader_function(recording, HIP_FN_hipMalloc), "hipMalloc");
}

/* Asking for the devices initialises HIP, and a program that forks later has no HIP in its child.
 */
static void devices_wait_for_a_call_that_initialises(void **state) {
    (void)state;
    (void)api.__hipRegisterFatBinary(NULL);
    finish();
    assert_non_null(reader_provenance_find(recording, "system.kernel"));
    assert_null(reader_provenance_find(recording, "device.count"));
}

static void provenance_says_what_ran(void **state) {
    (void)state;
    (void)device_memory(64);
    finish();
    const char *const keys[] = { "greta.version",  "greta.commit", "greta.dirty",
                                 "greta.compiler", "greta.flags",  "greta.build_id",
                                 "program.path",   "run.command",  "system.kernel",
                                 "device.count" };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *value = reader_provenance_find(recording, keys[i]);
        if (!value || !*value)
            fail_msg("no %s", keys[i]);
    }
    assert_non_null(strstr(reader_provenance_find(recording, "program.path"), "test_audit_record"));
    assert_string_equal(reader_provenance_find(recording, "env.GRETA_TEST_PROVENANCE"), "seen");
    assert_string_equal(reader_provenance_find(recording, "device.count"), "2");
    assert_int_equal(strlen(reader_provenance_find(recording, "greta.build_id")), 40);
}

static void a_killed_program_leaves_its_last_call_pending(void **state) {
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        audit.raw.hipDeviceSynchronize = (hipError_t(*)(void))(void (*)(void))abort;
        (void)device_memory(64);
        signal(SIGABRT, SIG_DFL);
        (void)api.hipDeviceSynchronize();
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status));
    finish();
    assert_int_equal(count(EVENT_ALLOC), 1);
    assert_true(event_is_pending(&nth(EVENT_SYNC, 0)->event));
    assert_int_equal(count(EVENT_FORK), 1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(allocations_and_frees),
        T(copies_sets_and_their_tensors),
        T(launches),
        T(launches_that_repeat_take_one_slot),
        T(order_of_streams_and_events),
        T(errors_point_at_the_call_that_failed),
        T(checked_copies_and_their_order),
        T(async_copies_and_their_waits),
        T(captures_and_graphs),
        T(host_functions_run_between_their_events),
        T(plain_calls_show_their_arguments),
        T(devices_wait_for_a_call_that_initialises),
        T(provenance_says_what_ran),
        T(a_killed_program_leaves_its_last_call_pending),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
