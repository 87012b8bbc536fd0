/* The reports: the JSON document against its schema, the text's first line and its colours, and
 * greta_audit report from the outside. The checker knows the part of JSON Schema that
 * docs/report.schema.json uses, and fails where it meets another. */
#include "unit/test_verdict.h"

#include <ctype.h>

#include "verdict/report.h"

/* ---- JSON
 * ----------------------------------------------------------------------------------------- */

enum type { NUL, BOOLEAN, NUMBER, STRING, ARRAY, OBJECT };

struct value {
    enum type type;
    bool boolean;
    double number;
    char *text;          /* STRING; of a member: see key */
    char *key;           /* of an object's member */
    struct value *first; /* ARRAY, OBJECT */
    struct value *next;
};

static const char *at; /* where the parser is */

static void skip_space(void) {
    while (isspace((unsigned char)*at))
        at++;
}

static char *parse_string(void) {
    char *out = malloc(strlen(at) + 1), *to = out;
    assert_int_equal(*at, '"');
    for (at++; *at != '"'; at++) {
        assert_true((unsigned char)*at >= 0x20);
        if (*at == '\\') {
            at++;
            if (*at == 'u') { /* only control characters are written so */
                *to++ = (char)strtol((char[]){ at[1], at[2], at[3], at[4], 0 }, NULL, 16);
                at += 4;
                continue;
            }
            *to++ = *at == 'n' ? '\n' : *at == 't' ? '\t' : *at;
            continue;
        }
        *to++ = *at;
    }
    at++;
    *to = '\0';
    return out;
}

static struct value *parse(void);

static void parse_members(struct value *v, char end) {
    struct value **link = &v->first;
    at++;
    for (skip_space(); *at != end; skip_space()) {
        char *key = NULL;
        if (v->type == OBJECT) {
            key = parse_string();
            skip_space();
            assert_int_equal(*at++, ':');
        }
        *link = parse();
        (*link)->key = key;
        link = &(*link)->next;
        skip_space();
        if (*at != ',') {
            assert_int_equal(*at, end);
            break;
        }
        at++;
    }
    at++;
}

static struct value *parse(void) {
    struct value *v = calloc(1, sizeof *v);
    skip_space();
    if (*at == '{' || *at == '[') {
        v->type = *at == '{' ? OBJECT : ARRAY;
        parse_members(v, *at == '{' ? '}' : ']');
    } else if (*at == '"') {
        v->type = STRING;
        v->text = parse_string();
    } else if (!strncmp(at, "null", 4)) {
        at += 4;
    } else if (!strncmp(at, "true", 4) || !strncmp(at, "false", 5)) {
        v->type = BOOLEAN;
        v->boolean = *at == 't';
        at += v->boolean ? 4 : 5;
    } else {
        char *end;
        v->type = NUMBER;
        v->number = strtod(at, &end);
        assert_true(end > at);
        at = end;
    }
    return v;
}

static void free_value(struct value *v) {
    while (v) {
        struct value *next = v->next;
        free_value(v->first);
        free(v->text);
        free(v->key);
        free(v);
        v = next;
    }
}

static struct value *parse_text(const char *text) {
    at = text;
    struct value *v = parse();
    skip_space();
    assert_int_equal(*at, '\0');
    return v;
}

static const struct value *get(const struct value *v, const char *key) {
    for (const struct value *m = v ? v->first : NULL; m; m = m->next)
        if (m->key && !strcmp(m->key, key))
            return m;
    return NULL;
}

static const char *text_of(const struct value *v, const char *key) {
    const struct value *m = get(v, key);
    return m && m->type == STRING ? m->text : "";
}

/* ---- the schema
 * ------------------------------------------------------------------------------------- */

static const struct value *schema_root;

static bool has_type(const struct value *v, const char *type) {
    static const char *const names[] = { "null", "boolean", "number", "string", "array", "object" };
    if (!strcmp(type, "integer"))
        return v->type == NUMBER && v->number == (double)(long long)v->number;
    return !strcmp(type, names[v->type]);
}

/* "^0x[0-9a-f]+$" and "^[0-9a-f]{16}$" are all the patterns there are. */
static bool has_pattern(const char *text, const char *pattern) {
    bool address = !strcmp(pattern, "^0x[0-9a-f]+$");
    if (!address && strcmp(pattern, "^[0-9a-f]{16}$") != 0)
        fail_msg("a pattern the checker does not know: %s", pattern);
    if (address && strncmp(text, "0x", 2) != 0)
        return false;
    const char *digits = address ? text + 2 : text;
    return strspn(digits, "0123456789abcdef") == strlen(digits) &&
           (address || strlen(digits) == 16);
}

static const char *check(const struct value *v, const struct value *schema);

static const char *check_object(const struct value *v, const struct value *schema) {
    static char why[200];
    const struct value *properties = get(schema, "properties"), *required = get(schema, "required");
    for (const struct value *r = required ? required->first : NULL; r; r = r->next)
        if (!get(v, r->text)) {
            snprintf(why, sizeof why, "%s is missing", r->text);
            return why;
        }
    for (const struct value *m = v->first; m; m = m->next) {
        const struct value *p = get(properties, m->key);
        const char *wrong = p ? check(m, p) : "not in the schema";
        if (wrong) {
            char inner[150];
            snprintf(inner, sizeof inner, "%s", wrong);
            snprintf(why, sizeof why, "%s: %s", m->key, inner);
            return why;
        }
    }
    return NULL;
}

/* One of the words of the schema; NULL if v obeys it. */
static const char *check_word(const struct value *v, const struct value *schema,
                              const struct value *word) {
    const char *key = word->key;
    if (!strcmp(key, "type")) {
        bool ok = word->type == STRING && has_type(v, word->text);
        for (const struct value *t = word->first; t; t = t->next)
            ok |= has_type(v, t->text);
        return ok ? NULL : "wrong type";
    }
    if (!strcmp(key, "enum")) {
        for (const struct value *t = word->first; t; t = t->next)
            if (t->type == v->type &&
                (t->type == STRING ? !strcmp(t->text, v->text) : t->number == v->number))
                return NULL;
        return "not one of the values";
    }
    if (!strcmp(key, "anyOf")) {
        for (const struct value *t = word->first; t; t = t->next)
            if (!check(v, t))
                return NULL;
        return check(v, word->first->next);
    }
    if (!strcmp(key, "minimum"))
        return v->type != NUMBER || v->number >= word->number ? NULL : "too small";
    if (!strcmp(key, "pattern"))
        return has_pattern(v->text, word->text) ? NULL : "does not match";
    if (!strcmp(key, "items")) {
        for (const struct value *m = v->first; m; m = m->next)
            if (check(m, word))
                return check(m, word);
        return NULL;
    }
    if (!strcmp(key, "minItems") || !strcmp(key, "maxItems")) {
        double n = 0;
        for (const struct value *m = v->first; m; m = m->next)
            n++;
        return (key[1] == 'i' ? n >= word->number : n <= word->number) ? NULL : "wrong length";
    }
    if (!strcmp(key, "$ref"))
        return check(v, get(get(schema_root, "definitions"), strrchr(word->text, '/') + 1));
    if (!strcmp(key, "properties"))
        return check_object(v, schema);
    static const char *const silent[] = { "additionalProperties", "required", "description",
                                          "definitions",          "$schema",  "title" };
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
        if (!strcmp(key, silent[i]))
            return NULL;
    return "a word of the schema that the checker does not know";
}

static const char *check(const struct value *v, const struct value *schema) {
    assert_non_null(schema);
    for (const struct value *word = schema->first; word; word = word->next) {
        const char *wrong = check_word(v, schema, word);
        if (wrong)
            return wrong;
    }
    return NULL;
}

static char *read_file(const char *path) {
    FILE *f = fopen(path, "r");
    if (!f)
        fail_msg("%s cannot be read", path);
    char *text = calloc(1, 1 << 20);
    assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
    fclose(f);
    return text;
}

static char *schema_text(void) {
    char path[512];
    const char *source = getenv("SOURCE_DIR");
    snprintf(path, sizeof path, "%s/docs/report.schema.json", source ? source : ".");
    return read_file(path);
}

/* ---- runs to report
 * ------------------------------------------------------------------------------------ */

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
    char *schema = schema_text(), *text = report(true);
    struct value *s = parse_text(schema), *v = parse_text(text);
    schema_root = s;
    const char *wrong = check(v, s);
    if (wrong)
        fail_msg("%s", wrong);
    assert_string_equal(text_of(v, "verdict"), verdict_overall_name(V->overall));
    assert_string_equal(text_of(v, "answer"), V->answer);
    free_value(s);
    free_value(v);
    free(schema);
    free(text);
}

/* ---- JSON reports
 * ---------------------------------------------------------------------------------------- */

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
    struct value *v = parse_text(text);
    const struct value *culprit = get(v, "culprit"), *messenger = get(v, "messenger");
    assert_string_equal(text_of(culprit, "kernel"), "scale");
    assert_string_equal(text_of(culprit, "tensor"), "k\x1b[31mcache");
    assert_string_equal(text_of(messenger, "api"), "hipMemcpy");
    assert_string_equal(text_of(messenger, "status"), "hipErrorIllegalAddress");
    assert_int_equal(get(messenger, "kernel")->type, NUL);
    free_value(v);
    free(text);
}

/* The checker itself must be able to say no. */
static void the_checker_refuses_what_is_wrong(void **state) {
    (void)state;
    char *schema = schema_text();
    struct value *s = parse_text(schema);
    schema_root = s;
    static const char *const wrong[] = {
        "{}",
        "{\"version\": 2}",
        "[]",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct value *v = parse_text(wrong[i]);
        assert_non_null(check(v, s));
        free_value(v);
    }
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
        struct value *v = parse_text(edited);
        if (!check(v, s))
            fail_msg("%s instead of %s was accepted", edits[i].to, edits[i].from);
        free_value(v);
        free(edited);
        free(text);
    }
    free_value(s);
    free(schema);
}

/* ---- text
 * --------------------------------------------------------------------------------------------------
 */

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

/* ---- greta_audit report
 * ------------------------------------------------------------------------------------- */

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
    struct value *v = parse_text(output);
    assert_string_equal(text_of(v, "verdict"), "FINDINGS");
    assert_string_equal(text_of(v, "hypothesis"), "STREAM_UNSYNCED");
    free_value(v);
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
    char *text = read_file(path);
    struct value *v = parse_text(text);
    assert_string_equal(text_of(v, "verdict"), "CLEAN");
    free_value(v);
    free(text);
    unlink(path);
    assert_int_equal(run_on_file("--out /nowhere/at/all"), 3);
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
        verdict_test(the_program_refuses_wrong_usage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
