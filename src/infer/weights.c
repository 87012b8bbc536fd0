#include "infer/weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "base/env.h"
#include "infer/upload.h"
#include "kernels/cpu/pack.h"
#include "model/quant/quant.h"

struct weights_loading {
    struct upload upload;
    const struct weights_range *range;
    uint64_t done, total; /* bytes of the file */
    weights_progress progress;
    void *user;
};

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

/* The angle a position turns pair i by, with the model's scaling; i < rope_dims / 2. freq_factor is
 * the element of rope_freqs.weight or of LongRoPE's factors, or 1. */
static double rope_frequency(const struct config *c, uint32_t i, double freq_factor) {
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

/* What the file divides frequencies by, or NULL. */
static const struct gguf_tensor *find_factors(const gguf *g, const struct config *c,
                                              uint32_t context) {
    bool is_long = context > c->rope_original_context;
    if (c->rope_scaling == CONFIG_ROPE_LONGROPE)
        return config_find_tensor(g, is_long ? CONFIG_TENSOR_ROPE_LONG : CONFIG_TENSOR_ROPE_SHORT,
                                  0);
    return c->rope_freqs ? config_find_tensor(g, CONFIG_TENSOR_ROPE_FREQS, 0) : NULL;
}

static enum rc upload_frequencies(const struct device *d, struct kern_view *to, const char *name,
                                  const float *freqs, uint32_t pairs, struct err *e) {
    uint64_t bytes = pairs * sizeof *freqs;
    enum rc rc = device_alloc(d, to, name, TENSOR_TYPE_F32, bytes, e);
    return rc ? rc : device_upload(d, to, freqs, bytes, -1, -1, e);
}

static enum rc load_rope(struct weights *w, const struct device *d, const gguf *g,
                         const struct config *c, uint32_t context, struct err *e) {
    uint32_t pairs = c->rope_dims / 2;
    const struct gguf_tensor *factors = find_factors(g, c, context);
    float *freqs = malloc(2 * (size_t)pairs * sizeof *freqs), *by = freqs ? freqs + pairs : NULL;
    if (!freqs)
        return err_set(e, RC_MEMORY, "out of memory");
    enum rc rc = RC_OK;
    for (uint32_t i = 0; i < pairs; i++)
        by[i] = 1;
    if (factors && factors->elements == pairs)
        rc = quant_decode_row(factors->type, factors->data, by, pairs, e);
    for (uint32_t i = 0; i < pairs; i++)
        freqs[i] = (float)rope_frequency(c, i, by[i]);
    rc = rc ? rc : upload_frequencies(d, &w->rope_freqs, "rope_frequencies", freqs, pairs, e);
    for (uint32_t i = 0; i < pairs; i++)
        freqs[i] = (float)pow(c->rope_local_base, -2.0 * i / c->rope_dims);
    if (!rc && c->rope_local_base != 0 && c->sliding_window)
        rc = upload_frequencies(d, &w->rope_local_freqs, "rope_local_frequencies", freqs, pairs, e);
    free(freqs);
    return rc;
}

/* ---- tensors -------------------------------------------------------------------------------- */

/* Reports that many more bytes as done. */
static enum rc tell(struct weights_loading *l, uint64_t done, struct err *e) {
    l->done = done;
    if (!l->progress || l->progress(l->done, l->total, l->user))
        return RC_OK;
    return err_set(e, RC_BUSY, "loading was interrupted");
}

static enum rc upload_as_floats(struct weights *w, const struct device *d, struct kern_view *to,
                                const struct gguf_tensor *t, int32_t layer, struct err *e) {
    uint64_t bytes = t->elements * sizeof(float);
    float *floats = malloc(bytes);
    if (!floats)
        return err_set(e, RC_MEMORY, "%s: out of memory", t->name);
    enum rc rc = quant_decode_row(t->type, t->data, floats, t->elements, e);
    if (!rc)
        rc = device_alloc(d, to, to->name, TENSOR_TYPE_F32, bytes, e);
    if (!rc)
        rc = upload_add(&w->loading->upload, to, 0, floats, bytes, layer, e);
    free(floats);
    return rc;
}

static enum rc ask(const struct weights_pause *p, struct err *e) {
    return p && p->interrupted(p->user) ? err_set(e, RC_BUSY, "interrupted") : RC_OK;
}

/* In parts, each of which is released from the file's mapping before the next, so that little of a
 * matrix is ever in memory twice. */
static enum rc upload_matrix(struct weights *w, const struct device *d, const struct kern_view *to,
                             const gguf *g, const struct gguf_tensor *t, int32_t layer,
                             const struct weights_pause *pause, struct err *e) {
    const uint64_t part = 32u << 20;
    struct weights_loading *l = w->loading;
    uint64_t before = l ? l->done : 0;
    enum rc rc = RC_OK;
    for (uint64_t at = 0; !rc && at < t->bytes; at += part) {
        rc = ask(pause, e);
        if (rc)
            return rc;
        uint64_t bytes = t->bytes - at < part ? t->bytes - at : part;
        const char *from = (const char *)t->data + at;
        rc = l ? upload_add(&l->upload, to, at, from, bytes, layer, e)
               : device_upload_part(d, to, at, from, bytes, -1, layer, e);
        gguf_release_tensor(g, t);
        rc = rc || !l ? rc : tell(l, before + at + bytes, e);
    }
    return rc;
}

static enum rc upload_and_repack(struct weights *w, const struct device *d,
                                 const struct kern_view *to, const gguf *g,
                                 const struct gguf_tensor *t, int32_t layer,
                                 const struct weights_pause *pause, struct err *e) {
    enum rc rc = upload_matrix(w, d, to, g, t, layer, pause, e);
    struct kern_repack a = { .weight = *to,
                             .n = (uint32_t)(t->elements / t->ne[0]),
                             .k = (uint32_t)t->ne[0] };
    return rc ? rc : kern_repack(d->kernels, d->stream, &a, e);
}

/* Used where it is in the file; with a place for its packed copy if there is to be one. */
static enum rc map_tensor(struct weights *w, const struct device *d, struct kern_view *to,
                          const struct gguf_tensor *t, const void *memory, int32_t layer,
                          bool later, struct err *e) {
    struct weights_mapped m = { .tensor = t, .memory = memory, .view = to, .layer = layer };
    later &= !tensor_type_is_float(t->type); /* those are never packed: they can stay */
    enum rc rc = later ? device_alloc(d, &m.packed, to->name, t->type, t->bytes, e) : RC_OK;
    rc = rc ? rc : device_map(d, to, to->name, t->type, memory, t->bytes, e);
    if (rc)
        device_free(d, &m.packed);
    else
        w->mapped[w->mapped_count++] = m;
    return rc;
}

/* Floats are never packed: they stay in the model's file. */
static enum rc map_cached(struct weights *w, const struct device *d, struct kern_view *to,
                          const struct gguf_tensor *t, int32_t layer, struct err *e) {
    const void *memory =
        pack_is_possible(t->type) ? packed_find(w->cached, to->name, t->bytes) : t->data;
    return memory ? map_tensor(w, d, to, t, memory, layer, false, e)
                  : err_set(e, RC_FORMAT, "the packed cache has no matrix %s", to->name);
}

static enum rc load_tensor(struct weights *w, const struct device *d, struct kern_view *to,
                           const gguf *g, const struct gguf_tensor *t,
                           const struct config_tensor_spec *spec, enum weights_order order,
                           struct err *e) {
    if (spec->kind != CONFIG_MATRIX)
        return upload_as_floats(w, d, to, t, spec->layer, e);
    if (order != WEIGHTS_PACKED)
        return map_tensor(w, d, to, t, t->data, spec->layer, order == WEIGHTS_PACKED_LATER, e);
    if (w->cached)
        return map_cached(w, d, to, t, spec->layer, e);
    enum rc rc = device_alloc(d, to, to->name, t->type, t->bytes, e);
    return rc ? rc : upload_and_repack(w, d, to, g, t, spec->layer, NULL, e);
}

static struct kern_view *view_of(struct weights *w, const struct config_tensor_spec *spec) {
    return spec->layer < 0 ? &w->tensor[spec->id] : &w->layers[spec->layer].tensor[spec->id];
}

bool weights_are_floats(const gguf *g, const struct config *c) {
    struct config_tensor_spec spec;
    for (uint64_t i = 0; config_tensor_at(c, i, &spec); i++) {
        const struct gguf_tensor *t = gguf_find_tensor(g, spec.name);
        if (t && spec.kind == CONFIG_MATRIX && !tensor_type_is_float(t->type))
            return false;
    }
    return true;
}

/* The same from the packed cache, instead of loading it. */
static enum rc write_role(packed_writer *to, const struct gguf_tensor *t,
                          const struct config_tensor_spec *spec, struct err *e) {
    char name[GGUF_MAX_NAME + 1];
    if (spec->kind != CONFIG_MATRIX || !pack_is_possible(t->type))
        return RC_OK;
    config_tensor_name(spec->id, (uint32_t)spec->layer, name);
    return packed_add(to, name, t, e);
}

/* Loads t, a tensor of the file or a part of one, for the role of spec. */
static enum rc load_role(struct weights *w, const struct device *d, const gguf *g,
                         const struct gguf_tensor *t, const struct config_tensor_spec *spec,
                         enum weights_order order, struct err *e) {
    if (w->writer)
        return write_role(w->writer, t, spec, e);
    struct kern_view *view = view_of(w, spec);
    char *name = w->names[w->name_count++];
    config_tensor_name(spec->id, (uint32_t)spec->layer, name);
    *view = (struct kern_view){ .name = name };
    return load_tensor(w, d, view, g, t, spec, order, e);
}

/* Rows of a fused tensor as a tensor of their own; NULL if the file has fewer. */
static const struct gguf_tensor *cut_part(struct weights *w, const struct gguf_tensor *t,
                                          const struct config_part *p) {
    struct gguf_tensor *part = &w->parts[w->part_count];
    uint64_t row_bytes = t->bytes / t->ne[1];
    if (p->first + p->rows > t->ne[1])
        return NULL;
    *part = *t;
    part->ne[1] = p->rows;
    part->elements = p->rows * t->ne[0];
    part->bytes = p->rows * row_bytes;
    part->data = (const char *)t->data + p->first * row_bytes;
    part->offset += p->first * row_bytes;
    w->part_count++;
    return part;
}

static enum rc load_parts(struct weights *w, const struct device *d, const gguf *g,
                          const struct config *c, const struct gguf_tensor *t,
                          const struct config_tensor_spec *spec, enum weights_order order,
                          struct err *e) {
    struct config_tensor_spec own = *spec;
    struct config_part p;
    enum rc rc = RC_OK;
    for (unsigned i = 0; !rc && config_tensor_part(c, spec->id, i, &p); i++) {
        const struct gguf_tensor *part = cut_part(w, t, &p);
        own.id = p.id;
        rc = part
                 ? load_role(w, d, g, part, &own, order, e)
                 : err_set(e, RC_FORMAT, "%s: tensor %s has %llu rows, expected %llu", gguf_path(g),
                           t->name, (unsigned long long)t->ne[1], (unsigned long long)spec->ne[1]);
    }
    return rc;
}

static bool is_rope_table(enum config_tensor id) {
    return id == CONFIG_TENSOR_ROPE_FREQS || id == CONFIG_TENSOR_ROPE_LONG ||
           id == CONFIG_TENSOR_ROPE_SHORT;
}

/* Whether the tensor belongs to a part of the model. Where the embedding is the output too, both
 * ends have it. */
static bool is_in(const struct weights_range *r, const struct config *c,
                  const struct config_tensor_spec *spec) {
    bool begins = r->first == 0, ends = r->last == c->layers;
    if (spec->layer >= 0)
        return (uint32_t)spec->layer >= r->first && (uint32_t)spec->layer < r->last;
    return spec->id == CONFIG_TENSOR_TOKEN_EMBD ? begins || (ends && c->tied) : ends;
}

uint64_t weights_bytes(const gguf *g, const struct config *c, const struct weights_range *range) {
    struct config_tensor_spec spec;
    uint64_t total = 0;
    for (uint64_t i = 0; config_tensor_at(c, i, &spec); i++) {
        const struct gguf_tensor *t = gguf_find_tensor(g, spec.name);
        if (t && !is_rope_table(spec.id) && is_in(range, c, &spec))
            total += t->bytes;
    }
    return total;
}

static enum rc load_tensors(struct weights *w, const struct device *d, const gguf *g,
                            const struct config *c, enum weights_order order, struct err *e) {
    struct weights_loading *l = w->loading;
    struct config_tensor_spec spec;
    l->done = 0;
    for (uint64_t i = 0; config_tensor_at(c, i, &spec); i++) {
        const struct gguf_tensor *t = gguf_find_tensor(g, spec.name);
        if (is_rope_table(spec.id) || (!t && !spec.required) || !is_in(l->range, c, &spec))
            continue;
        if (!t)
            return err_set(e, RC_FORMAT, "%s: tensor %s is missing", gguf_path(g), spec.name);
        struct config_part first;
        uint64_t done = l->done + t->bytes;
        enum rc rc = config_tensor_part(c, spec.id, 0, &first)
                         ? load_parts(w, d, g, c, t, &spec, order, e)
                         : load_role(w, d, g, t, &spec, order, e);
        rc = rc ? rc : tell(l, done, e);
        if (rc)
            return rc;
    }
    return RC_OK;
}

static void set_packed(struct weights *w, int32_t layer) {
    w->version++;
    if (layer < 0)
        w->packed = true;
    else
        w->layers[layer].packed = true;
}

/* The most views there can be, and how many of them are parts of fused tensors. */
static uint64_t count_views(const struct config *c, uint64_t *parts) {
    struct config_tensor_spec spec;
    struct config_part p;
    uint64_t views = 0;
    *parts = 0;
    for (uint64_t i = 0; config_tensor_at(c, i, &spec); i++, views++)
        for (unsigned n = 0; config_tensor_part(c, spec.id, n, &p); n++)
            ++*parts;
    return views + *parts;
}

/* ---- the packed cache ----------------------------------------------------------------------- */

static void note_cache(const struct weights_cache *cache, const char *what, const struct err *why) {
    char text[sizeof why->msg + 80];
    if (!cache->note)
        return;
    snprintf(text, sizeof text, "%s: %s", what, why->msg);
    cache->note(text, cache->user);
}

/* Packs all matrices into the file at `path`. */
static enum rc make_cache(struct weights *w, const struct device *d, const gguf *g,
                          const struct config *c, const char *path, struct err *e) {
    enum rc rc = packed_create(&w->writer, path, g, e);
    rc = rc ? rc : load_tensors(w, d, g, c, WEIGHTS_PACKED, e);
    if (!rc)
        return packed_commit(&w->writer, e);
    packed_discard(&w->writer);
    return rc;
}

/* Opens the cache, or makes it first. Only an interruption is a failure: without it there is still
 * the model. */
static enum rc open_cache(struct weights *w, const struct device *d, const gguf *g,
                          const struct config *c, const struct weights_cache *cache,
                          struct err *e) {
    const struct weights_loading *l = w->loading;
    char path[PACKED_PATH_BYTES];
    struct err why = { 0 };
    enum rc rc = packed_path(cache->folder, g, path, &why);
    if (!rc) {
        rc = packed_open(&w->cached, path, g, l->progress, l->user, &why);
        if (rc == RC_FORMAT)
            note_cache(cache, "the packed cache is rebuilt", &why);
        if (rc == RC_FORMAT || rc == RC_IO) {
            rc = make_cache(w, d, g, c, path, &why);
            w->part_count = 0;
            rc = rc ? rc : packed_open(&w->cached, path, g, l->progress, l->user, &why);
        }
    }
    if (rc == RC_BUSY)
        return err_set(e, rc, "%s", why.msg);
    if (rc)
        note_cache(cache, "continuing without the packed cache", &why);
    return RC_OK;
}

/* ---- all of them ---------------------------------------------------------------------------- */

static enum rc make_lists(struct weights *w, const struct config *c, struct err *e) {
    uint64_t parts, views = count_views(c, &parts);
    w->layers = calloc((size_t)c->layers + 1, sizeof *w->layers);
    w->names = calloc(views + 1, sizeof *w->names);
    w->mapped = calloc(views + 1, sizeof *w->mapped);
    w->parts = calloc(parts + 1, sizeof *w->parts);
    return w->layers && w->names && w->mapped && w->parts ? RC_OK
                                                          : err_set(e, RC_MEMORY, "out of memory");
}

/* Whether weights go through pinned buffers. A verdict cannot know what the program does to such
 * memory while a copy is in flight unless the host is watched; so in recordings without that,
 * pieces are copied one by one. */
static bool is_staged(const struct device *d) {
    return kern_is_gpu(d->kernels) && (!audit.writer || env_flag(ENV_GCORE_WATCH_HOST));
}

enum rc weights_load(struct weights *w, const struct device *d, const gguf *g,
                     const struct config *c, const struct weights_range *range, uint32_t context,
                     enum weights_order order, const struct weights_cache *cache,
                     weights_progress progress, void *user, struct err *e) {
    struct weights_loading loading = {
        .range = range, .total = weights_bytes(g, c, range), .progress = progress, .user = user
    };
    *w = (struct weights){ .layer_count = c->layers, .unpacked = -1, .loading = &loading };
    w->all_floats = weights_are_floats(g, c);
    upload_open(&loading.upload, d, is_staged(d));
    enum rc rc = make_lists(w, c, e);
    if (!rc && cache && cache->on)
        rc = open_cache(w, d, g, c, cache, e);
    if (w->cached)
        order = WEIGHTS_PACKED;
    rc = rc ? rc : load_tensors(w, d, g, c, order, e);
    rc = rc ? rc : load_rope(w, d, g, c, context, e);
    rc = rc ? rc : upload_finish(&loading.upload, e);
    upload_close(&loading.upload);
    w->loading = NULL;
    if (rc) {
        weights_free(w, d);
        return rc;
    }
    for (int32_t l = -1; order == WEIGHTS_PACKED && l < (int32_t)c->layers; l++)
        set_packed(w, l);
    w->output = c->tied ? w->tensor[CONFIG_TENSOR_TOKEN_EMBD] : w->tensor[CONFIG_TENSOR_OUTPUT];
    return RC_OK;
}

/* ---- packing later -------------------------------------------------------------------------- */

/* Switches to the packed copy of the matrix. */
static void move_over(struct weights *w, const struct device *d, struct weights_mapped *m) {
    if (w->output.ptr == m->view->ptr)
        w->output = m->packed;
    *m->view = m->packed;
    w->version++;
    device_unmap(d, m->memory);
    *m = (struct weights_mapped){ 0 };
}

static bool waits(const struct weights_mapped *m, int32_t layer) {
    return m->packed.ptr && m->layer == layer;
}

/* Kernels learn for a whole layer whether it is packed: all its matrices move, or none. */
static enum rc repack_layer(struct weights *w, const struct device *d, const gguf *g, int32_t layer,
                            const struct weights_pause *pause, struct err *e) {
    struct weights_mapped *m = w->mapped, *end = m + w->mapped_count;
    enum rc rc = RC_OK;
    for (; !rc && m < end; m++)
        if (waits(m, layer) && !m->ready) {
            rc = upload_and_repack(w, d, &m->packed, g, m->tensor, layer, pause, e);
            m->ready = !rc;
        }
    if (rc)
        return rc;
    for (m = w->mapped; m < end; m++)
        if (waits(m, layer))
            move_over(w, d, m);
    set_packed(w, layer);
    return RC_OK;
}

static bool is_waiting(const struct weights *w) {
    for (size_t i = 0; i < w->mapped_count; i++)
        if (w->mapped[i].packed.ptr)
            return true;
    return false;
}

enum rc weights_repack_more(struct weights *w, const struct device *d, const gguf *g,
                            const struct weights_pause *pause, struct err *e) {
    enum rc rc = RC_OK;
    uint32_t share = w->layer_count / 4 + 1;
    for (uint32_t i = 0; !rc && i < share && is_waiting(w); i++) {
        rc = repack_layer(w, d, g, w->unpacked, pause, e);
        w->unpacked += !rc;
    }
    return rc;
}

/* ---- the end -------------------------------------------------------------------------------- */

static void let_go(struct weights *w, const struct device *d, struct kern_view *view) {
    for (size_t i = 0; i < w->mapped_count; i++)
        if (view == w->mapped[i].view)
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
    device_free(d, &w->rope_local_freqs);
    for (size_t i = 0; i < w->mapped_count; i++) {
        if (w->mapped[i].tensor)
            device_unmap(d, w->mapped[i].memory);
        device_free(d, &w->mapped[i].packed);
    }
    packed_close(&w->cached);
    free(w->mapped);
    free(w->layers);
    free(w->names);
    free(w->parts);
    *w = (struct weights){ 0 };
}
