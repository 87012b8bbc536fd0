/* tokenizer_pre.h - cuts a text into the words that byte-level BPE works on (tokenizer_pre.def).
 *
 * A tokenizer_pre is immutable once open: any number of threads may split with it. */
#ifndef MODEL_TOKENIZER_PRE_H
#define MODEL_TOKENIZER_PRE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
    PRE_IGNORE_MERGES = 1,
    PRE_ADD_BOS = 2,
};

typedef struct tokenizer_pre tokenizer_pre;

/* Finds and compiles the expressions for a name of tokenizer.ggml.pre. On failure *out is
 * untouched: RC_UNSUPPORTED for a name that greta does not know, with those it knows in the
 * message. */
NODISCARD enum rc tokenizer_pre_open(tokenizer_pre **out, const char *name, size_t len,
                                     struct err *e);
void tokenizer_pre_close(tokenizer_pre **p);

unsigned tokenizer_pre_flags(const tokenizer_pre *p); /* PRE_IGNORE_MERGES, PRE_ADD_BOS */

/* Words of a text: word i is text[end[i - 1]] to text[end[i]], the first one from 0. */
struct tokenizer_words {
    const char *text; /* the text given, or a corrected copy of it */
    uint32_t *end;
    size_t count;
    char *copies; /* storage of the corrected text; NULL if it needed no correction */
};

/* Cuts text, whose bytes must stay until the words are closed. Bytes that are not UTF-8 become
 * U+FFFD each; overlong forms become the character they mean, surrogates stay. Every byte of
 * words->text is in exactly one word. On failure (RC_MEMORY) nothing needs closing. */
NODISCARD enum rc tokenizer_pre_split(const tokenizer_pre *p, const char *text, size_t len,
                                      struct tokenizer_words *words, struct err *e);
void tokenizer_words_close(struct tokenizer_words *words);

#endif
