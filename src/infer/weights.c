#include "infer/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/quant.h"

/* ---- RoPE ----------------------------------------------------------------------------------- */

/* YaRN: how many rotations a pair makes over the original context decides how much of the stretched
 * angle it gets. Returns 1 for pairs that keep their angle, 0 for those that are stretched. */
static double yarn_keep(const struct config *c, uint32_t i) {
    double dims = c->rope_dims;
    double turns_fast = c->yarn_beta_fast, turns_slow = c->yarn_beta_slow;
    double original = c->rope_original_context;
    double low = floor(dims * log(original / (turns_fast * 2 * M_PI)) / (2 * log(c->rope_base)));
    double high = ceil(dims * log(original / (turns_slow * 2 * M_PI)) / (2 * log(c->rope_base)));
    low = fmax(0, low);
    high = fmin(dims - 1, high);
    double ramp = (i - low) / fmax(0.001, high - low);
    return 1 - fmin(1, fmax(0, ramp));
}

double weights_rope_frequency(const struct config *c, uint32_t i, double freq_factor) {
    double plain = pow(c->rope_base, -2.0 * i / c->rope_dims) / freq_factor;
    double stretched = plain / c->rope_factor;
    switch (c->rope_scaling) {
    case CONFIG_ROPE_LINEAR:
        return stretched;
    case CONFIG_ROPE_YARN: {
        double keep = yarn_keep(c, i) * c->yarn_mix;
        return stretched * (1 - keep) + plain * keep;
    }
    default:
        return plain;
    }
}

static enum rc load_rope(struct weights *w, const struct device *d, const gguf *g,
                         const struct config *c, struct err *e) {
    uint32_t pairs = c->rope_dims / 2;
    const struct gguf_tensor *factors =
        c->rope_freqs ? config_find_tensor(g, CONFIG_TENSOR_ROPE_FREQS, 0) : NULL;
    float *freqs = malloc(2 * (size_t)pairs * sizeof *freqs), *by = freqs ? freqs + pairs : NULL;
    if (!freqs)
        return err_set(e, RC_MEMORY, "out of memory");
    enum rc rc = RC_OK;
    for (uint32_t i = 0; i < pairs; i++)
        by[i] = 1;
    if (factors && factors->elements == pairs)
        rc = quant_decode_row(factors->type, factors->data, by, pairs, e);
    for (uint32_t i = 0; i < pairs; i++)
        freqs[i] = (float)weights_rope_frequency(c, i, by[i]);
    uint64_t bytes = pairs * sizeof *freqs;
    if (!rc)
        rc = device_alloc(d, &w->rope_freqs, "rope_frequencies", TENSOR_TYPE_F32, bytes, e);
    if (!rc)
        rc = device_upload(d, &w->rope_freqs, freqs, bytes, -1, -1, e);
    free(freqs);
    return rc;
}

/* ---- tensors -------------------------------------------------------------------------------- */

static enum rc upload_as_floats(const struct device *d, struct kern_view *to,
                                const struct gguf_tensor *t, int32_t layer, struct err *e) {
    uint64_t bytes = t->elements * sizeof(float);
    float *floats = malloc(bytes);
    if (!floats)
        return err_set(e, RC_MEMORY, "%s: out of memory", t->name);
    enum rc rc = quant_decode_row(t->type, t->data, floats, t->elements, e);
    if (!rc)
        rc = device_alloc(d, to, to->name, TENSOR_TYPE_F32, bytes, e);
    if (!rc)
        rc = device_upload(d, to, floats, bytes, -1, layer, e);
    free(floats);
    return rc;
}

static enum rc upload_and_repack(const struct device *d, struct kern_view *to,
                                 const struct gguf_tensor *t, int32_t layer, struct err *e) {
    enum rc rc = device_alloc(d, to, to->name, t->type, t->bytes, e);
    rc = rc ? rc : device_upload(d, to, t->data, t->bytes, -1, layer, e);
    struct kern_repack a = { *to, (uint32_t)(t->elements / t->ne[0]), (uint32_t)t->ne[0] };
    return rc ? rc : kern_repack(d->kernels, d->stream, &a, e);
}

static enum rc load_tensor(struct weights *w, const struct device *d, struct kern_view *to,
                           const gguf *g, const struct gguf_tensor *t,
                           const struct config_tensor_spec *spec, struct err *e) {
    enum rc rc;
    if (spec->kind == CONFIG_VECTOR) {
        rc = upload_as_floats(d, to, t, spec->layer, e);
    } else if (w->packed) {
        rc = upload_and_repack(d, to, t, spec->layer, e);
    } else {
        rc = device_map(d, to, to->name, t->type, t->data, t->bytes, e);
        if (!rc && w->mapped)
            w->mapped[w->mapped_count++] = (struct weights_mapped){ t->data, to->ptr };
        return rc;
    }
    if (!rc)
        gguf_release_tensor(g, t); /* it is on the device now */
    return rc;
}

static struct kern_view *view_of(struct weights *w, const struct config_tensor_spec *spec) {
    return spec->layer < 0 ? &w->tensor[spec->id] : &w->layers[spec->layer].tensor[spec->id];
}

static uint64_t total_bytes(const gguf *g) {
    uint64_t total = 0;
    for (uint64_t i = 0; i < gguf_tensor_count(g); i++)
        total += gguf_tensor_at(g, i)->bytes;
    return total;
}

static enum rc load_tensors(struct weights *w, const struct device *d, const gguf *g,
                            const struct config *c, weights_progress progress, void *user,
                            struct err *e) {
    uint64_t done = 0, total = total_bytes(g);
    struct config_tensor_spec spec;
    for (uint64_t i = 0; config_tensor_at(c, i, &spec); i++) {
        const struct gguf_tensor *t = gguf_find_tensor(g, spec.name);
        if (spec.id == CONFIG_TENSOR_ROPE_FREQS || (!t && !spec.required))
            continue;
        if (!t)
            return err_set(e, RC_FORMAT, "%s: tensor %s is missing", gguf_path(g), spec.name);
        struct kern_view *view = view_of(w, &spec);
        memcpy(w->names[i], spec.name, sizeof spec.name);
        *view = (struct kern_view){ .name = w->names[i] };
        enum rc rc = load_tensor(w, d, view, g, t, &spec, e);
        if (rc)
            return rc;
        done += t->bytes;
        if (progress && !progress(done, total, user))
            return err_set(e, RC_BUSY, "loading was interrupted");
    }
    return RC_OK;
}

enum rc weights_load(struct weights *w, const struct device *d, const gguf *g,
                     const struct config *c, bool repack, weights_progress progress, void *user,
                     struct err *e) {
    *w = (struct weights){ .layer_count = c->layers, .packed = repack };
    uint64_t names = 0;
    struct config_tensor_spec spec;
    while (config_tensor_at(c, names, &spec))
        names++;
    w->layers = calloc((size_t)c->layers + 1, sizeof *w->layers);
    w->names = calloc(names + 1, sizeof *w->names);
    w->mapped = repack ? NULL : calloc(names + 1, sizeof *w->mapped);
    enum rc rc = w->layers && w->names && (repack || w->mapped)
                     ? RC_OK
                     : err_set(e, RC_MEMORY, "out of memory");
    if (!rc)
        rc = load_tensors(w, d, g, c, progress, user, e);
    if (!rc)
        rc = load_rope(w, d, g, c, e);
    if (rc) {
        weights_free(w, d);
        return rc;
    }
    w->output = c->tied ? w->tensor[CONFIG_TENSOR_TOKEN_EMBD] : w->tensor[CONFIG_TENSOR_OUTPUT];
    return RC_OK;
}

static void let_go(struct weights *w, const struct device *d, struct kern_view *view) {
    for (size_t i = 0; i < w->mapped_count; i++)
        if (view->ptr == w->mapped[i].ptr)
            *view = (struct kern_view){ 0 };
    device_free(d, view);
}

void weights_free(struct weights *w, const struct device *d) {
    for (uint32_t l = 0; w->layers && l < w->layer_count; l++)
        for (int i = 0; i < CONFIG_TENSOR_COUNT; i++)
            let_go(w, d, &w->layers[l].tensor[i]);
    for (int i = 0; i < CONFIG_TENSOR_COUNT; i++)
        let_go(w, d, &w->tensor[i]);
    device_free(d, &w->rope_freqs);
    for (size_t i = 0; i < w->mapped_count; i++)
        device_unmap(d, w->mapped[i].memory);
    free(w->mapped);
    free(w->layers);
    free(w->names);
    *w = (struct weights){ 0 };
}
