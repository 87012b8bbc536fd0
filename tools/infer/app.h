/* app.h - the state of a greta_infer run, shared by its parts. One thread. */
#ifndef TOOLS_INFER_APP_H
#define TOOLS_INFER_APP_H

#include "infer/engine.h"
#include "tools/infer/dump.h"
#include "tools/infer/options.h"
#include "tools/infer/prompts.h"

struct app {
    struct options options;
    engine *engine;
    struct dump dump;
    uint32_t sequences;
    uint64_t seed;
    bool terminal;            /* standard error is one: show progress */
    int output_errno;         /* why standard output cannot be written; 0: it can */
    struct token_text prompt; /* from --prompt, --prompt-file or standard input */
    bool prompted;
    bool echo;                /* it is still to be printed */
    bool reading;             /* a line on the terminal says how much of it has been read */
    struct prompts prompts;   /* those of --prompts instead */
    struct token_text *texts; /* [sequences] texts of those that are not streamed */
    struct token_text answer; /* chat: what the model said last */
};

/* True once Ctrl-C or SIGTERM came, or standard output is gone. */
bool app_interrupted(const struct app *a);

/* Writes to standard output now; remembers the first failure. */
void app_print(struct app *a, const char *text, size_t len);

/* Reads what --prompt or --prompt-file say, else standard input unless it is a terminal, else the
 * demo model's own prompt. RC_USAGE if there is none for another model. */
NODISCARD enum rc app_read_prompt(struct app *a, struct err *e);

/* Continues the tokens; the text is printed or kept. The caller frees out->tokens. */
NODISCARD enum rc app_generate(struct app *a, const struct token_list *tokens, bool append,
                               struct engine_result *out, struct err *e);

/* The two kinds of run: a text with one or several continuations; a conversation. */
NODISCARD enum rc app_run_once(struct app *a, struct engine_result *result, struct err *e);
NODISCARD enum rc app_run_chat(struct app *a, struct engine_result *sum, struct err *e);

/* Compares the device's kernels with the CPU and prints what it finds. RC_DEVICE if they differ. */
NODISCARD enum rc app_self_test(const struct app *a, bool *opened, struct err *e);

#endif
