/* Events as text and JSON, and the program that prints them. */
#include "unit/test_record.h"

#include "hip/hip_api.h"
#include "record/format.h"

static const char *hip_name(unsigned fn) {
    return hip_fn_name((enum hip_fn)fn);
}

static writer *open_named(void) {
    struct record_options o = {
        .path = record_file, .events = 1024, .fn_count = HIP_FN_COUNT, .fn_name = hip_name
    };
    writer *w = NULL;
    assert_int_equal(record_open(&w, &o, NULL), RC_OK);
    return w;
}

/* The line of an event, from its kind on; static. */
static const char *line_of(reader *r, uint64_t seq, bool as_json) {
    static char line[4096];
    static struct reader_event e;
    memset(line, 0, sizeof line);
    assert_true(reader_event(r, seq, &e));
    FILE *out = fmemopen(line, sizeof line - 1, "w");
    assert_non_null(out);
    if (as_json) {
        struct json j = json_begin(out, 0);
        format_event_json(&j, r, &e);
    } else {
        format_event(out, r, &e);
    }
    fclose(out);
    const char *kind = strstr(line, as_json ? "\"kind\"" : event_kind_text(e.event.kind));
    assert_non_null(kind);
    return kind;
}

static void copy_is_shown_with_its_tensor_and_result(void **state) {
    (void)state;
    writer *w = open_named();
    struct event e = { .kind = EVENT_COPY,
                       .dst = 0x7f0000001000,
                       .src = 0x7e0000002000,
                       .len = 4096,
                       .stream = 1,
                       .name = record_string(w, "logits"),
                       .status = RECORD_PENDING,
                       .aux = event_aux(HIP_FN_hipMemcpyAsync, DETAIL_COPY_KIND_ASYNC_D2H) };
    uint64_t done = record_event(w, &e);
    record_finish(w, done, hipErrorIllegalAddress, 1500);
    uint64_t pending = record_event(w, &e);
    record_close(&w);
    reader *r = open_reader();
    assert_string_equal(
        line_of(r, done, false),
        "copy D2H+async dst=0x7f0000001000 src=0x7e0000002000 bytes=4096 "
        "tensor=logits call=hipMemcpyAsync status=hipErrorIllegalAddress took=1500");
    assert_string_equal(line_of(r, pending, false),
                        "copy D2H+async dst=0x7f0000001000 src=0x7e0000002000 bytes=4096 "
                        "tensor=logits call=hipMemcpyAsync status=pending");
    assert_string_equal(
        line_of(r, done, true),
        "\"kind\": \"copy\", \"detail\": \"D2H+async\", \"dst\": \"0x7f0000001000\", "
        "\"src\": \"0x7e0000002000\", \"bytes\": 4096, \"name\": \"logits\", "
        "\"call\": \"hipMemcpyAsync\", \"status\": \"hipErrorIllegalAddress\", "
        "\"took_ns\": 1500}");
    reader_close(&r);
}

static void launch_shows_its_shape_and_arguments(void **state) {
    (void)state;
    writer *w = open_named();
    union event_slot s[4] = {
        { .event = { .kind = EVENT_LAUNCH,
                     .dst = 0x100,
                     .len = 24,
                     .name = record_string(w, "rope q"),
                     .aux = event_aux(HIP_FN_hipModuleLaunchKernel, EVENT_CAPTURED) } }
    };
    struct event_arg args[2] = { { 0xabc, 0, EVENT_ARG_READ },
                                 { 0xdef, 3, EVENT_ARG_WRITE | EVENT_ARG_GUESSED } };
    struct event_access access = { 0x1000, 64, DETAIL_ACCESS_WRITE, 3 };
    event_extra_dims(&s[1], &(struct event_dims){ { 32, 2, 1 }, { 256, 1, 1 }, 1024, 0 });
    event_extra_args(&s[2], args, 2);
    event_extra_accesses(&s[3], &access, 1);
    uint64_t seq = record_events(w, s, 4);
    record_close(&w);
    reader *r = open_reader();
    assert_string_equal(line_of(r, seq, false),
                        "launch captured function=0x100 bytes=24 grid=32,2,1 "
                        "block=256,1,1 shared=1024 arg0=0xabc:r arg3=0xdef:w? write=0x1000+64:arg3 "
                        "kernel=\"rope q\" call=hipModuleLaunchKernel status=hipSuccess took=0");
    assert_non_null(strstr(line_of(r, seq, true),
                           "\"extras\": [{\"type\": \"dims\", \"grid\": [32, 2, 1], "
                           "\"block\": [256, 1, 1], \"shared\": 1024"));
    reader_close(&r);
}

static void other_extras_are_shown_by_their_labels(void **state) {
    (void)state;
    writer *w = open_named();
    union event_slot s[3] = { { .event = { .kind = EVENT_COPY2D,
                                           .aux = event_aux(EVENT_NO_FN, 0) } } };
    event_extra_rows(&s[1], 512, 256, 200, 10);
    event_extra_slices(&s[2], 5120, 2560, 3);
    uint64_t rows = record_events(w, s, 3);
    s[0].event = (struct event){ .kind = EVENT_FAULT,
                                 .dst = 0xbad,
                                 .src = EVENT_NO_SEQ,
                                 .len = 4,
                                 .aux = event_aux(EVENT_NO_FN, DETAIL_ACCESS_READ) };
    event_extra_fault(&s[1], &(struct event_fault){ 3, 0x1000, 0x1000, 2, 7, 0 });
    uint64_t fault = record_events(w, s, 2);
    s[0].event = (struct event){ .kind = EVENT_SAFE_COPY,
                                 .aux = event_aux(EVENT_NO_FN, DETAIL_DECISION_PAST_TENSOR) };
    event_extra_safe(&s[1], &(struct event_safe){ 9, 0, -1, 16, 4096 });
    uint64_t safe = record_events(w, s, 2);
    record_close(&w);
    reader *r = open_reader();
    assert_string_equal(line_of(r, rows, false),
                        "copy2d H2H dst=0x0 src=0x0 bytes=0 dst_pitch=512 src_pitch=256 width=200 "
                        "height=10 dst_slice=5120 src_slice=2560 depth=3");
    assert_string_equal(line_of(r, fault, false),
                        "fault read address=0xbad launch=? bytes=4 argument=3 value=0x1000 "
                        "range=0x1000+2 alloc=#7");
    assert_string_equal(line_of(r, safe, false),
                        "safe_copy past_tensor dst=0x0 src=0x0 bytes=0 op_id=9 step=0 layer=-1 "
                        "offset=16 alloc=4096");
    reader_close(&r);
}

static void strange_texts_stay_on_their_line(void **state) {
    (void)state;
    static const struct {
        const char *in, *out;
    } cases[] = {
        { "plain", "plain" },
        { "two words", "\"two words\"" },
        { "a\nb\tc", "\"a\\nb\\tc\"" },
        { "\"\\", "\"\\\"\\\\\"" },
        { "\x01\x7f", "\"\\x01\\x7f\"" },
        { "", "\"\"" },
        { "a=b", "\"a=b\"" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char got[64] = "";
        FILE *out = fmemopen(got, sizeof got, "w");
        format_text(out, cases[i].in);
        fclose(out);
        assert_string_equal(got, cases[i].out);
    }
}

static void unknown_kinds_and_errors_are_shown_as_numbers(void **state) {
    (void)state;
    writer *w = open_named();
    struct event e = {
        .kind = 120, .dst = 1, .src = 2, .len = 3, .status = 4321, .aux = event_aux(2000, 5)
    };
    uint64_t seq = record_event(w, &e);
    record_close(&w);
    reader *r = open_reader();
    assert_string_equal(line_of(r, seq, false),
                        "?120 detail5 dst=0x1 src=0x2 len=0x3 call=? status=error4321 took=0");
    reader_close(&r);
}

/* ---- the program --------------------------------------------------------------------------- */

/* Runs `greta_audit dump ARGUMENTS` and returns its output (static) and exit status. */
static const char *run_dump(const char *arguments, int *code) {
    static char out[1 << 16];
    char command[1024];
    const char *build = getenv("BUILD_DIR");
    if (!build)
        skip();
    snprintf(command, sizeof command, "'%s/bin/greta_audit' dump %s 2>&1", build, arguments);
    FILE *p = popen(command, "r");
    assert_non_null(p);
    size_t n = fread(out, 1, sizeof out - 1, p);
    out[n] = 0;
    int status = pclose(p);
    assert_true(WIFEXITED(status));
    *code = WEXITSTATUS(status);
    return out;
}

static void program_prints_a_recording(void **state) {
    (void)state;
    char arguments[512];
    int code;
    writer *w = open_named();
    record_provenance(w, "commit", "0123456789");
    for (uint64_t n = 0; n < 5; n++) {
        struct event e = make_mark(n);
        record_event(w, &e);
    }
    record_close(&w);
    snprintf(arguments, sizeof arguments, "%s", record_file);
    const char *out = run_dump(arguments, &code);
    assert_int_equal(code, 0);
    assert_memory_equal(out, "# greta recording, version 2, run ", 34);
    assert_non_null(strstr(out, "# provenance commit=0123456789\n"));
    assert_non_null(strstr(out, " mark other a=4 b=18446744073709551611 c=12\n"));
    assert_non_null(strstr(out, "# 7 events (7 shown), 0 extra slots, 0 lost, 0 overwritten, 0 "
                                "torn, 0 cut off, 0 definitions lost\n"
                                "# closed cleanly: the process ended its recording\n"));
    snprintf(arguments, sizeof arguments, "--kind mark --from 2 --to 4 %s", record_file);
    out = run_dump(arguments, &code);
    assert_int_equal(code, 0);
    assert_null(strstr(out, "mark other a=0 "));
    assert_non_null(strstr(out, "mark other a=1 "));
    assert_non_null(strstr(out, "mark other a=2 "));
    assert_null(strstr(out, "mark other a=3 "));
    assert_non_null(strstr(out, "# 2 events (2 shown)"));
    snprintf(arguments, sizeof arguments,
             "--json %s | python3 -c 'import json,sys; d=json.load(sys.stdin); "
             "print(len(d[\"events\"]), d[\"summary\"][\"closed\"])'",
             record_file);
    if (!system("python3 -c '' 2>/dev/null"))
        assert_string_equal(run_dump(arguments, &code), "7 True\n");
}

static void program_says_that_a_recording_was_not_closed(void **state) {
    (void)state;
    int code;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        writer *w = open_named();
        struct event e = make_mark(1);
        record_event(w, &e);
        _exit(0);
    }
    waitpid(pid, &code, 0);
    assert_non_null(strstr(run_dump(record_file, &code),
                           "# not closed: 0 of 1 processes ended their recording\n"));
    assert_int_equal(code, 0);
}

static void program_refuses_wrong_usage(void **state) {
    (void)state;
    static const char *const wrong[] = { "",           "--nonsense x", "a b",          "-x a",
                                         "--from a b", "--to",         "--kind none a" };
    int code;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *out = run_dump(wrong[i], &code);
        if (code != 2)
            fail_msg("dump %s: exit %d, %s", wrong[i], code, out);
        assert_non_null(strstr(out, "--help"));
    }
    assert_non_null(strstr(run_dump("--help", &code), "Usage: greta_audit dump"));
    assert_int_equal(code, 0);
    assert_non_null(strstr(run_dump("/no/such/file", &code), "/no/such/file: No such file"));
    assert_int_equal(code, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        record_test(copy_is_shown_with_its_tensor_and_result),
        record_test(launch_shows_its_shape_and_arguments),
        record_test(other_extras_are_shown_by_their_labels),
        record_test(strange_texts_stay_on_their_line),
        record_test(unknown_kinds_and_errors_are_shown_as_numbers),
        record_test(program_prints_a_recording),
        record_test(program_says_that_a_recording_was_not_closed),
        record_test(program_refuses_wrong_usage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
