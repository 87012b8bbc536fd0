/* tokenizer.h - text to token ids and back, for SentencePiece ("llama") and byte-level BPE
 * ("gpt2").
 *
 * A tokenizer copies what it needs of its source, which may be closed afterwards. Once open it is
 * immutable: any number of threads may encode and decode with one tokenizer at the same time.
 * Lists, texts and decoders belong to their callers. */
#ifndef MODEL_TOKENIZER_H
#define MODEL_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/tokenizer/utf8.h"
#include "model/tokenizer/vocab.h"

typedef struct tokenizer tokenizer;

enum tokenizer_kind { TOKENIZER_SPM, TOKENIZER_BPE };

enum { TOKENIZER_NO_TOKEN = -1 };

/* On failure *out is untouched and e names the key that is wrong: RC_FORMAT, RC_UNSUPPORTED for a
 * tokenizer that greta does not have, RC_MEMORY. */
NODISCARD enum rc tokenizer_open(tokenizer **out, const struct vocab_source *source, struct err *e);
NODISCARD enum rc tokenizer_open_gguf(tokenizer **out, const gguf *g, struct err *e);
void tokenizer_close(tokenizer **t); /* sets *t to NULL; *t may be NULL */

/* Ids that grow as encoders append to them; {0} is empty. */
struct token_list {
    int32_t *ids;
    size_t count, room;
};

NODISCARD enum rc token_list_add(struct token_list *list, int32_t id, struct err *e);
void token_list_close(struct token_list *list);

enum {
    /* BOS before and EOS after the text where the model wants them. */
    TOKENIZER_ADD_SPECIAL = 1,
    /* "<s>", "<|eot_id|>" and their like in the text become those tokens. Without it they are plain
     * text; user-defined tokens are found either way. */
    TOKENIZER_PARSE_SPECIAL = 2,
    /* For untrusted text: neither a control token nor a user-defined one that looks like markup
       comes out. Overrides TOKENIZER_PARSE_SPECIAL. */
    TOKENIZER_UNTRUSTED = 4,
    /* The text continues another one: no space is put before it. */
    TOKENIZER_CONTINUES = 8,
};

/* Appends the ids of text, which may hold any bytes, to *list. On failure (RC_MEMORY, RC_RANGE for
 * a text past 512 MiB) *list is as it was. */
NODISCARD enum rc tokenizer_encode(const tokenizer *t, const char *text, size_t len, unsigned flags,
                                   struct token_list *list, struct err *e);

enum tokenizer_kind tokenizer_kind_of(const tokenizer *t);
uint32_t tokenizer_count(const tokenizer *t); /* ids are below this */

/* Ids, or TOKENIZER_NO_TOKEN where the vocabulary has none. */
int32_t tokenizer_bos(const tokenizer *t);
int32_t tokenizer_eos(const tokenizer *t);
int32_t tokenizer_eot(const tokenizer *t); /* end of a turn */
int32_t tokenizer_unk(const tokenizer *t);
int32_t tokenizer_find(const tokenizer *t, const char *text, size_t len); /* by its exact text */

bool tokenizer_adds_bos(const tokenizer *t);
bool tokenizer_adds_eos(const tokenizer *t);
bool tokenizer_adds_space(const tokenizer *t); /* before text at the beginning or after a special */

/* Ids may be any number here; those of no token are neither. */
bool tokenizer_is_eog(const tokenizer *t, int32_t id); /* generation ends: EOS, EOT, ... */
bool tokenizer_is_control(const tokenizer *t,
                          int32_t id); /* has a meaning of its own and is not text */
bool tokenizer_is_special(const tokenizer *t, int32_t id); /* control or user-defined */

/* The text a file gives for a token, e.g. "\xE2\x96\x81the", and the bytes the token stands for,
 * e.g. " the". Not terminated; valid until the tokenizer is closed; empty for ids of no token. */
struct gguf_string tokenizer_text(const tokenizer *t, int32_t id);
struct gguf_string tokenizer_piece(const tokenizer *t, int32_t id);

/* tokenizer.chat_template of the file; empty if it has none. */
struct gguf_string tokenizer_chat_template(const tokenizer *t);

/* A text that grows as decoders append to it; {0} is empty. data is not terminated. */
struct token_text {
    char *data;
    size_t len, room;
};

NODISCARD enum rc token_text_add(struct token_text *text, const char *s, size_t len, struct err *e);
void token_text_close(struct token_text *text);

/* Tokens to text, one token at a time. What comes out is well-formed UTF-8 at every moment. */
struct tokenizer_decoder {
    const tokenizer *tokenizer;
    struct utf8_stream stream;
    bool show_control; /* print "<s>" and its like; otherwise they are silent */
    bool strip_space;  /* drop the space that encoding put before the first word */
};

/* whole: the tokens are a text from its beginning, so that the space which SentencePiece adds there
 * is dropped; false for what continues another text, as a generated answer does. */
void tokenizer_decoder_init(struct tokenizer_decoder *d, const tokenizer *t, bool whole,
                            bool show_control);

/* Appends what id adds to the text; nothing while a character is incomplete. Ids of no token are
 * RC_RANGE. On failure the decoder and *out are as they were. */
NODISCARD enum rc tokenizer_decoder_push(struct tokenizer_decoder *d, int32_t id,
                                         struct token_text *out, struct err *e);

/* The end: appends U+FFFD if a character stayed incomplete. The decoder can be used again. */
NODISCARD enum rc tokenizer_decoder_flush(struct tokenizer_decoder *d, struct token_text *out,
                                          struct err *e);

#endif
