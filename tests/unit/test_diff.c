/* diff: what makes two recordings different, and where it is said to begin. */
#include <pthread.h>

#include "diff/diff.h"
#include "diff/diff_words.h"
#include "unit/test_report.h"

static char other_file[300];

/* A run of one thread: addresses begin at base; change and at say what is different, and where. */
struct run {
    uint64_t base;
    char change;
    unsigned at;
};

enum { STEPS = 50 };

static void write_copy(writer *w, uint64_t src, uint64_t bytes, const char *name, uint32_t stream,
                       unsigned status) {
    sample_event(w,
                 (struct event){ .kind = EVENT_COPY,
                                 .dst = 0x7000 + src % 97,
                                 .src = src,
                                 .len = bytes,
                                 .stream = stream,
                                 .name = record_string(w, name),
                                 .aux = event_aux(HIP_FN_hipMemcpyAsync, DETAIL_COPY_KIND_D2H) },
                 status);
}

static void write_step(writer *w, const struct run *r, unsigned i, const uint32_t *stream) {
    char change = i == r->at ? r->change : 0;
    uint64_t a = r->base, b = r->base + 0x10000;
    if (change == 'd')
        return;
    if (change == 'i')
        write_copy(w, a, 4, "extra", stream[0], 0);
    for (unsigned polls = r->base >> 40; polls; polls--) /* as many as chance wills */
        sample_event(
            w,
            (struct event){ .kind = EVENT_SYNC,
                            .stream = stream[0],
                            .aux = event_aux(HIP_FN_hipStreamQuery, DETAIL_SCOPE_STREAM_QUERY) },
            hipErrorNotReady);
    write_copy(w, (change == 'm' ? b : a) + (change == 'o' ? 64 : 0), change == 's' ? 8 : 4 + i,
               change == 'n' ? "other" : "logits", stream[change == 't'],
               change == 'e' ? hipErrorIllegalAddress : 0);
}

/* A launch whose arguments are hashed, addresses and all. */
static void write_launch(writer *w, uint64_t base, uint32_t stream) {
    union event_slot s[3] = { { .event = { .kind = EVENT_LAUNCH,
                                           .dst = base ^ 0x55,
                                           .stream = stream,
                                           .name = record_string(w, "rope"),
                                           .aux = event_aux(HIP_FN_hipModuleLaunchKernel, 0) } } };
    event_extra_dims(&s[1],
                     &(struct event_dims){ { 1, 1, 1 }, { 64, 1, 1 }, 0, base >> 8 << 32 | 1 });
    event_extra_args(&s[2], &(struct event_arg){ base + 16, 0, EVENT_ARG_READ }, 1);
    record_events(w, s, 3);
}

static void write_run(const char *path, const struct run *r) {
    writer *w = sample_writer_at(path);
    record_provenance(w, "greta.commit", r->change ? "bbb" : "aaa");
    uint32_t stream[2];
    for (int i = 0; i < 2; i++)
        stream[i] = record_stream(w, &(struct record_stream){ .handle = r->base + (unsigned)i });
    sample_alloc(w, r->base, 4096, "");
    sample_alloc(w, r->base + 0x10000, 4096, "");
    write_copy(w, r->base, 1, "x", stream[0], 0);
    write_copy(w, r->base, 1, "x", stream[1], 0);
    for (unsigned i = 0; i < STEPS; i++)
        write_step(w, r, i, stream);
    write_launch(w, r->base, stream[0]);
    record_close(&w);
}

static diff *open_diff(reader **a, reader **b) {
    struct err e = { 0 };
    diff *d = NULL;
    *a = open_reader();
    assert_int_equal(reader_open(b, other_file, &e), RC_OK);
    assert_int_equal(diff_open(&d, *a, *b, &e), RC_OK);
    /* Nothing of it is the readers'. */
    reader_close(a);
    reader_close(b);
    return d;
}

/* The difference between a plain run and one with a change at step 20. */
static diff *compare_with(char change) {
    reader *a, *b;
    snprintf(other_file, sizeof other_file, "%s.other", record_file);
    write_run(record_file, &(struct run){ .base = 0x10000000000 });
    write_run(other_file, &(struct run){ .base = 0x35000000000, .change = change, .at = 20 });
    diff *d = open_diff(&a, &b);
    unlink(other_file);
    return d;
}

static void addresses_times_and_polls_do_not_matter(void **state) {
    (void)state;
    diff *d = compare_with(0);
    assert_true(d->same);
    assert_null(d->first);
    assert_int_equal(d->lane_count, 1);
    assert_int_equal(d->lanes[0].events_a, STEPS + 5);
    assert_int_equal(d->lanes[0].events_b, STEPS + 5);
    assert_int_equal(d->lanes[0].only_a + d->lanes[0].only_b, 0);
    assert_int_equal(d->fact_count, 0);
    diff_close(&d);
    assert_null(d);
}

static void assert_changed(char change, const char *label, const char *a, const char *b) {
    diff *d = compare_with(change);
    assert_false(d->same);
    assert_non_null(d->first);
    const struct diff_place *p = &d->first->first;
    assert_int_equal(p->change, DIFF_CHANGED);
    assert_int_equal(d->first->common, 24);
    assert_int_equal(d->first->only_a, 1);
    assert_int_equal(d->first->only_b, 1);
    bool found = false;
    for (size_t i = 0; i < p->field_count; i++)
        found |= !strcmp(p->fields[i].label, label) && !strcmp(p->fields[i].a, a) &&
                 !strcmp(p->fields[i].b, b);
    if (!found)
        fail_msg("%c: no field %s", change, label);
    assert_int_equal(p->field_count, 1);
    diff_close(&d);
}

static void every_word_of_an_event_counts(void **state) {
    (void)state;
    assert_changed('s', "bytes", "24", "8");
    assert_changed('o', "src offset", "0", "64");
    assert_changed('m', "src memory", "1", "2");
    assert_changed('n', "tensor", "logits", "other");
    assert_changed('t', "stream", "1", "2");
    assert_changed('e', "result", "hipSuccess", "hipErrorIllegalAddress");
}

static void missing_and_added_events_are_told_from_changed_ones(void **state) {
    (void)state;
    diff *d = compare_with('d');
    assert_int_equal(d->first->first.change, DIFF_ONLY_A);
    assert_int_equal(d->first->common, 24);
    assert_int_equal(d->first->only_a, 1);
    assert_int_equal(d->first->only_b, 0);
    assert_true(d->first->aligned);
    assert_non_null(strstr(d->first->first.text_a, "bytes=24"));
    diff_close(&d);
    d = compare_with('i');
    assert_int_equal(d->first->first.change, DIFF_ONLY_B);
    assert_int_equal(d->first->only_a, 0);
    assert_int_equal(d->first->only_b, 1);
    assert_non_null(strstr(d->first->first.text_b, "tensor=extra"));
    assert_non_null(strstr(d->first->first.text_before, "bytes=23"));
    diff_close(&d);
}

static void provenance_is_compared_but_does_not_decide(void **state) {
    (void)state;
    diff *d = compare_with('s');
    assert_int_equal(d->fact_count, 1);
    assert_string_equal(d->facts[0].key, "greta.commit");
    assert_string_equal(d->facts[0].a, "aaa");
    assert_string_equal(d->facts[0].b, "bbb");
    diff_close(&d);
}

/* ---- several threads ------------------------------------------------------------------------ */

struct job {
    writer *w;
    uint64_t bytes;
    unsigned count;
};

static void *run_job(void *user) {
    const struct job *job = user;
    for (unsigned i = 0; i < job->count; i++)
        write_copy(job->w, 0x100, job->bytes + i, "x", 0, 0);
    return NULL;
}

/* Runs the jobs one after the other, each in a thread of its own. */
static void write_threads(const char *path, const struct job *jobs, unsigned count) {
    writer *w = sample_writer_at(path);
    for (unsigned i = 0; i < count; i++) {
        struct job job = jobs[i];
        pthread_t thread;
        job.w = w;
        assert_int_equal(pthread_create(&thread, NULL, run_job, &job), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    record_close(&w);
}

static void threads_are_paired_by_what_they_do(void **state) {
    (void)state;
    reader *a, *b;
    snprintf(other_file, sizeof other_file, "%s.other", record_file);
    write_threads(record_file,
                  (struct job[]){ { .bytes = 100, .count = 5 }, { .bytes = 900, .count = 6 } }, 2);
    write_threads(other_file,
                  (struct job[]){ { .bytes = 900, .count = 6 }, { .bytes = 100, .count = 5 } }, 2);
    diff *d = open_diff(&a, &b);
    assert_true(d->same);
    assert_int_equal(d->lane_count, 2);
    diff_close(&d);
    unlink(other_file);
    write_threads(other_file,
                  (struct job[]){ { .bytes = 900, .count = 3 },
                                  { .bytes = 100, .count = 5 },
                                  { .bytes = 7, .count = 1 } },
                  3);
    d = open_diff(&a, &b);
    assert_false(d->same);
    assert_int_equal(d->lane_count, 3);
    assert_int_equal(d->first->events_a, 6);
    assert_int_equal(d->first->events_b, 3);
    assert_int_equal(d->first->first.change, DIFF_ONLY_A);
    assert_int_equal(d->first->first.b, EVENT_NO_SEQ);
    assert_int_equal(d->lanes[2].thread_a, 0); /* only B has it */
    diff_close(&d);
    unlink(other_file);
}

/* ---- output --------------------------------------------------------------------------------- */

static void reports_say_where_and_what(void **state) {
    (void)state;
    char *text = NULL;
    size_t size = 0;
    struct err e = { 0 };
    diff *d = compare_with('s');
    FILE *out = open_memstream(&text, &size);
    diff_text(out, d, "a.gcr", "b.gcr");
    fclose(out);
    assert_ptr_equal(strstr(text, "first difference: thread "), text);
    assert_non_null(strstr(text, "after 24 common events"));
    assert_non_null(strstr(text, "\n  bytes: A 24, B 8\n"));
    assert_non_null(strstr(text, "54 events common, 1 only in A, 1 only in B"));
    assert_non_null(strstr(text, "greta.commit: A aaa, B bbb"));
    free(text);
    out = open_memstream(&text, &size);
    assert_int_equal(diff_json(out, d, "a.gcr", "b.gcr", &e), RC_OK);
    fclose(out);
    assert_non_null(strstr(text, "\"same\": false"));
    assert_non_null(strstr(text, "\"change\": \"changed\""));
    assert_non_null(strstr(text, "\"field\": \"bytes\""));
    free(text);
    diff_close(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        record_test(addresses_times_and_polls_do_not_matter),
        record_test(every_word_of_an_event_counts),
        record_test(missing_and_added_events_are_told_from_changed_ones),
        record_test(provenance_is_compared_but_does_not_decide),
        record_test(threads_are_paired_by_what_they_do),
        record_test(reports_say_where_and_what),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
