/* chat.c - a conversation: turns of the user and of the model, in the markup it was trained with.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/tokenizer/chat_template.h"
#include "tools/infer/app.h"

struct conversation {
    enum chat_template template;
    struct chat_turn *turns;
    size_t count, room, done; /* done: turns that the model has seen */
};

static enum rc add_turn(struct conversation *c, enum chat_role role, const char *text, size_t len,
                        struct err *e) {
    if (c->count == c->room) {
        size_t room = c->room ? 2 * c->room : 8;
        struct chat_turn *turns = realloc(c->turns, room * sizeof *turns);
        if (!turns)
            return err_set(e, RC_MEMORY, "out of memory");
        c->turns = turns;
        c->room = room;
    }
    char *copy = malloc(len + 1);
    if (!copy)
        return err_set(e, RC_MEMORY, "out of memory");
    if (len)
        memcpy(copy, text, len);
    c->turns[c->count++] = (struct chat_turn){ role, copy, len };
    return RC_OK;
}

/* Adds a turn's figures to those of the run; its tokens are the whole conversation's. */
static void add_result(struct engine_result *sum, struct engine_result *one) {
    sum->generated += one->generated;
    sum->total_ms += one->total_ms;
    if (!sum->first_token_ms)
        sum->first_token_ms = one->first_token_ms;
    if (one->tokens_per_second > 0)
        sum->tokens_per_second = one->tokens_per_second;
    sum->end = one->end;
    token_list_close(&sum->tokens);
    sum->tokens = one->tokens;
}

/* Room that an answer should find: what was asked for, or a quarter of the context. */
static size_t answer_room(const struct app *a) {
    size_t quarter = engine_context(a->engine) / 4;
    const struct option_count *most = &a->options.max_tokens;
    return most->given && most->value < quarter ? (size_t)most->value : quarter;
}

/* Forgets the oldest turns after the system message, up to the next one of the user's; 0 if only
 * the last message is left. The model then reads the conversation again. */
static size_t drop_turns(struct conversation *c) {
    size_t from = c->turns[0].role == CHAT_SYSTEM, to = from + 1;
    while (to < c->count && c->turns[to].role != CHAT_USER)
        to++;
    if (to >= c->count)
        return 0;
    for (size_t i = from; i < to; i++)
        free((char *)(uintptr_t)c->turns[i].text);
    memmove(c->turns + from, c->turns + to, (c->count - to) * sizeof *c->turns);
    c->count -= to - from;
    c->done = 0;
    return to - from;
}

/* The tokens that the model has not seen, of as many turns as the context has room for. */
static enum rc encode(const struct app *a, struct conversation *c, struct token_list *tokens,
                      struct err *e) {
    size_t dropped = 0;
    for (;;) {
        tokens->count = 0;
        enum rc rc = chat_template_encode(c->template, engine_tokenizer(a->engine), c->turns,
                                          c->count, c->done, true, tokens, e);
        size_t taken = tokens->count + (c->done ? engine_position(a->engine) : 0);
        size_t more = 0;
        if (!rc && taken + answer_room(a) > engine_context(a->engine))
            more = drop_turns(c);
        dropped += more;
        if (rc || !more) {
            if (dropped)
                fprintf(stderr,
                        "greta_infer: note: the context of %u positions is full: the oldest %zu "
                        "turns of the conversation were dropped\n",
                        engine_context(a->engine), dropped);
            return rc;
        }
    }
}

static enum rc answer(struct app *a, struct conversation *c, struct engine_result *sum,
                      struct err *e) {
    struct token_list tokens = { 0 };
    struct engine_result one = { 0 };
    enum rc rc = encode(a, c, &tokens, e);
    a->answer.len = 0;
    rc = rc ? rc : app_generate(a, &tokens, c->done > 0, &one, e);
    app_print(a, "\n", 1);
    add_result(sum, &one);
    token_list_close(&tokens);
    rc = rc ? rc : add_turn(c, CHAT_ASSISTANT, a->answer.data, a->answer.len, e);
    c->done = c->count;
    return rc;
}

/* Reads a line of the user's; false at the end of input, or when a signal came. */
static bool read_line(struct app *a, char **line, size_t *room, size_t *len) {
    bool show = isatty(STDOUT_FILENO);
    if (show)
        app_print(a, "> ", 2);
    ssize_t n = getline(line, room, stdin);
    if (n < 0 && show)
        app_print(a, "\n", 1);
    while (n > 0 && ((*line)[n - 1] == '\n' || (*line)[n - 1] == '\r'))
        n--;
    *len = n > 0 ? (size_t)n : 0;
    return n >= 0;
}

static enum rc converse(struct app *a, struct conversation *c, struct engine_result *sum,
                        struct err *e) {
    char *line = NULL;
    size_t room = 0, len;
    enum rc rc = RC_OK;
    while (!rc && !app_interrupted(a) && read_line(a, &line, &room, &len)) {
        if (!len)
            continue;
        rc = add_turn(c, CHAT_USER, line, len, e);
        rc = rc ? rc : answer(a, c, sum, e);
    }
    free(line);
    return rc;
}

enum rc app_run_chat(struct app *a, struct engine_result *sum, struct err *e) {
    const struct options *o = &a->options;
    struct conversation c = { 0 };
    const tokenizer *t = engine_tokenizer(a->engine);
    enum rc rc = o->chat_template ? chat_template_find(&c.template, o->chat_template, t, e)
                                  : chat_template_detect(&c.template, t, e);
    if (rc == RC_UNSUPPORTED)
        rc = err_prefix(e, "--chat needs --chat-template NAME");
    if (!rc && o->system)
        rc = add_turn(&c, CHAT_SYSTEM, o->system, strlen(o->system), e);
    if (!rc && a->prompted) {
        rc = add_turn(&c, CHAT_USER, a->prompt.data, a->prompt.len, e);
        rc = rc ? rc : answer(a, &c, sum, e);
    }
    if (!rc && options_are_interactive(o))
        rc = converse(a, &c, sum, e);
    for (size_t i = 0; i < c.count; i++)
        free((char *)(uintptr_t)c.turns[i].text);
    free(c.turns);
    return rc;
}
