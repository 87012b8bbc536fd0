/* Real runs on the software device, recorded by the audit and judged: for each hypothesis a small
 * program with the bug and the same program without it, under every schedule. The verdict may not
 * depend on how the run happened to go. */
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gcore/audit.h>
#include <gcore/d2h.h>
#include <greta/soft.h>

#include "audit/attach.h"
#include "audit/audit.h"
#include "hip/hip_api.h"
#include "report/report.h"

enum { FLOATS = 4096, BYTES = FLOATS * 4 };

/* ---- the device, in a child ------------------------------------------------------------------ */

static const struct hip_api *hip;
static hipModule_t module;
static hipFunction_t fill_fn, add_fn;

/* The kernels do on purpose what sanitizers would stop. */
#define UNCHECKED                                                                                  \
    __attribute__((noinline, no_sanitize("address"), no_sanitize("undefined"),                     \
                   no_sanitize("thread")))

/* out[i] = value for i < count */
UNCHECKED static void fill_run(const struct greta_soft_work *work, void *const *args) {
    float *out = *(float **)args[0];
    uint32_t count = *(uint32_t *)args[1];
    for (uint64_t b = work->first; b < work->last; b++)
        for (uint32_t i = 0; i < count; i++)
            out[i] = *(float *)args[2];
}

/* out[i] = in[i] + 1 */
UNCHECKED static void add_run(const struct greta_soft_work *work, void *const *args) {
    float *out = *(float **)args[0];
    const float *in = *(float **)args[1];
    uint32_t count = *(uint32_t *)args[2];
    for (uint64_t b = work->first; b < work->last; b++)
        for (uint32_t i = 0; i < count; i++)
            out[i] = in[i] + 1;
}

static const struct greta_soft_param fill_params[] = { { "out", 8, GRETA_SOFT_POINTER },
                                                       { "count", 4, 0 },
                                                       { "value", 4, 0 } };
static const struct greta_soft_param add_params[] = {
    { "out", 8, GRETA_SOFT_POINTER },
    { "in", 8, GRETA_SOFT_POINTER | GRETA_SOFT_READS },
    { "count", 4, 0 },
};
static const struct greta_soft_kernel kernels[] = {
    { "fill", fill_run, fill_params, 3 },
    { "add", add_run, add_params, 3 },
};

#define OK(call)                                                                                   \
    do {                                                                                           \
        hipError_t result_ = (call);                                                               \
        if (result_ != hipSuccess) {                                                               \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,                          \
                    hip->hipGetErrorString(result_));                                              \
            stop();                                                                                \
        }                                                                                          \
    } while (0)

/* As a program that checks its calls ends: with an error, but in good order. */
static void stop(void) {
    exit(0);
}

static void open_device(void) {
    char message[512];
    int (*enter)(const struct greta_soft_kernel *);
    if (gcore_open("soft", message, sizeof message) != 0) {
        fprintf(stderr, "%s\n", message);
        _exit(9);
    }
    hip = gcore_hip(NULL);
    void *symbol = gcore_runtime_symbol("greta_soft_kernel_register");
    memcpy(&enter, &symbol, sizeof enter);
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        enter(&kernels[i]);
    OK(hip->hipModuleLoadData(&module, "GRETASFT"));
    OK(hip->hipModuleGetFunction(&fill_fn, module, "fill"));
    OK(hip->hipModuleGetFunction(&add_fn, module, "add"));
}

static void fill(float *out, uint32_t count, hipStream_t s) {
    float value = 1;
    void *args[] = { &out, &count, &value };
    (void)hip->hipModuleLaunchKernel(fill_fn, 1, 1, 1, 64, 1, 1, 0, s, args, NULL);
}

static void add(float *out, const float *in, uint32_t count, hipStream_t s) {
    void *args[] = { &out, &in, &count };
    (void)hip->hipModuleLaunchKernel(add_fn, 1, 1, 1, 64, 1, 1, 0, s, args, NULL);
}

static float *device(size_t bytes) {
    void *p = NULL;
    OK(hip->hipMalloc(&p, bytes));
    return p;
}

static float *pinned(size_t bytes) {
    void *p = NULL;
    OK(hip->hipHostMalloc(&p, bytes, 0));
    memset(p, 1, bytes);
    return p;
}

static hipStream_t stream(void) {
    hipStream_t s;
    OK(hip->hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
    return s;
}

static float host[2 * FLOATS];

/* ---- programs: bug says whether it has it ---------------------------------------------------- */

static void size_of_a_copy(bool bug) {
    float *d = device(BYTES);
    OK(hip->hipMemcpy(d, host, BYTES, hipMemcpyHostToDevice));
    OK(hip->hipMemcpy(host, d, bug ? BYTES + 4 : BYTES, hipMemcpyDeviceToHost));
    OK(hip->hipFree(d));
}

static void size_of_a_kernel(bool bug) {
    float *d = device(BYTES);
    OK(gcore_name_range(d, BYTES, "hidden") == GCORE_D2H_OK ? hipSuccess : hipErrorUnknown);
    fill(d, bug ? FLOATS + 1 : FLOATS, NULL);
    OK(hip->hipMemcpy(host, d, BYTES, hipMemcpyDeviceToHost));
    OK(hip->hipFree(d));
}

/* The launch is followed by others and by a safe copy that reports. */
static void upstream_of_a_safe_copy(bool bug) {
    float *d = device(BYTES), *e = device(BYTES);
    hipStream_t s = stream();
    gcore_name_range(e, BYTES, "logits");
    fill(d, bug ? 2 * FLOATS : FLOATS, s);
    fill(e, FLOATS, s);
    fill(e, FLOATS, s);
    struct gcore_d2h_meta meta = { .tensor = "logits", .step = 4, .layer = -1, .size = BYTES };
    if (gcore_d2h_copy(host, e, &meta, s, NULL) != GCORE_D2H_OK)
        stop();
    OK(hip->hipFree(d));
    OK(hip->hipFree(e));
    OK(hip->hipStreamDestroy(s));
}

static void offset_of_a_copy(bool bug) {
    float *d = device(BYTES);
    OK(hip->hipMemcpy(d, host, BYTES, hipMemcpyHostToDevice));
    OK(hip->hipMemcpy(host, d + (bug ? FLOATS + 16 : 16), 64, hipMemcpyDeviceToHost));
    OK(hip->hipFree(d));
}

static void offset_of_a_kernel(bool bug) {
    float *d = device(BYTES);
    fill(bug ? d - 2048 : d, 16, NULL);
    OK(hip->hipDeviceSynchronize());
    OK(hip->hipFree(d));
}

static void null_in_a_kernel(bool bug) {
    float *d = device(BYTES);
    fill(bug ? NULL : d, 16, NULL);
    OK(hip->hipDeviceSynchronize());
    OK(hip->hipFree(d));
}

static void freed_memory_in_a_copy(bool bug) {
    float *d = device(BYTES);
    OK(hip->hipMemcpy(d, host, BYTES, hipMemcpyHostToDevice));
    if (bug)
        OK(hip->hipFree(d));
    OK(hip->hipMemcpy(host, d, BYTES, hipMemcpyDeviceToHost));
    if (!bug)
        OK(hip->hipFree(d));
}

static void freed_memory_in_a_kernel(bool bug) {
    float *d = device(BYTES);
    if (bug)
        OK(hip->hipFree(d));
    fill(d, FLOATS, NULL);
    OK(hip->hipDeviceSynchronize());
    if (!bug)
        OK(hip->hipFree(d));
}

static void freed_in_another_stream(bool bug) {
    void *d = NULL;
    hipStream_t a = stream(), b = stream();
    OK(hip->hipMallocAsync(&d, BYTES, a));
    OK(hip->hipStreamSynchronize(a));
    fill(d, FLOATS, b);
    if (!bug)
        OK(hip->hipStreamSynchronize(b));
    OK(hip->hipFreeAsync(d, a));
    OK(hip->hipStreamSynchronize(b));
    OK(hip->hipStreamSynchronize(a));
    OK(hip->hipStreamDestroy(a));
    OK(hip->hipStreamDestroy(b));
}

static void freed_twice(bool bug) {
    float *d = device(BYTES);
    OK(hip->hipFree(d));
    if (bug)
        OK(hip->hipFree(d));
}

static void kernel_and_copy_unsynced(bool bug) {
    float *d = device(BYTES), *h = pinned(BYTES);
    hipStream_t a = stream(), b = stream();
    fill(d, FLOATS, a);
    if (!bug)
        OK(hip->hipStreamSynchronize(a));
    OK(hip->hipMemcpyAsync(h, d, BYTES, hipMemcpyDeviceToHost, b));
    OK(hip->hipDeviceSynchronize());
    OK(hip->hipFree(d));
    OK(hip->hipHostFree(h));
    OK(hip->hipStreamDestroy(a));
    OK(hip->hipStreamDestroy(b));
}

static void two_kernels_unsynced(bool bug) {
    float *d = device(BYTES), *e = device(BYTES);
    hipStream_t a = stream(), b = stream();
    hipEvent_t ev;
    OK(hip->hipEventCreateWithFlags(&ev, hipEventDisableTiming));
    fill(d, FLOATS, a);
    OK(hip->hipEventRecord(ev, a));
    if (!bug)
        OK(hip->hipStreamWaitEvent(b, ev, 0));
    add(e, d, FLOATS, b);
    OK(hip->hipDeviceSynchronize());
    OK(hip->hipMemcpy(host, e, BYTES, hipMemcpyDeviceToHost));
    OK(hip->hipEventDestroy(ev));
    OK(hip->hipFree(d));
    OK(hip->hipFree(e));
    OK(hip->hipStreamDestroy(a));
    OK(hip->hipStreamDestroy(b));
}

static void copies_overlap(bool bug) {
    float *d = device(BYTES), *h = pinned(2 * BYTES);
    hipStream_t a = stream(), b = stream();
    OK(hip->hipMemcpyAsync(d, h, BYTES, hipMemcpyHostToDevice, a));
    if (!bug)
        OK(hip->hipStreamSynchronize(a));
    OK(hip->hipMemcpyAsync(d + FLOATS / 2, h + FLOATS, BYTES / 2, hipMemcpyHostToDevice, b));
    OK(hip->hipDeviceSynchronize());
    OK(hip->hipFree(d));
    OK(hip->hipHostFree(h));
    OK(hip->hipStreamDestroy(a));
    OK(hip->hipStreamDestroy(b));
}

static void staging_buffer_reused(bool bug) {
    float *d = device(BYTES), *e = device(BYTES), *h = pinned(BYTES);
    hipStream_t a = stream(), b = stream();
    OK(hip->hipMemset(e, 0, BYTES));
    OK(hip->hipDeviceSynchronize());
    OK(hip->hipMemcpyAsync(d, h, BYTES, hipMemcpyHostToDevice, a));
    if (!bug)
        OK(hip->hipStreamSynchronize(a));
    OK(hip->hipMemcpyAsync(h, e, BYTES, hipMemcpyDeviceToHost, b));
    OK(hip->hipDeviceSynchronize());
    OK(hip->hipFree(d));
    OK(hip->hipFree(e));
    OK(hip->hipHostFree(h));
    OK(hip->hipStreamDestroy(a));
    OK(hip->hipStreamDestroy(b));
}

static void wrong_direction(bool bug) {
    float *d = device(BYTES), *e = device(BYTES);
    OK(hip->hipMemset(d, 0, BYTES));
    OK(hip->hipMemcpy(e, d, BYTES, bug ? hipMemcpyHostToDevice : hipMemcpyDeviceToDevice));
    OK(hip->hipDeviceSynchronize());
    OK(hip->hipFree(d));
    OK(hip->hipFree(e));
}

static void unwritten_memory(bool bug) {
    float *d = device(BYTES);
    if (!bug)
        OK(hip->hipMemset(d, 0, BYTES));
    OK(hip->hipMemcpy(host, d, BYTES, hipMemcpyDeviceToHost));
    OK(hip->hipFree(d));
}

static void leaked_memory(bool bug) {
    for (int i = 0; i < 3; i++) {
        float *d = device(BYTES);
        OK(hip->hipMemset(d, 0, BYTES));
        if (!bug)
            OK(hip->hipFree(d));
    }
}

static void unchecked_allocation(bool bug) {
    void *d = NULL;
    hipError_t r = hip->hipMalloc(&d, (size_t)1 << 50);
    if (!bug && r != hipSuccess) {
        fprintf(stderr, "no memory: %s; less will do\n", hip->hipGetErrorString(r));
        d = device(BYTES);
    }
    r = hip->hipMemset(d, 0, BYTES);
    if (r != hipSuccess)
        stop();
    OK(hip->hipFree(d));
}

static void graph_with_branches(bool bug) {
    float *d = device(BYTES);
    hipStream_t a = stream(), b = stream();
    hipEvent_t fork_ev, join_ev;
    hipGraph_t graph;
    hipGraphExec_t exec;
    OK(hip->hipEventCreateWithFlags(&fork_ev, hipEventDisableTiming));
    OK(hip->hipEventCreateWithFlags(&join_ev, hipEventDisableTiming));
    OK(hip->hipStreamBeginCapture(a, hipStreamCaptureModeGlobal));
    OK(hip->hipMemsetAsync(d, 0, BYTES, a));
    OK(hip->hipEventRecord(fork_ev, a));
    OK(hip->hipStreamWaitEvent(b, fork_ev, 0));
    OK(hip->hipMemsetAsync(d, 1, BYTES / 2, a));
    OK(hip->hipMemsetAsync(bug ? d : d + FLOATS / 2, 2, BYTES / 2, b));
    OK(hip->hipEventRecord(join_ev, b));
    OK(hip->hipStreamWaitEvent(a, join_ev, 0));
    OK(hip->hipStreamEndCapture(a, &graph));
    OK(hip->hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    OK(hip->hipGraphLaunch(exec, a));
    OK(hip->hipGraphLaunch(exec, a));
    OK(hip->hipMemcpyAsync(host, d, BYTES, hipMemcpyDeviceToHost, a));
    OK(hip->hipStreamSynchronize(a));
    OK(hip->hipGraphExecDestroy(exec));
    OK(hip->hipGraphDestroy(graph));
    OK(hip->hipEventDestroy(fork_ev));
    OK(hip->hipEventDestroy(join_ev));
    OK(hip->hipFree(d));
    OK(hip->hipStreamDestroy(a));
    OK(hip->hipStreamDestroy(b));
}

/* Streams that divide a buffer among themselves, by offset into it. */
static void divided_buffer(bool bug) {
    enum { PARTS = 4, PART = FLOATS / PARTS };
    float *d = device(BYTES), *h = pinned(BYTES);
    hipStream_t s[PARTS];
    for (int i = 0; i < PARTS; i++)
        s[i] = stream();
    for (int i = 0; i < PARTS; i++) {
        OK(hip->hipMemcpyAsync(d + i * PART, h + i * PART, PART * 4, hipMemcpyHostToDevice, s[i]));
        fill(d + i * PART, PART, s[i]);
        hipStream_t out = bug ? s[(i + 1) % PARTS] : s[i];
        OK(hip->hipMemcpyAsync(h + i * PART, d + i * PART, PART * 4, hipMemcpyDeviceToHost, out));
    }
    OK(hip->hipDeviceSynchronize());
    for (int i = 0; i < PARTS; i++)
        OK(hip->hipStreamDestroy(s[i]));
    OK(hip->hipFree(d));
    OK(hip->hipHostFree(h));
}

/* ---- what is expected ------------------------------------------------------------------------ */

static const struct program {
    const char *name;
    void (*run)(bool bug);
    enum verdict_hypothesis_id hypothesis;
    enum verdict_overall overall;
    const char *culprit;   /* API or kernel */
    const char *messenger; /* NULL: none */
    const char *tensor;    /* of the culprit or the messenger; NULL: any */
} programs[] = {
#define P(f) #f, f
    { P(size_of_a_copy), HYPOTHESIS_SIZE_MISMATCH, VERDICT_ROOT_CAUSE, "hipMemcpy", "hipMemcpy",
      NULL },
    { P(size_of_a_kernel), HYPOTHESIS_SIZE_MISMATCH, VERDICT_ROOT_CAUSE, "fill", "hipMemcpy",
      "hidden" },
    { P(upstream_of_a_safe_copy), HYPOTHESIS_UPSTREAM_KERNEL_FAULT, VERDICT_ROOT_CAUSE, "fill",
      "hipMemcpyAsync", "logits" },
    { P(offset_of_a_copy), HYPOTHESIS_BAD_OFFSET, VERDICT_ROOT_CAUSE, "hipMemcpy", "hipMemcpy",
      NULL },
    { P(offset_of_a_kernel), HYPOTHESIS_BAD_OFFSET, VERDICT_ROOT_CAUSE, "fill",
      "hipDeviceSynchronize", NULL },
    { P(null_in_a_kernel), HYPOTHESIS_INVALID_POINTER, VERDICT_ROOT_CAUSE, "fill",
      "hipDeviceSynchronize", NULL },
    { P(freed_memory_in_a_copy), HYPOTHESIS_USE_AFTER_FREE, VERDICT_ROOT_CAUSE, "hipMemcpy",
      "hipMemcpy", NULL },
    { P(freed_memory_in_a_kernel), HYPOTHESIS_USE_AFTER_FREE, VERDICT_ROOT_CAUSE, "fill",
      "hipDeviceSynchronize", NULL },
    { P(freed_in_another_stream), HYPOTHESIS_USE_AFTER_FREE, VERDICT_FINDINGS, "hipFreeAsync", NULL,
      NULL },
    { P(freed_twice), HYPOTHESIS_DOUBLE_FREE, VERDICT_ROOT_CAUSE, "hipFree", "hipFree", NULL },
    { P(kernel_and_copy_unsynced), HYPOTHESIS_STREAM_UNSYNCED, VERDICT_FINDINGS, "hipMemcpyAsync",
      NULL, NULL },
    { P(two_kernels_unsynced), HYPOTHESIS_STREAM_UNSYNCED, VERDICT_FINDINGS, "add", NULL, NULL },
    { P(copies_overlap), HYPOTHESIS_OVERLAPPING_COPIES, VERDICT_FINDINGS, "hipMemcpyAsync", NULL,
      NULL },
    { P(staging_buffer_reused), HYPOTHESIS_STAGING_REUSE, VERDICT_FINDINGS, "hipMemcpyAsync", NULL,
      NULL },
    { P(wrong_direction), HYPOTHESIS_KIND_MISMATCH, VERDICT_FINDINGS, "hipMemcpy", NULL, NULL },
    { P(unwritten_memory), HYPOTHESIS_UNINITIALISED_READ, VERDICT_FINDINGS, "hipMemcpy", NULL,
      NULL },
    { P(leaked_memory), HYPOTHESIS_LEAK, VERDICT_FINDINGS, "hipMalloc", NULL, NULL },
    { P(unchecked_allocation), HYPOTHESIS_UNCHECKED_ERROR, VERDICT_ROOT_CAUSE, "hipMalloc",
      "hipMemset", NULL },
    { P(graph_with_branches), HYPOTHESIS_STREAM_UNSYNCED, VERDICT_FINDINGS, "hipMemsetAsync", NULL,
      NULL },
    { P(divided_buffer), HYPOTHESIS_STREAM_UNSYNCED, VERDICT_FINDINGS, "hipMemcpyAsync", NULL,
      NULL },
};

static const char *const schedules[] = {
    "fast", "eager", "lazy", "random:1", "random:2", "random:3"
};

static char path[] = "/tmp/greta-verdict-XXXXXX";

/* Runs a program in a child; its recording is at path. */
static void record(const struct program *p, bool bug, const char *schedule) {
    fflush(NULL); /* the child ends by exit() */
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (!getenv("VERDICT_TEST_LOUD") && !freopen("/dev/null", "w", stderr))
            _exit(8);
        unlink(path);
        setenv("GCORE_RECORD", path, 1);
        setenv("GRETA_SOFT_SCHEDULE", schedule, 1);
        open_device();
        p->run(bug);
        (void)hip->hipModuleUnload(module); /* it may be the device that failed */
        exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        fail_msg("%s (bug %d, %s): the program ended with status %d", p->name, bug, schedule,
                 status);
}

static verdict *judge(void) {
    struct err e = { 0 };
    reader *r = NULL;
    verdict *v = NULL;
    if (reader_open(&r, path, &e) != RC_OK || verdict_open(&v, r, NULL, &e) != RC_OK)
        fail_msg("%s", e.msg);
    reader_close(&r);
    return v;
}

static bool is_named(const struct verdict_actor *a, const char *name) {
    return a && (!strcmp(a->api, name) || (a->kernel && !strcmp(a->kernel, name)));
}

static bool has_tensor(const struct verdict_actor *a, const char *tensor) {
    return a && a->tensor && !strcmp(a->tensor, tensor);
}

static void check_bug(const struct program *p, const char *schedule) {
    record(p, true, schedule);
    verdict *v = judge();
    const char *wrong = NULL;
    if (v->hypothesis[p->hypothesis].status != VERDICT_STATUS_CONFIRMED)
        wrong = "the hypothesis is not confirmed";
    else if (v->overall != p->overall && !(p->run == freed_in_another_stream && v->root))
        wrong = "another verdict"; /* there the device may get as far as a fault */
    else if (!is_named(v->culprit, p->culprit) &&
             !(v->root && is_named(v->findings[0].other, p->culprit)))
        wrong = "another culprit";
    else if (p->messenger && !is_named(v->messenger, p->messenger))
        wrong = "another messenger";
    else if (!p->messenger && v->messenger && v->overall == VERDICT_FINDINGS)
        wrong = "a messenger";
    else if (p->tensor && !has_tensor(v->culprit, p->tensor) &&
             !has_tensor(v->messenger, p->tensor))
        wrong = "another tensor";
    if (wrong)
        fail_msg("%s under %s: %s: %s", p->name, schedule, wrong, v->answer);
    verdict_close(&v);
}

static void check_fixed(const struct program *p, const char *schedule) {
    record(p, false, schedule);
    verdict *v = judge();
    /* What the host's own code does to memory of unfinished copies is not watched here. */
    bool unwatched = v->overall == VERDICT_INCONCLUSIVE && strstr(v->answer, "--watch-host");
    if ((v->overall != VERDICT_CLEAN && !unwatched) || v->finding_count)
        fail_msg("%s without its bug under %s: %s", p->name, schedule, v->answer);
    if (v->hypothesis[p->hypothesis].status == VERDICT_STATUS_CONFIRMED)
        fail_msg("%s without its bug: confirmed", p->name);
    verdict_close(&v);
}

/* "fast", the first one, may run both sides of a race at the same time, which ThreadSanitizer finds
 * in the device's threads and stops. */
#if defined(__SANITIZE_THREAD__)
enum { FIRST_SCHEDULE = 1 };
#else
enum { FIRST_SCHEDULE = 0 };
#endif

static void bugs_are_named_under_every_schedule(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        for (size_t k = FIRST_SCHEDULE; k < sizeof schedules / sizeof *schedules; k++)
            check_bug(&programs[i], schedules[k]);
}

static void programs_without_bugs_are_clean(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        for (size_t k = 0; k < sizeof schedules / sizeof *schedules; k++)
            check_fixed(&programs[i], schedules[k]);
}

static int setup(void **state) {
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state) {
    (void)state;
    return unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bugs_are_named_under_every_schedule),
        cmocka_unit_test(programs_without_bugs_are_clean),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
