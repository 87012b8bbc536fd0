/* chat.c - a conversation: turns of the user and of the model, in the markup it was trained with.
 * What begins with a slash is for greta_infer itself (chat.def). */
#include <stdlib.h>
#include <string.h>

#include "tools/common/program.h"
#include "tools/infer/app.h"
#include "tools/infer/conversation.h"
#include "tools/infer/line.h"

struct chat {
    struct app *a;
    enum chat_template template;
    struct conversation talk;
    struct engine_result *sum;
    bool interactive;
    bool quit;
};

#define note(...) fprintf(stderr, "greta_infer: " __VA_ARGS__)

/* ---- answers --------------------------------------------------------------------------------- */

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

/* Refuses a message that does not fit even without the turns before it, which are kept then. */
static enum rc check_message(const struct app *a, const struct chat *c, struct err *e) {
    const struct conversation *t = &c->talk;
    const struct chat_turn *system = conversation_system(t);
    struct chat_turn least[2];
    struct token_list tokens = { 0 };
    size_t count = 0;
    if (system)
        least[count++] = *system;
    least[count++] = t->turns[t->count - 1];
    enum rc rc = chat_template_encode(c->template, engine_tokenizer(a->engine), least, count, 0,
                                      true, &tokens, e);
    if (!rc && tokens.count > engine_context(a->engine))
        rc = err_set(e, RC_RANGE,
                     "%s %zu tokens and the context has room for %u: shorten %s or give a "
                     "larger --ctx",
                     system ? "the system message and this message have" : "the message has",
                     tokens.count, engine_context(a->engine), system ? "them" : "it");
    token_list_close(&tokens);
    return rc;
}

/* The tokens that the model has not seen, of as many turns as the context has room for. */
static enum rc encode(const struct app *a, struct chat *c, struct token_list *tokens,
                      struct err *e) {
    struct conversation *t = &c->talk;
    size_t dropped = 0;
    for (;;) {
        tokens->count = 0;
        enum rc rc = chat_template_encode(c->template, engine_tokenizer(a->engine), t->turns,
                                          t->count, t->done, true, tokens, e);
        size_t taken = tokens->count + (t->done ? engine_position(a->engine) : 0);
        size_t more = 0;
        bool full = !rc && taken + answer_room(a) > engine_context(a->engine);
        if (full && !dropped)
            rc = check_message(a, c, e);
        if (full && !rc)
            more = conversation_drop_oldest(t);
        dropped += more;
        if (rc || !more) {
            if (dropped)
                note("note: the context of %u positions is full: the oldest %zu turns of the "
                     "conversation were dropped\n",
                     engine_context(a->engine), dropped);
            return rc;
        }
    }
}

/* Why an answer is not complete, if it is not. */
static void explain_end(const struct chat *c, const struct engine_result *one) {
    const struct app *a = c->a;
    if (!c->interactive || one->end != ENGINE_LENGTH || a->options.max_tokens.given)
        return;
    if (engine_position(a->engine) >= engine_context(a->engine))
        note("note: the answer ends here: the context of %u positions is full\n",
             engine_context(a->engine));
    else
        note("note: the answer ends here: it has %d tokens (--max-tokens)\n", TOKENS_DEFAULT_CHAT);
}

/* Answers the last message. Where it cannot be answered, or Ctrl-C came before the first word, the
 * conversation is without it afterwards. */
static enum rc answer(struct chat *c, struct err *e) {
    struct app *a = c->a;
    struct conversation *t = &c->talk;
    struct token_list tokens = { 0 };
    struct engine_result one = { 0 };
    enum rc rc = encode(a, c, &tokens, e);
    a->answer.len = 0;
    rc = rc ? rc : app_generate(a, &tokens, t->done > 0, &one, e);
    app_print(a, "\n", 1);
    if (!rc)
        explain_end(c, &one);
    add_result(c->sum, &one);
    token_list_close(&tokens);
    bool nothing = rc || (one.end == ENGINE_INTERRUPTED && !a->answer.len);
    if (!nothing) {
        rc = conversation_add(t, CHAT_ASSISTANT, a->answer.data, a->answer.len, e);
        t->done = t->count;
    } else if (c->interactive) {
        (void)conversation_drop_last(t, CHAT_USER);
    }
    return rc;
}

/* At a terminal a message that does not fit is no reason to end, nor is Ctrl-C. */
static enum rc answer_and_go_on(struct chat *c, struct err *e) {
    enum rc rc = answer(c, e);
    if (program_take_ctrl_c() && !c->a->answer.len && !rc)
        note("note: interrupted before the first word; the message was not answered\n");
    if (rc != RC_RANGE)
        return rc;
    note("%s\n", e->msg);
    return RC_OK;
}

/* ---- commands -------------------------------------------------------------------------------- */

enum command {
#define CHAT_COMMAND(name, argument, does) COMMAND_##name,
#include "tools/infer/chat.def"
    COMMAND_COUNT,
};

static const struct {
    const char *name, *argument, *does;
} commands[] = {
#define CHAT_COMMAND(name, argument, does) { #name, argument, does },
#include "tools/infer/chat.def"
};

static void print_commands(void) {
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        int used = fprintf(stderr, "  /%s %s", commands[i].name, commands[i].argument);
        fprintf(stderr, "%*s%s\n", 20 - used, "", commands[i].does);
    }
    fputs("Ctrl-C ends an answer. A message that begins with a slash is written with two.\n",
          stderr);
}

/* what: "saved to", "loaded from" */
static void say_messages(const struct chat *c, enum rc rc, const struct err *e, const char *what,
                         const char *path) {
    if (rc)
        fprintf(stderr, "%s\n", e->msg);
    else
        fprintf(stderr, "%zu message%s %s %s\n", c->talk.count, c->talk.count == 1 ? "" : "s", what,
                path);
}

static enum rc change_system(struct chat *c, const char *text, size_t len, struct err *e) {
    const struct chat_turn *system = conversation_system(&c->talk);
    if (len)
        return conversation_set_system(&c->talk, text, text[0] == '-' && len == 1 ? 0 : len, e);
    if (system)
        fprintf(stderr, "%.*s\n", (int)system->len, system->text);
    else
        fputs("There is no system message.\n", stderr);
    return RC_OK;
}

/* The next seed: with the same one the answer would be the same. */
static enum rc regenerate(struct chat *c, struct err *e) {
    struct conversation *t = &c->talk;
    (void)conversation_drop_last(t, CHAT_ASSISTANT);
    if (!t->count || t->turns[t->count - 1].role != CHAT_USER) {
        fputs("There is no message to answer.\n", stderr);
        return RC_OK;
    }
    t->done = 0;
    c->a->seed++;
    return answer_and_go_on(c, e);
}

static enum rc run_command(struct chat *c, enum command which, const char *argument,
                           struct err *e) {
    size_t len = strlen(argument);
    struct err mine = { 0 };
    enum rc rc = RC_OK;
    if (!len && commands[which].argument[0] && commands[which].argument[0] != '[') {
        fprintf(stderr, "/%s %s: the argument is missing\n", commands[which].name,
                commands[which].argument);
        return RC_OK;
    }
    switch (which) {
    case COMMAND_help:
        print_commands();
        break;
    case COMMAND_save:
        rc = conversation_save(&c->talk, argument, &mine);
        say_messages(c, rc, &mine, "saved to", argument);
        break;
    case COMMAND_load:
        rc = conversation_load(&c->talk, argument, &mine);
        say_messages(c, rc, &mine, "loaded from", argument);
        break;
    case COMMAND_system:
        return change_system(c, argument, len, e);
    case COMMAND_regenerate:
        return regenerate(c, e);
    default:
        c->quit = true;
    }
    return RC_OK;
}

/* A command by its name, or by the letters that only one begins with. */
static enum rc take_command(struct chat *c, const char *line, struct err *e) {
    size_t len = strcspn(line, " \t"), found = COMMAND_COUNT, several = 0;
    for (size_t i = 0; i < COMMAND_COUNT && len; i++)
        if (!strncmp(commands[i].name, line, len)) {
            found = i;
            several++;
        }
    if (several != 1) {
        fprintf(stderr, "/%.*s is %s; /help lists the commands.\n", (int)len, line,
                several ? "ambiguous" : "not a command");
        return RC_OK;
    }
    const char *argument = line + len + strspn(line + len, " \t");
    return run_command(c, (enum command)found, argument, e);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum rc take_line(struct chat *c, const char *line, size_t len, struct err *e) {
    bool slash = line[0] == '/';
    if (!len || (slash && line[1] != '/'))
        return len ? take_command(c, line + 1, e) : RC_OK;
    enum rc rc = conversation_add(&c->talk, CHAT_USER, line + slash, len - slash, e);
    return rc ? rc : answer_and_go_on(c, e);
}

static enum rc converse(struct chat *c, struct err *e) {
    line_reader *reader = NULL;
    const char *line;
    size_t len;
    enum rc rc = line_open(&reader, "> ", e);
    if (!rc && !c->a->options.quiet)
        fputs("/help lists the commands; Ctrl-D ends the conversation.\n", stderr);
    while (!rc && !c->quit && !app_interrupted(c->a)) {
        enum line_end end = line_read(reader, &line, &len);
        if (end == LINE_CLOSED)
            break;
        rc = end == LINE_READ ? take_line(c, line, len, e) : RC_OK;
    }
    line_close(&reader);
    return rc;
}

enum rc app_run_chat(struct app *a, struct engine_result *sum, struct err *e) {
    const struct options *o = &a->options;
    struct chat c = { .a = a, .sum = sum, .interactive = options_are_interactive(o) };
    const tokenizer *t = engine_tokenizer(a->engine);
    enum rc rc = o->chat_template ? chat_template_find(&c.template, o->chat_template, t, e)
                                  : chat_template_detect(&c.template, t, e);
    if (rc == RC_UNSUPPORTED && !o->model)
        rc = err_set(e, RC_UNSUPPORTED,
                     "the demo model continues stories and was not trained to converse: name a "
                     "model with --model, or leave out --chat");
    else if (rc == RC_UNSUPPORTED)
        rc = err_prefix(e, "--chat needs --chat-template NAME");
    if (c.interactive)
        program_expect_ctrl_c();
    if (!rc && o->system)
        rc = conversation_set_system(&c.talk, o->system, strlen(o->system), e);
    if (!rc && a->prompted) {
        rc = conversation_add(&c.talk, CHAT_USER, a->prompt.data, a->prompt.len, e);
        rc = rc ? rc : c.interactive ? answer_and_go_on(&c, e) : answer(&c, e);
    }
    if (!rc && c.interactive)
        rc = converse(&c, e);
    conversation_close(&c.talk);
    return rc;
}
