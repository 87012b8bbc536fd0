/* SentencePiece as Llama uses it: characters merge to tokens, the pair with the best score first;
 * what no token covers is spelt in byte tokens. */
#include <stdlib.h>
#include <string.h>

#include "model/tokenizer/tokenizer_internal.h"
#include "model/tokenizer/tokenizer_merge.h"

/* U+2581, which stands for a space in the vocabulary. */
#define SPM_SPACE "\xE2\x96\x81"
enum { SPM_SPACE_LEN = 3 };

static bool spm_is_space(const char *s) {
    return memcmp(s, SPM_SPACE, SPM_SPACE_LEN) == 0;
}

/* Whether a token has a blank somewhere after something other than a blank. */
static bool spm_reaches_over(const char *text, uint32_t len) {
    for (uint32_t i = 1; i + SPM_SPACE_LEN <= len; i++)
        if (spm_is_space(text + i) &&
            (i < SPM_SPACE_LEN || !spm_is_space(text + i - SPM_SPACE_LEN)))
            return true;
    return false;
}

enum rc tokenizer_spm_build(tokenizer *t, const struct vocab_source *s, struct err *e) {
    t->spm.scores = calloc(t->tokens.count, sizeof *t->spm.scores);
    if (!t->spm.scores)
        return err_set(e, RC_MEMORY, "%s: no memory for the scores", s->name);
    for (uint32_t i = 0; s->scores && i < t->tokens.count; i++)
        t->spm.scores[i] = s->scores[i];

    t->spm.words_are_apart = true;
    for (uint32_t i = 0; i < t->tokens.count; i++)
        if (spm_reaches_over(vocab_table_text(&t->tokens, i), vocab_table_length(&t->tokens, i)))
            t->spm.words_are_apart = false;

    static const char hex[] = "0123456789ABCDEF";
    for (unsigned b = 0; b < 256; b++) {
        const char name[6] = { '<', '0', 'x', hex[b >> 4], hex[b & 15], '>' };
        const char byte = (char)b;
        int32_t id = vocab_table_find(&t->tokens, name, sizeof name);
        t->spm.byte_token[b] = id >= 0 ? id : vocab_table_find(&t->tokens, &byte, 1);
    }
    return RC_OK;
}

struct spm_run {
    const tokenizer *t;
    const char *text;  /* escaped */
    uint8_t forbidden; /* TOKEN_*: tokens that must not come out */
};

static uint32_t spm_find(const struct spm_run *run, uint32_t start, uint32_t len) {
    int32_t id = vocab_table_find(&run->t->tokens, run->text + start, len);
    if (id < 0 || run->t->attributes[id] & run->forbidden)
        return MERGER_NONE;
    return (uint32_t)id;
}

/* The best score gets the lowest number; the order of floats is that of their bits once negative
 * ones are turned round. */
static uint32_t spm_priority(float score) {
    score += 0.0f; /* -0 is 0 */
    uint32_t bits;
    memcpy(&bits, &score, sizeof bits);
    return bits & 0x80000000u ? bits : ~(bits | 0x80000000u);
}

static uint32_t spm_pair(const void *context, const struct merger_symbol *left,
                         const struct merger_symbol *right, uint32_t *priority) {
    const struct spm_run *run = context;
    uint32_t id = spm_find(run, left->start, left->len + right->len);
    if (id != MERGER_NONE)
        *priority = spm_priority(run->t->spm.scores[id]);
    return id;
}

/* Appends the ids of what the merges left over. */
static enum rc spm_emit(const struct spm_run *run, const struct merger *m, struct token_list *list,
                        struct err *e) {
    for (int32_t i = m->count ? 0 : -1; i >= 0; i = m->symbols[i].next) {
        const struct merger_symbol *s = &m->symbols[i];
        uint32_t id = s->symbol != MERGER_NONE ? s->symbol : spm_find(run, s->start, s->len);
        enum rc rc = id == MERGER_NONE ? token_list_reserve(list, s->len, e)
                                       : token_list_add(list, (int32_t)id, e);
        if (rc != RC_OK)
            return rc;
        for (uint32_t k = 0; id == MERGER_NONE && k < s->len; k++) {
            int32_t byte = run->t->spm.byte_token[(uint8_t)run->text[s->start + k]];
            if (byte < 0 || run->t->attributes[byte] & run->forbidden)
                byte = run->t->unk;
            if (byte >= 0)
                list->ids[list->count++] = byte;
        }
    }
    return RC_OK;
}

/* Bytes of the character that b begins, by its upper bits alone: bytes that are not UTF-8 are cut
 * as the reference cuts them. */
static uint32_t spm_character_length(char b) {
    static const uint8_t lengths[16] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4 };
    return lengths[(uint8_t)b >> 4];
}

/* Where the word that begins at `from` ends, and how many characters it has. */
static uint32_t spm_word_end(const tokenizer *t, const char *text, uint32_t from, uint32_t len,
                             size_t *characters) {
    uint32_t at = from;
    for (*characters = 0; at < len; ++*characters) {
        uint32_t n = spm_character_length(text[at]);
        if (t->spm.words_are_apart && at > from && n == SPM_SPACE_LEN && len - at >= n &&
            spm_is_space(text + at) && (at < SPM_SPACE_LEN || !spm_is_space(text + at - n)))
            break;
        at += n < len - at ? n : len - at;
    }
    return at;
}

/* Writes text with spaces replaced; returns the bytes written. */
static uint32_t spm_escape(const char *text, size_t len, bool space_prefix, char *out) {
    char *at = out;
    if (space_prefix) {
        memcpy(at, SPM_SPACE, SPM_SPACE_LEN);
        at += SPM_SPACE_LEN;
    }
    for (size_t i = 0; i < len; i++) {
        if (text[i] == ' ') {
            memcpy(at, SPM_SPACE, SPM_SPACE_LEN);
            at += SPM_SPACE_LEN;
        } else {
            *at++ = text[i];
        }
    }
    return (uint32_t)(at - out);
}

enum rc tokenizer_spm_encode(const tokenizer *t, const char *text, size_t len, bool space_prefix,
                             bool untrusted, struct token_list *list, struct err *e) {
    char *escaped = malloc(SPM_SPACE_LEN * (len + 1));
    if (!escaped)
        return err_set(e, RC_MEMORY, "no memory to tokenize a text of %zu bytes", len);
    uint32_t total = spm_escape(text, len, space_prefix, escaped);
    struct spm_run run = { t, escaped, untrusted ? TOKEN_SPECIAL | TOKEN_MARKUP : 0 };
    struct merger m = { 0 };
    enum rc rc = RC_OK;
    for (uint32_t from = 0; from < total && rc == RC_OK;) {
        size_t characters;
        uint32_t end = spm_word_end(t, escaped, from, total, &characters);
        if ((rc = merger_start(&m, characters, e)) != RC_OK)
            break;
        while (from < end) {
            uint32_t n = spm_character_length(escaped[from]);
            if (n > end - from)
                n = end - from;
            merger_add(&m, from, n, MERGER_NONE);
            from += n;
        }
        merger_run(&m, spm_pair, &run);
        rc = spm_emit(&run, &m, list, e);
    }
    merger_close(&m);
    free(escaped);
    return rc;
}
