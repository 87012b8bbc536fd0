/* Arenas and hashes. */
#include "unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"

static void arena_memory_is_zeroed_aligned_and_disjoint(void **state) {
    (void)state;
    enum { N = 3000 };
    struct arena a = { 0 };
    unsigned char **p = calloc(N, sizeof *p);
    assert_non_null(p);
    for (size_t i = 0; i < N; i++) {
        size_t size = i % 200;
        p[i] = arena_alloc(&a, size);
        assert_non_null(p[i]);
        assert_int_equal((uintptr_t)p[i] % _Alignof(max_align_t), 0);
        for (size_t k = 0; k < size; k++)
            assert_int_equal(p[i][k], 0);
        memset(p[i], (int)(i % 251) + 1, size);
    }
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < i % 200; k++)
            assert_int_equal(p[i][k], i % 251 + 1);
    free(p);
    arena_clear(&a);
}

static void arena_takes_more_than_a_block(void **state) {
    (void)state;
    struct arena a = { 0 };
    unsigned char *big = arena_alloc(&a, 5 << 20);
    assert_non_null(big);
    big[(5 << 20) - 1] = 1;
    assert_non_null(arena_alloc(&a, 1));
    arena_clear(&a);
    assert_null(a.blocks);
}

static void arena_refuses_sizes_that_do_not_fit(void **state) {
    (void)state;
    struct arena a = { 0 };
    assert_null(arena_alloc(&a, SIZE_MAX));
    assert_null(arena_alloc(&a, SIZE_MAX - 100));
    assert_null(arena_alloc_array(&a, SIZE_MAX / 2, 3));
    assert_non_null(arena_alloc_array(&a, 10, 3));
    arena_clear(&a);
}

static void arena_text_is_a_terminated_copy(void **state) {
    (void)state;
    struct arena a = { 0 };
    assert_string_equal(arena_copy_text(&a, "logits_async", 6), "logits");
    assert_string_equal(arena_copy_text(&a, "x", 0), "");
    arena_clear(&a);
}

/* Known answers of XXH64, so that hashes in recordings mean the same everywhere. */
static void hash_gives_the_known_values(void **state) {
    (void)state;
    assert_true(hash_bytes("", 0, 0) == 0xef46db3751d8e999u);
    assert_true(hash_bytes("a", 1, 0) == 0xd24ec4f1a98c6e5bu);
    assert_true(hash_bytes("abc", 3, 0) == 0x44bc2cf5ad770999u);
    assert_true(hash_bytes("abc", 3, 1) != hash_bytes("abc", 3, 0));
}

static void hash_of_pieces_is_the_hash_of_the_whole(void **state) {
    (void)state;
    unsigned char data[1000];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 7);
    for (size_t cut = 0; cut <= sizeof data; cut += 37) {
        hash *h = NULL;
        assert_int_equal(hash_open(&h, 5, NULL), RC_OK);
        hash_add(h, data, cut);
        assert_true(hash_value(h) == hash_bytes(data, cut, 5));
        hash_add(h, data + cut, sizeof data - cut);
        hash_add(h, NULL, 0);
        assert_true(hash_value(h) == hash_bytes(data, sizeof data, 5));
        hash_close(&h);
        assert_null(h);
        hash_close(&h);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_memory_is_zeroed_aligned_and_disjoint),
        cmocka_unit_test(arena_takes_more_than_a_block),
        cmocka_unit_test(arena_refuses_sizes_that_do_not_fit),
        cmocka_unit_test(arena_text_is_a_terminated_copy),
        cmocka_unit_test(hash_gives_the_known_values),
        cmocka_unit_test(hash_of_pieces_is_the_hash_of_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
