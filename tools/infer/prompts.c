#include "tools/infer/prompts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/json_tree.h"
#include "tools/infer/app.h"

/* ---- the file -------------------------------------------------------------------------------- */

static enum rc add_line(struct prompts *p, const struct json_node *line, const char *name,
                        struct err *e) {
    const struct json_node *text = json_tree_get(line, "prompt");
    const struct json_node *most = json_tree_get(line, "max_tokens");
    if (!text || text->type != JSON_STRING)
        return err_set(e, RC_FORMAT, "%s: expected an object with a string \"prompt\"", name);
    if (most && (!most->whole || most->u64 > 1u << 30))
        return err_set(e, RC_FORMAT, "%s: max_tokens: expected a whole number up to %u", name,
                       1u << 30);
    struct prompt *all = grow_array(p->all, &p->room, p->count, sizeof *all);
    if (!all)
        return err_set(e, RC_MEMORY, "out of memory");
    p->all = all;
    struct prompt *q = &p->all[p->count++];
    *q = (struct prompt){ .max_tokens = most ? (uint32_t)most->u64 : UINT32_MAX };
    return token_text_add(&q->prompt, text->text, text->len, e);
}

static enum rc read_lines(struct prompts *p, FILE *in, const char *name, struct err *e) {
    char *line = NULL, place[300];
    size_t room = 0;
    ssize_t len;
    enum rc rc = RC_OK;
    for (unsigned long number = 1; !rc && (len = getline(&line, &room, in)) >= 0; number++) {
        json_tree *tree = NULL;
        static const char mark[] = "\xef\xbb\xbf"; /* of UTF-8, as some editors write it */
        if (number == 1 && !strncmp(line, mark, strlen(mark)))
            memmove(line, line + strlen(mark), (size_t)(len -= (ssize_t)strlen(mark)) + 1);
        if (strspn(line, " \t\r\n") == (size_t)len)
            continue;                 /* an empty line */
        len -= line[len - 1] == '\n'; /* so that an error at its end is not on the next line */
        snprintf(place, sizeof place, "%.250s: line %lu", name, number);
        rc = json_tree_open_line(&tree, line, (size_t)len, name, number, e);
        rc = rc ? rc : add_line(p, json_tree_root(tree), place, e);
        json_tree_close(&tree);
        if (!rc)
            p->all[p->count - 1].line = number;
    }
    if (!rc && ferror(in))
        rc = err_set(e, RC_IO, "%s: cannot be read: %s", name, strerror(errno));
    if (!rc && !p->count)
        rc = err_set(e, RC_FORMAT, "%s: there are no prompts in it", name);
    free(line);
    return rc;
}

enum rc prompts_read(struct prompts *p, const char *path, struct err *e) {
    FILE *in = strcmp(path, "-") ? fopen(path, "rb") : stdin;
    if (!in)
        return err_set(e, RC_IO, "%s: cannot be read: %s", path, strerror(errno));
    enum rc rc = read_lines(p, in, in == stdin ? "standard input" : path, e);
    if (in != stdin)
        fclose(in);
    return rc;
}

void prompts_close(struct prompts *p) {
    for (size_t i = 0; i < p->count; i++) {
        token_text_close(&p->all[i].prompt);
        token_text_close(&p->all[i].text);
    }
    free(p->all);
    *p = (struct prompts){ 0 };
}

/* A token has at least one byte, but for the one before the text. */
uint32_t prompts_positions(const struct prompts *p, uint32_t max_tokens) {
    enum { BLOCK = 32 };
    uint64_t sum = 0;
    for (size_t i = 0; i < p->count; i++) {
        uint32_t most = p->all[i].max_tokens;
        sum += p->all[i].prompt.len + 1 + BLOCK + (most == UINT32_MAX ? max_tokens : most);
    }
    return sum < INT32_MAX ? (uint32_t)sum : INT32_MAX;
}

/* ---- the run --------------------------------------------------------------------------------- */

struct batch {
    struct app *a;
    struct prompts *p;
    struct engine_result *result;
    uint32_t first; /* the number of the first prompt's sequence */
    uint64_t first_ns;
    bool out_of_memory;
};

static void print_line(struct app *a, const struct prompt *q, size_t index) {
    static const char *const ends[] = { [ENGINE_LENGTH] = "length",
                                        [ENGINE_EOS] = "eos",
                                        [ENGINE_STOP] = "stop",
                                        [ENGINE_INTERRUPTED] = "interrupted",
                                        [ENGINE_FULL] = "full" };
    char *line = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&line, &size);
    if (!out)
        return;
    struct json j = json_begin(out, 0);
    json_object_open(&j, NULL);
    json_u64(&j, "index", index);
    json_text(&j, "text", q->text.len ? q->text.data : "", q->text.len);
    json_u64(&j, "tokens", q->generated);
    json_string(&j, "stop", ends[q->end]);
    json_object_close(&j);
    enum rc rc = json_end(&j, NULL);
    if (fclose(out) || rc)
        a->output_errno = a->output_errno ? a->output_errno : ENOMEM;
    else
        app_print(a, line, size);
    free(line);
}

static void on_text(uint32_t sequence, const char *text, size_t len, void *user) {
    struct batch *b = user;
    b->out_of_memory |= token_text_add(&b->p->all[sequence - b->first].text, text, len, NULL) != 0;
}

static bool is_interrupted(void *user) {
    const struct batch *b = user;
    return app_interrupted(b->a);
}

static void on_finished(uint32_t sequence, const struct engine_finished *f, void *user) {
    struct batch *b = user;
    struct prompts *p = b->p;
    struct prompt *q = &p->all[sequence - b->first];
    q->generated = f->generated;
    q->end = f->end;
    q->finished = true;
    b->result->generated += f->generated;
    if (f->first_ns && (!b->first_ns || f->first_ns < b->first_ns))
        b->first_ns = f->first_ns;
    for (; p->printed < p->count && p->all[p->printed].finished; p->printed++)
        print_line(b->a, &p->all[p->printed], p->printed);
}

static enum rc submit(struct batch *b, size_t i, struct err *e) {
    struct app *a = b->a;
    const struct options *o = &a->options;
    struct prompt *q = &b->p->all[i];
    struct token_list tokens = { 0 };
    enum rc rc = engine_encode(a->engine, q->prompt.len ? q->prompt.data : "", q->prompt.len,
                               o->special, &tokens, e);
    struct engine_request r = {
        .prompt = tokens.ids,
        .prompt_count = tokens.count,
        .max_tokens = q->max_tokens != UINT32_MAX ? q->max_tokens
                      : o->max_tokens.given       ? (uint32_t)o->max_tokens.value
                                                  : TOKENS_DEFAULT,
        .sampling = options_sampling(o, a->seed + i),
        .stops = o->stop.items,
        .stop_count = o->stop.count,
        .ignore_end = o->ignore_eos,
        .text = on_text,
        .interrupted = is_interrupted,
        .finished = on_finished,
        .user = b,
    };
    rc = rc ? rc : engine_submit(a->engine, &r, &q->number, e);
    token_list_close(&tokens);
    return rc;
}

static enum rc submit_all(struct batch *b, struct err *e) {
    const struct app *a = b->a;
    enum rc rc = RC_OK;
    for (size_t i = 0; !rc && i < b->p->count; i++) {
        char place[300];
        snprintf(place, sizeof place, "%.250s: line %lu", a->options.prompts, b->p->all[i].line);
        rc = submit(b, i, e);
        b->first = i ? b->first : b->p->all[0].number;
        if (rc)
            err_prefix(e, "%s", place);
    }
    if (rc)
        b->p->printed = b->p->count; /* nothing is run: nothing is printed */
    return rc;
}

enum rc app_run_prompts(struct app *a, struct engine_result *result, struct err *e) {
    struct batch b = { .a = a, .p = &a->prompts, .result = result };
    uint64_t start = clock_now_ns();
    enum rc rc = submit_all(&b, e);
    for (bool more = true; !rc && more;)
        rc = engine_step(a->engine, &more, e);
    if (rc)
        engine_drop(a->engine, 0, UINT32_MAX); /* their results go into b */
    uint64_t end = clock_now_ns();
    result->total_ms = (double)(end - start) / 1e6;
    result->first_token_ms = b.first_ns ? (double)(b.first_ns - start) / 1e6 : 0;
    if (b.first_ns && end > b.first_ns)
        result->tokens_per_second = (double)result->generated * 1e9 / (double)(end - b.first_ns);
    return !rc && b.out_of_memory ? err_set(e, RC_MEMORY, "out of memory") : rc;
}
