/* generate.c - prompt in, text out. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/infer/app.h"

enum { PROMPT_MAX = 64 << 20 };

/* ---- the prompt ----------------------------------------------------------------------------- */

static enum rc read_all(const char *path, struct token_text *out, struct err *e) {
    FILE *in = strcmp(path, "-") ? fopen(path, "rb") : stdin;
    const char *name = in == stdin ? "standard input" : path;
    char part[65536];
    size_t n;
    enum rc rc = in ? RC_OK : err_set(e, RC_IO, "%s: cannot be read: %s", path, strerror(errno));
    while (!rc && (n = fread(part, 1, sizeof part, in)) > 0) {
        rc = token_text_add(out, part, n, e);
        if (!rc && out->len > PROMPT_MAX)
            rc = err_set(e, RC_RANGE, "%s: a prompt of more than %d MiB", name, PROMPT_MAX >> 20);
    }
    if (!rc && ferror(in))
        rc = err_set(e, RC_IO, "%s: cannot be read: %s", name, strerror(errno));
    if (in && in != stdin)
        fclose(in);
    return rc;
}

/* The newline that ends the file's last line is not part of the prompt. */
static enum rc read_file(const char *path, struct token_text *out, struct err *e) {
    enum rc rc = read_all(path, out, e);
    if (!rc && out->len && out->data[out->len - 1] == '\n')
        out->len -= out->len > 1 && out->data[out->len - 2] == '\r' ? 2 : 1;
    return rc;
}

/* Whether a prompt that no option gives may come from standard input. The demo model has a prompt
 * of its own, and does not wait for a pipe into which nobody writes. */
static bool has_input(bool demo) {
    enum { PATIENCE_MS = 1000 };
    struct stat s;
    struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
    int flags = fcntl(STDIN_FILENO, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_WRONLY || isatty(STDIN_FILENO) ||
        fstat(STDIN_FILENO, &s) != 0)
        return false;
    return !demo || S_ISREG(s.st_mode) || poll(&input, 1, PATIENCE_MS) > 0;
}

enum rc app_read_prompt(struct app *a, struct err *e) {
    const struct options *o = &a->options;
    bool demo = !o->model && !o->chat;
    a->prompted = true;
    if (o->prompt)
        return token_text_add(&a->prompt, o->prompt, strlen(o->prompt), e);
    if (o->prompt_file)
        return read_file(o->prompt_file, &a->prompt, e);
    enum rc rc = has_input(demo) ? read_file("-", &a->prompt, e) : RC_OK;
    if (rc || a->prompt.len)
        return rc;
    if (demo)
        return token_text_add(&a->prompt, "Once upon a time", strlen("Once upon a time"), e);
    return err_set(
        e, RC_USAGE,
        "no prompt: give --prompt TEXT, --prompt-file FILE, or a text on standard input");
}

/* ---- generating ----------------------------------------------------------------------------- */

/* Bypasses stdio, which reports an error if Ctrl-C comes while a slow terminal accepts no more. */
void app_print(struct app *a, const char *text, size_t len) {
    bool failed = fflush(stdout) != 0;
    while (len && !failed) {
        ssize_t n = write(STDOUT_FILENO, text, len);
        failed = n < 0 && errno != EINTR;
        if (n > 0) {
            text += n;
            len -= (size_t)n;
        }
    }
    if (failed && !a->output_errno)
        a->output_errno = errno ? errno : EIO;
}

/* The prompt is printed before its continuation, once it has been read. */
static void echo_prompt(struct app *a) {
    if (a->echo)
        app_print(a, a->prompt.data, a->prompt.len);
    a->echo = false;
}

static void clear_progress(struct app *a) {
    if (a->reading)
        fputs("\r\033[K", stderr);
    a->reading = false;
}

static void on_progress(uint32_t sequence, uint32_t done, uint32_t total, void *user) {
    enum { LONG = 64 }; /* fewer tokens show no progress */
    struct app *a = user;
    if (!a->terminal || sequence || total - done < LONG) {
        clear_progress(a);
        return;
    }
    fprintf(stderr, "\rReading the prompt: %u of %u tokens\033[K", done, total);
    fflush(stderr);
    a->reading = true;
}

static void on_text(uint32_t sequence, const char *text, size_t len, void *user) {
    struct app *a = user;
    clear_progress(a);
    echo_prompt(a);
    if (a->sequences == 1)
        app_print(a, text, len);
    struct token_text *keep = a->options.chat    ? &a->answer
                              : a->sequences > 1 ? &a->texts[sequence]
                                                 : NULL;
    enum rc ignored = keep ? token_text_add(keep, text, len, NULL) : RC_OK;
    (void)ignored; /* without memory the text is shorter; the run goes on */
}

static enum rc on_logits(uint32_t position, int32_t token, const float *logits, void *user,
                         struct err *e) {
    struct app *a = user;
    return dump_row(&a->dump, position, token, logits, e);
}

static bool is_interrupted(void *user) {
    return app_interrupted(user);
}

/* As many as were asked for; in a conversation, or without a number, at most what there is room
 * for. */
static uint32_t token_limit(const struct app *a, const struct token_list *tokens, bool append) {
    const struct options *o = &a->options;
    if (o->max_tokens.given && !o->chat)
        return (uint32_t)o->max_tokens.value;
    size_t taken = tokens->count + (append ? engine_position(a->engine) : 0);
    size_t room = engine_context(a->engine) > taken ? engine_context(a->engine) - taken : 1;
    size_t most = o->max_tokens.given ? (size_t)o->max_tokens.value
                  : o->chat           ? TOKENS_DEFAULT_CHAT
                                      : TOKENS_DEFAULT;
    return (uint32_t)(room < most ? room : most);
}

static struct engine_request request_of(struct app *a, const struct token_list *tokens,
                                        bool append) {
    const struct options *o = &a->options;
    return (struct engine_request){
        .prompt = tokens->ids,
        .prompt_count = tokens->count,
        .append = append,
        .max_tokens = token_limit(a, tokens, append),
        .sampling = options_sampling(o, a->seed),
        .stops = o->stop.items,
        .stop_count = o->stop.count,
        .ignore_end = o->ignore_eos,
        .text = on_text,
        .logits = a->dump.open ? on_logits : NULL,
        .interrupted = is_interrupted,
        .progress = on_progress,
        .user = a,
    };
}

enum rc app_generate(struct app *a, const struct token_list *tokens, bool append,
                     struct engine_result *out, struct err *e) {
    struct engine_request r = request_of(a, tokens, append);
    enum rc rc = engine_generate(a->engine, &r, out, e);
    clear_progress(a);
    echo_prompt(a);
    return rc;
}

/* ---- one text ------------------------------------------------------------------------------- */

static void print_texts(struct app *a) {
    char title[32];
    for (uint32_t i = 0; i < a->sequences; i++) {
        snprintf(title, sizeof title, "--- %u\n", i);
        app_print(a, title, strlen(title));
        if (!a->options.quiet)
            app_print(a, a->prompt.data, a->prompt.len);
        app_print(a, a->texts[i].data, a->texts[i].len);
        app_print(a, "\n", 1);
    }
}

enum rc app_run_once(struct app *a, struct engine_result *result, struct err *e) {
    struct token_list tokens = { 0 };
    enum rc rc = engine_encode(a->engine, a->prompt.len ? a->prompt.data : "", a->prompt.len,
                               a->options.special, &tokens, e);
    if (!rc) {
        struct engine_request r = request_of(a, &tokens, false);
        rc = engine_check(a->engine, &r, e);
        rc = rc ? rc : engine_check_injections(a->engine, &r, e);
    }
    if (!rc) {
        a->echo = a->sequences == 1 && !a->options.quiet;
        rc = app_generate(a, &tokens, false, result, e);
        if (a->sequences == 1)
            app_print(a, "\n", 1);
        else
            print_texts(a); /* also what there is of them after an error */
    }
    token_list_close(&tokens);
    return rc;
}
