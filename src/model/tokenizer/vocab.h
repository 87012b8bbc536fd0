/* vocab.h - the vocabulary a tokenizer works with: as a model file describes it, and as a table.
 *
 * struct vocab_source is the description: borrowed arrays and settings, filled from a GGUF file by
 * vocab_source_from_gguf() or by hand (tests, built-in vocabularies). struct vocab_table is a list
 * of strings that finds them again; ids are positions in the list. A table that nobody adds to may
 * be read by any number of threads. */
#ifndef MODEL_VOCAB_H
#define MODEL_VOCAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/gguf/gguf.h"

/* Kinds of token, as tokenizer.ggml.token_type numbers them. */
enum vocab_type {
    VOCAB_UNDEFINED = 0,
    VOCAB_NORMAL = 1,
    VOCAB_UNKNOWN = 2,
    VOCAB_CONTROL = 3,
    VOCAB_USER_DEFINED = 4,
    VOCAB_UNUSED = 5,
    VOCAB_BYTE = 6,
};

/* A setting that the file does not have; the tokenizer's model decides then. */
enum { VOCAB_UNSET = -1 };

struct vocab_source {
    const char *name;         /* what messages call it: the file's path */
    struct gguf_string model; /* tokenizer.ggml.model: "llama" (SentencePiece) or "gpt2" (BPE) */
    struct gguf_string pre;   /* tokenizer.ggml.pre: how BPE splits words; empty: "default" */

    size_t token_count;
    const struct gguf_string *tokens;
    const float *scores;  /* one per token, or NULL: all 0 */
    const uint8_t *types; /* enum vocab_type, one per token, or NULL: all normal */
    size_t merge_count;
    const struct gguf_string *merges; /* "left right", best first; BPE needs them */

    int64_t bos, eos, eot, eom, unk, pad;   /* ids, or VOCAB_UNSET */
    int add_bos, add_eos, add_space_prefix; /* 0, 1 or VOCAB_UNSET */
    bool strip_after_special;               /* special tokens swallow the blanks after them */
    struct gguf_string chat_template;       /* may be empty */

    void *owned[2]; /* arrays that vocab_source_from_gguf() made: scores, types */
};

/* A source with nothing in it and every setting unset. */
void vocab_source_init(struct vocab_source *s, const char *name);

/* Describes the vocabulary of g, which must outlive s. On failure (RC_FORMAT naming the key,
 * RC_MEMORY) s needs no closing. */
NODISCARD enum rc vocab_source_from_gguf(struct vocab_source *s, const gguf *g, struct err *e);

/* Frees what vocab_source_from_gguf() allocated; nothing for a source filled by hand. */
void vocab_source_close(struct vocab_source *s);

struct vocab_slot; /* position + 1 and a part of the hash; private to vocab.c */

struct vocab_table {
    char *text;      /* all strings, one after the other, without terminators */
    uint32_t *start; /* string i is text[start[i]] to text[start[i + 1]] */
    uint32_t count;
    uint32_t room;      /* strings that start has space for */
    uint32_t text_room; /* bytes that text has space for */
    uint32_t longest;   /* bytes of the longest string */
    struct vocab_slot *slots;
    uint32_t slot_mask;
}; /* {0} is an empty table */

/* Makes room for `count` strings of `bytes` bytes in all, to spare growing. */
NODISCARD enum rc vocab_table_reserve(struct vocab_table *t, size_t count, size_t bytes,
                                      struct err *e);

/* Appends a string; its id is t->count - 1 afterwards. If an equal one is there already, it stays
 * at its position, but from now on find returns the new one. */
NODISCARD enum rc vocab_table_add(struct vocab_table *t, const char *s, size_t len, struct err *e);

/* The id of a string, or -1. */
int32_t vocab_table_find(const struct vocab_table *t, const char *s, size_t len);

void vocab_table_close(struct vocab_table *t); /* leaves an empty table */

static inline const char *vocab_table_text(const struct vocab_table *t, uint32_t id) {
    return t->text + t->start[id];
}

static inline uint32_t vocab_table_length(const struct vocab_table *t, uint32_t id) {
    return t->start[id + 1] - t->start[id];
}

#endif
