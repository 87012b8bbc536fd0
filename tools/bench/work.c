#include "tools/bench/work.h"

#include <stdio.h>

#include "infer/demo.h"
#include "model/gguf/gguf.h"
#include "model/quant/tensor_type.h"

static enum rc open_file(gguf **out, const char *path, struct err *e) {
    if (path)
        return gguf_open(out, path, e);
    size_t size;
    const void *data = demo_model(&size);
    return gguf_open_memory(out, data, size, "embedded demo model", e);
}

enum { TYPES = 64 }; /* numbers of tensor types are below it */

/* One row of the embedding per token is negligible; as the output of a tied model all of it is
 * read. */
static bool is_read(const struct config *c, const struct config_tensor_spec *spec) {
    return spec->id != CONFIG_TENSOR_TOKEN_EMBD || c->tied;
}

static void add_tensor(struct work *w, const struct config_tensor_spec *spec,
                       const struct gguf_tensor *t, uint64_t by_type[TYPES]) {
    if (!is_read(&w->config, spec))
        return;
    w->weight_bytes += t->bytes;
    if (spec->kind != CONFIG_MATRIX)
        return;
    by_type[(unsigned)t->type % TYPES] += t->elements;
    *(spec->layer < 0 ? &w->output_macs : &w->layer_macs) += t->elements;
}

static void name_type(struct work *w, const uint64_t by_type[TYPES]) {
    unsigned most = 0;
    uint64_t all = 0, floats = 0;
    for (unsigned i = 0; i < TYPES; i++) {
        most = by_type[i] > by_type[most] ? i : most;
        all += by_type[i];
        floats += tensor_type_is_float((enum tensor_type)i) ? by_type[i] : 0;
    }
    snprintf(w->type, sizeof w->type, "%s", tensor_type_name((enum tensor_type)most));
    w->is_float = floats > all / 2;
}

static void add_cache(struct work *w, const struct tensor_type_info *kv) {
    const struct config *c = &w->config;
    uint64_t elements = 2ull * c->layers * c->kv_heads * c->head_size;
    w->kv_bytes = elements / kv->block_elements * kv->block_bytes;
    w->kv_type = kv->name;
    w->attention_macs = 2ull * c->layers * c->heads * c->head_size;
}

enum rc work_read(struct work *w, const char *path, const char *kv_type, struct err *e) {
    gguf *file = NULL;
    struct config_tensor_spec spec;
    uint64_t by_type[TYPES] = { 0 };
    const struct tensor_type_info *kv = tensor_type_find_name(kv_type ? kv_type : "F16");
    *w = (struct work){ 0 };
    if (!kv)
        return err_set(e, RC_USAGE, "KV cache type: expected F16 or Q8_0, found '%s'", kv_type);
    enum rc rc = open_file(&file, path, e);
    rc = rc ? rc : config_read(file, &w->config, e);
    for (uint64_t i = 0; !rc && config_tensor_at(&w->config, i, &spec); i++) {
        const struct gguf_tensor *t = gguf_find_tensor(file, spec.name);
        if (t)
            add_tensor(w, &spec, t, by_type);
    }
    if (!rc) {
        w->file_bytes = gguf_file_bytes(file);
        w->parameters = config_parameter_count(&w->config);
        name_type(w, by_type);
        add_cache(w, kv);
    }
    gguf_close(&file);
    return rc;
}

/* Positions that the tokens from `first` on attend to, themselves included; window 0: no limit. */
static double seen_by_layer(uint32_t window, uint64_t first, uint64_t tokens) {
    double seen = 0;
    for (uint64_t i = first; i < first + tokens; i++)
        seen += (double)(window && i >= window ? window : i + 1);
    return seen;
}

/* The mean over the layers, some of which may have a sliding window. */
static double positions_seen(const struct config *c, uint64_t first, uint64_t tokens) {
    uint32_t local = 0;
    for (uint32_t layer = 0; layer < c->layers; layer++)
        local += config_is_local(c, layer);
    double seen = local * seen_by_layer(c->sliding_window, first, tokens) +
                  (c->layers - local) * seen_by_layer(0, first, tokens);
    return seen / c->layers;
}

double work_decode_bytes(const struct work *w, uint32_t depth, uint32_t tokens, uint32_t batch) {
    double cache = positions_seen(&w->config, depth, tokens) / tokens * (double)w->kv_bytes;
    return (double)w->weight_bytes / batch + cache;
}

double work_prompt_macs(const struct work *w, uint32_t tokens) {
    double attention = positions_seen(&w->config, 0, tokens) * (double)w->attention_macs;
    return (double)w->layer_macs + ((double)w->output_macs + attention) / tokens;
}
