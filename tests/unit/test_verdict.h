/* test_verdict.h - recordings made by hand, for the tests of src/verdict: one function per event,
 * and what the verdict must say about the run they tell.
 *
 * A test writes a run with the functions below, then calls judge(). Calls succeed unless `status`
 * says otherwise for the next one. Streams are numbers of the recording. */
#ifndef TESTS_UNIT_TEST_VERDICT_H
#define TESTS_UNIT_TEST_VERDICT_H

#include "hip/hip_api.h"
#include "support/verdict_words.h"
#include "unit/test_record.h"
#include "verdict/verdict.h"

enum { KIB = 1024, MIB = 1024 * 1024 };

/* Addresses that are far from each other: device, pinned, plain host memory. */
#define DEVICE_AT  UINT64_C(0x7f0000000000)
#define DEVICE2_AT UINT64_C(0x7f0010000000)
#define PINNED_AT  UINT64_C(0x7e0000000000)
#define HOST_AT    UINT64_C(0x550000000000)

enum { ASYNC = EVENT_DETAIL_ASYNC };

static writer *W;
static reader *R;
static verdict *V;
static unsigned status;   /* of the next call */
static uint32_t site;     /* of the next call; 0: unknown */
static uint64_t clock_ns; /* of the next event if not 0 */
static uint64_t took_ns;  /* by the next call */
static struct verdict_options options;

/* Streams, events, graphs and modules that the run has made; judge() releases them first, unless
 * the test is about that. */
static struct {
    uint16_t kind;
    uint64_t handle;
    uint32_t stream;
} made[64];
static unsigned made_count;
static bool keeps_all;

static const char *fn_name_of(unsigned fn) {
    return hip_fn_name((enum hip_fn)fn);
}

static inline void open_run(uint64_t events) {
    struct err e = { 0 };
    struct record_options o = {
        .path = record_file, .events = events, .fn_count = HIP_FN_COUNT, .fn_name = fn_name_of
    };
    if (record_open(&W, &o, &e) != RC_OK)
        fail_msg("%s", e.msg);
}

static inline int verdict_setup(void **state) {
    record_setup(state);
    status = 0;
    site = 0;
    clock_ns = took_ns = 0;
    made_count = 0;
    keeps_all = false;
    options = (struct verdict_options){ 0 };
    open_run(1 << 16);
    return 0;
}

static inline int verdict_teardown(void **state) {
    record_close(&W);
    verdict_close(&V);
    reader_close(&R);
    return record_teardown(state);
}

#define verdict_test(f) cmocka_unit_test_setup_teardown(f, verdict_setup, verdict_teardown)

/* ---- events ---------------------------------------------------------------------------------- */

/* The kind of event that releases what one of `kind` makes; 0: it makes nothing. */
static inline uint16_t release_of(unsigned kind) {
    switch (kind) {
    case EVENT_STREAM_CREATE:
        return EVENT_STREAM_DESTROY;
    case EVENT_EVENT_CREATE:
        return EVENT_EVENT_DESTROY;
    case EVENT_CAPTURE_END:
    case EVENT_GRAPH_CREATE:
    case EVENT_GRAPH_INSTANTIATE:
        return EVENT_GRAPH_DESTROY;
    case EVENT_MODULE_LOAD:
        return EVENT_MODULE_UNLOAD;
    default:
        return 0;
    }
}

/* slots[0] holds the event; the rest its extras. */
static inline uint64_t put_slots(union event_slot *slots, unsigned count) {
    slots[0].event.site = site;
    slots[0].event.status = (uint16_t)status;
    slots[0].event.t_ns = clock_ns;
    uint64_t seq = record_events(W, slots, count);
    if (release_of(slots[0].event.kind) && made_count < sizeof made / sizeof *made) {
        made[made_count].kind = slots[0].event.kind;
        made[made_count].handle = slots[0].event.dst;
        made[made_count++].stream = slots[0].event.stream;
    }
    if (took_ns)
        record_finish(W, seq, status, took_ns);
    status = 0;
    site = 0;
    clock_ns = took_ns = 0;
    return seq;
}

static inline uint64_t put(enum event_kind kind, unsigned fn, unsigned detail, uint64_t dst,
                           uint64_t src, uint64_t len, uint32_t stream, const char *name) {
    union event_slot s[1];
    s[0].event = (struct event){ .kind = (uint16_t)kind,
                                 .aux = event_aux(fn, detail),
                                 .dst = dst,
                                 .src = src,
                                 .len = len,
                                 .stream = stream,
                                 .name = record_string(W, name) };
    return put_slots(s, 1);
}

static inline uint32_t default_stream(void) {
    return record_stream(W, &(struct record_stream){ .flags = RECORD_STREAM_DEFAULT });
}

static inline uint32_t new_stream(unsigned flags) {
    uint32_t id = record_stream(W, &(struct record_stream){ .handle = 0x1000, .flags = flags });
    put(EVENT_STREAM_CREATE, HIP_FN_hipStreamCreateWithFlags, 0, 0x1000, flags, 0, id, NULL);
    return id;
}

static inline uint32_t nonblocking(void) {
    return new_stream(hipStreamNonBlocking);
}

static inline uint64_t alloc(uint64_t at, uint64_t bytes) {
    return put(EVENT_ALLOC, HIP_FN_hipMalloc, DETAIL_FAMILY_DEVICE, at, 0, bytes, 0, NULL);
}

static inline uint64_t alloc_pinned(uint64_t at, uint64_t bytes) {
    return put(EVENT_ALLOC, HIP_FN_hipHostMalloc, DETAIL_FAMILY_PINNED, at, 0, bytes, 0, NULL);
}

static inline uint64_t alloc_managed(uint64_t at, uint64_t bytes) {
    return put(EVENT_ALLOC, HIP_FN_hipMallocManaged, DETAIL_FAMILY_MANAGED, at, 0, bytes, 0, NULL);
}

static inline uint64_t alloc_async(uint64_t at, uint64_t bytes, uint32_t stream) {
    return put(EVENT_ALLOC, HIP_FN_hipMallocAsync, DETAIL_FAMILY_ASYNC, at, 0, bytes, stream, NULL);
}

static inline uint64_t free_at(uint64_t at) {
    return put(EVENT_FREE, HIP_FN_hipFree, 0, at, 0, 1, 0, NULL);
}

static inline uint64_t free_pinned(uint64_t at) {
    return put(EVENT_FREE, HIP_FN_hipHostFree, 0, at, 0, 1, 0, NULL);
}

static inline uint64_t free_async(uint64_t at, uint32_t stream) {
    return put(EVENT_FREE, HIP_FN_hipFreeAsync, 0, at, 0, 1, stream, NULL);
}

static inline uint64_t name_range(uint64_t at, uint64_t bytes, const char *name) {
    return put(EVENT_NAME_RANGE, EVENT_NO_FN, 0, at, 0, bytes, 0, name);
}

/* kind: hipMemcpyKind, with ASYNC. */
static inline uint64_t copy(unsigned kind, uint64_t dst, uint64_t src, uint64_t bytes,
                            uint32_t stream) {
    return put(EVENT_COPY, kind & ASYNC ? HIP_FN_hipMemcpyAsync : HIP_FN_hipMemcpy, kind, dst, src,
               bytes, stream, NULL);
}

static inline uint64_t h2d(uint64_t dst, uint64_t src, uint64_t bytes, uint32_t stream) {
    return copy(hipMemcpyHostToDevice | ASYNC, dst, src, bytes, stream);
}

static inline uint64_t d2h(uint64_t dst, uint64_t src, uint64_t bytes, uint32_t stream) {
    return copy(hipMemcpyDeviceToHost | ASYNC, dst, src, bytes, stream);
}

static inline uint64_t copy_rows(unsigned kind, uint64_t dst, uint64_t dst_pitch, uint64_t src,
                                 uint64_t src_pitch, uint64_t width, uint64_t height,
                                 uint32_t stream) {
    union event_slot s[2];
    s[0].event = (struct event){ .kind = EVENT_COPY2D,
                                 .aux = event_aux(HIP_FN_hipMemcpy2DAsync, kind),
                                 .dst = dst,
                                 .src = src,
                                 .len = width * height,
                                 .stream = stream };
    event_extra_rows(&s[1], dst_pitch, src_pitch, width, height);
    return put_slots(s, 2);
}

static inline uint64_t set(uint64_t dst, uint64_t bytes, uint32_t stream) {
    return put(EVENT_SET, HIP_FN_hipMemsetAsync, DETAIL_WIDTH_ASYNC_8, dst, 0, bytes, stream, NULL);
}

static inline uint64_t set_sync(uint64_t dst, uint64_t bytes, uint32_t stream) {
    return put(EVENT_SET, HIP_FN_hipMemset, DETAIL_WIDTH_8, dst, 0, bytes, stream, NULL);
}

/* A launch whose bytes are known: up to two ranges. */
static inline uint64_t launch_exact(const char *kernel, const struct event_access *a,
                                    unsigned count, uint32_t stream) {
    union event_slot s[5];
    unsigned slots = 3, done = 0;
    s[0].event = (struct event){ .kind = EVENT_LAUNCH,
                                 .aux = event_aux(HIP_FN_hipModuleLaunchKernel, 0),
                                 .stream = stream,
                                 .name = record_string(W, kernel) };
    event_extra_dims(&s[1], &(struct event_dims){ { 1, 1, 1 }, { 64, 1, 1 }, 0, 0 });
    event_extra_checked(&s[2], &(struct event_checked){ .how = DETAIL_CHECKED_FOOTPRINTS });
    for (; done < count; slots++)
        done += event_extra_accesses(&s[slots], &a[done], count - done);
    return put_slots(s, slots);
}

static inline uint64_t launch_writes(const char *kernel, uint64_t at, uint64_t bytes,
                                     uint32_t stream) {
    struct event_access a = { at, bytes, DETAIL_ACCESS_WRITE, 0 };
    return launch_exact(kernel, &a, 1, stream);
}

static inline uint64_t launch_reads(const char *kernel, uint64_t at, uint64_t bytes,
                                    uint32_t stream) {
    struct event_access a = { at, bytes, DETAIL_ACCESS_READ, 0 };
    return launch_exact(kernel, &a, 1, stream);
}

/* One of which only a pointer is known; flags: enum event_arg_flag; hash: of its arguments. */
static inline uint64_t launch_checked(const char *kernel, uint64_t pointer, unsigned flags,
                                      uint32_t hash, uint32_t stream,
                                      const struct event_checked *checked) {
    union event_slot s[4];
    s[0].event = (struct event){ .kind = EVENT_LAUNCH,
                                 .aux = event_aux(HIP_FN_hipModuleLaunchKernel, 0),
                                 .stream = stream,
                                 .name = record_string(W, kernel) };
    event_extra_dims(&s[1],
                     &(struct event_dims){
                         { 1, 1, 1 }, { 64, 1, 1 }, 0, (uint64_t)hash << EVENT_DIMS_HASH_SHIFT });
    event_extra_args(&s[2], &(struct event_arg){ pointer, 0, flags }, 1);
    event_extra_checked(&s[3], checked);
    return put_slots(s, 4);
}

/* The same between guards that leave nothing out. */
static inline uint64_t launch_pointer(const char *kernel, uint64_t pointer, unsigned flags,
                                      uint32_t hash, uint32_t stream) {
    const struct event_checked guards = { .how = DETAIL_CHECKED_GUARDS };
    return launch_checked(kernel, pointer, flags, hash, stream, &guards);
}

static inline uint64_t launch_unknown(const char *kernel, uint32_t stream) {
    return put(EVENT_LAUNCH, HIP_FN_hipModuleLaunchKernel, 0, 0, 0, 0, stream, kernel);
}

/* The device is done with that many launches of the stream; did not run a launch. */
static inline uint64_t ran(uint64_t launches, uint32_t stream) {
    return put(EVENT_RAN, EVENT_NO_FN, 0, launches, 0, 0, stream, NULL);
}

static inline uint64_t not_run(uint64_t launch, unsigned reason, const char *kernel) {
    return put(EVENT_NOT_RUN, EVENT_NO_FN, reason, 0, launch, 1, 0, kernel);
}

/* Bytes beside the allocation lost their pattern, between the looks after two launches. */
static inline uint64_t slack(uint64_t address, uint64_t alloc, uint64_t bytes, unsigned side,
                             uint64_t good, uint64_t bad) {
    union event_slot s[2];
    s[0].event = (struct event){ .kind = EVENT_SLACK,
                                 .aux = event_aux(EVENT_NO_FN, side),
                                 .dst = address,
                                 .src = alloc,
                                 .len = bytes };
    event_extra_looks(&s[1], good, bad, 1);
    return put_slots(s, 2);
}

/* The host's own accesses are watched. */
static inline void watch_host(void) {
    record_provenance(W, "env.GCORE_WATCH_HOST", "1");
}

static inline uint64_t sync_stream(uint32_t stream) {
    return put(EVENT_SYNC, HIP_FN_hipStreamSynchronize, DETAIL_SCOPE_STREAM, 0, 0, 0, stream, NULL);
}

static inline uint64_t query_stream(uint32_t stream) {
    return put(EVENT_SYNC, HIP_FN_hipStreamQuery, DETAIL_SCOPE_STREAM_QUERY, 0, 0, 0, stream, NULL);
}

static inline uint64_t sync_device(uint64_t device) {
    return put(EVENT_SYNC, HIP_FN_hipDeviceSynchronize, DETAIL_SCOPE_DEVICE, device, 0, 0, 0, NULL);
}

static inline uint64_t event_create(uint64_t handle) {
    return put(EVENT_EVENT_CREATE, HIP_FN_hipEventCreate, 0, handle, 0, 0, 0, NULL);
}

static inline uint64_t event_record(uint64_t handle, uint32_t stream) {
    return put(EVENT_EVENT_RECORD, HIP_FN_hipEventRecord, 0, handle, 0, 0, stream, NULL);
}

static inline uint64_t event_wait(uint64_t handle, uint64_t record, uint32_t stream) {
    return put(EVENT_EVENT_WAIT, HIP_FN_hipStreamWaitEvent, 0, handle, record, 0, stream, NULL);
}

static inline uint64_t event_sync(uint64_t handle, uint64_t record) {
    return put(EVENT_EVENT_SYNC, HIP_FN_hipEventSynchronize, DETAIL_WAIT_WAIT, handle, record, 0, 0,
               NULL);
}

static inline uint64_t call(enum hip_fn fn, uint64_t a) {
    return put(EVENT_CALL, (unsigned)fn, 0, a, 0, 0, 0, NULL);
}

static inline uint64_t error_read(unsigned error, uint64_t from) {
    return put(EVENT_ERROR_READ, HIP_FN_hipGetLastError, 0, error, from, 0, 0, NULL);
}

/* ---- the verdict ----------------------------------------------------------------------------- */

/* Made by no call, so that it is not what the program did last. */
static inline void release_made(void) {
    for (unsigned i = 0; W && i < made_count; i++) {
        bool exec = made[i].kind == EVENT_GRAPH_INSTANTIATE;
        put((enum event_kind)release_of(made[i].kind), EVENT_NO_FN, 0, exec ? 0 : made[i].handle,
            exec ? made[i].handle : 0, 0, made[i].stream, NULL);
    }
}

/* Ends the recording and judges it. */
static inline void judge(void) {
    struct err e = { 0 };
    if (!keeps_all)
        release_made();
    record_close(&W);
    R = open_reader();
    if (verdict_open(&V, R, &options, &e) != RC_OK)
        fail_msg("%s", e.msg);
    verdict_check_words(V);
}

static inline enum verdict_status status_of(enum verdict_hypothesis_id id) {
    return V->hypothesis[id].status;
}

#define expect_status(id, expected)                                                                \
    do {                                                                                           \
        if (status_of(HYPOTHESIS_##id) != VERDICT_STATUS_##expected)                               \
            fail_msg("%s is %s (%s), expected %s; answer: %s", #id,                                \
                     verdict_status_name(status_of(HYPOTHESIS_##id)),                              \
                     V->hypothesis[HYPOTHESIS_##id].text, #expected, V->answer);                   \
    } while (0)

#define expect_overall(expected)                                                                   \
    do {                                                                                           \
        if (V->overall != VERDICT_##expected)                                                      \
            fail_msg("expected %s; answer: %s", #expected, V->answer);                             \
    } while (0)

/* No finding at all. */
static inline void expect_no_findings(void) {
    if (V->finding_count)
        fail_msg("expected no findings: %s", V->answer);
}

/* One finding, of that hypothesis, about that event. */
#define expect_finding(id, culprit_event)                                                          \
    do {                                                                                           \
        expect_status(id, CONFIRMED);                                                              \
        assert_int_equal(V->finding_count, 1);                                                     \
        assert_int_equal(V->findings[0].hypothesis, HYPOTHESIS_##id);                              \
        assert_int_equal(V->findings[0].culprit.event, culprit_event);                             \
    } while (0)

static inline void expect_messenger(uint64_t event) {
    assert_non_null(V->messenger);
    assert_int_equal(V->messenger->event, event);
}

static inline void expect_other(uint64_t event) {
    assert_non_null(V->findings[0].other);
    assert_int_equal(V->findings[0].other->event, event);
}

#endif
