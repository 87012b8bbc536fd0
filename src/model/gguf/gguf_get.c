/* Typed access to metadata by name. */
#include "model/gguf/gguf_internal.h"

#include <inttypes.h>
#include <stdio.h>

static enum rc absent(const gguf *g, const char *key, struct err *e) {
    return err_set(e, RC_FORMAT, "%s: key '%s' is missing", gguf_path(g), key);
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
    return k ? gguf_value_f64(gguf_path(g), k, out, e) : RC_OK;
}

static enum rc try_bool(const gguf *g, const char *key, bool *out, struct err *e) {
    const struct gguf_key *k = gguf_find_key(g, key);
    if (!k)
        return RC_OK;
    if (k->value.type != GGUF_BOOL)
        return gguf_wrong_kind(gguf_path(g), k, "a boolean", e);
    *out = k->value.b;
    return RC_OK;
}

enum rc gguf_try_string(const gguf *g, const char *key, struct gguf_string *out, struct err *e) {
    const struct gguf_key *k = gguf_find_key(g, key);
    if (!k)
        return RC_OK;
    if (k->value.type != GGUF_STRING)
        return gguf_wrong_kind(gguf_path(g), k, "a string", e);
    *out = k->value.string;
    return RC_OK;
}

enum rc gguf_get_u32(const gguf *g, const char *key, uint32_t *out, struct err *e) {
    return gguf_find_key(g, key) ? gguf_try_u32(g, key, out, e) : absent(g, key, e);
}

enum rc gguf_get_f64(const gguf *g, const char *key, double *out, struct err *e) {
    return gguf_find_key(g, key) ? gguf_try_f64(g, key, out, e) : absent(g, key, e);
}

enum rc gguf_get_bool(const gguf *g, const char *key, bool *out, struct err *e) {
    return gguf_find_key(g, key) ? try_bool(g, key, out, e) : absent(g, key, e);
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
        return gguf_wrong_kind(gguf_path(g), k, expected, e);
    }
    *out = &k->value.array;
    return RC_OK;
}
