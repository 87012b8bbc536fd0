/* Writing GGUF files: what goes in comes out, and nothing half-done is ever seen. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/gguf/gguf_fill.h"
#include "model/gguf/gguf_writer.h"
#include "test.h"
#include "unit/folder.h"

static char path[300];

static size_t count_files(void) {
    size_t n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *f; (f = readdir(d)) != NULL;)
        n += strcmp(f->d_name, ".") != 0 && strcmp(f->d_name, "..") != 0;
    closedir(d);
    return n;
}

static gguf_writer *open_writer(void) {
    struct err e = { 0 };
    gguf_writer *w = NULL;
    if (gguf_writer_open(&w, path, &e))
        fail_msg("%s", e.msg);
    return w;
}

static void what_is_written_is_read_back(void **state) {
    (void)state;
    struct err e = { 0 };
    gguf_writer *w = open_writer();
    gguf_writer_add_u32(w, "general.alignment", 64);
    gguf_writer_add_u64(w, "wide", 1ull << 40);
    gguf_writer_add_f32(w, "real", 0.25f);
    gguf_writer_add_bool(w, "flag", true);
    gguf_writer_add_string(w, "text", "hello");
    gguf_writer_add_array(w, "numbers", GGUF_I16, (int16_t[]){ -1, 2, 3 }, 3);
    gguf_writer_add_strings(w, "words", (struct gguf_string[]){ { "ab", 2 }, { "", 0 } }, 2);
    gguf_writer_add_tensor(w, "a", TENSOR_TYPE_F32, 2, (uint64_t[]){ 3, 2 });
    gguf_writer_add_tensor(w, "b", TENSOR_TYPE_Q8_0, 1, (uint64_t[]){ 32 });
    assert_int_equal(gguf_writer_begin(w, &e), RC_OK);
    uint8_t block[34];
    memset(block, 7, sizeof block);
    assert_int_equal(gguf_writer_write(w, 1, 0, block, 34, &e), RC_OK);
    assert_int_equal(gguf_writer_write(w, 0, 12, (float[]){ 4, 5, 6 }, 12, &e), RC_OK);
    assert_int_equal(gguf_writer_write(w, 0, 0, (float[]){ 1, 2, 3 }, 12, &e), RC_OK);
    assert_int_equal(gguf_writer_commit(w, &e), RC_OK);
    gguf_writer_close(&w);
    assert_null(w);

    gguf *g = NULL;
    assert_int_equal(gguf_open(&g, path, &e), RC_OK);
    assert_int_equal(gguf_alignment(g), 64);
    assert_true(gguf_find_key(g, "wide")->value.u == 1ull << 40);
    assert_true(gguf_find_key(g, "real")->value.f == 0.25);
    assert_true(gguf_find_key(g, "flag")->value.b);
    assert_true(gguf_string_is(gguf_find_key(g, "text")->value.string, "hello"));
    assert_int_equal(gguf_array_i64(&gguf_find_key(g, "numbers")->value.array, 0), -1);
    assert_int_equal(gguf_find_key(g, "words")->value.array.strings[0].len, 2);
    const struct gguf_tensor *a = gguf_find_tensor(g, "a"), *b = gguf_find_tensor(g, "b");
    assert_memory_equal(a->data, ((float[]){ 1, 2, 3, 4, 5, 6 }), 24);
    assert_memory_equal(b->data, block, 34);
    assert_int_equal(b->offset % 64, 0);
    gguf_close(&g);
    assert_int_equal(count_files(), 1);
}

/* Every kind of value survives a copy from file to file. */
static void keys_are_copied_with_their_values(void **state) {
    (void)state;
    static const struct gguf_array inner[] = {
        { .type = GGUF_U8, .count = 2, .numbers = (const uint8_t *)"\1\2" },
        { .type = GGUF_U8, .count = 0, .numbers = (const uint8_t *)"" },
    };
    static const struct gguf_value values[] = {
        { .type = GGUF_U8, .u = 200 },
        { .type = GGUF_I8, .i = -3 },
        { .type = GGUF_U16, .u = 60000 },
        { .type = GGUF_I16, .i = -300 },
        { .type = GGUF_U32, .u = 1u << 31 },
        { .type = GGUF_I32, .i = -1 },
        { .type = GGUF_U64, .u = UINT64_MAX },
        { .type = GGUF_I64, .i = INT64_MIN },
        { .type = GGUF_F32, .f = 1.5 },
        { .type = GGUF_F64, .f = 1e300 },
        { .type = GGUF_BOOL, .b = true },
        { .type = GGUF_STRING, .string = { "x\0y", 3 } },
        { .type = GGUF_ARRAY, .array = { .type = GGUF_ARRAY, .count = 2, .arrays = inner } },
    };
    enum { COUNT = sizeof values / sizeof *values };
    struct err e = { 0 };
    gguf_writer *w = open_writer();
    char names[COUNT][8];
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "k%d", i);
        struct gguf_key k = { .name = { names[i], strlen(names[i]) }, .value = values[i] };
        gguf_writer_copy_key(w, &k);
    }
    assert_int_equal(gguf_writer_begin(w, &e), RC_OK);
    assert_int_equal(gguf_writer_commit(w, &e), RC_OK);
    gguf_writer_close(&w);
    gguf *g = NULL;
    assert_int_equal(gguf_open(&g, path, &e), RC_OK);
    assert_int_equal(gguf_key_count(g), COUNT);
    for (int i = 0; i < 10; i++) {
        const struct gguf_value *v = &gguf_key_at(g, (uint64_t)i)->value;
        assert_int_equal(v->type, values[i].type);
        assert_memory_equal(&v->u, &values[i].u, 8);
    }
    assert_true(gguf_key_at(g, 10)->value.b);
    assert_memory_equal(gguf_key_at(g, 11)->value.string.data, "x\0y", 3);
    assert_int_equal(gguf_array_u64(&gguf_key_at(g, 12)->value.array.arrays[0], 1), 2);
    gguf_close(&g);
}

static void without_a_commit_nothing_remains(void **state) {
    (void)state;
    struct err e = { 0 };
    unlink(path);
    gguf_writer *w = open_writer();
    gguf_writer_add_tensor(w, "a", TENSOR_TYPE_F32, 1, (uint64_t[]){ 2 });
    assert_int_equal(gguf_writer_begin(w, &e), RC_OK);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(gguf_writer_write(w, 0, 0, (float[]){ 1 }, 4, &e), RC_OK);
    assert_int_equal(gguf_writer_commit(w, &e), RC_RANGE);
    assert_non_null(strstr(e.msg, "4 of 8 bytes of tensors were written"));
    gguf_writer_close(&w);
    assert_int_equal(count_files(), 0);
}

static void an_older_file_stays_until_the_commit(void **state) {
    (void)state;
    struct err e = { 0 };
    FILE *f = fopen(path, "w");
    fputs("old", f);
    fclose(f);
    struct stat before, after;
    gguf_writer *w = open_writer();
    assert_int_equal(gguf_writer_begin(w, &e), RC_OK);
    stat(path, &before);
    assert_int_equal(before.st_size, 3);
    assert_int_equal(gguf_writer_commit(w, &e), RC_OK);
    stat(path, &after);
    assert_int_equal(after.st_size, 32);
    gguf_writer_close(&w);
    assert_int_equal(count_files(), 1);
}

static void mistakes_are_reported_by_begin(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint32_t n_dims;
        uint64_t ne[2];
        enum tensor_type type;
    } bad[] = {
        { "", 1, { 4 }, TENSOR_TYPE_F32 },
        { "t", 0, { 4 }, TENSOR_TYPE_F32 },
        { "t", 2, { 4, 0 }, TENSOR_TYPE_F32 },
        { "t", 1, { 31 }, TENSOR_TYPE_Q4_0 },
        { "t", 2, { 1ull << 40, 1ull << 40 }, TENSOR_TYPE_F32 },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct err e = { 0 };
        gguf_writer *w = open_writer();
        gguf_writer_add_tensor(w, bad[i].name, bad[i].type, bad[i].n_dims, bad[i].ne);
        assert_int_equal(gguf_writer_begin(w, &e), RC_RANGE);
        assert_non_null(strstr(e.msg, "tensor '"));
        gguf_writer_close(&w);
    }
    struct err e = { 0 };
    gguf_writer *w = NULL;
    assert_int_equal(gguf_writer_open(&w, "/dev/null", &e), RC_IO);
    assert_int_equal(gguf_writer_open(&w, "/dev/null/folder/f.gguf", &e), RC_IO);
    assert_null(w);
    w = open_writer();
    gguf_writer_add_tensor(w, "t", TENSOR_TYPE_F32, 1, (uint64_t[]){ 4 });
    assert_int_equal(gguf_writer_begin(w, &e), RC_OK);
    assert_int_equal(gguf_writer_write(w, 0, 12, (float[]){ 1, 2 }, 8, &e), RC_RANGE);
    assert_int_equal(gguf_writer_write(w, 1, 0, (float[]){ 1 }, 4, &e), RC_RANGE);
    gguf_writer_close(&w);
}

/* ---- filling on several threads ---- */

static enum rc make_numbers(void *user, uint64_t tensor, uint64_t first, uint64_t count,
                            float *scratch, void *out, struct err *e) {
    (void)scratch;
    if (user && tensor == 1)
        return err_set(e, RC_FORMAT, "tensor 1 is bad");
    for (uint64_t i = 0; i < count; i++)
        ((float *)out)[i] = (float)(tensor * 1000 + (first + i) % 997);
    return RC_OK;
}

static void note_progress(void *user, uint64_t done, uint64_t total) {
    uint64_t *last = user;
    assert_true(done > *last && done <= total);
    *last = done;
}

static gguf_writer *begin_three_tensors(void) {
    struct err e = { 0 };
    gguf_writer *w = open_writer();
    gguf_writer_add_tensor(w, "small", TENSOR_TYPE_F32, 1, (uint64_t[]){ 5 });
    gguf_writer_add_tensor(w, "large", TENSOR_TYPE_F32, 2, (uint64_t[]){ 1000, 600 });
    gguf_writer_add_tensor(w, "exact", TENSOR_TYPE_F32, 1, (uint64_t[]){ GGUF_FILL_PIECE });
    if (gguf_writer_begin(w, &e))
        fail_msg("%s", e.msg);
    return w;
}

static void every_element_is_made_once(void **state) {
    (void)state;
    for (int threads = 1; threads <= 4; threads++) {
        struct err e = { 0 };
        uint64_t last = 0;
        gguf_writer *w = begin_three_tensors();
        struct gguf_fill how = { .make = make_numbers,
                                 .threads = threads,
                                 .progress = note_progress,
                                 .progress_user = &last };
        assert_int_equal(gguf_fill_run(w, &how, &e), RC_OK);
        assert_int_equal(gguf_writer_commit(w, &e), RC_OK);
        assert_int_equal(last, 4 * (5 + 600000 + GGUF_FILL_PIECE));
        gguf_writer_close(&w);
        gguf *g = NULL;
        assert_int_equal(gguf_open(&g, path, &e), RC_OK);
        for (uint64_t t = 0; t < 3; t++)
            for (uint64_t i = 0; i < gguf_tensor_at(g, t)->elements; i++)
                assert_true(((const float *)gguf_tensor_at(g, t)->data)[i] ==
                            (float)(t * 1000 + i % 997));
        gguf_close(&g);
    }
}

static void a_failing_piece_ends_the_run(void **state) {
    (void)state;
    struct err e = { 0 };
    unlink(path);
    gguf_writer *w = begin_three_tensors();
    struct gguf_fill how = { .make = make_numbers, .user = &e, .threads = 3 };
    assert_int_equal(gguf_fill_run(w, &how, &e), RC_FORMAT);
    assert_string_equal(e.msg, "tensor 1 is bad");
    gguf_writer_close(&w);
    atomic_bool cancel = true;
    w = begin_three_tensors();
    how = (struct gguf_fill){ .make = make_numbers, .threads = 2, .cancel = &cancel };
    assert_int_equal(gguf_fill_run(w, &how, &e), RC_BUSY);
    gguf_writer_close(&w);
    assert_int_equal(count_files(), 0);
}

static int make_folder(void **state) {
    int r = folder_make(state);
    snprintf(path, sizeof path, "%s/out.gguf", folder);
    return r;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(keys_are_copied_with_their_values),
        cmocka_unit_test(without_a_commit_nothing_remains),
        cmocka_unit_test(an_older_file_stays_until_the_commit),
        cmocka_unit_test(mistakes_are_reported_by_begin),
        cmocka_unit_test(every_element_is_made_once),
        cmocka_unit_test(a_failing_piece_ends_the_run),
    };
    return cmocka_run_group_tests(tests, make_folder, folder_remove);
}
