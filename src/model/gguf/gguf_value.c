/* Values of metadata: kinds and ranges checked, numbers widened. */
#include "model/gguf/gguf_internal.h"

#include <inttypes.h>
#include <string.h>

static const char *const type_names[GGUF_TYPE_COUNT] = {
    [GGUF_U8] = "u8",         [GGUF_I8] = "i8",       [GGUF_U16] = "u16", [GGUF_I16] = "i16",
    [GGUF_U32] = "u32",       [GGUF_I32] = "i32",     [GGUF_F32] = "f32", [GGUF_BOOL] = "bool",
    [GGUF_STRING] = "string", [GGUF_ARRAY] = "array", [GGUF_U64] = "u64", [GGUF_I64] = "i64",
    [GGUF_F64] = "f64",
};

static const uint8_t type_bytes[GGUF_TYPE_COUNT] = {
    [GGUF_U8] = 1,  [GGUF_I8] = 1,   [GGUF_U16] = 2, [GGUF_I16] = 2, [GGUF_U32] = 4, [GGUF_I32] = 4,
    [GGUF_F32] = 4, [GGUF_BOOL] = 1, [GGUF_U64] = 8, [GGUF_I64] = 8, [GGUF_F64] = 8,
};

uint32_t gguf_type_bytes(enum gguf_type type) {
    return (unsigned)type < GGUF_TYPE_COUNT ? type_bytes[type] : 0;
}

const char *gguf_type_name(enum gguf_type type) {
    return (unsigned)type < GGUF_TYPE_COUNT ? type_names[type] : "?";
}

bool gguf_string_is(struct gguf_string s, const char *text) {
    return s.len == strlen(text) && memcmp(s.data, text, s.len) == 0;
}

enum rc gguf_wrong_kind(const char *path, const struct gguf_key *k, const char *expected,
                        struct err *e) {
    bool array = k->value.type == GGUF_ARRAY;
    return err_set(e, RC_FORMAT, "%s: key '%.*s' at offset %" PRIu64 ": expected %s, found %s%s",
                   path, (int)(k->name.len < 128 ? k->name.len : 128), k->name.data, k->offset,
                   expected, array ? "array of " : "",
                   gguf_type_name(array ? k->value.array.type : k->value.type));
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
        return gguf_wrong_kind(path, k, "an integer", e);
    if (k->value.i < 0)
        return err_set(
            e, RC_FORMAT,
            "%s: key '%.*s' at offset %" PRIu64 ": expected a number from 0, found %" PRId64, path,
            (int)(k->name.len < 128 ? k->name.len : 128), k->name.data, k->offset, k->value.i);
    *out = (uint64_t)k->value.i;
    return RC_OK;
}

enum rc gguf_value_f64(const char *path, const struct gguf_key *k, double *out, struct err *e) {
    if (k->value.type == GGUF_F32 || k->value.type == GGUF_F64)
        *out = k->value.f;
    else if (is_unsigned(k->value.type))
        *out = (double)k->value.u;
    else if (is_signed(k->value.type))
        *out = (double)k->value.i;
    else
        return gguf_wrong_kind(path, k, "a number", e);
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
