/* GGUF files that lie: each is refused with a message that names file, field and offset, and none
 * makes the reader look outside its bytes. */
#include "test_gguf_bytes.h"

static struct bytes b;

/* A small file with a bit of everything: keys of all kinds, nested arrays, three tensors. */
static void make_rich(void) {
    put_header(&b, 3, 7);
    put_key(&b, "general.architecture", GGUF_STRING), put_text(&b, "llama");
    put_key_u32(&b, "general.alignment", 32);
    put_key(&b, "flag", GGUF_BOOL), put_u8(&b, 1);
    put_key(&b, "f", GGUF_F64), put(&b, &(double){ 0.5 }, 8);
    put_key(&b, "words", GGUF_ARRAY), put_u32(&b, GGUF_STRING), put_u64(&b, 2);
    put_text(&b, "one"), put_text(&b, "two");
    put_key(&b, "nested", GGUF_ARRAY), put_u32(&b, GGUF_ARRAY), put_u64(&b, 2);
    put_u32(&b, GGUF_U16), put_u64(&b, 1), put(&b, "\1\0", 2);
    put_u32(&b, GGUF_STRING), put_u64(&b, 1), put_text(&b, "in");
    put_key(&b, "flags", GGUF_ARRAY), put_u32(&b, GGUF_BOOL), put_u64(&b, 3), put(&b, "\0\1\1", 3);
    put_tensor(&b, "a", 2, (uint64_t[]){ 32, 2 }, TENSOR_TYPE_Q4_0, 0);
    put_tensor(&b, "b", 1, (uint64_t[]){ 5 }, TENSOR_TYPE_F32, 64);
    put_tensor(&b, "c", 1, (uint64_t[]){ 256 }, TENSOR_TYPE_Q6_K, 96);
    put_data(&b, 32, 96 + 210);
}

/* Reads whatever a file that opened hands out. */
static uint64_t touch_everything(const gguf *g) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < gguf_key_count(g); i++) {
        const struct gguf_key *k = gguf_key_at(g, i);
        sum += (uint8_t)k->name.data[k->name.len - 1];
        if (k->value.type == GGUF_STRING && k->value.string.len)
            sum += (uint8_t)k->value.string.data[k->value.string.len - 1];
        if (k->value.type == GGUF_ARRAY)
            for (uint64_t n = 0; n < k->value.array.count; n++) {
                if (k->value.array.type == GGUF_STRING)
                    sum += k->value.array.strings[n].len;
                else
                    sum += gguf_array_u64(&k->value.array, n);
            }
    }
    for (uint64_t i = 0; i < gguf_tensor_count(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        for (uint64_t n = 0; n < t->bytes; n++)
            sum += ((const uint8_t *)t->data)[n];
    }
    return sum;
}

static void every_truncation_is_refused(void **state) {
    (void)state;
    make_rich();
    for (size_t len = 0; len < b.len; len++) {
        struct err e = { 0 };
        gguf *g;
        uint8_t *copy;
        enum rc rc = open_exact(b.data, len, &g, &copy, &e);
        if (rc != RC_FORMAT || strncmp(e.msg, "m.gguf: ", 8) != 0 || !strstr(e.msg, "offset"))
            fail_msg("%zu of %zu bytes: %s '%s'", len, b.len, rc_name(rc), e.msg);
        free(copy);
    }
    struct err e = { 0 };
    gguf *g;
    uint8_t *copy;
    assert_int_equal(open_exact(b.data, b.len, &g, &copy, &e), RC_OK);
    assert_true(touch_everything(g) > 0);
    gguf_close(&g);
    free(copy);
}

static void no_changed_byte_leads_outside_the_file(void **state) {
    (void)state;
    static const uint8_t values[] = { 0x00, 0x01, 0x7f, 0x80, 0xff };
    make_rich();
    uint64_t sum = 0, opened = 0;
    for (size_t at = 0; at < b.len - 306; at++)
        for (size_t v = 0; v < sizeof values; v++) {
            uint8_t saved = b.data[at];
            struct err e = { 0 };
            gguf *g;
            uint8_t *copy;
            b.data[at] = values[v];
            if (open_exact(b.data, b.len, &g, &copy, &e) == RC_OK) {
                sum += touch_everything(g);
                opened++;
            } else {
                assert_true(strncmp(e.msg, "m.gguf: ", 8) == 0);
            }
            gguf_close(&g);
            free(copy);
            b.data[at] = saved;
        }
    assert_true(opened > 0 && sum > 0);
}

static void headers_that_lie_are_refused(void **state) {
    (void)state;
    put_header(&b, 0, 0), b.data[0] = 'X';
    assert_refused(&b, RC_FORMAT, "magic at offset 0: found 58 47 55 46, expected \"GGUF\"");
    b.len = 0, put(&b, "vm\n", 3);
    assert_refused(&b, RC_FORMAT, "the file has 3 bytes: this is not a GGUF file");
    put_header(&b, 0, 0), b.data[4] = 1;
    assert_refused(&b, RC_UNSUPPORTED, "version at offset 4: found 1, expected 2 or 3");
    put_header(&b, 0, 0), b.data[4] = 9;
    assert_refused(&b, RC_UNSUPPORTED, "version at offset 4: found 9");
    put_header(&b, 0, 0), b.data[4] = 0;
    assert_refused(&b, RC_FORMAT, "version at offset 4: found 0");
    put_header(&b, 0, 0), b.data[4] = 0, b.data[7] = 3;
    assert_refused(&b, RC_UNSUPPORTED, "a big-endian file");
    put_header(&b, 0, UINT64_MAX);
    assert_refused(&b, RC_FORMAT, "number of keys at offset 16: 18446744073709551615 keys cannot");
    put_header(&b, 0, 1ull << 60);
    assert_refused(&b, RC_FORMAT, "number of keys at offset 16");
    put_header(&b, 1ull << 40, 0);
    assert_refused(&b, RC_FORMAT, "number of tensors at offset 8: 1099511627776 tensors cannot");
}

static void keys_that_lie_are_refused(void **state) {
    (void)state;
    put_header(&b, 0, 1), put_u64(&b, 1ull << 62), put(&b, "xxxxxxxx", 8);
    assert_refused(&b, RC_FORMAT, "key 0 of 1 at offset 24: its name claims 4611686018427387904");
    put_header(&b, 0, 1), put_key_u32(&b, "", 1), put_u64(&b, 0);
    assert_refused(&b, RC_FORMAT, "its name has 0 bytes");
    put_header(&b, 0, 1), put_key_u32(&b, "a\nb", 1);
    assert_refused(&b, RC_FORMAT, "at offset 33: byte 0x0a in its name");
    put_header(&b, 0, 1), put_key(&b, "k", (enum gguf_type)13), put_u64(&b, 0);
    assert_refused(&b, RC_FORMAT, "key 'k' at offset 33: value type 13");
    put_header(&b, 0, 1), put_key(&b, "k", GGUF_BOOL), put_u8(&b, 2);
    assert_refused(&b, RC_FORMAT, "key 'k' at offset 37: a boolean is 0 or 1, found 2");
    put_header(&b, 0, 1), put_key(&b, "k", GGUF_STRING), put_u64(&b, 5), put(&b, "four", 4);
    assert_refused(&b, RC_FORMAT, "its value claims 5 bytes, the file has 4 left");
    put_header(&b, 0, 2), put_key_u32(&b, "k", 1), put_key_u32(&b, "k", 2);
    assert_refused(&b, RC_FORMAT, "key 'k' at offset 41: it occurs twice, first at offset 24");
}

static void arrays_that_lie_are_refused(void **state) {
    (void)state;
    put_header(&b, 0, 1), put_key(&b, "k", GGUF_ARRAY), put_u32(&b, 77), put_u64(&b, 0);
    assert_refused(&b, RC_FORMAT, "key 'k' at offset 37: element type 77");
    put_header(&b, 0, 1), put_key(&b, "k", GGUF_ARRAY), put_u32(&b, GGUF_U64);
    put_u64(&b, UINT64_MAX / 4); /* times 8 it wraps to something small */
    assert_refused(&b, RC_FORMAT, "elements of 8 bytes cannot fit in 0 bytes");
    put_header(&b, 0, 1), put_key(&b, "k", GGUF_ARRAY), put_u32(&b, GGUF_STRING);
    put_u64(&b, 1ull << 40);
    assert_refused(&b, RC_FORMAT, "strings cannot fit");
    put_header(&b, 0, 1), put_key(&b, "k", GGUF_ARRAY), put_u32(&b, GGUF_STRING), put_u64(&b, 2);
    put_text(&b, "ok"), put_u64(&b, 1000);
    assert_refused(&b, RC_FORMAT, "at offset 59: string 1 of 2 runs past the end");
    put_header(&b, 0, 1), put_key(&b, "k", GGUF_ARRAY), put_u32(&b, GGUF_ARRAY);
    put_u64(&b, 1ull << 50);
    assert_refused(&b, RC_FORMAT, "arrays cannot fit");
    put_header(&b, 0, 1), put_key(&b, "k", GGUF_ARRAY), put_u32(&b, GGUF_BOOL), put_u64(&b, 2);
    put(&b, "\1\5", 2);
    assert_refused(&b, RC_FORMAT, "at offset 50: a boolean is 0 or 1, found 5");
    put_header(&b, 0, 1), put_key(&b, "k", GGUF_ARRAY);
    for (int depth = 0; depth < 2000; depth++)
        put_u32(&b, GGUF_ARRAY), put_u64(&b, 1);
    assert_refused(&b, RC_FORMAT, "arrays nested deeper than 8");
}

static void alignments_that_lie_are_refused(void **state) {
    (void)state;
    static const uint32_t bad[] = { 0, 3, 7, 12, 33, 1u << 31, UINT32_MAX };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put_header(&b, 0, 1), put_key_u32(&b, "general.alignment", bad[i]);
        assert_refused(&b, RC_FORMAT, "key 'general.alignment' at offset 24: alignment");
    }
    put_header(&b, 0, 1), put_key(&b, "general.alignment", GGUF_STRING), put_text(&b, "32");
    assert_refused(&b, RC_FORMAT, "expected an integer, found string");
}

/* One tensor of 32 numbers unless said otherwise, followed by 128 bytes of data. */
static void make_tensor(const char *name, uint32_t n_dims, const uint64_t *ne, uint32_t type,
                        uint64_t offset) {
    put_header(&b, 1, 0);
    put_tensor(&b, name, n_dims, ne, type, offset);
    put_data(&b, 32, 128);
}

static void tensors_that_lie_are_refused(void **state) {
    (void)state;
    static const uint64_t ne[] = { 32, 1, 1, 1, 1 };
    make_tensor("", 1, ne, 0, 0);
    assert_refused(&b, RC_FORMAT, "tensor 0 of 1 at offset 24: its name has 0 bytes");
    make_tensor("0123456789012345678901234567890123456789012345678901234567890123456789", 1, ne, 0,
                0);
    assert_refused(&b, RC_FORMAT, "its name has 70 bytes, expected 1 to 64");
    make_tensor("t", 0, ne, 0, 0);
    assert_refused(&b, RC_FORMAT, "tensor 't' at offset 33: 0 dimensions, expected 1 to 4");
    make_tensor("t", 5, ne, 0, 0);
    assert_refused(&b, RC_FORMAT, "5 dimensions");
    make_tensor("t", 2, (uint64_t[]){ 32, 0 }, 0, 0);
    assert_refused(&b, RC_FORMAT, "tensor 't' at offset 45: dimension 1 is 0");
    make_tensor("t", 2, (uint64_t[]){ 1ull << 33, 1ull << 33 }, 0, 0);
    assert_refused(&b, RC_FORMAT, "too many elements in all");
    make_tensor("t", 1, (uint64_t[]){ 1ull << 62 }, TENSOR_TYPE_F64, 0);
    assert_refused(&b, RC_FORMAT, "more bytes than can be counted");
    make_tensor("t", 1, ne, 5, 0);
    assert_refused(&b, RC_FORMAT, "unknown tensor type 5");
    make_tensor("t", 1, ne, 0xffffffff, 0);
    assert_refused(&b, RC_FORMAT, "unknown tensor type 4294967295");
    make_tensor("t", 1, ne, TENSOR_TYPE_Q4_K, 0);
    assert_refused(&b, RC_FORMAT, "rows of 32 elements, Q4_K needs a multiple of 256");
    make_tensor("t", 1, ne, 0, 8);
    assert_refused(&b, RC_FORMAT, "data offset 8 is not a multiple of the alignment 32");
    make_tensor("t", 1, ne, 0, 32);
    assert_refused(&b, RC_FORMAT, "tensor 't': 128 bytes at data offset 32");
    make_tensor("t", 1, ne, 0, UINT64_MAX - 31);
    assert_refused(&b, RC_FORMAT, "cut short or damaged; copy or download it again");
}

static void tensors_that_overlap_or_repeat_are_refused(void **state) {
    (void)state;
    put_header(&b, 2, 0);
    put_tensor(&b, "late", 1, (uint64_t[]){ 8 }, 0, 32);
    put_tensor(&b, "early", 1, (uint64_t[]){ 16 }, 0, 0);
    put_data(&b, 32, 64);
    assert_refused(&b, RC_FORMAT, "tensor 'late' at offset 160 overlaps tensor 'early'");
    put_header(&b, 2, 0);
    put_tensor(&b, "t", 1, (uint64_t[]){ 8 }, 0, 0);
    put_tensor(&b, "t", 1, (uint64_t[]){ 8 }, 0, 32);
    put_data(&b, 32, 64);
    assert_refused(&b, RC_FORMAT, "tensor 't' occurs twice");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(no_changed_byte_leads_outside_the_file),
        cmocka_unit_test(headers_that_lie_are_refused),
        cmocka_unit_test(keys_that_lie_are_refused),
        cmocka_unit_test(arrays_that_lie_are_refused),
        cmocka_unit_test(alignments_that_lie_are_refused),
        cmocka_unit_test(tensors_that_lie_are_refused),
        cmocka_unit_test(tensors_that_overlap_or_repeat_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
