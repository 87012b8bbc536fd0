/* inject.c - what is to be injected, into what, and when. What is then done is in
 * inject_strike.c. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "infer/inject_internal.h"

enum inject_tensors {
    TENSORS_ANY,
    TENSORS_FILLED,
    TENSORS_WRITTEN,
    TENSORS_READ,
    TENSORS_ONE,
    TENSORS_TEXT
};

static const struct info {
    const char *name, *hypothesis;
    enum inject_when when;
    enum inject_tensors tensors;
    const char *tensor, *text;
} inject_info[INJECT_KINDS] = {
#define INJECT(kind, hypothesis, when, tensors, tensor, text)                                      \
    { #kind, #hypothesis, INJECT_##when, TENSORS_##tensors, tensor, text },
#include "infer/inject.def"
#undef INJECT
};

static void note(const inject *i, const char *text) {
    if (i->note)
        i->note(text, i->user);
}

void inject_print_kinds(FILE *out) {
    fputs("--inject KIND[:TENSOR][@LAYER[.STEP]]: what is done, once, and what greta_audit must "
          "call it.\nLayer and step are 0 unless they are given; a tensor without blk.N. is the "
          "layer's.\n\n",
          out);
    for (int k = 0; k < INJECT_KINDS; k++) {
        const struct info *info = &inject_info[k];
        fprintf(out, "  %-21s %-22s %s (%s)\n", info->name, info->hypothesis, info->text,
                info->tensors == TENSORS_ONE    ? "always"
                : info->tensors == TENSORS_TEXT ? "unless given: another one of greta's"
                                                : info->tensor);
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

static enum rc bad_kind(const char *spec, struct err *e) {
    char list[400] = "";
    for (int k = 0; k < INJECT_KINDS; k++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", k ? ", " : "", inject_info[k].name);
    }
    return err_set(e, RC_USAGE, "--inject %.60s: there is no such kind; there are %s", spec, list);
}

static enum rc bad_place(const char *spec, struct err *e) {
    return err_set(e, RC_USAGE,
                   "--inject %s: expected KIND[:TENSOR][@LAYER[.STEP]], layer and step as whole "
                   "numbers",
                   spec);
}

static bool read_number(const char **at, int64_t *out) {
    char *end;
    if (!isdigit((unsigned char)**at))
        return false;
    errno = 0;
    *out = strtoll(*at, &end, 10);
    *at = end;
    return !errno && *out <= INT32_MAX;
}

static bool read_place(const char *at, struct shot *s) {
    if (!read_number(&at, &s->layer))
        return false;
    if (*at == '.') {
        at++;
        return read_number(&at, &s->step) && !*at;
    }
    return !*at;
}

static bool find_kind(const char *word, size_t len, enum inject_kind *out) {
    for (int k = 0; k < INJECT_KINDS; k++)
        if (strlen(inject_info[k].name) == len && !memcmp(inject_info[k].name, word, len)) {
            *out = (enum inject_kind)k;
            return true;
        }
    return false;
}

static enum rc read_spec(struct shot *s, const char *spec, struct err *e) {
    size_t word = strcspn(spec, ":@");
    *s = (struct shot){ .layer = -1, .step = -1 };
    snprintf(s->spec, sizeof s->spec, "%s", spec);
    if (!find_kind(spec, word, &s->kind))
        return bad_kind(spec, e);
    const char *at = strchr(spec + word, '@');
    size_t len = at ? (size_t)(at - spec) : strlen(spec);
    if (len > word) { /* after the colon */
        if (len == word + 1 || len - word > sizeof s->tensor)
            return bad_place(spec, e);
        memcpy(s->tensor, spec + word + 1, len - word - 1);
    }
    if (at && !read_place(at + 1, s))
        return bad_place(spec, e);
    if (at && inject_info[s->kind].when == INJECT_OPEN)
        return err_set(e, RC_USAGE, "--inject %s: this kind takes neither a layer nor a step",
                       spec);
    return RC_OK;
}

enum rc inject_open(inject **out, const char *const *specs, size_t count, inject_note say,
                    void *user, struct err *e) {
    if (!count)
        return RC_OK;
    if (count > INJECT_MAX)
        return err_set(e, RC_USAGE, "--inject: expected at most %d of them", INJECT_MAX);
    inject *i = calloc(1, sizeof *i);
    if (!i)
        return err_set(e, RC_MEMORY, "out of memory");
    *i = (struct inject){ .note = say, .user = user };
    for (; i->count < count; i->count++) {
        enum rc rc = read_spec(&i->shots[i->count], specs[i->count], e);
        if (rc) {
            free(i);
            return rc;
        }
    }
    *out = i;
    return RC_OK;
}

/* ---- before the run -------------------------------------------------------------------------- */

enum rc inject_configure(inject *i, struct config *c, bool *guard_rail, struct err *e) {
    for (size_t n = 0; i && n < i->count; n++) {
        if (i->shots[n].kind != INJECT_KIND_kv_heads || i->kv_heads)
            continue;
        if (c->kv_heads == c->heads)
            return err_set(e, RC_USAGE,
                           "--inject %s: this model has a KV head for each of its %u heads; it "
                           "takes one with fewer",
                           i->shots[n].spec, c->heads);
        /* Cache and buffers are made for what the configuration says from the strike on. */
        i->kv_heads = c->kv_heads;
        c->kv_heads = c->heads;
        *guard_rail = false;
    }
    return RC_OK;
}

void inject_claim(inject *i) {
    for (size_t n = 0; i && n < i->count; n++) {
        struct shot *s = &i->shots[n];
        if (s->kind != INJECT_KIND_stale_binary || !audit.writer)
            continue;
        const char *commit = *s->tensor ? s->tensor : inject_info[s->kind].tensor;
        char text[600];
        record_provenance(audit.writer, "program.commit", commit);
        record_provenance(audit.writer, "program.dirty", "0");
        snprintf(text, sizeof text, "injected %s: the recording claims commit %s", s->spec, commit);
        note(i, text);
        s->struck = true;
    }
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* A view of the engine under the name that the ledger has for it. */
typedef bool (*visit_fn)(struct kern_view *v, void *user);

static bool visit_role(struct kern_view *v, visit_fn visit, void *user) {
    return v->ptr && visit(v, user);
}

/* Calls visit for the buffers, what has no layer and what is the layer's, until it returns true. */
static void visit_tensors(inject *i, int64_t layer, visit_fn visit, void *user) {
    struct weights *w = i->scene.weights;
    struct kvcache_layer *cache = &i->scene.cache->layers[layer];
    for (int n = 0; n < FORWARD_BUFFERS; n++)
        if (forward_buffer_at((enum forward_buffer_id)n)->written != FORWARD_FUSED &&
            visit_role(&i->scene.buffers[n], visit, user))
            return;
    if (visit_role(&cache->keys, visit, user) || visit_role(&cache->values, visit, user))
        return;
    for (int id = 0; id < CONFIG_TENSOR_COUNT; id++)
        if (visit_role(&w->tensor[id], visit, user) ||
            visit_role(&w->layers[layer].tensor[id], visit, user))
            return;
    if (!visit_role(&w->rope_freqs, visit, user))
        (void)visit_role(&w->rope_local_freqs, visit, user);
}

static bool is_of_layers(const inject *i, const struct kern_view *v) {
    const struct weights *w = i->scene.weights;
    const char *first = (const char *)w->layers, *at = (const char *)v;
    return at >= first && at < first + w->layer_count * sizeof *w->layers;
}

static bool is_cache(const inject *i, const struct kern_view *v) {
    const struct kvcache *k = i->scene.cache;
    const char *first = (const char *)k->layers, *at = (const char *)v;
    return at >= first && at < first + k->layer_count * sizeof *k->layers;
}

/* What forward.def says of a view; NULL if it is not a buffer of the pass. */
static const struct forward_buffer *find_buffer(const inject *i, const struct kern_view *v) {
    const struct kern_view *first = i->scene.buffers;
    bool is_buffer = v >= first && v < first + FORWARD_BUFFERS;
    return is_buffer ? forward_buffer_at((enum forward_buffer_id)(v - first)) : NULL;
}

/* Has all of the tensor that a batch uses been written when the shot is due? */
static bool is_filled(const inject *i, const struct shot *s, const struct kern_view *v) {
    int64_t layers_done = s->layer + (inject_info[s->kind].when == INJECT_AFTER);
    const struct forward_buffer *b = find_buffer(i, v);
    if (b && b->written == FORWARD_PARTLY)
        return false;
    if (s->step > 0)
        return true;
    if (is_cache(i, v)) {
        const struct kvcache_layer *first = i->scene.cache->layers;
        return ((const char *)v - (const char *)first) / (int64_t)sizeof *first < layers_done;
    }
    return !b || b->written <= FORWARD_FIRST || (layers_done > 0 && b->written == FORWARD_LAYER);
}

static bool is_the_one(const char *name, const char *wanted) {
    size_t len = strlen(name), want = strlen(wanted);
    return len >= want && !strcmp(name + len - want, wanted) &&
           (len == want || name[len - want - 1] == '.');
}

static bool is_allowed(const inject *i, const struct shot *s, const struct kern_view *v) {
    const struct forward_buffer *b = find_buffer(i, v);
    switch (inject_info[s->kind].tensors) {
    case TENSORS_FILLED:
        return is_filled(i, s, v);
    case TENSORS_WRITTEN:
        return is_filled(i, s, v) && (is_cache(i, v) || (b && b->written != FORWARD_UPLOADED));
    case TENSORS_READ:
        return is_of_layers(i, v) || !strcmp(v->name, "x");
    case TENSORS_ONE:
        return is_the_one(v->name, inject_info[s->kind].tensor);
    default:
        return true;
    }
}

struct search {
    inject *i;
    const struct shot *shot;
    const char *name;
    char layered[INJECT_NAME_MAX + 24];
    struct kern_view *found;
    char list[400];
};

static bool match(struct kern_view *v, void *user) {
    struct search *x = user;
    if (!strcmp(v->name, x->name) || !strcmp(v->name, x->layered))
        x->found = v;
    return x->found != NULL;
}

static bool list_allowed(struct kern_view *v, void *user) {
    struct search *x = user;
    size_t used = strlen(x->list);
    if (is_allowed(x->i, x->shot, v))
        snprintf(x->list + used, sizeof x->list - used, "%s%s", used ? ", " : "", v->name);
    return false;
}

/* Words of --trace for what is there under another name. */
static const char *without_alias(const char *name) {
    static const char *const alias[][2] = {
        { "rmsnorm_in", "x" },
        { "rmsnorm_out", "norm" },
        { "rmsnorm_weight", "attn_norm.weight" },
        { "wo_out", "x" },
        { "mlp", "x" },
        { "kv_cache", "k_cache" },
    };
    for (size_t n = 0; n < sizeof alias / sizeof *alias; n++)
        if (!strcmp(name, alias[n][0]))
            return alias[n][1];
    return name;
}

/* The layer that "blk.3.attn_q.weight" names; -1: none. */
static int64_t layer_of(const char *name) {
    int64_t layer;
    const char *at = name + 4;
    return !strncmp(name, "blk.", 4) && read_number(&at, &layer) && *at == '.' ? layer : -1;
}

static enum rc place_shot(inject *i, struct shot *s, struct err *e) {
    const struct info *info = &inject_info[s->kind];
    const char *name = *s->tensor ? without_alias(s->tensor) : info->tensor;
    int64_t named = layer_of(name), layers = i->scene.config->layers;
    s->layer = s->layer >= 0 ? s->layer : named >= 0 ? named : 0;
    s->step = s->step >= 0 ? s->step : 0;
    if (s->layer >= layers || named >= layers)
        return err_set(e, RC_USAGE, "--inject %s: this model has layers 0 to %lld", s->spec,
                       (long long)layers - 1);
    struct search x = { .i = i, .shot = s, .name = name };
    snprintf(x.layered, sizeof x.layered, "blk.%lld.%s", (long long)s->layer, name);
    visit_tensors(i, named >= 0 ? named : s->layer, match, &x);
    if (!x.found || !is_allowed(i, s, x.found)) {
        visit_tensors(i, s->layer, list_allowed, &x);
        return err_set(e, RC_USAGE, "--inject %.80s: %s tensor %.60s; it can be done to %s",
                       s->spec, x.found ? "not with" : "there is no", name, x.list);
    }
    s->view = x.found;
    snprintf(s->tensor, sizeof s->tensor, "%s", x.found->name);
    return RC_OK;
}

enum rc inject_attach(inject *i, const struct inject_scene *scene, struct err *e) {
    if (!i)
        return RC_OK;
    i->scene = *scene;
    if (i->kv_heads) { /* until it strikes, everything is as in the file */
        struct kvcache *k = scene->cache;
        scene->config->kv_heads = i->kv_heads;
        k->row_bytes = tensor_type_row_bytes((enum tensor_type)k->layers[0].keys.type,
                                             (uint64_t)i->kv_heads * scene->config->head_size);
    }
    enum rc rc = RC_OK;
    for (size_t n = 0; !rc && n < i->count; n++)
        if (inject_info[i->shots[n].kind].tensors != TENSORS_TEXT)
            rc = place_shot(i, &i->shots[n], e);
        else if (!i->shots[n].struck)
            rc = err_set(e, RC_USAGE, "--inject %s: this kind needs --record FILE",
                         i->shots[n].spec);
    i->attached = !rc;
    return rc;
}

/* ---- injecting ------------------------------------------------------------------------------- */

enum rc inject_check_steps(const inject *i, int64_t end, struct err *e) {
    for (size_t n = 0; i && n < i->count; n++)
        if (!i->shots[n].struck && i->shots[n].step >= end)
            return err_set(e, RC_USAGE,
                           "--inject %s: this run has steps 0 to %lld (the prompt, then one for "
                           "every token but the last)",
                           i->shots[n].spec, (long long)end - 1);
    return RC_OK;
}

enum rc inject_strike(inject *i, enum inject_when when, uint32_t layer,
                      const struct forward_batch *b, struct err *e) {
    i->steps = b->step + 1;
    for (size_t n = 0; n < i->count; n++) {
        struct shot *s = &i->shots[n];
        char text[600];
        if (s->struck || inject_info[s->kind].when != when || s->layer != layer ||
            s->step != b->step)
            continue;
        s->struck = true;
        snprintf(text, sizeof text, "injected %s, tensor %s, %s layer %u of step %lld: %s",
                 inject_info[s->kind].name, s->tensor, when == INJECT_BEFORE ? "before" : "after",
                 layer, (long long)b->step, inject_info[s->kind].text);
        note(i, text);
        enum rc rc = strike_table[s->kind](i, s, b, e);
        if (rc)
            return rc;
    }
    return RC_OK;
}

enum rc inject_close(inject **i, struct err *e) {
    enum rc rc = RC_OK;
    if (!*i)
        return RC_OK;
    if ((*i)->attached)
        strike_undo(*i);
    for (size_t n = 0; (*i)->attached && n < (*i)->count; n++) {
        const struct shot *s = &(*i)->shots[n];
        char text[600];
        if (s->struck)
            continue;
        snprintf(text, sizeof text,
                 "--inject %s never struck: the run ended after step %lld, in layers 0 to %lld",
                 s->spec, (long long)(*i)->steps - 1, (long long)(*i)->scene.config->layers - 1);
        if (rc || !e) /* else the caller reports it */
            note(*i, text);
        rc = rc ? rc : err_set(e, RC_USAGE, "%s", text);
    }
    free(*i);
    *i = NULL;
    return rc;
}
