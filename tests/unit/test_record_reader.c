/* Reading files that cannot be trusted: cut, damaged and hostile ones. */
#include "unit/test_record.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "record/format.h"
#include "record/layout.h"

static struct reader_event found;
static FILE *sink; /* takes the text of all that is read */

/* A small recording with something of everything. */
static void write_sample(void) {
    writer *w = open_writer(1024);
    uint32_t name = record_string(w, "tensor with a longer name");
    record_provenance(w, "commit", "0123456789abcdef");
    uint32_t stream = record_stream(w, &(struct record_stream){ .handle = 0x1234 });
    for (uint64_t n = 0; n < 1500; n++) {
        union event_slot s[4] = { { .event = make_mark(n) } };
        s[0].event.name = name;
        s[0].event.stream = stream;
        s[0].event.site =
            n % 2 ? record_site(w, __builtin_return_address(0)) : record_site_full(w, NULL);
        event_extra_dims(&s[1], &(struct event_dims){ { 1, 2, 3 }, { 4, 5, 6 }, 7, 0 });
        event_extra_args(&s[2], &(struct event_arg){ n, 1, 1 }, 1);
        event_extra_accesses(&s[3], &(struct event_access){ n, 8, 1, 2 }, 1);
        record_events(w, s, 1 + (unsigned)(n % 4));
    }
    record_close(&w);
}

/* Reads all there is, in every way. Returns the number of whole events. */
static uint64_t read_all(const char *path) {
    struct err e = { 0 };
    reader *r = NULL;
    enum rc rc = reader_open(&r, path, &e);
    if (rc != RC_OK) {
        assert_null(r);
        assert_true(rc == RC_FORMAT || rc == RC_IO);
        assert_true(strstr(e.msg, path) != NULL);
        return 0;
    }
    uint64_t last = 0, slots = 0;
    struct reader_cursor c = reader_events(r, 0, UINT64_MAX);
    struct json j = json_begin(sink, 0);
    json_array_open(&j, NULL);
    while (reader_next(&c, &found)) {
        assert_true(found.seq >= last);
        last = found.seq;
        if (slots++ < 50) { /* the rest is the same, and this is done thousands of times */
            format_event(sink, r, &found);
            format_event_json(&j, r, &found);
        }
        assert_true(found.extras <= EVENT_EXTRA_MAX);
    }
    json_array_close(&j);
    const struct reader_info *i = reader_info(r);
    assert_int_equal(c.counts.whole + c.counts.extras + c.counts.torn + c.counts.lost +
                         c.counts.truncated + c.counts.overwritten,
                     i->end_seq);
    for (int kind = 0; kind < DEFINITION_KINDS; kind++) {
        uint32_t count = reader_count(r, (enum definition_kind)kind);
        for (uint32_t id = 0; id <= count + 1 && id < 200; id++) {
            unsigned frames;
            const struct site_frame *f = reader_site(r, id, &frames, NULL);
            for (unsigned n = 0; n < frames; n++)
                format_frame(sink, r, &f[n], "");
            format_text(sink, reader_string(r, id));
            reader_provenance(r, id);
            reader_module(r, id, NULL);
            reader_process(r, id);
            reader_stream(r, id);
        }
    }
    reader_function(r, 5);
    reader_provenance_find(r, "commit");
    rewind(sink);
    reader_close(&r);
    return c.counts.whole;
}

static int copy_file(const char *path, unsigned char **bytes, size_t *size) {
    struct stat st;
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    *size = (size_t)st.st_size;
    *bytes = malloc(*size);
    assert_non_null(*bytes);
    assert_int_equal(pread(fd, *bytes, *size, 0), *size);
    return fd;
}

static void sample_is_read_whole(void **state) {
    (void)state;
    write_sample();
    assert_true(read_all(record_file) > 300);
}

static void file_cut_anywhere_is_read_as_far_as_it_goes(void **state) {
    (void)state;
    unsigned char *bytes;
    size_t size;
    write_sample();
    int fd = copy_file(record_file, &bytes, &size);
    uint64_t whole = read_all(record_file), last = whole;
    size_t step = size / 700;
    for (size_t cut = size; cut > step; cut -= step) {
        assert_int_equal(ftruncate(fd, (off_t)cut), 0);
        uint64_t now = read_all(record_file);
        assert_true(now <= last);
        if (cut < RECORD_HEADER_BYTES)
            assert_int_equal(now, 0);
        last = now;
    }
    /* Around every boundary, byte by byte. */
    size_t edges[] = { 0,
                       8,
                       128,
                       256,
                       4096,
                       RECORD_HEADER_BYTES,
                       RECORD_HEADER_BYTES + (64 << 10),
                       RECORD_HEADER_BYTES + (128 << 10) };
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        for (int d = -2; d <= 2; d++) {
            if (d < 0 && edges[i] < 2)
                continue;
            assert_int_equal(pwrite(fd, bytes, size, 0), size);
            assert_int_equal(ftruncate(fd, (off_t)edges[i] + d), 0);
            read_all(record_file);
        }
    close(fd);
    free(bytes);
}

static void cut_file_says_so(void **state) {
    (void)state;
    write_sample();
    assert_int_equal(truncate(record_file, RECORD_HEADER_BYTES + (128 << 10) - 640), 0);
    reader *r = open_reader();
    assert_true(reader_info(r)->truncated);
    struct reader_cursor c = reader_events(r, 0, UINT64_MAX);
    while (reader_next(&c, &found))
        ;
    assert_int_equal(c.counts.truncated, 10);
    reader_close(&r);
}

static uint64_t random_state;

static uint64_t random_number(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static void damaged_files_do_no_harm(void **state) {
    (void)state;
    enum { ROUNDS = 1500 };
    static const uint64_t nasty[] = { 0,          1,          0xff,
                                      0x7fffffff, 0xffffffff, UINT64_MAX,
                                      1ull << 63, 1ull << 62, (1ull << 62) - 1,
                                      65536,      16,         31 };
    unsigned char *bytes;
    size_t size;
    write_sample();
    int fd = copy_file(record_file, &bytes, &size);
    random_state = 88172645463325252ull;
    for (int round = 0; round < ROUNDS; round++) {
        size_t at[8];
        int patches = 1 + (int)(random_number() % 8);
        for (int i = 0; i < patches; i++) {
            uint64_t value = random_number() % 2
                                 ? nasty[random_number() % (sizeof nasty / sizeof *nasty)]
                                 : random_number();
            size_t width = (size_t)1 << random_number() % 4;
            /* Half into the first 512 bytes and the directory, half anywhere. */
            size_t where = random_number() % 4 ? random_number() % size : random_number() % 512;
            if (random_number() % 4 == 0)
                where = 4096 + random_number() % 64;
            at[i] = where & ~(width - 1);
            assert_int_equal(pwrite(fd, &value, width, (off_t)at[i]), width);
        }
        read_all(record_file);
        for (int i = 0; i < patches; i++)
            assert_int_equal(pwrite(fd, bytes + at[i], 8, (off_t)at[i]), 8);
    }
    assert_true(read_all(record_file) > 300); /* all was put back: every round had its own damage */
    close(fd);
    free(bytes);
}

/* One field at a time, all values that might wrap something. */
static void every_header_field_is_checked(void **state) {
    (void)state;
    static const uint32_t values[] = { 0,        1,        3,         63,       64,
                                       65,       4095,     65536,     1u << 20, 1u << 26,
                                       1u << 27, 1u << 31, UINT32_MAX };
    unsigned char *bytes;
    size_t size;
    write_sample();
    int fd = copy_file(record_file, &bytes, &size);
    for (size_t at = 0; at < 512; at += 4)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            assert_int_equal(pwrite(fd, &values[v], 4, (off_t)at), 4);
            read_all(record_file);
            assert_int_equal(pwrite(fd, bytes + at, 4, (off_t)at), 4);
        }
    close(fd);
    free(bytes);
}

static void assert_refused(const char *why) {
    struct err e = { 0 };
    reader *r = NULL;
    assert_int_equal(reader_open(&r, record_file, &e), RC_FORMAT);
    if (!strstr(e.msg, why))
        fail_msg("expected '%s' in: %s", why, e.msg);
}

static void patch(off_t at, const void *bytes, size_t n) {
    int fd = open(record_file, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, n, at), n);
    close(fd);
}

static void errors_say_what_is_wrong(void **state) {
    (void)state;
    uint32_t swapped = 0x04030201, later = RECORD_VERSION + 1, odd = 100000;
    uint64_t huge = UINT64_MAX;
    write_sample();
    patch(offsetof(struct record_header, next_seq), &huge, 8);
    assert_refused("event counter");
    patch(offsetof(struct record_header, chunk_bytes), &odd, 4);
    assert_refused("chunk size");
    patch(offsetof(struct record_header, version), &later, 4);
    assert_refused("version 2");
    patch(offsetof(struct record_header, byte_order), &swapped, 4);
    assert_refused("byte order");
    patch(0, "GGUF", 4);
    assert_refused("not a recording");
    assert_int_equal(truncate(record_file, 100), 0);
    assert_refused("100 bytes");
    reader *r = NULL;
    struct err e = { 0 };
    assert_int_equal(reader_open(&r, "/no/such/file", &e), RC_IO);
    assert_int_equal(reader_open(&r, "/tmp", &e), RC_IO);
    assert_int_equal(reader_open(&r, "/dev/null", &e), RC_IO);
}

static void torn_definition_does_not_hide_the_next(void **state) {
    (void)state;
    writer *w = open_writer(1024);
    uint32_t first = record_string(w, "the first of three strings");
    uint32_t second = record_string(w, "the second of three strings");
    uint32_t third = record_string(w, "the third of three strings");
    record_close(&w);
    /* Killed before it wrote anything but claimed its room: all zero. */
    unsigned char *bytes;
    size_t size;
    int fd = copy_file(record_file, &bytes, &size);
    unsigned char *text = memmem(bytes, size, "the second of three strings", 27);
    assert_non_null(text);
    unsigned char zero[64] = { 0 };
    assert_int_equal(pwrite(fd, zero, 64, text - 32 - bytes), 64);
    close(fd);
    free(bytes);
    reader *r = open_reader();
    assert_string_equal(reader_string(r, first), "the first of three strings");
    assert_string_equal(reader_string(r, second), "?");
    assert_string_equal(reader_string(r, third), "the third of three strings");
    reader_close(&r);
}

static void ranges_of_events_can_be_asked_for(void **state) {
    (void)state;
    writer *w = open_writer(1024);
    for (uint64_t n = 0; n < 1200; n++) {
        struct event e = make_mark(n);
        record_event(w, &e);
    }
    record_close(&w); /* 1202 in all: 178 overwritten */
    reader *r = open_reader();
    struct reader_cursor c = reader_events(r, 500, 510);
    for (uint64_t seq = 500; seq < 510; seq++) {
        assert_true(reader_next(&c, &found));
        assert_int_equal(found.seq, seq);
    }
    assert_false(reader_next(&c, &found));
    c = reader_events(r, 100, 150); /* all overwritten */
    assert_true(reader_next(&c, &found));
    assert_int_equal(found.event.kind, EVENT_LOST);
    assert_int_equal(found.seq, 100);
    assert_int_equal(found.event.len, 50);
    assert_false(reader_next(&c, &found));
    c = reader_events(r, 100, 200);
    assert_true(reader_next(&c, &found));
    assert_int_equal(found.event.len, 78);
    assert_true(reader_next(&c, &found));
    assert_int_equal(found.seq, 178);
    c = reader_events(r, 5000, UINT64_MAX);
    assert_false(reader_next(&c, &found));
    c = reader_events(r, 600, 500);
    assert_false(reader_next(&c, &found));
    assert_false(reader_event(r, 177, &found));
    assert_true(reader_event(r, 178, &found));
    assert_true(reader_event(r, 1201, &found));
    assert_false(reader_event(r, 1202, &found));
    assert_false(reader_event(r, UINT64_MAX, &found));
    reader_close(&r);
}

static int open_sink(void **state) {
    (void)state;
    sink = fopen("/dev/null", "w");
    return !sink;
}

static int close_sink(void **state) {
    (void)state;
    return fclose(sink);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        record_test(sample_is_read_whole),
        record_test(file_cut_anywhere_is_read_as_far_as_it_goes),
        record_test(cut_file_says_so),
        record_test(damaged_files_do_no_harm),
        record_test(every_header_field_is_checked),
        record_test(errors_say_what_is_wrong),
        record_test(torn_definition_does_not_hide_the_next),
        record_test(ranges_of_events_can_be_asked_for),
    };
    return cmocka_run_group_tests(tests, open_sink, close_sink);
}
