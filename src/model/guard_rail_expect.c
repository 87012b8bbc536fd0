/* Reading a demanded shape: a name, or a small JSON file.
 *
 * The reader takes one JSON object, looks at its own members and steps over whatever is nested. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/guard_rail.h"

struct scanner {
    const char *at, *end;
    const char *name; /* for messages */
    const char *start;
    struct err *e;
};

enum { DEPTH_MAX = 32, TEXT_MAX = 64, FILE_MAX = 1 << 20 };

/* A member's value as far as it matters here. */
struct member {
    char key[TEXT_MAX];
    enum { NUMBER, TEXT, TRUTH, OTHER } kind;
    double number;
    char text[TEXT_MAX];
    bool truth;
};

static enum rc bad(struct scanner *s, const char *expected) {
    return err_set(s->e, RC_FORMAT, "%s: offset %td: expected %s", s->name, s->at - s->start,
                   expected);
}

static void skip_space(struct scanner *s) {
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r'))
        s->at++;
}

static bool accept(struct scanner *s, char c) {
    skip_space(s);
    if (s->at >= s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

/* A string; escapes are stepped over and kept as they are, what does not fit in out is dropped. */
static enum rc read_text(struct scanner *s, char *out) {
    size_t n = 0;
    if (!accept(s, '"'))
        return bad(s, "a string");
    for (; s->at < s->end && *s->at != '"'; s->at++) {
        if ((unsigned char)*s->at < ' ')
            return bad(s, "no control character in a string");
        if (*s->at == '\\' && ++s->at >= s->end)
            break;
        if (n < TEXT_MAX - 1)
            out[n++] = *s->at;
    }
    out[n] = 0;
    if (s->at >= s->end)
        return bad(s, "the end of a string");
    s->at++;
    return RC_OK;
}

static enum rc read_number(struct scanner *s, double *out) {
    char digits[40];
    size_t n = 0;
    while (s->at < s->end && n < sizeof digits - 1 && strchr("+-.eE0123456789", *s->at) && *s->at)
        digits[n++] = *s->at++;
    digits[n] = 0;
    char *rest;
    *out = strtod(digits, &rest);
    return n == 0 || *rest ? bad(s, "a number") : RC_OK;
}

static bool accept_word(struct scanner *s, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0)
        return false;
    s->at += n;
    return true;
}

static enum rc skip_value(struct scanner *s, struct member *m, int depth);

/* An object or array, whose opening bracket was taken. */
static enum rc skip_nested(struct scanner *s, char close, int depth) {
    struct member ignored;
    if (depth >= DEPTH_MAX)
        return bad(s, "less nesting");
    if (accept(s, close))
        return RC_OK;
    do {
        enum rc rc = RC_OK;
        if (close == '}') {
            rc = read_text(s, ignored.key);
            if (!rc && !accept(s, ':'))
                rc = bad(s, "':'");
        }
        if (!rc)
            rc = skip_value(s, &ignored, depth + 1);
        if (rc)
            return rc;
    } while (accept(s, ','));
    return accept(s, close) ? RC_OK : bad(s, close == '}' ? "'}'" : "']'");
}

static enum rc skip_value(struct scanner *s, struct member *m, int depth) {
    skip_space(s);
    m->kind = OTHER;
    if (s->at >= s->end)
        return bad(s, "a value");
    if (*s->at == '"') {
        m->kind = TEXT;
        return read_text(s, m->text);
    }
    if (accept(s, '{'))
        return skip_nested(s, '}', depth);
    if (accept(s, '['))
        return skip_nested(s, ']', depth);
    if (accept_word(s, "null"))
        return RC_OK;
    m->truth = accept_word(s, "true");
    if (m->truth || accept_word(s, "false")) {
        m->kind = TRUTH;
        return RC_OK;
    }
    m->kind = NUMBER;
    return read_number(s, &m->number);
}

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

static enum rc wrong_value(struct scanner *s, const struct member *m, const char *expected) {
    return err_set(s->e, RC_FORMAT, "%s: member '%s': expected %s", s->name, m->key, expected);
}

/* Sets *known if the member means something here. */
static enum rc take_member(struct scanner *s, const struct member *m,
                           struct guard_rail_expectation *x, bool *known) {
    *known = true;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcmp(m->key, numbers[i].ours) != 0 && strcmp(m->key, numbers[i].theirs) != 0)
            continue;
        if (m->kind == OTHER) /* null */
            return RC_OK;
        if (m->kind != NUMBER || m->number < 1 || m->number > UINT32_MAX ||
            m->number != floor(m->number))
            return wrong_value(s, m, "a whole number from 1");
        *(uint32_t *)((char *)x + numbers[i].offset) = (uint32_t)m->number;
        return RC_OK;
    }
    if (strcmp(m->key, "rope_base") == 0 || strcmp(m->key, "rope_theta") == 0) {
        if (m->kind != NUMBER || !(m->number > 0))
            return wrong_value(s, m, "a positive number");
        x->rope_base = m->number;
        return RC_OK;
    }
    if (strcmp(m->key, "tied") == 0 || strcmp(m->key, "tie_word_embeddings") == 0) {
        if (m->kind != TRUTH)
            return wrong_value(s, m, "true or false");
        x->tied = m->truth;
        return RC_OK;
    }
    if (strcmp(m->key, "arch") == 0 || strcmp(m->key, "model_type") == 0) {
        if (m->kind != TEXT)
            return wrong_value(s, m, "a string");
        /* Mistral's files say mistral; in GGUF its architecture is llama. */
        bool mistral = strcmp(m->text, "mistral") == 0;
        snprintf(x->arch, sizeof x->arch, "%.31s", mistral ? "llama" : m->text);
        return RC_OK;
    }
    *known = false;
    return RC_OK;
}

enum rc guard_rail_parse_expectation(const char *text, size_t len, const char *name,
                                     struct guard_rail_expectation *out, struct err *e) {
    struct scanner s = { .at = text, .end = text + len, .start = text, .name = name, .e = e };
    struct guard_rail_expectation x = { .tied = -1 };
    char unknown[TEXT_MAX] = "";
    int taken = 0;
    bool published = false; /* a config.json has many members that are no shape */
    snprintf(x.source, sizeof x.source, "%s", name);
    if (!accept(&s, '{'))
        return bad(&s, "'{'");
    bool empty = accept(&s, '}');
    while (!empty) {
        struct member m;
        bool known;
        enum rc rc = read_text(&s, m.key);
        if (!rc && !accept(&s, ':'))
            rc = bad(&s, "':'");
        if (!rc)
            rc = skip_value(&s, &m, 0);
        if (!rc)
            rc = take_member(&s, &m, &x, &known);
        if (rc)
            return rc;
        taken += known;
        published |= strcmp(m.key, "model_type") == 0 || strcmp(m.key, "architectures") == 0;
        if (!known && !unknown[0])
            snprintf(unknown, sizeof unknown, "%s", m.key);
        if (!accept(&s, ','))
            break;
    }
    if (!empty && !accept(&s, '}'))
        return bad(&s, "',' or '}'");
    skip_space(&s);
    if (s.at < s.end)
        return bad(&s, "nothing after the object");
    if (unknown[0] && !published)
        return err_set(e, RC_FORMAT, "%s: member '%s' is not a property of a shape", name, unknown);
    if (taken == 0)
        return err_set(e, RC_FORMAT, "%s: no member says anything about the shape", name);
    *out = x;
    return RC_OK;
}

static enum rc read_file(const char *path, struct guard_rail_expectation *out, struct err *e) {
    FILE *f = fopen(path, "re");
    if (!f)
        return err_set(e, RC_USAGE, "'%s' is neither a known shape nor a readable file: %s", path,
                       strerror(errno));
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
    if (config_find_shape(what, &c, NULL))
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
