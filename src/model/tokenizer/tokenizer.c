#include "model/tokenizer/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/tokenizer/tokenizer_internal.h"

static uint8_t attributes_of(uint8_t type) {
    switch (type) {
    case VOCAB_NORMAL:
        return TOKEN_NORMAL;
    case VOCAB_UNKNOWN:
        return TOKEN_UNKNOWN;
    case VOCAB_CONTROL:
        return TOKEN_CONTROL;
    case VOCAB_USER_DEFINED:
        return TOKEN_USER_DEFINED;
    case VOCAB_UNUSED:
        return TOKEN_UNUSED;
    case VOCAB_BYTE:
        return TOKEN_BYTE;
    default:
        return 0;
    }
}

static bool looks_like_markup(const struct gguf_string *s) {
    char first = s->len ? s->data[0] : 0, last = s->len ? s->data[s->len - 1] : 0;
    return s->len > 2 && ((first == '<' && last == '>') || (first == '[' && last == ']'));
}

static enum rc load_tokens(tokenizer *t, const struct vocab_source *s, struct err *e) {
    if (s->token_count == 0)
        return err_set(e, RC_FORMAT, "%s: tokenizer.ggml.tokens is missing or empty", s->name);
    size_t bytes = 0;
    for (size_t i = 0; i < s->token_count; i++) {
        if (s->tokens[i].len > INT32_MAX || (bytes += s->tokens[i].len) > INT32_MAX)
            return err_set(e, RC_FORMAT, "%s: tokenizer.ggml.tokens holds more than 2 GiB of text",
                           s->name);
    }
    enum rc rc = vocab_table_reserve(&t->tokens, s->token_count, bytes, e);
    if (rc != RC_OK) {
        err_prefix(e, "%s", s->name);
        return rc;
    }
    t->attributes = malloc(s->token_count);
    if (!t->attributes)
        return err_set(e, RC_MEMORY, "%s: no memory for %zu tokens", s->name, s->token_count);
    for (size_t i = 0; i < s->token_count; i++) {
        struct gguf_string text = s->tokens[i];
        char empty[32];
        if (text.len == 0) { /* every token needs a text of its own */
            text.len = (uint64_t)snprintf(empty, sizeof empty, "[EMPTY_%zu]", i);
            text.data = empty;
        }
        if ((rc = vocab_table_add(&t->tokens, text.data, text.len, e)) != RC_OK)
            return rc;
        t->attributes[i] = attributes_of(s->types ? s->types[i] : VOCAB_NORMAL);
        if (t->attributes[i] & TOKEN_USER_DEFINED && looks_like_markup(&text))
            t->attributes[i] |= TOKEN_MARKUP;
    }
    return RC_OK;
}

/* An id of the metadata: what the file says, else `otherwise` if there is such a token. */
static enum rc load_id(const tokenizer *t, const struct vocab_source *s, const char *key,
                       int64_t value, int32_t otherwise, int32_t *id, struct err *e) {
    if (value == VOCAB_UNSET) {
        *id = (uint32_t)otherwise < t->tokens.count ? otherwise : TOKENIZER_NO_TOKEN;
        return RC_OK;
    }
    if (value < 0 || value >= t->tokens.count)
        return err_set(e, RC_FORMAT, "%s: %s is %lld, but the vocabulary has %u tokens", s->name,
                       key, (long long)value, t->tokens.count);
    *id = (int32_t)value;
    return RC_OK;
}

static enum rc load_ids(tokenizer *t, const struct vocab_source *s, struct err *e) {
    bool spm = t->kind == TOKENIZER_SPM;
    const int32_t none = TOKENIZER_NO_TOKEN;
    enum rc rc;
    if ((rc = load_id(t, s, "tokenizer.ggml.bos_token_id", s->bos, spm ? 1 : none, &t->bos, e)) ||
        (rc = load_id(t, s, "tokenizer.ggml.eos_token_id", s->eos, spm ? 2 : none, &t->eos, e)) ||
        (rc = load_id(t, s, "tokenizer.ggml.unknown_token_id", s->unk, spm ? 0 : none, &t->unk,
                      e)) ||
        (rc = load_id(t, s, "tokenizer.ggml.eot_token_id", s->eot, none, &t->eot, e)) ||
        (rc = load_id(t, s, "tokenizer.ggml.eom_token_id", s->eom, none, &t->eom, e)))
        return rc;
    return RC_OK;
}

enum special_role { SPECIAL_EOT, SPECIAL_EOM, SPECIAL_EOG, SPECIAL_FIM };

static const struct {
    enum special_role role;
    const char *text;
} special_texts[] = {
#define TOKENIZER_SPECIAL(role, text) { SPECIAL_##role, text },
#include "model/tokenizer/tokenizer_special.def"
#undef TOKENIZER_SPECIAL
};

/* Gives tokens the roles that their texts or the metadata say they have. */
static void load_roles(tokenizer *t) {
    for (size_t i = 0; i < sizeof special_texts / sizeof *special_texts; i++) {
        const char *text = special_texts[i].text;
        int32_t id = vocab_table_find(&t->tokens, text, strlen(text));
        if (id < 0)
            continue;
        t->attributes[id] |= TOKEN_CONTROL;
        if (special_texts[i].role != SPECIAL_FIM)
            t->attributes[id] |= TOKEN_EOG;
        if (special_texts[i].role == SPECIAL_EOT && t->eot == TOKENIZER_NO_TOKEN)
            t->eot = id;
        if (special_texts[i].role == SPECIAL_EOM && t->eom == TOKENIZER_NO_TOKEN)
            t->eom = id;
    }
    const int32_t ends[] = { t->eos, t->eot, t->eom };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends[i] >= 0)
            t->attributes[ends[i]] |= TOKEN_EOG;
}

/* One of the settings add_bos_token and add_eos_token. */
static enum rc load_adding(const struct vocab_source *s, const char *what, int value,
                           bool otherwise, int32_t id, bool *add, struct err *e) {
    if (value == 1 && id == TOKENIZER_NO_TOKEN)
        return err_set(e, RC_FORMAT,
                       "%s: tokenizer.ggml.add_%s_token is true, but there is no "
                       "tokenizer.ggml.%s_token_id",
                       s->name, what, what);
    *add = (value == VOCAB_UNSET ? otherwise : value != 0) && id != TOKENIZER_NO_TOKEN;
    return RC_OK;
}

static enum rc load_settings(tokenizer *t, const struct vocab_source *s, struct err *e) {
    bool spm = t->kind == TOKENIZER_SPM;
    bool bos = spm || tokenizer_pre_flags(t->bpe.pre) & PRE_ADD_BOS;
    enum rc rc;
    if ((rc = load_adding(s, "bos", s->add_bos, bos, t->bos, &t->add_bos, e)) != RC_OK ||
        (rc = load_adding(s, "eos", s->add_eos, false, t->eos, &t->add_eos, e)) != RC_OK)
        return rc;
    t->add_space_prefix = spm && s->add_space_prefix != 0;
    t->strip_after_special = s->strip_after_special;
    t->chat_template = malloc(s->chat_template.len + 1);
    if (!t->chat_template)
        return err_set(e, RC_MEMORY, "%s: no memory for tokenizer.chat_template", s->name);
    if (s->chat_template.len)
        memcpy(t->chat_template, s->chat_template.data, s->chat_template.len);
    t->chat_template_len = s->chat_template.len;
    return RC_OK;
}

enum rc tokenizer_open(tokenizer **out, const struct vocab_source *s, struct err *e) {
    bool spm = gguf_string_is(s->model, "llama");
    if (!spm && !gguf_string_is(s->model, "gpt2"))
        return err_set(e, RC_UNSUPPORTED,
                       "%s: tokenizer.ggml.model is '%.*s'; greta knows 'llama' (SentencePiece) "
                       "and 'gpt2' (byte-level BPE)",
                       s->name, (int)(s->model.len < 64 ? s->model.len : 64),
                       s->model.len ? s->model.data : "");
    tokenizer *t = calloc(1, sizeof *t);
    if (!t)
        return err_set(e, RC_MEMORY, "%s: no memory for a tokenizer", s->name);
    t->kind = spm ? TOKENIZER_SPM : TOKENIZER_BPE;
    enum rc rc;
    if ((rc = load_tokens(t, s, e)) != RC_OK || (rc = load_ids(t, s, e)) != RC_OK)
        goto fail;
    load_roles(t);
    rc = spm ? tokenizer_spm_build(t, s, e) : tokenizer_bpe_build(t, s, e);
    if (rc != RC_OK || (rc = load_settings(t, s, e)) != RC_OK ||
        (rc = specials_build(t, e)) != RC_OK || (rc = tokenizer_build_pieces(t, e)) != RC_OK)
        goto fail;
    *out = t;
    return RC_OK;
fail:
    tokenizer_close(&t);
    return rc;
}

enum rc tokenizer_open_gguf(tokenizer **out, const gguf *g, struct err *e) {
    struct vocab_source source;
    enum rc rc = vocab_source_from_gguf(&source, g, e);
    if (rc != RC_OK)
        return rc;
    rc = tokenizer_open(out, &source, e);
    vocab_source_close(&source);
    return rc;
}

void tokenizer_close(tokenizer **t) {
    if (!*t)
        return;
    vocab_table_close(&(*t)->tokens);
    specials_free(&(*t)->specials);
    tokenizer_bpe_free(&(*t)->bpe);
    free((*t)->spm.scores);
    free((*t)->attributes);
    free((*t)->pieces);
    free((*t)->piece_start);
    free((*t)->chat_template);
    free(*t);
    *t = NULL;
}

/* Whether a token swallows the blanks after it. */
static bool strips_blanks(const tokenizer *t, int32_t id) {
    return t->strip_after_special && id != TOKENIZER_NO_TOKEN && id != t->bos && id != t->unk &&
           !gguf_string_is(tokenizer_text(t, id), "<|endoftext|>");
}

static struct fragment without_blanks(const char *text, struct fragment f) {
    for (; f.len > 0 && strchr(" \t\n\v\f\r", text[f.start]) && text[f.start]; f.len--)
        f.start++;
    return f;
}

/* Encodes what specials_cut() made of a text. A space goes before text that follows a special token
 * or begins the whole, where the model is used to that. */
static enum rc encode_fragments(const tokenizer *t, const char *text,
                                const struct fragment_list *fragments, unsigned flags,
                                struct token_list *list, struct err *e) {
    enum rc rc = RC_OK;
    const bool untrusted = flags & TOKENIZER_UNTRUSTED;
    bool after_special = !(flags & TOKENIZER_CONTINUES), strip = false;
    for (size_t i = 0; i < fragments->count && rc == RC_OK; i++) {
        struct fragment f = fragments->items[i];
        if (strip && f.token == TOKENIZER_NO_TOKEN)
            f = without_blanks(text, f);
        strip = strips_blanks(t, f.token);
        if (f.token != TOKENIZER_NO_TOKEN)
            rc = token_list_add(list, f.token, e);
        else if (f.len == 0)
            continue; /* nothing is left of it: what follows comes after the special token */
        else if (t->kind == TOKENIZER_SPM)
            rc = tokenizer_spm_encode(t, text + f.start, f.len,
                                      after_special && t->add_space_prefix, untrusted, list, e);
        else
            rc = tokenizer_bpe_encode(t, text + f.start, f.len, untrusted, list, e);
        after_special = f.token != TOKENIZER_NO_TOKEN;
    }
    return rc;
}

enum rc tokenizer_encode(const tokenizer *t, const char *text, size_t len, unsigned flags,
                         struct token_list *list, struct err *e) {
    if (len > INT32_MAX / 4)
        return err_set(e, RC_RANGE, "a text of %zu bytes is longer than greta tokenizes (512 MiB)",
                       len);
    const uint8_t not = flags & TOKENIZER_UNTRUSTED       ? TOKEN_SPECIAL | TOKEN_MARKUP
                        : flags & TOKENIZER_PARSE_SPECIAL ? 0
                                                          : TOKEN_SPECIAL;
    const size_t before = list->count;
    struct fragment_list fragments = { 0 };
    enum rc rc = specials_cut(t, text, (uint32_t)len, not, &fragments, e);
    if (rc == RC_OK && flags & TOKENIZER_ADD_SPECIAL && t->add_bos)
        rc = token_list_add(list, t->bos, e);
    if (rc == RC_OK)
        rc = encode_fragments(t, text, &fragments, flags, list, e);
    if (rc == RC_OK && flags & TOKENIZER_ADD_SPECIAL && t->add_eos)
        rc = token_list_add(list, t->eos, e);
    fragments_close(&fragments);
    if (rc != RC_OK)
        list->count = before;
    return rc;
}

static bool is_any(const tokenizer *t, int32_t id, uint8_t attributes) {
    return id >= 0 && (uint32_t)id < t->tokens.count && (t->attributes[id] & attributes);
}

enum tokenizer_kind tokenizer_kind_of(const tokenizer *t) {
    return t->kind;
}

uint32_t tokenizer_count(const tokenizer *t) {
    return t->tokens.count;
}

int32_t tokenizer_bos(const tokenizer *t) {
    return t->bos;
}

int32_t tokenizer_eos(const tokenizer *t) {
    return t->eos;
}

int32_t tokenizer_eot(const tokenizer *t) {
    return t->eot;
}

int32_t tokenizer_unk(const tokenizer *t) {
    return t->unk;
}

int32_t tokenizer_find(const tokenizer *t, const char *text, size_t len) {
    return vocab_table_find(&t->tokens, text, len);
}

bool tokenizer_adds_bos(const tokenizer *t) {
    return t->add_bos;
}

bool tokenizer_adds_eos(const tokenizer *t) {
    return t->add_eos;
}

bool tokenizer_adds_space(const tokenizer *t) {
    return t->add_space_prefix;
}

bool tokenizer_is_eog(const tokenizer *t, int32_t id) {
    return is_any(t, id, TOKEN_EOG);
}

bool tokenizer_is_control(const tokenizer *t, int32_t id) {
    return is_any(t, id, TOKEN_SPECIAL);
}

bool tokenizer_is_special(const tokenizer *t, int32_t id) {
    return is_any(t, id, TOKEN_SPECIAL | TOKEN_USER_DEFINED);
}

struct gguf_string tokenizer_text(const tokenizer *t, int32_t id) {
    if (id < 0 || (uint32_t)id >= t->tokens.count)
        return (struct gguf_string){ 0 };
    return (struct gguf_string){ vocab_table_text(&t->tokens, (uint32_t)id),
                                 vocab_table_length(&t->tokens, (uint32_t)id) };
}

struct gguf_string tokenizer_chat_template(const tokenizer *t) {
    return (struct gguf_string){ t->chat_template, t->chat_template_len };
}
