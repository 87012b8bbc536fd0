#include "model/guard_rail.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/grow.h"

const struct guard_rail_limits guard_rail_default_limits = {
    .head_size_multiple = 8,
    .head_size_max = 256,
};

/* ---- the report ---- */

/* expected_found: the two texts, with a '\n' between them. */
static void __attribute__((format(printf, 3, 4)))
add_row(struct guard_rail_report *r, const char *subject, const char *expected_found, ...) {
    struct guard_rail_row *bigger = grow_array(r->rows, &r->room, r->count, sizeof *bigger);
    if (!bigger) {
        r->incomplete = true;
        return;
    }
    r->rows = bigger;
    char text[200];
    va_list ap;
    va_start(ap, expected_found);
    vsnprintf(text, sizeof text, expected_found, ap);
    va_end(ap);
    char *split = strchr(text, '\n');
    struct guard_rail_row *row = &r->rows[r->count++];
    snprintf(row->subject, sizeof row->subject, "%s", subject);
    snprintf(row->expected, sizeof row->expected, "%.*s", split ? (int)(split - text) : 79, text);
    snprintf(row->found, sizeof row->found, "%s", split ? split + 1 : "");
}

void guard_rail_clear(struct guard_rail_report *r) {
    free(r->rows);
    *r = (struct guard_rail_report){ 0 };
}

enum rc guard_rail_verdict(const struct guard_rail_report *r, const gguf *g, struct err *e) {
    if (r->count == 0 && !r->incomplete)
        return RC_OK;
    if (r->count == 0)
        return err_set(e, RC_MEMORY, "%s: out of memory while checking the model", gguf_path(g));
    char others[64] = "";
    if (r->count > 1)
        snprintf(others, sizeof others, " and %zu more mismatches", r->count - 1);
    return err_set(e, RC_REFUSED,
                   "%s: %s: expected %s, found %s%s; GRETA_DISABLE_GUARD_RAIL=1 runs it "
                   "anyway",
                   gguf_path(g), r->rows[0].subject, r->rows[0].expected, r->rows[0].found, others);
}

void guard_rail_print(const struct guard_rail_report *r, FILE *out) {
    int subject = 7, expected = 8; /* the width of the headings */
    for (size_t i = 0; i < r->count; i++) {
        int s = (int)strlen(r->rows[i].subject), x = (int)strlen(r->rows[i].expected);
        subject = s > subject ? s : subject;
        expected = x > expected ? x : expected;
    }
    fprintf(out, "%-*s  %-*s  %s\n", subject, "checked", expected, "expected", "found");
    for (size_t i = 0; i < r->count; i++)
        fprintf(out, "%-*s  %-*s  %s\n", subject, r->rows[i].subject, expected, r->rows[i].expected,
                r->rows[i].found);
}

/* ---- the model against its configuration ---- */

static void format_shape(char *out, size_t room, uint32_t n_dims, const uint64_t *ne) {
    size_t n = 0;
    for (uint32_t d = 0; d < n_dims && n < room; d++)
        n += (size_t)snprintf(out + n, room - n, "%s%" PRIu64, d ? " x " : "", ne[d]);
}

static void check_tensor(const struct config_tensor_spec *s, const struct gguf_tensor *t,
                         struct guard_rail_report *r) {
    char expected[64], found[96];
    format_shape(expected, sizeof expected, s->n_dims, s->ne);
    if (!t) {
        if (s->required)
            add_row(r, s->name, "%s\nmissing", expected);
        return;
    }
    /* Trailing dimensions of 1 mean nothing; some files have them. */
    if (t->ne[0] != s->ne[0] || t->ne[1] != s->ne[1] || t->ne[2] != 1 || t->ne[3] != 1) {
        format_shape(found, sizeof found, t->n_dims, t->ne);
        add_row(r, s->name, "%s\n%s", expected, found);
    }
    if (!config_kind_allows(s->kind, t->type))
        add_row(r, s->name, "%s\n%s",
                s->kind == CONFIG_MATRIX ? "a type greta computes with" : "F32, F16 or BF16",
                tensor_type_name(t->type));
}

/* A tensor that has no role would be left out of the arithmetic, and the output would be silently
 * wrong. */
static void check_leftovers(const gguf *g, const bool *claimed, struct guard_rail_report *r) {
    for (uint64_t i = 0; i < gguf_tensor_count(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        if (!claimed[i])
            add_row(r, t->name, "no such tensor in this architecture\n%s",
                    tensor_type_name(t->type));
    }
}

static void check_tensors(const gguf *g, const struct config *c, struct guard_rail_report *r) {
    struct config_tensor_spec s;
    if (gguf_tensor_count(g) == 0) { /* a vocabulary, not a model: one row is enough */
        add_row(r, "tensors", "those of a %s model\nnone", config_arch_name(c->arch));
        return;
    }
    bool *claimed = calloc(gguf_tensor_count(g), sizeof *claimed);
    if (!claimed) {
        r->incomplete = true;
        return;
    }
    for (uint64_t i = 0; config_tensor_at(c, i, &s); i++) {
        const struct gguf_tensor *t = gguf_find_tensor(g, s.name);
        check_tensor(&s, t, r);
        if (t)
            claimed[t - gguf_tensor_at(g, 0)] = true;
    }
    check_leftovers(g, claimed, r);
    free(claimed);
}

static void check_heads(const struct config *c, const struct guard_rail_limits *limits,
                        struct guard_rail_report *r) {
    if (c->head_size % limits->head_size_multiple != 0 || c->head_size > limits->head_size_max)
        add_row(r, "head size", "a multiple of %u up to %u\n%u", limits->head_size_multiple,
                limits->head_size_max, c->head_size);
}

static void check_vocab(const gguf *g, const struct config *c, struct guard_rail_report *r) {
    const struct gguf_key *tokens = gguf_find_key(g, "tokenizer.ggml.tokens");
    if (!tokens || tokens->value.type != GGUF_ARRAY || tokens->value.array.type != GGUF_STRING) {
        add_row(r, "tokenizer.ggml.tokens", "%u tokens\nno list of tokens", c->vocab);
        return;
    }
    uint64_t n = tokens->value.array.count;
    if (n != c->vocab)
        add_row(r, "tokenizer.ggml.tokens", "%u tokens\n%" PRIu64 " tokens", c->vocab, n);
    static const char *const beside[] = { "tokenizer.ggml.scores", "tokenizer.ggml.token_type" };
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        const struct gguf_key *k = gguf_find_key(g, beside[i]);
        if (k && (k->value.type != GGUF_ARRAY || k->value.array.count != n))
            add_row(r, beside[i], "%" PRIu64 " values\n%" PRIu64 " values", n,
                    k->value.type == GGUF_ARRAY ? k->value.array.count : 1);
    }
    static const char *const special[] = { "tokenizer.ggml.bos_token_id",
                                           "tokenizer.ggml.eos_token_id",
                                           "tokenizer.ggml.unknown_token_id" };
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
        uint64_t id = 0;
        if (gguf_try_u64(g, special[i], &id, NULL))
            add_row(r, special[i], "a token's number\nsomething else");
        else if (id >= n)
            add_row(r, special[i], "below %" PRIu64 "\n%" PRIu64, n, id);
    }
}

void guard_rail_check_model(const gguf *g, const struct config *c,
                            const struct guard_rail_limits *limits, struct guard_rail_report *r) {
    check_heads(c, limits, r);
    check_vocab(g, c, r);
    check_tensors(g, c, r);
}

/* ---- a shape that the user demands ---- */

void guard_rail_check_expectation(const struct config *c, const struct guard_rail_expectation *x,
                                  struct guard_rail_report *r) {
    const struct {
        const char *subject;
        uint32_t expected, found;
    } numbers[] = {
        { "embedding length", x->dim, c->dim },
        { "number of layers", x->layers, c->layers },
        { "number of heads", x->heads, c->heads },
        { "number of KV heads", x->kv_heads, c->kv_heads },
        { "head size", x->head_size, c->head_size },
        { "feed-forward length", x->hidden, c->hidden },
        { "vocabulary size", x->vocab, c->vocab },
        { "context length", x->context, c->context },
    };
    if (x->arch[0] && strcmp(x->arch, config_arch_name(c->arch)) != 0)
        add_row(r, "architecture", "%s\n%s", x->arch, config_arch_name(c->arch));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].expected && numbers[i].expected != numbers[i].found)
            add_row(r, numbers[i].subject, "%u\n%u", numbers[i].expected, numbers[i].found);
    if (x->rope_base != 0 && x->rope_base != c->rope_base)
        add_row(r, "rope base", "%g\n%g", x->rope_base, c->rope_base);
    if (x->tied >= 0 && (x->tied != 0) != c->tied)
        add_row(r, "tied embeddings", "%s\n%s", x->tied ? "yes" : "no", c->tied ? "yes" : "no");
}

/* ---- memory ---- */

static uint64_t plus(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

struct guard_rail_memory guard_rail_memory_need(const gguf *g, uint64_t kv_cache,
                                                uint64_t activations) {
    struct guard_rail_memory m = { .kv_cache = kv_cache, .activations = activations };
    for (uint64_t i = 0; i < gguf_tensor_count(g); i++)
        m.weights = plus(m.weights, gguf_tensor_at(g, i)->bytes);
    m.total = plus(plus(m.weights, m.kv_cache), m.activations);
    return m;
}

void guard_rail_check_memory(const struct guard_rail_memory *need, uint64_t free_bytes,
                             struct guard_rail_report *r) {
    if (need->total <= free_bytes)
        return;
    char total[BYTES_TEXT], weights[BYTES_TEXT], kv[BYTES_TEXT], available[BYTES_TEXT];
    bytes_format(need->total, total);
    bytes_format(need->weights, weights);
    bytes_format(need->kv_cache, kv);
    bytes_format(free_bytes, available);
    add_row(r, "free device memory", "%s (weights %s, KV cache %s)\n%s", total, weights, kv,
            available);
}
