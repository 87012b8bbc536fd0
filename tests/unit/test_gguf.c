/* Well-formed GGUF files: every value type, alignments, split models, lookups. */
#include <unistd.h>

#include "test_gguf_bytes.h"
#include "unit/folder.h"

static struct bytes b;

/* Opens b, which must be fine; the caller closes and frees. */
static gguf *open_good(uint8_t **copy) {
    struct err e = { 0 };
    gguf *g;
    if (open_exact(b.data, b.len, &g, copy, &e))
        fail_msg("%s", e.msg);
    return g;
}

static void every_value_type_is_read(void **state) {
    (void)state;
    put_header(&b, 0, 13);
    put_key(&b, "u8", GGUF_U8), put_u8(&b, 200);
    put_key(&b, "i8", GGUF_I8), put_u8(&b, (uint8_t)-5);
    put_key(&b, "u16", GGUF_U16), put(&b, &(uint16_t){ 60000 }, 2);
    put_key(&b, "i16", GGUF_I16), put(&b, &(int16_t){ -300 }, 2);
    put_key(&b, "u32", GGUF_U32), put_u32(&b, 4000000000u);
    put_key(&b, "i32", GGUF_I32), put(&b, &(int32_t){ -70000 }, 4);
    put_key(&b, "u64", GGUF_U64), put_u64(&b, UINT64_MAX);
    put_key(&b, "i64", GGUF_I64), put(&b, &(int64_t){ INT64_MIN }, 8);
    put_key(&b, "f32", GGUF_F32), put(&b, &(float){ 1.5f }, 4);
    put_key(&b, "f64", GGUF_F64), put(&b, &(double){ -2.25 }, 8);
    put_key(&b, "bool", GGUF_BOOL), put_u8(&b, 1);
    put_key(&b, "text", GGUF_STRING), put_text(&b, "h\xc3\xa9llo");
    put_key(&b, "array", GGUF_ARRAY), put_u32(&b, GGUF_I16), put_u64(&b, 2),
        put(&b, (int16_t[]){ -1, 7 }, 4);
    uint8_t *copy;
    gguf *g = open_good(&copy);
    assert_int_equal(gguf_key_count(g), 13);
    assert_int_equal(gguf_find_key(g, "u8")->value.u, 200);
    assert_int_equal(gguf_find_key(g, "i8")->value.i, -5);
    assert_int_equal(gguf_find_key(g, "u16")->value.u, 60000);
    assert_int_equal(gguf_find_key(g, "i16")->value.i, -300);
    assert_int_equal(gguf_find_key(g, "u32")->value.u, 4000000000u);
    assert_int_equal(gguf_find_key(g, "i32")->value.i, -70000);
    assert_true(gguf_find_key(g, "u64")->value.u == UINT64_MAX);
    assert_true(gguf_find_key(g, "i64")->value.i == INT64_MIN);
    assert_true(gguf_find_key(g, "f32")->value.f == 1.5);
    assert_true(gguf_find_key(g, "f64")->value.f == -2.25);
    assert_true(gguf_find_key(g, "bool")->value.b);
    assert_true(gguf_string_is(gguf_find_key(g, "text")->value.string, "h\xc3\xa9llo"));
    const struct gguf_array *a = &gguf_find_key(g, "array")->value.array;
    assert_int_equal(a->count, 2);
    assert_int_equal(gguf_array_i64(a, 0), -1);
    assert_true(gguf_array_f64(a, 1) == 7);
    assert_null(gguf_find_key(g, "arra"));
    assert_null(gguf_find_key(g, "arrayy"));
    gguf_close(&g);
    assert_null(g);
    gguf_close(&g);
    free(copy);
}

static void typed_access_checks_kind_and_range(void **state) {
    (void)state;
    put_header(&b, 0, 4);
    put_key_u32(&b, "n", 7);
    put_key(&b, "minus", GGUF_I32), put(&b, &(int32_t){ -1 }, 4);
    put_key(&b, "big", GGUF_U64), put_u64(&b, 1ull << 40);
    put_key(&b, "s", GGUF_STRING), put_text(&b, "x");
    uint8_t *copy;
    gguf *g = open_good(&copy);
    struct err e = { 0 };
    uint64_t u = 99;
    uint32_t u32 = 99;
    double f = 0;
    bool flag = true;
    struct gguf_string s;
    const struct gguf_array *a;
    assert_int_equal(gguf_get_u32(g, "n", &u32, &e), RC_OK);
    assert_int_equal(u32, 7);
    assert_int_equal(gguf_get_f64(g, "n", &f, &e), RC_OK);
    assert_true(f == 7);
    assert_int_equal(gguf_get_u32(g, "none", &u32, &e), RC_FORMAT);
    assert_string_equal(e.msg, "m.gguf: key 'none' is missing");
    assert_int_equal(gguf_try_u64(g, "none", &u, &e), RC_OK);
    assert_int_equal(gguf_try_u64(g, "minus", &u, &e), RC_FORMAT);
    assert_int_equal(gguf_get_u32(g, "big", &u32, &e), RC_FORMAT);
    assert_int_equal(gguf_try_u64(g, "s", &u, &e), RC_FORMAT);
    assert_string_equal(e.msg, "m.gguf: key 's' at offset 85: expected an integer, found string");
    assert_int_equal(gguf_get_bool(g, "n", &flag, &e), RC_FORMAT);
    assert_int_equal(gguf_get_string(g, "n", &s, &e), RC_FORMAT);
    assert_int_equal(gguf_get_array(g, "n", GGUF_U32, &a, &e), RC_FORMAT);
    assert_string_equal(e.msg, "m.gguf: key 'n' at offset 24: expected array of u32, found u32");
    assert_true(u == 99 && u32 == 7 && flag);
    gguf_close(&g);
    free(copy);
}

static void arrays_may_be_nested(void **state) {
    (void)state;
    put_header(&b, 0, 1);
    put_key(&b, "deep", GGUF_ARRAY), put_u32(&b, GGUF_ARRAY), put_u64(&b, 2);
    put_u32(&b, GGUF_STRING), put_u64(&b, 2), put_text(&b, "a"), put_text(&b, "");
    put_u32(&b, GGUF_U8), put_u64(&b, 3), put(&b, "\1\2\3", 3);
    uint8_t *copy;
    gguf *g = open_good(&copy);
    const struct gguf_array *deep = &gguf_find_key(g, "deep")->value.array;
    assert_int_equal(deep->count, 2);
    assert_true(gguf_string_is(deep->arrays[0].strings[0], "a"));
    assert_int_equal(deep->arrays[0].strings[1].len, 0);
    assert_int_equal(gguf_array_u64(&deep->arrays[1], 2), 3);
    gguf_close(&g);
    free(copy);
}

static void alignments_of_every_size_are_read(void **state) {
    (void)state;
    static const uint32_t good[] = { 1, 2, 4, 8, 24, 32, 64, 4096 };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        put_header(&b, 2, 1);
        put_key_u32(&b, "general.alignment", good[i]);
        uint64_t second = (12 + good[i] - 1) / good[i] * good[i];
        put_tensor(&b, "a", 1, (uint64_t[]){ 3 }, TENSOR_TYPE_F32, 0);
        put_tensor(&b, "b", 1, (uint64_t[]){ 32 }, TENSOR_TYPE_Q4_0, second);
        put_data(&b, good[i], second + 18);
        uint8_t *copy;
        gguf *g = open_good(&copy);
        assert_int_equal(gguf_alignment(g), good[i]);
        const struct gguf_tensor *t = gguf_find_tensor(g, "b");
        assert_int_equal(t->bytes, 18);
        assert_int_equal(t->offset % good[i], 0);
        assert_int_equal(*(const uint8_t *)t->data, second % 256);
        assert_ptr_equal((const uint8_t *)t->data, copy + t->offset);
        gguf_close(&g);
        free(copy);
    }
}

static void versions_2_and_3_are_read(void **state) {
    (void)state;
    for (uint32_t version = 2; version <= 3; version++) {
        put_header(&b, 0, 0);
        memcpy(b.data + 4, &version, 4);
        uint8_t *copy;
        gguf *g = open_good(&copy);
        assert_int_equal(gguf_version(g), version);
        assert_int_equal(gguf_alignment(g), 32);
        gguf_close(&g);
        free(copy);
    }
}

static void tensors_have_shape_size_and_place(void **state) {
    (void)state;
    put_header(&b, 2, 0);
    put_tensor(&b, "second.in.memory", 2, (uint64_t[]){ 64, 3 }, TENSOR_TYPE_Q8_0, 64);
    put_tensor(&b, "first.in.memory", 4, (uint64_t[]){ 2, 2, 1, 3 }, TENSOR_TYPE_F32, 0);
    put_data(&b, 32, 64 + 204);
    uint8_t *copy;
    gguf *g = open_good(&copy);
    const struct gguf_tensor *t = gguf_tensor_at(g, 0);
    assert_string_equal(t->name, "second.in.memory");
    assert_int_equal(t->elements, 192);
    assert_int_equal(t->bytes, 204);
    assert_int_equal(t->ne[2], 1);
    assert_int_equal(*(const uint8_t *)t->data, 64);
    assert_ptr_equal(gguf_find_tensor(g, "first.in.memory"), gguf_tensor_at(g, 1));
    assert_null(gguf_find_tensor(g, "third"));
    gguf_close(&g);
    free(copy);
}

/* ---- files ---- */

static void write_file(const char *name, const struct bytes *content) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(content->data, 1, content->len, f), content->len);
    assert_int_equal(fclose(f), 0);
}

/* Part `no` of a split model with one tensor of one number each. */
static void make_part(uint32_t no, uint32_t count, uint32_t tensors, const char *tensor) {
    put_header(&b, 1, no == 0 ? 4 : 3);
    if (no == 0) {
        put_key(&b, "general.name", GGUF_STRING);
        put_text(&b, "split");
    }
    put_key(&b, "split.no", GGUF_U16), put(&b, &(uint16_t){ (uint16_t)no }, 2);
    put_key(&b, "split.count", GGUF_U16), put(&b, &(uint16_t){ (uint16_t)count }, 2);
    put_key(&b, "split.tensors.count", GGUF_I32), put_u32(&b, tensors);
    put_tensor(&b, tensor, 1, (uint64_t[]){ 1 }, TENSOR_TYPE_F32, 0);
    put_data(&b, 32, 4);
}

static void write_parts(uint32_t third_no, uint32_t tensors, const char *third_tensor) {
    make_part(0, 3, tensors, "a"), write_file("m-00001-of-00003.gguf", &b);
    make_part(1, 3, tensors, "b"), write_file("m-00002-of-00003.gguf", &b);
    make_part(third_no, 3, tensors, third_tensor), write_file("m-00003-of-00003.gguf", &b);
}

static enum rc open_file(const char *name, gguf **g, struct err *e) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    *g = NULL;
    return gguf_open(g, path, e);
}

static void assert_file_refused(const char *name, enum rc rc, const char *words) {
    struct err e = { 0 };
    gguf *g;
    enum rc found = open_file(name, &g, &e);
    gguf_close(&g);
    if (found != rc || !strstr(e.msg, words))
        fail_msg("%s '%s', expected '%s'", rc_name(found), e.msg, words);
}

static void split_models_open_from_the_first_part(void **state) {
    (void)state;
    struct err e = { 0 };
    gguf *g;
    write_parts(2, 3, "c");
    if (open_file("m-00001-of-00003.gguf", &g, &e))
        fail_msg("%s", e.msg);
    assert_int_equal(gguf_part_count(g), 3);
    assert_int_equal(gguf_tensor_count(g), 3);
    assert_non_null(gguf_find_key(g, "general.name"));
    const struct gguf_tensor *t = gguf_find_tensor(g, "c");
    assert_int_equal(t->part, 2);
    assert_non_null(strstr(gguf_part_path(g, 2), "m-00003-of-00003.gguf"));
    assert_int_equal(*(const uint8_t *)t->data, 0);
    gguf_close(&g);
}

static void split_models_must_be_complete_and_agree(void **state) {
    (void)state;
    write_parts(2, 3, "c");
    assert_file_refused("m-00002-of-00003.gguf", RC_FORMAT,
                        "open the one ending in -00001-of-00003");
    write_parts(1, 3, "c");
    assert_file_refused("m-00001-of-00003.gguf", RC_FORMAT, "expected part 2 of 3, found 1 of 3");
    write_parts(2, 4, "c");
    assert_file_refused("m-00001-of-00003.gguf", RC_FORMAT, "expected 4 tensors in all parts");
    write_parts(2, 3, "a");
    assert_file_refused("m-00001-of-00003.gguf", RC_FORMAT, "tensor 'a' occurs twice");
    make_part(0, 3, 3, "a"), write_file("renamed.gguf", &b);
    assert_file_refused("renamed.gguf", RC_FORMAT, "must end in '-00001-of-00003.gguf'");
    char path[512];
    snprintf(path, sizeof path, "%s/m-00003-of-00003.gguf", folder);
    assert_int_equal(unlink(path), 0);
    assert_file_refused("m-00001-of-00003.gguf", RC_IO, "m-00003-of-00003.gguf: cannot open");
    make_part(0, 3, 3, "a");
    assert_refused(&b, RC_FORMAT, "open it by its path");
}

static void what_is_no_model_file_is_refused(void **state) {
    (void)state;
    struct bytes empty = { .len = 0 };
    write_file("empty.gguf", &empty);
    assert_file_refused("empty.gguf", RC_FORMAT, "the file is empty");
    assert_file_refused("absent.gguf", RC_IO, "cannot open");
    assert_file_refused(".", RC_IO, "expected a regular file");
}

/* The vocabularies that lie beside the project, if they do. */
static void real_vocabularies_open(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint64_t tokens;
    } files[] = { { "llama-spm.gguf", 32000 },
                  { "llama-bpe.gguf", 128256 },
                  { "gpt-2.gguf", 50257 } };
    const char *source = getenv("SOURCE_DIR");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[512];
        struct err e = { 0 };
        gguf *g = NULL;
        const struct gguf_array *tokens;
        snprintf(path, sizeof path, "%s/../shared/vocab/%s", source ? source : ".", files[i].name);
        if (access(path, R_OK) != 0) {
            print_message("no %s: skipped\n", path);
            skip();
        }
        assert_int_equal(gguf_open(&g, path, &e), RC_OK);
        assert_int_equal(gguf_get_array(g, "tokenizer.ggml.tokens", GGUF_STRING, &tokens, &e),
                         RC_OK);
        assert_int_equal(tokens->count, files[i].tokens);
        gguf_close(&g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_type_is_read),
        cmocka_unit_test(typed_access_checks_kind_and_range),
        cmocka_unit_test(arrays_may_be_nested),
        cmocka_unit_test(alignments_of_every_size_are_read),
        cmocka_unit_test(versions_2_and_3_are_read),
        cmocka_unit_test(tensors_have_shape_size_and_place),
        cmocka_unit_test(split_models_open_from_the_first_part),
        cmocka_unit_test(split_models_must_be_complete_and_agree),
        cmocka_unit_test(what_is_no_model_file_is_refused),
        cmocka_unit_test(real_vocabularies_open),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
