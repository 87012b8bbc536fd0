/* Writing: what goes in comes out, from any number of threads, when the ring goes round, and when
 * the file cannot grow. */
#include "unit/test_record.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "record/writer_internal.h"

static struct reader_event found;

/* The n-th event (from 0) that is a mark; fails if there is none. */
static struct event *mark_number(reader *r, unsigned n) {
    struct reader_cursor c = reader_events(r, 0, UINT64_MAX);
    while (reader_next(&c, &found))
        if (found.event.kind == EVENT_MARK && !n--)
            return &found.event;
    fail_msg("no such mark");
    return NULL;
}

static void event_comes_back_as_written(void **state) {
    (void)state;
    writer *w = open_writer(0);
    struct event in = { .kind = EVENT_COPY,
                        .dst = 0x1111111111111111,
                        .src = 0x2222222222222222,
                        .len = 0x3333333333333333,
                        .stream = 4,
                        .site = 5,
                        .name = record_string(w, "logits"),
                        .status = 6,
                        .aux = event_aux(8, DETAIL_COPY_KIND_D2H) };
    uint64_t seq = record_event(w, &in);
    assert_true(in.t_ns && in.thread);
    record_close(&w);
    assert_null(w);

    reader *r = open_reader();
    assert_true(reader_event(r, seq, &found));
    assert_int_equal(found.event.ready, seq + 1);
    found.event.ready = 0;
    assert_memory_equal(&found.event, &in, sizeof in);
    assert_string_equal(reader_string(r, found.event.name), "logits");
    assert_int_equal(reader_thread(r, found.event.thread)->pid, getpid());
    assert_int_equal(reader_info(r)->lost, 0);
    assert_true(reader_info(r)->clean);
    reader_close(&r);
    assert_null(r);
}

static void given_time_is_kept(void **state) {
    (void)state;
    writer *w = open_writer(0);
    struct event e = make_mark(1);
    e.t_ns = 12345;
    record_event(w, &e);
    record_close(&w);
    reader *r = open_reader();
    assert_int_equal(mark_number(r, 0)->t_ns, 12345);
    reader_close(&r);
}

static void call_is_pending_until_it_is_finished(void **state) {
    (void)state;
    writer *w = open_writer(0);
    struct event e = make_mark(1);
    e.status = RECORD_PENDING;
    e.aux = event_aux(99, 3);
    uint64_t seq = record_event(w, &e);
    reader *r = open_reader();
    assert_true(reader_event(r, seq, &found));
    assert_true(event_is_pending(&found.event));
    record_finish(w, seq, 719, 5000); /* the reader sees the file, not a copy of it */
    assert_true(reader_event(r, seq, &found));
    assert_int_equal(found.event.status, 719);
    assert_int_equal(event_duration_ns(&found.event),
                     event_duration_decode(event_duration_encode(5000)));
    assert_int_equal(event_fn(&found.event), 99);
    assert_int_equal(event_detail(&found.event), 3);
    assert_true(mark_is_whole(&found.event));
    record_finish_dst(w, seq, 0, 1, 0xabc);
    assert_true(reader_event(r, seq, &found));
    assert_int_equal(found.event.dst, 0xabc);
    assert_int_equal(found.event.status, 0);
    reader_close(&r);
    record_close(&w);
}

static void extras_come_with_their_event(void **state) {
    (void)state;
    writer *w = open_writer(1024);
    union event_slot s[1 + EVENT_EXTRA_MAX];
    /* Sizes that put groups across the ends of chunks and of the ring. */
    for (unsigned n = 0; n < 3000; n++) {
        unsigned extras = n % 8;
        s[0].event = make_mark(n);
        for (unsigned i = 1; i <= extras; i++)
            event_extra_init(&s[i], EXTRA_NODES, 6)[i % 6] = n + i;
        assert_true(record_events(w, s, 1 + extras) != RECORD_NONE);
    }
    s[0].event = make_mark(3000);
    for (unsigned i = 1; i <= EVENT_EXTRA_MAX; i++)
        event_extra_rows(&s[i], i, 2, 3, 4);
    record_events(w, s, 1 + EVENT_EXTRA_MAX);
    assert_true(record_events(w, s, 2 + EVENT_EXTRA_MAX) == RECORD_NONE);
    record_close(&w);

    reader *r = open_reader();
    struct reader_cursor c = reader_events(r, 0, UINT64_MAX);
    unsigned seen = 0;
    while (reader_next(&c, &found)) {
        if (found.event.kind != EVENT_MARK)
            continue;
        uint64_t n = found.event.dst;
        assert_true(mark_is_whole(&found.event));
        assert_false(found.extras_lost);
        assert_int_equal(found.extras, n == 3000 ? EVENT_EXTRA_MAX : n % 8);
        for (unsigned i = 1; i <= found.extras; i++) {
            assert_int_equal(found.extra[i - 1].word[n == 3000 ? 0 : i % 6], n == 3000 ? i : n + i);
            assert_int_equal(event_extra_index(&found.extra[i - 1]), i);
        }
        seen++;
    }
    assert_true(seen > 150);
    assert_int_equal(c.counts.torn, 0);
    assert_true(mark_number(r, seen - 1)->dst == 3000);
    assert_non_null(reader_extra(&found, EXTRA_ROWS));
    assert_null(reader_extra(&found, EXTRA_DIMS));
    reader_close(&r);
}

static void ring_keeps_the_newest_and_counts_the_rest(void **state) {
    (void)state;
    enum { N = 5000 };
    writer *w = open_writer(1000); /* rounded up to 1024 */
    uint64_t first = RECORD_NONE;
    uint32_t name = record_string(w, "kept for ever");
    for (uint64_t n = 0; n < N; n++) {
        struct event e = make_mark(n);
        e.name = name;
        uint64_t seq = record_event(w, &e);
        first = n ? first : seq;
    }
    record_finish(w, first, 1, 1); /* overwritten: must not touch its successor */
    record_close(&w);

    reader *r = open_reader();
    const struct reader_info *i = reader_info(r);
    assert_int_equal(i->capacity, 1024);
    assert_int_equal(i->end_seq, N + 2); /* and JOIN and END */
    assert_int_equal(i->overwritten, N + 2 - 1024);
    assert_int_equal(i->lost, 0);
    struct reader_cursor c = reader_events(r, 0, UINT64_MAX);
    assert_true(reader_next(&c, &found));
    assert_int_equal(found.event.kind, EVENT_LOST);
    assert_int_equal(event_detail(&found.event), DETAIL_LOSS_OVERWRITTEN);
    assert_int_equal(found.event.len, N + 2 - 1024);
    for (uint64_t n = N + 1 - 1024; n < N; n++) {
        assert_true(reader_next(&c, &found));
        assert_true(mark_is_whole(&found.event));
        assert_int_equal(found.event.dst, n);
        assert_int_equal(found.event.status, 0);
        assert_string_equal(reader_string(r, found.event.name), "kept for ever");
    }
    assert_true(reader_next(&c, &found));
    assert_int_equal(found.event.kind, EVENT_END);
    assert_false(reader_next(&c, &found));
    assert_int_equal(c.counts.whole, 1024);
    reader_close(&r);
}

/* A writer that was killed, or sleeps, in the middle of an event: its slot is not given away. */
static void slot_of_an_unfinished_event_is_not_overwritten(void **state) {
    (void)state;
    writer *w = open_writer(1024);
    struct event e = make_mark(0);
    uint64_t seq = record_event(w, &e);
    w->events[seq].event.ready = EVENT_BUSY | (seq + 1);
    unsigned lost = 0;
    for (uint64_t n = 1; n < 3 * 1024; n++) {
        e = make_mark(n);
        lost += record_event(w, &e) == RECORD_NONE;
    }
    assert_int_equal(lost, 2);
    assert_int_equal(record_lost(w), 2);
    record_close(&w);
    reader *r = open_reader();
    struct reader_cursor c = reader_events(r, 0, UINT64_MAX);
    while (reader_next(&c, &found))
        ;
    assert_int_equal(c.counts.torn, 1);
    assert_int_equal(c.counts.whole, 1023);
    reader_close(&r);
}

/* The late writer of a slot that a later turn of the ring has filled must leave it alone. */
static void late_writer_does_not_overwrite_its_successor(void **state) {
    (void)state;
    writer *w = open_writer(1024);
    struct event e = make_mark(1);
    for (int i = 0; i < 1100; i++)
        record_event(w, &e);
    uint64_t now = atomic_load(&w->h->next_seq);
    atomic_store(&w->h->next_seq, now - 1024); /* as if it had slept since then */
    e = make_mark(2);
    assert_true(record_event(w, &e) == RECORD_NONE);
    atomic_store(&w->h->next_seq, now);
    assert_int_equal(w->events[(now - 1024) & 1023].event.dst, 1);
    assert_int_equal(record_lost(w), 0 + 1);
    record_close(&w);
}

/* ---- strings and sites --------------------------------------------------------------------- */

static void same_text_has_one_number(void **state) {
    (void)state;
    writer *w = open_writer(0);
    uint32_t a = record_string(w, "a"), b = record_string(w, "b");
    assert_true(a && b && a != b);
    assert_int_equal(record_string(w, "a"), a);
    assert_int_equal(record_string_n(w, "abc", 1), a);
    assert_int_equal(record_string(w, NULL), 0);
    assert_int_equal(record_string(w, ""), 0);
    char eight[] = "12345678"; /* the text fills its 8-byte unit */
    uint32_t c = record_string(w, eight);
    char *giant = malloc(100001);
    memset(giant, 'x', 100000);
    giant[100000] = 0;
    uint32_t d = record_string(w, giant);
    assert_int_equal(record_string(w, giant), d);
    record_close(&w);

    reader *r = open_reader();
    assert_string_equal(reader_string(r, a), "a");
    assert_string_equal(reader_string(r, b), "b");
    assert_string_equal(reader_string(r, c), "12345678");
    assert_int_equal(strlen(reader_string(r, d)), RECORD_STRING_MAX);
    assert_string_equal(reader_string(r, 0), "");
    assert_string_equal(reader_string(r, 4000000000u), "?");
    reader_close(&r);
    free(giant);
}

enum { WORDS = 3000, THREADS = 8 };
static uint32_t numbers[THREADS][WORDS];

struct worker {
    writer *w;
    unsigned number;
};

static void *intern_words(void *arg) {
    struct worker *job = arg;
    char word[64];
    for (unsigned i = 0; i < WORDS; i++) {
        unsigned k = (i + job->number * 37) % WORDS;
        snprintf(word, sizeof word, "a rather long word with the number %u", k);
        numbers[job->number][k] = record_string(job->w, word);
    }
    return NULL;
}

static void run_workers(writer *w, void *(*f)(void *)) {
    pthread_t id[THREADS];
    struct worker job[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        job[i] = (struct worker){ w, i };
        assert_int_equal(pthread_create(&id[i], NULL, f, &job[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(id[i], NULL);
}

static void threads_agree_on_the_numbers_of_strings(void **state) {
    (void)state;
    char word[64];
    writer *w = open_writer(0);
    run_workers(w, intern_words);
    record_close(&w);
    reader *r = open_reader();
    for (unsigned k = 0; k < WORDS; k++) {
        snprintf(word, sizeof word, "a rather long word with the number %u", k);
        assert_string_equal(reader_string(r, numbers[0][k]), word);
        for (unsigned t = 1; t < THREADS; t++)
            assert_int_equal(numbers[t][k], numbers[0][k]);
    }
    assert_int_equal(reader_info(r)->lost_definitions, 0);
    reader_close(&r);
}

__attribute__((noinline)) static uint32_t site_of_caller(writer *w) {
    return record_site(w, __builtin_return_address(0));
}

__attribute__((noinline)) static uint32_t stack_of_caller(writer *w) {
    uint32_t id = record_site_full(w, __builtin_return_address(0));
    __asm__ volatile(""); /* no tail call */
    return id;
}

__attribute__((noinline)) static uint32_t between(writer *w) {
    uint32_t id = stack_of_caller(w);
    __asm__ volatile("");
    return id;
}

/* An unrolled loop would call from two places. */
#ifdef __clang__
#define NO_UNROLL _Pragma("clang loop unroll(disable)")
#else
#define NO_UNROLL
#endif

static void call_sites_are_told_apart(void **state) {
    (void)state;
    writer *w = open_writer(0);
    uint32_t a[2], b, direct, through[2];
    volatile int twice = 2;
    NO_UNROLL
    for (int i = 0; i < twice; i++)
        a[i] = site_of_caller(w);
    b = site_of_caller(w);
    direct = stack_of_caller(w);
    NO_UNROLL
    for (int i = 0; i < twice; i++)
        through[i] = between(w);
    assert_true(a[0] && b && direct && through[0]);
    assert_int_equal(a[0], a[1]);
    assert_int_not_equal(a[0], b);
    assert_int_equal(through[0], through[1]);
    assert_int_not_equal(direct, through[0]);
    assert_int_equal(record_site(w, NULL), 0);
    record_close(&w);

    reader *r = open_reader();
    unsigned count, longer;
    bool whole = true;
    const struct site_frame *f = reader_site(r, a[0], &count, &whole);
    assert_true(count >= 1);
    assert_true(whole);
    char self[512] = "";
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    assert_string_equal(reader_string(r, f[0].module), self);
    reader_site(r, direct, &count, &whole);
    assert_true(whole);
    reader_site(r, through[0], &longer, NULL);
    assert_int_equal(longer, count + 1);
    assert_null(reader_site(r, 100000, &count, NULL));
    assert_int_equal(count, 0);
    /* The module is there with its build id (the build links with --build-id). */
    uint64_t base = 0;
    bool has_id = false;
    for (uint32_t id = 1; id <= reader_count(r, DEFINITION_MODULE); id++) {
        const struct module_value *m = reader_module(r, id, &base);
        if (m && m->path == f[0].module)
            has_id = strlen(reader_string(r, m->build_id)) >= 16 && base;
    }
    assert_true(has_id);
    reader_close(&r);
}

static void streams_and_provenance_come_back(void **state) {
    (void)state;
    writer *w = open_writer(0);
    struct record_stream s = { 0xabc, 1, RECORD_STREAM_PER_THREAD, -2 };
    uint32_t one = record_stream(w, &s), two = record_stream(w, &s);
    assert_int_not_equal(one, two); /* handles are used again */
    record_provenance(w, "commit", "0123");
    record_provenance(w, "commit", "4567");
    record_provenance(w, "empty", "");
    record_close(&w);
    reader *r = open_reader();
    const struct stream_value *v = reader_stream(r, two);
    assert_int_equal(v->handle, 0xabc);
    assert_int_equal(v->device, 1);
    assert_int_equal(v->priority, -2);
    assert_int_equal(v->flags, RECORD_STREAM_PER_THREAD);
    assert_string_equal(reader_provenance_find(r, "commit"), "0123");
    assert_string_equal(reader_provenance_find(r, "empty"), "");
    assert_null(reader_provenance_find(r, "branch"));
    assert_int_equal(reader_count(r, DEFINITION_PROVENANCE), 3);
    reader_close(&r);
}

static const char *three_names(unsigned fn) {
    static const char *const names[] = { "hipOne", "hipTwo", "hipThree" };
    return names[fn];
}

static void functions_are_named_by_the_recording(void **state) {
    (void)state;
    struct record_options o = { .path = record_file, .fn_count = 3, .fn_name = three_names };
    writer *w;
    assert_int_equal(record_open(&w, &o, NULL), RC_OK);
    record_close(&w);
    reader *r = open_reader();
    assert_string_equal(reader_function(r, 0), "hipOne");
    assert_string_equal(reader_function(r, 2), "hipThree");
    assert_string_equal(reader_function(r, 3), "?");
    reader_close(&r);
}

static const char *wild_name(unsigned fn) {
    (void)fn;
    return "hip\x1b[2J\x07\nclean\tone\x9b";
}

static void names_of_functions_have_no_control_characters(void **state) {
    (void)state;
    struct record_options o = { .path = record_file, .fn_count = 1, .fn_name = wild_name };
    writer *w;
    assert_int_equal(record_open(&w, &o, NULL), RC_OK);
    record_close(&w);
    reader *r = open_reader();
    assert_string_equal(reader_function(r, 0), "hip?[2J??clean?one?");
    reader_close(&r);
}

/* ---- threads and signals ------------------------------------------------------------------- */

enum { EACH = 20000 };

static void *record_marks(void *arg) {
    struct worker *job = arg;
    for (uint64_t n = 0; n < EACH; n++) {
        struct event e = make_mark((uint64_t)job->number << 32 | n);
        record_event(job->w, &e);
    }
    return NULL;
}

static void eight_threads_lose_nothing(void **state) {
    (void)state;
    uint64_t next[THREADS] = { 0 }, last = 0;
    uint32_t thread[THREADS] = { 0 };
    writer *w = open_writer(0);
    run_workers(w, record_marks);
    record_close(&w);
    reader *r = open_reader();
    struct reader_cursor c = reader_events(r, 0, UINT64_MAX);
    while (reader_next(&c, &found)) {
        assert_true(found.seq >= last);
        last = found.seq;
        if (found.event.kind != EVENT_MARK)
            continue;
        unsigned t = (unsigned)(found.event.dst >> 32);
        assert_true(mark_is_whole(&found.event) && t < THREADS);
        assert_int_equal(found.event.dst & 0xffffffff, next[t]++);
        thread[t] = thread[t] ? thread[t] : found.event.thread;
        assert_int_equal(thread[t], found.event.thread);
    }
    for (unsigned t = 0; t < THREADS; t++)
        assert_int_equal(next[t], EACH);
    for (unsigned t = 1; t < THREADS; t++)
        assert_int_not_equal(thread[t], thread[t - 1]);
    assert_int_equal(c.counts.torn + c.counts.lost, 0);
    assert_int_equal(reader_info(r)->end_seq, THREADS * EACH + 2);
    reader_close(&r);
}

/* With a ring much smaller than what is in flight, whatever is left must still be whole. */
static void eight_threads_in_a_small_ring_tear_nothing(void **state) {
    (void)state;
    writer *w = open_writer(1024);
    run_workers(w, record_marks);
    uint64_t lost = record_lost(w);
    record_close(&w);
    reader *r = open_reader();
    struct reader_cursor c = reader_events(r, 0, UINT64_MAX);
    while (reader_next(&c, &found))
        if (found.event.kind == EVENT_MARK)
            assert_true(mark_is_whole(&found.event));
    assert_true(c.counts.whole + lost >= 1024);
    assert_int_equal(c.counts.overwritten, THREADS * EACH + 2 - 1024);
    reader_close(&r);
}

static writer *volatile handler_writer;
static volatile uint64_t handled;

static void record_in_handler(int signal) {
    (void)signal;
    struct event e = make_mark(1ull << 40 | handled);
    e.site = record_site(handler_writer, (void *)(uintptr_t)record_in_handler);
    e.name = record_string(handler_writer, "in a handler");
    if (record_event(handler_writer, &e) != RECORD_NONE)
        handled++;
}

static void signal_handlers_may_record(void **state) {
    (void)state;
    struct sigaction action = { .sa_handler = record_in_handler, .sa_flags = SA_RESTART }, before;
    struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { { 0, 0 }, { 0, 0 } };
    char word[32];
    writer *w = open_writer(0);
    handler_writer = w;
    handled = 0;
    sigaction(SIGALRM, &action, &before);
    setitimer(ITIMER_REAL, &often, NULL);
    uint64_t n = 0;
    for (; n < 200000; n++) {
        struct event e = make_mark(n);
        if (n % 50 == 0) {
            snprintf(word, sizeof word, "word %u", (unsigned)n);
            e.name = record_string(w, word);
        }
        assert_true(record_event(w, &e) != RECORD_NONE);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
    record_close(&w);
    reader *r = open_reader();
    uint64_t mine = 0, handlers = 0;
    struct reader_cursor c = reader_events(r, 0, UINT64_MAX);
    while (reader_next(&c, &found))
        if (found.event.kind == EVENT_MARK) {
            assert_true(mark_is_whole(&found.event));
            *(found.event.dst >> 40 ? &handlers : &mine) += 1;
        }
    assert_int_equal(mine, n);
    assert_int_equal(handlers, handled);
    assert_true(handlers > 0);
    assert_int_equal(c.counts.torn, 0);
    reader_close(&r);
}

static void errno_stays_as_it_was(void **state) {
    (void)state;
    writer *w = open_writer(0);
    errno = 1234;
    for (uint64_t n = 0; n < 20000; n++) { /* several chunks */
        struct event e = make_mark(n);
        record_event(w, &e);
    }
    record_site_full(w, NULL);
    record_string(w, "text");
    assert_int_equal(errno, 1234);
    record_close(&w);
}

static void no_writer_is_no_harm(void **state) {
    (void)state;
    struct event e = make_mark(1);
    union event_slot s = { .event = e };
    writer *none = NULL;
    assert_true(record_event(NULL, &e) == RECORD_NONE);
    assert_true(record_events(NULL, &s, 1) == RECORD_NONE);
    record_finish(NULL, 1, 0, 0);
    record_end(NULL);
    record_close(NULL);
    record_close(&none);
    record_provenance(NULL, "a", "b");
    assert_int_equal(record_string(NULL, "a"), 0);
    assert_int_equal(record_site(NULL, &e), 0);
    assert_int_equal(record_site_full(NULL, &e), 0);
    assert_int_equal(record_stream(NULL, &(struct record_stream){ 0 }), 0);
    assert_int_equal(record_thread(NULL), 0);
}

static void two_writers_do_not_mix(void **state) {
    (void)state;
    char second[300];
    snprintf(second, sizeof second, "%s.2", record_file);
    struct record_options o = { .path = second };
    writer *a = open_writer(0), *b;
    assert_int_equal(record_open(&b, &o, NULL), RC_OK);
    for (uint64_t n = 0; n < 100; n++) {
        struct event e = make_mark(n);
        record_event(n % 2 ? a : b, &e);
    }
    record_close(&a);
    record_close(&b);
    reader *r = open_reader();
    assert_int_equal(reader_count(r, DEFINITION_THREAD), 1);
    assert_int_equal(reader_info(r)->end_seq, 52);
    assert_int_equal(mark_number(r, 0)->dst, 1);
    reader_close(&r);
    unlink(second);
}

/* ---- when the file cannot grow ------------------------------------------------------------- */

/* Marks until the limit is hit for sure, then checks that the books balance. */
static void fill(writer *w, uint64_t n) {
    char word[32];
    for (uint64_t i = 0; i < n; i++) {
        struct event e = make_mark(i);
        snprintf(word, sizeof word, "%u", (unsigned)i);
        if (i % 16 == 0)
            e.name = record_string(w, word);
        record_event(w, &e);
    }
}

static void file_size_limit(void *arg) {
    (void)arg;
    struct rlimit limit;
    child_assert(!getrlimit(RLIMIT_FSIZE, &limit));
    limit.rlim_cur = 1000000;
    child_assert(!setrlimit(RLIMIT_FSIZE, &limit)); /* and SIGXFSZ at its default: death */
    writer *w = open_writer(0);
    fill(w, 100000);
    child_assert(record_lost(w) > 50000);
    limit.rlim_cur = limit.rlim_max;
    child_assert(!setrlimit(RLIMIT_FSIZE, &limit));
    usleep(150000); /* it asks again after a tenth of a second */
    uint64_t before = record_lost(w);
    fill(w, 10000);
    child_assert(record_lost(w) == before);
    record_close(&w);
}

static void full_disk_loses_events_and_nothing_else(void **state) {
    (void)state;
    in_child(file_size_limit, NULL);
    reader *r = open_reader();
    struct reader_cursor c = reader_events(r, 0, UINT64_MAX);
    while (reader_next(&c, &found))
        if (found.event.kind == EVENT_MARK)
            assert_true(mark_is_whole(&found.event));
    const struct reader_info *i = reader_info(r);
    assert_int_equal(c.counts.whole + i->lost, i->end_seq);
    assert_true(i->lost > 50000);
    assert_true(i->lost_definitions > 0);
    assert_true(i->clean);
    reader_close(&r);
}

static void no_room_for_the_first_chunk(void *arg) {
    (void)arg;
    struct rlimit limit = { 300000, 300000 };
    struct err e = { 0 };
    writer *w = NULL;
    struct record_options o = { .path = record_file };
    child_assert(!setrlimit(RLIMIT_FSIZE, &limit));
    child_assert(record_open(&w, &o, &e) == RC_IO);
    child_assert(!w && strstr(e.msg, "no room"));
    child_assert(access(record_file, F_OK));
}

static void recording_that_cannot_start_leaves_nothing_behind(void **state) {
    (void)state;
    char name[300];
    in_child(no_room_for_the_first_chunk, NULL);
    snprintf(name, sizeof name, "%s.new.", record_file);
    char command[400];
    snprintf(command, sizeof command, "ls %s* >/dev/null 2>&1", name);
    assert_int_not_equal(system(command), 0);
}

/* A file system that is really full, where the kernel lets us mount one. */
static void tiny_file_system(void *arg) {
    int *copy = arg;
    char dir[300];
    snprintf(dir, sizeof dir, "%s.dir", record_file);
    child_assert(!mkdir(dir, 0700));
    if (unshare(CLONE_NEWNS) && unshare(CLONE_NEWUSER | CLONE_NEWNS))
        _exit(rmdir(dir) ? 1 : 0);
    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
    if (mount("none", dir, "tmpfs", 0, "size=2m"))
        _exit(rmdir(dir) ? 1 : 0);
    snprintf(record_file, sizeof record_file, "%.*s/r.gcr", 240, dir);
    writer *w = open_writer(0);
    fill(w, 100000);
    child_assert(record_lost(w) > 50000);
    record_close(&w);
    char bytes[1 << 16];
    int in = open(record_file, O_RDONLY);
    ssize_t n;
    while ((n = read(in, bytes, sizeof bytes)) > 0)
        child_assert(write(*copy, bytes, (size_t)n) == n);
    child_assert(n == 0);
    umount(dir);
    rmdir(dir);
}

static void full_file_system_is_no_sigbus(void **state) {
    (void)state;
    char dir[300];
    int copy = open(record_file, O_RDWR | O_CREAT, 0600);
    in_child(tiny_file_system, &copy);
    snprintf(dir, sizeof dir, "%s.dir", record_file);
    rmdir(dir);
    struct stat st;
    assert_int_equal(fstat(copy, &st), 0);
    close(copy);
    if (!st.st_size)
        skip(); /* no right to mount */
    reader *r = open_reader();
    struct reader_cursor c = reader_events(r, 0, UINT64_MAX);
    while (reader_next(&c, &found))
        ;
    assert_int_equal(c.counts.whole + reader_info(r)->lost, reader_info(r)->end_seq);
    reader_close(&r);
}

/* ---- descriptors --------------------------------------------------------------------------- */

static void close_everything(void *arg) {
    writer *w = arg;
    int stolen = open("/dev/zero", O_RDONLY);
    for (int fd = 3; fd < 4096; fd++)
        if (fd != stolen)
            close(fd);
    fill(w, 20000);
    child_assert(!record_lost(w));
    int fd = atomic_load(&w->fd);
    child_assert(dup2(stolen, fd) == fd); /* the program uses the number for a file of its own */
    fill(w, 20000);
    child_assert(!record_lost(w));
    child_assert(atomic_load(&w->fd) != fd);
    record_close(&w);
}

static void descriptor_closed_by_the_program_is_opened_again(void **state) {
    (void)state;
    writer *w = open_writer(0);
    assert_true(atomic_load(&w->fd) > 100); /* out of the program's way */
    in_child(close_everything, w);
    record_close(&w);
    reader *r = open_reader();
    assert_int_equal(reader_info(r)->lost, 0);
    assert_true(reader_info(r)->end_seq > 40000);
    reader_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        record_test(event_comes_back_as_written),
        record_test(given_time_is_kept),
        record_test(call_is_pending_until_it_is_finished),
        record_test(extras_come_with_their_event),
        record_test(ring_keeps_the_newest_and_counts_the_rest),
        record_test(slot_of_an_unfinished_event_is_not_overwritten),
        record_test(late_writer_does_not_overwrite_its_successor),
        record_test(same_text_has_one_number),
        record_test(threads_agree_on_the_numbers_of_strings),
        record_test(call_sites_are_told_apart),
        record_test(streams_and_provenance_come_back),
        record_test(functions_are_named_by_the_recording),
        record_test(names_of_functions_have_no_control_characters),
        record_test(eight_threads_lose_nothing),
        record_test(eight_threads_in_a_small_ring_tear_nothing),
        record_test(signal_handlers_may_record),
        record_test(errno_stays_as_it_was),
        record_test(no_writer_is_no_harm),
        record_test(two_writers_do_not_mix),
        record_test(full_disk_loses_events_and_nothing_else),
        record_test(recording_that_cannot_start_leaves_nothing_behind),
        record_test(full_file_system_is_no_sigbus),
        record_test(descriptor_closed_by_the_program_is_opened_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
