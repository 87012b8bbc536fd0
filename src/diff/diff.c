#include "diff/diff.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "diff/diff_words.h"
#include "hip/hip_api.h"
#include "record/format.h"

enum {
    EDITS_MAX = 4000,  /* beyond, sequences are too different to be aligned */
    LOOK_AHEAD = 256,  /* to tell an event that is missing from one that changed */
    PAIRS_MAX = 10000, /* of threads to be tried against each other */
};

/* The comparable events of one thread. */
struct sequence {
    uint64_t *key, *seq;
    size_t count, room;
    uint64_t hash; /* of all keys */
    bool paired;
};

struct side {
    const reader *r;
    struct sequence *threads; /* by thread */
    uint32_t thread_count;
    uint64_t missing;
};

struct work {
    struct diff d; /* first: what the caller gets */
    struct arena arena;
    struct side a, b;
    struct diff_lane *lanes;
    bool out_of_memory;
};

/* ---- reading ------------------------------------------------------------------------------- */

static bool sequence_add(struct sequence *s, uint64_t key, uint64_t seq) {
    if (s->count == s->room) {
        size_t room = s->room ? 2 * s->room : 64;
        uint64_t *keys = realloc(s->key, room * sizeof *keys);
        if (keys)
            s->key = keys;
        uint64_t *seqs = keys ? realloc(s->seq, room * sizeof *seqs) : NULL;
        if (!seqs)
            return false;
        s->seq = seqs;
        s->room = room;
    }
    s->key[s->count] = key;
    s->seq[s->count++] = seq;
    s->hash = (s->hash ^ key) * UINT64_C(0x9e3779b97f4a7c15) + 1;
    return true;
}

static enum rc side_read(struct side *s, const reader *r, struct err *e) {
    struct diff_state state;
    struct reader_event *full = malloc(sizeof *full);
    struct diff_words *words = malloc(sizeof *words);
    s->r = r;
    s->thread_count = reader_count(r, DEFINITION_THREAD) + 1;
    s->threads = calloc(s->thread_count, sizeof *s->threads);
    enum rc rc = diff_state_open(&state, r, e);
    bool room = full && words && s->threads && rc == RC_OK;
    struct reader_cursor c = reader_events(r, 0, UINT64_MAX);
    while (room && reader_next(&c, full))
        if (diff_state_see(&state, full, words))
            room = sequence_add(&s->threads[full->event.thread], diff_words_hash(words), full->seq);
    if (rc == RC_OK && (!room || state.out_of_memory))
        rc = err_set(e, RC_MEMORY, "no memory to compare recordings");
    s->missing = c.counts.torn + c.counts.lost + c.counts.overwritten + c.counts.truncated;
    diff_state_close(&state);
    free(full);
    free(words);
    return rc;
}

static void side_free(struct side *s) {
    for (uint32_t i = 0; s->threads && i < s->thread_count; i++) {
        free(s->threads[i].key);
        free(s->threads[i].seq);
    }
    free(s->threads);
}

/* ---- alignment ----------------------------------------------------------------------------- */

static size_t common_prefix(const struct sequence *a, const struct sequence *b) {
    size_t n = a->count < b->count ? a->count : b->count, i = 0;
    while (i < n && a->key[i] == b->key[i])
        i++;
    return i;
}

/* The number of insertions and deletions of the shortest edit from a to b (Myers' greedy
 * algorithm: furthest[k] is how far into a one gets on diagonal k with d edits); SIZE_MAX if it is
 * more than EDITS_MAX or memory ran out. */
static size_t edit_distance(const uint64_t *a, size_t n, const uint64_t *b, size_t m) {
    size_t most = n + m < EDITS_MAX ? n + m : EDITS_MAX;
    ptrdiff_t *room = calloc(2 * most + 3, sizeof *room), *furthest = room + most + 1;
    size_t found = SIZE_MAX;
    if (!room)
        return SIZE_MAX;
    for (ptrdiff_t d = 0; d <= (ptrdiff_t)most && found == SIZE_MAX; d++)
        for (ptrdiff_t k = -d; k <= d && found == SIZE_MAX; k += 2) {
            bool down = k == -d || (k != d && furthest[k - 1] < furthest[k + 1]);
            ptrdiff_t x = down ? furthest[k + 1] : furthest[k - 1] + 1, y = x - k;
            while (x < (ptrdiff_t)n && y < (ptrdiff_t)m && a[x] == b[y])
                x++, y++;
            furthest[k] = x;
            if (x >= (ptrdiff_t)n && y >= (ptrdiff_t)m)
                found = (size_t)d;
        }
    free(room);
    return found;
}

static void align(struct diff_lane *lane, const struct sequence *a, const struct sequence *b) {
    size_t from = (size_t)lane->common, n = a->count - from, m = b->count - from;
    while (n && m && a->key[from + n - 1] == b->key[from + m - 1])
        n--, m--;
    size_t edits = !n || !m ? n + m : edit_distance(a->key + from, n, b->key + from, m);
    lane->aligned = edits != SIZE_MAX;
    lane->only_a = lane->aligned ? (edits + n - m) / 2 : n;
    lane->only_b = lane->aligned ? (edits + m - n) / 2 : m;
}

/* How far after `at` the key comes in the sequence, 0 if not soon. */
static size_t distance_to(const struct sequence *s, size_t at, uint64_t key) {
    for (size_t i = 1; i <= LOOK_AHEAD && at + i < s->count; i++)
        if (s->key[at + i] == key)
            return i;
    return 0;
}

/* What happened at the first event that differs: the explanation after which both sequences agree
 * again soonest. */
static enum diff_change classify(const struct sequence *a, const struct sequence *b, size_t at) {
    if (at >= a->count)
        return at >= b->count ? DIFF_SAME : DIFF_ONLY_B;
    if (at >= b->count)
        return DIFF_ONLY_A;
    size_t skip_a = distance_to(a, at, b->key[at]), skip_b = distance_to(b, at, a->key[at]);
    bool goes_on = at + 1 >= a->count || at + 1 >= b->count || a->key[at + 1] == b->key[at + 1];
    if (goes_on || (!skip_a && !skip_b))
        return DIFF_CHANGED;
    if (!skip_b || (skip_a && skip_a <= skip_b))
        return DIFF_ONLY_A;
    return DIFF_ONLY_B;
}

/* ---- texts --------------------------------------------------------------------------------- */

static const char *copy(struct work *w, const char *text) {
    const char *p = arena_copy_text(&w->arena, text, strlen(text));
    w->out_of_memory |= !p;
    return p ? p : "";
}

static const char *event_text(struct work *w, const reader *r, uint64_t seq) {
    struct reader_event *full = malloc(sizeof *full);
    char *text = NULL;
    size_t size = 0;
    const char *out = "";
    FILE *f = full && reader_event(r, seq, full) ? open_memstream(&text, &size) : NULL;
    if (f) {
        format_event(f, r, full);
        fclose(f);
        out = copy(w, text);
    }
    free(text);
    free(full);
    return out;
}

/* The words of one event: only a replay up to there knows them. */
static bool words_at(const reader *r, uint64_t seq, struct diff_words *out) {
    struct diff_state s;
    struct reader_event *full = malloc(sizeof *full);
    bool found = false;
    if (!full || diff_state_open(&s, r, NULL) != RC_OK) {
        free(full);
        return false;
    }
    struct reader_cursor c = reader_events(r, 0, UINT64_MAX);
    while (!found && reader_next(&c, full)) {
        bool comparable = diff_state_see(&s, full, out);
        found = comparable && full->seq == seq;
    }
    diff_state_close(&s);
    free(full);
    return found;
}

static const char *word_text(struct work *w, const struct diff_word *word) {
    char text[64];
    if (!word)
        return "-";
    if (word->text)
        return copy(w, word->text);
    if (!strcmp(word->label, "result"))
        return word->value == RECORD_PENDING ? "pending"
                                             : hip_error_name((hipError_t)(unsigned)word->value);
    snprintf(text, sizeof text, "%" PRId64, (int64_t)word->value);
    return copy(w, text);
}

/* Pairs words by label and place among those of that label. */
static const struct diff_word *counterpart(const struct diff_words *in, const struct diff_words *of,
                                           unsigned n) {
    unsigned place = 0;
    for (unsigned i = 0; i < n; i++)
        place += !strcmp(of->word[i].label, of->word[n].label);
    for (unsigned i = 0; i < in->count; i++)
        if (!strcmp(in->word[i].label, of->word[n].label) && !place--)
            return &in->word[i];
    return NULL;
}

static void compare_words(struct work *w, struct diff_place *p) {
    struct diff_words *a = malloc(sizeof *a), *b = malloc(sizeof *b);
    struct diff_field *fields =
        arena_alloc_array(&w->arena, (size_t)2 * DIFF_WORDS_MAX, sizeof *fields);
    if (a && b && fields && words_at(w->a.r, p->a, a) && words_at(w->b.r, p->b, b)) {
        for (unsigned i = 0; i < a->count; i++) {
            const struct diff_word *other = counterpart(b, a, i);
            if (!other || other->value != a->word[i].value)
                fields[p->field_count++] =
                    (struct diff_field){ a->word[i].label, word_text(w, &a->word[i]),
                                         word_text(w, other) };
        }
        for (unsigned i = 0; i < b->count; i++)
            if (!counterpart(a, b, i))
                fields[p->field_count++] =
                    (struct diff_field){ b->word[i].label, "-", word_text(w, &b->word[i]) };
        p->fields = fields;
    }
    free(a);
    free(b);
}

/* ---- lanes --------------------------------------------------------------------------------- */

static const char *thread_name(const reader *r, uint32_t thread) {
    const struct thread_value *t = reader_thread(r, thread);
    return t ? reader_string(r, t->name) : "";
}

static void fill_lane(struct work *w, struct diff_lane *lane, uint32_t thread_a,
                      uint32_t thread_b) {
    static const struct sequence none;
    const struct sequence *a = thread_a ? &w->a.threads[thread_a] : &none;
    const struct sequence *b = thread_b ? &w->b.threads[thread_b] : &none;
    size_t at = common_prefix(a, b);
    *lane = (struct diff_lane){
        .name = copy(w, thread_a ? thread_name(w->a.r, thread_a) : thread_name(w->b.r, thread_b)),
        .thread_a = thread_a,
        .thread_b = thread_b,
        .events_a = a->count,
        .events_b = b->count,
        .common = at,
    };
    align(lane, a, b);
    struct diff_place *p = &lane->first;
    p->change = classify(a, b, at);
    p->a = at < a->count ? a->seq[at] : EVENT_NO_SEQ;
    p->b = at < b->count ? b->seq[at] : EVENT_NO_SEQ;
    p->text_a = p->text_b = p->text_before = "";
    if (p->change == DIFF_SAME)
        return;
    if (p->a != EVENT_NO_SEQ)
        p->text_a = event_text(w, w->a.r, p->a);
    if (p->b != EVENT_NO_SEQ)
        p->text_b = event_text(w, w->b.r, p->b);
    if (at)
        p->text_before = event_text(w, w->a.r, a->seq[at - 1]);
}

static void add_lane(struct work *w, uint32_t thread_a, uint32_t thread_b) {
    fill_lane(w, &w->lanes[w->d.lane_count++], thread_a, thread_b);
    if (thread_a)
        w->a.threads[thread_a].paired = true;
    if (thread_b)
        w->b.threads[thread_b].paired = true;
}

static bool is_open(const struct side *s, uint32_t thread) {
    return s->threads[thread].count && !s->threads[thread].paired;
}

/* The thread of B with the longest common beginning; ties are decided by name, then by number. */
static uint32_t best_partner(const struct work *w, uint32_t thread_a) {
    const struct sequence *a = &w->a.threads[thread_a];
    uint32_t best = 0;
    size_t length = 0;
    bool named = false;
    for (uint32_t t = 1; t < w->b.thread_count; t++) {
        const struct sequence *b = &w->b.threads[t];
        if (!is_open(&w->b, t))
            continue;
        size_t n = common_prefix(a, b);
        bool same_name = !strcmp(thread_name(w->a.r, thread_a), thread_name(w->b.r, t));
        if (!best || n > length || (n == length && same_name && !named)) {
            best = t;
            length = n;
            named = same_name;
        }
    }
    return best;
}

/* ---- threads that do the same ---- */

struct candidate {
    uint64_t hash, name; /* of what it does; of what it is called, 0 if that does not matter */
    uint32_t thread;
};

static int by_hash(const void *x, const void *y) {
    const struct candidate *a = x, *b = y;
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    if (a->name != b->name)
        return a->name < b->name ? -1 : 1;
    return a->thread < b->thread ? -1 : a->thread > b->thread;
}

/* The unpaired threads of one side, sorted. */
static size_t list_candidates(const struct side *s, bool named, struct candidate *out) {
    size_t count = 0;
    for (uint32_t t = 1; t < s->thread_count; t++) {
        const char *name = thread_name(s->r, t);
        if (is_open(s, t))
            out[count++] = (struct candidate){ s->threads[t].hash + s->threads[t].count,
                                               named ? hash_bytes(name, strlen(name), 1) : 0, t };
    }
    qsort(out, count, sizeof *out, by_hash);
    return count;
}

/* Pairs those that do exactly the same, in the order of their numbers; named: and are called the
 * same. */
static void pair_equal(struct work *w, bool named, struct candidate *a, struct candidate *b) {
    size_t na = list_candidates(&w->a, named, a), nb = list_candidates(&w->b, named, b);
    for (size_t i = 0, k = 0; i < na && k < nb;) {
        bool same = a[i].hash == b[k].hash && a[i].name == b[k].name;
        if (same)
            add_lane(w, a[i++].thread, b[k++].thread);
        else if (by_hash(&a[i], &b[k]) < 0)
            i++;
        else
            k++;
    }
}

static int by_thread(const void *x, const void *y) {
    const struct diff_lane *a = x, *b = y;
    return a->thread_a < b->thread_a ? -1 : a->thread_a > b->thread_a;
}

static void pair_all_equal(struct work *w) {
    struct candidate *a = calloc(w->a.thread_count, sizeof *a),
                     *b = calloc(w->b.thread_count, sizeof *b);
    if (a && b) {
        pair_equal(w, true, a, b);
        pair_equal(w, false, a, b);
        qsort(w->lanes, w->d.lane_count, sizeof *w->lanes, by_thread);
    }
    w->out_of_memory |= !a || !b;
    free(a);
    free(b);
}

static void pair_threads(struct work *w) {
    uint64_t tries = (uint64_t)w->a.thread_count * w->b.thread_count;
    pair_all_equal(w);
    for (uint32_t t = 1; t < w->a.thread_count; t++) {
        if (!is_open(&w->a, t))
            continue;
        uint32_t partner = tries <= PAIRS_MAX                           ? best_partner(w, t)
                           : t < w->b.thread_count && is_open(&w->b, t) ? t
                                                                        : 0;
        add_lane(w, t, partner);
    }
    for (uint32_t t = 1; t < w->b.thread_count; t++)
        if (is_open(&w->b, t))
            add_lane(w, 0, t);
}

/* The lane whose difference comes first in A; those that A does not have come last. */
static void find_first(struct work *w) {
    struct diff_lane *first = NULL;
    for (size_t i = 0; i < w->d.lane_count; i++) {
        struct diff_lane *lane = &w->lanes[i];
        if (lane->first.change != DIFF_SAME && (!first || lane->first.a < first->first.a))
            first = lane;
    }
    if (first && first->first.change == DIFF_CHANGED)
        compare_words(w, &first->first);
    w->d.first = first;
    w->d.same = !first;
}

/* ---- provenance ---------------------------------------------------------------------------- */

/* A key that one of the recordings has, and where each has it first; 0: it does not. */
struct fact_at {
    const char *key;
    uint32_t a, b; /* provenance numbers */
};

static int by_key(const void *x, const void *y) {
    const struct fact_at *f = x, *g = y;
    int order = f->key == g->key ? 0 : strcmp(f->key, g->key);
    if (order)
        return order;
    if (f->a != g->a) /* those of A first, in their order */
        return !f->a ? 1 : !g->a ? -1 : f->a < g->a ? -1 : 1;
    return f->b < g->b ? -1 : f->b > g->b;
}

/* In the order in which the recordings have them. */
static int by_place(const void *x, const void *y) {
    const struct fact_at *f = x, *g = y;
    if (f->a || g->a)
        return !f->a ? 1 : !g->a ? -1 : f->a < g->a ? -1 : f->a > g->a;
    return f->b < g->b ? -1 : f->b > g->b;
}

/* Lists the keys of both, each once. */
static size_t list_facts(const reader *a, const reader *b, struct fact_at *out) {
    size_t count = 0, kept = 0;
    for (unsigned side = 0; side < 2; side++) {
        const reader *r = side ? b : a;
        for (uint32_t id = 1; id <= reader_count(r, DEFINITION_PROVENANCE); id++) {
            const struct provenance_value *p = reader_provenance(r, id);
            if (p)
                out[count++] =
                    (struct fact_at){ reader_string(r, p->key), side ? 0 : id, side ? id : 0 };
        }
    }
    qsort(out, count, sizeof *out, by_key);
    for (size_t i = 0; i < count; i++) {
        bool first = !kept || (out[kept - 1].key != out[i].key &&
                               strcmp(out[kept - 1].key, out[i].key) != 0);
        if (first)
            out[kept++] = out[i];
        else if (!out[kept - 1].b)
            out[kept - 1].b = out[i].b;
    }
    qsort(out, kept, sizeof *out, by_place);
    return kept;
}

static const char *fact_value(const reader *r, uint32_t id) {
    return id ? reader_string(r, reader_provenance(r, id)->value) : NULL;
}

static void compare_facts(struct work *w) {
    const reader *a = w->a.r, *b = w->b.r;
    size_t most =
        (size_t)reader_count(a, DEFINITION_PROVENANCE) + reader_count(b, DEFINITION_PROVENANCE) + 1;
    struct diff_fact *facts = arena_alloc_array(&w->arena, most, sizeof *facts);
    struct fact_at *at = calloc(most, sizeof *at);
    if (!facts || !at) {
        free(at);
        w->out_of_memory = true;
        return;
    }
    /* One text may be the value of many keys: together they are limited by the size of the files.
     */
    uint64_t room = reader_info(a)->data_bytes + reader_info(b)->data_bytes;
    size_t count = list_facts(a, b, at);
    for (size_t i = 0; i < count; i++) {
        const char *in_a = fact_value(a, at[i].a), *in_b = fact_value(b, at[i].b);
        uint64_t bytes = (in_a ? strlen(in_a) : 0) + (in_b ? strlen(in_b) : 0);
        if ((in_a && in_b && !strcmp(in_a, in_b)) || bytes > room)
            continue;
        room -= bytes;
        facts[w->d.fact_count++] =
            (struct diff_fact){ copy(w, at[i].key), in_a ? copy(w, in_a) : NULL,
                                in_b ? copy(w, in_b) : NULL };
    }
    free(at);
    w->d.facts = facts;
}

/* ---- all ----------------------------------------------------------------------------------- */

enum rc diff_open(diff **out, const reader *a, const reader *b, struct err *e) {
    struct work *w = calloc(1, sizeof *w);
    if (!w)
        return err_set(e, RC_MEMORY, "no memory to compare recordings");
    enum rc rc = side_read(&w->a, a, e);
    if (rc == RC_OK)
        rc = side_read(&w->b, b, e);
    if (rc == RC_OK) {
        w->lanes = arena_alloc_array(&w->arena, (size_t)w->a.thread_count + w->b.thread_count,
                                     sizeof *w->lanes);
        if (w->lanes) {
            pair_threads(w);
            find_first(w);
            compare_facts(w);
        }
        if (!w->lanes || w->out_of_memory)
            rc = err_set(e, RC_MEMORY, "no memory to compare recordings");
    }
    w->d.lanes = w->lanes;
    w->d.missing_a = w->a.missing;
    w->d.missing_b = w->b.missing;
    side_free(&w->a);
    side_free(&w->b);
    w->a = w->b = (struct side){ 0 };
    diff *d = &w->d;
    if (rc == RC_OK)
        *out = d;
    else
        diff_close(&d);
    return rc;
}

void diff_close(diff **d) {
    struct work *w = (struct work *)*d;
    if (!w)
        return;
    arena_clear(&w->arena);
    free(w);
    *d = NULL;
}

const char *diff_change_name(enum diff_change change) {
    static const char *const names[] = { "same", "changed", "only_a", "only_b" };
    return (unsigned)change < sizeof names / sizeof *names ? names[change] : "?";
}
