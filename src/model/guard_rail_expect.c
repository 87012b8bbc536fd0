/* Reading a demanded shape: a name, or a small JSON file with one object. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree.h"
#include "model/guard_rail.h"

enum { FILE_MAX = 1 << 20 };

/* ---- members ---- */

/* greta's name, Hugging Face's name, and where the number goes. */
static const struct {
    const char *ours, *theirs;
    size_t offset;
} numbers[] = {
#define FIELD(ours, theirs)                                                                        \
    { #ours, theirs, offsetof(struct guard_rail_expectation, ours) }
    FIELD(dim, "hidden_size"),           FIELD(layers, "num_hidden_layers"),
    FIELD(heads, "num_attention_heads"), FIELD(kv_heads, "num_key_value_heads"),
    FIELD(head_size, "head_dim"),        FIELD(hidden, "intermediate_size"),
    FIELD(vocab, "vocab_size"),          FIELD(context, "max_position_embeddings"),
#undef FIELD
};

static enum rc wrong_value(const char *name, const struct json_node *m, const char *expected,
                           struct err *e) {
    return err_set(e, RC_FORMAT, "%s: member '%s': expected %s", name, m->key, expected);
}

/* Sets *known if the member means something here. */
static enum rc take_member(const struct json_node *m, const char *name,
                           struct guard_rail_expectation *x, bool *known, struct err *e) {
    *known = true;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcmp(m->key, numbers[i].ours) != 0 && strcmp(m->key, numbers[i].theirs) != 0)
            continue;
        if (m->type == JSON_NULL)
            return RC_OK;
        if (m->type != JSON_NUMBER || m->number < 1 || m->number > UINT32_MAX ||
            m->number != floor(m->number))
            return wrong_value(name, m, "a whole number from 1", e);
        *(uint32_t *)((char *)x + numbers[i].offset) = (uint32_t)m->number;
        return RC_OK;
    }
    if (strcmp(m->key, "rope_base") == 0 || strcmp(m->key, "rope_theta") == 0) {
        if (m->type != JSON_NUMBER || !(m->number > 0))
            return wrong_value(name, m, "a positive number", e);
        x->rope_base = m->number;
        return RC_OK;
    }
    if (strcmp(m->key, "tied") == 0 || strcmp(m->key, "tie_word_embeddings") == 0) {
        if (m->type != JSON_BOOL)
            return wrong_value(name, m, "true or false", e);
        x->tied = m->boolean;
        return RC_OK;
    }
    if (strcmp(m->key, "arch") == 0 || strcmp(m->key, "model_type") == 0) {
        if (m->type != JSON_STRING)
            return wrong_value(name, m, "a string", e);
        /* Mistral's files say mistral; in GGUF its architecture is llama. */
        bool mistral = strcmp(m->text, "mistral") == 0;
        snprintf(x->arch, sizeof x->arch, "%.31s", mistral ? "llama" : m->text);
        return RC_OK;
    }
    *known = false;
    return RC_OK;
}

static enum rc take_members(const struct json_node *object, const char *name,
                            struct guard_rail_expectation *x, struct err *e) {
    /* A published config.json has many members that say nothing about the shape. */
    bool published = json_tree_get(object, "model_type") || json_tree_get(object, "architectures");
    int taken = 0;
    if (object->type != JSON_OBJECT)
        return err_set(e, RC_FORMAT, "%s: expected an object, as in {\"dim\": 4096}", name);
    for (const struct json_node *m = object->first; m; m = m->next) {
        bool known;
        enum rc rc = take_member(m, name, x, &known, e);
        if (!rc && !known && !published)
            rc =
                err_set(e, RC_FORMAT, "%s: member '%s' is not a property of a shape", name, m->key);
        if (rc)
            return rc;
        taken += known;
    }
    return taken ? RC_OK
                 : err_set(e, RC_FORMAT, "%s: no member says anything about the shape", name);
}

enum rc guard_rail_parse_expectation(const char *text, size_t len, const char *name,
                                     struct guard_rail_expectation *out, struct err *e) {
    struct guard_rail_expectation x = { .tied = -1 };
    json_tree *tree = NULL;
    snprintf(x.source, sizeof x.source, "%s", name);
    enum rc rc = json_tree_open(&tree, text, len, name, e);
    rc = rc ? rc : take_members(json_tree_root(tree), name, &x, e);
    json_tree_close(&tree);
    if (!rc)
        *out = x;
    return rc;
}

/* e holds that no shape has this name. */
static enum rc read_file(const char *path, struct guard_rail_expectation *out, struct err *e) {
    struct err no_shape = *e;
    FILE *f = fopen(path, "re");
    if (!f)
        return err_set(e, RC_USAGE, "%s: %s; and %s", path, strerror(errno), no_shape.msg);
    char *text = malloc(FILE_MAX);
    size_t n = text ? fread(text, 1, FILE_MAX, f) : 0;
    enum rc rc = RC_OK;
    if (!text)
        rc = err_set(e, RC_MEMORY, "%s: out of memory", path);
    else if (ferror(f))
        rc = err_set(e, RC_IO, "%s: cannot read", path);
    else if (n == FILE_MAX)
        rc = err_set(e, RC_FORMAT, "%s: too large for a shape", path);
    else
        rc = guard_rail_parse_expectation(text, n, path, out, e);
    free(text);
    fclose(f);
    return rc;
}

enum rc guard_rail_read_expectation(const char *what, struct guard_rail_expectation *out,
                                    struct err *e) {
    struct config c;
    struct err mine = { 0 };
    if (!e)
        e = &mine;
    if (config_find_shape(what, &c, e))
        return read_file(what, out, e);
    *out = (struct guard_rail_expectation){
        .dim = c.dim,
        .layers = c.layers,
        .heads = c.heads,
        .kv_heads = c.kv_heads,
        .head_size = c.head_size,
        .hidden = c.hidden,
        .vocab = c.vocab,
        .rope_base = c.rope_base,
        .tied = -1,
    };
    snprintf(out->source, sizeof out->source, "%s", what);
    snprintf(out->arch, sizeof out->arch, "%s", config_arch_name(c.arch));
    return RC_OK;
}
