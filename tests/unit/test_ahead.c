/* Which way of fetching weights ahead is chosen, and that the choice is kept. */
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
static void note_all(int best) {
    for (int slot = 0; slot < AHEAD_COUNT * AHEAD_TRIALS; slot++) {
        int way = slot % AHEAD_COUNT;
        uint64_t cost = way == best ? 100 : slot < AHEAD_COUNT ? 1 : 200;
        ahead_note(TYPE, slot, cost);
    }
}

static void lowest_median_is_chosen_despite_outliers(void **state) {
    (void)state;
    for (int best = 0; best < AHEAD_COUNT; best++) {
        static const char *const names[] = {
#define AHEAD(name, far, near) #name,
#include "kernels/cpu/ahead.def"
        };
        assert_int_equal(fresh_folder(NULL), 0);
        assert_null(ahead_chosen(TYPE, NULL));
        note_all(best);
        assert_string_equal(ahead_chosen(TYPE, NULL), names[best]);
    }
}

static void small_pieces_are_not_measured(void **state) {
    struct ahead_trial t;
    (void)state;
    for (int i = 0; i < 2 * AHEAD_COUNT * AHEAD_TRIALS; i++) {
        (void)ahead_begin(TYPE, AHEAD_LEAST - 1, &t);
        assert_int_equal(t.slot, -1);
        ahead_end(&t);
    }
    assert_null(ahead_chosen(TYPE, NULL));
}

static void trials_take_turns_until_one_is_chosen(void **state) {
    struct ahead_trial t;
    struct mm_ahead first = ahead_begin(TYPE, 1 << 20, &t);
    (void)state;
    assert_int_equal(t.slot, 0);
    assert_int_equal(first.far, 0);
    ahead_end(&t);
    for (int i = 1; i < AHEAD_COUNT * AHEAD_TRIALS; i++) {
        assert_null(ahead_chosen(TYPE, NULL));
        (void)ahead_begin(TYPE, 1 << 20, &t);
        assert_int_equal(t.slot, i);
        ahead_end(&t);
    }
    assert_non_null(ahead_chosen(TYPE, NULL));
}

static void choice_is_read_again(void **state) {
    struct ahead_trial t;
    (void)state;
    note_all(AHEAD_far);
    assert_string_equal(ahead_chosen(TYPE, NULL), "far");
    ahead_reset();
    struct mm_ahead a = ahead_begin(TYPE, 1 << 20, &t);
    assert_string_equal(ahead_chosen(TYPE, NULL), "far");
    assert_int_equal(t.slot, -1);
    assert_int_equal(a.far, 12288);
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
    static const char *const files[] = { "", "greta prefetch 1: other, avx2\\nQ4_K far\\n",
                                         "\\377\\377", "Q4_K far\\n" };
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct ahead_trial t;
        ahead_reset();
        note_all(AHEAD_far);
        spoil(files[i]);
        ahead_reset();
        (void)ahead_begin(TYPE, 1 << 20, &t);
        assert_int_equal(t.slot, 0);
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
        cmocka_unit_test_setup(small_pieces_are_not_measured, fresh_folder),
        cmocka_unit_test_setup(trials_take_turns_until_one_is_chosen, fresh_folder),
        cmocka_unit_test_setup(choice_is_read_again, fresh_folder),
        cmocka_unit_test_setup(spoilt_files_are_measured_again, fresh_folder),
        cmocka_unit_test_setup(without_a_folder_the_choice_lasts_as_long_as_the_process,
                               fresh_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
