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
        verdict_test(a_long_name_of_many_events),
        verdict_test(what_is_not_examined_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
