#include "verdict/sentence.h"

#include <inttypes.h>
#include <string.h>

static const struct {
    const char *name, *names, *template[LANG_COUNT];
} table[SENTENCE_COUNT] = {
#define SENTENCE(id, names, en, es) [SENTENCE_##id] = { #id, names, { en, es } },
#include "verdict/sentence.def"
#undef SENTENCE
};

static const struct sentence plain[SENTENCE_COUNT] = {
#define SENTENCE(key, names, en, es)                                                               \
    [SENTENCE_##key] = { .id = SENTENCE_##key, .text = { en, es } },
#include "verdict/sentence.def"
#undef SENTENCE
};

/* ---- making -------------------------------------------------------------------------------- */

const struct sentence *sentence_make(struct arena *a, enum sentence_id id,
                                     const struct sentence_value *values, size_t count) {
    struct sentence *s = arena_alloc(a, sizeof *s);
    struct sentence_value *copy = arena_alloc_array(a, count + 1, sizeof *copy);
    if (!s || !copy)
        return NULL;
    memcpy(copy, values, count * sizeof *copy);
    *s = (struct sentence){ .id = id, .count = (unsigned)count, .value = copy };
    return s;
}

const struct sentence *sentence_plain(enum sentence_id id) {
    return &plain[id];
}

static bool keep_value(struct arena *a, struct sentence_value *v) {
    if (v->type == SENTENCE_NAME && v->name)
        return (v->name = arena_copy_text(a, v->name, strlen(v->name))) != NULL;
    if (v->type == SENTENCE_SAID && v->said)
        return (v->said = sentence_keep(a, v->said)) != NULL;
    return true;
}

const struct sentence *sentence_keep(struct arena *a, const struct sentence *s) {
    char text[1200];
    if (!s || s == &plain[s->id])
        return s;
    struct sentence *kept = arena_alloc(a, sizeof *kept);
    struct sentence_value *values = arena_alloc_array(a, s->count + 1u, sizeof *values);
    if (!kept || !values)
        return NULL;
    *kept = *s;
    kept->value = values;
    for (unsigned i = 0; i < s->count; i++) {
        values[i] = s->value[i];
        if (!keep_value(a, &values[i]))
            return NULL;
    }
    for (int lang = 0; lang < LANG_COUNT; lang++) {
        sentence_format((enum lang)lang, s, text, sizeof text);
        if (!(kept->text[lang] = arena_copy_text(a, text, strlen(text))))
            return NULL;
    }
    return kept;
}

bool sentence_same(const struct sentence *a, const struct sentence *b) {
    if (a == b || !a || !b)
        return a == b;
    if (a->id != b->id || a->count != b->count)
        return false;
    for (unsigned i = 0; i < a->count; i++) {
        const struct sentence_value *x = &a->value[i], *y = &b->value[i];
        if (x->type != y->type || x->number != y->number ||
            strcmp(x->name ? x->name : "", y->name ? y->name : "") != 0 ||
            x->form[LANG_EN] != y->form[LANG_EN] || !sentence_same(x->said, y->said))
            return false;
    }
    return true;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* What a template is written with; names: "call,bytes". */
struct writing {
    FILE *out;
    enum lang lang;
    const char *names;
    const struct sentence_value *value;
    unsigned count;
};

static const struct sentence_value *find_value(const struct writing *w, const char *name,
                                               size_t length) {
    const char *at = w->names;
    for (unsigned i = 0; i < w->count && *at; i++) {
        size_t n = strcspn(at, ",");
        if (n == length && !memcmp(at, name, n))
            return &w->value[i];
        at += n + (at[n] == ',');
    }
    return NULL;
}

static void write_template(const struct writing *w, const char *at, const char *last);

static void write_value(const struct writing *w, const struct sentence_value *v) {
    char bytes[32];
    switch (v->type) {
    case SENTENCE_NUMBER:
        fprintf(w->out, "%" PRIu64, v->number);
        break;
    case SENTENCE_BYTES:
        fputs(sentence_bytes(v->number, bytes, sizeof bytes), w->out);
        break;
    case SENTENCE_ADDRESS:
        fprintf(w->out, "0x%" PRIx64, v->number);
        break;
    case SENTENCE_NAME:
        fputs(v->name ? v->name : "", w->out);
        break;
    case SENTENCE_SAID:
        sentence_write(w->out, w->lang, v->said);
        break;
    case SENTENCE_FORM: {
        const struct sentence_value n = A_NUMBER(v->number);
        const struct writing inner = { w->out, w->lang, "n", &n, 1 };
        write_template(&inner, v->form[w->lang], v->form[w->lang] + strlen(v->form[w->lang]));
        break;
    }
    }
}

/* One past the end of the part that ends with one of `ends`, braces within it skipped. */
static const char *skip_part(const char *at, const char *last, const char *ends) {
    int depth = 0;
    for (; at < last; at++) {
        if (!depth && strchr(ends, *at))
            return at;
        depth += (*at == '{') - (*at == '}');
    }
    return last;
}

/* What stands between braces: "name" or "name?one|many". */
static void write_field(const struct writing *w, const char *at, const char *last) {
    size_t length = strcspn(at, "?}");
    const struct sentence_value *v = find_value(w, at, length);
    if (at[length] != '?' || at + length >= last) {
        if (v)
            write_value(w, v);
        return;
    }
    const char *one = at + length + 1, *bar = skip_part(one, last, "|");
    if (v && v->number == 1)
        write_template(w, one, bar);
    else
        write_template(w, bar < last ? bar + 1 : last, last);
}

static void write_template(const struct writing *w, const char *at, const char *last) {
    while (at < last) {
        if (*at != '{') {
            putc(*at++, w->out);
            continue;
        }
        const char *end = skip_part(at + 1, last, "}");
        write_field(w, at + 1, end);
        at = end < last ? end + 1 : last;
    }
}

void sentence_write(FILE *out, enum lang lang, const struct sentence *s) {
    if (!s)
        return;
    const char *form = table[s->id].template[lang];
    struct writing w = { out, lang, table[s->id].names, s->value, s->count };
    write_template(&w, form, form + strlen(form));
}

/* A stream over out; NULL if there is none to be had. */
static FILE *open_buffer(char *out, size_t room) {
    out[0] = 0;
    return fmemopen(out, room, "w");
}

const char *sentence_format(enum lang lang, const struct sentence *s, char *out, size_t room) {
    FILE *f = open_buffer(out, room);
    if (f) {
        sentence_write(f, lang, s);
        fclose(f);
        out[room - 1] = 0;
    }
    return out;
}

const char *sentence_count(const char *form, uint64_t n, char *out, size_t room) {
    FILE *f = open_buffer(out, room);
    struct sentence_value v = A_NUMBER(n);
    struct writing w = { f, LANG_EN, "n", &v, 1 };
    if (f) {
        write_template(&w, form, form + strlen(form));
        fclose(f);
        out[room - 1] = 0;
    }
    return out;
}

const char *sentence_text(enum lang lang, const struct sentence *s) {
    return s && s->text[lang] ? s->text[lang] : "";
}

/* ---- the table ----------------------------------------------------------------------------- */

const char *sentence_name(enum sentence_id id) {
    return table[id].name;
}

const char *sentence_names(enum sentence_id id) {
    return table[id].names;
}

const char *sentence_template(enum lang lang, enum sentence_id id) {
    return table[id].template[lang];
}

const char *sentence_bytes(uint64_t bytes, char *out, size_t room) {
    if (bytes == 1)
        snprintf(out, room, "1 byte");
    else if (bytes >= UINT64_C(1) << 30 && bytes % (UINT64_C(1) << 30) == 0)
        snprintf(out, room, "%" PRIu64 " GiB", bytes >> 30);
    else if (bytes >= 1 << 20 && bytes % (1 << 20) == 0)
        snprintf(out, room, "%" PRIu64 " MiB", bytes >> 20);
    else if (bytes >= 4 << 10 && bytes % (1 << 10) == 0)
        snprintf(out, room, "%" PRIu64 " KiB", bytes >> 10);
    else
        snprintf(out, room, "%" PRIu64 " bytes", bytes);
    return out;
}
