/* Compares hip_types.h and hip_api.def with the real HIP headers: constants, sizes, offsets, types
 * of functions. */
#include "abi_signatures.h"
#include "abi_values.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ROW_MAX = 4096 };

struct row {
    enum abi_kind kind;
    const char *name;
    long long value;
};

struct table {
    struct row rows[ROW_MAX];
    size_t count;
};

static struct table ours, real;

static void collect(void *context, enum abi_kind kind, const char *name, long long value) {
    struct table *t = context;
    assert_true(t->count < ROW_MAX);
    t->rows[t->count++] = (struct row){ kind, name, value };
}

static int collect_both(void **state) {
    (void)state;
    abi_values_ours(collect, &ours);
    abi_values_real(collect, &real);
    return 0;
}

static void both_headers_give_the_same_rows(void **state) {
    (void)state;
    assert_int_equal(ours.count, real.count);
    assert_true(ours.count > 1000);
    for (size_t i = 0; i < ours.count; i++)
        assert_string_equal(ours.rows[i].name, real.rows[i].name);
}

/* Names every row that differs before it fails. */
static void compare(enum abi_kind kind) {
    size_t compared = 0, wrong = 0;
    for (size_t i = 0; i < ours.count && i < real.count; i++) {
        if (ours.rows[i].kind != kind)
            continue;
        compared++;
        if (ours.rows[i].value == real.rows[i].value)
            continue;
        wrong++;
        print_message("# %s: expected %lld (HIP %d headers), found %lld (hip_types.h)\n",
                      ours.rows[i].name, real.rows[i].value, abi_real_major(), ours.rows[i].value);
    }
    assert_true(compared > 100);
    assert_int_equal(wrong, 0);
}

static void constants_have_the_values_of_hip(void **state) {
    (void)state;
    compare(ABI_CONSTANT);
}

static void structures_have_the_sizes_of_hip(void **state) {
    (void)state;
    compare(ABI_SIZE);
}

static void fields_have_the_offsets_of_hip(void **state) {
    (void)state;
    compare(ABI_OFFSET);
}

/* The comparison itself is done by the compiler. */
static void most_signatures_were_compared(void **state) {
    (void)state;
    assert_true(abi_signatures_compared() > 350);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_headers_give_the_same_rows),
        cmocka_unit_test(constants_have_the_values_of_hip),
        cmocka_unit_test(structures_have_the_sizes_of_hip),
        cmocka_unit_test(fields_have_the_offsets_of_hip),
        cmocka_unit_test(most_signatures_were_compared),
    };
    return cmocka_run_group_tests(tests, collect_both, NULL);
}
