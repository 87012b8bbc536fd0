/* Recordings that say in a few kilobytes what would take hours or all of the memory to follow. Each
 * is read, judged, reported and compared in a process of its own, which may use a minute of
 * processor time and two gigabytes: hundreds of times what they take. */
#include "unit/test_verdict.h"

#include <fcntl.h>
#include <sys/resource.h>

#include "diff/diff.h"
#include "record/format.h"
#include "record/layout.h"
#include "report/report.h"
#include "report/report_html.h"
#include "report/report_md.h"
#include "report/report_perfetto.h"

/* ThreadSanitizer keeps four bytes and more of its own for each byte of the program. */
#if defined(__SANITIZE_THREAD__)
enum { SHADOW = 5 };
#else
enum { SHADOW = 1 };
#endif
enum { CPU_SECONDS = 60, MEMORY_KIB = SHADOW * (2 << 20) };

static void check(enum rc rc, const struct err *e) {
    if (rc == RC_OK)
        return;
    fprintf(stderr, "%s\n", e->msg);
    _exit(1);
}

static void dump_all(FILE *out, const reader *r) {
    static struct reader_event e;
    struct reader_cursor c = reader_events(r, 0, UINT64_MAX);
    while (reader_next(&c, &e)) {
        format_event(out, r, &e);
        putc('\n', out);
    }
}

static void use_all(void *unused) {
    struct rlimit limit = { CPU_SECONDS, CPU_SECONDS };
    struct rusage used;
    struct err e = { 0 };
    reader *r = NULL;
    verdict *v = NULL;
    diff *d = NULL;
    (void)unused;
    setrlimit(RLIMIT_CPU, &limit);
    FILE *out = fopen("/dev/null", "w");
    check(reader_open(&r, record_file, &e), &e);
    dump_all(out, r);
    check(verdict_open(&v, r, NULL, &e), &e);
    check(report_text(out, v, NULL, &e), &e);
    check(report_json(out, v, &e), &e);
    check(report_md(out, v, r, NULL, &e), &e);
    check(report_html(out, v, r, NULL, &e), &e);
    check(report_perfetto(out, v, r, &e), &e);
    check(diff_open(&d, r, r, &e), &e);
    diff_close(&d);
    verdict_close(&v);
    reader_close(&r);
    fclose(out);
    getrusage(RUSAGE_SELF, &used);
    if (used.ru_maxrss > MEMORY_KIB) {
        fprintf(stderr, "used %ld KiB\n", used.ru_maxrss);
        _exit(2);
    }
}

static void stays_in_bounds(void) {
    record_close(&W);
    in_child(use_all, NULL);
}

/* ---- files that say they are longer than they are ------------------------------------------- */

/* Rewrites the header of the recording: chunks of 64 MiB, all of them named in the directory. */
static void boast(bool same, uint64_t bytes) {
    record_close(&W);
    int fd = open(record_file, O_RDWR);
    struct record_header *h = aligned_alloc(4096, RECORD_HEADER_BYTES);
    assert_int_equal(pread(fd, h, RECORD_HEADER_BYTES, 0), RECORD_HEADER_BYTES);
    h->chunk_bytes = RECORD_CHUNK_MAX;
    h->event_chunks = RECORD_EVENT_CHUNKS;
    h->definition_chunks = RECORD_DEFINITION_MAX / RECORD_CHUNK_MAX;
    h->next_seq = UINT64_C(1) << 50;
    h->next_definition = RECORD_DEFINITION_MAX;
    for (uint32_t i = 0; i < RECORD_EVENT_CHUNKS; i++)
        h->event_chunk[i] = same ? 1 : i + 1;
    for (uint32_t i = 0; i < h->definition_chunks; i++)
        h->definition_chunk[i] = same ? 1 : RECORD_EVENT_CHUNKS + 1 + i;
    assert_int_equal(pwrite(fd, h, RECORD_HEADER_BYTES, 0), RECORD_HEADER_BYTES);
    free(h);
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    close(fd);
    in_child(use_all, NULL);
}

static void chunks_that_are_cut_are_stepped_over(void **state) {
    (void)state;
    boast(false, RECORD_HEADER_BYTES + sizeof(union event_slot));
}

static void holes_are_stepped_over(void **state) {
    (void)state;
    boast(false, RECORD_HEADER_BYTES + UINT64_C(16) * 1024 * MIB);
}

static void a_chunk_is_read_once(void **state) {
    (void)state;
    boast(true, RECORD_HEADER_BYTES + RECORD_CHUNK_MAX);
}

/* ---- what is long to follow ------------------------------------------------------------------ */

static void streams_that_all_know_each_other(void **state) {
    (void)state;
    enum { STREAMS = 12000 };
    alloc(DEVICE_AT, MIB);
    uint32_t last = nonblocking();
    for (unsigned i = 0; i < STREAMS; i++) {
        uint32_t s = nonblocking();
        set(DEVICE_AT, KIB, s);
        event_wait(7 + i, event_record(7 + i, s), last);
        last = s;
    }
    sync_device(0);
    stays_in_bounds();
}

static void a_graph_launched_again_and_again(void **state) {
    (void)state;
    enum { NODES = 6000, LAUNCHES = 20000 };
    uint32_t s = nonblocking();
    put(EVENT_CAPTURE_BEGIN, HIP_FN_hipStreamBeginCapture, 0, 0, 0, 0, s, NULL);
    for (unsigned i = 0; i < NODES; i++)
        put(EVENT_SET, HIP_FN_hipMemsetAsync, DETAIL_WIDTH_ASYNC_8 | EVENT_CAPTURED,
            DEVICE_AT + (uint64_t)i * 64, 0, 64, s, NULL);
    put(EVENT_CAPTURE_END, HIP_FN_hipStreamEndCapture, 0, 0x50, 0, 0, s, NULL);
    put(EVENT_GRAPH_INSTANTIATE, HIP_FN_hipGraphInstantiate, 0, 0x51, 0x50, 0, 0, NULL);
    for (unsigned i = 0; i < LAUNCHES; i++)
        put(EVENT_GRAPH_LAUNCH, HIP_FN_hipGraphLaunch, 0, 0x51, 0, 0, s, NULL);
    stays_in_bounds();
}

/* Each graph holds the one before it twice. */
static void graphs_in_graphs(void **state) {
    (void)state;
    enum { DEPTH = 60 };
    uint32_t s = nonblocking();
    for (uint64_t i = 0; i < DEPTH; i++) {
        put(EVENT_CAPTURE_BEGIN, HIP_FN_hipStreamBeginCapture, 0, 0, 0, 0, s, NULL);
        put(EVENT_SET, HIP_FN_hipMemsetAsync, DETAIL_WIDTH_ASYNC_8 | EVENT_CAPTURED, DEVICE_AT, 0,
            KIB, s, NULL);
        for (int twice = 0; i && twice < 2; twice++)
            put(EVENT_GRAPH_LAUNCH, HIP_FN_hipGraphLaunch, EVENT_CAPTURED, 0x1000 + i - 1, 0, 0, s,
                NULL);
        put(EVENT_CAPTURE_END, HIP_FN_hipStreamEndCapture, 0, 0x5000 + i, 0, 0, s, NULL);
        put(EVENT_GRAPH_INSTANTIATE, HIP_FN_hipGraphInstantiate, 0, 0x1000 + i, 0x5000 + i, 0, 0,
            NULL);
    }
    put(EVENT_GRAPH_LAUNCH, HIP_FN_hipGraphLaunch, 0, 0x1000 + DEPTH - 1, 0, 0, s, NULL);
    stays_in_bounds();
}

/* Each row would be compared with all rows before it if nothing limited that. */
static void rows_that_lie_in_each_other(void **state) {
    (void)state;
    enum { COPIES = 500, ROWS = 4096 };
    uint32_t s = nonblocking(), t = nonblocking();
    alloc(DEVICE_AT, 16 * MIB);
    alloc(DEVICE2_AT, 16 * MIB);
    for (unsigned i = 0; i < COPIES; i++)
        copy_rows(hipMemcpyDeviceToDevice | ASYNC, DEVICE_AT + i % 7, i % 3, DEVICE2_AT + i % 5,
                  1 + i % 2, MIB, ROWS, i % 2 ? s : t);
    stays_in_bounds();
}

/* The product of rows and slices is 0 in 64 bits. */
static void slices_without_number(void **state) {
    (void)state;
    uint32_t s = nonblocking();
    alloc(DEVICE_AT, UINT64_C(1024) * 1024 * MIB);
    for (unsigned which = 0; which < 2; which++) {
        union event_slot c[3];
        c[0].event = (struct event){ .kind = EVENT_COPY2D,
                                     .aux = event_aux(HIP_FN_hipMemcpy3DAsync,
                                                      hipMemcpyDeviceToDevice | ASYNC),
                                     .dst = DEVICE_AT + 4 * which,
                                     .src = DEVICE_AT + 4 * !which,
                                     .len = 64,
                                     .stream = s };
        event_extra_rows(&c[1], 16, 16, 8, UINT64_C(1) << 32);
        event_extra_slices(&c[2], 0, 0, UINT64_C(1) << 32);
        put_slots(c, 3);
        c[0].event.len = 8;
        event_extra_rows(&c[1], 16, 16, 8, 2);
        put_slots(c, 3);
    }
    stays_in_bounds();
}

static void blocks_up_to_the_last_byte(void **state) {
    (void)state;
    uint32_t s = nonblocking();
    for (unsigned i = 0; i < 4000; i++) {
        uint64_t bytes = 64 + i % 100 * 64;
        alloc_async(-bytes, bytes, s);
        set(-bytes, bytes, s);
        set(-bytes + 32, 16, s);
        free_async(-bytes, s);
    }
    stays_in_bounds();
}

/* A reset looks at all blocks, those of other devices too. */
static void resets_among_many_blocks(void **state) {
    (void)state;
    enum { BLOCKS = 16000 };
    uint32_t s = nonblocking();
    for (uint64_t i = 0; i < BLOCKS; i++)
        put(EVENT_ALLOC, HIP_FN_hipMalloc, DETAIL_FAMILY_DEVICE, DEVICE_AT + i * 512,
            UINT64_C(1) << 32, 256, s, NULL);
    for (unsigned i = 0; i < BLOCKS; i++)
        put(EVENT_DEVICE_RESET, HIP_FN_hipDeviceReset, 0, 0, 0, 0, 0, NULL);
    stays_in_bounds();
}

/* What each of them may have come from is looked for among all events before it. */
static void slack_that_is_always_written(void **state) {
    (void)state;
    enum { EVENTS = 16000 };
    uint32_t s = nonblocking();
    for (uint64_t i = 0; i < EVENTS; i++) {
        launch_pointer("k", DEVICE_AT + i, EVENT_ARG_WRITE, 1, s);
        put(EVENT_SLACK, EVENT_NO_FN, 0, DEVICE_AT, 0, 16, s, NULL);
    }
    stays_in_bounds();
}

static void a_long_name_of_many_events(void **state) {
    (void)state;
    enum { LENGTH = 30000, EVENTS = 20000 };
    char *name = malloc(LENGTH + 1);
    memset(name, 'n', LENGTH);
    name[LENGTH] = 0;
    for (unsigned i = 0; i < EVENTS; i++)
        name_range(DEVICE_AT + (uint64_t)i * 64, 64, name);
    for (unsigned i = 0; i < EVENTS; i++)
        record_provenance(W, "key", name);
    free(name);
    stays_in_bounds();
}

static void what_is_not_examined_is_said(void **state) {
    (void)state;
    streams_that_all_know_each_other(state);
    struct err e = { 0 };
    R = open_reader();
    assert_int_equal(verdict_open(&V, R, NULL, &e), RC_OK);
    if (V->coverage.unread) {
        assert_non_null(strstr(V->coverage.gaps, "were not examined"));
        assert_false(V->coverage.complete);
    }
    expect_status(LEAK, INCONCLUSIVE);
    assert_int_not_equal(V->overall, VERDICT_CLEAN);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        verdict_test(chunks_that_are_cut_are_stepped_over),
        verdict_test(holes_are_stepped_over),
        verdict_test(a_chunk_is_read_once),
        verdict_test(streams_that_all_know_each_other),
        verdict_test(a_graph_launched_again_and_again),
        verdict_test(graphs_in_graphs),
        verdict_test(rows_that_lie_in_each_other),
        verdict_test(slices_without_number),
        verdict_test(blocks_up_to_the_last_byte),
        verdict_test(resets_among_many_blocks),
        verdict_test(slack_that_is_always_written),
        verdict_test(a_long_name_of_many_events),
        verdict_test(what_is_not_examined_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
