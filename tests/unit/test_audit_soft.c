/* The audit over the software device: checked copies see what kernels produced under every
 * schedule, faults are told and recorded, logs of many threads are whole. */
#include "unit/test.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gcore/audit.h>
#include <gcore/d2h.h>

#include "audit/attach.h"
#include "audit/audit.h"
#include "record/reader.h"
#include "support/soft_fixture.h"

/* In the child: puts the audit in front of the fixture's table, so that everything is seen. */
static void attach(struct audit_config config) {
    static struct hip_api decorated;
    struct err e = { 0 };
    int version = 0;
    OK(hip->hipRuntimeGetVersion(&version));
    struct audit_options options = { .config = &config,
                                     .library = soft_library,
                                     .hip_major = version / 10000000 };
    decorated = *hip;
    if (audit_attach(&decorated, &options, &e) != RC_OK)
        soft_fail(__FILE__, __LINE__, "%s", e.msg);
    hip = &decorated;
}

static struct gcore_d2h_meta meta(size_t size) {
    return (struct gcore_d2h_meta){ .tensor = "t", .step = 1, .layer = 2, .size = size };
}

#define SAFE(call)                                                                                 \
    do {                                                                                           \
        struct gcore_d2h_result result;                                                            \
        if ((call) != GCORE_D2H_OK)                                                                \
            soft_fail(__FILE__, __LINE__, "%s: %s", #call, result.message);                        \
    } while (0)

/* ---- order ----------------------------------------------------------------------------------- */

/* A kernel on one stream produces, a copy on another (or the default) stream reads. */
static bool produced(hipStream_t producer, hipStream_t reader) {
    int *device = soft_device_ints(1), value = 0;
    struct gcore_d2h_meta m = meta(sizeof value);
    soft_store(producer, device, 42, 200);
    SAFE(gcore_d2h_copy(&value, device, &m, reader, &result));
    return value == 42;
}

static bool copy_behind_a_free_stream(void) {
    attach((struct audit_config){ 0 });
    return produced(soft_free_stream(), NULL);
}
static bool copy_on_a_free_stream(void) {
    attach((struct audit_config){ 0 });
    return produced(NULL, soft_free_stream());
}
static bool copy_between_blocking_streams(void) {
    attach((struct audit_config){ 0 });
    return produced(soft_blocking_stream(), soft_blocking_stream());
}
static bool copy_between_free_streams(void) {
    attach((struct audit_config){ 0 });
    return produced(soft_free_stream(), soft_free_stream());
}
static bool copy_behind_the_threads_own_stream(void) {
    attach((struct audit_config){ 0 });
    return produced(hipStreamPerThread, soft_free_stream());
}
static bool copy_behind_a_destroyed_stream(void) {
    attach((struct audit_config){ 0 });
    int *device = soft_device_ints(1), value = 0;
    struct gcore_d2h_meta m = meta(sizeof value);
    hipStream_t s = soft_free_stream();
    soft_store(s, device, 42, 200);
    OK(hip->hipStreamDestroy(s));
    SAFE(gcore_d2h_copy(&value, device, &m, NULL, &result));
    return value == 42;
}

static void *store_on_own_stream(void *device) {
    soft_store(hipStreamPerThread, device, 42, 200);
    return NULL;
}
static bool copy_behind_another_threads_own_stream(void) {
    attach((struct audit_config){ 0 });
    int *device = soft_device_ints(1), value = 0;
    struct gcore_d2h_meta m = meta(sizeof value);
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, store_on_own_stream, device) == 0);
    pthread_join(thread, NULL);
    SAFE(gcore_d2h_copy(&value, device, &m, soft_free_stream(), &result));
    return value == 42;
}

/* The same without the wrapper: what the seeds' engine did. */
static bool unchecked_copy_between_free_streams(void) {
    attach((struct audit_config){ 0 });
    int *device = soft_device_ints(1), *value = soft_pinned_ints(1);
    hipStream_t producer = soft_free_stream(), reader = soft_free_stream();
    soft_store(producer, device, 42, 200);
    OK(hip->hipMemcpyAsync(value, device, sizeof *value, hipMemcpyDeviceToHost, reader));
    OK(hip->hipStreamSynchronize(reader));
    return *value == 42;
}

static bool asynchronous_copy_is_complete_after_its_wait(void) {
    attach((struct audit_config){ 0 });
    int *device = soft_device_ints(1), *value = soft_pinned_ints(1);
    struct gcore_d2h_meta m = meta(sizeof *value);
    struct gcore_d2h_op op;
    hipStream_t producer = soft_free_stream(), reader = soft_free_stream();
    soft_store(producer, device, 42, 200);
    SAFE(gcore_d2h_copy_async(value, device, &m, reader, &op, &result));
    soft_store(reader, device, 7, 0); /* later work is not waited for, and does not disturb */
    SAFE(gcore_d2h_wait(&op, &result));
    return *value == 42;
}

static bool unwaited_asynchronous_copy(void) {
    attach((struct audit_config){ 0 });
    int *device = soft_device_ints(1), *value = soft_pinned_ints(1);
    struct gcore_d2h_meta m = meta(sizeof *value);
    struct gcore_d2h_op op;
    soft_store(NULL, device, 42, 200);
    SAFE(gcore_d2h_copy_async(value, device, &m, NULL, &op, &result));
    int early = soft_racy_load(value);
    SAFE(gcore_d2h_wait(&op, &result));
    return early == 42;
}

static bool written_data_is_there_for_every_stream(void) {
    attach((struct audit_config){ 0 });
    int *device = soft_device_ints(2), value = 42, out[2] = { 0 };
    struct gcore_d2h_meta m = meta(sizeof value);
    SAFE(gcore_h2d_copy(device, &value, &m, soft_free_stream(), &result));
    soft_move(soft_free_stream(), device + 1, device, 0); /* nothing orders it after the copy */
    m.size = 2 * sizeof(int);
    SAFE(gcore_d2h_copy(out, device, &m, NULL, &result));
    return out[0] == 42 && out[1] == 42;
}

static bool device_copies_are_there_for_every_stream(void) {
    attach((struct audit_config){ 0 });
    int *from = soft_device_ints(1), *to = soft_device_ints(2), out[2] = { 0 };
    struct gcore_d2h_meta m = meta(sizeof(int));
    soft_store(soft_free_stream(), from, 42, 200);
    SAFE(gcore_d2d_copy(to, from, &m, NULL, &result));
    soft_move(soft_free_stream(), to + 1, to, 0);
    m.size = 2 * sizeof(int);
    SAFE(gcore_d2h_copy(out, to, &m, soft_blocking_stream(), &result));
    return out[0] == 42 && out[1] == 42;
}

static bool a_batch_sees_the_work_of_all_streams(void) {
    attach((struct audit_config){ 0 });
    int *device = soft_device_ints(3), out[3] = { 0 };
    struct gcore_d2h_item items[3];
    for (int i = 0; i < 3; i++) {
        soft_store(soft_free_stream(), device + i, i + 1, 100);
        items[i] = (struct gcore_d2h_item){
            .to = &out[i],
            .from = device,
            .kind = hipMemcpyDeviceToHost,
            .meta = { .tensor = "qkv", .offset = sizeof(int) * (size_t)i, .size = sizeof(int) }
        };
    }
    MUST(gcore_d2h_batch(items, 3, soft_free_stream(), NULL) == GCORE_D2H_OK);
    return out[0] == 1 && out[1] == 2 && out[2] == 3;
}

static bool a_graphs_work_is_waited_for(void) {
    attach((struct audit_config){ 0 });
    int *device = soft_device_ints(1), value = 0;
    struct gcore_d2h_meta m = meta(sizeof value);
    hipStream_t s = soft_free_stream();
    hipGraph_t graph;
    hipGraphExec_t exec;
    OK(hip->hipStreamBeginCapture(s, hipStreamCaptureModeGlobal));
    soft_store(s, device, 42, 200);
    OK(hip->hipStreamEndCapture(s, &graph));
    OK(hip->hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    SAFE(gcore_d2h_copy(&value, device, &m, NULL, &result));
    MUST(value == 0);
    OK(hip->hipGraphLaunch(exec, s));
    SAFE(gcore_d2h_copy(&value, device, &m, NULL, &result));
    return value == 42;
}

/* A program that calls the runtime directly is seen in part only. */
static bool a_copy_beside_direct_calls_waits_for_the_device(void) {
    const struct hip_api *direct = hip;
    static struct hip_api decorated;
    static const struct audit_config config;
    struct audit_options options = { .config = &config, .library = soft_library, .partial = true };
    decorated = *hip;
    MUST(audit_attach(&decorated, &options, NULL) == RC_OK);
    int *device = soft_device_ints(1), value = 0;
    struct gcore_d2h_meta m = meta(sizeof value);
    MUST(hip == direct);
    soft_store(soft_free_stream(), device, 42, 200);
    SAFE(gcore_d2h_copy(&value, device, &m, NULL, &result));
    m.size = 8;
    MUST(gcore_d2h_copy(&value, device, &m, NULL, NULL) == GCORE_D2H_OUT_OF_ALLOCATION);
    OK(hip->hipFree(device));
    m.size = 4;
    MUST(gcore_d2h_copy(&value, device, &m, NULL, NULL) == GCORE_D2H_FREED);
    return value == 42;
}

#define RIGHT(program)                                                                             \
    static void right_##program(void **state) {                                                    \
        (void)state;                                                                               \
        soft_right(program);                                                                       \
    }
#define WRONG(program)                                                                             \
    static void wrong_##program(void **state) {                                                    \
        (void)state;                                                                               \
        soft_wrong(program);                                                                       \
    }
RIGHT(copy_behind_a_free_stream)
RIGHT(copy_on_a_free_stream)
RIGHT(copy_between_blocking_streams)
RIGHT(copy_between_free_streams)
RIGHT(copy_behind_the_threads_own_stream)
RIGHT(copy_behind_a_destroyed_stream)
RIGHT(copy_behind_another_threads_own_stream)
WRONG(unchecked_copy_between_free_streams)
RIGHT(asynchronous_copy_is_complete_after_its_wait)
WRONG(unwaited_asynchronous_copy)
RIGHT(written_data_is_there_for_every_stream)
RIGHT(device_copies_are_there_for_every_stream)
RIGHT(a_batch_sees_the_work_of_all_streams)
RIGHT(a_graphs_work_is_waited_for)
RIGHT(a_copy_beside_direct_calls_waits_for_the_device)

/* ---- refusals on real memory ----------------------------------------------------------------- */

static bool refusals_leave_the_device_usable(void) {
    attach((struct audit_config){ .d2h_log = "/dev/null" });
    int *device = soft_device_ints(16), *pinned = soft_pinned_ints(4), plain[16] = { 0 };
    struct gcore_d2h_meta m = meta(65);
    MUST(gcore_d2h_copy(plain, device, &m, NULL, NULL) == GCORE_D2H_OUT_OF_ALLOCATION);
    m.size = 17;
    MUST(gcore_d2h_copy(pinned, device, &m, NULL, NULL) == GCORE_D2H_HOST_TOO_SMALL);
    m.size = 16;
    MUST(gcore_d2h_copy(plain, plain, &m, NULL, NULL) == GCORE_D2H_UNKNOWN_POINTER);
    MUST(gcore_d2h_copy(plain, pinned, &m, NULL, NULL) == GCORE_D2H_WRONG_SIDE);
    MUST(gcore_d2h_copy(device, plain, &m, NULL, NULL) == GCORE_D2H_KIND_MISMATCH);
    int *gone = soft_device_ints(4);
    OK(hip->hipFree(gone));
    MUST(gcore_d2h_copy(plain, gone, &m, NULL, NULL) == GCORE_D2H_FREED);
    int *host_gone = soft_pinned_ints(4);
    OK(hip->hipHostFree(host_gone));
    MUST(gcore_d2h_copy(host_gone, device, &m, NULL, NULL) == GCORE_D2H_FREED);
    int *managed = soft_managed_ints(4);
    SAFE(gcore_d2h_copy(plain, managed, &m, NULL, &result));
    SAFE(gcore_d2h_copy(pinned, device, &m, NULL, &result));
    OK(hip->hipGetLastError()); /* nothing of all that is left behind for the program */
    OK(hip->hipDeviceSynchronize());
    return true;
}

static bool memory_from_before_the_audit_is_found(void) {
    int *device = soft_device_ints(4), *pinned = soft_pinned_ints(4),
        *managed = soft_managed_ints(4), plain[8];
    attach((struct audit_config){ .d2h_log = "/dev/null" });
    struct gcore_d2h_meta m = meta(16);
    SAFE(gcore_d2h_copy(plain, device + 0, &m, NULL, &result));
    SAFE(gcore_d2h_copy(pinned, device, &m, NULL, &result));
    SAFE(gcore_d2h_copy(managed, device, &m, NULL, &result));
    SAFE(gcore_d2h_copy(plain, managed, &m, NULL, &result));
    MUST(gcore_d2h_copy(plain, pinned, &m, NULL, NULL) == GCORE_D2H_WRONG_SIDE);
    m.size = 17;
    MUST(gcore_d2h_copy(plain, device, &m, NULL, NULL) == GCORE_D2H_OUT_OF_ALLOCATION);
    MUST(gcore_d2h_copy(pinned, soft_device_ints(8), &m, NULL, NULL) == GCORE_D2H_HOST_TOO_SMALL);
    return true;
}

static bool the_other_devices_memory_is_refused(void) {
    attach((struct audit_config){ .d2h_log = "/dev/null" });
    int plain[4];
    OK(hip->hipSetDevice(1));
    int *device = soft_device_ints(4);
    OK(hip->hipSetDevice(0));
    struct gcore_d2h_meta m = meta(16);
    MUST(gcore_d2h_copy(plain, device, &m, NULL, NULL) == GCORE_D2H_WRONG_DEVICE);
    OK(hip->hipSetDevice(1));
    SAFE(gcore_d2h_copy(plain, device, &m, NULL, &result));
    return true;
}

static void wrong_copies_are_refused(void **state) {
    (void)state;
    soft_expect(refusals_leave_the_device_usable, NULL);
    soft_expect(refusals_leave_the_device_usable, "GRETA_SOFT_SCHEDULE=lazy");
    soft_expect(memory_from_before_the_audit_is_found, NULL);
    soft_expect(the_other_devices_memory_is_refused, "GRETA_SOFT_DEVICES=2");
}

/* ---- faults ---------------------------------------------------------------------------------- */

static char record_path_of_test[64];

static bool faulty_program(void) {
    attach((struct audit_config){ .d2h_log = "/dev/null",
                                  .record = { .path = record_path_of_test, .events = 65536 } });
    int *device = soft_device_ints(1024), value;
    struct gcore_d2h_meta m = meta(sizeof value);
    struct gcore_d2h_result r;
    OK(soft_touch_call(NULL, device, 4096, true)); /* accepted */
    MUST(gcore_d2h_copy(&value, device, &m, NULL, &r) == GCORE_D2H_DEVICE_ERROR);
    MUST(r.hip_error == hipErrorIllegalAddress);
    MUST(gcore_d2h_copy(&value, device, &m, NULL, &r) == GCORE_D2H_DEVICE_ERROR);
    FAILS(hipErrorIllegalAddress, hip->hipDeviceSynchronize());
    OK(hip->hipDeviceReset());
    MUST(gcore_d2h_copy(&value, device, &m, NULL, &r) == GCORE_D2H_FREED);
    MUST(strstr(r.message, "hipDeviceReset") != NULL);
    device = soft_device_ints(1024);
    SAFE(gcore_d2h_copy(&value, device, &m, NULL, &result));
    audit_detach();
    return true;
}

static void a_fault_is_reported_by_the_copy_and_recorded_with_its_cause(void **state) {
    (void)state;
    strcpy(record_path_of_test, "/tmp/greta-test-XXXXXX");
    close(mkstemp(record_path_of_test));
    soft_expect(faulty_program, NULL);
    soft_expect(faulty_program, "GRETA_SOFT_SCHEDULE=lazy");
    reader *r = NULL;
    assert_int_equal(reader_open(&r, record_path_of_test, NULL), RC_OK);
    struct reader_cursor at = reader_events(r, 0, UINT64_MAX);
    struct reader_event e;
    uint64_t launch = UINT64_MAX, alloc = UINT64_MAX, faults = 0;
    while (reader_next(&at, &e)) {
        if (e.event.kind == EVENT_LAUNCH)
            launch = e.seq;
        if (e.event.kind == EVENT_ALLOC && e.event.len == 4096 && alloc == UINT64_MAX)
            alloc = e.seq;
        if (e.event.kind != EVENT_FAULT)
            continue;
        struct event_fault f = event_fault_of(reader_extra(&e, EXTRA_FAULT));
        assert_int_equal(e.event.src, launch);
        assert_int_equal(event_detail(&e.event), DETAIL_ACCESS_WRITE);
        assert_int_equal(f.alloc_bytes, 4096);
        assert_int_equal(e.event.dst, f.alloc_base + 4096);
        assert_int_equal(f.alloc_seq, alloc);
        faults++;
    }
    assert_int_equal(faults, 1);
    reader_close(&r);
    unlink(record_path_of_test);
    char old[80];
    snprintf(old, sizeof old, "%s.old", record_path_of_test);
    unlink(old);
}

/* ---- gcore_open ------------------------------------------------------------------------------ */

static bool open_and_close(void) {
    char message[512];
    MUST(strcmp(gcore_device_kind(), "none") == 0);
    MUST(gcore_open("nonsense", message, sizeof message) == -1);
    MUST(strstr(message, "nonsense") != NULL);
    struct gcore_d2h_meta m = meta(4);
    struct gcore_d2h_result r;
    MUST(gcore_d2h_copy(message, message, &m, NULL, &r) == GCORE_D2H_NO_RUNTIME);
    MUST(strstr(r.message, "nonsense") != NULL); /* the failure is remembered, with its reason */
    MUST(gcore_name_range(message, 1, "n") == GCORE_D2H_NO_RUNTIME);
    gcore_close();
    MUST(gcore_open("soft", message, sizeof message) == 0);
    MUST(gcore_open("soft", message, sizeof message) == 0);
    MUST(strcmp(gcore_device_kind(), "soft") == 0);
    MUST(gcore_runtime_symbol("greta_soft_version") != NULL);
    MUST(gcore_runtime_symbol("no_such_symbol") == NULL);
    MUST(gcore_hip_function("no_such_function") == NULL);
    hipError_t (*allocate)(void **, size_t) =
        (hipError_t(*)(void **, size_t))gcore_hip_function("hipMalloc");
    void *p = NULL;
    OK(allocate(&p, 64));
    struct gcore_counts counts;
    gcore_count(&counts);
    MUST(counts.allocations_live == 1 && counts.bytes_live == 64);
    gcore_close();
    gcore_close();
    gcore_count(&counts);
    MUST(counts.allocations_live == 0);
    return true;
}

static void opening_failing_and_closing(void **state) {
    (void)state;
    soft_expect(open_and_close, NULL);
}

/* ---- the log of many threads ----------------------------------------------------------------- */

enum { THREADS = 8, COPIES = SOFT_TSAN || SOFT_ASAN ? 4000 : 100000 };

static char log_path[64];
static int *shared_device;

static void *copy_many(void *arg) {
    char to[64];
    uintptr_t number = (uintptr_t)arg;
    char name[16];
    snprintf(name, sizeof name, "thread%u", (unsigned)number);
    for (int i = 0; i < COPIES; i++) {
        struct gcore_d2h_meta m = {
            .tensor = name, .step = i, .layer = (int)number, .size = sizeof to
        };
        /* Every fourth one is asynchronous. */
        struct gcore_d2h_op op = { 0 };
        struct gcore_d2h_result result;
        if (i % 4)
            (void)gcore_d2h_copy(to, shared_device, &m, NULL, &result);
        else
            (void)gcore_d2h_copy_async(to, shared_device, &m, NULL, &op, &result);
        if (result.code != GCORE_D2H_OK || gcore_d2h_wait(&op, &result) != GCORE_D2H_OK)
            soft_fail(__FILE__, __LINE__, "%s", result.message);
    }
    return NULL;
}

static bool many_threads_log(void) {
    attach((struct audit_config){ .d2h_audit = true, .d2h_log = log_path });
    pthread_t threads[THREADS];
    shared_device = soft_device_ints(16);
    for (uintptr_t i = 0; i < THREADS; i++)
        MUST(pthread_create(&threads[i], NULL, copy_many, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    OK(hip->hipDeviceSynchronize());
    audit_detach();
    return true;
}

/* Reads the log: every line whole, every START with one END after it, ids 0 to n - 1 once each. */
static void expect_whole_log(const char *path) {
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    const unsigned total = THREADS * COPIES;
    unsigned char *seen = calloc(total, 1);
    char line[512], tensor[64], tensors_of[THREADS][16];
    for (int i = 0; i < THREADS; i++)
        snprintf(tensors_of[i], sizeof *tensors_of, "thread%d", i);
    unsigned long long id, seconds, stream, device, host, bytes;
    unsigned micros, lines = 0;
    int layer, end;
    long step;
    while (fgets(line, sizeof line, f)) {
        lines++;
        if (sscanf(line,
                   "[D2H_AUDIT_START] op_id=%llu ts=%llu.%6u stream=0x%llx dev_ptr=0x%llx "
                   "host_ptr=0x%llx bytes=%llu tensor=%63s step=%ld layer=%d%n",
                   &id, &seconds, &micros, &stream, &device, &host, &bytes, tensor, &step, &layer,
                   &end) == 10) {
            assert_int_equal(line[end], '\n');
            assert_true(id < total && seen[id] == 0);
            assert_true(layer >= 0 && layer < THREADS && step >= 0 && step < COPIES);
            assert_string_equal(tensor, tensors_of[layer]);
            assert_int_equal(bytes, 64);
            seen[id] = 1;
        } else if (sscanf(line,
                          "[D2H_AUDIT_END] op_id=%llu ts=%llu.%6u stream=0x%llx result=hipSuccess "
                          "tensor=%63s%n",
                          &id, &seconds, &micros, &stream, tensor, &end) == 5) {
            assert_int_equal(line[end], '\n');
            assert_true(id < total && seen[id] == 1);
            seen[id] = 2;
        } else {
            fail_msg("line %u is torn: %s", lines, line);
        }
    }
    fclose(f);
    assert_int_equal(lines, 2 * total);
    for (unsigned i = 0; i < total; i++)
        assert_int_equal(seen[i], 2);
    free(seen);
}

static void eight_threads_log_every_start_with_its_end(void **state) {
    (void)state;
    strcpy(log_path, "/tmp/greta-test-XXXXXX");
    close(mkstemp(log_path));
    soft_expect(many_threads_log, NULL);
    expect_whole_log(log_path);
    unlink(log_path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_copy_behind_a_free_stream),
        cmocka_unit_test(right_copy_on_a_free_stream),
        cmocka_unit_test(right_copy_between_blocking_streams),
        cmocka_unit_test(right_copy_between_free_streams),
        cmocka_unit_test(right_copy_behind_the_threads_own_stream),
        cmocka_unit_test(right_copy_behind_a_destroyed_stream),
        cmocka_unit_test(right_copy_behind_another_threads_own_stream),
        cmocka_unit_test(wrong_unchecked_copy_between_free_streams),
        cmocka_unit_test(right_asynchronous_copy_is_complete_after_its_wait),
        cmocka_unit_test(wrong_unwaited_asynchronous_copy),
        cmocka_unit_test(right_written_data_is_there_for_every_stream),
        cmocka_unit_test(right_device_copies_are_there_for_every_stream),
        cmocka_unit_test(right_a_batch_sees_the_work_of_all_streams),
        cmocka_unit_test(right_a_graphs_work_is_waited_for),
        cmocka_unit_test(right_a_copy_beside_direct_calls_waits_for_the_device),
        cmocka_unit_test(wrong_copies_are_refused),
        cmocka_unit_test(a_fault_is_reported_by_the_copy_and_recorded_with_its_cause),
        cmocka_unit_test(opening_failing_and_closing),
        cmocka_unit_test(eight_threads_log_every_start_with_its_end),
    };
    return cmocka_run_group_tests(tests, soft_fixture_load, NULL);
}
