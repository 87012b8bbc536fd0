/* wrapper.c - which functions do nothing but call HIP and check the result; lines.h has the rule.
 *
 * Looks at all call stacks of the recording. In each, the innermost function that is not a wrapper
 * makes the call. Where that function is called from, and whether it is also further out in other
 * stacks, decides whether it is a wrapper itself. Repeating this finds wrappers of wrappers. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "hip/hip_api.h"
#include "symbol/lines_internal.h"

enum { ROUNDS = 3, SITES_MAX = 64 << 10 };

struct wrapper {
    uint64_t identity;         /* 0: empty */
    uint64_t position, caller; /* of the first call seen; 0: none */
    bool small, is_wrapper;
    bool positions, callers; /* more than one */
    bool outside;            /* stands outside of the function that makes the call */
};

/* ---- a stack as one row of functions --------------------------------------------------------- */

static uint64_t hash_name(const char *text) {
    return text ? hash_bytes(text, strlen(text), 0) : 0;
}

static uint64_t hash_two(uint64_t a, uint64_t b) {
    const uint64_t words[2] = { a, b };
    uint64_t hash = hash_bytes(words, sizeof words, 0);
    return hash ? hash : 1;
}

/* HIP's own headers have templates and inline functions under the names of the functions that they
 * call, hipMalloc<T> for instance. */
static bool is_hip_name(const char *name) {
    char plain[128];
    size_t n = name ? strcspn(name, "<(") : 0;
    if (!n || n >= sizeof plain)
        return false;
    memcpy(plain, name, n);
    plain[n] = '\0';
    return hip_fn_find(plain) != HIP_FN_COUNT;
}

/* Compilers put the launch of a kernel into a function with this reserved name before it. */
static bool is_device_stub(const char *name) {
    static const char prefix[] = "__device_stub__";
    if (!name)
        return false;
    const char *last = name;
    for (const char *at = name;
         (at = strstr(at, "::")) != NULL && !memchr(name, '(', (size_t)(at - name));)
        last = at += 2;
    return strncmp(last, prefix, sizeof prefix - 1) == 0;
}

/* In a namespace that the language reserves for its library: what such a function does, it does for
 * its caller. */
static bool is_standard(const char *name) {
    static const char *const scope[] = { "std::", "__gnu_cxx::" };
    for (size_t i = 0; name && i < sizeof scope / sizeof *scope; i++)
        if (!strncmp(name, scope[i], strlen(scope[i])))
            return true;
    return false;
}

/* A name that C reserves for its library, or none at all, as in a library without symbols. */
static bool is_reserved(const char *name) {
    return !name || (name[0] == '_' && (name[1] == '_' || (name[1] >= 'A' && name[1] <= 'Z')));
}

static struct flat flatten_one(unsigned frame, unsigned depth, const struct known *k) {
    const struct dwarf_function *f = &k->function[depth];
    uint64_t place = hash_two(k->module, k->offset);
    bool declared = f->declared && f->declared_line;
    return (struct flat){
        .frame = frame,
        .depth = depth,
        .module = k->module,
        .function = f,
        .identity = declared  ? hash_two(hash_name(f->declared), f->declared_line)
                    : f->name ? hash_two(k->module, hash_name(f->name))
                              : place,
        .position = f->line ? hash_two(hash_name(f->file), f->line) : place,
    };
}

unsigned wrapper_flatten(struct lines *l, uint32_t site, struct flat out[static FLAT_MAX]) {
    unsigned frames, count = 0;
    const struct site_frame *f = reader_site(l->r, site, &frames, NULL);
    for (unsigned i = 0; i < frames; i++) {
        const struct known *k = frames_find(l, &f[i]);
        for (unsigned n = 0; k && n < k->count && count < FLAT_MAX; n++)
            out[count++] = flatten_one(i, n, k);
    }
    return count;
}

/* ---- functions ------------------------------------------------------------------------------- */

static bool is_small(const struct dwarf_function *f) {
    if (!f->declared_line || f->last_line < f->declared_line)
        return false;
    uint32_t lines = f->last_line - f->declared_line;
    return lines <= LINES_BARE || (f->parameters && lines <= LINES_WRAPPER);
}

static struct wrapper *find(const struct lines *l, uint64_t identity) {
    assert(l->functions && l->function_room);
    size_t at = identity & (l->function_room - 1);
    while (l->functions[at].identity && l->functions[at].identity != identity)
        at = (at + 1) & (l->function_room - 1);
    return &l->functions[at];
}

static bool make_room(struct lines *l) {
    if (2 * (l->function_count + 1) <= l->function_room)
        return true;
    struct wrapper *old = l->functions;
    size_t old_room = l->function_room, room = old_room ? 2 * old_room : 256;
    struct wrapper *more = calloc(room, sizeof *more);
    if (!more)
        return false;
    l->functions = more;
    l->function_room = room;
    for (size_t i = 0; old && i < old_room; i++)
        if (old[i].identity)
            *find(l, old[i].identity) = old[i];
    free(old);
    return true;
}

static struct wrapper *entry_of(struct lines *l, const struct flat *f) {
    if (!make_room(l))
        return NULL;
    struct wrapper *w = find(l, f->identity);
    if (!w->identity) {
        *w = (struct wrapper){ .identity = f->identity, .small = is_small(f->function) };
        w->is_wrapper = is_device_stub(f->function->name) || is_hip_name(f->function->name) ||
                        is_standard(f->function->name);
        l->function_count++;
    }
    return w;
}

static bool is_same(const char *a, const char *b) {
    return a && b && (a == b || !strcmp(a, b));
}

/* True if the inner function is declared and called on one line, like a lambda in a macro that
 * checks results: the outer function is a better name for that place. Some compilers give no line
 * for the declaration of a lambda. */
static bool is_in_place(const struct flat *inner, const struct flat *outer) {
    const struct dwarf_function *f = inner->function, *around = outer->function;
    bool here = f->declared_line == f->line && is_same(f->file, f->declared);
    return f->line && f->line == around->line && is_same(f->file, around->file) &&
           (here || !f->declared_line);
}

static unsigned skip(const struct lines *l, const struct flat *row, unsigned count) {
    unsigned i = 0;
    while (l->functions && i + 1 < count &&
           (find(l, row[i].identity)->is_wrapper || is_in_place(&row[i], &row[i + 1])))
        i++;
    return i;
}

static void note(uint64_t *first, bool *more, uint64_t value) {
    if (!*first)
        *first = value;
    else if (*first != value)
        *more = true;
}

/* Exit handlers do not count as called by the function that called exit(). */
static bool is_exit(const char *name) {
    return name && (!strcmp(name, "exit") || !strcmp(name, "quick_exit"));
}

static bool look_at(struct lines *l, const struct flat *row, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        if (!entry_of(l, &row[i]))
            return false;
    unsigned first = skip(l, row, count);
    struct wrapper *w = find(l, row[first].identity);
    note(&w->position, &w->positions, row[first].position);
    if (first + 1 < count)
        note(&w->caller, &w->callers, row[first + 1].position);
    for (unsigned i = first + 1; i < count && !is_exit(row[i].function->name); i++)
        find(l, row[i].identity)->outside = true;
    return true;
}

/* At the end of a round, marks all wrappers found in it. True if there are any. */
static bool finish_round(struct lines *l) {
    bool any = false;
    for (size_t i = 0; l->functions && i < l->function_room; i++) {
        struct wrapper *w = &l->functions[i];
        bool is = w->small && w->position && !w->positions && w->callers && !w->outside;
        any |= is && !w->is_wrapper;
        w->is_wrapper |= is;
        w->position = w->caller = 0;
        w->positions = w->callers = w->outside = false;
    }
    return any;
}

/* Sites of which only error functions were called, as a check does, or those that the compiler
 * calls to register kernels: one byte for each site. NULL if there is no memory. Long recordings
 * are looked at in part. Also sets l->host. */
static unsigned char *find_checks(struct lines *l, uint32_t sites) {
    enum { OTHER = 1, CHECK = 2, EVENTS_MAX = 1 << 20 };
    unsigned char *is = calloc((size_t)sites + 1, 1);
    l->host = calloc((size_t)sites + 1, 1);
    l->host_count = sites;
    struct reader_event *e = malloc(sizeof *e);
    struct reader_cursor c = reader_events(l->r, 0, UINT64_MAX);
    for (unsigned n = 0; is && e && n < EVENTS_MAX && reader_next(&c, e); n++) {
        if (!e->event.site || e->event.site > sites)
            continue;
        unsigned fn = event_fn(&e->event);
        enum hip_fn known =
            fn == EVENT_NO_FN ? HIP_FN_COUNT : hip_fn_find(reader_function(l->r, fn));
        enum hip_class class = hip_fn_class(known);
        is[e->event.site] |=
            class == HIP_CLASS_ERROR || class == HIP_CLASS_REGISTER ? CHECK : OTHER;
        if (l->host &&
            (e->event.kind == EVENT_EARLY_HOST_ACCESS || e->event.kind == EVENT_HOST_FAULT))
            l->host[e->event.site] = 1;
    }
    for (uint32_t id = 0; is && id <= sites; id++)
        is[id] = is[id] == CHECK;
    free(e);
    return is;
}

static void find_wrappers(struct lines *l) {
    struct flat row[FLAT_MAX];
    uint32_t sites = reader_count(l->r, DEFINITION_SITE);
    sites = sites < SITES_MAX ? sites : SITES_MAX;
    unsigned char *check = find_checks(l, sites);
    bool more = make_room(l) && check;
    for (int round = 0; more && round < ROUNDS; round++) {
        for (uint32_t id = 1; more && id <= sites; id++) {
            unsigned count = check[id] ? 0 : wrapper_flatten(l, id, row);
            more = !count || look_at(l, row, count);
        }
        more = more && finish_round(l);
    }
    free(check);
}

/* An access to memory may be made inside the C library, by memcpy() for instance: the frames of
 * that library which are inside of all others. */
static unsigned skip_library(const struct flat *row, unsigned count) {
    unsigned i = 0;
    while (is_reserved(row[0].function->name) && i < count && row[i].module == row[0].module)
        i++;
    return i < count && row[i].function->line && !is_reserved(row[i].function->name) ? i : 0;
}

unsigned wrapper_skip(struct lines *l, uint32_t site, const struct flat *row, unsigned count) {
    if (!l->functions)
        find_wrappers(l);
    bool host = l->host && site <= l->host_count && l->host[site];
    unsigned inside = host ? skip_library(row, count) : 0;
    return l->functions ? inside + skip(l, row + inside, count - inside) : inside;
}

void wrapper_free(struct lines *l) {
    free(l->functions);
    free(l->host);
}
