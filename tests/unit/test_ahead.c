/* Which way of multiplying with one token is chosen, and that the choice is kept. */
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/ahead.h"

static const enum tensor_type TYPE = TENSOR_TYPE_Q4_K;

static int fresh_folder(void **state) {
    char folder[300];
    (void)state;
    snprintf(folder, sizeof folder, "%s/ahead.XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(folder) || setenv("XDG_CACHE_HOME", folder, 1))
        return -1;
    ahead_reset();
    return 0;
}

/* All trials; `best` is faster than the others, each of which has one outlier below it. */
static void note_all(enum ahead_way best) {
    for (int trial = 0; trial < AHEAD_TRIALS; trial++)
        for (int v = 0; v < AHEAD_COUNT; v++)
            ahead_note(TYPE, (enum ahead_way)v, v == (int)best ? 100 : trial == 0 ? 1 : 200);
}

static void lowest_median_is_chosen_despite_outliers(void **state) {
    static const char *const names[] = {
#define AHEAD(name, far, near) #name,
#include "kernels/cpu/ahead.def"
    };
    (void)state;
    for (int best = 0; best < AHEAD_COUNT; best++) {
        assert_int_equal(fresh_folder(NULL), 0);
        assert_null(ahead_chosen(TYPE, NULL));
        note_all((enum ahead_way)best);
        assert_string_equal(ahead_chosen(TYPE, NULL), names[best]);
    }
}

/* So many pieces of work, `gap` bytes apart, until something is chosen; how many it took. */
static int pieces_until_chosen(uint64_t bytes, uint64_t gap, int most) {
    const char *at = (const char *)&TYPE;
    for (int i = 0; i < most; i++, at += bytes + gap) {
        if (ahead_chosen(TYPE, NULL))
            return i;
        (void)ahead_begin(TYPE, at, bytes);
        ahead_end();
    }
    return ahead_chosen(TYPE, NULL) ? most : -1;
}

static void long_pieces_are_a_trial_each(void **state) {
    (void)state;
    assert_int_equal(pieces_until_chosen(AHEAD_LEAST, 1 << 20, 10000), AHEAD_COUNT * AHEAD_TRIALS);
}

static void short_pieces_in_a_row_are_measured_together(void **state) {
    (void)state;
    assert_int_equal(pieces_until_chosen(AHEAD_LEAST / 4, 0, 10000),
                     4 * AHEAD_COUNT * AHEAD_TRIALS);
}

static void short_pieces_here_and_there_are_not_measured(void **state) {
    (void)state;
    assert_int_equal(pieces_until_chosen(AHEAD_LEAST / 4, 64, 10000), -1);
}

static void ways_take_turns(void **state) {
    bool none = false, far = false, near = false;
    (void)state;
    for (int i = 0; i < AHEAD_COUNT; i++) {
        struct mm_ahead way = ahead_begin(TYPE, (const char *)&TYPE + i, AHEAD_LEAST);
        ahead_end();
        none |= !way.far && !way.near;
        far |= way.far == 12288;
        near |= way.near == 2048;
    }
    assert_true(none && far && near);
}

static void choice_is_read_again(void **state) {
    (void)state;
    note_all(AHEAD_far);
    assert_string_equal(ahead_chosen(TYPE, NULL), "far");
    ahead_reset();
    struct mm_ahead way = ahead_begin(TYPE, &TYPE, 1 << 20);
    assert_string_equal(ahead_chosen(TYPE, NULL), "far");
    assert_int_equal(way.far, 12288);
    assert_null(ahead_chosen(TENSOR_TYPE_Q8_0, NULL));
}

/* Replaces the file of the cache by these words. */
static void spoil(const char *words) {
    char command[700];
    snprintf(command, sizeof command,
             "for f in \"$XDG_CACHE_HOME\"/greta/prefetch-*; do printf '%s' >\"$f\"; done", words);
    assert_int_equal(system(command), 0);
}

static void spoilt_files_are_measured_again(void **state) {
    static const char *const files[] = { "", "greta prefetch 2: other, avx2\\nQ4_K far\\n",
                                         "\\377\\377", "Q4_K far\\n" };
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        ahead_reset();
        note_all(AHEAD_far);
        spoil(files[i]);
        ahead_reset();
        (void)ahead_begin(TYPE, &TYPE, 1 << 20);
        ahead_end();
        assert_null(ahead_chosen(TYPE, NULL));
    }
}

static void without_a_folder_the_choice_lasts_as_long_as_the_process(void **state) {
    (void)state;
    setenv("XDG_CACHE_HOME", "/proc/nowhere", 1);
    note_all(AHEAD_both);
    assert_string_equal(ahead_chosen(TYPE, NULL), "both");
    ahead_reset();
    assert_null(ahead_chosen(TYPE, NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(lowest_median_is_chosen_despite_outliers, fresh_folder),
        cmocka_unit_test_setup(long_pieces_are_a_trial_each, fresh_folder),
        cmocka_unit_test_setup(short_pieces_in_a_row_are_measured_together, fresh_folder),
        cmocka_unit_test_setup(short_pieces_here_and_there_are_not_measured, fresh_folder),
        cmocka_unit_test_setup(ways_take_turns, fresh_folder),
        cmocka_unit_test_setup(choice_is_read_again, fresh_folder),
        cmocka_unit_test_setup(spoilt_files_are_measured_again, fresh_folder),
        cmocka_unit_test_setup(without_a_folder_the_choice_lasts_as_long_as_the_process,
                               fresh_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
