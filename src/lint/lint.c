#include "lint/lint.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "hip/hip_api.h"
#include "lint/lint_lex.h"

enum { SNIPPET_MAX = 160, CONDITIONS_MAX = 64, DEPTH_MAX = 64 };
#define FILE_MAX ((off_t)256 << 20)

struct lint {
    struct arena arena;
    struct lint_file *first, **last;
    struct lint_totals totals;
};

enum rc lint_open(lint **out, struct err *e) {
    lint *l = calloc(1, sizeof *l);
    if (!l)
        return err_set(e, RC_MEMORY, "no memory for the list of sources");
    l->last = &l->first;
    *out = l;
    return RC_OK;
}

void lint_close(lint **l) {
    if (!*l)
        return;
    arena_clear(&(*l)->arena);
    free(*l);
    *l = NULL;
}

const struct lint_file *lint_files(const lint *l) {
    return l->first;
}

struct lint_totals lint_totals(const lint *l) {
    return l->totals;
}

/* ---- names --------------------------------------------------------------------------------- */

/* Functions of hip_api.def that copy: any use of the name counts. */
static bool is_known_copy(const char *name) {
    for (unsigned fn = 0; fn < HIP_FN_COUNT; fn++)
        if (hip_fn_class((enum hip_fn)fn) == HIP_CLASS_COPY && !strcmp(hip_fn_name(fn), name))
            return true;
    return false;
}

static bool begins_with(const char *name, const char *prefix) {
    return !strncmp(name, prefix, strlen(prefix));
}

static bool ends_with(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

/* Copies of later versions of HIP: known only by how they are called. The other names that begin
 * so are types and constants. */
static bool is_later_copy(const char *name, const struct lex_token *next) {
    static const char *const not_called[] = { "Kind", "Parms", "Params", "Attributes", "Flags" };
    if (next->kind != LEX_PUNCT || next->punct != '(')
        return false;
    for (size_t i = 0; i < sizeof not_called / sizeof *not_called; i++)
        if (ends_with(name, not_called[i]))
            return false;
    return true;
}

static bool is_copy(const char *name, const struct lex_token *next) {
    if (!begins_with(name, "hipMemcpy") && !begins_with(name, "hipDrvMemcpy"))
        return false;
    return is_known_copy(name) || is_later_copy(name, next);
}

/* ---- one file ------------------------------------------------------------------------------ */

/* A comment that allows copies. */
struct allow {
    unsigned first_line, last_line;
    bool alone; /* on its line: stands for the next one */
    const char *reason;
    const struct allow *next;
};

/* A name that the file defines as a macro. */
struct redirect {
    const char *name;
    bool on;
    struct redirect *next;
};

/* One #if: what is known of its branches. */
struct condition {
    bool live;  /* the branch may be compiled */
    bool taken; /* a branch before, or this one, surely is */
};

struct scan {
    lint *l;
    struct lint_file *file;
    struct lint_hit **last;
    struct lex lex;
    struct lex_token before[3]; /* the latest first */
    const struct allow *allows;
    struct redirect *redirects;
    struct condition conditions[CONDITIONS_MAX];
    unsigned depth; /* of #if; may be more than CONDITIONS_MAX */
    bool out_of_memory;
};

static void *scan_alloc(struct scan *s, size_t size) {
    void *p = arena_alloc(&s->l->arena, size);
    s->out_of_memory |= !p;
    return p;
}

static const char *scan_copy(struct scan *s, const char *text, size_t n) {
    const char *p = arena_copy_text(&s->l->arena, text, n);
    s->out_of_memory |= !p;
    return p ? p : "";
}

/* memmem that keeps its types. */
static const char *find(const char *text, size_t n, const char *what) {
    return memmem(text, n, what, strlen(what));
}

static void note_comment(void *user, const char *text, size_t n, unsigned first, unsigned last,
                         bool alone) {
    struct scan *s = user;
    const char *at = find(text, n, "gcore-lint:");
    if (!at)
        return;
    const char *end = text + n, *word = at + strlen("gcore-lint:");
    if (n >= 4 && text[1] == '*' && !memcmp(end - 2, "*/", 2))
        end -= 2;
    while (word < end && isspace((unsigned char)*word))
        word++;
    if (end - word < 5 || memcmp(word, "allow", 5) ||
        (end - word > 5 && isalnum((unsigned char)word[5])))
        return;
    const char *reason = word + 5;
    while (reason < end && (isspace((unsigned char)*reason) || strchr(":-,", *reason)))
        reason++;
    const char *line_end = memchr(reason, '\n', (size_t)(end - reason));
    size_t length = (size_t)((line_end ? line_end : end) - reason);
    while (length && isspace((unsigned char)reason[length - 1]))
        length--;
    if (!length) {
        s->file->reasonless++;
        return;
    }
    struct allow *a = scan_alloc(s, sizeof *a);
    if (a) {
        *a = (struct allow){ first, last, alone, scan_copy(s, reason, length), s->allows };
        s->allows = a;
    }
}

static bool is_live(const struct scan *s) {
    unsigned n = s->depth < CONDITIONS_MAX ? s->depth : CONDITIONS_MAX;
    for (unsigned i = 0; i < n; i++)
        if (!s->conditions[i].live)
            return false;
    return true;
}

/* The latest definition of a name counts. */
static bool is_redirected(const struct redirect *r, const char *name) {
    while (r && strcmp(r->name, name) != 0)
        r = r->next;
    return r && r->on;
}

static void redirect(struct scan *s, const char *name, bool on) {
    struct lex_token call = { .kind = LEX_PUNCT, .punct = '(' };
    if (!is_copy(name, &call))
        return;
    struct redirect *r = scan_alloc(s, sizeof *r);
    if (r) {
        *r = (struct redirect){ scan_copy(s, name, strlen(name)), on, s->redirects };
        s->redirects = r;
    }
}

/* ---- what a name means where it stands ----------------------------------------------------- */

static bool is_punct(const struct lex_token *t, char c) {
    return t->kind == LEX_PUNCT && t->punct == c;
}

static bool is_name(const struct lex_token *t, const char *const *list) {
    if (t->kind == LEX_NAME)
        for (; *list; list++)
            if (!strcmp(t->name, *list))
                return true;
    return false;
}

/* hipError_t hipMemcpy(…) and hipError_t (*hipMemcpy)(…). */
static bool is_declared(const struct lex_token *b) {
    static const char *const types[] = { "hipError_t", "hipError", NULL };
    return is_name(&b[0], types) ||
           (is_punct(&b[0], '*') && is_punct(&b[1], '(') && is_name(&b[2], types));
}

/* decltype(hipMemcpy), decltype(&hipMemcpy), using ::hipMemcpy. */
static bool is_only_named(const struct lex_token *b) {
    static const char *const words[] = { "decltype", "typeof", "__typeof__", "sizeof", NULL };
    static const char *const uses[] = { "using", NULL };
    return (is_punct(&b[0], '(') && is_name(&b[1], words)) ||
           (is_punct(&b[0], '&') && is_punct(&b[1], '(') && is_name(&b[2], words)) ||
           (is_punct(&b[0], LEX_SCOPE) && is_name(&b[1], uses));
}

/* other::hipMemcpy, but not ::hipMemcpy. */
static bool is_of_a_scope(const struct lex_token *b) {
    static const char *const keywords[] = { "return",    "else",     "do", "throw", "case", "and",
                                            "co_return", "co_await", "or", "not",   NULL };
    return is_punct(&b[0], LEX_SCOPE) && (b[1].kind == LEX_NAME || is_punct(&b[1], '>')) &&
           !is_name(&b[1], keywords);
}

/* A member, table.hipMemcpy or table->hipMemcpy, that is not called here. */
static bool is_plumbing(const struct lex_token *b, const struct lex_token *next) {
    return (is_punct(&b[0], '.') || is_punct(&b[0], LEX_ARROW)) && !is_punct(next, '(');
}

static bool is_direct_copy(const struct scan *s, const struct lex_token *t,
                           const struct lex_token *next) {
    return is_copy(t->name, next) && !is_redirected(s->redirects, t->name) &&
           !is_declared(s->before) && !is_only_named(s->before) && !is_of_a_scope(s->before) &&
           !is_plumbing(s->before, next);
}

/* ---- hits ---------------------------------------------------------------------------------- */

static const char *snippet_of(struct scan *s, const struct lex_token *t) {
    const struct lex *x = &s->lex;
    size_t from = t->at - (t->column - 1), to = t->at;
    while (to < x->length && x->text[to] != '\n')
        to++;
    while (from < to && isspace((unsigned char)x->text[from]))
        from++;
    while (to > from && isspace((unsigned char)x->text[to - 1]))
        to--;
    if (to - from <= SNIPPET_MAX)
        return scan_copy(s, x->text + from, to - from);
    /* Of a long line, what begins shortly before the copy, at the start of a character. */
    from = t->at > from + 20 ? t->at - 20 : from;
    while (from < t->at && ((unsigned char)x->text[from] & 0xc0) == 0x80)
        from++;
    if (to - from > SNIPPET_MAX)
        to = from + SNIPPET_MAX;
    while (to < x->length && to > from && ((unsigned char)x->text[to] & 0xc0) == 0x80)
        to--;
    return scan_copy(s, x->text + from, to - from);
}

/* The direction among the arguments of the call at `call` (a copy of the lexer): 'H' to the
 * device, 'D' to the host, 'B' between devices, 0 if it does not say. */
static char direction_of_call(struct lex call) {
    struct lex_token t;
    int depth = 0;
    call.comment = NULL;
    for (unsigned n = 0; n < 400; n++) {
        lex_next(&call, &t);
        if (t.kind == LEX_END || t.kind == LEX_NEWLINE || is_punct(&t, ';'))
            return 0;
        depth += is_punct(&t, '(') - is_punct(&t, ')');
        if (depth <= 0)
            return 0;
        if (t.kind != LEX_NAME)
            continue;
        if (!strcmp(t.name, "hipMemcpyDeviceToHost"))
            return 'D';
        if (!strcmp(t.name, "hipMemcpyHostToDevice"))
            return 'H';
        if (!strcmp(t.name, "hipMemcpyDeviceToDevice"))
            return 'B';
    }
    return 0;
}

/* Copies of whole ranges, which have a checked counterpart. */
static const struct plain_copy {
    const char *name;
    bool async;
    char direction; /* 0: its arguments say it */
} plain_copies[] = {
    { "hipMemcpy", false, 0 },           { "hipMemcpy_spt", false, 0 },
    { "hipMemcpyAsync", true, 0 },       { "hipMemcpyAsync_spt", true, 0 },
    { "hipMemcpyWithStream", true, 0 },  { "hipMemcpyHtoD", false, 'H' },
    { "hipMemcpyDtoH", false, 'D' },     { "hipMemcpyDtoD", false, 'B' },
    { "hipMemcpyHtoDAsync", true, 'H' }, { "hipMemcpyDtoHAsync", true, 'D' },
    { "hipMemcpyDtoDAsync", true, 'B' },
};

/* What to call instead of the copy; "" if there is no such function. */
static const char *instead_of(const char *name, char direction) {
    const struct plain_copy *c = NULL;
    for (size_t i = 0; i < sizeof plain_copies / sizeof *plain_copies; i++)
        if (!strcmp(plain_copies[i].name, name))
            c = &plain_copies[i];
    if (!c)
        return "";
    switch (c->direction ? c->direction : direction) {
    case 'D':
        return c->async ? "gcore_d2h_copy_async" : "gcore_d2h_copy";
    case 'H':
        return c->async ? "gcore_h2d_copy_async" : "gcore_h2d_copy";
    case 'B':
        return c->async ? "gcore_d2d_copy_async" : "gcore_d2d_copy";
    default:
        return "gcore_copy";
    }
}

static void add_hit(struct scan *s, const struct lex_token *t) {
    struct lint_hit *h = scan_alloc(s, sizeof *h);
    if (!h)
        return;
    *h = (struct lint_hit){ .line = t->line,
                            .column = t->column,
                            .name = scan_copy(s, t->name, strlen(t->name)),
                            .snippet = snippet_of(s, t),
                            .instead = instead_of(t->name, direction_of_call(s->lex)) };
    *s->last = h;
    s->last = (struct lint_hit **)&h->next;
    s->file->found++;
}

/* Comments may stand after what they allow, so that this comes last. */
static void apply_allows(struct scan *s) {
    for (struct lint_hit *h = (struct lint_hit *)s->file->hits; h; h = (struct lint_hit *)h->next)
        for (const struct allow *a = s->allows; a && !h->reason; a = a->next)
            if ((h->line >= a->first_line && h->line <= a->last_line) ||
                (a->alone && h->line == a->last_line + 1)) {
                h->reason = a->reason;
                s->file->allowed++;
            }
}

static void see_token(struct scan *s, const struct lex_token *t) {
    if (t->kind == LEX_NAME && begins_with(t->name, "hip") && is_live(s)) {
        struct lex ahead = s->lex;
        struct lex_token next;
        ahead.comment = NULL;
        lex_next(&ahead, &next);
        if (is_direct_copy(s, t, &next))
            add_hit(s, t);
    }
    s->before[2] = s->before[1];
    s->before[1] = s->before[0];
    s->before[0] = *t;
}

/* ---- directives ---------------------------------------------------------------------------- */

static void skip_directive(struct scan *s) {
    struct lex_token t;
    do
        lex_next(&s->lex, &t);
    while (t.kind != LEX_NEWLINE && t.kind != LEX_END);
}

/* The value of a condition: 0, 1, or -1 if only a preprocessor could tell. */
static int condition_value(struct scan *s) {
    struct lex_token t, rest;
    lex_next(&s->lex, &t);
    if (t.kind == LEX_NEWLINE)
        return -1;
    lex_next(&s->lex, &rest);
    if (rest.kind != LEX_NEWLINE) {
        skip_directive(s);
        return -1;
    }
    if (!strcmp(t.name, "0") || !strcmp(t.name, "false"))
        return 0;
    return !strcmp(t.name, "1") || !strcmp(t.name, "true") ? 1 : -1;
}

static void open_condition(struct scan *s, int value) {
    if (s->depth < CONDITIONS_MAX)
        s->conditions[s->depth] = (struct condition){ value != 0, value == 1 };
    s->depth++;
}

static void next_branch(struct scan *s, int value) {
    if (!s->depth || s->depth > CONDITIONS_MAX)
        return;
    struct condition *c = &s->conditions[s->depth - 1];
    c->live = !c->taken && value != 0;
    c->taken |= value == 1;
}

/* #define: what follows is code, unless the name itself is a copy: then the file redirects it. */
static void begin_define(struct scan *s) {
    struct lex_token t;
    lex_next(&s->lex, &t);
    if (t.kind == LEX_NAME && is_live(s))
        redirect(s, t.name, true);
    if (t.kind == LEX_NEWLINE)
        return;
    /* In the body the name means what it meant before: HIP's, if the macro wraps it. */
    struct redirect *own = s->redirects;
    if (own && strcmp(own->name, t.name) != 0)
        own = NULL;
    if (own)
        own->on = is_redirected(own->next, t.name);
    memset(s->before, 0, sizeof s->before);
    for (lex_next(&s->lex, &t); t.kind != LEX_NEWLINE && t.kind != LEX_END; lex_next(&s->lex, &t))
        see_token(s, &t);
    memset(s->before, 0, sizeof s->before);
    if (own)
        own->on = true;
}

static void read_directive(struct scan *s) {
    struct lex_token t;
    lex_next(&s->lex, &t);
    if (t.kind == LEX_NEWLINE)
        return;
    if (!strcmp(t.name, "if")) {
        open_condition(s, condition_value(s));
    } else if (!strcmp(t.name, "ifdef") || !strcmp(t.name, "ifndef")) {
        open_condition(s, -1);
        skip_directive(s);
    } else if (!strcmp(t.name, "elif")) {
        next_branch(s, condition_value(s));
    } else if (!strcmp(t.name, "elifdef") || !strcmp(t.name, "elifndef")) {
        next_branch(s, -1);
        skip_directive(s);
    } else if (!strcmp(t.name, "else")) {
        next_branch(s, 1);
        skip_directive(s);
    } else if (!strcmp(t.name, "endif")) {
        s->depth -= s->depth > 0;
        skip_directive(s);
    } else if (!strcmp(t.name, "undef")) {
        lex_next(&s->lex, &t);
        if (t.kind == LEX_NAME && is_live(s))
            redirect(s, t.name, false);
        if (t.kind != LEX_NEWLINE)
            skip_directive(s);
    } else if (!strcmp(t.name, "define")) {
        begin_define(s);
    } else {
        skip_directive(s);
    }
}

static void scan_tokens(struct scan *s) {
    struct lex_token t;
    for (lex_next(&s->lex, &t); t.kind != LEX_END; lex_next(&s->lex, &t)) {
        if (t.kind == LEX_HASH)
            read_directive(s);
        else
            see_token(s, &t);
    }
}

enum rc lint_add_text(lint *l, const char *path, const char *text, size_t length, struct err *e) {
    struct scan *s = calloc(1, sizeof *s);
    struct lint_file *file = arena_alloc(&l->arena, sizeof *file);
    const char *name = arena_copy_text(&l->arena, path, strlen(path));
    if (!s || !file || !name) {
        free(s);
        return err_set(e, RC_MEMORY, "%s: no memory to read it", path);
    }
    file->path = name;
    s->l = l;
    s->file = file;
    s->last = (struct lint_hit **)&file->hits;
    s->lex = lex_begin(text, length);
    s->lex.comment = note_comment;
    s->lex.user = s;
    scan_tokens(s);
    apply_allows(s);
    bool failed = s->out_of_memory;
    free(s);
    if (failed)
        return err_set(e, RC_MEMORY, "%s: no memory for what was found", path);
    *l->last = file;
    l->last = (struct lint_file **)&file->next;
    l->totals.files++;
    l->totals.files_with_hits += file->found > file->allowed;
    l->totals.found += file->found;
    l->totals.allowed += file->allowed;
    l->totals.reasonless += file->reasonless;
    return RC_OK;
}

/* ---- files and folders --------------------------------------------------------------------- */

static bool is_source(const char *name) {
    static const char *const ends[] = { ".c",   ".cc",  ".cpp", ".cxx", ".h",
                                        ".hh",  ".hpp", ".hxx", ".hip", ".cu",
                                        ".cuh", ".inc", ".inl", ".ipp", ".tpp" };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends_with(name, ends[i]))
            return true;
    return false;
}

struct walk {
    lint *l;
    void (*problem)(const char *text);
    struct err *e;
    enum rc rc;
};

static void walk_problem(struct walk *w, const char *path, const char *what) {
    struct err e;
    w->rc = err_set(&e, RC_IO, "%s: %s", path, what);
    if (w->e)
        *w->e = e;
    if (w->problem)
        w->problem(e.msg);
    w->l->totals.unreadable++;
}

/* The whole file in memory of its own, with a NUL after it; NULL and errno if that fails. */
static char *read_whole(int fd, size_t size, size_t *length) {
    char *text = malloc(size + 1);
    size_t n = 0;
    while (text && n < size) {
        ssize_t got = read(fd, text + n, size - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            int error = errno;
            free(text);
            errno = error;
            return NULL;
        }
        if (!got)
            break;
        n += (size_t)got;
    }
    if (text)
        text[n] = '\0';
    *length = n;
    return text;
}

static void walk_file(struct walk *w, const char *path, int fd, const struct stat *st) {
    size_t length = 0;
    struct err e;
    if (st->st_size > FILE_MAX) {
        walk_problem(w, path, "larger than 256 MiB: not taken for a source");
        return;
    }
    char *text = read_whole(fd, (size_t)st->st_size, &length);
    if (!text)
        walk_problem(w, path, strerror(errno));
    else if (lint_add_text(w->l, path, text, length, &e) != RC_OK)
        walk_problem(w, path, e.msg);
    free(text);
}

static int shown(const struct dirent *d) {
    return d->d_name[0] != '.';
}

static void walk_path(struct walk *w, const char *path, bool named, unsigned depth);

static void walk_folder(struct walk *w, const char *path, unsigned depth) {
    struct dirent **entries = NULL;
    size_t length = strlen(path);
    const char *slash = length && path[length - 1] == '/' ? "" : "/";
    int n = scandir(path, &entries, shown, alphasort);
    if (n < 0)
        walk_problem(w, path, strerror(errno));
    for (int i = 0; i < n; i++) {
        unsigned char type = entries[i]->d_type;
        char *inner;
        if ((type == DT_DIR || type == DT_UNKNOWN || is_source(entries[i]->d_name)) &&
            asprintf(&inner, "%s%s%s", path, slash, entries[i]->d_name) >= 0) {
            walk_path(w, inner, false, depth + 1);
            free(inner);
        }
        free(entries[i]);
    }
    free(entries);
}

/* named: the user did, so that links are followed and any name is a source. */
static void walk_path(struct walk *w, const char *path, bool named, unsigned depth) {
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (named ? 0 : O_NOFOLLOW));
    if (fd < 0 && errno == ELOOP && !named)
        return;
    if (fd < 0 || fstat(fd, &st) != 0) {
        walk_problem(w, path, strerror(errno));
    } else if (S_ISDIR(st.st_mode)) {
        if (depth < DEPTH_MAX)
            walk_folder(w, path, depth);
        else
            walk_problem(w, path, "folders nested too deeply");
    } else if (S_ISREG(st.st_mode)) {
        if (named || is_source(path))
            walk_file(w, path, fd, &st);
    } else if (named) {
        walk_problem(w, path, "neither a file nor a folder");
    }
    if (fd >= 0)
        close(fd);
}

enum rc lint_add(lint *l, const char *path, void (*problem)(const char *text), struct err *e) {
    struct walk w = { l, problem, e, RC_OK };
    walk_path(&w, path, true, 0);
    return w.rc;
}
