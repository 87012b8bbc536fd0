/* lint: which uses of hipMemcpy are direct copies, and which only look like it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lint/lint.h"
#include "unit/test.h"

static lint *read_text(const char *text) {
    struct err e = { 0 };
    lint *l = NULL;
    assert_int_equal(lint_open(&l, &e), RC_OK);
    assert_int_equal(lint_add_text(l, "a.cpp", text, strlen(text), &e), RC_OK);
    return l;
}

/* Copies in the text that nothing allows. */
static unsigned count(const char *text) {
    lint *l = read_text(text);
    struct lint_totals t = lint_totals(l);
    lint_close(&l);
    assert_null(l);
    return (unsigned)(t.found - t.allowed);
}

#define assert_copies(n, text)                                                                     \
    do {                                                                                           \
        unsigned found_ = count(text);                                                             \
        if (found_ != (n))                                                                         \
            fail_msg("%u copies instead of %u in: %s", found_, (unsigned)(n), text);               \
    } while (0)

static void calls_are_found_where_they_are(void **state) {
    (void)state;
    lint *l = read_text("int f() {\n"
                        "    x = hipMemcpy(a, b, n, hipMemcpyDeviceToHost);\n"
                        "\treturn ::hipMemcpyHtoDAsync(a, b, n, s);\n"
                        "}\n");
    const struct lint_hit *h = lint_files(l)->hits;
    assert_int_equal(h->line, 2);
    assert_int_equal(h->column, 9);
    assert_string_equal(h->name, "hipMemcpy");
    assert_string_equal(h->snippet, "x = hipMemcpy(a, b, n, hipMemcpyDeviceToHost);");
    assert_string_equal(h->instead, "gcore_d2h_copy");
    h = h->next;
    assert_int_equal(h->line, 3);
    assert_int_equal(h->column, 11);
    assert_string_equal(h->instead, "gcore_h2d_copy_async");
    assert_null(h->next);
    lint_close(&l);
}

static void every_copy_of_the_api_is_found(void **state) {
    (void)state;
    assert_copies(1, "hipMemcpyAsync(a,b,n,k,s);");
    assert_copies(1, "hipMemcpyDtoH(a,b,n);");
    assert_copies(1, "hipMemcpyDtoDAsync(a,b,n,s);");
    assert_copies(1, "hipMemcpyWithStream(a,b,n,k,s);");
    assert_copies(1, "hipMemcpy2D(a,1,b,1,1,1,k);");
    assert_copies(1, "hipMemcpyFromSymbol(a,b,n,0,k);");
    assert_copies(1, "hipMemcpy_spt(a,b,n,k);");
    assert_copies(1, "hipDrvMemcpy3D(p);");
    assert_copies(1, "hipMemcpyOfTheFuture(p);");
    assert_copies(1, "hipMemcpyToSymbol<float>(a, b, n);");
}

static void other_names_are_no_copies(void **state) {
    (void)state;
    assert_copies(0, "my_hipMemcpy(a,b); hipMemcpyKind k = hipMemcpyDeviceToHost;");
    assert_copies(0, "hipMemcpyKind(2); hipMemcpy3DParms p; struct hipMemcpy3DParms q = {0};");
    assert_copies(0, "cudaMemcpy(a,b,n,k); hipMemset(a,0,n); memcpy(a,b,n);");
    assert_copies(0, "xhipMemcpy(a); $hipMemcpy(a); HIP_FN_hipMemcpy; hipMemcpyDefault;");
    assert_copies(0, "gcore_d2h_copy(host, dev, &meta, stream, &result);");
}

static void comments_and_strings_are_no_code(void **state) {
    (void)state;
    assert_copies(0, "// hipMemcpy(a,b,n,k);\n/* hipMemcpy(a,\n b); */");
    assert_copies(0, "// a \\\nhipMemcpy(a,b,n,k);\n");
    assert_copies(0, "const char *s = \"hipMemcpy(a) \\\" hipMemcpy(b)\"; int c = 'h';");
    assert_copies(
        0, "auto s = R\"(hipMemcpy(a) \" ) hipMemcpy)\"; auto t = u8R\"x()\" hipMemcpy( )x\";");
    assert_copies(1, "auto s = R\"(\")\"; hipMemcpy(a,b,n,k);");
    assert_copies(1, "char q = '\"'; hipMemcpy(a,b,n,k); char r = '\"';");
    assert_copies(1, "char q = '\\''; hipMemcpy(a,b,n,k); //'");
    assert_copies(1, "int n = 1'000'000; hipMemcpy(a,b,n,k); int m = 0x1'0;");
    assert_copies(1, "/**/hipMemcpy/* the (copy) */(a,b,n,k);");
    assert_copies(1, "f(\"unclosed\nhipMemcpy(a,b,n,k);");
    assert_copies(0, "/* never closed hipMemcpy(a,b,n,k);");
    assert_copies(1, "int x = a /b; hipMemcpy(a,b,n,k); int y = c/ *d;");
}

static void continued_lines_are_one(void **state) {
    (void)state;
    assert_copies(1, "hipMem\\\ncpy(a,b,n,k);");
    assert_copies(1, "hipMem\\  \r\ncpy(a,b,n,k);");
    assert_copies(0, "my_\\\nhipMemcpy(a,b,n,k);");
    lint *l = read_text(
        "#define COPY(a, b) \\\n    do { \\\n  hipMemcpy(a, b, 1, 1); \\\n } while (0)\n");
    assert_int_equal(lint_files(l)->found, 1);
    assert_int_equal(lint_files(l)->hits->line, 3);
    assert_int_equal(lint_files(l)->hits->column, 3);
    lint_close(&l);
}

static void directives_are_understood(void **state) {
    (void)state;
    assert_copies(0, "#include \"hipMemcpy.h\"\n#include <hipMemcpy>\n#error hipMemcpy don't\n");
    assert_copies(0,
                  "#ifdef hipMemcpy\n#endif\n#if defined(hipMemcpy)\n#endif\n#pragma hipMemcpy\n");
    assert_copies(0, "#if 0\nhipMemcpy(a,b,n,k); don't\n#endif\n");
    assert_copies(1, "#if 0\nhipMemcpy(a);\n#else\nhipMemcpy(b);\n#endif\n");
    assert_copies(1,
                  "#if 1\nhipMemcpy(a);\n#elif X\nhipMemcpy(b);\n#else\nhipMemcpy(c);\n#endif\n");
    assert_copies(2, "#ifdef A\nhipMemcpy(a);\n#else\nhipMemcpy(b);\n#endif\n");
    assert_copies(0, "#if 0\n#if 1\nhipMemcpy(a);\n#endif\nhipMemcpy(b);\n#endif\n");
    assert_copies(1, "#if 0 // old\n#endif\nhipMemcpy(b);\n");
    assert_copies(1, "#define COPY hipMemcpy\nCOPY(a,b,n,k);");
    assert_copies(0, "#define hipMemcpy(...) checked(__VA_ARGS__)\nhipMemcpy(a,b,n,k);");
    assert_copies(1, "#define hipMemcpy(...) CHECK(hipMemcpy(__VA_ARGS__))\nhipMemcpy(a);");
    assert_copies(1, "#define hipMemcpy f\nhipMemcpy(a);\n#undef hipMemcpy\nhipMemcpy(b);");
    assert_copies(1, "%:define X hipMemcpy(a)\n");
    assert_copies(1, "# /* x */ define X 1\nhipMemcpy(a);\n#");
}

static void declarations_and_mentions_are_no_copies(void **state) {
    (void)state;
    assert_copies(0, "extern \"C\" hipError_t hipMemcpy(void *, const void *, size_t, int);");
    assert_copies(0, "struct t { hipError_t (*hipMemcpy)(void *); };");
    assert_copies(0, "using F = decltype(&hipMemcpy); using G = decltype(hipMemcpy);");
    assert_copies(0, "using ::hipMemcpy; mine::hipMemcpy(a); vec<int>::hipMemcpy(a);");
    assert_copies(0, "table.hipMemcpy = f; if (t->hipMemcpy) {} x = { .hipMemcpy = f };");
    assert_copies(1, "table->hipMemcpy(a,b,n,k);");
    assert_copies(1, "auto f = hipMemcpy;");
    assert_copies(1, "auto f = &hipMemcpy;");
    assert_copies(2, "return ::hipMemcpy(a), (hipMemcpy)(b);");
    assert_copies(1, "CHECK(hipMemcpy(a,b,n,k));");
}

static void a_reason_allows(void **state) {
    (void)state;
    assert_copies(0, "hipMemcpy(a); // gcore-lint: allow startup, before gcore_open\n");
    assert_copies(0, "// gcore-lint: allow startup\nhipMemcpy(a);\n");
    assert_copies(0, "/* gcore-lint: allow startup */ hipMemcpy(a);\n");
    assert_copies(0, "/* gcore-lint:\n   allow startup */\nhipMemcpy(a);\n");
    assert_copies(1, "// gcore-lint: allow startup\n\nhipMemcpy(a);\n");
    assert_copies(1, "f(); // gcore-lint: allow this line only\nhipMemcpy(a);\n");
    assert_copies(1, "// gcore-lint: allow one\nhipMemcpy(a);\nhipMemcpy(b);\n");
    assert_copies(1, "// gcore-lint: allowed reason\nhipMemcpy(a);\n");
    assert_copies(1, "const char *s = \"// gcore-lint: allow x\"; hipMemcpy(a);\n");
    lint *l = read_text("hipMemcpy(a); // gcore-lint: allow because  \r\n");
    assert_string_equal(lint_files(l)->hits->reason, "because");
    assert_int_equal(lint_files(l)->allowed, 1);
    lint_close(&l);
    l = read_text("hipMemcpy(a); // gcore-lint: allow\n");
    assert_null(lint_files(l)->hits->reason);
    assert_int_equal(lint_files(l)->reasonless, 1);
    lint_close(&l);
}

static void the_wrapper_to_use_follows_the_copy(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        { "hipMemcpyAsync(a, b, f(x), hipMemcpyHostToDevice, s);", "gcore_h2d_copy_async" },
        { "hipMemcpy(a, b, n, hipMemcpyDeviceToDevice);", "gcore_d2d_copy" },
        { "hipMemcpy(a, b, n, kind); f(hipMemcpyDeviceToHost);", "gcore_copy" },
        { "hipMemcpyDtoHAsync(a, b, n, s);", "gcore_d2h_copy_async" },
        { "hipMemcpy2DAsync(a, 1, b, 1, 1, 1, hipMemcpyDeviceToHost, s);", "" },
        { "hipMemcpyHtoD(a, b, n);", "gcore_h2d_copy" },
        { "hipMemcpyWithStream(a, b, n, hipMemcpyDeviceToHost, s);", "gcore_d2h_copy_async" },
        { "hipMemcpyAtoD(a, b, o, n);", "" },
        { "hipMemcpyOfTomorrow(a, hipMemcpyDeviceToHost);", "" }, /* nothing is known of it */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lint *l = read_text(cases[i][0]);
        assert_string_equal(lint_files(l)->hits->instead, cases[i][1]);
        lint_close(&l);
    }
}

/* Any bytes are a source; hostile ones must not be read past their end. */
static void every_prefix_and_any_bytes_are_read(void **state) {
    (void)state;
    static const char text[] = "#define A(x) \\\n hipMem\\\ncpy(x) // gcore-lint: allow x\n"
                               "R\"abc(hipMemcpy)abc\" u8'\\'' 1'0e+1 /* */ %: ::x->y\n#if 0\n";
    struct err e = { 0 };
    for (size_t n = 0; n <= sizeof text; n++) {
        lint *l = NULL;
        char *copy = malloc(n ? n : 1);
        memcpy(copy, text, n);
        assert_int_equal(lint_open(&l, &e), RC_OK);
        assert_int_equal(lint_add_text(l, "x", copy, n, &e), RC_OK);
        lint_close(&l);
        free(copy);
    }
    unsigned random = 1;
    for (int round = 0; round < 2000; round++) {
        static const char bytes[] = "\\\n\"'R(/*#hipMemcpy ) \r0e\0\xc3";
        char noise[64];
        for (size_t i = 0; i < sizeof noise; i++) {
            random = random * 1664525u + 1013904223u;
            noise[i] = bytes[(random >> 16) % (sizeof bytes - 1)];
        }
        lint *l = NULL;
        assert_int_equal(lint_open(&l, &e), RC_OK);
        assert_int_equal(lint_add_text(l, "x", noise, sizeof noise, &e), RC_OK);
        lint_close(&l);
    }
}

static void write_file(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static unsigned problems;
static void count_problem(const char *text) {
    assert_true(*text);
    problems++;
}

static void folders_are_walked(void **state) {
    (void)state;
    char dir[200], path[300];
    struct err e = { 0 };
    lint *l = NULL;
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%s/lint.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(dir));
    static const char *const folders[] = { "sub", ".hidden" };
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, folders[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    static const char *const files[] = { "b.hip", "a.cpp", "notes.txt", "sub/c.h", ".hidden/d.c" };
    for (size_t i = 0; i < 5; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        write_file(path, "hipMemcpy(a,b,n,k);\n");
    }
    assert_int_equal(lint_open(&l, &e), RC_OK);
    assert_int_equal(lint_add(l, dir, count_problem, &e), RC_OK);
    assert_int_equal(lint_totals(l).files, 3);
    assert_int_equal(lint_totals(l).found, 3);
    const struct lint_file *f = lint_files(l);
    assert_non_null(strstr(f->path, "/a.cpp"));
    assert_non_null(strstr(f->next->path, "/b.hip"));
    assert_non_null(strstr(f->next->next->path, "/sub/c.h"));
    snprintf(path, sizeof path, "%s/notes.txt", dir);
    assert_int_equal(lint_add(l, path, count_problem, &e), RC_OK); /* named: whatever its name */
    assert_int_equal(lint_totals(l).found, 4);
    assert_int_equal(problems, 0);
    snprintf(path, sizeof path, "%s/none.c", dir);
    assert_int_equal(lint_add(l, path, count_problem, &e), RC_IO);
    assert_int_equal(problems, 1);
    assert_int_equal(lint_totals(l).unreadable, 1);
    lint_close(&l);
    for (size_t i = 0; i < 5; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        unlink(path);
    }
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, folders[i]);
        rmdir(path);
    }
    rmdir(dir);
}

static void reports_count_files_and_all(void **state) {
    (void)state;
    char *text = NULL;
    size_t size = 0;
    struct err e = { 0 };
    lint *l = read_text("hipMemcpy(a, b, n, hipMemcpyDeviceToHost);\n"
                        "hipMemcpy(a); // gcore-lint: allow a reason\n");
    FILE *out = open_memstream(&text, &size);
    lint_text(out, l, false);
    fclose(out);
    assert_string_equal(text, "a.cpp:1:1: hipMemcpy: direct HIP copy; use gcore_d2h_copy\n"
                              "    hipMemcpy(a, b, n, hipMemcpyDeviceToHost);\n"
                              "a.cpp: 1 direct copy, 1 allowed\n"
                              "total: 1 direct copy in 1 of 1 files, 1 allowed\n");
    free(text);
    out = open_memstream(&text, &size);
    assert_int_equal(lint_json(out, l, &e), RC_OK);
    fclose(out);
    assert_non_null(strstr(text, "\"direct_copies\": 1"));
    assert_non_null(strstr(text, "\"instead\": \"gcore_d2h_copy\""));
    assert_non_null(strstr(text, "\"reason\": \"a reason\""));
    free(text);
    lint_close(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_found_where_they_are),
        cmocka_unit_test(every_copy_of_the_api_is_found),
        cmocka_unit_test(other_names_are_no_copies),
        cmocka_unit_test(comments_and_strings_are_no_code),
        cmocka_unit_test(continued_lines_are_one),
        cmocka_unit_test(directives_are_understood),
        cmocka_unit_test(declarations_and_mentions_are_no_copies),
        cmocka_unit_test(a_reason_allows),
        cmocka_unit_test(the_wrapper_to_use_follows_the_copy),
        cmocka_unit_test(every_prefix_and_any_bytes_are_read),
        cmocka_unit_test(folders_are_walked),
        cmocka_unit_test(reports_count_files_and_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
