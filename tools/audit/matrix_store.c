/* matrix_store.c - the folder of a matrix: what was asked for, and what is done.
 *
 *   matrix.json             the parameters; a matrix goes on only with the same ones
 *   matrix.lock             who works in the folder
 *   runs/0051-audit/        one folder per run: stdout.log, stderr.log, record.gcr, the reports of
 *                           `greta_audit run`, and run.json, which is written last: a run that has
 *                           it is done
 *   summary.json, FINAL_REPORT.md */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/json_tree.h"
#include "base/output.h"
#include "greta_build.h"
#include "tools/audit/cmd.h"
#include "tools/audit/matrix.h"

extern char **environ;

/* ---- files and folders ---- */

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    (void)st;
    (void)type;
    (void)ftw;
    (void)!remove(path);
    return 0;
}

void matrix_remove_folder(const char *path) {
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static bool is_there(const char *folder, const char *file) {
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return access(path, F_OK) == 0;
}

/* ---- parameters ---- */

void matrix_put_list(struct json *j, const char *key, const struct matrix_list *l) {
    json_array_open(j, key);
    for (size_t i = 0; i < l->count; i++)
        json_string(j, NULL, l->items[i]);
    json_array_close(j);
}

void matrix_put_environment(struct json *j) {
    static const char *const prefixes[] = { "GRETA_", "GCORE_", "HIP_", "HSA_", "AMD_" };
    json_object_open(j, "environment");
    for (char **v = environ; *v; v++)
        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
            if (!strncmp(*v, prefixes[i], strlen(prefixes[i])) && strchr(*v, '=')) {
                char name[256];
                snprintf(name, sizeof name, "%.*s", (int)strcspn(*v, "="), *v);
                json_string(j, name, strchr(*v, '=') + 1);
            }
    json_object_close(j);
}

static void put_model(struct json *j, const struct matrix *m) {
    struct stat st;
    if (!m->o.model || stat(m->o.model, &st) != 0) {
        json_null(j, "model");
        return;
    }
    json_object_open(j, "model");
    json_string(j, "path", m->o.model);
    json_i64(j, "bytes", st.st_size);
    json_format(j, "changed", "%lld.%09ld", (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    json_object_close(j);
}

static void put_modes(struct json *j, const struct matrix *m) {
    json_array_open(j, "modes");
    for (size_t i = 0; i < m->profile.mode_count; i++) {
        const struct matrix_mode *mode = &m->profile.modes[i];
        json_object_open(j, NULL);
        json_string(j, "mode", mode->name);
        json_u64(j, "iterations", mode->iterations);
        json_bool(j, "recorded", mode->recorded);
        json_string(j, "environment", mode->environment);
        json_string(j, "schedules", mode->schedules);
        json_string(j, "arguments", mode->arguments);
        json_object_close(j);
    }
    json_array_close(j);
}

/* Only what changes a run's behaviour or its verdict: the number of jobs, say, does not. */
static void put_parameters(struct json *j, const struct matrix *m) {
    const struct matrix_options *o = &m->o;
    json_object_open(j, "parameters");
    json_string(j, "profile", m->profile.name);
    json_string(j, "greta", GRETA_VERSION " " GRETA_BUILD_COMMIT);
    json_string(j, "program", m->program);
    json_format(j, "program_hash", "%016" PRIx64, m->program_hash);
    json_array_open(j, "command");
    for (char **word = o->command; word && *word; word++)
        json_string(j, NULL, *word);
    json_array_close(j);
    put_model(j, m);
    json_string(j, "device", m->device.soft ? "soft" : "hip");
    json_string(j, "device_name", m->device.name);
    put_modes(j, m);
    matrix_put_list(j, "schedules", &o->schedules);
    json_array_open(j, "seeds");
    for (size_t i = 0; i < o->seeds.count; i++)
        json_u64(j, NULL, o->seeds.items[i]);
    json_array_close(j);
    matrix_put_list(j, "prompts", &o->prompts);
    matrix_put_list(j, "inject", &o->inject);
    json_u64(j, "max_tokens", o->max_tokens);
    json_double(j, "timeout", o->timeout);
    json_bool(j, "watch_host", o->watch_host);
    json_string(j, "expect_commit", o->expect_commit);
    json_string(j, "expect_model_hash", o->expect_model_hash);
    matrix_put_environment(j);
    json_object_close(j);
}

static enum rc put_document(FILE *out, const struct matrix *m, struct err *e) {
    struct json j = json_begin(out, 2);
    json_object_open(&j, NULL);
    json_u64(&j, "version", 1);
    json_u64(&j, "start_wall_us", m->start_wall_us);
    put_parameters(&j, m);
    json_object_close(&j);
    return json_end(&j, e);
}

/* ---- resuming ---- */

static void print_node(FILE *out, const struct json_node *n) {
    if (!n) {
        fputs("nothing", out);
        return;
    }
    switch (n->type) {
    case JSON_NULL:
        fputs("none", out);
        return;
    case JSON_BOOL:
        fputs(n->boolean ? "true" : "false", out);
        return;
    case JSON_NUMBER:
        fputs(n->text, out);
        return;
    case JSON_STRING:
        fprintf(out, "'%s'", n->text);
        return;
    default:
        putc(n->type == JSON_OBJECT ? '{' : '[', out);
        for (const struct json_node *i = n->first; i; i = i->next) {
            if (i->key)
                fprintf(out, "%s ", i->key);
            print_node(out, i);
            fputs(i->next ? ", " : "", out);
        }
        putc(n->type == JSON_OBJECT ? '}' : ']', out);
    }
}

/* The innermost value that differs, as "modes: 1: iterations was 2, is 3". */
static void print_difference(FILE *out, const char *key, const struct json_node *was,
                             const struct json_node *is) {
    size_t index = 0;
    fprintf(out, "%s", key);
    if (was && is && was->type == is->type && was->type >= JSON_ARRAY) {
        const struct json_node *other = was->first;
        for (const struct json_node *i = is->first; i; i = i->next, index++) {
            const struct json_node *w = i->key ? json_tree_get(was, i->key) : other;
            other = other ? other->next : NULL;
            char number[24];
            snprintf(number, sizeof number, "%zu", index + 1);
            if (!json_tree_equal(w, i)) {
                fputs(": ", out);
                print_difference(out, i->key ? i->key : number, w, i);
                return;
            }
        }
    }
    fputs(" was ", out);
    print_node(out, was);
    fputs(", is ", out);
    print_node(out, is);
}

/* True if the parameters are the same; else *why is what differs, to be freed. */
static bool same_parameters(const struct matrix *m, const struct json_node *document, char **why) {
    char *text = NULL;
    size_t size = 0, why_size = 0;
    json_tree *now = NULL;
    bool same = false;
    *why = NULL;
    FILE *out = open_memstream(&text, &size);
    enum rc rc = out ? put_document(out, m, NULL) : RC_MEMORY;
    if (out && fclose(out) != 0)
        rc = RC_MEMORY;
    if (rc == RC_OK && json_tree_open(&now, text, size, "parameters", NULL) == RC_OK) {
        const struct json_node *was = json_tree_get(document, "parameters");
        const struct json_node *is = json_tree_get(json_tree_root(now), "parameters");
        same = json_tree_equal(was, is);
        FILE *words = same ? NULL : open_memstream(why, &why_size);
        if (words) {
            print_difference(words, "parameters", was, is);
            fclose(words);
        }
    }
    json_tree_close(&now);
    free(text);
    return same;
}

static bool read_run(struct matrix *m, struct matrix_run *r) {
    char path[PATH_MAX];
    json_tree *t = NULL;
    matrix_run_path(m, r, "run.json", path);
    if (json_tree_open_file(&t, path, NULL) != RC_OK)
        return false; /* not done, or cut off by a power failure */
    const struct json_node *n = json_tree_root(t);
    const char *word = json_tree_text(n, "end"), *line = json_tree_text(n, "last_line");
    for (int end = 0; end < MATRIX_END_COUNT; end++)
        if (!strcmp(word, matrix_end_word((enum matrix_end)end))) {
            r->end = (enum matrix_end)end;
            r->done = !strcmp(json_tree_text(n, "run"), r->id);
        }
    r->exit_status = (int)json_tree_u64(n, "exit_status");
    r->signal = (int)json_tree_u64(n, "signal");
    r->seconds = json_tree_number(n, "seconds");
    line = arena_copy_text(&m->arena, line, strlen(line));
    r->last_line = line ? line : "";
    m->earlier_seconds += r->seconds;
    json_tree_close(&t);
    return r->done;
}

/* The folder has a matrix.json. */
static int continue_matrix(struct matrix *m) {
    char path[PATH_MAX], *why = NULL;
    struct err e = { 0 };
    json_tree *t = NULL;
    snprintf(path, sizeof path, "%s/matrix.json", m->folder);
    if (json_tree_open_file(&t, path, &e) != RC_OK) {
        matrix_say("%s", e.msg);
        return EXIT_REFUSED;
    }
    bool same = same_parameters(m, json_tree_root(t), &why);
    m->start_wall_us = json_tree_u64(json_tree_root(t), "start_wall_us");
    json_tree_close(&t);
    if (!same) {
        matrix_say(
            "%s holds another matrix: %.400s; give the same options, or choose another --out",
            m->folder, why ? why : "it cannot be compared");
        free(why);
        return EXIT_REFUSED;
    }
    for (size_t i = 0; i < m->run_count; i++)
        (void)read_run(m, &m->runs[i]);
    return -1;
}

/* ---- the folder ---- */

static bool is_empty(const char *path) {
    DIR *d = opendir(path);
    const struct dirent *entry;
    bool empty = true;
    while (d && (entry = readdir(d)))
        empty &= !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
    if (d)
        closedir(d);
    return empty;
}

/* b3.63 -> b3_63, as the folders of audits are called. */
static void default_name(const struct matrix *m, char out[static 256]) {
    snprintf(out, 256, "%s", m->o.name ? m->o.name : m->profile.name);
    for (char *p = out; *p && !m->o.name; p++)
        if (*p == '.')
            *p = '_';
}

static bool set_folder(struct matrix *m, const char *path) {
    char full[PATH_MAX];
    int n;
    if (path[0] == '/')
        n = snprintf(full, sizeof full, "%s", path);
    else if (getcwd(full, sizeof full))
        n = snprintf(full + strlen(full), sizeof full - strlen(full), "/%s", path);
    else
        return false;
    while (n > 1 && full[strlen(full) - 1] == '/')
        full[strlen(full) - 1] = '\0';
    if (n <= 0 || strlen(full) >= sizeof m->folder)
        return false;
    memcpy(m->folder, full, strlen(full) + 1);
    return true;
}

/* The newest unfinished matrix of that name with the same parameters, under artifacts. */
static int find_unfinished(struct matrix *m, const char *name) {
    char best[PATH_MAX] = "", *why = NULL, *last_why = NULL;
    time_t newest = 0;
    struct dirent **days = NULL;
    int count = scandir("artifacts", &days, NULL, NULL);
    for (int i = 0; i < count; i++) {
        for (unsigned k = 1; days[i]->d_name[0] != '.' && k < 1000; k++) {
            char folder[PATH_MAX - 64], path[PATH_MAX];
            struct stat st;
            json_tree *t = NULL;
            snprintf(folder, sizeof folder, k > 1 ? "artifacts/%s/%s-%u" : "artifacts/%s/%s",
                     days[i]->d_name, name, k);
            snprintf(path, sizeof path, "%s/matrix.json", folder);
            if (!is_there(folder, ""))
                break;
            if (stat(path, &st) != 0 || st.st_mtime < newest ||
                json_tree_open_file(&t, path, NULL) != RC_OK)
                continue;
            if (same_parameters(m, json_tree_root(t), &why)) {
                newest = st.st_mtime;
                snprintf(best, sizeof best, "%s", folder);
            } else {
                free(last_why);
                last_why = why;
            }
            json_tree_close(&t);
        }
        free(days[i]);
    }
    free(days);
    if (!*best) {
        matrix_say("--resume: there is no matrix %s with these parameters under artifacts%s%.400s",
                   name, last_why ? ": " : "", last_why ? last_why : "");
        free(last_why);
        return EXIT_REFUSED;
    }
    free(last_why);
    return set_folder(m, best) ? -1 : EXIT_REFUSED;
}

static int new_folder(struct matrix *m, const char *name) {
    char path[PATH_MAX], day[32] = "";
    time_t now = time(NULL);
    struct tm tm;
    if (localtime_r(&now, &tm))
        strftime(day, sizeof day, "%Y-%m-%d", &tm);
    for (unsigned i = 1; i < 100000; i++) {
        snprintf(path, sizeof path, i > 1 ? "artifacts/%s/%s-%u" : "artifacts/%s/%s", day, name, i);
        if (access(path, F_OK) != 0)
            return set_folder(m, path) ? -1 : EXIT_REFUSED;
    }
    matrix_say("cannot find a free folder in artifacts/%s (--out names another)", day);
    return EXIT_REFUSED;
}

int matrix_store_open(struct matrix *m) {
    char name[256];
    int code = -1;
    default_name(m, name);
    m->start_wall_us = clock_wall_us();
    if (m->o.out) {
        if (!set_folder(m, m->o.out)) {
            matrix_say("--out: too long a path: %s", m->o.out);
            return EXIT_REFUSED;
        }
    } else {
        code = m->o.resume ? find_unfinished(m, name) : new_folder(m, name);
    }
    if (code >= 0)
        return code;
    if (is_there(m->folder, "matrix.json"))
        return continue_matrix(m);
    if (m->o.resume) {
        matrix_say("--resume: there is no matrix in %s", m->folder);
        return EXIT_REFUSED;
    }
    if (is_there(m->folder, "") && !is_empty(m->folder) && !is_there(m->folder, "matrix.lock")) {
        matrix_say("%s is neither empty nor a matrix; choose another --out", m->folder);
        return EXIT_REFUSED;
    }
    return -1;
}

int matrix_store_begin(struct matrix *m) {
    char path[PATH_MAX];
    struct err e = { 0 };
    struct output f;
    m->made_folder = !is_there(m->folder, "");
    snprintf(path, sizeof path, "%s/runs", m->folder);
    if (!folder_make(path)) {
        matrix_say("cannot create the folder %s: %s", path, strerror(errno));
        return EXIT_REFUSED;
    }
    int code = matrix_lock_folder(m);
    if (code >= 0 || is_there(m->folder, "matrix.json"))
        return code;
    snprintf(path, sizeof path, "%s/matrix.json", m->folder);
    enum rc rc = output_open(&f, path, &e);
    if (rc == RC_OK)
        rc = output_close(&f, put_document(f.file, m, &e), &e);
    if (rc == RC_OK)
        return -1;
    matrix_say("%s", e.msg);
    return EXIT_REFUSED;
}

void matrix_store_undo(struct matrix *m) {
    for (size_t i = 0; i < m->run_count; i++)
        if (m->runs[i].done)
            return;
    if (!m->made_folder)
        return;
    matrix_remove_folder(m->folder);
    if (m->o.out)
        return;
    char parent[PATH_MAX]; /* artifacts/DATE, unless there is something else */
    snprintf(parent, sizeof parent, "%s", m->folder);
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(parent, '/');
        if (!slash || slash == parent)
            return;
        *slash = '\0';
        if (rmdir(parent) != 0)
            return;
    }
}

/* ---- runs ---- */

enum rc matrix_store_prepare(struct matrix *m, const struct matrix_run *r, struct err *e) {
    char path[PATH_MAX];
    matrix_run_path(m, r, "", path);
    if (access(path, F_OK) == 0)
        matrix_remove_folder(path);
    return mkdir(path, 0777) == 0 ? RC_OK : err_set(e, RC_IO, "%s: %s", path, strerror(errno));
}

enum rc matrix_store_run(struct matrix *m, struct matrix_run *r, struct err *e) {
    char path[PATH_MAX];
    struct output f;
    matrix_run_path(m, r, "run.json", path);
    enum rc rc = output_open(&f, path, e);
    if (rc != RC_OK)
        return rc;
    struct json j = json_begin(f.file, 2);
    json_object_open(&j, NULL);
    json_string(&j, "run", r->id);
    json_string(&j, "mode", r->mode->name);
    json_string(&j, "end", matrix_end_word(r->end));
    json_u64(&j, "exit_status", (uint64_t)r->exit_status);
    json_u64(&j, "signal", (uint64_t)r->signal);
    json_double(&j, "seconds", r->seconds);
    json_string(&j, "schedule", r->schedule);
    json_u64(&j, "seed", r->seed);
    json_string(&j, "prompt", r->prompt);
    json_string(&j, "last_line", r->last_line);
    json_object_close(&j);
    rc = output_close(&f, json_end(&j, e), e);
    r->done = rc == RC_OK;
    return rc;
}

void matrix_store_thin(struct matrix *m, const struct matrix_run *r) {
    char path[PATH_MAX];
    matrix_run_path(m, r, "", path);
    DIR *d = opendir(path);
    const struct dirent *entry;
    while (d && (entry = readdir(d)))
        if (strcmp(entry->d_name, "run.json") != 0 && strcmp(entry->d_name, "report.json") != 0)
            (void)!unlinkat(dirfd(d), entry->d_name, 0);
    if (d)
        closedir(d);
}
