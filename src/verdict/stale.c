/* stale.c - is it the binary, and the model, that it is believed to be?
 *
 * Every process of the recording that called HIP says what it is. A commit is the program's own
 * only if the program says it (program.commit), or if greta's audit is part of the binary: the
 * commit of a preloaded library says nothing about the program. An expectation is not met if no
 * program says anything about it. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "verdict/replay.h"

struct claims {
    const char *program_commit, *program_dirty, *greta_commit, *greta_dirty;
    const char *program_id, *greta_id, *path;
    const char *model_hash, *model_tensors;
};

/* What a process says about itself; process 0: the first that says it. */
static struct claims claims_of(const reader *r, uint32_t process) {
    struct claims c = { 0 };
    const struct {
        const char *key;
        const char **value;
    } wanted[] = {
        { "program.commit", &c.program_commit },
        { "program.dirty", &c.program_dirty },
        { "greta.commit", &c.greta_commit },
        { "greta.dirty", &c.greta_dirty },
        { "program.build_id", &c.program_id },
        { "greta.build_id", &c.greta_id },
        { "program.path", &c.path },
        { "model.hash", &c.model_hash },
        { "model.tensors_xxh64", &c.model_tensors },
    };
    enum { WANTED = sizeof wanted / sizeof *wanted };
    for (uint32_t id = 1; id <= reader_count(r, DEFINITION_PROVENANCE); id++) {
        const struct provenance_value *v = reader_provenance(r, id);
        if (!v || (process && v->process != process))
            continue;
        for (size_t i = 0; i < WANTED; i++)
            if (!*wanted[i].value && !strcmp(reader_string(r, v->key), wanted[i].key))
                *wanted[i].value = reader_string(r, v->value);
    }
    for (size_t i = 0; i < WANTED; i++)
        if (!*wanted[i].value)
            *wanted[i].value = "";
    return c;
}

static bool greta_is_inside(const struct claims *c) {
    return !*c->program_id || !*c->greta_id || !strcmp(c->program_id, c->greta_id);
}

static const char *commit_of(const struct claims *c) {
    if (*c->program_commit)
        return c->program_commit;
    return greta_is_inside(c) ? c->greta_commit : "";
}

static const char *model_of(const struct claims *c) {
    return *c->model_hash ? c->model_hash : c->model_tensors;
}

static bool is_dirty(const struct claims *c) {
    return !strcmp(*c->program_commit ? c->program_dirty : c->greta_dirty, "1") && *commit_of(c);
}

void stale_describe(const struct replay *r, struct stale_facts *out) {
    struct claims c = claims_of(r->r, 0);
    *out = (struct stale_facts){ commit_of(&c), c.program_id, model_of(&c), is_dirty(&c) };
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* One is a prefix of the other, and not too short to mean something. */
static bool same_prefix(const char *a, const char *b) {
    size_t n = strlen(a) < strlen(b) ? strlen(a) : strlen(b);
    return n >= 7 && !strncasecmp(a, b, n);
}

static bool same_model(const char *a, const char *b) {
    return !strcasecmp(a, b);
}

struct expectation {
    enum sentence_id what;
    const char *wanted;
    const char *(*found)(const struct claims *c);
    bool (*same)(const char *a, const char *b);
};

static const char *id_of(const struct claims *c) {
    return c->program_id;
}

static void add_stale(struct replay *r, const struct expectation *x, const struct claims *c,
                      uint32_t process) {
    struct found f = {
        .hypothesis = HYPOTHESIS_STALE_BINARY,
        .culprit = EVENT_NO_SEQ,
        .other = EVENT_NO_SEQ,
        .messenger = EVENT_NO_SEQ,
        .argument = -1,
        .address = (uint64_t)process << 8 | (unsigned)x->what,
    };
    const char *found = c ? x->found(c) : "", *path = c ? c->path : "";
    const char *slash = strrchr(path, '/');
    const struct sentence_value what = A_SENTENCE(sentence_plain(x->what));
    f.said = c ? SAY(&r->words, STALE_IS, what,
                     *path ? A_NAME(slash ? slash + 1 : path)
                           : A_SENTENCE(sentence_plain(SENTENCE_STALE_THE_BINARY)),
                     *found ? A_NAME(found) : A_SENTENCE(sentence_plain(SENTENCE_STALE_NOT_THERE)),
                     A_NAME(x->wanted))
               : SAY(&r->words, STALE_NO_CALL, what, A_NAME(x->wanted));
    findings_add(r, &f);
}

/* Compares in every process that says what it is. Returns false if one is not what was expected. */
static bool check(struct replay *r, const struct expectation *x, bool model) {
    bool same = true, any = false;
    r->checked[HYPOTHESIS_STALE_BINARY]++;
    for (uint32_t id = 1; id <= reader_count(r->r, DEFINITION_PROCESS); id++) {
        struct claims c = claims_of(r->r, id);
        bool speaks = *c.greta_commit || *c.path || *c.program_id || *model_of(&c);
        if (!speaks || (model && !*model_of(&c))) /* a helper program has no model */
            continue;
        any = true;
        if (x->same(x->wanted, x->found(&c)))
            continue;
        add_stale(r, x, &c, id);
        same = false;
    }
    if (!any) {
        struct claims c = claims_of(r->r, 0);
        add_stale(r, x, r->calls ? &c : NULL, 0);
    }
    return any && same;
}

static void doubt_dirty(struct replay *r) {
    struct claims c = claims_of(r->r, 0);
    if (is_dirty(&c))
        findings_undecided(r, HYPOTHESIS_STALE_BINARY, sentence_plain(SENTENCE_DOUBT_DIRTY));
}

bool stale_check(struct replay *r) {
    const struct verdict_options *o = r->options;
    const struct expectation all[] = {
        { SENTENCE_STALE_COMMIT, o->expect_commit, commit_of, same_prefix },
        { SENTENCE_STALE_BUILD_ID, o->expect_build_id, id_of, same_prefix },
        { SENTENCE_STALE_MODEL, o->expect_model_hash, model_of, same_model },
    };
    bool stale = false;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!all[i].wanted)
            continue;
        bool same = check(r, &all[i], all[i].found == model_of);
        if (same && all[i].found == commit_of)
            doubt_dirty(r);
        stale |= !same;
    }
    return stale;
}
