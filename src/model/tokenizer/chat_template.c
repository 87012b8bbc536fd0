#include "model/tokenizer/chat_template.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

enum {
    CHAT_TRIM = 1,
    CHAT_INSIDE = 2,
};

struct chat_form {
    const char *name;
    unsigned flags;
    struct {
        const char *before, *after;
    } turn[3]; /* enum chat_role */
    const char *answer;
};

static const struct chat_form chat_forms[CHAT_TEMPLATE_COUNT] = {
#define CHAT_TEMPLATE(id, name, flags, s0, s1, u0, u1, a0, a1, answer)                             \
    [CHAT_##id] = { name, flags, { { s0, s1 }, { u0, u1 }, { a0, a1 } }, answer },
#include "model/tokenizer/chat_template.def"
};

static const struct chat_sign {
    enum chat_template form;
    const char *text[2], *token[2];
} chat_signs[] = {
#define CHAT_SIGN(id, text0, text1, token0, token1)                                                \
    { CHAT_##id, { text0, text1 }, { token0, token1 } },
#include "model/tokenizer/chat_template.def"
};

static bool has_token(const tokenizer *t, const char *text) {
    int32_t id = t ? tokenizer_find(t, text, strlen(text)) : TOKENIZER_NO_TOKEN;
    return tokenizer_is_special(t, id);
}

/* Mistral's templates differ in which parts of the markup are tokens: the vocabulary decides. */
static enum chat_template mistral_of(const tokenizer *t) {
    if (!has_token(t, "[INST]"))
        return CHAT_MISTRAL_V1;
    bool bpe = tokenizer_kind_of(t) == TOKENIZER_BPE;
    if (has_token(t, "[SYSTEM_PROMPT]"))
        return bpe ? CHAT_MISTRAL_V7_TEKKEN : CHAT_MISTRAL_V7;
    return bpe ? CHAT_MISTRAL_V3_TEKKEN : CHAT_MISTRAL_V3;
}

enum rc chat_template_find(enum chat_template *out, const char *name, const tokenizer *t,
                           struct err *e) {
    if (strcmp(name, "mistral") == 0) {
        *out = mistral_of(t);
        return RC_OK;
    }
    char known[256] = "mistral";
    for (size_t i = 0; i < CHAT_TEMPLATE_COUNT; i++) {
        if (strcmp(name, chat_forms[i].name) == 0) {
            *out = (enum chat_template)i;
            return RC_OK;
        }
        strncat(known, ", ", sizeof known - strlen(known) - 1);
        strncat(known, chat_forms[i].name, sizeof known - strlen(known) - 1);
    }
    return err_set(e, RC_USAGE, "there is no chat template '%.64s'; greta knows %s", name, known);
}

static bool text_has(struct gguf_string text, const char *what) {
    return memmem(text.data, text.len, what, strlen(what)) != NULL;
}

/* Whether the model shows both signs of a row. If its file has no template, the vocabulary decides.
 */
static bool shows(const tokenizer *t, struct gguf_string text, const struct chat_sign *s) {
    const char *const *sign = text.len ? s->text : s->token;
    for (int i = 0; i < 2; i++)
        if (*sign[i] && !(text.len ? text_has(text, sign[i]) : has_token(t, sign[i])))
            return false;
    return *sign[0] != '\0';
}

enum rc chat_template_detect(enum chat_template *out, const tokenizer *t, struct err *e) {
    struct gguf_string text = tokenizer_chat_template(t);
    for (size_t i = 0; i < sizeof chat_signs / sizeof *chat_signs; i++)
        if (shows(t, text, &chat_signs[i])) {
            enum chat_template form = chat_signs[i].form;
            *out = form == CHAT_MISTRAL_V1 ? mistral_of(t) : form;
            return RC_OK;
        }
    if (!text.len)
        return err_set(e, RC_UNSUPPORTED,
                       "the model has no tokenizer.chat_template and no token that tells which "
                       "one it was trained with; name one");
    return err_set(e, RC_UNSUPPORTED,
                   "tokenizer.chat_template is none that greta knows; it begins '%.*s'. "
                   "Name one that comes close",
                   (int)(text.len < 80 ? text.len : 80), text.data);
}

static enum rc pieces_add(struct chat_pieces *p, enum chat_piece_kind kind, const char *text,
                          size_t len, struct err *e) {
    struct chat_piece *items = grow_array(p->items, &p->room, p->count, sizeof *items);
    if (!items)
        return err_set(e, RC_MEMORY, "no memory for a conversation");
    p->items = items;
    p->items[p->count++] = (struct chat_piece){ kind, text, len };
    return RC_OK;
}

void chat_pieces_close(struct chat_pieces *pieces) {
    free(pieces->items);
    *pieces = (struct chat_pieces){ 0 };
}

/* Adds a string of chat_template.def: text and {tokens}. */
static enum rc add_markup(struct chat_pieces *p, const char *markup, struct err *e) {
    enum rc rc = RC_OK;
    while (*markup && rc == RC_OK) {
        if (*markup != '{') {
            size_t len = strcspn(markup, "{");
            rc = pieces_add(p, CHAT_PIECE_MARKUP, markup, len, e);
            markup += len;
            continue;
        }
        size_t len = strcspn(++markup, "}");
        if (len == 3 && memcmp(markup, "bos", 3) == 0)
            rc = pieces_add(p, CHAT_PIECE_BOS, markup, 0, e);
        else if (len == 3 && memcmp(markup, "eos", 3) == 0)
            rc = pieces_add(p, CHAT_PIECE_EOS, markup, 0, e);
        else
            rc = pieces_add(p, CHAT_PIECE_TOKEN, markup, len, e);
        markup += len + 1;
    }
    return rc;
}

static bool is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static enum rc add_content(struct chat_pieces *p, const struct chat_form *form,
                           const struct chat_turn *turn, struct err *e) {
    const char *text = turn->text;
    size_t len = turn->len;
    if (form->flags & CHAT_TRIM) {
        for (; len > 0 && is_blank(text[0]); len--)
            text++;
        while (len > 0 && is_blank(text[len - 1]))
            len--;
    }
    return len ? pieces_add(p, CHAT_PIECE_CONTENT, text, len, e) : RC_OK;
}

/* What stands before the text of turn i. */
static enum rc add_opening(struct chat_pieces *p, const struct chat_form *form,
                           const struct chat_turn *turns, size_t i, struct err *e) {
    enum chat_role role = turns[i].role;
    bool inside = form->flags & CHAT_INSIDE;
    enum rc rc = RC_OK;
    /* A system turn inside a user turn opens that one, which then is open already. */
    if (inside && role == CHAT_SYSTEM && (i == 0 || turns[i - 1].role != CHAT_SYSTEM))
        rc = add_markup(p, form->turn[CHAT_USER].before, e);
    if (rc == RC_OK && !(inside && role == CHAT_USER && i > 0 && turns[i - 1].role == CHAT_SYSTEM))
        rc = add_markup(p, form->turn[role].before, e);
    return rc;
}

enum rc chat_template_render(enum chat_template which, const struct chat_turn *turns, size_t count,
                             size_t done, bool answer, struct chat_pieces *out, struct err *e) {
    const struct chat_form *form = &chat_forms[which];
    enum rc rc = RC_OK;
    if (done > 0)
        rc = add_markup(out, form->turn[turns[done - 1].role].after, e);
    for (size_t i = done; i < count && rc == RC_OK; i++) {
        if (form->flags & CHAT_INSIDE && turns[i].role == CHAT_SYSTEM &&
            (i + 1 == count || turns[i + 1].role == CHAT_ASSISTANT))
            return err_set(e, RC_USAGE,
                           "the template '%s' puts a system turn inside the user turn that "
                           "follows it, but none follows turn %zu",
                           form->name, i);
        if ((rc = add_opening(out, form, turns, i, e)) != RC_OK ||
            (rc = add_content(out, form, &turns[i], e)) != RC_OK)
            break;
        rc = add_markup(out, form->turn[turns[i].role].after, e);
    }
    return rc == RC_OK && answer ? add_markup(out, form->answer, e) : rc;
}

/* Text between two tokens, collected to be encoded as a whole. */
struct chat_run {
    struct token_text text;
    const tokenizer *t;
    struct token_list *list;
    bool continues; /* the text before is in the model's context, not in the list */
};

static enum rc run_flush(struct chat_run *run, struct err *e) {
    size_t len = run->text.len;
    unsigned flags = TOKENIZER_UNTRUSTED | (run->continues ? TOKENIZER_CONTINUES : 0);
    run->text.len = 0;
    return len ? tokenizer_encode(run->t, run->text.data, len, flags, run->list, e) : RC_OK;
}

static enum rc run_add_token(struct chat_run *run, int32_t id, struct err *e) {
    enum rc rc = run_flush(run, e);
    run->continues = false;
    return rc == RC_OK && id >= 0 ? token_list_add(run->list, id, e) : rc;
}

static enum rc run_add(struct chat_run *run, const struct chat_piece *p, bool first,
                       struct err *e) {
    const char *text = p->text;
    size_t len = p->len;
    switch (p->kind) {
    case CHAT_PIECE_BOS: /* the first BOS is added by the tokenizer, not by the template */
        return first ? RC_OK : run_add_token(run, tokenizer_bos(run->t), e);
    case CHAT_PIECE_EOS:
        return run_add_token(run, tokenizer_eos(run->t), e);
    case CHAT_PIECE_TOKEN: {
        int32_t id = tokenizer_find(run->t, text, len);
        if (tokenizer_is_special(run->t, id))
            return run_add_token(run, id, e);
        break;
    }
    case CHAT_PIECE_MARKUP:
        if (run->text.len == 0 && !run->continues && text[0] == ' ' &&
            tokenizer_adds_space(run->t)) {
            text++;
            len--;
        }
        break;
    case CHAT_PIECE_CONTENT:
        break;
    }
    return token_text_add(&run->text, text, len, e);
}

enum rc chat_template_encode(enum chat_template which, const tokenizer *t,
                             const struct chat_turn *turns, size_t count, size_t done, bool answer,
                             struct token_list *list, struct err *e) {
    struct chat_pieces pieces = { 0 };
    struct chat_run run = { .t = t, .list = list, .continues = done > 0 };
    const size_t before = list->count;
    enum rc rc = chat_template_render(which, turns, count, done, answer, &pieces, e);
    if (rc == RC_OK && done == 0 && tokenizer_adds_bos(t))
        rc = token_list_add(list, tokenizer_bos(t), e);
    for (size_t i = 0; i < pieces.count && rc == RC_OK; i++)
        rc = run_add(&run, &pieces.items[i], done == 0 && i == 0, e);
    if (rc == RC_OK)
        rc = run_flush(&run, e);
    if (rc != RC_OK)
        list->count = before;
    token_text_close(&run.text);
    chat_pieces_close(&pieces);
    return rc;
}
