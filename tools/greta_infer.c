/* greta_infer - continues a text with a model. The options are in tools/infer/options.def. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <gcore/audit.h>

#include "base/env.h"
#include "infer/inject.h"
#include "tools/common/program.h"
#include "tools/infer/app.h"
#include "tools/infer/recording.h"

bool app_interrupted(const struct app *a) {
    return program_interrupted() || a->output_errno;
}

/* A file that is opened while a standard stream is closed would take its number, and receive what
 * is meant for it. In its place comes something that cannot be written (or read). */
static void occupy_standard_streams(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* ---- loading -------------------------------------------------------------------------------- */

static bool show_progress(uint64_t done, uint64_t total, void *user) {
    const struct app *a = user;
    if (a->terminal) {
        int width = 40, filled = total ? (int)((double)done / (double)total * width) : width;
        fprintf(stderr, "\rLoading [%.*s%*s] %3d%%", filled,
                "########################################", width - filled, "",
                total ? (int)((double)done / (double)total * 100) : 100);
        if (done == total || program_interrupted())
            fputs("\r\033[K", stderr);
    }
    return !program_interrupted();
}

static void show_report(const char *text, void *user) {
    (void)user;
    fputs(text, stderr);
}

static void show_note(const char *text, void *user) {
    (void)user;
    fprintf(stderr, "greta_infer: note: %s\n", text);
}

/* --prompts takes what its texts take; otherwise every sequence may fill the context. */
static uint32_t cache_positions(const struct app *a) {
    const struct options *o = &a->options;
    uint32_t tokens = o->max_tokens.given ? (uint32_t)o->max_tokens.value : TOKENS_DEFAULT;
    return o->prompts ? prompts_positions(&a->prompts, tokens) : 0;
}

static enum rc open_engine(struct app *a, struct err *e) {
    const struct options *o = &a->options;
    struct engine_options eo = {
        .model = o->model,
        .device = o->device,
        .exec = o->exec,
        .devices = o->devices,
        .record = o->record,
        .context = (uint32_t)o->ctx.value,
        .sequences = a->sequences,
        .cache = cache_positions(a),
        .chunk = (uint32_t)o->chunk.value,
        .threads = (uint32_t)o->threads.value,
        .kv_type = o->kv_type,
        .no_repack = o->no_repack,
        .packed_cache = o->packed_cache,
        .packed_folder = o->packed_cache && strcmp(o->packed_cache, "-") ? o->packed_cache : NULL,
        .expect = o->expect,
        .all_logits = o->dump_prompt,
        .trace = o->trace ? o->trace : env_text(ENV_GRETA_TRACE),
        .trace_file = o->trace_file,
        .trace_dump = o->trace_dump,
        .inject = o->inject.items,
        .inject_count = o->inject.count,
        .progress = show_progress,
        .report = show_report,
        .note = show_note,
        .user = a,
    };
    bool off;
    enum rc rc = env_read_flag(ENV_GRETA_DISABLE_GUARD_RAIL, &off, e);
    if (rc)
        return rc;
    eo.guard_rail = !off;
    return engine_open(&a->engine, &eo, e);
}

/* Whether there is a model file; what is in it is checked later. */
static enum rc check_model(const char *path, struct err *e) {
    struct stat s;
    char magic[4];
    enum rc rc = RC_OK;
    if (!path)
        return RC_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return err_set(e, RC_IO, "%s: cannot open: %s", path, strerror(errno));
    if (fstat(fd, &s) || !S_ISREG(s.st_mode))
        rc = err_set(e, RC_IO, "%s: expected a regular file", path);
    else if (!s.st_size)
        rc = err_set(e, RC_FORMAT, "%s: the file is empty", path);
    else if (read(fd, magic, sizeof magic) != sizeof magic || memcmp(magic, "GGUF", sizeof magic))
        rc = err_set(e, RC_FORMAT, "%s: this is not a GGUF file", path);
    close(fd);
    return rc;
}

/* The prompt is read before the model is loaded, so that mistakes in it are reported at once. */
static enum rc prepare(struct app *a, struct err *e) {
    const struct options *o = &a->options;
    a->sequences = o->batch_size.given ? (uint32_t)o->batch_size.value : 1;
    a->seed = o->seed.given ? o->seed.value : (uint64_t)time(NULL);
    enum rc rc = check_model(o->model, e);
    if (rc)
        return rc;
    if (o->prompts) {
        enum { AT_ONCE = 128 };
        rc = prompts_read(&a->prompts, o->prompts, e);
        a->sequences = a->prompts.count < AT_ONCE ? (uint32_t)a->prompts.count : AT_ONCE;
        a->prompted = true;
        return rc;
    }
    a->texts = calloc(a->sequences, sizeof *a->texts);
    if (!a->texts)
        return err_set(e, RC_MEMORY, "out of memory");
    if (options_are_interactive(o) && !o->prompt)
        return RC_OK;
    return app_read_prompt(a, e);
}

/* ---- the run -------------------------------------------------------------------------------- */

static void describe_run(const struct app *a) {
    if (a->options.quiet)
        return;
    fprintf(stderr, "%s\n", engine_description(a->engine));
    if (options_sampling(&a->options, 0).temperature > 0 && !a->options.seed.given)
        fprintf(stderr, "Seed: %llu\n", (unsigned long long)a->seed);
}

/* After Ctrl-C the text so far counts as success, if there is any; the exit code says that it is
 * not complete. */
static enum rc judge(const struct app *a, const struct engine_result *result, struct err *e) {
    if (a->output_errno)
        return err_set(e, RC_IO, "standard output cannot be written: %s",
                       strerror(a->output_errno));
    if (program_interrupted() && !result->generated && a->prompted)
        return err_set(e, RC_BUSY, "interrupted before the first token");
    return RC_OK;
}

static enum rc run(struct app *a, struct engine_result *result, struct err *e) {
    enum rc rc = RC_OK;
    describe_run(a);
    if (a->options.dump_logits)
        rc = dump_open(&a->dump, a->options.dump_logits, engine_config(a->engine)->vocab, e);
    if (!rc)
        rc = a->options.prompts ? app_run_prompts(a, result, e)
             : a->options.chat  ? app_run_chat(a, result, e)
                                : app_run_once(a, result, e);
    enum rc dumped = dump_close(&a->dump, a->engine, a->options.model, result, rc ? NULL : e);
    rc = rc ? rc : dumped;
    enum rc closed = engine_close(&a->engine, rc ? NULL : e);
    rc = rc ? rc : closed;
    return rc ? rc : judge(a, result, e);
}

/* Whether only the text goes to standard output. */
static bool is_text_alone(const struct app *a) {
    return a->options.prompts || a->options.quiet;
}

static enum rc print_result(struct app *a, const struct engine_result *r, enum rc rc,
                            const struct err *e) {
    if (rc)
        fprintf(stderr, "Generation error: %s\n", e->msg);
    else if (program_interrupted())
        fputs("Interrupted\n", stderr);
    char text[400];
    snprintf(text, sizeof text,
             "Generated tokens: %llu\nTotal time: %.3f ms\nTime to first token: %.3f ms\n"
             "Tokens/second: %.2f\nSTATUS=%s\n",
             (unsigned long long)r->generated, r->total_ms, r->first_token_ms, r->tokens_per_second,
             rc ? "ERROR" : "OK");
    if (is_text_alone(a))
        fputs(text, stderr);
    else
        app_print(a, text, strlen(text));
    if (rc || !a->output_errno)
        return rc;
    fprintf(stderr, "Generation error: standard output cannot be written: %s\n",
            strerror(a->output_errno));
    return RC_IO;
}

static const char *recording_path(const struct app *a) {
    return a->options.record ? a->options.record : env_text(ENV_GCORE_RECORD);
}

/* What the recording says, if there is one. Its file is complete only now. */
static void print_recording(const struct app *a) {
    const char *path = recording_path(a);
    struct err e = { 0 };
    if (!path || a->options.quiet)
        return;
    if (recording_print(path, stderr, &e))
        fprintf(stderr, "greta_infer: the recording cannot be read: %s\n", e.msg);
}

/* --inject help or --inject list */
static bool asks_for_kinds(const struct options *o) {
    for (size_t i = 0; i < o->inject.count; i++)
        if (!strcmp(o->inject.items[i], "help") || !strcmp(o->inject.items[i], "list"))
            return true;
    return false;
}

static int run_self_test(const struct app *a) {
    struct err e = { 0 };
    bool opened = false;
    enum rc rc = app_self_test(a, &opened, &e);
    if (rc)
        fprintf(stderr, "greta_infer: %s\n", e.msg);
    printf("STATUS=%s\n", rc ? "ERROR" : "OK");
    gcore_close();
    return rc ? program_exit_code(rc, opened) : program_finish_output("greta_infer");
}

static int run_app(struct app *a) {
    struct engine_result result = { 0 };
    struct err e = { 0 };
    enum rc rc = prepare(a, &e);
    const char *recording = recording_path(a);
    if (recording && !env_text(ENV_GCORE_RECORD_JOIN)) /* else somebody is waiting to judge it */
        recording_expect_crash(recording);
    rc = rc ? rc : open_engine(a, &e);
    bool opened = rc == RC_OK;
    if (opened)
        rc = run(a, &result, &e);
    if (opened || rc == RC_BUSY) {
        rc = print_result(a, &result, rc, &e);
    } else {
        fprintf(stderr, "greta_infer: %s\n", e.msg);
        if (rc != RC_USAGE)
            fputs("STATUS=ERROR\n", is_text_alone(a) ? stderr : stdout);
    }
    gcore_close();
    if (opened)
        print_recording(a);
    for (uint32_t i = 0; a->texts && i < a->sequences; i++)
        token_text_close(&a->texts[i]);
    free(a->texts);
    prompts_close(&a->prompts);
    token_text_close(&a->answer);
    token_text_close(&a->prompt);
    token_list_close(&result.tokens);
    return program_exit_code(rc, opened);
}

int main(int argc, char **argv) {
    struct app a = { 0 };
    occupy_standard_streams();
    program_survive_file_limit();
    int code = option_begin(&options_table, &a.options, argc, argv, NULL);
    if (code >= 0)
        return code;
    if (asks_for_kinds(&a.options)) {
        inject_print_kinds(stdout);
        return program_finish_output("greta_infer");
    }
    a.terminal = isatty(STDERR_FILENO) && !a.options.quiet;
    program_catch_interrupts();
    return a.options.self_test ? run_self_test(&a) : run_app(&a);
}
