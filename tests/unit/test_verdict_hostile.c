/* Recordings that are damaged, cut, or made of anything at all: the verdict must come back, say no
 * more than it can, and touch nothing it should not (the sanitizer builds see to that). */
#include "unit/test_verdict.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "record/layout.h"
#include "report/report.h"

/* A run with something of everything. */
static void write_run(void) {
    uint32_t s0 = default_stream(), s = nonblocking(), t = new_stream(0);
    alloc(DEVICE_AT, 64 * KIB);
    alloc_pinned(PINNED_AT, 64 * KIB);
    alloc_managed(DEVICE2_AT, 64 * KIB);
    name_range(DEVICE_AT, 4 * KIB, "a");
    event_create(7);
    for (int i = 0; i < 20; i++) {
        h2d(DEVICE_AT, PINNED_AT, 4 * KIB, s);
        launch_writes("w", DEVICE_AT, 4 * KIB, s);
        launch_pointer("p", DEVICE_AT + 8 * KIB, EVENT_ARG_WRITE, 1, t);
        uint64_t record = event_record(7, s);
        event_wait(7, record, t);
        copy_rows(hipMemcpyDeviceToHost | ASYNC, PINNED_AT, 256, DEVICE_AT, 512, 64, 8, t);
        set(DEVICE2_AT, KIB, s0);
        launch_unknown("u", s0);
        event_sync(7, record);
        alloc_async(DEVICE_AT + 64 * MIB, KIB, s);
        free_async(DEVICE_AT + 64 * MIB, s);
        sync_stream(s);
    }
    put(EVENT_CAPTURE_BEGIN, HIP_FN_hipStreamBeginCapture, 0, 0, 0, 0, s, NULL);
    for (int i = 0; i < 5; i++)
        put(EVENT_SET, HIP_FN_hipMemsetAsync, DETAIL_WIDTH_ASYNC_8 | EVENT_CAPTURED, DEVICE_AT, 0,
            KIB, s, NULL);
    put(EVENT_CAPTURE_END, HIP_FN_hipStreamEndCapture, 0, 0x50, 0, 0, s, NULL);
    put(EVENT_GRAPH_INSTANTIATE, HIP_FN_hipGraphInstantiate, 0, 0x51, 0x50, 0, 0, NULL);
    put(EVENT_GRAPH_LAUNCH, HIP_FN_hipGraphLaunch, 0, 0x51, 0, 0, s, NULL);
    uint64_t queued = put(EVENT_HOST_FN, HIP_FN_hipLaunchHostFunc, 0, 1, 2, 0, s, NULL);
    put(EVENT_HOST_FN_BEGIN, EVENT_NO_FN, 0, 1, queued, 0, 0, NULL);
    put(EVENT_HOST_FN_END, EVENT_NO_FN, 0, 1, queued, 0, 0, NULL);
    put(EVENT_HOST_RELEASE, EVENT_NO_FN, 0, 99, 0, 0, 0, NULL);
    put(EVENT_HOST_ACQUIRE, EVENT_NO_FN, 0, 99, 0, 0, 0, NULL);
    put(EVENT_EARLY_HOST_ACCESS, EVENT_NO_FN, DETAIL_ACCESS_READ, PINNED_AT, 3, 1, 0, NULL);
    union event_slot f[2];
    f[0].event = (struct event){ .kind = EVENT_FAULT, .dst = DEVICE_AT + 64 * KIB, .src = 9 };
    event_extra_fault(&f[1], &(struct event_fault){ .argument = 0, .alloc_base = DEVICE_AT });
    put_slots(f, 2);
    status = hipErrorIllegalAddress;
    copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE_AT, KIB, s0);
    error_read(hipErrorIllegalAddress, 5);
}

static void judge_file(void) {
    struct err e = { 0 };
    reader *r = NULL;
    verdict *v = NULL;
    if (reader_open(&r, record_file, &e) != RC_OK)
        return;
    assert_int_equal(verdict_open(&v, r, NULL, &e), RC_OK);
    assert_true(strlen(v->answer) > 0);
    FILE *out = fopen("/dev/null", "w");
    assert_int_equal(report_json(out, v, &e), RC_OK);
    assert_int_equal(report_text(out, v, NULL, &e), RC_OK);
    fclose(out);
    verdict_close(&v);
    reader_close(&r);
}

static unsigned char *image;
static size_t image_bytes;

static void load(void) {
    struct stat st;
    int fd = open(record_file, O_RDONLY);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    image_bytes = (size_t)st.st_size;
    image = aligned_alloc(4096, (image_bytes + 4095) & ~(size_t)4095); /* as the header wants */
    assert_int_equal(read(fd, image, image_bytes), (ssize_t)image_bytes);
    close(fd);
}

static void store(size_t bytes) {
    int fd = open(record_file, O_WRONLY | O_TRUNC);
    assert_int_equal(write(fd, image, bytes), (ssize_t)bytes);
    close(fd);
}

/* Where the slots of events lie: in the chunks that hold them. */
static union event_slot *slot_at(uint64_t seq) {
    const struct record_header *h = (const void *)image;
    uint64_t per_chunk = h->chunk_bytes / sizeof(union event_slot);
    uint32_t chunk = h->event_chunk[seq / per_chunk];
    return (void *)(image + RECORD_HEADER_BYTES + (uint64_t)(chunk - 1) * h->chunk_bytes +
                    seq % per_chunk * sizeof(union event_slot));
}

static void damaged_events_do_no_harm(void **state) {
    (void)state;
    write_run();
    uint64_t events = record_count(W);
    record_close(&W);
    load();
    unsigned char *whole = malloc(image_bytes);
    memcpy(whole, image, image_bytes);
    srand(7);
    for (int round = 0; round < 400; round++) {
        memcpy(image, whole, image_bytes);
        for (int n = 1 + rand() % 20; n; n--) {
            union event_slot *s = slot_at((uint64_t)rand() % events);
            switch (rand() % 5) {
            case 0: /* another kind */
                s->event.kind = (uint16_t)(rand() % 90);
                break;
            case 1: /* other addresses */
                s->word[2 + rand() % 3] = rand() % 2 ? UINT64_MAX - (uint64_t)(rand() % 9)
                                                     : DEVICE_AT + (uint64_t)(rand() % 99999);
                break;
            case 2: /* other numbers */
                s->event.stream = (uint32_t)rand() >> rand() % 31;
                s->event.thread = (uint32_t)rand() >> rand() % 31;
                s->event.name = (uint32_t)rand() >> rand() % 31;
                break;
            case 3:
                s->event.status = (uint16_t)(rand() % 3 ? rand() : hipErrorIllegalAddress);
                s->event.aux = (uint32_t)rand();
                break;
            default:
                s->word[1 + rand() % 7] ^= UINT64_C(1) << rand() % 63;
            }
        }
        store(image_bytes);
        judge_file();
    }
    free(whole);
    free(image);
}

static void a_file_cut_anywhere_is_judged(void **state) {
    (void)state;
    write_run();
    record_close(&W);
    load();
    for (size_t bytes = RECORD_HEADER_BYTES; bytes < image_bytes; bytes += 9973) {
        store(bytes);
        judge_file();
    }
    free(image);
}

static void a_hole_in_the_middle_is_no_proof(void **state) {
    (void)state;
    uint32_t s = nonblocking(), t = nonblocking();
    alloc(DEVICE_AT, KIB);
    uint64_t a = launch_writes("w", DEVICE_AT, KIB, s);
    uint64_t gone = sync_stream(s); /* what orders them is lost */
    launch_writes("w", DEVICE_AT, KIB, t);
    free_at(DEVICE_AT);
    record_close(&W);
    load();
    slot_at(gone)->event.ready = EVENT_BUSY | (gone + 1);
    store(image_bytes);
    judge_file();
    free(image);
    struct err e = { 0 };
    R = open_reader();
    assert_int_equal(verdict_open(&V, R, NULL, &e), RC_OK);
    (void)a;
    expect_no_findings();
    assert_int_equal(V->coverage.torn, 1);
    expect_status(STREAM_UNSYNCED, INCONCLUSIVE);
    expect_status(LEAK, INCONCLUSIVE);
    expect_overall(INCONCLUSIVE);
}

static void memory_freed_before_a_hole_may_live_again(void **state) {
    (void)state;
    uint32_t s = default_stream();
    alloc(DEVICE_AT, KIB);
    free_at(DEVICE_AT);
    uint64_t gone = alloc(DEVICE_AT, KIB);
    set(DEVICE_AT, KIB, s);
    free_at(DEVICE_AT);
    record_close(&W);
    load();
    slot_at(gone)->event.ready = EVENT_BUSY | (gone + 1);
    store(image_bytes);
    free(image);
    struct err e = { 0 };
    R = open_reader();
    assert_int_equal(verdict_open(&V, R, NULL, &e), RC_OK);
    expect_no_findings();
    expect_status(USE_AFTER_FREE, INCONCLUSIVE);
    expect_status(DOUBLE_FREE, INCONCLUSIVE);
}

/* Frees that the runtime did, of memory the recording does not know. */
static void foreign_memory_leaves_it_open(void **state) {
    (void)state;
    uint32_t s = default_stream();
    set(DEVICE_AT, KIB, s);
    free_at(DEVICE_AT);
    judge();
    expect_no_findings();
    expect_overall(INCONCLUSIVE);
    assert_non_null(strstr(V->coverage.gaps, "allocation was not recorded"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        verdict_test(damaged_events_do_no_harm),
        verdict_test(a_file_cut_anywhere_is_judged),
        verdict_test(a_hole_in_the_middle_is_no_proof),
        verdict_test(memory_freed_before_a_hole_may_live_again),
        verdict_test(foreign_memory_leaves_it_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
