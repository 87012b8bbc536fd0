/* chat_template.h - conversations as the text and tokens that a model was trained on.
 *
 * A template is markup around the turns of a conversation. Markup becomes control tokens; the text
 * of the turns never does, whatever it contains. Templates are data without state: everything here
 * is thread-safe. */
#ifndef MODEL_CHAT_TEMPLATE_H
#define MODEL_CHAT_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "model/tokenizer/tokenizer.h"

enum chat_template {
#define CHAT_TEMPLATE(id, ...) CHAT_##id,
#include "model/tokenizer/chat_template.def"
    CHAT_TEMPLATE_COUNT,
};

enum chat_role { CHAT_SYSTEM, CHAT_USER, CHAT_ASSISTANT };

/* Borrowed: not terminated, any content. */
struct chat_turn {
    enum chat_role role;
    const char *text;
    size_t len;
};

/* The template of that name. "mistral" is the newest that t's vocabulary supports, or v1 if t is
 * NULL. RC_USAGE, with the list of names, if there is none; *out is then untouched. */
NODISCARD enum rc chat_template_find(enum chat_template *out, const char *name, const tokenizer *t,
                                     struct err *e);

/* The template that fits t: by its tokenizer.chat_template, or, if the file has none, by the tokens
 * it has. RC_UNSUPPORTED if neither is known; *out is then untouched. */
NODISCARD enum rc chat_template_detect(enum chat_template *out, const tokenizer *t, struct err *e);

enum chat_piece_kind {
    CHAT_PIECE_MARKUP,  /* text of the template */
    CHAT_PIECE_CONTENT, /* what somebody said */
    CHAT_PIECE_TOKEN,   /* the token of that text, if the vocabulary has it */
    CHAT_PIECE_BOS,
    CHAT_PIECE_EOS,
};

struct chat_piece {
    enum chat_piece_kind kind;
    const char *text; /* in the turns or in the template; empty for BOS and EOS */
    size_t len;
};

struct chat_pieces {
    struct chat_piece *items;
    size_t count, room;
}; /* {0} is empty */

/* Renders turns, all of which must outlive *out. `done` of them are in the model's context already,
 * the last one up to and without what follows its text (an answer that was just generated, without
 * the token that ended it); 0 for a fresh context. answer: end with what makes the model answer.
 * Appends to *out. RC_USAGE for a system turn that has no user turn after it where the template
 * needs one. */
NODISCARD enum rc chat_template_render(enum chat_template which, const struct chat_turn *turns,
                                       size_t count, size_t done, bool answer,
                                       struct chat_pieces *out, struct err *e);
void chat_pieces_close(struct chat_pieces *pieces);

/* The same as tokens, appended to *list, with BOS before the first turn where the model wants it.
 * On failure *list is as it was. */
NODISCARD enum rc chat_template_encode(enum chat_template which, const tokenizer *t,
                                       const struct chat_turn *turns, size_t count, size_t done,
                                       bool answer, struct token_list *list, struct err *e);

#endif
