/* test_gguf_bytes.h - GGUF files for tests, byte by byte, so that they can be wrong on purpose. */
#ifndef TESTS_UNIT_TEST_GGUF_BYTES_H
#define TESTS_UNIT_TEST_GGUF_BYTES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/gguf/gguf.h"
#include "test.h"

struct bytes {
    uint8_t data[1 << 16];
    size_t len;
};

static inline void put(struct bytes *b, const void *data, size_t n) {
    assert_true(n <= sizeof b->data - b->len);
    memcpy(b->data + b->len, data, n);
    b->len += n;
}

static inline void put_u8(struct bytes *b, uint8_t v) {
    put(b, &v, sizeof v);
}

static inline void put_u32(struct bytes *b, uint32_t v) {
    put(b, &v, sizeof v);
}

static inline void put_u64(struct bytes *b, uint64_t v) {
    put(b, &v, sizeof v);
}

static inline void put_text(struct bytes *b, const char *text) {
    put_u64(b, strlen(text));
    put(b, text, strlen(text));
}

static inline void put_header(struct bytes *b, uint64_t tensors, uint64_t keys) {
    b->len = 0;
    put(b, "GGUF", 4);
    put_u32(b, 3);
    put_u64(b, tensors);
    put_u64(b, keys);
}

static inline void put_key(struct bytes *b, const char *name, enum gguf_type type) {
    put_text(b, name);
    put_u32(b, type);
}

static inline void put_key_u32(struct bytes *b, const char *name, uint32_t value) {
    put_key(b, name, GGUF_U32);
    put_u32(b, value);
}

static inline void put_tensor(struct bytes *b, const char *name, uint32_t n_dims,
                              const uint64_t *ne, uint32_t type, uint64_t offset) {
    put_text(b, name);
    put_u32(b, n_dims);
    put(b, ne, n_dims * sizeof *ne);
    put_u32(b, type);
    put_u64(b, offset);
}

/* Zeros up to a multiple of alignment, then n bytes of data. */
static inline void put_data(struct bytes *b, size_t alignment, size_t n) {
    while (b->len % alignment)
        put_u8(b, 0);
    for (size_t i = 0; i < n; i++)
        put_u8(b, (uint8_t)i);
}

/* Opens exactly len bytes in a block of their own, so that a sanitizer sees one byte too far. */
static inline enum rc open_exact(const uint8_t *data, size_t len, gguf **g, uint8_t **copy,
                                 struct err *e) {
    *g = NULL;
    *copy = malloc(len ? len : 1);
    assert_non_null(*copy);
    memcpy(*copy, data, len);
    return gguf_open_memory(g, *copy, len, "m.gguf", e);
}

/* The file is refused with that code, and the message has these words. */
static inline void assert_refused(const struct bytes *b, enum rc rc, const char *words) {
    struct err e = { 0 };
    gguf *g;
    uint8_t *copy;
    enum rc found = open_exact(b->data, b->len, &g, &copy, &e);
    gguf_close(&g);
    free(copy);
    if (found != rc || !strstr(e.msg, words) || !strstr(e.msg, "m.gguf"))
        fail_msg("%s: '%s', expected '%s'", rc_name(found), e.msg, words);
}

#endif
