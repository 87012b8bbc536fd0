/* tokenizer_internal.h - what the files of the tokenizer share. Not for others. */
#ifndef MODEL_TOKENIZER_INTERNAL_H
#define MODEL_TOKENIZER_INTERNAL_H

#include "model/tokenizer/tokenizer.h"
#include "model/tokenizer/tokenizer_pre.h"

/* Attributes of a token, which may be combined: one that looks like a control token and that the
 * file calls normal is both. */
enum {
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN = 2,
    TOKEN_CONTROL = 4,
    TOKEN_USER_DEFINED = 8,
    TOKEN_UNUSED = 16,
    TOKEN_BYTE = 32,
    TOKEN_EOG = 64,
    TOKEN_MARKUP = 128, /* user-defined, but shaped like a control token: "<...>", "[...]" */
    TOKEN_SPECIAL = TOKEN_UNKNOWN | TOKEN_CONTROL, /* never comes from a user's text */
};

/* Two symbols and what they merge to. rank and merged of a slot in use are >= 0. */
struct bpe_merge {
    uint32_t left, right;
    int32_t rank; /* -1: empty slot */
    uint32_t merged;
};

/* Byte-level BPE works on symbols: the ids of tokens, and beyond them (count, count + 1, ...) the
 * strings that occur in merges but are no tokens. */
struct bpe {
    tokenizer_pre *pre;
    struct vocab_table extra; /* symbols beyond the tokens */
    uint32_t bytes[256];      /* symbol of each byte; MERGER_NONE if merges and tokens lack it */
    struct bpe_merge *merges; /* open addressing, at most half full */
    uint32_t merge_mask;
};

struct spm {
    float *scores;           /* one per token */
    int32_t byte_token[256]; /* token of each byte, or -1 */
    bool words_are_apart;    /* no token reaches from a word into the blanks after it */
};

/* Tokens that are looked for in a text before anything else is done with it. */
struct specials {
    uint32_t *ids; /* longest text first, then by id */
    uint32_t count;
    uint32_t *lengths; /* that occur among them, each once */
    uint32_t length_count;
    uint8_t beginnings[65536 / 8]; /* a bit for each two bytes that one of them begins with */
};

/* A stretch of a text: a special token, or (TOKENIZER_NO_TOKEN) text that holds none. */
struct fragment {
    uint32_t start, len;
    int32_t token;
};

struct fragment_list {
    struct fragment *items;
    size_t count, room;
};

struct tokenizer {
    enum tokenizer_kind kind;
    struct vocab_table tokens; /* texts, by id */
    uint8_t *attributes;       /* TOKEN_*, one per token */
    char *pieces;              /* bytes that tokens stand for, one after the other */
    uint32_t *piece_start;     /* piece i is pieces[piece_start[i]] to pieces[piece_start[i + 1]] */
    int32_t bos, eos, eot, eom, unk;
    bool add_bos, add_eos, add_space_prefix, strip_after_special;
    struct specials specials;
    char *chat_template;
    size_t chat_template_len;
    struct spm spm;
    struct bpe bpe;
};

/* Makes room for count more ids. */
NODISCARD enum rc token_list_reserve(struct token_list *list, size_t count, struct err *e);

/* Builds what an algorithm needs from t->tokens, t->attributes and the source. tokenizer_close()
 * cleans up after a failure. */
NODISCARD enum rc tokenizer_spm_build(tokenizer *t, const struct vocab_source *s, struct err *e);
NODISCARD enum rc tokenizer_bpe_build(tokenizer *t, const struct vocab_source *s, struct err *e);
void tokenizer_bpe_free(struct bpe *b);

/* Encodes a stretch of text that contains no special token. untrusted as in tokenizer_encode;
 * space_prefix: put a space before it. */
NODISCARD enum rc tokenizer_spm_encode(const tokenizer *t, const char *text, size_t len,
                                       bool space_prefix, bool untrusted, struct token_list *list,
                                       struct err *e);
NODISCARD enum rc tokenizer_bpe_encode(const tokenizer *t, const char *text, size_t len,
                                       bool untrusted, struct token_list *list, struct err *e);

/* Collects the special tokens; cuts a text at those whose TOKEN_* attributes have none of `not`.
 * Longer tokens go before shorter ones, wherever they are; fragments_close() in any case. */
NODISCARD enum rc specials_build(tokenizer *t, struct err *e);
void specials_free(struct specials *s);
NODISCARD enum rc specials_cut(const tokenizer *t, const char *text, uint32_t len, uint8_t not,
                               struct fragment_list *list, struct err *e);
void fragments_close(struct fragment_list *list);

/* Decodes all pieces (tokenizer_decode.c). */
NODISCARD enum rc tokenizer_build_pieces(tokenizer *t, struct err *e);

/* The byte that a character of GPT-2's alphabet stands for; -1: none. */
int tokenizer_bpe_byte(uint32_t character);

#endif
