/* Functions, files and lines of call stacks, and which function is where. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "hip/hip_api.h"
#include "symbol/demangle.h"
#include "symbol/dwarf_file.h"
#include "symbol/lines.h"
#include "unit/test_record.h"

/* No jump instead of the last call, and no two functions of the same code. */
#define STAY() __asm__ volatile("# %0" ::"i"(__LINE__) : "memory")
#if defined(__clang__)
#define DEEP __attribute__((noinline))
#else
#define DEEP __attribute__((noinline, noclone))
#endif

static writer *w;

/* A HIP call of the program, as the audit records it. */
DEEP static uint32_t record_call(enum hip_fn fn) {
    struct event e = { .kind = EVENT_CALL,
                       .aux = event_aux((unsigned)fn, 0),
                       .site = record_site(w, __builtin_return_address(0)) };
    record_event(w, &e);
    STAY();
    return e.site;
}

static const char *fn_name(unsigned fn) {
    return hip_fn_name((enum hip_fn)fn);
}

static void begin(void) {
    struct err e = { 0 };
    struct record_options o = { .path = record_file, .fn_count = HIP_FN_COUNT, .fn_name = fn_name };
    if (record_open(&w, &o, &e) != RC_OK)
        fail_msg("%s", e.msg);
}

static reader *finish(void) {
    record_close(&w);
    reader *r = open_reader();
    lines_attach(r);
    return r;
}

static void expect_where(const reader *r, uint32_t site, const char *function, unsigned line) {
    struct reader_place p = { 0 };
    assert_true(reader_site_where(r, site, &p));
    assert_string_equal(p.line.function, function);
    assert_non_null(p.line.file);
    assert_string_equal(strrchr(p.line.file, '/') + 1, "test_symbol_lines.c");
    assert_int_equal(p.line.line, line);
}

/* ---- the program that is looked at ----------------------------------------------------------- */

/* Called from two places, makes one call: a wrapper. */
DEEP static uint32_t copy_checked(enum hip_fn fn) {
    uint32_t site = record_call(fn);
    STAY();
    return site;
}

/* The same, and looks at the error. */
DEEP static uint32_t copy_and_explain(enum hip_fn fn) {
    uint32_t site = record_call(fn);
    record_call(HIP_FN_hipGetLastError);
    STAY();
    return site;
}

/* Makes two calls: it does something. */
DEEP static uint32_t two_calls(enum hip_fn fn) {
    record_call(HIP_FN_hipDeviceSynchronize);
    uint32_t site = record_call(fn);
    STAY();
    return site;
}

/* Called from one place. */
DEEP static uint32_t single_caller(enum hip_fn fn) {
    uint32_t site = record_call(fn);
    STAY();
    return site;
}

static inline __attribute__((always_inline)) uint32_t inlined_wrapper(enum hip_fn fn) {
    uint32_t site = record_call(fn);
    STAY();
    return site;
}

/* A wrapper of a wrapper. */
DEEP static uint32_t outer_wrapper(enum hip_fn fn) {
    uint32_t site = copy_checked(fn);
    STAY();
    return site;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void wrappers_are_skipped(void **state) {
    (void)state;
    begin();
    unsigned line = __LINE__ + 1;
    uint32_t a = copy_checked(HIP_FN_hipMemcpy);
    uint32_t b = copy_checked(HIP_FN_hipMemcpy);
    uint32_t c = copy_and_explain(HIP_FN_hipMemcpy);
    uint32_t d = copy_and_explain(HIP_FN_hipMemcpy);
    uint32_t e = inlined_wrapper(HIP_FN_hipMemcpy);
    uint32_t f = inlined_wrapper(HIP_FN_hipMemcpy);
    uint32_t g = outer_wrapper(HIP_FN_hipMemcpy);
    uint32_t h = outer_wrapper(HIP_FN_hipMemcpy);
    uint32_t all[] = { a, b, c, d, e, f, g, h };
    reader *r = finish();
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        expect_where(r, all[i], "wrappers_are_skipped", line + i);
    char text[256], wanted[256];
    reader_site_text(r, b, text, sizeof text);
    snprintf(wanted, sizeof wanted,
             "wrappers_are_skipped (test_symbol_lines.c:%u) -> copy_checked (", line + 1);
    assert_memory_equal(text, wanted, strlen(wanted));
    reader_close(&r);
}

static void functions_that_do_more_are_where(void **state) {
    (void)state;
    begin();
    uint32_t a = two_calls(HIP_FN_hipMemcpy);
    uint32_t b = two_calls(HIP_FN_hipMemcpy);
    uint32_t c = single_caller(HIP_FN_hipMemcpy);
    reader *r = finish();
    struct reader_place p;
    assert_true(reader_site_where(r, a, &p));
    assert_string_equal(p.line.function, "two_calls");
    assert_true(reader_site_where(r, b, &p));
    assert_string_equal(p.line.function, "two_calls");
    assert_true(reader_site_where(r, c, &p));
    assert_string_equal(p.line.function, "single_caller");
    reader_close(&r);
}

static void inlined_functions_are_frames(void **state) {
    (void)state;
    begin();
    unsigned line = __LINE__ + 1;
    uint32_t site = inlined_wrapper(HIP_FN_hipMemcpy);
    reader *r = finish();
    unsigned count;
    const struct site_frame *f = reader_site(r, site, &count, NULL);
    struct reader_line lines[READER_LINES_MAX];
    assert_int_equal(reader_frame_lines(r, &f[0], lines, READER_LINES_MAX), 2);
    assert_string_equal(lines[0].function, "inlined_wrapper");
    assert_true(lines[0].inlined);
    assert_string_equal(lines[1].function, "inlined_functions_are_frames");
    assert_int_equal(lines[1].line, line);
    assert_false(lines[1].inlined);
    reader_close(&r);
}

static void changed_file_is_refused(void **state) {
    (void)state;
    dwarf_file *f = NULL;
    struct err e = { 0 };
    assert_int_equal(dwarf_file_open(&f, "/proc/self/exe", "0123", &e), RC_REFUSED);
    assert_null(f);
    assert_int_equal(dwarf_file_open(&f, "/nowhere", "", &e), RC_IO);
    assert_int_equal(dwarf_file_open(&f, "/dev/null", "", &e), RC_IO);
    char text[] = "no ELF file";
    FILE *out = fopen(record_file, "w");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(dwarf_file_open(&f, record_file, "", &e), RC_FORMAT);
    assert_null(f);
}

static void names_are_demangled(void **state) {
    (void)state;
    char *name = demangle("_ZN6engine6uploadEPf");
    if (name)
        assert_string_equal(name, "engine::upload(float*)");
    free(name);
    assert_null(demangle("upload"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        record_test(wrappers_are_skipped),         record_test(functions_that_do_more_are_where),
        record_test(inlined_functions_are_frames), record_test(changed_file_is_refused),
        record_test(names_are_demangled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
