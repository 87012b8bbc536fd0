/* The packed cache: it changes no bit, and a file that is not whole, not of this model or not to be
 * written is never used. */
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gcore/audit.h>

#include "infer/engine_internal.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/packed_format.h"
#include "support/model_run.h"
#include "unit/folder.h"

#define SHAPE "dim=256,layers=2,heads=4,kv_heads=2,hidden=520,vocab=300,ctx=128"

static char model[200], cache[200], file[PACKED_PATH_BYTES];
static char notes[2048];
static int32_t tokens[20];

static void keep_note(const char *text, void *user) {
    (void)user;
    snprintf(notes + strlen(notes), sizeof notes - strlen(notes), "%s\n", text);
}

static struct engine_options options(bool cached) {
    return (struct engine_options){ .model = model,
                                    .device = "soft",
                                    .guard_rail = true,
                                    .chunk = 12,
                                    .packed_cache = cached,
                                    .packed_folder = cache,
                                    .note = keep_note };
}

static struct kept run(bool cached) {
    struct engine_options o = options(cached);
    notes[0] = 0;
    return model_run(&o, tokens, 20, 4);
}

/* Runs with the cache, which must give the bits of a run without, and this note (NULL: none). */
static void assert_runs(const char *note) {
    struct kept plain = run(false), cached = run(true);
    assert_int_equal(plain.rows, cached.rows);
    assert_memory_equal(plain.logits, cached.logits,
                        (size_t)plain.rows * plain.vocab * sizeof *plain.logits);
    if (note ? !strstr(notes, note) : notes[0])
        fail_msg("notes: '%s', expected '%s'", notes, note ? note : "");
    free(plain.logits);
    free(cached.logits);
}

static void find_file(void) {
    gguf *g = NULL;
    struct err e = { 0 };
    assert_int_equal(gguf_open(&g, model, &e), RC_OK);
    assert_int_equal(packed_path(cache, g, file, &e), RC_OK);
    gguf_close(&g);
}

static void write_model(const char *shape, const char *type, uint64_t seed) {
    model_run_write(model, shape, type, seed);
    find_file();
}

static struct stat stat_of(const char *path) {
    struct stat st = { 0 };
    assert_int_equal(stat(path, &st), 0);
    return st;
}

static unsigned files_in_cache(void) {
    unsigned count = 0;
    DIR *d = opendir(cache);
    assert_non_null(d);
    for (struct dirent *entry; (entry = readdir(d));)
        count += entry->d_name[0] != '.';
    closedir(d);
    return count;
}

static void packed_files_change_no_bit(void **state) {
    static const char *const types[] = { "Q4_0", "Q8_0", "Q4_K_M", "F16" };
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        write_model(SHAPE, types[i], 11);
        unlink(file);
        assert_runs(NULL); /* makes the file */
        struct stat made = stat_of(file);
        assert_runs(NULL); /* maps it */
        assert_true(stat_of(file).st_ino == made.st_ino);
        assert_int_equal(files_in_cache(), 1);
    }
    write_model("tiny-phi3", "Q4_K", 11); /* fused tensors are kept as their parts */
    assert_runs("another model");
    assert_runs(NULL);
}

static void matrices_are_mapped_and_not_copied(void **state) {
    struct engine_options o = options(true);
    struct err e = { 0 };
    engine *g = NULL;
    (void)state;
    write_model(SHAPE, "Q4_0", 11);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(engine_open(&g, &o, &e), RC_OK);
        assert_non_null(g->stages.at[0].weights.cached);
        assert_true(g->stages.at[0].weights.packed && g->stages.at[0].weights.layers[1].packed);
        assert_int_equal(g->stages.at[0].weights.mapped_count, 1 + 1 + 2 * 7);
        assert_int_equal(engine_close(&g, &e), RC_OK);
    }
}

/* Bytes of every part: header, matrices and their ends, table. The padding between them is free. */
static void a_damaged_file_is_made_again(void **state) {
    (void)state;
    write_model(SHAPE, "Q4_0", 11);
    unlink(file);
    assert_runs(NULL);
    const off_t size = stat_of(file).st_size;
    const off_t at[] = { 0,
                         offsetof(struct packed_header, version),
                         offsetof(struct packed_header, key),
                         offsetof(struct packed_header, count),
                         offsetof(struct packed_header, table) + 1,
                         offsetof(struct packed_header, self),
                         PACKED_PAGE,
                         PACKED_PAGE + 9999,
                         size / 2 / PACKED_PAGE * PACKED_PAGE,
                         size - 1,
                         size - (off_t)sizeof(struct packed_entry) };
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        uint8_t byte;
        int fd = open(file, O_RDWR);
        assert_int_equal(pread(fd, &byte, 1, at[i]), 1);
        byte ^= 0x10;
        assert_int_equal(pwrite(fd, &byte, 1, at[i]), 1);
        close(fd);
        assert_runs("the packed cache is rebuilt");
        assert_runs(NULL);
    }
}

static void a_file_that_is_cut_or_lengthened_is_made_again(void **state) {
    (void)state;
    write_model(SHAPE, "Q4_0", 11);
    unlink(file);
    assert_runs(NULL);
    const off_t size = stat_of(file).st_size;
    const off_t sizes[] = { 0, 1, 100, PACKED_PAGE - 1, PACKED_PAGE, size / 2, size - 1, size + 1 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(truncate(file, sizes[i]), 0);
        assert_runs("the packed cache is rebuilt");
        assert_runs(NULL);
        assert_int_equal(stat_of(file).st_size, size);
    }
}

/* The same names, shapes and size, other weights. */
static void another_model_of_that_name_is_noticed(void **state) {
    (void)state;
    write_model(SHAPE, "Q4_0", 12);
    assert_runs("another model or another version of greta");
    assert_runs(NULL);
    assert_int_equal(files_in_cache(), 1);
}

static void without_a_place_it_goes_on_without(void **state) {
    struct engine_options o = options(true);
    (void)state;
    o.packed_folder = "/dev/null/x";
    notes[0] = 0;
    struct kept plain = run(false), k = model_run(&o, tokens, 20, 4);
    assert_non_null(strstr(notes, "continuing without the packed cache: /dev/null/x"));
    assert_memory_equal(plain.logits, k.logits,
                        (size_t)plain.rows * plain.vocab * sizeof *plain.logits);
    free(plain.logits);
    free(k.logits);
}

/* Files of this process may have so many bytes: as on a disk that is full. */
static void a_full_disk_leaves_nothing_behind(void **state) {
    struct rlimit before, limit;
    (void)state;
    write_model(SHAPE, "Q4_0", 11);
    unlink(file);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 100000;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    struct kept k = run(true);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_non_null(strstr(notes, "continuing without the packed cache"));
    assert_int_equal(files_in_cache(), 0);
    free(k.logits);
    assert_runs(NULL);
}

static bool stop_at_once(uint64_t done, uint64_t total, void *user) {
    (void)done;
    (void)total;
    (void)user;
    return false;
}

static void an_interruption_leaves_nothing_behind(void **state) {
    struct engine_options o = options(true);
    struct err e = { 0 };
    engine *g = NULL;
    (void)state;
    write_model(SHAPE, "Q4_0", 11);
    o.progress = stop_at_once;
    unlink(file);
    assert_runs(NULL);
    for (int i = 0; i < 2; i++) { /* while it is checked, then while it is made */
        assert_int_equal(engine_open(&g, &o, &e), RC_BUSY);
        assert_int_equal(files_in_cache(), i == 0);
        unlink(file);
    }
}

static void of_two_writers_the_last_one_wins(void **state) {
    packed_writer *w[2] = { 0 };
    packed_file *f = NULL;
    gguf *g = NULL;
    struct err e = { 0 };
    (void)state;
    write_model(SHAPE, "Q4_0", 11);
    unlink(file);
    assert_int_equal(gguf_open(&g, model, &e), RC_OK);
    const struct gguf_tensor *t = gguf_find_tensor(g, "token_embd.weight");
    assert_non_null(t);
    for (int i = 0; i < 2; i++)
        assert_int_equal(packed_create(&w[i], file, g, &e), RC_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(packed_add(w[i], i ? "second" : "first", t, &e), RC_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(packed_commit(&w[i], &e), RC_OK);
        assert_int_equal(packed_open(&f, file, g, NULL, NULL, &e), RC_OK);
        assert_non_null(packed_find(f, i ? "second" : "first", t->bytes));
        assert_null(packed_find(f, i ? "first" : "second", t->bytes));
        assert_null(packed_find(f, i ? "second" : "first", t->bytes - 1));
        packed_close(&f);
    }
    assert_int_equal(files_in_cache(), 1);
    gguf_close(&g);
}

static int set_up(void **state) {
    if (folder_make(state))
        return 1;
    snprintf(model, sizeof model, "%s/model.gguf", folder);
    snprintf(cache, sizeof cache, "%s/cache", folder);
    model_run_fill_tokens(tokens, 20, 300);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    gcore_close();
    return unlink(file) || rmdir(cache) || unlink(model) || rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_files_change_no_bit),
        cmocka_unit_test(an_interruption_leaves_nothing_behind),
        cmocka_unit_test(matrices_are_mapped_and_not_copied),
        cmocka_unit_test(a_damaged_file_is_made_again),
        cmocka_unit_test(a_file_that_is_cut_or_lengthened_is_made_again),
        cmocka_unit_test(another_model_of_that_name_is_noticed),
        cmocka_unit_test(without_a_place_it_goes_on_without),
        cmocka_unit_test(a_full_disk_leaves_nothing_behind),
        cmocka_unit_test(of_two_writers_the_last_one_wins),
    };
    struct err e = { 0 };
    if (isa_check(&e) == RC_UNSUPPORTED) {
        printf("ok 1 # SKIP %s\n", e.msg);
        return 0;
    }
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
