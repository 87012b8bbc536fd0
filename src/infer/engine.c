#include "infer/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/attach.h"
#include "audit/audit.h"
#include "base/env.h"
#include "base/hash.h"
#include "infer/demo.h"
#include "infer/engine_internal.h"
#include "infer/sequence.h"
#include "model/gguf/gguf.h"
#include "model/guard_rail.h"

enum { CONTEXT_DEFAULT_MAX = 4096 };
/* Room for the logits of a chunk when those of all its tokens are wanted. */
static const uint64_t ALL_LOGITS_BYTES = 512u << 20;
/* Repacking these takes less than 3 s at worst. */
static const uint64_t REPACK_FIRST_BYTES = 5ull << 29;

/* ---- the guard rail -------------------------------------------------------------------------- */

static void show_report(const struct guard_rail_report *r, const struct engine_options *o) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = o->report ? open_memstream(&text, &size) : NULL;
    if (!out)
        return;
    guard_rail_print(r, out);
    fclose(out);
    o->report(text, o->user);
    free(text);
}

/* What each device needs against what it has. */
static enum rc check_memory(const engine *g, const gguf *file, enum tensor_type kv_type,
                            struct guard_rail_report *report, struct err *e) {
    enum rc rc = RC_OK;
    for (uint32_t i = 0; !rc && i < g->stages.count; i++) {
        const struct stage *s = &g->stages.at[i];
        struct forward_shape shape = g->shape;
        shape.first = s->range.first;
        shape.last = s->range.last;
        uint64_t free_bytes = 0;
        struct guard_rail_memory need = guard_rail_memory_need(
            file, kvcache_bytes(&g->config, shape.last - shape.first, g->blocks, kv_type),
            forward_bytes(&shape));
        if (g->stages.count > 1 && need.total != UINT64_MAX) {
            need.total -= need.weights;
            need.weights = weights_bytes(file, &g->config, &s->range);
            need.total += need.weights;
        }
        rc = device_free_bytes(&s->device, &free_bytes, e);
        if (!rc)
            guard_rail_check_memory(&need, free_bytes, report);
    }
    return rc;
}

static enum rc guard(const engine *g, const gguf *file, const struct engine_options *o,
                     bool guard_rail, enum tensor_type kv_type, struct err *e) {
    struct guard_rail_report report = { 0 };
    struct guard_rail_expectation expectation;
    enum rc rc = RC_OK;
    if (o->expect) {
        rc = guard_rail_read_expectation(o->expect, &expectation, e);
        if (!rc)
            guard_rail_check_expectation(&g->config, &expectation, &report);
    }
    if (!rc) {
        guard_rail_check_model(file, &g->config, &guard_rail_default_limits, &report);
        rc = check_memory(g, file, kv_type, &report, e);
    }
    if (!rc) {
        rc = guard_rail_verdict(&report, file, e);
        if (rc == RC_REFUSED) {
            show_report(&report, o);
            rc = guard_rail ? rc : RC_OK;
            if (!rc && o->note)
                o->note("the guard rail is off (GRETA_DISABLE_GUARD_RAIL, --inject): "
                        "continuing in spite of it",
                        o->user);
        }
    }
    guard_rail_clear(&report);
    return rc;
}

/* Text beyond the context that a model was trained with tends to be worse; the user decides. */
static void note_context(const engine *g, const struct engine_options *o) {
    char text[200];
    if (g->context <= g->config.context || !o->note)
        return;
    snprintf(text, sizeof text,
             "a context of %u positions is more than the %u that the model was trained with; text "
             "beyond those may get worse",
             g->context, g->config.context);
    o->note(text, o->user);
}

/* ---- opening -------------------------------------------------------------------------------- */

static enum rc open_file(gguf **out, const struct engine_options *o, struct err *e) {
    if (o->model)
        return gguf_open(out, o->model, e);
    size_t size;
    const void *data = demo_model(&size);
    return gguf_open_memory(out, data, size, "embedded demo model", e);
}

static void use_threads(unsigned threads) {
    const struct hip_runtime *runtime = gcore_runtime();
    if (runtime && runtime->soft.set_threads && threads)
        runtime->soft.set_threads(threads);
}

static enum rc choose_sizes(engine *g, const gguf *file, const struct engine_options *o,
                            enum tensor_type *kv_type, struct err *e) {
    const struct tensor_type_info *kv = tensor_type_find_name(o->kv_type ? o->kv_type : "F16");
    if (!kv || (kv->type != TENSOR_TYPE_F16 && kv->type != TENSOR_TYPE_Q8_0))
        return err_set(e, RC_USAGE, "KV cache type: expected F16 or Q8_0, found '%s'", o->kv_type);
    *kv_type = kv->type;
    uint32_t own = g->config.context;
    g->context = o->context ? o->context : own < CONTEXT_DEFAULT_MAX ? own : CONTEXT_DEFAULT_MAX;
    g->sequences = o->sequences ? o->sequences : 1;
    uint64_t fit = ALL_LOGITS_BYTES / (g->config.vocab * sizeof(float)) + 1;
    g->chunk = o->chunk                              ? o->chunk
               : o->all_logits && fit < ENGINE_CHUNK ? (uint32_t)fit
                                                     : ENGINE_CHUNK;
    g->chunk = g->chunk > g->context ? g->context : g->chunk;
    g->chunk = g->chunk < g->sequences ? g->sequences : g->chunk;
    g->all_logits = o->all_logits;
    g->shape = (struct forward_shape){ .config = &g->config,
                                       .tokens = g->chunk,
                                       .wanted = g->all_logits ? g->chunk : g->sequences,
                                       .sequences = g->sequences,
                                       .context = g->context,
                                       .last = g->config.layers,
                                       .all_floats = weights_are_floats(file, &g->config) };
    if (g->sequences * KERN_BLOCKS(g->context) * KERN_BLOCK > INT32_MAX)
        return err_set(e, RC_USAGE, "%u sequences of %u positions: expected at most %d together",
                       g->sequences, g->context, INT32_MAX);
    uint64_t each = KERN_BLOCKS(g->context), all = g->sequences * each;
    if (o->cache && KERN_BLOCKS(o->cache) < all)
        all = KERN_BLOCKS(o->cache);
    g->blocks = (uint32_t)(all < each ? each : all);
    if (g->config.head_size % kv->block_elements)
        return err_set(e, RC_UNSUPPORTED,
                       "a KV cache of type %s needs heads of a multiple of %u elements, and this "
                       "model's have %u; take F16",
                       kv->name, kv->block_elements, g->config.head_size);
    return RC_OK;
}

static enum rc attach_inject(engine *g, struct err *e) {
    struct stage *s = &g->stages.at[0];
    struct inject_scene scene = { .device = &s->device,
                                  .config = &g->config,
                                  .weights = &s->weights,
                                  .cache = &s->cache,
                                  .buffers = forward_views(s->forward),
                                  .shape = &g->shape };
    forward_set_inject(s->forward, g->inject);
    return inject_attach(g->inject, &scene, e);
}

/* A packed copy of a large model takes seconds to make, most of them to get the pages for it. The
 * first token does not wait for that: until then weights are read from the file. Exceptions are
 * injections, which need the weights in place, and recordings, which show what any device does. */
static enum weights_order choose_order(const engine *g, const gguf *file,
                                       const struct engine_options *o) {
    const struct hip_runtime *runtime = gcore_runtime();
    uint64_t first = o->repack_first_bytes ? o->repack_first_bytes : REPACK_FIRST_BYTES;
    if (kern_is_gpu(g->stages.at[0].device.kernels))
        return WEIGHTS_PACKED; /* it has no order of its own: this is a plain copy */
    if (o->no_repack)
        return WEIGHTS_AS_IN_FILE;
    bool in_place =
        runtime && runtime->kind == HIP_DEVICE_SOFT && !o->inject_count && !audit.writer;
    return in_place && gguf_file_bytes(file) > first ? WEIGHTS_PACKED_LATER : WEIGHTS_PACKED;
}

/* Whether packed matrices may come from a file: only for CPU kernels on a single device, without
 * injections, and not in a recording. */
static bool may_cache(const engine *g, const struct engine_options *o) {
    const char *why = kern_is_gpu(g->stages.at[0].device.kernels) ? "by GPU code"
                      : g->stages.count > 1                       ? "with several devices"
                      : o->inject_count                           ? "with --inject"
                      : audit.writer                              ? "in a recording"
                                                                  : NULL;
    char text[120];
    if (!o->packed_cache || !why)
        return o->packed_cache;
    snprintf(text, sizeof text, "the packed cache is not used %s", why);
    if (o->note)
        o->note(text, o->user);
    return false;
}

/* How far loading has come, of all devices. */
struct loading {
    const struct engine_options *o;
    uint64_t before, total; /* bytes of the devices before this one, and of all */
};

static bool tell_loaded(uint64_t done, uint64_t total, void *user) {
    const struct loading *l = user;
    (void)total;
    return !l->o->progress || l->o->progress(l->before + done, l->total, l->o->user);
}

static enum rc load_stage(engine *g, struct stage *s, const gguf *file,
                          const struct engine_options *o, enum tensor_type kv_type, uint32_t blocks,
                          struct loading *l, struct err *e) {
    const struct weights_cache packed = { may_cache(g, o), o->packed_folder, o->note, o->user };
    struct forward_shape shape = g->shape;
    shape.first = s->range.first;
    shape.last = s->range.last;
    enum rc rc = weights_load(&s->weights, &s->device, file, &g->config, &s->range, g->context,
                              choose_order(g, file, o), &packed, tell_loaded, l, e);
    rc = rc ? rc
            : kvcache_open(&s->cache, &s->device, &g->config, shape.first, shape.last, blocks,
                           kv_type, e);
    l->before += weights_bytes(file, &g->config, &s->range);
    return rc ? rc
              : forward_open(&s->forward, &s->device, &shape, &s->weights, &s->cache, g->trace, e);
}

static enum rc load(engine *g, const gguf *file, const struct engine_options *o,
                    enum tensor_type kv_type, struct err *e) {
    /* The cache begins with one context and grows; with injections it has its full size from the
     * start, so that it does not move. */
    uint32_t each = (uint32_t)KERN_BLOCKS(g->context), blocks = g->inject ? g->blocks : each;
    struct loading l = { .o = o };
    enum rc rc = RC_OK;
    if (o->trace)
        rc = trace_open(&g->trace, o->trace, o->trace_file ? o->trace_file : "trace.jsonl",
                        o->trace_dump, e);
    for (uint32_t i = 0; i < g->stages.count; i++)
        l.total += weights_bytes(file, &g->config, &g->stages.at[i].range);
    for (uint32_t i = 0; !rc && i < g->stages.count; i++)
        rc = load_stage(g, &g->stages.at[i], file, o, kv_type, blocks, &l, e);
    rc = rc ? rc : blocks_grow(&g->pool, blocks, e);
    rc = rc ? rc : attach_inject(g, e);
    if (rc)
        return rc;
    size_t tables = (size_t)g->sequences * each, each_sequence = 1 + KERN_SETTINGS;
    g->logits = malloc((size_t)g->shape.wanted * g->config.vocab * sizeof *g->logits);
    g->numbers =
        malloc((4 * (size_t)g->chunk + each_sequence * g->sequences + tables) * sizeof *g->numbers);
    g->plan = malloc(g->sequences * sizeof *g->plan);
    g->drawn = malloc(g->sequences * sizeof *g->drawn);
    g->draws = env_flag(ENV_GRETA_DEVICE_SAMPLING) && !o->inject_count;
    return g->logits && g->numbers && g->plan && g->drawn ? RC_OK
                                                          : err_set(e, RC_MEMORY, "out of memory");
}

/* Which model a recording is about: nothing else in it says what was run. */
static enum rc record_model(const engine *g, const gguf *file, struct err *e) {
    hash *h = NULL;
    char text[96];
    enum rc rc = audit.writer ? hash_open(&h, 0, e) : RC_OK;
    if (rc || !audit.writer)
        return rc;
    for (uint64_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        hash_add(h, t->name, strlen(t->name));
        hash_add(h, t->ne, sizeof t->ne);
        hash_add(h, t->data, t->bytes);
    }
    record_provenance(audit.writer, "model.path", gguf_path(file));
    record_provenance(audit.writer, "model.name", g->config.name);
    record_provenance(audit.writer, "model.architecture", config_arch_name(g->config.arch));
    snprintf(text, sizeof text, "dim=%u,layers=%u,heads=%u,kv_heads=%u,hidden=%u,vocab=%u",
             g->config.dim, g->config.layers, g->config.heads, g->config.kv_heads, g->config.hidden,
             g->config.vocab);
    record_provenance(audit.writer, "model.shape", text);
    snprintf(text, sizeof text, "%llu", (unsigned long long)gguf_file_bytes(file));
    record_provenance(audit.writer, "model.bytes", text);
    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash_value(h));
    record_provenance(audit.writer, "model.tensors_xxh64", text);
    hash_close(&h);
    return RC_OK;
}

static void describe(engine *g) {
    double millions = (double)config_parameter_count(&g->config) / 1e6;
    int at = snprintf(
        g->description, sizeof g->description, "%.60s (%s, %.4g %s parameters) on ",
        g->config.name[0] ? g->config.name : "unnamed model", config_arch_name(g->config.arch),
        millions >= 1000 ? millions / 1000 : millions, millions >= 1000 ? "billion" : "million");
    for (uint32_t i = 0; i < g->stages.count && at < (int)sizeof g->description; i++) {
        char device[128];
        device_describe(&g->stages.at[i].device, device, sizeof device);
        at += snprintf(g->description + at, sizeof g->description - (size_t)at, "%s%s",
                       i ? "; " : "", device);
    }
}

static enum rc open_devices(engine *g, const struct engine_options *o, struct err *e) {
    struct err gpu;
    enum rc rc =
        device_open_usable(&g->stages.at[0].device, o->device, o->exec, o->record, &gpu, e);
    if (!rc && gpu.rc && o->note) {
        char text[sizeof gpu.msg + 80];
        snprintf(text, sizeof text, "the software device is used, and not the GPU: %s", gpu.msg);
        o->note(text, o->user);
    }
    rc = rc ? rc : stages_open(&g->stages, o->devices, g->config.layers, o->exec, e);
    if (!rc && o->inject_count && g->stages.count > 1)
        rc = err_set(e, RC_USAGE, "--inject works with one device, not with %u", g->stages.count);
    return rc;
}

/* Whether weights are used where they are in the file. */
static bool reads_file(const engine *g) {
    bool reads = false;
    for (uint32_t i = 0; i < g->stages.count; i++)
        reads |= g->stages.at[i].weights.mapped_count != 0;
    return reads;
}

enum rc engine_open(engine **out, const struct engine_options *o, struct err *e) {
    engine *g = calloc(1, sizeof *g);
    gguf *file = NULL;
    enum tensor_type kv_type = TENSOR_TYPE_F16;
    bool guard_rail = o->guard_rail;
    enum rc rc = g ? RC_OK : err_set(e, RC_MEMORY, "out of memory");
    rc = rc ? rc : inject_open(&g->inject, o->inject, o->inject_count, o->note, o->user, e);
    rc = rc ? rc : open_file(&file, o, e);
    rc = rc ? rc : config_read(file, &g->config, e);
    rc = rc ? rc : inject_configure(g->inject, &g->config, &guard_rail, e);
    rc = rc ? rc : tokenizer_open_gguf(&g->tokenizer, file, e);
    rc = rc ? rc : choose_sizes(g, file, o, &kv_type, e);
    rc = rc ? rc : open_devices(g, o, e);
    if (!rc) {
        use_threads(o->threads);
        inject_claim(g->inject);
        describe(g);
    }
    rc = rc ? rc : guard(g, file, o, guard_rail, kv_type, e);
    if (!rc)
        note_context(g, o);
    rc = rc ? rc : record_model(g, file, e);
    rc = rc ? rc : load(g, file, o, kv_type, e);
    if (g && reads_file(g))
        g->file = file;
    else
        gguf_close(&file);
    if (!rc) {
        *out = g;
    } else {
        enum rc ignored = engine_close(&g, NULL);
        (void)ignored;
    }
    return rc;
}

enum rc engine_close(engine **g, struct err *e) {
    if (!*g)
        return RC_OK;
    engine_drop(*g, 0, UINT32_MAX);
    sequence_close(&(*g)->held, *g);
    enum rc rc = trace_close(&(*g)->trace, e);
    enum rc struck = inject_close(&(*g)->inject, rc ? NULL : e);
    rc = rc ? rc : struck;
    stages_close(&(*g)->stages);
    gguf_close(&(*g)->file);
    tokenizer_close(&(*g)->tokenizer);
    token_list_close(&(*g)->past);
    blocks_close(&(*g)->pool);
    free((*g)->logits);
    free((*g)->numbers);
    free((*g)->plan);
    free((*g)->drawn);
    free(*g);
    *g = NULL;
    return rc;
}

enum rc engine_encode(const engine *g, const char *text, size_t len, bool special,
                      struct token_list *list, struct err *e) {
    const tokenizer *t = g->tokenizer;
    size_t before = list->count;
    unsigned flags = TOKENIZER_ADD_SPECIAL | (special ? TOKENIZER_PARSE_SPECIAL : 0);
    enum rc rc = tokenizer_encode(t, text, len, flags, list, e);
    if (!rc && tokenizer_adds_eos(t) && list->count > before &&
        list->ids[list->count - 1] == tokenizer_eos(t))
        list->count--;
    return rc;
}

const struct config *engine_config(const engine *g) {
    return &g->config;
}
const tokenizer *engine_tokenizer(const engine *g) {
    return g->tokenizer;
}
uint32_t engine_context(const engine *g) {
    return g->context;
}
uint32_t engine_position(const engine *g) {
    return (uint32_t)g->past.count;
}
const char *engine_description(const engine *g) {
    return g->description;
}
