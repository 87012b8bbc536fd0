/* summary.json of greta_audit matrix, against docs/summary.schema.json: of clean runs, of runs with
 * a race, with a fault, past their time limit, and of an interrupted matrix. */
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/schema.h"
#include "unit/folder.h"

static json_tree *schema, *summary;

static const char *variable(const char *name, const char *fallback) {
    const char *value = getenv(name);
    return value ? value : fallback;
}

static int open_all(void **state) {
    char path[512];
    struct err e = { 0 };
    snprintf(path, sizeof path, "%s/docs/summary.schema.json", variable("SOURCE_DIR", "."));
    if (json_tree_open_file(&schema, path, &e) != RC_OK)
        fail_msg("%s", e.msg);
    return folder_make(state);
}

static int close_all(void **state) {
    json_tree_close(&schema);
    json_tree_close(&summary);
    return folder_remove(state);
}

static void need_preload(void) {
    char path[512];
    snprintf(path, sizeof path, "%s/lib/libgcore_preload.so", variable("BUILD_DIR", "."));
    if (access(path, F_OK) != 0)
        skip();
    snprintf(path, sizeof path, "%s/tests/greta_audit", variable("BUILD_DIR", "."));
    if (access(path, F_OK) == 0) /* a sanitizer build, which cli_run tries enough */
        skip();
}

/* Runs it and reads what it wrote; returns the exit status. */
static int matrix(const char *name, const char *options, const char *command) {
    char line[2048], path[512];
    const char *build = variable("BUILD_DIR", ".");
    struct err e = { 0 };
    snprintf(
        line, sizeof line,
        "exec '%s/bin/greta_audit' matrix --quiet --device soft --lock '%s/lock' --out '%s/%s' %s "
        "-- '%s/programs/'%s >/dev/null 2>&1",
        build, folder, folder, name, options, build, command);
    int status = system(line);
    snprintf(path, sizeof path, "%s/%s/summary.json", folder, name);
    json_tree_close(&summary);
    if (json_tree_open_file(&summary, path, &e) != RC_OK)
        fail_msg("%s: %s", line, e.msg);
    const char *wrong = schema_check(json_tree_root(summary), json_tree_root(schema));
    if (wrong)
        fail_msg("%s: %s", path, wrong);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static const struct json_node *mode(unsigned index) {
    const struct json_node *m = json_tree_get(json_tree_root(summary), "breakdown")->first;
    while (m && index-- > 0)
        m = m->next;
    assert_non_null(m);
    return m;
}

static const char *status_of(const char *hypothesis) {
    const struct json_node *h = json_tree_get(json_tree_root(summary), "hypotheses")->first;
    for (; h; h = h->next)
        if (!strcmp(json_tree_text(h, "name"), hypothesis))
            return json_tree_text(h, "status");
    return "";
}

static void clean_runs_are_counted(void **state) {
    (void)state;
    need_preload();
    assert_int_equal(matrix("clean", "--profile b3.63 --iterations 2", "racy fixed"), 0);
    const struct json_node *s = json_tree_root(summary);
    assert_string_equal(json_tree_text(s, "verdict"), "CLEAN");
    assert_true(json_tree_bool(s, "complete"));
    assert_int_equal(json_tree_u64(s, "total_runs"), 6);
    assert_int_equal(json_tree_u64(s, "judged_runs"), 4);
    assert_int_equal(json_tree_u64(s, "total_errors"), 0);
    assert_string_equal(json_tree_text(mode(0), "mode"), "baseline");
    assert_false(json_tree_bool(mode(0), "recorded"));
    assert_int_equal(json_tree_u64(mode(2), "iterations"), 2);
    assert_string_equal(status_of("STREAM_UNSYNCED"), "RULED_OUT");
    assert_int_equal(json_tree_get(s, "culprit")->type, JSON_NULL);
}

static void a_race_is_found_with_the_schedules_that_show_it(void **state) {
    (void)state;
    need_preload();
    assert_int_equal(matrix("race", "--profile b3.64 --iterations 4", "racy"), 1);
    const struct json_node *s = json_tree_root(summary);
    assert_int_equal(json_tree_u64(s, "total_errors"), 4);
    assert_string_equal(status_of("STREAM_UNSYNCED"), "CONFIRMED");
    assert_true(json_tree_bool(json_tree_get(s, "lock"), "exclusive"));
    const struct json_node *f = json_tree_get(s, "findings")->first;
    assert_string_equal(json_tree_text(f, "hypothesis"), "STREAM_UNSYNCED");
    assert_int_equal(json_tree_u64(f, "runs"), 4);
    assert_non_null(strstr(json_tree_text(f, "repeat"), "GRETA_SOFT_SCHEDULE="));
    unsigned schedules = 0;
    for (const struct json_node *i = json_tree_get(s, "schedules")->first; i; i = i->next)
        schedules++;
    assert_int_equal(schedules, 4);
}

static void a_fault_names_culprit_and_messenger(void **state) {
    (void)state;
    need_preload();
    assert_int_equal(matrix("fault", "--profile b3.63 --iterations 1", "faulty"), 1);
    const struct json_node *s = json_tree_root(summary);
    assert_string_equal(json_tree_text(s, "verdict"), "ROOT_CAUSE");
    assert_string_equal(json_tree_text(json_tree_get(s, "culprit"), "kernel"), "fill");
    assert_string_equal(json_tree_text(json_tree_get(s, "messenger"), "api"), "hipMemcpy");
}

static void a_time_limit_is_an_error_of_its_own_kind(void **state) {
    (void)state;
    need_preload();
    assert_int_equal(
        matrix("late", "--profile b3.63 --iterations 1 --timeout 0.3 --jobs 3", "dies wait"), 1);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(json_tree_u64(json_tree_get(mode(i), "ends"), "timeout"), 1);
    assert_int_equal(json_tree_u64(json_tree_root(summary), "judged_runs"), 2);
}

static void an_expected_failure_that_does_not_come_is_not_reproduced(void **state) {
    (void)state;
    need_preload();
    assert_int_equal(matrix("calm", "--profile b3.62 --expect-failure", "plain"), 0);
    assert_string_equal(json_tree_text(json_tree_root(summary), "verdict"), "NOT_REPRODUCED");
}

static void the_checker_finds_mistakes(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "{}", "[]", "{\"version\":2}", "{\"version\":1,\"date\":7}", "{\"more\":1}",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        json_tree *t = NULL;
        struct err e = { 0 };
        assert_int_equal(json_tree_open(&t, wrong[i], strlen(wrong[i]), "x", &e), RC_OK);
        assert_non_null(schema_check(json_tree_root(t), json_tree_root(schema)));
        json_tree_close(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clean_runs_are_counted),
        cmocka_unit_test(a_race_is_found_with_the_schedules_that_show_it),
        cmocka_unit_test(a_fault_names_culprit_and_messenger),
        cmocka_unit_test(a_time_limit_is_an_error_of_its_own_kind),
        cmocka_unit_test(an_expected_failure_that_does_not_come_is_not_reproduced),
        cmocka_unit_test(the_checker_finds_mistakes),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
