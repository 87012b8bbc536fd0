/* greta_infer - continues a text with a model. The options are in tools/infer/options.def. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <gcore/audit.h>

#include "base/env.h"
#include "greta_build.h"
#include "infer/dump.h"
#include "infer/engine.h"
#include "infer/options.h"
#include "model/chat_template.h"

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_WRONG = 2, EXIT_REFUSED = 3 };
enum { PROMPT_MAX = 64 << 20, BATCH_MAX = 256 };

static volatile sig_atomic_t interrupts;

static void on_interrupt(int signal) {
    if (++interrupts > 1) { /* the second time is meant */
        static const struct sigaction plain = { .sa_handler = SIG_DFL };
        sigaction(signal, &plain, NULL);
        raise(signal);
    }
}

struct app {
    struct options options;
    engine *engine;
    struct dump dump;
    bool terminal;            /* standard error is one: show progress */
    struct token_text *texts; /* of sequences that are not streamed, [batch_size] */
    uint32_t sequences;
    struct token_text answer; /* chat: what the model said last */
};

static int exit_status(enum rc rc) {
    return rc == RC_OK        ? EXIT_DONE
           : rc == RC_USAGE   ? EXIT_WRONG
           : rc == RC_REFUSED ? EXIT_REFUSED
                              : EXIT_FAILED;
}

/* ---- loading -------------------------------------------------------------------------------- */

static bool show_progress(uint64_t done, uint64_t total, void *user) {
    const struct app *a = user;
    if (a->terminal) {
        int width = 40, filled = total ? (int)((double)done / (double)total * width) : width;
        fprintf(stderr, "\rLoading [%.*s%*s] %3d%%", filled,
                "########################################", width - filled, "",
                total ? (int)((double)done / (double)total * 100) : 100);
        if (done == total)
            fputs("\r\033[K", stderr);
    }
    return !interrupts;
}

static void show_report(const char *text, void *user) {
    (void)user;
    fputs(text, stderr);
}

static enum rc count_option(const char *name, const struct options_count *o, uint32_t max,
                            uint32_t *out, struct err *e) {
    if (o->value > max || (o->given && !o->value))
        return err_set(e, RC_USAGE, "%s: expected 1 to %u, found %llu", name, max,
                       (unsigned long long)o->value);
    *out = (uint32_t)o->value;
    return RC_OK;
}

static enum rc open_engine(struct app *a, struct err *e) {
    const struct options *o = &a->options;
    struct engine_options eo = {
        .model = o->model,
        .device = o->device,
        .kv_type = o->kv_type,
        .expect = o->expect,
        .guard_rail = !env_get_bool("GRETA_DISABLE_GUARD_RAIL", false),
        .all_logits = o->dump_prompt,
        .trace = o->trace ? o->trace : env_get_str("GRETA_TRACE", NULL),
        .trace_file = o->trace_file,
        .trace_dump = o->trace_dump,
        .progress = show_progress,
        .report = show_report,
        .user = a,
    };
    enum rc rc = count_option("--ctx", &o->ctx, 1 << 24, &eo.context, e);
    rc = rc ? rc : count_option("--batch-size", &o->batch_size, BATCH_MAX, &eo.sequences, e);
    rc = rc ? rc : count_option("--chunk", &o->chunk, 1 << 16, &eo.chunk, e);
    rc = rc ? rc : count_option("--threads", &o->threads, 256, &eo.threads, e);
    if (rc)
        return rc;
    if (o->dump_prompt && !o->dump_logits)
        return err_set(e, RC_USAGE, "--dump-logits-prompt goes with --dump-logits DIR");
    a->sequences = eo.sequences ? eo.sequences : 1;
    if (o->record && setenv("GCORE_RECORD", o->record, 1))
        return err_set(e, RC_MEMORY, "out of memory");
    return engine_open(&a->engine, &eo, e);
}

/* ---- generating ----------------------------------------------------------------------------- */

static void on_text(uint32_t sequence, const char *text, size_t len, void *user) {
    struct app *a = user;
    if (a->sequences == 1) {
        fwrite(text, 1, len, stdout);
        fflush(stdout);
    }
    struct token_text *keep = a->options.chat    ? &a->answer
                              : a->sequences > 1 ? &a->texts[sequence]
                                                 : NULL;
    enum rc ignored = keep ? token_text_add(keep, text, len, NULL) : RC_OK;
    (void)ignored; /* without memory the text is shorter; the run goes on */
}

static enum rc on_logits(uint32_t position, int32_t token, const float *logits, void *user,
                         struct err *e) {
    struct app *a = user;
    return a->dump.open ? dump_row(&a->dump, position, token, logits, e) : RC_OK;
}

static bool is_interrupted(void *user) {
    (void)user;
    return interrupts > 0;
}

static struct sampler_options sampling(const struct options *o) {
    struct sampler_options s = sampler_defaults;
    if (o->temperature.given)
        s.temperature = (float)o->temperature.value;
    if (o->greedy)
        s.temperature = 0;
    if (o->top_k.given)
        s.top_k = (uint32_t)o->top_k.value;
    if (o->top_p.given)
        s.top_p = (float)o->top_p.value;
    if (o->min_p.given)
        s.min_p = (float)o->min_p.value;
    if (o->repeat_penalty.given)
        s.repeat_penalty = (float)o->repeat_penalty.value;
    if (o->repeat_last.given)
        s.repeat_last = (uint32_t)o->repeat_last.value;
    s.seed = o->seed.given ? o->seed.value : (uint64_t)time(NULL);
    return s;
}

static void add_result(struct engine_result *sum, const struct engine_result *one) {
    sum->generated += one->generated;
    sum->total_ms += one->total_ms;
    if (!sum->first_token_ms)
        sum->first_token_ms = one->first_token_ms;
    if (one->tokens_per_second > 0)
        sum->tokens_per_second = one->tokens_per_second;
}

static enum rc generate(struct app *a, const struct token_list *prompt, bool append,
                        struct engine_result *out, struct err *e) {
    const struct options *o = &a->options;
    uint64_t max = o->max_tokens.given ? o->max_tokens.value : 128;
    if (max > UINT32_MAX / 2)
        return err_set(e, RC_USAGE, "--max-tokens: expected at most %u", UINT32_MAX / 2);
    struct engine_request r = {
        .prompt = prompt->ids,
        .prompt_count = prompt->count,
        .append = append,
        .max_tokens = (uint32_t)max,
        .sampling = sampling(o),
        .stops = o->stop.items,
        .stop_count = o->stop.count,
        .ignore_end = o->ignore_eos,
        .text = on_text,
        .logits = on_logits,
        .interrupted = is_interrupted,
        .user = a,
    };
    return engine_generate(a->engine, &r, out, e);
}

/* ---- the prompt ----------------------------------------------------------------------------- */

static enum rc read_all(const char *path, struct token_text *out, struct err *e) {
    FILE *in = strcmp(path, "-") ? fopen(path, "rb") : stdin;
    char part[65536];
    size_t n;
    enum rc rc = in ? RC_OK : err_set(e, RC_IO, "%s: %s", path, strerror(errno));
    while (!rc && (n = fread(part, 1, sizeof part, in)) > 0) {
        rc = token_text_add(out, part, n, e);
        if (!rc && out->len > PROMPT_MAX)
            rc = err_set(e, RC_RANGE, "%s: a prompt of more than %d MiB", path, PROMPT_MAX >> 20);
    }
    if (!rc && ferror(in))
        rc = err_set(e, RC_IO, "%s: cannot be read: %s", path, strerror(errno));
    if (in && in != stdin)
        fclose(in);
    return rc;
}

static enum rc read_prompt(const struct options *o, struct token_text *out, struct err *e) {
    if (o->prompt && o->prompt_file)
        return err_set(e, RC_USAGE, "--prompt and --prompt-file: give one of them");
    if (o->prompt_file)
        return read_all(o->prompt_file, out, e);
    const char *text = o->prompt ? o->prompt : o->model ? NULL : "Once upon a time";
    if (!text)
        return err_set(e, RC_USAGE, "no prompt: give --prompt TEXT or --prompt-file FILE");
    return token_text_add(out, text, strlen(text), e);
}

static enum rc run_once(struct app *a, struct engine_result *result, struct err *e) {
    struct token_text prompt = { 0 };
    struct token_list tokens = { 0 };
    enum rc rc = read_prompt(&a->options, &prompt, e);
    rc = rc ? rc
            : tokenizer_encode(engine_tokenizer(a->engine), prompt.data ? prompt.data : "",
                               prompt.len, TOKENIZER_ADD_SPECIAL, &tokens, e);
    if (!rc && a->sequences == 1 && !a->options.quiet)
        fwrite(prompt.data, 1, prompt.len, stdout);
    rc = rc ? rc : generate(a, &tokens, false, result, e);
    fputc('\n', stdout);
    for (uint32_t i = 0; !rc && a->sequences > 1 && i < a->sequences; i++)
        printf("--- %u\n%.*s%.*s\n", i, a->options.quiet ? 0 : (int)prompt.len, prompt.data,
               (int)a->texts[i].len, a->texts[i].data ? a->texts[i].data : "");
    token_text_close(&prompt);
    token_list_close(&tokens);
    return rc;
}

/* ---- conversation --------------------------------------------------------------------------- */

struct conversation {
    enum chat_template template;
    struct chat_turn *turns;
    size_t count, room, done;
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
    memcpy(copy, text, len);
    c->turns[c->count++] = (struct chat_turn){ role, copy, len };
    return RC_OK;
}

static enum rc answer_turn(struct app *a, struct conversation *c, struct engine_result *sum,
                           struct err *e) {
    struct token_list tokens = { 0 };
    struct engine_result one = { 0 };
    enum rc rc = chat_template_encode(c->template, engine_tokenizer(a->engine), c->turns, c->count,
                                      c->done, true, &tokens, e);
    a->answer.len = 0;
    rc = rc ? rc : generate(a, &tokens, c->done > 0, &one, e);
    fputc('\n', stdout);
    add_result(sum, &one);
    token_list_close(&one.tokens);
    token_list_close(&tokens);
    rc = rc ? rc
            : add_turn(c, CHAT_ASSISTANT, a->answer.data ? a->answer.data : "", a->answer.len, e);
    c->done = c->count;
    return rc;
}

/* Reads a line of the user's; false at the end of input. */
static bool read_line(char **line, size_t *room, size_t *len) {
    fputs("> ", stdout);
    fflush(stdout);
    ssize_t n = getline(line, room, stdin);
    while (n > 0 && ((*line)[n - 1] == '\n' || (*line)[n - 1] == '\r'))
        n--;
    *len = n > 0 ? (size_t)n : 0;
    return n >= 0;
}

static enum rc run_chat(struct app *a, struct engine_result *sum, struct err *e) {
    const struct options *o = &a->options;
    struct conversation c = { 0 };
    struct token_text first = { 0 };
    char *line = NULL;
    size_t room = 0, len;
    bool interactive = isatty(STDIN_FILENO) && !o->prompt_file;
    const tokenizer *t = engine_tokenizer(a->engine);
    enum rc rc = o->chat_template ? chat_template_find(&c.template, o->chat_template, t, e)
                                  : chat_template_detect(&c.template, t, e);
    if (!rc && o->system)
        rc = add_turn(&c, CHAT_SYSTEM, o->system, strlen(o->system), e);
    if (!rc && (o->prompt || o->prompt_file || !interactive)) {
        rc = o->prompt || o->prompt_file ? read_prompt(o, &first, e) : read_all("-", &first, e);
        rc = rc ? rc : add_turn(&c, CHAT_USER, first.data ? first.data : "", first.len, e);
        rc = rc ? rc : answer_turn(a, &c, sum, e);
    }
    while (!rc && interactive && !interrupts && read_line(&line, &room, &len)) {
        if (!len)
            continue;
        rc = add_turn(&c, CHAT_USER, line, len, e);
        rc = rc ? rc : answer_turn(a, &c, sum, e);
    }
    for (size_t i = 0; i < c.count; i++)
        free((char *)(uintptr_t)c.turns[i].text);
    free(c.turns);
    free(line);
    token_text_close(&first);
    return rc;
}

/* ---- the run -------------------------------------------------------------------------------- */

static void print_result(const struct engine_result *r, enum rc rc, const struct err *e) {
    if (rc)
        fprintf(stderr, "Generation error: %s\n", e->msg);
    if (interrupts)
        fputs("Interrupted\n", stderr);
    printf("Generated tokens: %llu\n", (unsigned long long)r->generated);
    printf("Total time: %.3f ms\n", r->total_ms);
    printf("Time to first token: %.3f ms\n", r->first_token_ms);
    printf("Tokens/second: %.2f\n", r->tokens_per_second);
    printf("STATUS=%s\n", rc ? "ERROR" : "OK");
    fflush(stdout);
}

static enum rc run(struct app *a, struct engine_result *result, struct err *e) {
    if (!a->options.quiet)
        fprintf(stderr, "%s\n", engine_description(a->engine));
    enum rc rc = RC_OK;
    if (a->options.dump_logits)
        rc = dump_open(&a->dump, a->options.dump_logits, engine_config(a->engine)->vocab, e);
    a->texts = calloc(a->sequences, sizeof *a->texts);
    if (!rc && !a->texts)
        rc = err_set(e, RC_MEMORY, "out of memory");
    if (!rc)
        rc = a->options.chat ? run_chat(a, result, e) : run_once(a, result, e);
    enum rc dumped = dump_close(&a->dump, a->engine, a->options.model, result, rc ? NULL : e);
    enum rc closed = engine_close(&a->engine, rc || dumped ? NULL : e);
    for (uint32_t i = 0; a->texts && i < a->sequences; i++)
        token_text_close(&a->texts[i]);
    free(a->texts);
    token_text_close(&a->answer);
    token_list_close(&result->tokens);
    return rc ? rc : dumped ? dumped : closed;
}

int main(int argc, char **argv) {
    struct app a = { .terminal = isatty(STDERR_FILENO) };
    struct engine_result result = { 0 };
    struct err e = { 0 };
    struct sigaction action = { .sa_handler = on_interrupt };
    enum rc rc = options_parse(&a.options, argc, argv, &e);
    if (!rc && a.options.help) {
        options_print_help(stdout);
        return EXIT_DONE;
    }
    if (!rc && a.options.version) {
        printf("greta_infer %s (%s%s)\n", GRETA_VERSION, GRETA_BUILD_COMMIT,
               GRETA_BUILD_DIRTY ? ", changed" : "");
        return EXIT_DONE;
    }
    if (a.options.quiet)
        a.terminal = false;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    rc = rc ? rc : open_engine(&a, &e);
    if (rc) {
        fprintf(stderr, "greta_infer: %s\n", e.msg);
        if (rc != RC_USAGE)
            puts("STATUS=ERROR");
        gcore_close();
        return exit_status(rc);
    }
    rc = run(&a, &result, &e);
    print_result(&result, rc, &e);
    gcore_close();
    return rc == RC_USAGE ? EXIT_WRONG : rc ? EXIT_FAILED : interrupts ? EXIT_FAILED : EXIT_DONE;
}
