/* Byte-level BPE: a word's bytes merge in the order of the merge list. */
#include <stdlib.h>
#include <string.h>

#include "model/tokenizer/tokenizer_internal.h"
#include "model/tokenizer/tokenizer_merge.h"

/* GPT-2's alphabet has a printable character for every byte: printable Latin-1 bytes stand for
 * themselves; the 68 others, in order, for U+0100 to U+0143. */
static uint32_t character_of(uint8_t byte) {
    if ((byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD))
        return byte;
    if (byte <= 0x20)
        return 0x100u + byte;
    if (byte <= 0xA0)
        return 0x121u + (byte - 0x7Fu);
    return 0x143u; /* 0xAD */
}

int tokenizer_bpe_byte(uint32_t character) {
    if (character < 0x100)
        return character_of((uint8_t)character) == character ? (int)character : -1;
    if (character <= 0x120)
        return (int)(character - 0x100);
    if (character <= 0x142)
        return (int)(character - 0x121 + 0x7F);
    return character == 0x143 ? 0xAD : -1;
}

/* The symbol of a string; adds it to the extra ones if it is new. */
static enum rc bpe_symbol(tokenizer *t, const char *s, size_t len, uint32_t *symbol,
                          struct err *e) {
    int32_t id = vocab_table_find(&t->tokens, s, len);
    if (id >= 0) {
        *symbol = (uint32_t)id;
        return RC_OK;
    }
    id = vocab_table_find(&t->bpe.extra, s, len);
    if (id < 0) {
        enum rc rc = vocab_table_add(&t->bpe.extra, s, len, e);
        if (rc != RC_OK)
            return rc;
        id = (int32_t)t->bpe.extra.count - 1;
    }
    *symbol = t->tokens.count + (uint32_t)id;
    return RC_OK;
}

static uint32_t bpe_merge_slot(uint32_t left, uint32_t right, uint32_t mask) {
    uint64_t h = ((uint64_t)left << 32 | right) * 0x9E3779B97F4A7C15u;
    return (uint32_t)(h >> 32) & mask;
}

static const struct bpe_merge *bpe_find_merge(const struct bpe *b, uint32_t left, uint32_t right) {
    uint32_t at = bpe_merge_slot(left, right, b->merge_mask);
    while (b->merges[at].rank >= 0) {
        if (b->merges[at].left == left && b->merges[at].right == right)
            return &b->merges[at];
        at = (at + 1) & b->merge_mask;
    }
    return NULL;
}

static enum rc bpe_add_merge(tokenizer *t, const struct gguf_string *line, int32_t rank,
                             char *joined, struct err *e) {
    /* A merge begins with at least one byte that is not the separator, even if it is a space. */
    const char *space = line->len > 2 ? memchr(line->data + 1, ' ', line->len - 1) : NULL;
    if (!space)
        return RC_OK;
    size_t left_len = (size_t)(space - line->data), right_len = line->len - left_len - 1;
    struct bpe_merge new = { .rank = rank };
    memcpy(joined, line->data, left_len);
    memcpy(joined + left_len, space + 1, right_len);
    enum rc rc;
    if ((rc = bpe_symbol(t, joined, left_len, &new.left, e)) != RC_OK ||
        (rc = bpe_symbol(t, joined + left_len, right_len, &new.right, e)) != RC_OK ||
        (rc = bpe_symbol(t, joined, left_len + right_len, &new.merged, e)) != RC_OK)
        return rc;
    if (bpe_find_merge(&t->bpe, new.left, new.right))
        return RC_OK; /* the first one counts */
    uint32_t at = bpe_merge_slot(new.left, new.right, t->bpe.merge_mask);
    while (t->bpe.merges[at].rank >= 0)
        at = (at + 1) & t->bpe.merge_mask;
    t->bpe.merges[at] = new;
    return RC_OK;
}

static enum rc bpe_build_merges(tokenizer *t, const struct vocab_source *s, struct err *e) {
    if (s->merge_count > INT32_MAX / 4)
        return err_set(e, RC_FORMAT,
                       "%s: tokenizer.ggml.merges has %zu entries, more than greta can index",
                       s->name, s->merge_count);
    size_t slots = 16, longest = 1;
    while (slots / 4 * 3 < s->merge_count + 1)
        slots *= 2;
    for (size_t i = 0; i < s->merge_count; i++)
        if (s->merges[i].len > longest)
            longest = s->merges[i].len;
    char *joined = malloc(longest);
    t->bpe.merges = malloc(slots * sizeof *t->bpe.merges);
    if (!joined || !t->bpe.merges) {
        free(joined);
        return err_set(e, RC_MEMORY, "%s: no memory for %zu merges", s->name, s->merge_count);
    }
    t->bpe.merge_mask = (uint32_t)(slots - 1);
    for (size_t i = 0; i < slots; i++)
        t->bpe.merges[i].rank = -1;
    enum rc rc = RC_OK;
    for (size_t i = 0; i < s->merge_count && rc == RC_OK; i++)
        rc = bpe_add_merge(t, &s->merges[i], (int32_t)i, joined, e);
    free(joined);
    return rc;
}

enum rc tokenizer_bpe_build(tokenizer *t, const struct vocab_source *s, struct err *e) {
    enum rc rc = tokenizer_pre_open(&t->bpe.pre, s->pre.data, s->pre.len, e);
    if (rc != RC_OK) {
        err_prefix(e, "%s", s->name);
        return rc;
    }
    if (!s->merges)
        return err_set(e, RC_FORMAT,
                       "%s: tokenizer.ggml.model is 'gpt2', which needs "
                       "tokenizer.ggml.merges; the file has none",
                       s->name);
    if ((rc = bpe_build_merges(t, s, e)) != RC_OK)
        return rc;
    for (unsigned b = 0; b < 256; b++) {
        char bytes[4];
        size_t n = utf8_encode(character_of((uint8_t)b), bytes);
        int32_t id = vocab_table_find(&t->tokens, bytes, n);
        int32_t extra = id < 0 ? vocab_table_find(&t->bpe.extra, bytes, n) : -1;
        t->bpe.bytes[b] = id >= 0      ? (uint32_t)id
                          : extra >= 0 ? t->tokens.count + (uint32_t)extra
                                       : MERGER_NONE;
    }
    return RC_OK;
}

void tokenizer_bpe_free(struct bpe *b) {
    tokenizer_pre_close(&b->pre);
    vocab_table_close(&b->extra);
    free(b->merges);
}

struct bpe_run {
    const tokenizer *t;
    uint8_t forbidden; /* TOKEN_*: tokens that must not come out */
    struct merger merger;
    char *spelling; /* room for the longest token and one character more */
};

static bool bpe_is_forbidden(const struct bpe_run *run, uint32_t symbol) {
    return symbol < run->t->tokens.count && run->t->attributes[symbol] & run->forbidden;
}

static uint32_t bpe_pair(const void *context, const struct merger_symbol *left,
                         const struct merger_symbol *right, uint32_t *priority) {
    const struct bpe_run *run = context;
    if (left->symbol == MERGER_NONE || right->symbol == MERGER_NONE)
        return MERGER_NONE;
    const struct bpe_merge *m = bpe_find_merge(&run->t->bpe, left->symbol, right->symbol);
    if (!m || bpe_is_forbidden(run, m->merged))
        return MERGER_NONE;
    *priority = (uint32_t)m->rank;
    return m->merged;
}

/* A symbol that is no token is spelt byte by byte. */
static enum rc bpe_emit(const struct bpe_run *run, uint32_t symbol, struct token_list *list,
                        struct err *e) {
    const tokenizer *t = run->t;
    if (symbol == MERGER_NONE || bpe_is_forbidden(run, symbol))
        return RC_OK; /* a byte that the vocabulary cannot spell */
    if (symbol < t->tokens.count)
        return token_list_add(list, (int32_t)symbol, e);
    uint32_t extra = symbol - t->tokens.count;
    const char *text = vocab_table_text(&t->bpe.extra, extra);
    size_t len = vocab_table_length(&t->bpe.extra, extra);
    enum rc rc = RC_OK;
    for (size_t i = 0, n; i < len && rc == RC_OK; i += n) {
        uint32_t cp = 0;
        n = utf8_decode(text + i, len - i, &cp);
        int byte = n ? tokenizer_bpe_byte(cp) : -1;
        uint32_t id = byte < 0 ? MERGER_NONE : t->bpe.bytes[byte];
        if (id < t->tokens.count && !bpe_is_forbidden(run, id))
            rc = token_list_add(list, (int32_t)id, e);
        n = n ? n : 1;
    }
    return rc;
}

/* The token that a whole word is, or -1. */
static int32_t bpe_whole_word(const struct bpe_run *run, const char *word, uint32_t len) {
    const struct vocab_table *tokens = &run->t->tokens;
    size_t n = 0;
    for (uint32_t i = 0; i < len; i++) {
        if (n >= tokens->longest)
            return -1;
        n += utf8_encode(character_of((uint8_t)word[i]), run->spelling + n);
    }
    return vocab_table_find(tokens, run->spelling, n);
}

static enum rc bpe_encode_word(struct bpe_run *run, const char *word, uint32_t len,
                               struct token_list *list, struct err *e) {
    const tokenizer *t = run->t;
    if (run->spelling) {
        int32_t id = bpe_whole_word(run, word, len);
        if (id >= 0 && !bpe_is_forbidden(run, (uint32_t)id))
            return token_list_add(list, id, e);
    }
    enum rc rc = merger_start(&run->merger, len, e);
    if (rc != RC_OK)
        return rc;
    for (uint32_t i = 0; i < len; i++)
        merger_add(&run->merger, i, 1, t->bpe.bytes[(uint8_t)word[i]]);
    merger_run(&run->merger, bpe_pair, run);
    for (int32_t i = 0; i >= 0 && rc == RC_OK; i = run->merger.symbols[i].next)
        rc = bpe_emit(run, run->merger.symbols[i].symbol, list, e);
    return rc;
}

enum rc tokenizer_bpe_encode(const tokenizer *t, const char *text, size_t len, bool untrusted,
                             struct token_list *list, struct err *e) {
    struct tokenizer_words words;
    enum rc rc = tokenizer_pre_split(t->bpe.pre, text, len, &words, e);
    if (rc != RC_OK)
        return rc;
    struct bpe_run run = { .t = t, .forbidden = untrusted ? TOKEN_SPECIAL | TOKEN_MARKUP : 0 };
    if (tokenizer_pre_flags(t->bpe.pre) & PRE_IGNORE_MERGES) {
        run.spelling = malloc((size_t)t->tokens.longest + 4);
        if (!run.spelling)
            rc = err_set(e, RC_MEMORY, "no memory to tokenize a text of %zu bytes", len);
    }
    uint32_t from = 0;
    for (size_t i = 0; i < words.count && rc == RC_OK; i++) {
        rc = bpe_encode_word(&run, words.text + from, words.end[i] - from, list, e);
        from = words.end[i];
    }
    free(run.spelling);
    merger_close(&run.merger);
    tokenizer_words_close(&words);
    return rc;
}
