/* Death at any moment: what was recorded until then is there, whole and in order. */
#include "unit/test_record.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <time.h>

static struct reader_event found;

enum { KILLS = 30, THREADS = 2, EXTRAS = 2 };

static writer *victim_writer;

/* Everything a recorder does, as fast as it can: events, extras, completions, new strings. */
static void *record_for_ever(void *arg) {
    uint64_t who = (uint64_t)(uintptr_t)arg << 32;
    char word[32];
    for (uint64_t n = 0;; n++) {
        union event_slot s[1 + EXTRAS];
        s[0].event = make_mark(who | n);
        s[0].event.status = RECORD_PENDING;
        if (n % 64 == 0) {
            snprintf(word, sizeof word, "word %llu", (unsigned long long)(who | n));
            s[0].event.name = record_string(victim_writer, word);
        }
        unsigned extras = n % (EXTRAS + 1);
        for (unsigned i = 1; i <= extras; i++)
            event_extra_init(&s[i], EXTRA_NODES, 1)[0] = who | n;
        uint64_t seq = record_events(victim_writer, s, 1 + extras);
        if (n % 2)
            record_finish(victim_writer, seq, 0, n);
    }
    return NULL;
}

static void be_the_victim(uint64_t ring) {
    pthread_t id;
    victim_writer = open_writer(ring);
    for (uintptr_t i = 1; i < THREADS; i++)
        if (pthread_create(&id, NULL, record_for_ever, (void *)i))
            _exit(1);
    record_for_ever(NULL);
}

/* Lets a child record for that long, then kills it. */
static void kill_after(uint64_t ring, long microseconds) {
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid)
        be_the_victim(ring);
    /* The file appears whole, under its name, in one step. */
    while (access(record_file, F_OK)) {
        assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
        nanosleep(&(struct timespec){ 0, 20000 }, NULL);
    }
    nanosleep(&(struct timespec){ 0, microseconds * 1000 }, NULL);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
}

static void check_history(bool from_the_start) {
    uint64_t next[THREADS] = { 0 }, last = 0;
    bool first = true;
    reader *r = open_reader();
    struct reader_cursor c = reader_events(r, 0, UINT64_MAX);
    while (reader_next(&c, &found)) {
        assert_true(first || found.seq > last);
        last = found.seq;
        first = false;
        if (found.event.kind != EVENT_MARK)
            continue;
        unsigned who = (unsigned)(found.event.dst >> 32);
        uint64_t n = found.event.dst & 0xffffffff;
        assert_true(mark_is_whole(&found.event) && who < THREADS);
        /* A small ring loses events while the thread that has a slot in hand sleeps. */
        assert_true(next[who] == n || (!from_the_start && next[who] < n));
        next[who] = n + 1;
        if (from_the_start)
            assert_int_equal(found.extras, n % (EXTRAS + 1));
        assert_true(found.extras == n % (EXTRAS + 1) || found.extras_lost || !found.extras);
        for (unsigned i = 0; i < found.extras; i++)
            assert_int_equal(found.extra[i].word[0], found.event.dst);
        assert_non_null(reader_thread(r, found.event.thread));
        if (n % 64 == 0) {
            char word[32];
            snprintf(word, sizeof word, "word %llu", (unsigned long long)found.event.dst);
            assert_string_equal(reader_string(r, found.event.name), word);
        }
    }
    /* At most what each thread had in hand. */
    assert_true(c.counts.torn <= THREADS * (1 + EXTRAS));
    assert_int_equal(c.counts.lost + c.counts.truncated, 0);
    assert_false(reader_info(r)->clean);
    assert_true(reader_info(r)->start_ns > 0);
    reader_close(&r);
}

/* ---- every instruction --------------------------------------------------------------------- */

enum { STEPS_MAX = 200000 };

/* Records one event with extras and completes it, between two stops. */
static void be_stepped(void) {
    union event_slot s[1 + EXTRAS];
    struct event warm = make_mark(0);
    record_event(victim_writer, &warm);
    s[0].event = make_mark(1);
    s[0].event.status = RECORD_PENDING;
    s[0].event.t_ns = 1; /* no clock: that may be a system call */
    for (unsigned i = 1; i <= EXTRAS; i++)
        event_extra_init(&s[i], EXTRA_NODES, 1)[0] = i;
    raise(SIGSTOP);
    uint64_t seq = record_events(victim_writer, s, 1 + EXTRAS);
    record_finish_dst(victim_writer, seq, 5, 77, 1);
    raise(SIGSTOP);
    _exit(0);
}

/* What a reader finds if the writer dies now. Adds to *pending or *finished if the event is there.
 */
static void look(unsigned *pending, unsigned *finished) {
    reader *r = open_reader();
    struct reader_cursor c = reader_events(r, 0, UINT64_MAX);
    while (reader_next(&c, &found)) {
        assert_non_null(event_info(found.event.kind)->text);
        if (found.event.kind != EVENT_MARK)
            continue;
        assert_true(mark_is_whole(&found.event));
        if (found.event.dst == 0)
            continue;
        assert_int_equal(found.extras, EXTRAS);
        for (unsigned i = 0; i < EXTRAS; i++)
            assert_int_equal(found.extra[i].word[0], i + 1);
        if (event_is_pending(&found.event)) {
            assert_int_equal(event_duration_ns(&found.event), 0);
            ++*pending;
        } else {
            assert_int_equal(found.event.status, 5);
            assert_int_equal(event_duration_ns(&found.event), 77);
            ++*finished;
        }
    }
    assert_true(c.counts.torn <= 1 + EXTRAS);
    reader_close(&r);
}

static void every_instruction_is_a_good_one_to_die_at(void **state) {
    (void)state;
    int status;
    unsigned pending = 0, finished = 0, steps = 0;
    uint64_t before = 0;
    victim_writer = open_writer(1024);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
            _exit(77);
        be_stepped();
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip(); /* no right to trace */
    assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    before = record_count(victim_writer);
    do {
        assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSTOPPED(status) && ++steps < STEPS_MAX);
        if (record_count(victim_writer) > before) /* it has claimed its slots */
            look(&pending, &finished);
    } while (WSTOPSIG(status) == SIGTRAP && finished < 50);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    record_close(&victim_writer);
    assert_true(pending > 10 && finished > 5);
}

static long random_microseconds(unsigned *seed, long limit) {
    *seed = *seed * 1103515245u + 12345u;
    return (long)((*seed >> 8) % (unsigned long)limit);
}

static void killed_at_random_moments(void **state) {
    (void)state;
    unsigned seed = (unsigned)time(NULL);
    print_message("seed %u\n", seed);
    for (int i = 0; i < KILLS; i++) {
        /* Half of the deaths in the first moments, when the file is being set up and grows. */
        kill_after(0, random_microseconds(&seed, i % 2 ? 2000 : 30000));
        check_history(true);
        unlink(record_file);
    }
}

static void killed_while_the_ring_goes_round(void **state) {
    (void)state;
    unsigned seed = (unsigned)time(NULL) ^ 0x5555;
    print_message("seed %u\n", seed);
    for (int i = 0; i < 10; i++) {
        kill_after(4096, random_microseconds(&seed, 30000));
        check_history(false);
        unlink(record_file);
    }
}

/* The survivor goes on in a file that another process was killed in. */
static void parent_goes_on_after_its_child_was_killed(void **state) {
    (void)state;
    int status;
    writer *w = open_writer(0);
    for (int i = 0; i < 10; i++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (!pid) {
            victim_writer = w;
            record_for_ever(NULL);
        }
        for (uint64_t before = record_count(w); record_count(w) == before;)
            sched_yield(); /* until the child is at it */
        for (uint64_t n = 0; n < 5000; n++) {
            struct event e = make_mark(1ull << 40 | n);
            e.name = record_string(w, "the parent's");
            assert_true(record_event(w, &e) != RECORD_NONE);
        }
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
    }
    record_close(&w);
    reader *r = open_reader();
    uint64_t parents = 0;
    struct reader_cursor c = reader_events(r, 0, UINT64_MAX);
    while (reader_next(&c, &found))
        if (found.event.kind == EVENT_MARK) {
            assert_true(mark_is_whole(&found.event));
            parents += found.event.dst >> 40;
        }
    assert_int_equal(parents, 50000);
    assert_true(c.counts.torn <= 10 * (1 + EXTRAS));
    assert_int_equal(reader_info(r)->ended, 1);
    assert_false(reader_info(r)->clean);
    reader_close(&r);
}

/* A recording can be read while it is being written. */
static void live_recording_can_be_read(void **state) {
    (void)state;
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid)
        be_the_victim(4096);
    while (access(record_file, F_OK))
        nanosleep(&(struct timespec){ 0, 20000 }, NULL);
    for (int i = 0; i < 50; i++) {
        uint64_t last = 0;
        reader *r = open_reader();
        struct reader_cursor c = reader_events(r, 0, UINT64_MAX);
        while (reader_next(&c, &found)) {
            assert_true(found.seq >= last);
            last = found.seq;
            if (found.event.kind == EVENT_MARK)
                assert_true(mark_is_whole(&found.event));
        }
        reader_close(&r);
    }
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    check_history(false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        record_test(every_instruction_is_a_good_one_to_die_at),
        record_test(killed_at_random_moments),
        record_test(killed_while_the_ring_goes_round),
        record_test(parent_goes_on_after_its_child_was_killed),
        record_test(live_recording_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
