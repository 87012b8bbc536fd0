/* JSON as it is read: values, escapes, what is refused, and what greta writes itself. */
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/json_tree.h"

static json_tree *tree;

static const struct json_node *read_text(const char *text) {
    struct err e = { 0 };
    json_tree_close(&tree);
    if (json_tree_open(&tree, text, strlen(text), "x", &e) != RC_OK)
        fail_msg("%s: %s", text, e.msg);
    return json_tree_root(tree);
}

static int close_tree(void **state) {
    (void)state;
    json_tree_close(&tree);
    return 0;
}

static void values_are_found_by_their_keys(void **state) {
    (void)state;
    const struct json_node *v = read_text(
        " {\"a\": 1, \"b\": \"x\", \"c\": [true, null, -2.5e1], \"d\": {\"e\": false}, \"a\": 2} ");
    assert_int_equal(v->type, JSON_OBJECT);
    assert_int_equal(json_tree_u64(v, "a"), 1);
    assert_string_equal(json_tree_text(v, "b"), "x");
    const struct json_node *c = json_tree_get(v, "c")->first;
    assert_true(c->type == JSON_BOOL && c->boolean);
    assert_int_equal(c->next->type, JSON_NULL);
    assert_true(c->next->next->number == -25.0 && !c->next->next->whole);
    assert_null(c->next->next->next);
    assert_int_equal(json_tree_get(json_tree_get(v, "d"), "e")->type, JSON_BOOL);
    assert_true(json_tree_number(v, "a") == 1.0);
}

static void what_is_not_there_is_nothing(void **state) {
    (void)state;
    const struct json_node *v = read_text("{\"a\": [], \"n\": -1, \"b\": true}");
    assert_null(json_tree_get(v, "z"));
    assert_null(json_tree_get(json_tree_get(v, "z"), "y"));
    assert_null(json_tree_get(json_tree_get(v, "a"), "y"));
    assert_string_equal(json_tree_text(v, "a"), "");
    assert_int_equal(json_tree_u64(v, "n"), 0);
    assert_true(json_tree_bool(v, "b"));
    assert_false(json_tree_bool(v, "a"));
}

static void whole_numbers_keep_all_their_digits(void **state) {
    (void)state;
    const struct json_node *v = read_text("[18446744073709551615, 18446744073709551616, 1.0, 0]");
    assert_true(v->first->whole && v->first->u64 == UINT64_MAX);
    assert_false(v->first->next->whole);
    assert_false(v->first->next->next->whole);
    assert_true(v->first->next->next->next->whole);
}

static void escapes_become_characters(void **state) {
    (void)state;
    assert_string_equal(read_text("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"")->text, "\"\\/\b\f\n\r\t");
    assert_string_equal(read_text("\"\\u00e9\\u20AC\\ud83d\\ude00\"")->text,
                        "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    assert_string_equal(read_text("\"\\ud83dx\\ude00\\ud83d\\u0041\"")->text,
                        "\xef\xbf\xbdx\xef\xbf\xbd\xef\xbf\xbd"
                        "A");
}

static void zero_bytes_are_part_of_a_text(void **state) {
    (void)state;
    const struct json_node *n = read_text("\"a\\u0000b\"");
    assert_int_equal(n->len, 3);
    assert_memory_equal(n->text, "a\0b", 4);
    assert_int_equal(read_text("\"\"")->len, 0);
    assert_int_equal(read_text("-12.5")->len, 5);
}

static void mistakes_are_refused_with_their_line(void **state) {
    (void)state;
    static const char *const wrong[] = { "",    "{",       "[1,]",        "{\"a\" 1}", "{a: 1}",
                                         "01",  "1.",      "1e",          "-",         "nul",
                                         "\"a", "\"\\x\"", "\"\\u12g4\"", "\"\\u12",   "\"a\nb\"",
                                         "1 2", "[1}",     "\"\\",        "{\"a\":1,}" };
    struct err e = { 0 };
    json_tree_close(&tree);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (json_tree_open(&tree, wrong[i], strlen(wrong[i]), "x", &e) != RC_FORMAT)
            fail_msg("'%s' was accepted", wrong[i]);
    assert_null(tree);
    assert_int_equal(json_tree_open(&tree, "{\n\n]", 4, "f.json", &e), RC_FORMAT);
    assert_string_equal(e.msg, "f.json: line 3, column 1: expected a string");
}

static void nesting_is_bounded(void **state) {
    (void)state;
    char deep[200];
    struct err e = { 0 };
    memset(deep, '[', 100);
    memset(deep + 100, ']', 100);
    json_tree_close(&tree);
    assert_int_equal(json_tree_open(&tree, deep, 200, "x", &e), RC_FORMAT);
    assert_int_equal(json_tree_open(&tree, deep + 60, 80, "x", &e), RC_OK);
}

static void what_greta_writes_is_read_back(void **state) {
    (void)state;
    static const char odd[] = "\x01 \"\\\x7f\xc3\xa9\n";
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    struct json j = json_begin(out, 2);
    json_object_open(&j, NULL);
    json_string(&j, odd, odd);
    json_double(&j, "x", 0.1);
    json_object_close(&j);
    assert_int_equal(json_end(&j, NULL), RC_OK);
    fclose(out);
    const struct json_node *v = read_text(text);
    assert_string_equal(json_tree_text(v, odd), odd);
    assert_true(json_tree_number(v, "x") == 0.1);
    free(text);
}

static void equal_is_equal_in_any_order(void **state) {
    (void)state;
    const struct json_node *v =
        read_text("[{\"a\":1,\"b\":[2,\"x\"]}, {\"b\":[2,\"x\"],\"a\":1}, {\"a\":1}, "
                  "{\"a\":1,\"b\":[\"x\",2]}, {\"a\":1,\"b\":[2,\"x\",null]}]");
    const struct json_node *first = v->first;
    assert_true(json_tree_equal(first, first->next));
    for (const struct json_node *n = first->next->next; n; n = n->next) {
        assert_false(json_tree_equal(first, n));
        assert_false(json_tree_equal(n, first));
    }
    assert_true(json_tree_equal(NULL, NULL));
    assert_false(json_tree_equal(NULL, first));
}

static void files_are_read_whole(void **state) {
    (void)state;
    char path[] = "/tmp/greta-json-XXXXXX";
    int fd = mkstemp(path);
    struct err e = { 0 };
    assert_true(fd >= 0);
    FILE *out = fdopen(fd, "w");
    fputs("[0", out);
    for (int i = 1; i < 20000; i++)
        fprintf(out, ",%d", i);
    fputs("]", out);
    fclose(out);
    json_tree_close(&tree);
    assert_int_equal(json_tree_open_file(&tree, path, &e), RC_OK);
    unsigned count = 0;
    for (const struct json_node *n = json_tree_root(tree)->first; n; n = n->next)
        assert_int_equal(n->u64, count++);
    assert_int_equal(count, 20000);
    unlink(path);
    json_tree_close(&tree);
    assert_int_equal(json_tree_open_file(&tree, path, &e), RC_IO);
    assert_non_null(strstr(e.msg, path));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_found_by_their_keys),
        cmocka_unit_test(what_is_not_there_is_nothing),
        cmocka_unit_test(whole_numbers_keep_all_their_digits),
        cmocka_unit_test(escapes_become_characters),
        cmocka_unit_test(zero_bytes_are_part_of_a_text),
        cmocka_unit_test(mistakes_are_refused_with_their_line),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(what_greta_writes_is_read_back),
        cmocka_unit_test(equal_is_equal_in_any_order),
        cmocka_unit_test(files_are_read_whole),
    };
    return cmocka_run_group_tests(tests, NULL, close_tree);
}
