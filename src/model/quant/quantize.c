#include "model/quant/quantize.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "model/gguf/gguf_fill.h"
#include "model/gguf/gguf_writer.h"
#include "model/quant/quant.h"

struct job {
    const gguf *g;
    const gguf_writer *w;
};

/* A decoded piece must be finite, also after encoding: the largest F16 is 65504. */
static enum rc check_finite(const struct gguf_tensor *t, enum tensor_type type, const void *data,
                            uint64_t first, uint64_t count, const char *path, struct err *e) {
    size_t at = quant_find_nonfinite(type, data, count);
    if (at == count)
        return RC_OK;
    return err_set(e, RC_FORMAT, "%s: tensor '%s': element %" PRIu64 " is not finite as %s", path,
                   t->name, first + at, tensor_type_name(type));
}

static enum rc make(void *user, uint64_t tensor, uint64_t first, uint64_t count, float *scratch,
                    void *out, struct err *e) {
    const struct job *j = user;
    const struct gguf_tensor *t = gguf_tensor_at(j->g, tensor);
    enum tensor_type type = gguf_writer_tensor_type(j->w, tensor);
    const uint8_t *in = (const uint8_t *)t->data + tensor_type_row_bytes(t->type, first);
    if (type == t->type) {
        memcpy(out, in, tensor_type_row_bytes(type, count));
        return RC_OK;
    }
    enum rc rc = quant_decode_row(t->type, in, scratch, count, e);
    if (!rc)
        rc = check_finite(t, TENSOR_TYPE_F32, scratch, first, count, gguf_path(j->g), e);
    if (!rc)
        rc = quant_encode_row(type, scratch, out, count, QUANT_BEST, e);
    if (!rc)
        rc = check_finite(t, type, out, first, count, gguf_path(j->g), e);
    return rc;
}

/* The output must not be one of the mapped input files. */
static enum rc check_output(const gguf *g, const char *path, struct err *e) {
    struct stat out, in;
    if (stat(path, &out) != 0)
        return RC_OK;
    for (uint32_t p = 0; p < gguf_part_count(g); p++)
        if (stat(gguf_part_path(g, p), &in) == 0 && in.st_dev == out.st_dev &&
            in.st_ino == out.st_ino)
            return err_set(e, RC_REFUSED, "%s: is the input itself; name another output", path);
    return RC_OK;
}

static uint32_t arch_u32(const gguf *g, const char *tail, uint32_t fallback) {
    struct gguf_string arch = { "", 0 };
    char key[128];
    uint32_t value = fallback;
    if (gguf_try_string(g, "general.architecture", &arch, NULL) || arch.len > 32)
        return fallback;
    snprintf(key, sizeof key, "%.*s.%s", (int)arch.len, arch.data, tail);
    return gguf_try_u32(g, key, &value, NULL) ? fallback : value;
}

static struct quant_mix_model describe(const gguf *g) {
    struct quant_mix_model m = {
        .layers = arch_u32(g, "block_count", 0),
        .heads = arch_u32(g, "attention.head_count", 0),
        .tied = !gguf_find_tensor(g, "output.weight"),
    };
    m.kv_heads = arch_u32(g, "attention.head_count_kv", m.heads);
    return m;
}

static void copy_metadata(gguf_writer *w, const gguf *g, const struct quant_mix *mix) {
    for (uint64_t i = 0; i < gguf_key_count(g); i++) {
        const struct gguf_key *k = gguf_key_at(g, i);
        bool split = k->name.len > 6 && memcmp(k->name.data, "split.", 6) == 0;
        if (!split && !gguf_string_is(k->name, "general.file_type") &&
            !gguf_string_is(k->name, "general.quantization_version"))
            gguf_writer_copy_key(w, k);
    }
    gguf_writer_add_u32(w, "general.file_type", mix->file_type);
    gguf_writer_add_u32(w, "general.quantization_version", 2);
}

static enum rc add_tensors(gguf_writer *w, const gguf *g, const struct quant_mix *mix,
                           struct quantize_result *r, struct err *e) {
    struct quant_mix_model m = describe(g);
    for (uint64_t i = 0; i < gguf_tensor_count(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        enum tensor_type type = t->type;
        if (quant_mix_applies(t->name, t->n_dims)) {
            type = quant_mix_choose(mix, &m, t->name, t->ne[0]);
            r->fallbacks += tensor_type_row_bytes(mix->type, t->ne[0]) == 0;
        }
        if (type != t->type && !tensor_type_is_computable(t->type))
            return err_set(e, RC_UNSUPPORTED, "%s: tensor '%s': greta cannot decode %s",
                           gguf_path(g), t->name, tensor_type_name(t->type));
        r->changed += type != t->type;
        r->kept += type == t->type;
        r->requantized += type != t->type && !tensor_type_is_float(t->type);
        r->bytes_in += t->bytes;
        r->bytes_out += tensor_type_row_bytes(type, t->elements);
        gguf_writer_add_tensor(w, t->name, type, t->n_dims, t->ne);
    }
    return RC_OK;
}

enum rc quantize_model(const gguf *g, const char *path, const struct quantize_options *o,
                       struct quantize_result *result, struct err *e) {
    struct quantize_result r = { 0 };
    gguf_writer *w = NULL;
    enum rc rc = check_output(g, path, e);
    if (!rc)
        rc = gguf_writer_open(&w, path, e);
    if (!rc) {
        copy_metadata(w, g, o->mix);
        rc = add_tensors(w, g, o->mix, &r, e);
    }
    struct job job = { g, w };
    struct gguf_fill how = { .make = make,
                             .user = &job,
                             .threads = o->threads,
                             .progress = o->progress,
                             .progress_user = o->progress_user,
                             .cancel = o->cancel };
    if (!rc)
        rc = gguf_fill_write(w, &how, e);
    gguf_writer_close(&w);
    if (!rc && result)
        *result = r;
    return rc;
}
