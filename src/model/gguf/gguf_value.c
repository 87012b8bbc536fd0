/* Typed access to metadata: kinds and ranges checked, numbers widened. */
#include "model/gguf/gguf_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const type_names[GGUF_TYPE_COUNT] = {
    [GGUF_U8] = "u8",         [GGUF_I8] = "i8",       [GGUF_U16] = "u16", [GGUF_I16] = "i16",
    [GGUF_U32] = "u32",       [GGUF_I32] = "i32",     [GGUF_F32] = "f32", [GGUF_BOOL] = "bool",
    [GGUF_STRING] = "string", [GGUF_ARRAY] = "array", [GGUF_U64] = "u64", [GGUF_I64] = "i64",
    [GGUF_F64] = "f64",
};

const char *gguf_type_name(enum gguf_type type) {
    return (unsigned)type < GGUF_TYPE_COUNT ? type_names[type] : "?";
}

bool gguf_string_is(struct gguf_string s, const char *text) {
    return s.len == strlen(text) && memcmp(s.data, text, s.len) == 0;
}

static enum rc wrong_kind(const char *path, const struct gguf_key *k, const char *expected,
                          struct err *e) {
    bool array = k->value.type == GGUF_ARRAY;
    return err_set(e, RC_FORMAT, "%s: key '%.*s' at offset %" PRIu64 ": expected %s, found %s%s",
                   path, (int)(k->name.len < 128 ? k->name.len : 128), k->name.data, k->offset,
                   expected, array ? "array of " : "",
                   gguf_type_name(array ? k->value.array.type : k->value.type));
}

static enum rc absent(const gguf *g, const char *key, struct err *e) {
    return err_set(e, RC_FORMAT, "%s: key '%s' is missing", gguf_path(g), key);
}

static bool is_unsigned(enum gguf_type t) {
    return t == GGUF_U8 || t == GGUF_U16 || t == GGUF_U32 || t == GGUF_U64;
}

static bool is_signed(enum gguf_type t) {
    return t == GGUF_I8 || t == GGUF_I16 || t == GGUF_I32 || t == GGUF_I64;
}

enum rc gguf_value_u64(const char *path, const struct gguf_key *k, uint64_t *out, struct err *e) {
    if (is_unsigned(k->value.type)) {
        *out = k->value.u;
        return RC_OK;
    }
    if (!is_signed(k->value.type))
        return wrong_kind(path, k, "an integer", e);
    if (k->value.i < 0)
        return err_set(
            e, RC_FORMAT,
            "%s: key '%.*s' at offset %" PRIu64 ": expected a number from 0, found %" PRId64, path,
            (int)(k->name.len < 128 ? k->name.len : 128), k->name.data, k->offset, k->value.i);
    *out = (uint64_t)k->value.i;
    return RC_OK;
}

static enum rc value_f64(const char *path, const struct gguf_key *k, double *out, struct err *e) {
    if (k->value.type == GGUF_F32 || k->value.type == GGUF_F64)
        *out = k->value.f;
    else if (is_unsigned(k->value.type))
        *out = (double)k->value.u;
    else if (is_signed(k->value.type))
        *out = (double)k->value.i;
    else
        return wrong_kind(path, k, "a number", e);
    return RC_OK;
}

enum rc gguf_try_u64(const gguf *g, const char *key, uint64_t *out, struct err *e) {
    const struct gguf_key *k = gguf_find_key(g, key);
    return k ? gguf_value_u64(gguf_path(g), k, out, e) : RC_OK;
}

enum rc gguf_try_u32(const gguf *g, const char *key, uint32_t *out, struct err *e) {
    uint64_t wide = *out;
    enum rc rc = gguf_try_u64(g, key, &wide, e);
    if (rc)
        return rc;
    if (wide > UINT32_MAX)
        return err_set(e, RC_FORMAT, "%s: key '%s': %" PRIu64 " does not fit in 32 bits",
                       gguf_path(g), key, wide);
    *out = (uint32_t)wide;
    return RC_OK;
}

enum rc gguf_try_f64(const gguf *g, const char *key, double *out, struct err *e) {
    const struct gguf_key *k = gguf_find_key(g, key);
    return k ? value_f64(gguf_path(g), k, out, e) : RC_OK;
}

enum rc gguf_try_bool(const gguf *g, const char *key, bool *out, struct err *e) {
    const struct gguf_key *k = gguf_find_key(g, key);
    if (!k)
        return RC_OK;
    if (k->value.type != GGUF_BOOL)
        return wrong_kind(gguf_path(g), k, "a boolean", e);
    *out = k->value.b;
    return RC_OK;
}

enum rc gguf_try_string(const gguf *g, const char *key, struct gguf_string *out, struct err *e) {
    const struct gguf_key *k = gguf_find_key(g, key);
    if (!k)
        return RC_OK;
    if (k->value.type != GGUF_STRING)
        return wrong_kind(gguf_path(g), k, "a string", e);
    *out = k->value.string;
    return RC_OK;
}

enum rc gguf_get_u64(const gguf *g, const char *key, uint64_t *out, struct err *e) {
    return gguf_find_key(g, key) ? gguf_try_u64(g, key, out, e) : absent(g, key, e);
}

enum rc gguf_get_u32(const gguf *g, const char *key, uint32_t *out, struct err *e) {
    return gguf_find_key(g, key) ? gguf_try_u32(g, key, out, e) : absent(g, key, e);
}

enum rc gguf_get_f64(const gguf *g, const char *key, double *out, struct err *e) {
    return gguf_find_key(g, key) ? gguf_try_f64(g, key, out, e) : absent(g, key, e);
}

enum rc gguf_get_bool(const gguf *g, const char *key, bool *out, struct err *e) {
    return gguf_find_key(g, key) ? gguf_try_bool(g, key, out, e) : absent(g, key, e);
}

enum rc gguf_get_string(const gguf *g, const char *key, struct gguf_string *out, struct err *e) {
    return gguf_find_key(g, key) ? gguf_try_string(g, key, out, e) : absent(g, key, e);
}

enum rc gguf_get_array(const gguf *g, const char *key, enum gguf_type type,
                       const struct gguf_array **out, struct err *e) {
    const struct gguf_key *k = gguf_find_key(g, key);
    if (!k)
        return absent(g, key, e);
    if (k->value.type != GGUF_ARRAY || k->value.array.type != type) {
        char expected[32];
        snprintf(expected, sizeof expected, "array of %s", gguf_type_name(type));
        return wrong_kind(gguf_path(g), k, expected, e);
    }
    *out = &k->value.array;
    return RC_OK;
}

/* One fixed-width element, as the union of everything it may be. */
static struct gguf_value element(const struct gguf_array *a, uint64_t i) {
    struct gguf_value v = { .type = a->type };
    const uint8_t *p = a->numbers + i * gguf_type_bytes(a->type);
    switch (a->type) {
#define NUMBER(kind, ctype, member)                                                                \
    case kind: {                                                                                   \
        ctype x;                                                                                   \
        memcpy(&x, p, sizeof x);                                                                   \
        v.member = x;                                                                              \
        break;                                                                                     \
    }
        NUMBER(GGUF_U8, uint8_t, u)
        NUMBER(GGUF_I8, int8_t, i)
        NUMBER(GGUF_U16, uint16_t, u)
        NUMBER(GGUF_I16, int16_t, i)
        NUMBER(GGUF_U32, uint32_t, u)
        NUMBER(GGUF_I32, int32_t, i)
        NUMBER(GGUF_U64, uint64_t, u)
        NUMBER(GGUF_I64, int64_t, i)
        NUMBER(GGUF_BOOL, uint8_t, u)
        NUMBER(GGUF_F32, float, f)
        NUMBER(GGUF_F64, double, f)
#undef NUMBER
    default:
        v.u = 0;
    }
    return v;
}

int64_t gguf_array_i64(const struct gguf_array *a, uint64_t i) {
    if (gguf_type_bytes(a->type) == 0)
        return 0;
    struct gguf_value v = element(a, i);
    if (a->type == GGUF_F32 || a->type == GGUF_F64) /* saturates; NaN is 0 */
        return v.f >= 0x1p63    ? INT64_MAX
               : v.f <= -0x1p63 ? INT64_MIN
               : v.f == v.f     ? (int64_t)v.f
                                : 0;
    return v.i;
}

uint64_t gguf_array_u64(const struct gguf_array *a, uint64_t i) {
    return (uint64_t)gguf_array_i64(a, i);
}

double gguf_array_f64(const struct gguf_array *a, uint64_t i) {
    if (gguf_type_bytes(a->type) == 0)
        return 0;
    struct gguf_value v = element(a, i);
    if (a->type == GGUF_F32 || a->type == GGUF_F64)
        return v.f;
    return is_signed(a->type) ? (double)v.i : (double)v.u;
}
