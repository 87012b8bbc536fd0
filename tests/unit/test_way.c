/* Which way of multiplying with one token, or with several, is chosen, and that the choice is kept.
 */
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/way.h"

static enum tensor_type TYPE = TENSOR_TYPE_Q4_K;
static size_t tokens = 1;

static int fresh_folder(void **state) {
    char folder[300];
    (void)state;
    tokens = state ? 1 : tokens;
    snprintf(folder, sizeof folder, "%s/way.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(folder) || setenv("XDG_CACHE_HOME", folder, 1))
        return -1;
    way_reset();
    return 0;
}

/* All trials; `best` is faster than the others, each of which has one outlier below it. */
static void note_all(enum way_id best) {
    for (int trial = 0; trial < way_trials(tokens); trial++)
        for (int v = 0; v < WAY_COUNT; v++)
            if (way_is_possible((enum way_id)v, TYPE, tokens))
                way_note(TYPE, tokens, (enum way_id)v, v == (int)best ? 100 : trial == 0 ? 1 : 200);
}

static void lowest_median_is_chosen_despite_outliers(void **state) {
    static const char *const names[] = {
#define WAY(name, bits, groups, far, near)     #name,
#define ROWS(name, rows, far)                  #name,
#define PASS(name, bits, shared, panels, turn) #name,
#include "kernels/cpu/way.def"
    };
    (void)state;
    for (unsigned kind = 0; kind < WAY_KINDS; kind++)
        for (int best = 0; best < WAY_COUNT; best++) {
            tokens = way_kind_tokens(kind);
            if (!way_is_possible((enum way_id)best, TYPE, tokens))
                continue;
            assert_int_equal(fresh_folder(NULL), 0);
            assert_null(way_chosen(TYPE, tokens, NULL));
            note_all((enum way_id)best);
            assert_string_equal(way_chosen(TYPE, tokens, NULL), names[best]);
        }
}

/* All trials: `best` takes 1000, `first` so many, the others too many. */
static void note_two(enum way_id best, enum way_id first, uint64_t cost) {
    for (int trial = 0; trial < way_trials(tokens); trial++)
        for (int v = 0; v < WAY_COUNT; v++)
            if (way_is_possible((enum way_id)v, TYPE, tokens))
                way_note(TYPE, tokens, (enum way_id)v,
                         v == (int)best    ? 1000
                         : v == (int)first ? cost
                                           : 2000);
}

static void of_ways_that_tie_the_first_is_chosen(void **state) {
    (void)state;
    note_two(WAY_far, WAY_hardware, 1050);
    assert_string_equal(way_chosen(TYPE, tokens, NULL), "hardware");
}

static void a_way_that_is_clearly_faster_is_chosen(void **state) {
    (void)state;
    note_two(WAY_far, WAY_hardware, 1060);
    assert_string_equal(way_chosen(TYPE, tokens, NULL), "far");
}

static void ways_of_several_tokens_do_not_tie(void **state) {
    (void)state;
    tokens = 128;
    note_two(WAY_four_96, WAY_two_48, 1010);
    assert_string_equal(way_chosen(TYPE, tokens, NULL), "four_96");
}

static void numbers_of_tokens_are_measured_apart(void **state) {
    struct way way;
    (void)state;
    tokens = 128;
    note_all(WAY_two_48);
    assert_null(way_chosen(TYPE, 1, NULL));
    assert_null(way_chosen(TYPE, 64, NULL));
    assert_string_equal(way_chosen(TYPE, 512, &way), "two_48");
    assert_true(way.several && !way.shared);
    assert_int_equal(way.panels, 2);
    assert_int_equal(way.turn, 48);
    tokens = 8;
    note_all(WAY_alone);
    tokens = 128;
    way_reset();
    (void)way_begin(TYPE, 128, &TYPE, 1 << 20);
    assert_string_equal(way_chosen(TYPE, 65, NULL), "two_48");
    assert_string_equal(way_chosen(TYPE, 5, NULL), "alone");
    assert_null(way_chosen(TYPE, 32, NULL));
}

static void until_there_is_a_choice_something_serves(void **state) {
    (void)state;
    for (unsigned kind = 0; kind < WAY_KINDS; kind++) {
        struct way way = way_usual(TYPE, way_kind_tokens(kind));
        assert_int_equal(way.several, kind > 0);
        assert_true(!way.shared || mm()->dot_few);
    }
    tokens = 200;
    note_all(WAY_four_96);
    assert_int_equal(way_usual(TYPE, 200).turn, 96);
}

static int possible_ways(void) {
    int count = 0;
    for (int v = 0; v < WAY_COUNT; v++)
        count += way_is_possible((enum way_id)v, TYPE, tokens);
    return count;
}

/* So many pieces of work, `gap` bytes apart, until something is chosen; how many it took. */
static int pieces_until_chosen(uint64_t bytes, uint64_t gap, int most) {
    const char *at = (const char *)&TYPE;
    for (int i = 0; i < most; i++, at += bytes + gap) {
        if (way_chosen(TYPE, tokens, NULL))
            return i;
        (void)way_begin(TYPE, tokens, at, bytes);
        way_end();
    }
    return way_chosen(TYPE, tokens, NULL) ? most : -1;
}

static void long_pieces_are_a_trial_each(void **state) {
    (void)state;
    assert_int_equal(pieces_until_chosen(WAY_LEAST, 1 << 20, 100000),
                     possible_ways() * way_trials(tokens));
}

static void short_pieces_in_a_row_are_measured_together(void **state) {
    (void)state;
    assert_int_equal(pieces_until_chosen(WAY_LEAST / 4, 0, 100000),
                     4 * possible_ways() * way_trials(tokens));
}

static void short_pieces_here_and_there_are_not_measured(void **state) {
    (void)state;
    assert_int_equal(pieces_until_chosen(WAY_LEAST / 4, 64, 10000), -1);
}

static void ways_take_turns_of_several_stretches(void **state) {
    bool none = false, far = false, near = false, pair = false, narrow = false;
    struct way first;
    (void)state;
    for (int i = 0; i < possible_ways() * WAY_ROW; i++) {
        struct way way = way_begin(TYPE, tokens, (const char *)&TYPE + i, WAY_LEAST);
        way_end();
        if (i % WAY_ROW == 0)
            first = way;
        assert_memory_equal(&way, &first, sizeof way);
        none |= !way.ahead.far && !way.ahead.near;
        far |= way.ahead.far == 12288;
        near |= way.ahead.near == 2048;
        pair |= way.groups == 2;
        narrow |= way.bits == 256;
    }
    assert_true(none && far && near);
    assert_int_equal(pair, mm()->dot_pair != NULL);
    assert_int_equal(narrow, mm_narrow() != NULL);
}

static void floats_have_ways_of_their_own_for_one_token(void **state) {
    struct way way;
    (void)state;
    TYPE = TENSOR_TYPE_BF16;
    note_all(WAY_one_row);
    assert_false(way_is_possible(WAY_both, TYPE, 1));
    assert_false(way_is_possible(WAY_one_row, TYPE, 2));
    assert_false(way_is_possible(WAY_one_row, TENSOR_TYPE_Q4_K, 1));
    way_reset();
    (void)way_begin(TYPE, 1, &TYPE, 1 << 20);
    assert_string_equal(way_chosen(TYPE, 1, &way), "one_row");
    TYPE = TENSOR_TYPE_Q4_K;
    assert_int_equal(way.stream.rows, 1);
    assert_int_equal(way.stream.far, 8192);
    assert_null(way_chosen(TENSOR_TYPE_F16, 1, NULL));
    assert_int_equal(way_usual(TENSOR_TYPE_F16, 1).stream.rows, 4);
}

static void what_the_processor_lacks_is_never_chosen(void **state) {
    (void)state;
    for (int v = 0; v < WAY_COUNT; v++) {
        if (way_is_possible((enum way_id)v, TYPE, tokens))
            continue;
        for (int trial = 0; trial < way_trials(tokens); trial++)
            way_note(TYPE, tokens, (enum way_id)v, 1);
    }
    note_all(WAY_both);
    assert_string_equal(way_chosen(TYPE, tokens, NULL), "both");
}

static void choice_is_read_again(void **state) {
    (void)state;
    note_all(WAY_far);
    assert_string_equal(way_chosen(TYPE, tokens, NULL), "far");
    way_reset();
    struct way way = way_begin(TYPE, tokens, &TYPE, 1 << 20);
    assert_string_equal(way_chosen(TYPE, tokens, NULL), "far");
    assert_int_equal(way.ahead.far, 12288);
    assert_null(way_chosen(TENSOR_TYPE_Q8_0, tokens, NULL));
}

/* Replaces the file of the cache by these words. */
static void spoil(const char *words) {
    char command[700];
    snprintf(command, sizeof command,
             "for f in \"$XDG_CACHE_HOME\"/greta/ways-*; do printf '%s' >\"$f\"; done", words);
    assert_int_equal(system(command), 0);
}

static void spoilt_files_are_measured_again(void **state) {
    static const char *const files[] = { "", "greta ways 5: other, avx2\\nQ4_K 1 far\\n",
                                         "\\377\\377", "Q4_K 1 far\\n" };
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        way_reset();
        note_all(WAY_far);
        spoil(files[i]);
        way_reset();
        (void)way_begin(TYPE, tokens, &TYPE, 1 << 20);
        way_end();
        assert_null(way_chosen(TYPE, tokens, NULL));
    }
}

static void without_a_folder_the_choice_lasts_as_long_as_the_process(void **state) {
    (void)state;
    setenv("XDG_CACHE_HOME", "/proc/nowhere", 1);
    note_all(WAY_both);
    assert_string_equal(way_chosen(TYPE, tokens, NULL), "both");
    way_reset();
    assert_null(way_chosen(TYPE, tokens, NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(lowest_median_is_chosen_despite_outliers, fresh_folder),
        cmocka_unit_test_setup(of_ways_that_tie_the_first_is_chosen, fresh_folder),
        cmocka_unit_test_setup(a_way_that_is_clearly_faster_is_chosen, fresh_folder),
        cmocka_unit_test_setup(ways_of_several_tokens_do_not_tie, fresh_folder),
        cmocka_unit_test_setup(numbers_of_tokens_are_measured_apart, fresh_folder),
        cmocka_unit_test_setup(until_there_is_a_choice_something_serves, fresh_folder),
        cmocka_unit_test_setup(long_pieces_are_a_trial_each, fresh_folder),
        cmocka_unit_test_setup(short_pieces_in_a_row_are_measured_together, fresh_folder),
        cmocka_unit_test_setup(short_pieces_here_and_there_are_not_measured, fresh_folder),
        cmocka_unit_test_setup(ways_take_turns_of_several_stretches, fresh_folder),
        cmocka_unit_test_setup(floats_have_ways_of_their_own_for_one_token, fresh_folder),
        cmocka_unit_test_setup(what_the_processor_lacks_is_never_chosen, fresh_folder),
        cmocka_unit_test_setup(choice_is_read_again, fresh_folder),
        cmocka_unit_test_setup(spoilt_files_are_measured_again, fresh_folder),
        cmocka_unit_test_setup(without_a_folder_the_choice_lasts_as_long_as_the_process,
                               fresh_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
