/* The reports: the JSON document against its schema, the text's first line and its colours, and
 * greta_audit report from the outside. */
#include "unit/test_verdict.h"

#include "report/report.h"
#include "support/schema.h"

static json_tree *parse_text(const char *text) {
    json_tree *t = NULL;
    struct err e = { 0 };
    if (json_tree_open(&t, text, strlen(text), "the report", &e))
        fail_msg("%s", e.msg);
    return t;
}

static json_tree *read_file(const char *path) {
    json_tree *t = NULL;
    struct err e = { 0 };
    if (json_tree_open_file(&t, path, &e))
        fail_msg("%s", e.msg);
    return t;
}

static json_tree *read_schema(void) {
    char path[512];
    const char *source = getenv("SOURCE_DIR");
    snprintf(path, sizeof path, "%s/docs/report.schema.json", source ? source : ".");
    return read_file(path);
}

/* ---- runs to report -------------------------------------------------------------------------- */

static uint32_t s0;

static void clean_run(void) {
    s0 = default_stream();
    alloc(DEVICE_AT, 4 * KIB);
    set(DEVICE_AT, 4 * KIB, s0);
    copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE_AT, 4 * KIB, s0);
    free_at(DEVICE_AT);
}

static void faulty_run(void) {
    union event_slot s[2];
    record_provenance(W, "run.command", "greta \"quoted\"\n\x01");
    s0 = default_stream();
    alloc(DEVICE_AT, 4 * KIB);
    name_range(DEVICE_AT, 4 * KIB, "k\x1b[31mcache");
    uint64_t k = launch_pointer("scale", DEVICE_AT, EVENT_ARG_WRITE, 1, s0);
    s[0].event = (struct event){ .kind = EVENT_FAULT,
                                 .aux = event_aux(EVENT_NO_FN, DETAIL_ACCESS_WRITE),
                                 .dst = DEVICE_AT + 4 * KIB,
                                 .src = k,
                                 .name = record_string(W, "scale") };
    event_extra_fault(&s[1], &(struct event_fault){ .argument = 0,
                                                    .alloc_base = DEVICE_AT,
                                                    .alloc_bytes = 4 * KIB,
                                                    .alloc_seq = EVENT_NO_SEQ });
    put_slots(s, 2);
    status = hipErrorIllegalAddress;
    copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE_AT, KIB, s0);
}

static void racy_run(void) {
    s0 = default_stream();
    uint32_t a = nonblocking(), b = nonblocking();
    alloc(DEVICE_AT, 4 * KIB);
    set(DEVICE_AT, 4 * KIB, a);
    launch_reads("r", DEVICE_AT, 4 * KIB, b);
    launch_unknown("u", a);
}

static char *report(bool json) {
    char *text = NULL;
    size_t size = 0;
    struct err e = { 0 };
    FILE *out = open_memstream(&text, &size);
    enum rc rc = json ? report_json(out, V, &e) : report_text(out, V, NULL, &e);
    assert_int_equal(rc, RC_OK);
    fclose(out);
    return text;
}

static void expect_valid(void) {
    char *text = report(true);
    json_tree *schema = read_schema(), *t = parse_text(text);
    const char *wrong = schema_check(json_tree_root(t), json_tree_root(schema));
    if (wrong)
        fail_msg("%s", wrong);
    assert_string_equal(json_tree_text(json_tree_root(t), "verdict"),
                        verdict_overall_name(V->overall));
    assert_string_equal(json_tree_text(json_tree_root(t), "answer"), V->answer);
    json_tree_close(&schema);
    json_tree_close(&t);
    free(text);
}

/* ---- JSON reports ---------------------------------------------------------------------------- */

static void a_clean_report_obeys_the_schema(void **state) {
    (void)state;
    clean_run();
    judge();
    expect_overall(CLEAN);
    expect_valid();
}

static void a_report_of_a_fault_obeys_the_schema(void **state) {
    (void)state;
    faulty_run();
    judge();
    expect_overall(ROOT_CAUSE);
    expect_valid();
}

static void a_report_of_races_obeys_the_schema(void **state) {
    (void)state;
    racy_run();
    judge();
    expect_overall(FINDINGS);
    expect_valid();
}

static void a_refusal_obeys_the_schema(void **state) {
    (void)state;
    clean_run();
    options.expect_commit = "1234567";
    options.expect_model_hash = "00";
    judge();
    expect_valid();
}

static void actors_are_objects_or_null(void **state) {
    (void)state;
    faulty_run();
    judge();
    char *text = report(true);
    json_tree *t = parse_text(text);
    const struct json_node *culprit = json_tree_get(json_tree_root(t), "culprit");
    const struct json_node *messenger = json_tree_get(json_tree_root(t), "messenger");
    assert_string_equal(json_tree_text(culprit, "kernel"), "scale");
    assert_string_equal(json_tree_text(culprit, "tensor"), "k\x1b[31mcache");
    assert_string_equal(json_tree_text(messenger, "api"), "hipMemcpy");
    assert_string_equal(json_tree_text(messenger, "status"), "hipErrorIllegalAddress");
    assert_int_equal(json_tree_get(messenger, "kernel")->type, JSON_NULL);
    json_tree_close(&t);
    free(text);
}

static bool is_valid(const char *text, const json_tree *schema) {
    json_tree *t = parse_text(text);
    const char *wrong = schema_check(json_tree_root(t), json_tree_root(schema));
    json_tree_close(&t);
    return !wrong;
}

/* The checker itself must be able to say no. */
static void the_checker_refuses_what_is_wrong(void **state) {
    (void)state;
    json_tree *schema = read_schema();
    static const char *const wrong[] = { "{}", "{\"version\": 2}", "[]" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(is_valid(wrong[i], schema));
    clean_run();
    judge();
    static const struct {
        const char *from, *to;
    } edits[] = {
        { "\"CLEAN\"", "\"CLEANED\"" },           { "\"LEAK\"", "\"LEAKS\"" },
        { "\"checked\"", "\"chequed\"" },         { "\"RULED_OUT\"", "7" },
        { "\"remarks\": []", "\"remarks\": {}" },
    };
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        char *text = report(true), *found = strstr(text, edits[i].from), *edited = NULL;
        assert_non_null(found);
        assert_true(asprintf(&edited, "%.*s%s%s", (int)(found - text), text, edits[i].to,
                             found + strlen(edits[i].from)) > 0);
        if (is_valid(edited, schema))
            fail_msg("%s instead of %s was accepted", edits[i].to, edits[i].from);
        free(edited);
        free(text);
    }
    json_tree_close(&schema);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void the_first_line_is_the_answer(void **state) {
    (void)state;
    faulty_run();
    judge();
    char *text = report(false);
    size_t n = strcspn(text, "\n");
    assert_int_equal(strncmp(text, "ROOT_CAUSE SIZE_MISMATCH: ", 26), 0);
    assert_true(n > 40);
    for (int id = 0; id < HYPOTHESIS_COUNT; id++)
        assert_non_null(strstr(text, hypothesis_name((enum verdict_hypothesis_id)id)));
    assert_null(strchr(text, '\x1b')); /* neither colours nor the recording's own escapes */
    assert_non_null(strstr(text, "k\\x1b[31mcache"));
    free(text);
}

static void colours_are_only_there_if_asked_for(void **state) {
    (void)state;
    clean_run();
    judge();
    char *text = NULL;
    size_t size = 0;
    struct err e = { 0 };
    struct report_text_options o = { .colour = true, .verbose = true };
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(report_text(out, V, &o, &e), RC_OK);
    fclose(out);
    assert_non_null(strstr(text, "\x1b[32m"));
    free(text);
}

static void a_stream_that_fails_is_an_error(void **state) {
    (void)state;
    clean_run();
    judge();
    struct err e = { 0 };
    FILE *full = fopen("/dev/full", "w");
    if (!full)
        skip();
    assert_int_equal(report_text(full, V, NULL, &e), RC_IO);
    fclose(full);
}

/* ---- greta_audit report ---------------------------------------------------------------------- */

static char output[1 << 16];

static int run_report(const char *arguments) {
    const char *build = getenv("BUILD_DIR");
    char command[2400];
    snprintf(command, sizeof command, "%s/bin/greta_audit report %s 2>&1", build ? build : "build",
             arguments);
    FILE *p = popen(command, "r");
    size_t n = fread(output, 1, sizeof output - 1, p);
    output[n] = '\0';
    return WEXITSTATUS(pclose(p));
}

static int run_on_file(const char *arguments) {
    char words[1200];
    snprintf(words, sizeof words, "%s %s", arguments, record_file);
    return run_report(words);
}

static void the_program_prints_the_answer(void **state) {
    (void)state;
    racy_run();
    record_close(&W);
    assert_int_equal(run_on_file(""), 0);
    assert_int_equal(strncmp(output, "FINDINGS STREAM_UNSYNCED", 24), 0);
    assert_null(strchr(output, '\x1b'));
    assert_int_equal(run_on_file("--exit-code"), 1);
    assert_int_equal(run_on_file("--json"), 0);
    json_tree *t = parse_text(output);
    assert_string_equal(json_tree_text(json_tree_root(t), "verdict"), "FINDINGS");
    assert_string_equal(json_tree_text(json_tree_root(t), "hypothesis"), "STREAM_UNSYNCED");
    json_tree_close(&t);
}

static void the_program_writes_a_file(void **state) {
    (void)state;
    char words[700], path[300];
    clean_run();
    record_close(&W);
    snprintf(path, sizeof path, "%s.json", record_file);
    snprintf(words, sizeof words, "--json --exit-code --out %s", path);
    assert_int_equal(run_on_file(words), 0);
    assert_string_equal(output, "");
    json_tree *t = read_file(path);
    assert_string_equal(json_tree_text(json_tree_root(t), "verdict"), "CLEAN");
    json_tree_close(&t);
    unlink(path);
    assert_int_equal(run_on_file("--out /dev/null/at/all"), 3);
}

static void the_program_refuses_another_commit(void **state) {
    (void)state;
    record_provenance(W, "greta.commit", "303b6340000000000000000000000000000000aa");
    clean_run();
    record_close(&W);
    assert_int_equal(run_on_file("--expect-commit 303b634"), 0);
    assert_int_equal(run_on_file("--expect-commit 1173ae5"), 3);
    assert_int_equal(strncmp(output, "STALE_BINARY", 12), 0);
    assert_int_equal(run_on_file("--expect-model-hash 12"), 3);
    assert_int_equal(run_on_file("--expect-failure"), 0);
    assert_int_equal(strncmp(output, "NOT_REPRODUCED", 14), 0);
}

static char *report_in(enum lang lang) {
    char *text = NULL;
    size_t size = 0;
    struct err e = { 0 };
    struct report_text_options o = { .lang = lang };
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(report_text(out, V, &o, &e), RC_OK);
    fclose(out);
    return text;
}

/* What a failed copy missed: memory that was registered, and a variable of the device's. */
static void memory_is_said_to_come_from_what_made_it(void **state) {
    (void)state;
    uint32_t s0 = default_stream();
    put(EVENT_ALLOC, HIP_FN_hipHostRegister, DETAIL_FAMILY_REGISTERED, HOST_AT, 0, 4 * KIB, 0,
        NULL);
    put(EVENT_SYMBOL, HIP_FN_hipModuleGetGlobal, 0, DEVICE_AT, 0, KIB, 0, NULL);
    status = hipErrorInvalidValue;
    copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE_AT, 2 * KIB, s0);
    status = hipErrorInvalidValue;
    copy(hipMemcpyHostToDevice, DEVICE_AT, HOST_AT + 3 * KIB, 2 * KIB, s0);
    judge();
    char *en = report_in(LANG_EN);
    assert_non_null(strstr(en, ": 1024 bytes past"));
    assert_non_null(strstr(en, "of a device variable of 1024 bytes"));
    assert_non_null(strstr(en, "1024 bytes, a device variable, first seen at event "));
    assert_null(strstr(en, "allocated by event"));
    assert_null(strstr(en, " at -"));
    free(en);
}

static void the_text_speaks_spanish_and_has_the_same_lines(void **state) {
    (void)state;
    uint32_t s0 = default_stream();
    alloc(DEVICE_AT, 4 * KIB);
    status = hipErrorInvalidValue;
    copy(hipMemcpyDeviceToHost, HOST_AT, DEVICE_AT + KIB, 4 * KIB, s0);
    judge();
    char *en = report_in(LANG_EN), *es = report_in(LANG_ES);
    assert_non_null(
        strstr(en, "was to read 4 KiB at offset 1024 of a block of 4 KiB: 1024 bytes past"));
    assert_non_null(strstr(es,
                           "debía leer 4 KiB en el desplazamiento 1024 de un bloque de 4 KiB: 1024 "
                           "bytes más allá de su final"));
    assert_non_null(strstr(es, "\nHipótesis:\n"));
    assert_null(strstr(es, " reads "));
    assert_null(strstr(es, "does not apply"));
    unsigned lines[2] = { 0 };
    for (const char *c = en; *c; c++)
        lines[0] += *c == '\n';
    for (const char *c = es; *c; c++)
        lines[1] += *c == '\n';
    assert_int_equal(lines[0], lines[1]);
    free(en);
    free(es);
}

static void hypotheses_that_say_the_same_share_a_line(void **state) {
    (void)state;
    alloc(DEVICE_AT, 4 * KIB);
    free_at(DEVICE_AT);
    put(EVENT_END, EVENT_NO_FN, 0, 0, 0, 0, 0, NULL);
    judge();
    char *text = report_in(LANG_EN);
    const char *reason = "this run copied, set and launched nothing", *at = strstr(text, reason);
    assert_non_null(at);
    assert_null(strstr(at + 1, reason));
    for (int i = 0; i < HYPOTHESIS_COUNT; i++)
        assert_non_null(strstr(text, hypothesis_name((enum verdict_hypothesis_id)i)));
    assert_non_null(strstr(text, "SIZE_MISMATCH, BAD_OFFSET, ")); /* and they fill the line */
    for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1)
        if (end > line && end[-1] == ',')
            assert_in_range(end - line, 1, 90);
    free(text);
}

static void the_program_refuses_wrong_usage(void **state) {
    (void)state;
    record_close(&W);
    assert_int_equal(run_report(""), 2);
    assert_int_equal(run_report("--no-such-flag x"), 2);
    assert_int_equal(run_report("a b"), 2);
    assert_int_equal(run_report("--out"), 2);
    assert_int_equal(run_report("--expect-commit 12 x"), 2);
    assert_int_equal(run_report("--lang xx x"), 2);
    assert_int_equal(run_report("/nowhere"), 3);
    assert_int_equal(run_report("/etc/passwd"), 3);
    assert_int_equal(run_report("--help"), 0);
    assert_non_null(strstr(output, "--expect-commit"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        verdict_test(a_clean_report_obeys_the_schema),
        verdict_test(a_report_of_a_fault_obeys_the_schema),
        verdict_test(a_report_of_races_obeys_the_schema),
        verdict_test(a_refusal_obeys_the_schema),
        verdict_test(actors_are_objects_or_null),
        verdict_test(the_checker_refuses_what_is_wrong),
        verdict_test(the_first_line_is_the_answer),
        verdict_test(colours_are_only_there_if_asked_for),
        verdict_test(a_stream_that_fails_is_an_error),
        verdict_test(the_program_prints_the_answer),
        verdict_test(the_program_writes_a_file),
        verdict_test(the_program_refuses_another_commit),
        verdict_test(memory_is_said_to_come_from_what_made_it),
        verdict_test(the_text_speaks_spanish_and_has_the_same_lines),
        verdict_test(hypotheses_that_say_the_same_share_a_line),
        verdict_test(the_program_refuses_wrong_usage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
