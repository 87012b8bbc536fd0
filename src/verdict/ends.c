/* ends.c - where the history of each process ends, and how.
 *
 * A process that ends in good order says END. One that did not may still be known to have ended:
 * `greta_audit run` saw its exit status, or another program joined the recording under the same
 * process number, which means that the process called exec. The rest were killed, crashed, or are
 * still running; their threads' last events are where the history ends. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verdict/replay.h"

enum { ENDS_MAX = 64 };

static int number(const struct replay *r, const char *key) {
    const char *text = reader_provenance_find(r->r, key);
    char *end = NULL;
    long n = text && *text ? strtol(text, &end, 10) : -1;
    return end && !*end && n >= 0 && n < INT32_MAX ? (int)n : -1;
}

/* Processes that greta_audit itself is. */
static bool find_recorders(const struct replay *r, struct table *out) {
    for (uint32_t id = 1; id <= reader_count(r->r, DEFINITION_PROVENANCE); id++) {
        const struct provenance_value *v = reader_provenance(r->r, id);
        if (v && !strcmp(reader_string(r->r, v->key), "run.recorder") &&
            !table_set(out, v->process, out))
            return false;
    }
    return true;
}

/* By process number of the system: the definition of the last program that joined under it. */
static bool find_joined(const struct replay *r, struct table *out) {
    for (uint32_t id = 1; id <= reader_count(r->r, DEFINITION_PROCESS); id++) {
        const struct process_value *p = reader_process(r->r, id);
        if (p && p->how == PROCESS_JOINED && !table_set(out, p->pid, (void *)(uintptr_t)id))
            return false;
    }
    return true;
}

void ends_settle(struct replay *r) {
    int run_pid = number(r, "run.pid"), run_exit = number(r, "run.exit");
    struct table recorders = { 0 }, joined = { 0 };
    r->no_memory |= !find_recorders(r, &recorders) || !find_joined(r, &joined);
    for (size_t i = 0; i < r->space_count; i++) {
        struct space *s = r->spaces[i];
        const struct process_value *p = reader_process(r->r, s->process);
        if (s->ended || !p)
            continue;
        /* Another program may have taken this one's place. */
        bool made_way = (uintptr_t)table_find(&joined, p->pid) > s->process;
        s->ended = (run_exit >= 0 && run_pid == (int)p->pid) || made_way ||
                   table_find(&recorders, s->process);
    }
    table_clear(&recorders);
    table_clear(&joined);
}

/* ---- threads --------------------------------------------------------------------------------- */

/* Those whose history ends without their process's end: in calls first, then the newest. */
static int by_end(const void *a, const void *b) {
    const struct thread *x = *(const struct thread *const *)a,
                        *y = *(const struct thread *const *)b;
    if (x->last_pending != y->last_pending)
        return x->last_pending ? -1 : 1;
    return x->last > y->last ? -1 : x->last < y->last;
}

static void fill_ends(struct replay *r, struct arena *a, struct verdict_coverage *c) {
    const struct thread **list = arena_alloc_array(a, r->thread_count + 1, sizeof(void *));
    size_t count = 0;
    c->end_event = EVENT_NO_SEQ;
    for (size_t i = 0; list && i < r->thread_count; i++) {
        const struct thread *t = &r->threads[i];
        if (!t->seen || t->space->ended)
            continue;
        list[count++] = t;
        if (c->end_event == EVENT_NO_SEQ || t->last > c->end_event)
            c->end_event = t->last;
    }
    size_t shown = count < ENDS_MAX ? count : ENDS_MAX;
    struct verdict_actor *ends = arena_alloc_array(a, shown + 1, sizeof *ends);
    if (!list || !ends) {
        r->no_memory = true;
        return;
    }
    qsort(list, count, sizeof *list, by_end);
    for (size_t i = 0; i < shown; i++)
        ends[i] = actors_make(r, a, list[i]->last);
    c->ends = ends;
    c->ends_count = shown;
    c->ends_left_out = count - shown;
}

/* ---- in words -------------------------------------------------------------------------------- */

static const struct sentence *how_it_ended(struct replay *r, const struct verdict_coverage *c,
                                           const struct verdict_actor *last) {
    const struct thread_value *t = last ? reader_thread(r->r, last->thread) : NULL;
    const struct process_value *p = t ? reader_process(r->r, t->process) : NULL;
    if (c->exit_signal > 0 && (!p || (int)p->pid == number(r, "run.pid"))) {
        const char *name = sigabbrev_np(c->exit_signal);
        return SAY(&r->words, END_SIGNAL, A_NUMBER(number(r, "run.late") == 1),
                   A_NUMBER(c->exit_signal),
                   A_SENTENCE(name ? SAY(&r->words, SIGNAL_NAME, A_NAME(name))
                                   : sentence_plain(SENTENCE_NOTHING)));
    }
    if (!p)
        return sentence_plain(SENTENCE_END_STOPPED);
    const char *path = reader_string(r->r, p->program), *slash = strrchr(path, '/');
    return SAY(&r->words, END_PROCESS, A_NUMBER(p->pid), A_NAME(slash ? slash + 1 : path));
}

static const struct sentence *actor_words(struct replay *r, const struct verdict_actor *x) {
    const struct sentence_value values[] = { A_NAME(x->kernel ? x->kernel
                                                    : *x->api ? x->api
                                                              : event_kind_text(x->kind)),
                                             A_NUMBER(x->event), A_NAME(x->site) };
    bool at = strcmp(x->site, "-") != 0;
    return sentence_make(&r->words,
                         at          ? x->kernel ? SENTENCE_CALL_LAUNCH_AT : SENTENCE_CALL_AT
                         : x->kernel ? SENTENCE_CALL_LAUNCH
                                     : SENTENCE_CALL,
                         values, at ? 3 : 2);
}

static const struct sentence *end_words(struct replay *r, const struct verdict_coverage *c) {
    const struct verdict_actor *first = c->ends_count ? &c->ends[0] : NULL;
    const struct sentence_value how = A_SENTENCE(how_it_ended(r, c, first));
    if (!first)
        return SAY(&r->words, END_BEFORE, how);
    size_t inside = 0;
    for (size_t i = 0; i < c->ends_count; i++)
        inside += c->ends[i].status_code == RECORD_PENDING;
    const struct sentence_value where = A_SENTENCE(actor_words(r, first));
    if (!inside)
        return SAY(&r->words, END_AFTER, how, where, A_NUMBER(c->end_event));
    return SAY(&r->words, END_IN, how, where,
               A_SENTENCE(inside > 1 ? SAY(&r->words, END_OTHERS, A_NUMBER(inside - 1))
                                     : sentence_plain(SENTENCE_NOTHING)),
               A_NUMBER(c->end_event));
}

void ends_fill(struct replay *r, struct arena *a, struct verdict_coverage *c) {
    c->calls = r->calls;
    c->exit_signal = number(r, "run.signal");
    c->exit_status = number(r, "run.exit");
    c->ended = r->space_count != 0;
    for (size_t i = 0; i < r->space_count; i++)
        c->ended = c->ended && r->spaces[i]->ended;
    c->processes_ended = 0;
    for (size_t i = 0; i < r->space_count; i++)
        c->processes_ended += r->spaces[i]->ended;
    fill_ends(r, a, c);
    /* A program that was killed before its first call is not among the processes. */
    if (c->ended && c->exit_signal > 0 && !r->calls)
        c->ended = false;
    c->end_said = c->ended ? NULL : sentence_keep(a, end_words(r, c));
    r->no_memory |= !c->ended && !c->end_said;
    c->end = sentence_text(LANG_EN, c->end_said);
}
